// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A host checks its fleet time with each pair of probes, between the verdicts: by fleet time no packet may be faster than the
//! path allows. If packets to the neighbours seem too fast and those from them slow, this host's fleet time is ahead, and the
//! other way round. Queues make packets slower in one direction only, and never faster.

use std::{collections::VecDeque, net::SocketAddr};

use onramp_units::Time;
use tracing::warn;

use super::{fresh::Recent, Engine};
use crate::exchange::{NearEnd, Seen};

/// Time over which the fastest packets count, ns: some may meet a queue.
const RECENT_NS: i64 = 1_000_000_000;
/// A deviation is noticed when it is larger than this many standard deviations of a line.
const NOTICED: f64 = 2.0;
/// A fleet time that is further off is not used any more, ns: what On-Ramp compares with thresholds is of this size.
const WRONG_NS: f64 = 20_000.0;
/// The same as a multiple of the deviations that mean nothing: with coarse stamps a deviation of 20 us may be one of them.
const WRONG_NOISE: f64 = 10.0;
/// A neighbour of which no pair was complete for so many intervals of probes says nothing: a host that was frozen hears nothing
/// from neighbours that have given it up.
const SILENT: i64 = 5;
/// Without any pair for this time nothing confirms fleet time, and it is withheld, ns: the host may have been frozen, and then has
/// noticed less time than has passed.
const UNCONFIRMED_NS: i64 = 500_000_000;
/// Weight of a window in the usual delays of a path, and in their scatter.
const USUAL_GAIN: f64 = 0.25;
/// Deviations mean nothing within so many times the scatter of the fastest round trips: on a path where no packet is undisturbed the
/// fastest ones of each second differ.
const SCATTERED: f64 = 3.0;
/// A round trip teaches no more than if it were off by so many times its scatter.
const UNUSUAL: f64 = 3.0;

/// A pair's delay by fleet time, and when it was at this host.
#[derive(Debug, Clone, Copy)]
struct Delay {
    at_own_ns: i64,
    ns: f64,
}

/// The fastest pairs of both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fastest {
    out_ns: f64,
    back_ns: f64,
}

/// What one neighbour shows of this host's fleet time.
#[derive(Debug, Default)]
pub(super) struct Check {
    out: VecDeque<Delay>,
    back: VecDeque<Delay>,
    /// When the newest pair was at this host.
    latest_own_ns: i64,
    /// The fastest pairs of this window.
    window: Option<Fastest>,
    usual: Option<Fastest>,
    /// The fastest round trips of windows, in which no clock's error shows: their mean, and how far they are from it.
    round_trip: Option<(f64, f64)>,
}

impl Check {
    /// A pair arrived.
    fn take(&mut self, is_out: bool, delay: Delay) {
        let window = self.window.get_or_insert(Fastest {
            out_ns: f64::INFINITY,
            back_ns: f64::INFINITY,
        });
        let fastest = if is_out {
            &mut window.out_ns
        } else {
            &mut window.back_ns
        };
        *fastest = fastest.min(delay.ns);
        self.latest_own_ns = self.latest_own_ns.max(delay.at_own_ns);
        let recent = if is_out {
            &mut self.out
        } else {
            &mut self.back
        };
        // Only those stay that are faster than all later ones.
        while recent.back().is_some_and(|last| last.ns >= delay.ns) {
            recent.pop_back();
        }
        recent.push_back(delay);
    }

    /// By how much this host's fleet time is ahead of the neighbour's, ns; at least by so much if packets of one direction meet
    /// queues. None: there are too few pairs, or none since `since_own_ns`, or queues hide it. `noise_ns`: deviations of
    /// one neighbour that mean nothing, at least.
    fn ahead_ns(&mut self, own_ns: i64, since_own_ns: i64, noise_ns: f64) -> Option<f64> {
        let scatter_ns = self.round_trip.map_or(0.0, |(_, scatter_ns)| scatter_ns);
        let scattered_ns = SCATTERED * scatter_ns;
        let noise_ns = noise_ns.max(scattered_ns);
        if self.latest_own_ns < since_own_ns {
            return None;
        }
        for recent in [&mut self.out, &mut self.back] {
            while recent
                .front()
                .is_some_and(|first| first.at_own_ns < own_ns - RECENT_NS)
            {
                recent.pop_front();
            }
        }
        let (out, back) = (*self.out.front()?, *self.back.front()?);
        // Before anything is usual, packets take at least no time.
        let usual = self.usual.unwrap_or_default();
        let (out_ns, back_ns) = (usual.out_ns - out.ns, usual.back_ns - back.ns);
        if self.usual.is_some() && (out_ns + back_ns).abs() < noise_ns {
            // The path is as it was, so what differs is a clock.
            let ahead_ns = (out_ns - back_ns) / 2.0;
            return Some(if ahead_ns.abs() > scattered_ns {
                ahead_ns
            } else {
                0.0
            });
        }
        let is_out = out_ns > noise_ns;
        if !is_out && back_ns <= noise_ns {
            return None;
        }
        // One direction has become faster. If the other one is slower by as much, this is a clock.
        let (faster, by_ns, others, usual_ns) = match is_out {
            true => (out, out_ns, &self.back, usual.back_ns),
            false => (back, back_ns, &self.out, usual.out_ns),
        };
        if is_slower(others, faster.at_own_ns, usual_ns + by_ns - noise_ns)? {
            return Some(if is_out { by_ns } else { -by_ns });
        }
        let (out_ns, back_ns) = match is_out {
            true => (out.ns, usual.back_ns),
            false => (usual.out_ns, back.ns),
        };
        self.usual = Some(Fastest { out_ns, back_ns });
        None
    }

    /// Ends a window. The usual delays follow slowly, unless the fleet time is doubted.
    fn end_window(&mut self, is_doubted: bool, noise_ns: f64) {
        let whole = |window: &Fastest| window.out_ns.is_finite() && window.back_ns.is_finite();
        let Some(window) = self.window.take().filter(whole) else {
            return;
        };
        let round_trip_ns = window.out_ns + window.back_ns;
        let (mean_ns, scatter_ns) = self.round_trip.unwrap_or((round_trip_ns, 0.0));
        // Of a window in which a clock jumped, each direction has another clock.
        let most_ns = UNUSUAL * scatter_ns.max(noise_ns);
        let off_ns = (round_trip_ns - mean_ns).clamp(-most_ns, most_ns);
        self.round_trip = Some((
            mean_ns + USUAL_GAIN * off_ns,
            scatter_ns + USUAL_GAIN * (off_ns.abs() - scatter_ns),
        ));
        // What waited in a queue for all of a window is not usual, until it is.
        if is_doubted || off_ns >= most_ns {
            return;
        }
        let follow = |usual: f64, is: f64| usual + USUAL_GAIN * (is - usual);
        self.usual = Some(self.usual.map_or(window, |usual| Fastest {
            out_ns: follow(usual.out_ns, window.out_ns),
            back_ns: follow(usual.back_ns, window.back_ns),
        }));
    }
}

/// Deviations of one neighbour that mean nothing, by the lines of the last window and by those of the one before, ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noise {
    now_ns: Option<f64>,
    before_ns: Option<f64>,
}

impl Noise {
    fn learn(&mut self, noise_ns: f64) {
        self.before_ns = self.now_ns.replace(noise_ns);
    }

    /// From which deviation on fleet time is doubted, ns. What a clock is off by makes its own lines noisy: that must not hide it
    /// until the verdict comes, so the calmer one of the two windows counts.
    fn noticed_ns(&self) -> f64 {
        let now_ns = self.now_ns.unwrap_or(WRONG_NS);
        self.before_ns
            .map_or(now_ns, |before_ns| before_ns.min(now_ns))
    }
}

/// What the neighbours agree on, if it is more than noise, ns. Of few neighbours one may be wrong itself: the smaller one of the two
/// in the middle counts.
fn agreed(ahead_ns: &mut [f64], noise_ns: f64) -> f64 {
    let count = ahead_ns.len();
    if count == 0 {
        return 0.0;
    }
    ahead_ns.sort_by(f64::total_cmp);
    let middle_ns = f64::min(ahead_ns[(count - 1) / 2].abs(), ahead_ns[count / 2].abs());
    let is_noise = middle_ns < noise_ns / (count as f64).sqrt();
    if is_noise {
        0.0
    } else {
        middle_ns
    }
}

/// Whether all pairs since then took at least so long. Otherwise the path has become shorter, and the clock is right. None: there
/// was none.
fn is_slower(recent: &VecDeque<Delay>, since_own_ns: i64, least_ns: f64) -> Option<bool> {
    let since = recent
        .iter()
        .filter(|delay| delay.at_own_ns >= since_own_ns);
    let fastest_ns = since.map(|delay| delay.ns).reduce(f64::min);
    fastest_ns.map(|ns| ns >= least_ns)
}

impl Engine {
    /// Fleet time of a stamp of this host's own clock, ns; 0 without.
    fn fleet_ns(&self, own_ns: i64) -> i64 {
        let own = Time::from_ticks(own_ns);
        let course = self.published.course.as_ref().filter(|_| own_ns != 0);
        course.map_or(0, |course| course.at(own).fleet(own).ticks())
    }

    /// The same for a neighbour that compares its own with it; 0 also while this host's is too unsure for that.
    pub(super) fn told_fleet_ns(&self, own_ns: i64) -> i64 {
        let own = Time::from_ticks(own_ns);
        let course = self.published.course.as_ref();
        let sigma_ns = course.map_or(f64::INFINITY, |course| course.at(own).sigma_at(own));
        if libm::hypot(sigma_ns, self.published.trust.doubt_ns) > self.wrong_ns() {
            return 0;
        }
        self.fleet_ns(own_ns)
    }

    /// From which deviation on fleet time is not used, ns.
    fn wrong_ns(&self) -> f64 {
        let by_noise_ns = self.noise.now_ns.map(|noise_ns| WRONG_NOISE * noise_ns);
        by_noise_ns.map_or(WRONG_NS, |ns| ns.max(WRONG_NS))
    }

    /// Compares the pairs that have come with what is usual on their paths.
    pub(super) fn check(&mut self, now: i64) {
        let mut seen: Vec<(SocketAddr, Seen)> = vec![];
        for probed in &mut self.probed {
            seen.extend(probed.end.seen.drain(..).map(|seen| (probed.far, seen)));
        }
        for (address, member) in &mut self.members {
            seen.extend(member.end.seen.drain(..).map(|seen| (*address, seen)));
        }
        if self.published.course.is_none() {
            self.checks.clear();
            self.published.trust.doubt_ns = 0.0;
            self.published.trust.is_withheld = false;
            return;
        }
        for (neighbour, seen) in seen {
            let delay = self.delay(&seen);
            let check = self.checks.entry(neighbour).or_default();
            check.take(seen.is_out, delay);
        }
        let noise_ns = self.noise.noticed_ns();
        let own_ns = self.own.read(now).ticks();
        let since_own_ns = own_ns - SILENT * self.config.interval.as_ns();
        self.confirm(own_ns);
        let checks = self.checks.values_mut();
        let mut ahead_ns: Vec<f64> = checks
            .filter_map(|check| check.ahead_ns(own_ns, since_own_ns, noise_ns))
            .collect();
        self.doubt(agreed(&mut ahead_ns, noise_ns));
    }

    /// Withholds fleet time while no neighbour is heard.
    fn confirm(&mut self, own_ns: i64) {
        let pairs = self.checks.values().map(|check| check.latest_own_ns);
        let latest_own_ns = pairs.fold(self.verdict_own_ns, i64::max);
        let is_withheld = own_ns - latest_own_ns > UNCONFIRMED_NS;
        self.published.counters.withheld +=
            u64::from(is_withheld && !self.published.trust.is_withheld);
        self.published.trust.is_withheld = is_withheld;
    }

    /// The delay by fleet time of a pair: that of the slower probe, so that one wrong stamp does not count.
    fn delay(&self, seen: &Seen) -> Delay {
        let delay_ns = |index: usize| {
            let own_ns = self.fleet_ns(seen.own[index]);
            let later_ns = seen.other_fleet[index].saturating_sub(own_ns);
            if seen.is_out {
                later_ns
            } else {
                later_ns.saturating_neg()
            }
        };
        Delay {
            at_own_ns: seen.own[1],
            ns: delay_ns(0).max(delay_ns(1)) as f64,
        }
    }

    /// Ends the window of all checks. `sigmas_ns`: how exact the lines of this host's edges are.
    pub(super) fn end_checks(&mut self, mut sigmas_ns: Vec<f64>) {
        sigmas_ns.sort_by(f64::total_cmp);
        let middle = sigmas_ns.get(sigmas_ns.len() / 2);
        if let Some(sigma_ns) = middle {
            self.noise.learn(NOTICED * sigma_ns);
        }
        let noise_ns = self.noise.noticed_ns();
        let is_doubted = self.published.trust.doubt_ns > 0.0;
        self.checks
            .values_mut()
            .for_each(|check| check.end_window(is_doubted, noise_ns));
    }

    fn doubt(&mut self, doubt_ns: f64) {
        self.published.counters.doubts +=
            u64::from(doubt_ns > 0.0 && self.published.trust.doubt_ns == 0.0);
        self.published.trust.doubt_ns = doubt_ns;
        if doubt_ns > self.wrong_ns() {
            warn!("clock: fleet time is {:.0} us off on this host by what its neighbours say: no fleet time until the next verdict", doubt_ns / 1e3);
            self.published.counters.clock_jumps += 1;
            self.begin_anew();
        }
    }

    /// The clock is another one than before: no fleet time, and nothing that was measured counts.
    pub(super) fn begin_anew(&mut self) {
        self.published.course = None;
        self.published.trust.doubt_ns = 0.0;
        self.forget();
        for probed in &mut self.probed {
            probed.end = NearEnd::default();
        }
        self.checks.clear();
        self.epoch = self.epoch.wrapping_add(1);
        // Verdicts of before are of the former clock, as are the answers to what was sent then.
        self.recent = Recent::since(self.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const NOISE_NS: f64 = 300.0;

    /// A neighbour 10 us away, after a window without disturbance; the time then.
    fn calm() -> (Check, i64) {
        let mut check = Check::default();
        (0..100).for_each(|n| pairs(&mut check, n * 20 * MS, 10_000.0, 10_000.0));
        check.end_window(false, NOISE_NS);
        (check, 2_000 * MS)
    }

    fn pairs(check: &mut Check, at_own_ns: i64, out_ns: f64, back_ns: f64) {
        for (is_out, ns) in [(true, out_ns), (false, back_ns)] {
            check.take(is_out, Delay { at_own_ns, ns });
        }
    }

    fn after(out_ns: f64, back_ns: f64) -> Option<f64> {
        let (mut check, at) = calm();
        (0..5).for_each(|n| pairs(&mut check, at + n * 20 * MS, out_ns, back_ns));
        let now = at + 100 * MS;
        check.ahead_ns(now, now - 100 * MS, NOISE_NS)
    }

    #[test]
    fn a_clock_that_jumps_shows_in_both_directions() {
        assert_eq!(after(-40_000.0, 60_000.0), Some(50_000.0));
        assert_eq!(after(60_000.0, -40_000.0), Some(-50_000.0));
    }

    #[test]
    fn queues_and_shorter_paths_are_no_clocks() {
        assert_eq!(after(90_000.0, 10_000.0), Some(0.0), "a queue out");
        assert_eq!(after(90_000.0, 90_000.0), Some(0.0), "both ways");
        assert_eq!(after(4_000.0, 10_000.0), None, "a shorter path out");
    }

    /// An incast of a whole window and more.
    #[test]
    fn a_queue_that_lasts_and_ends_is_no_clock() {
        let (mut check, mut at) = calm();
        for queue_ns in [8e6, 9e6] {
            (0..100)
                .for_each(|n| pairs(&mut check, at + n * 20 * MS, 10_000.0, 10_000.0 + queue_ns));
            at += 2_000 * MS;
            check.end_window(false, NOISE_NS);
        }
        let usual = check.usual.expect("two windows have passed");
        assert!(usual.back_ns < 20_000.0, "{usual:?}");
    }

    #[test]
    fn one_direction_alone_says_nothing_of_a_clock() {
        let (mut check, at) = calm();
        pairs(&mut check, at, 10_000.0, 10_000.0);
        let at_own_ns = at + MS;
        check.take(
            false,
            Delay {
                at_own_ns,
                ns: -40_000.0,
            },
        );
        assert_eq!(check.ahead_ns(at_own_ns, at, NOISE_NS), None);
        check.take(
            true,
            Delay {
                at_own_ns,
                ns: 60_000.0,
            },
        );
        assert_eq!(check.ahead_ns(at_own_ns, at, NOISE_NS), Some(-50_000.0));
    }

    /// Emulated machines are like that: the fastest packets of a second differ by 50 us from those of another.
    #[test]
    fn what_fastest_packets_differ_by_anyway_is_no_clock() {
        let mut check = Check::default();
        let mut at = 0;
        for window in 0..30 {
            let late_ns = [0.0, 60_000.0, 20_000.0][window % 3];
            (0..100)
                .for_each(|n| pairs(&mut check, at + n * 20 * MS, 10_000.0 + late_ns, 40_000.0));
            at += 2_000 * MS;
            check.end_window(false, NOISE_NS);
        }
        let mut ahead_ns = |wrong_ns: f64| {
            at += 2_000 * MS;
            pairs(&mut check, at, 40_000.0 - wrong_ns, 40_000.0 + wrong_ns);
            check.ahead_ns(at, at, NOISE_NS)
        };
        assert_eq!(ahead_ns(40_000.0), Some(0.0));
        assert!(
            ahead_ns(500_000.0).is_some_and(|ns| ns > 400_000.0),
            "a clock is"
        );
    }

    /// A program makes the clock run 10 ppm faster, or slower.
    #[test]
    fn a_rate_that_changes_shows_in_both_directions() {
        for sign in [1.0, -1.0] {
            let (mut check, at) = calm();
            for n in 0..50 {
                let now = at + n * 20 * MS;
                let ahead_ns = sign * 200.0 * n as f64;
                pairs(&mut check, now, 10_000.0 - ahead_ns, 10_000.0 + ahead_ns);
                let found = check.ahead_ns(now, now - 100 * MS, NOISE_NS);
                let found_ns = found.expect("pairs of both directions");
                assert!(
                    (found_ns - ahead_ns).abs() <= NOISE_NS,
                    "{ahead_ns}: {found_ns}"
                );
            }
        }
    }

    #[test]
    fn one_noisy_window_hides_nothing_and_two_are_the_path() {
        let mut noise = Noise::default();
        assert_eq!(noise.noticed_ns(), WRONG_NS);
        let noticed_ns = [300.0, 9_000.0, 8_000.0, 300.0].map(|noise_ns| {
            noise.learn(noise_ns);
            noise.noticed_ns()
        });
        assert_eq!(noticed_ns, [300.0, 300.0, 8_000.0, 300.0]);
    }

    #[test]
    fn who_is_silent_says_nothing() {
        let (mut check, at) = calm();
        assert_eq!(check.ahead_ns(at, at - 100 * MS, NOISE_NS), Some(0.0));
        assert_eq!(check.ahead_ns(at + 200 * MS, at + 100 * MS, NOISE_NS), None);
    }

    #[test]
    fn one_wrong_neighbour_of_three_is_outvoted_and_noise_is_none() {
        assert_eq!(agreed(&mut [90_000.0, 10.0, -20.0], NOISE_NS), 0.0);
        assert_eq!(agreed(&mut [90_000.0, 80_000.0, -20.0], NOISE_NS), 80_000.0);
        assert_eq!(agreed(&mut [90_000.0, 0.0], NOISE_NS), 0.0);
        assert_eq!(agreed(&mut [], NOISE_NS), 0.0);
    }
}
