// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What an edge's pairs say at the end of a window: a line and the delays around it.
//!
//! A line is fitted to the pairs of the last three windows. Few pairs meet no queue under load, and
//! probing three times as often costs more than a line that is 2 s older (docs/clock.md has numbers).

use onramp_sync::{
    line::{fit, Line, Softness, WINDOWS},
    probe::{points, pure, Direction, Near, Pair, Probe, Stamps},
};

use onramp_units::{Span, Time};

use crate::{exchange::NearEnd, wire::Delays};

/// Shortest and longest time between two pairs to a neighbour.
pub const INTERVALS: (Span, Span) = (Span::from_us(200), Span::from_ms(200));
/// Time between lines, and between central steps.
pub const WINDOW_NS: i64 = 2_000_000_000;

/// A line over less time has a drift of little worth: 5 us at its ends are 10 ppm over half a second.
const SHORTEST: Span = Span::from_ns(WINDOW_NS / 2);

/// A clock of a larger standard deviation is of no use to On-Ramp, nor is a line.
pub const WORST_SIGMA_NS: f64 = 1e6;
/// Windows with whose gaps that of a line is compared: half a minute, so a path that has become longer is believed then.
const GAPS: usize = 16;

impl NearEnd {
    /// What a change of the gap adds to the standard deviation of a line, ns. If the gap has become wider than it was by more than
    /// the line's own error, the shortest delay of one direction may be longer now, and then the line is off by as much. If it is
    /// narrower than ever, a clock was bent.
    fn gap_changed(&mut self, gap_ns: f64, sigma_ns: f64) -> f64 {
        let before = self.gaps.iter().copied().reduce(f64::min);
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap_ns);
        let changed_ns = before.map_or(0.0, |before| (gap_ns - before).abs());
        (changed_ns - sigma_ns).max(0.0)
    }
}

/// A window of one edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// None: too few pairs, or none of this window.
    pub line: Option<(Line, Delays)>,
    /// There was a line, and its points do not support it.
    pub is_unsupported: bool,
    /// Pairs of the window that came to the far end, and whose stamps all are known.
    pub pairs_out: usize,
    /// Pairs that came back.
    pub pairs_back: usize,
}

/// Ends the window at `now`; of the near end's pairs those stay that the next line needs.
pub fn close(end: &mut NearEnd, now: Time<Near>) -> Found {
    let since = now - Span::from_ns(WINDOWS as i64 * WINDOW_NS);
    end.out.retain(|pair| pair.first.sent > since);
    end.back.retain(|pair| pair.first.received > since);
    let last = now - Span::from_ns(WINDOW_NS);
    let out = end.out.iter().filter(|pair| pair.first.sent > last);
    let back = end.back.iter().filter(|pair| pair.first.received > last);
    let (out, back): (Vec<_>, Vec<_>) = (out.copied().collect(), back.copied().collect());
    let line = fit(
        &points(&pure(end.out.clone(), Stamps::Software.purity())),
        &points(&pure(end.back.clone(), Stamps::Software.purity())),
        Softness::of(Stamps::Software),
    );
    let line = line.map(|line| Line {
        sigma_ns: libm::hypot(line.sigma_ns, end.gap_changed(line.delay_ns, line.sigma_ns)),
        ..line
    });
    // An edge that has fallen silent tells nothing, though old pairs are left; nor does one that has just begun.
    let spans = end.out.first().zip(end.out.last());
    let spans = spans.map_or(Span::from_ns(0), |(first, last)| {
        last.first.sent - first.first.sent
    });
    let line = line.filter(|_| !out.is_empty() && !back.is_empty() && spans >= SHORTEST);
    let supported = line.filter(|line| line.sigma_at(now) < WORST_SIGMA_NS);
    Found {
        line: supported.map(|line| (line, delays(&line, &out, &back))),
        is_unsupported: line.is_some() && supported.is_none(),
        pairs_out: out.len(),
        pairs_back: back.len(),
    }
}

/// One-way delays of all probes, if the line is right.
fn delays<A, B>(line: &Line, out: &[Pair<A, B>], back: &[Pair<B, A>]) -> Delays
where
    Probe<A, B>: Direction,
    Probe<B, A>: Direction,
{
    let ahead = |at| {
        line.about_ns
            .saturating_add(line.ahead_at(at).round() as i64)
    };
    let late = |point: &onramp_sync::probe::Point| point.ahead_ns.saturating_sub(ahead(point.at));
    let mut outs: Vec<i64> = points(out).iter().map(late).collect();
    let mut backs: Vec<i64> = points(back)
        .iter()
        .map(|point| late(point).saturating_neg())
        .collect();
    let (out_min_ns, out_now_ns) = least_and_median(&mut outs);
    let (back_min_ns, back_now_ns) = least_and_median(&mut backs);
    Delays {
        out_min_ns,
        back_min_ns,
        out_now_ns,
        back_now_ns,
    }
}

/// Both 0 of nothing.
fn least_and_median(values: &mut [i64]) -> (i64, i64) {
    values.sort_unstable();
    let at = |n: usize| values.get(n).copied().unwrap_or(0);
    (at(0), at(values.len() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_units::Clock;

    fn pair<A: Clock, B: Clock>(sent: i64, received: i64) -> Pair<A, B> {
        let probe = |later: i64| Probe {
            sent: Time::from_ticks(sent + later),
            received: Time::from_ticks(received + later),
        };
        Pair {
            first: probe(0),
            second: probe(50_000),
        }
    }

    /// The far clock is 1 ms ahead; 5 us out, 7 us back; every second pair queues for 3 us.
    #[test]
    fn a_window_has_a_line_and_delays() {
        let mut end = NearEnd::default();
        for n in 1..=300i64 {
            let (at, queued) = (n * 20_000_000, n % 2 * 3_000);
            end.out.push(pair(at, at + 1_000_000 + 5_000 + queued));
            end.back
                .push(pair(at + 2_000_000, at + 1_000_000 + 7_000 + queued));
        }
        let after = |windows: i64| Time::from_ticks(3_000_000 + windows * WINDOW_NS);
        let found = close(&mut end, after(3));
        assert_eq!((found.pairs_out, found.pairs_back), (100, 100));
        let (line, delays) = found.line.expect("enough pairs");
        // Half of the difference between the ways is taken for offset.
        assert!(
            (line.about_ns as f64 + line.ahead_ns - 999_000.0).abs() < 5.0,
            "{line:?}"
        );
        assert!((line.delay_ns - 6_000.0).abs() < 5.0, "{line:?}");
        assert!((delays.out_min_ns - 6_000).abs() < 5, "{delays:?}");
        assert!((delays.back_now_ns - 9_000).abs() < 5, "{delays:?}");
        // Enough pairs, but of too little time.
        let mut short = NearEnd::default();
        short.out = end.out[250..].to_vec();
        short.back = end.back[250..].to_vec();
        let found = close(&mut short, after(3));
        assert!(found.pairs_out == 50 && found.line.is_none(), "{found:?}");
        // What is left would do for a line, but it is old.
        assert!(close(&mut end, after(4)).line.is_none());
        assert_eq!(end.out.len(), 200);
    }
}
