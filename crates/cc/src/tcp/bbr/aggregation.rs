// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Estimates aggregation: the number of packets that are acknowledged at once beyond the bandwidth, because
//! receivers merge packets and hosts answer in bursts. BBR adds this number to its window (Cheng and
//! Cardwell, IETF 101 ICCRG, 2018; constants as in Linux's tcp_bbr.c).

use onramp_units::{Sim, Time};

/// Half of the rounds for which the largest excess counts.
const ROUNDS: u32 = 5;
/// Upper bound of an excess, in seconds of the bandwidth.
const MOST_S: f64 = 0.1;

#[derive(Debug, Clone)]
pub struct Aggregation {
    /// Since when packets have come faster than the bandwidth, and how many.
    since: Time<Sim>,
    acked: u32,
    /// Largest excesses: of the rounds under way, of those before.
    excess: [u32; 2],
    rounds: u32,
}

impl Aggregation {
    pub fn new() -> Aggregation {
        Aggregation {
            since: Time::ZERO,
            acked: 0,
            excess: [0; 2],
            rounds: 0,
        }
    }

    /// `acked` packets are acknowledged; `new_round`: they begin one.
    pub fn on_ack(
        &mut self,
        now: Time<Sim>,
        acked: u32,
        new_round: bool,
        packets_per_s: f64,
        window: u32,
    ) {
        self.rounds += u32::from(new_round);
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.excess = [0, self.excess[0]];
        }
        let mut expected = ((now - self.since).as_s_f64() * packets_per_s) as u32;
        if self.acked <= expected {
            (self.since, self.acked, expected) = (now, 0, 0);
        }
        self.acked = self.acked.saturating_add(acked);
        let excess = (self.acked - expected).min(window);
        self.excess[0] = self.excess[0].max(excess);
    }

    /// Packets that may be in flight beside the others.
    pub fn packets(&self, packets_per_s: f64) -> f64 {
        let excess = self.excess[0].max(self.excess[1]);
        f64::from(excess).min((packets_per_s * MOST_S).floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_units::Span;

    /// At 1000 packets a second, `burst` of them every `burst` milliseconds.
    fn bursts(aggregation: &mut Aggregation, burst: u32, count: u32) {
        for n in 1..=count {
            let now = Time::ZERO + Span::from_ms(i64::from(n * burst));
            aggregation.on_ack(now, burst, true, 1e3, 100);
        }
    }

    #[test]
    fn what_comes_in_bursts_may_be_a_burst_more() {
        let mut steady = Aggregation::new();
        bursts(&mut steady, 1, 20);
        assert!(steady.packets(1e3) <= 1.0);
        let mut bursty = Aggregation::new();
        bursts(&mut bursty, 20, 20);
        assert_eq!(bursty.packets(1e3), 20.0);
        assert_eq!(bursty.packets(50.0), 5.0, "a tenth of a second's");
    }

    #[test]
    fn after_a_pause_an_excess_is_forgotten_in_ten_rounds() {
        let mut aggregation = Aggregation::new();
        bursts(&mut aggregation, 20, 1);
        let later = |n: u32| Time::ZERO + Span::from_ms(i64::from(60 + n));
        (1..=10).for_each(|n| aggregation.on_ack(later(n), 1, true, 1e3, 100));
        assert!(aggregation.packets(1e3) <= 1.0);
    }
}
