// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is lost, and the timers that find it (RFC 8985, RFC 6937, RFC 6298).

use super::*;

impl Sender {
    /// RFC 8985 §6.2, step 5: whether anything is lost that was not.
    pub(super) fn find_losses(&mut self, now: Time<Sim>) -> bool {
        let Some(newest) = self.newest else {
            return false;
        };
        let late = newest.rtt + self.reordering();
        let mut found = 0;
        let mut first_due: Option<Time<Sim>> = None;
        for (number, packet) in (self.unacked..).zip(&mut self.outstanding) {
            if packet.state != State::Sent {
                continue;
            }
            let before = (packet.sent_at, number) < (newest.sent_at, newest.number);
            if !before && packet.again {
                continue;
            }
            // Packets are sent in order for the first time, so all that follow were sent later than this one.
            if !before {
                break;
            }
            let due = packet.sent_at + late;
            if now >= due {
                packet.state = State::Lost;
                found += 1;
            } else {
                first_due = Some(first_due.map_or(due, |first| first.min(due)));
            }
        }
        self.lost += found;
        self.timer = first_due.map(|due| (due, Timer::Reorder));
        found > 0
    }

    pub(super) fn reordering(&self) -> Span {
        if self.phase != Phase::Open || self.sacked >= DUPLICATES {
            return Span::ZERO;
        }
        // tcp_rack_reo_wnd: at most the smoothed round-trip time.
        let min_ps = self.rtt.min.unwrap_or(Span::ZERO).as_ps() as f64;
        let part = Span::from_ps((min_ps * self.transport.reordering.get()) as i64);
        part.min(self.rtt.smoothed.unwrap_or(Span::ZERO))
    }

    pub(super) fn change_phase(&mut self, delivered: u32, newly_lost: bool) {
        if self.phase != Phase::Open && self.unacked >= self.high {
            if self.phase == Phase::Recovery && !self.control.owns_window() {
                self.window.packets = self.window.slow_start_below;
            }
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Open && self.lost > 0 {
            self.phase = Phase::Recovery;
            self.high = self.next;
            (self.prior, self.prr_delivered, self.out) = (self.window.packets, 0, 0);
            self.window.slow_start_below = self.control.on_loss(&self.window);
            let in_flight = self.in_flight();
            self.control
                .repairing_from(in_flight, self.delivered, &mut self.window);
        }
        if self.phase == Phase::Recovery && !self.control.owns_window() {
            self.reduce(delivered, newly_lost);
        }
    }

    /// Proportional rate reduction, RFC 6937 as Linux has it.
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: bool) {
        let threshold = self.window.slow_start_below;
        self.prr_delivered += delivered;
        let pipe = self.in_flight();
        let count = if pipe > threshold {
            let part = u64::from(self.prr_delivered) * u64::from(threshold);
            let may = part.div_ceil(u64::from(self.prior.max(1))) as u32;
            may.saturating_sub(self.out)
        } else {
            let conserve = self.prr_delivered.saturating_sub(self.out).max(delivered);
            let slow_start = u32::from(!newly_lost && delivered > 0);
            (conserve + slow_start).min(threshold - pipe)
        };
        // The first retransmission goes at once.
        self.window.packets = pipe + count.max(u32::from(self.out == 0));
    }

    /// The timer is due: afterwards there may be something to send.
    pub fn timer_expired(&mut self, now: Time<Sim>) {
        let Some((_, timer)) = self.timer.take() else {
            return;
        };
        match timer {
            Timer::Reorder => {
                let lost = self.find_losses(now);
                self.change_phase(0, lost);
                self.arm(now);
            }
            Timer::Probe => {
                self.probe_due = true;
                self.probing = true;
                self.arm(now);
            }
            Timer::Retransmit => self.time_out(now),
        }
    }

    /// RFC 6298 §5.5 and RFC 5681 §3.1: everything counts as lost.
    pub(super) fn time_out(&mut self, now: Time<Sim>) {
        self.timeouts += 1;
        self.backoff += 1;
        if self.phase != Phase::Loss {
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
        self.phase = Phase::Loss;
        self.high = self.next;
        self.probe_due = false;
        self.arm(now);
    }

    pub(super) fn arm(&mut self, now: Time<Sim>) {
        if self.outstanding.is_empty() {
            self.timer = None;
            return;
        }
        if self.timer.is_some_and(|(_, timer)| timer == Timer::Reorder) {
            return;
        }
        let timeout = self.rtt.timeout(self.transport.min_rto) * (1i64 << self.backoff.min(16));
        let timeout = timeout.min(LONGEST_TIMEOUT);
        let may_probe = self.phase == Phase::Open && self.sacked == 0 && !self.probing;
        self.timer = Some(match self.rtt.smoothed.filter(|_| may_probe) {
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
