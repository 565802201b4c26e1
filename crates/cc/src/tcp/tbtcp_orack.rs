// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tiny Buffer TCP without switches that mark: the sender takes the queue from the one-way delay that On-Ramp's OR-ACKs
//! report, and cuts its window by the marks that a switch with this queue would have set (equation 6). The arithmetic is
//! `law/cc/tbtcp.h`. Ours; its paper has marks only.
//! The queue is the delay above the least of the last 10 to 20 s, so a clock that steps is forgotten. Without OR-ACKs (an
//! On-Ramp law is off, or the receiver has no hooks) it is Reno: nothing is known of the queue.

use super::tbtcp::{self, Tbtcp};
use super::{Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds, InLaw};
use crate::FAIR;
use onramp_law::cc;
use onramp_units::{Sim, Span, Time};

/// Windows of packets that are acknowledged without an OR-ACK before the control is Reno.
const BLIND_WINDOWS: u32 = 8;
/// Half of the longest time for which a least delay counts.
const MEMORY: Span = Span::from_s(10);

parameters! { "tbtcp_orack", {
    "eta" eta: f64 = 0.1, Bounds::Fraction(0.001, 1.0), "Growth of the window in a round trip after slow start, in packets.";
    "t_min" least: Span = Span::ZERO, Bounds::Span(Span::ZERO, Span::from_s(1)), "Queueing delay that cuts nothing: that of a burst of a host.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "tbtcp_orack",
    about: "Tiny Buffer TCP with OR-ACKs in place of marks",
    linux: Linux::Lacks,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::TbtcpOrack(Params::default()),
};

#[derive(Debug, Clone)]
pub struct TbtcpOrack {
    tbtcp: Tbtcp,
    /// What has not yet made a mark.
    owed_q16: u64,
    least: Span,
    idle: Idle,
    /// Packets acknowledged since the last OR-ACK.
    unseen: u32,
}

/// The least delay of this period of [`MEMORY`] and of the one before it.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Time<Sim>,
    now: Span,
    before: Span,
}

impl Idle {
    fn least(&mut self, now: Time<Sim>, owd: Span) -> Span {
        if now - self.since > MEMORY {
            (self.since, self.before, self.now) = (now, self.now, owd);
        }
        self.now = self.now.min(owd);
        self.now.min(self.before)
    }
}

impl TbtcpOrack {
    pub fn new(params: &Params) -> TbtcpOrack {
        TbtcpOrack {
            tbtcp: Tbtcp::new(&tbtcp::Params {
                eta: params.eta,
                k: 1,
            }),
            owed_q16: 0,
            least: params.least,
            idle: Idle {
                since: Time::ZERO,
                now: Span::MAX,
                before: Span::MAX,
            },
            unseen: 0,
        }
    }

    /// Marks of the packets since the last OR-ACK, of which at most one window met the queue that it reports.
    fn marks(&mut self, acked: &Acked, owd: Span, window: u32) -> u32 {
        let queue = owd - self.idle.least(acked.now, owd);
        let packets = self.unseen.min(window);
        self.unseen = 0;
        let (queue_ns, base_ns) = ((queue - self.least).in_law(), acked.min_rtt.in_law());
        cc::tbtcp_marks(&mut self.owed_q16, packets, queue_ns, base_ns)
    }
}

impl WindowControl for TbtcpOrack {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.unseen = self.unseen.saturating_add(acked.packets);
        let reported = acked.reported.owd;
        let marked = reported.map_or(0, |owd| self.marks(acked, owd, window.packets));
        if self.unseen / BLIND_WINDOWS > window.packets {
            self.tbtcp.reno.on_ack(window, acked);
        } else {
            self.tbtcp.on_ack(window, &Acked { marked, ..*acked });
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        self.tbtcp.on_loss(window)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tests::acked, Reported};
    use super::*;

    /// 100 packets in 100 us, after which an OR-ACK reports this delay.
    fn round(control: &mut TbtcpOrack, window: &mut Window, at_us: i64, owd_us: i64) {
        let owd = Some(Span::from_us(owd_us));
        let acked = Acked {
            reported: Reported {
                owd,
                ..Reported::default()
            },
            ..acked(at_us, 100)
        };
        control.on_ack(window, &acked);
    }

    fn open() -> Window {
        Window {
            packets: 100,
            slow_start_below: 2,
        }
    }

    #[test]
    fn the_delay_above_the_least_cuts_and_ends_slow_start() {
        let mut control = TbtcpOrack::new(&Params::default());
        let mut window = Window::initial(100);
        round(&mut control, &mut window, 0, 50);
        assert_eq!((window.packets, window.in_slow_start()), (200, true));
        // A queue as long as the path marks half of 100 packets.
        round(&mut control, &mut window, 100, 150);
        assert_eq!((window.packets, window.in_slow_start()), (150, false));
    }

    #[test]
    fn a_clock_that_steps_is_forgotten() {
        let mut control = TbtcpOrack::new(&Params::default());
        let mut window = open();
        round(&mut control, &mut window, 0, -1_000_000);
        for second in 1..60 {
            round(&mut control, &mut window, second * 1_000_000, 50);
        }
        assert!(window.packets > 2, "{window:?}");
    }

    #[test]
    fn without_or_acks_it_is_reno() {
        let mut control = TbtcpOrack::new(&Params::default());
        let mut window = open();
        for _ in 0..2 * BLIND_WINDOWS {
            control.on_ack(&mut window, &acked(0, 100));
        }
        assert!(window.packets >= 100 + BLIND_WINDOWS - 2, "{window:?}");
    }
}
