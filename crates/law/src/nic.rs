// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The sender's own NIC, as law/nic.h knows it: [`Nic`].

use crate::{raw, Config};
use onramp_units::{Mono, Time};

/// What is known of one transmit queue of a NIC; the default is a NIC that was given nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nic(raw::onr_nic);

/// A driver's counts of bytes, modulo 2^32; both are 0 if it does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicCounts {
    /// Bytes given to the NIC.
    pub given: u32,
    /// Bytes that it has reported as sent.
    pub sent: u32,
}

impl Nic {
    /// `bytes` leave the queueing discipline. Returns when the NIC sends the first of them.
    pub fn leaves(
        &mut self,
        config: &Config,
        now: Time<Mono>,
        counts: NicCounts,
        bytes: u32,
    ) -> Time<Mono> {
        let NicCounts { given, sent } = counts;
        // SAFETY: the references are valid for the calls, which keep none of them.
        let ns = unsafe {
            let ns = raw::onr_nic_look(&config.0, &mut self.0, now.ticks(), given, sent);
            raw::onr_nic_gets(&config.0, &mut self.0, bytes);
            ns
        };
        Time::from_ticks(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Law;
    use onramp_units::Span;

    const SEGMENT: u32 = 10_000; // 100 us at 800 Mbit/s

    fn config() -> Config {
        Config::new(Law::Off, Span::ZERO).line_rate("800 Mbit/s".parse().unwrap())
    }

    /// When a segment leaves that is given to the NIC at `us`, in us.
    fn leaves(nic: &mut Nic, us: i64, given: u32, sent: u32) -> i64 {
        let now = Time::from_ticks(us * 1_000);
        let counts = NicCounts { given, sent };
        nic.leaves(&config(), now, counts, SEGMENT).ticks() / 1_000
    }

    #[test]
    fn a_segment_waits_for_those_before_it() {
        let mut nic = Nic::default();
        assert_eq!(leaves(&mut nic, 1_000, 0, 0), 1_000);
        assert_eq!(leaves(&mut nic, 1_010, SEGMENT, 0), 1_100);
        assert_eq!(leaves(&mut nic, 1_150, 2 * SEGMENT, SEGMENT), 1_200);
        assert_eq!(leaves(&mut nic, 2_000, 3 * SEGMENT, 3 * SEGMENT), 2_000);
    }

    /// A driver that reports late: the NIC is idle, and its counts say that it is not.
    #[test]
    fn bytes_that_are_sent_and_not_reported_do_not_wait() {
        let mut nic = Nic::default();
        leaves(&mut nic, 1_000, 0, 0);
        assert_eq!(leaves(&mut nic, 1_090, SEGMENT, 0), 1_100);
        assert_eq!(leaves(&mut nic, 1_190, 2 * SEGMENT, 0), 1_200);
        assert_eq!(leaves(&mut nic, 1_500, 3 * SEGMENT, 0), 1_500);
    }

    /// The NIC shares its line with other queues, or another host pauses it: reports come late, and the line
    /// rate alone would say that it has sent everything.
    #[test]
    fn a_report_shows_that_a_nic_is_slower_than_its_line() {
        let mut nic = Nic::default();
        leaves(&mut nic, 1_000, 0, 0);
        for number in 1..5 {
            leaves(&mut nic, 1_000, number * SEGMENT, 0);
        }
        let leaves_us = leaves(&mut nic, 2_000, 5 * SEGMENT, 0);
        assert_eq!(leaves_us, 2_000, "no news for 1 ms");
        // One of the six was sent at some time after 2000 us: the last of the other five leaves by 2500 us.
        assert_eq!(leaves(&mut nic, 2_010, 6 * SEGMENT, SEGMENT), 2_500);
    }

    /// A qdisc may hand several segments to the driver at once, which counts them afterwards.
    #[test]
    fn segments_on_their_way_to_the_driver_count() {
        let mut nic = Nic::default();
        leaves(&mut nic, 900, 0, 0);
        let bulk = [1_000, 1_000, 1_000].map(|us| leaves(&mut nic, us, SEGMENT, SEGMENT));
        assert_eq!(bulk, [1_000, 1_100, 1_200]);
    }

    #[test]
    fn a_driver_that_does_not_count_has_no_queue() {
        let mut nic = Nic::default();
        assert_eq!([0; 3].map(|_| leaves(&mut nic, 1_000, 0, 0)), [1_000; 3]);
    }

    #[test]
    fn an_unknown_line_rate_has_no_queue() {
        let (mut nic, unknown) = (Nic::default(), Config::new(Law::Off, Span::ZERO));
        let counts = NicCounts {
            given: 9 * SEGMENT,
            sent: 0,
        };
        let now = Time::from_ticks(1_000);
        assert_eq!(nic.leaves(&unknown, now, counts, SEGMENT), now);
    }

    #[test]
    fn no_wait_is_longer_than_20_ms() {
        let mut nic = Nic::default();
        let mut given = 0;
        for _ in 0..1_000 {
            leaves(&mut nic, 1_000, given, 0);
            given += SEGMENT;
        }
        assert_eq!(leaves(&mut nic, 1_000, given, 0), 21_000);
    }
}
