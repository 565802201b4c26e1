// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The window of Tiny Buffer TCP after slow start: [`Tbtcp`].

use crate::raw;
use onramp_units::Span;

/// One connection's window (law/cc/tbtcp.h). Windows are in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbtcp {
    config: raw::onr_tbtcp_cfg,
    counted: u64,
    owed_q16: u64,
}

impl Tbtcp {
    /// Growth a round trip in packets, rounded to thousandths, 0.001 to 1; packets that a mark takes, at least 1.
    pub fn new(eta: f64, most_cut: u32) -> Tbtcp {
        let one = f64::from(raw::ONR_TBTCP_ETA_ONE);
        Tbtcp {
            config: raw::onr_tbtcp_cfg {
                eta_per_mille: (eta * one).round().clamp(1.0, one) as u32,
                most_cut: most_cut.max(1),
            },
            counted: 0,
            owed_q16: 0,
        }
    }

    /// The window after an acknowledgement that echoes so many marks.
    pub fn cut(&self, window: u32, marks: u32) -> u32 {
        // SAFETY: a pure function of integers.
        unsafe { raw::onr_tbtcp_cut(&self.config, window, marks) }
    }

    /// The window after so many packets have been acknowledged.
    pub fn grow(&mut self, window: u32, acked: u32) -> u32 {
        // SAFETY: reads the configuration, writes `counted`.
        unsafe { raw::onr_tbtcp_grow(&self.config, &mut self.counted, window, acked) }
    }

    /// The marks of so many packets that met this queueing delay on a path with this idle round-trip time. Times are
    /// at most 4 s.
    pub fn marks(&mut self, packets: u32, queue: Span, base: Span) -> u32 {
        let ns = |span: Span| span.as_ns().clamp(0, u32::MAX.into()) as u32;
        // SAFETY: writes `owed_q16`.
        unsafe { raw::onr_tbtcp_marks(&mut self.owed_q16, packets, ns(queue), ns(base)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_takes_k_packets_but_at_most_half_and_leaves_two() {
        let cut = |k, window, marks| Tbtcp::new(0.1, k).cut(window, marks);
        assert_eq!((cut(1, 100, 1), cut(1, 100, 7)), (99, 93));
        assert_eq!((cut(4, 100, 2), cut(4, 6, 1), cut(4, 3, 1)), (92, 3, 2));
        assert_eq!((cut(1, 2, 9), cut(1, 3, u32::MAX), cut(1, 0, 1)), (2, 2, 0));
    }

    #[test]
    fn a_queue_of_one_bdp_marks_every_second_packet_at_any_rate() {
        let mut tbtcp = Tbtcp::new(0.1, 1);
        let (queue, base) = (Span::from_us(20), Span::from_us(20));
        assert_eq!((0..10).map(|_| tbtcp.marks(1, queue, base)).sum::<u32>(), 5);
        assert_eq!(tbtcp.marks(1000, queue, base), 500);
        assert_eq!(tbtcp.marks(u32::MAX, Span::ZERO, base), 0);
        assert_eq!(tbtcp.marks(9, Span::ZERO, Span::ZERO), 0);
        // A queue of a seventh of the BDP is an eighth of the window.
        assert_eq!(tbtcp.marks(8000, base / 7, base), 999);
    }

    #[test]
    fn a_window_of_one_bdp_and_the_queue_loses_the_queue_in_a_round_trip() {
        let mut tbtcp = Tbtcp::new(0.1, 1);
        // 100 packets of 1 us are on the way and 25 in the queue.
        let marks = tbtcp.marks(125, Span::from_us(25), Span::from_us(100));
        assert_eq!(tbtcp.cut(125, marks), 101);
    }

    #[test]
    fn ten_round_trips_add_a_packet() {
        let mut tbtcp = Tbtcp::new(0.1, 1);
        let mut window = 50;
        for _ in 0..499 {
            window = tbtcp.grow(window, 1);
        }
        assert_eq!(window, 50);
        assert_eq!(tbtcp.grow(window, 1), 51);
        assert_eq!(Tbtcp::new(1.0, 1).grow(10, 20), 12);
        assert_eq!(tbtcp.grow(0, 0), 0);
    }
}
