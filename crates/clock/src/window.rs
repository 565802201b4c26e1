//! What an edge's pairs of one window say: a line and the delays around it.

use onramp_sync::{
    line::{fit, Line, Softness},
    probe::{points, pure, Direction, Pair, Probe, Purity},
};

use crate::{exchange::NearEnd, wire::Delays};

/// The least distorted part of the pairs: what tests of `onramp-sync` choose for software stamps.
const PURITY: Purity = Purity::Best(0.15);

/// A window of one edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// None: too few pairs.
    pub line: Option<(Line, Delays)>,
    /// Pairs that came to the far end, and whose stamps all are known.
    pub pairs_out: usize,
    /// Pairs that came back.
    pub pairs_back: usize,
}

/// Ends the window: takes the pairs out of the near end.
pub fn close(end: &mut NearEnd) -> Found {
    let (out, back) = (std::mem::take(&mut end.out), std::mem::take(&mut end.back));
    let (pairs_out, pairs_back) = (out.len(), back.len());
    let line = fit(
        &points(&pure(out.clone(), PURITY)),
        &points(&pure(back.clone(), PURITY)),
        Softness::default(),
    );
    Found {
        line: line.map(|line| (line, delays(&line, &out, &back))),
        pairs_out,
        pairs_back,
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
    use onramp_units::{Clock, Time};

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
        for n in 0..300i64 {
            let (at, queued) = (n * 7_000_000, n % 2 * 3_000);
            end.out.push(pair(at, at + 1_000_000 + 5_000 + queued));
            end.back
                .push(pair(at + 2_000_000, at + 1_000_000 + 7_000 + queued));
        }
        let found = close(&mut end);
        assert_eq!((found.pairs_out, found.pairs_back), (300, 300));
        let (line, delays) = found.line.expect("enough pairs");
        // Half of the difference between the ways is taken for offset.
        assert!(
            (line.about_ns as f64 + line.ahead_ns - 999_000.0).abs() < 5.0,
            "{line:?}"
        );
        assert!((line.delay_ns - 6_000.0).abs() < 5.0, "{line:?}");
        assert!((delays.out_min_ns - 6_000).abs() < 5, "{delays:?}");
        assert!((delays.back_now_ns - 9_000).abs() < 5, "{delays:?}");
        assert!(close(&mut end).line.is_none());
    }
}
