// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! CUBIC: the window as a cubic function of the time since the last loss (RFC 9438), with HyStart's
//! two tests for the end of slow start (Ha and Rhee, Computer Networks 55(9), 2011) as Linux has
//! them.
//! Differs from Linux: times are exact, not jiffies, and growth is computed with each acknowledgement, in Linux
//! once in 31 ms while the window stays as it is. Above the window of the last loss Reno's estimate grows as the RFC
//! says, in Linux as below it. Times that depend on the kernel are Linux's.

use super::{Acked, Entry, Growth, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds};
use crate::FAIR;
use onramp_units::{Sim, Span, Time};

/// HyStart works from this window on.
const HYSTART_FROM: u32 = 16;
/// Acknowledgements at most this far apart form a train.
const TRAIN_GAP: Span = Span::from_ms(2);
/// Round trips are compared after so many samples.
const DELAY_SAMPLES: u32 = 8;
/// Bounds of the rise in delay that ends slow start.
const DELAY_RISE: (Span, Span) = (Span::from_ms(4), Span::from_ms(16));

parameters! { "cubic", {
    "c" c: f64 = 0.4, Bounds::Fraction(0.0001, 1000.0), "C of RFC 9438, in packets per cubic second.";
    "beta" beta: f64 = 0.7, Bounds::Fraction(0.1, 0.99), "Ratio of the window after a loss to the window before it; 717/1024 in Linux.";
    "hystart" hystart: bool = true, Bounds::Flag, "Whether HyStart may end slow start before a loss does.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "cubic",
    about: "CUBIC (RFC 9438) with HyStart",
    linux: Linux::Has,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Cubic(Params::default()),
};

impl Params {
    /// Growth of the window estimated for Reno: RFC 9438 §4.3.
    fn reno_growth(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }
}

#[derive(Debug, Clone)]
pub struct Cubic {
    params: Params,
    growth: Growth,
    /// W_max.
    window_max: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
}

/// Congestion avoidance since the last loss.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time<Sim>,
    /// K in s: when the function is back at its plateau.
    k: f64,
    plateau: f64,
    /// W_est.
    reno: f64,
    /// cwnd at the loss: above it Reno's estimate grows by a packet a round trip.
    prior: f64,
}

/// When a round of slow start began, and what its acknowledgements were like.
#[derive(Debug, Clone, Copy)]
struct HyStart {
    start: Time<Sim>,
    last: Time<Sim>,
    round_end: u32,
    samples: u32,
    shortest: Span,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            start: Time::ZERO,
            last: Time::ZERO,
            round_end: 0,
            samples: 0,
            shortest: Span::MAX,
        }
    }
}

impl HyStart {
    /// Whether slow start is to end.
    fn ends(&mut self, acked: &Acked) -> bool {
        if acked.cumulative > self.round_end {
            *self = HyStart {
                start: acked.now,
                last: acked.now,
                round_end: acked.next,
                ..HyStart::default()
            };
        }
        self.train_is_long(acked) || self.delay_has_risen(acked)
    }

    /// A train of acknowledgements as long as the shortest round trip fills the path, but for what
    /// segments add to it. Linux halves that unless the qdisc is known to pace.
    fn train_is_long(&mut self, acked: &Acked) -> bool {
        if acked.now - self.last > TRAIN_GAP {
            return false;
        }
        self.last = acked.now;
        let long = acked.min_rtt + segments_last(acked);
        let part = if acked.pacing.device.paces { 1 } else { 2 };
        acked.now - self.start > long / part
    }

    fn delay_has_risen(&mut self, acked: &Acked) -> bool {
        self.samples += 1;
        if self.samples <= DELAY_SAMPLES {
            self.shortest = self.shortest.min(acked.rtt);
            return false;
        }
        let rise = (acked.min_rtt / 8).clamp(DELAY_RISE.0, DELAY_RISE.1);
        self.shortest > acked.min_rtt + rise
    }
}

/// hystart_ack_delay: how long four of the largest segments take at TCP's pace, which slow start has
/// at twice the path's; in Linux at most 1 ms, as what waits in small queues.
fn segments_last(acked: &Acked) -> Span {
    let packets = f64::from(4 * acked.pacing.device.segment);
    let at =
        |pace: f64| Span::from_ps((packets * 1e12 / pace) as i64).min(acked.pacing.small_queue);
    acked.pacing.packets_per_s.map_or(Span::ZERO, at)
}

impl Cubic {
    pub fn new(params: &Params) -> Cubic {
        Cubic {
            params: *params,
            growth: Growth::default(),
            window_max: 0.0,
            epoch: None,
            hystart: HyStart::default(),
        }
    }

    /// RFC 9438 §4.2.
    fn start_epoch(&mut self, window: &Window, now: Time<Sim>) -> Epoch {
        let packets = f64::from(window.packets);
        let missing = (self.window_max - packets).max(0.0);
        Epoch {
            start: now,
            k: libm::cbrt(missing / self.params.c),
            plateau: self.window_max.max(packets),
            reno: packets,
            prior: self.window_max,
        }
    }

    fn avoid(&mut self, window: &mut Window, left: u32, acked: &Acked) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(window, acked.now),
        };
        let packets = f64::from(window.packets);
        let at = |t: f64| self.params.c * (t - epoch.k).powi(3) + epoch.plateau;
        let t = (acked.now - epoch.start).as_s_f64();
        // §4.2: where it is to be a round trip from now, at most half above.
        let target = at(t + acked.min_rtt.as_s_f64()).clamp(packets, 1.5 * packets);
        // §4.3: not slower than Reno.
        let reno_growth = if epoch.reno >= epoch.prior {
            1.0
        } else {
            self.params.reno_growth()
        };
        epoch.reno += reno_growth * f64::from(left) / packets;
        let target = target.max(epoch.reno);
        self.epoch = Some(epoch);
        // Linux: at most a packet for two; slowly where the function is flat, and at first.
        let slowest = if self.window_max == 0.0 {
            20.0
        } else {
            100.0 * packets
        };
        let per = (packets / (target - packets)).clamp(2.0, slowest);
        self.growth.add(window, left, per as u32);
    }
}

impl WindowControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if !acked.may_grow {
            return;
        }
        let mut left = acked.packets;
        if window.in_slow_start() {
            let looks = self.params.hystart && window.packets >= HYSTART_FROM;
            let late = looks && self.hystart.ends(acked);
            if late {
                window.slow_start_below = window.packets;
            }
            left = window.slow_start(left);
        }
        if left > 0 {
            self.avoid(window, left, acked);
        }
    }

    /// RFC 9438 §4.6 and §4.7.
    fn on_loss(&mut self, window: &Window) -> u32 {
        let packets = f64::from(window.packets);
        let beta = self.params.beta;
        self.epoch = None;
        self.window_max = match packets < self.window_max {
            true => packets * (1.0 + beta) / 2.0, // fast convergence
            false => packets,
        };
        ((packets * beta) as u32).max(2)
    }

    fn on_timeout(&mut self) {
        self.epoch = None;
        self.hystart = HyStart::default();
    }

    /// RFC 9438 §5.8: the curve stands still meanwhile.
    fn on_idle(&mut self, idle: Span) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    /// 15 s after the loss of a window of 1000 packets, at a round trip so long that Reno's estimate
    /// stays below.
    #[test]
    fn the_window_follows_the_curve_of_rfc_9438() {
        let mut cubic = Cubic::new(&Params::default());
        let mut window = Window {
            packets: 1000,
            slow_start_below: 1,
        };
        window.packets = cubic.on_loss(&window);
        assert_eq!(window.packets, 700);
        let k = (300.0f64 / 0.4).cbrt();
        for step in 1..=150 {
            let rtt = Span::from_ms(100);
            let round = Acked {
                rtt,
                min_rtt: rtt,
                ..acked(step * 100_000, window.packets)
            };
            cubic.on_ack(&mut window, &round);
            // The epoch starts at the first acknowledgement; the target is a round trip ahead.
            let t = step as f64 * 0.1;
            let curve = 0.4 * (t - k).powi(3) + 1000.0;
            let off = f64::from(window.packets) / curve - 1.0;
            assert!(
                off.abs() < 0.01,
                "{} at {t} s, curve {curve}",
                window.packets
            );
        }
    }

    #[test]
    fn short_round_trips_grow_like_reno() {
        let mut cubic = Cubic::new(&Params::default());
        let mut window = Window {
            packets: 40,
            slow_start_below: 1,
        };
        window.packets = cubic.on_loss(&window);
        let before = window.packets;
        for step in 1..=40 {
            let packets = window.packets;
            cubic.on_ack(&mut window, &acked(step * 100, packets));
        }
        let grown = f64::from(window.packets - before);
        // 0.53 packets a round trip until 40, then one.
        assert!((15.0..30.0).contains(&grown), "{grown}");
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut cubic = Cubic::new(&Params::default());
        let mut window = Window {
            packets: 20,
            slow_start_below: u32::MAX,
        };
        let at = |now_us: i64| Acked {
            cumulative: 1,
            next: 100,
            ..acked(now_us, 1)
        };
        cubic.on_ack(&mut window, &at(1000));
        cubic.on_ack(&mut window, &at(1049));
        assert!(window.in_slow_start());
        cubic.on_ack(&mut window, &at(1051));
        assert!(!window.in_slow_start());
    }

    /// 180 packets at 0.6 packets a us: 300 us, beside a round trip of 100 us.
    #[test]
    fn segments_at_the_pace_are_no_train() {
        let ends = |pace: f64, paces: bool| {
            let mut cubic = Cubic::new(&Params::default());
            let mut window = Window {
                packets: 20,
                slow_start_below: u32::MAX,
            };
            let end = (0..5000).find(|after_us| {
                let mut acked = Acked {
                    cumulative: 1,
                    next: 100,
                    ..acked(1000 + after_us, 1)
                };
                acked.pacing.packets_per_s = Some(pace);
                acked.pacing.device.paces = paces;
                cubic.on_ack(&mut window, &acked);
                !window.in_slow_start()
            });
            end.expect("slow start ends")
        };
        assert_eq!(ends(0.6e6, false), 201);
        assert_eq!(ends(0.6e6, true), 401);
        // At most what small queues hold, 977 us.
        assert_eq!(ends(1.0, false), 539);
    }
}
