// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The timers that find what is lost: reordering and probes (RFC 8985), retransmission (RFC 6298).

use super::recovery::Phase;
use super::{Sender, State};
use onramp_cc::tcp::WindowControl;
use onramp_units::{Sim, Span, Time};

/// A probe waits longer for a lone packet, whose acknowledgement may be delayed: TCP_RTO_MIN.
const LONE_PROBE: Span = Span::from_ms(200);
/// TCP_TIMEOUT_MIN: two jiffies of 4 ms.
pub(super) const PROBE: Span = Span::from_ms(8);
/// TCP_RTO_MAX.
const LONGEST_TIMEOUT: Span = Span::from_s(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// What was sent before something delivered may be late, not lost.
    Reorder,
    Probe,
    Retransmit,
}

/// The timer of a connection.
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub armed: Option<(Time<Sim>, Timer)>,
    /// Retransmission timeouts in a row.
    pub backoff: u32,
    /// A probe is to be sent; one is out.
    pub probe_due: bool,
    pub is_probing: bool,
}

impl Sender {
    /// The timer is due: afterwards there may be something to send.
    pub fn timer_expired(&mut self, now: Time<Sim>) {
        let Some((_, timer)) = self.timers.armed.take() else {
            return;
        };
        match timer {
            Timer::Reorder => {
                let lost = self.find_losses(now);
                self.change_phase(0, lost);
                self.arm(now);
            }
            Timer::Probe => {
                self.timers.probe_due = true;
                self.timers.is_probing = true;
                self.arm(now);
            }
            Timer::Retransmit => self.time_out(now),
        }
    }

    /// RFC 6298 §5.5 and RFC 5681 §3.1: everything counts as lost.
    pub(super) fn time_out(&mut self, now: Time<Sim>) {
        self.timeouts += 1;
        self.timers.backoff += 1;
        // tcp_enter_loss: a window that is reduced already stays.
        if self.repair.phase == Phase::Open {
            self.window.slow_start_below = self.control.on_loss(&self.window);
        }
        self.control.on_timeout();
        self.window.packets = 1;
        for packet in &mut self.outstanding {
            if packet.state == State::Sent {
                packet.state = State::Lost;
                self.lost += 1;
            }
        }
        self.repair.phase = Phase::Loss;
        self.repair.until = self.next;
        self.timers.probe_due = false;
        self.arm(now);
    }

    pub(super) fn arm(&mut self, now: Time<Sim>) {
        if self.outstanding.is_empty() {
            self.timers.armed = None;
            return;
        }
        if self
            .timers
            .armed
            .is_some_and(|(_, timer)| timer == Timer::Reorder)
        {
            return;
        }
        let timeout =
            self.rtt.timeout(self.transport.min_rto) * (1i64 << self.timers.backoff.min(16));
        let timeout = timeout.min(LONGEST_TIMEOUT);
        let may_probe = self.repair.phase.is_whole() && self.sacked == 0 && !self.timers.is_probing;
        self.timers.armed = Some(match self.rtt.smoothed.filter(|_| may_probe) {
            Some(smoothed) => {
                let extra = if self.outstanding.len() == 1 {
                    LONE_PROBE
                } else {
                    PROBE
                };
                (now + (smoothed * 2 + extra).min(timeout), Timer::Probe)
            }
            None => (now + timeout, Timer::Retransmit),
        });
    }
}
