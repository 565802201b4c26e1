// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is lost (RFC 8985), and how it is repaired (RFC 6937).

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    /// The congestion control has reduced its window for marks (TCP_CA_CWR).
    Reduction,
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The repair of losses.
#[derive(Debug, Default)]
pub(super) struct Repair {
    pub phase: Phase,
    /// Recovery and loss end when all below this packet is acknowledged, a reduction when this packet is.
    pub until: u32,
    /// RFC 6937: RecoverFS, prr_delivered, prr_out.
    prior: u32,
    delivered: u32,
    pub out: u32,
}

impl Phase {
    /// Nothing is lost.
    pub fn is_whole(self) -> bool {
        matches!(self, Phase::Open | Phase::Reduction)
    }
}

impl Repair {
    /// `phase` begins before packet `next` is sent, with a window of `prior` packets.
    fn begin(phase: Phase, next: u32, prior: u32) -> Repair {
        Repair {
            phase,
            until: next,
            prior,
            ..Repair::default()
        }
    }

    /// Whether its phase ends when all packets below `unacked` are acknowledged.
    fn is_over(&self, unacked: u32) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Reduction => unacked > self.until,
            Phase::Recovery | Phase::Loss => unacked >= self.until,
        }
    }

    /// Whether proportional rate reduction sets the window.
    fn is_proportional(&self) -> bool {
        matches!(self.phase, Phase::Reduction | Phase::Recovery)
    }

    /// Packets that may be sent now: proportional rate reduction, RFC 6937 as Linux has it.
    fn room(&mut self, pipe: u32, threshold: u32, delivered: u32, newly_lost: bool) -> u32 {
        self.delivered += delivered;
        let count = if pipe > threshold {
            let part = u64::from(self.delivered) * u64::from(threshold);
            let may = part.div_ceil(u64::from(self.prior.max(1))) as u32;
            may.saturating_sub(self.out)
        } else {
            let conserve = self.delivered.saturating_sub(self.out).max(delivered);
            let slow_start = u32::from(!newly_lost && delivered > 0);
            (conserve + slow_start).min(threshold - pipe)
        };
        // The first retransmission goes at once.
        count.max(u32::from(self.out == 0))
    }
}

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
            let before = newest.is_after((packet.transmission, number));
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
        self.timers.armed = first_due.map(|due| (due, Timer::Reorder));
        found > 0
    }

    pub(super) fn reordering(&self) -> Span {
        if !self.repair.phase.is_whole() || self.sacked >= DUPLICATES {
            return Span::ZERO;
        }
        // tcp_rack_reo_wnd: at most the smoothed round-trip time.
        let min_ps = self.rtt.min.unwrap_or(Span::ZERO).as_ps() as f64;
        let part = Span::from_ps((min_ps * self.transport.reordering.get()) as i64);
        part.min(self.rtt.smoothed.unwrap_or(Span::ZERO))
    }

    pub(super) fn change_phase(&mut self, delivered: u32, newly_lost: bool) {
        if self.repair.is_over(self.unacked) {
            if self.repair.is_proportional() && !self.control.owns_window() {
                self.window.packets = self.window.slow_start_below;
            }
            self.repair.phase = Phase::Open;
        }
        if self.repair.phase == Phase::Reduction && self.lost > 0 {
            // tcp_enter_recovery: the window is reduced already.
            (self.repair.phase, self.repair.until) = (Phase::Recovery, self.next);
        }
        if self.repair.phase == Phase::Open && self.lost > 0 {
            self.repair = Repair::begin(Phase::Recovery, self.next, self.window.packets);
            self.window.slow_start_below = self.control.on_loss(&self.window);
            let in_flight = self.in_flight();
            self.control
                .repairing_from(in_flight, self.deliveries.packets, &mut self.window);
        }
        self.reduce_in_proportion(delivered, newly_lost);
    }

    /// The congestion control has reduced its window of `prior` packets for marks: the window falls in a round trip
    /// (tcp_enter_cwr).
    pub(super) fn begin_reduction(&mut self, prior: u32, delivered: u32) {
        self.repair = Repair::begin(Phase::Reduction, self.next, prior);
        self.reduce_in_proportion(delivered, false);
    }

    fn reduce_in_proportion(&mut self, delivered: u32, newly_lost: bool) {
        if self.repair.is_proportional() && !self.control.owns_window() {
            let pipe = self.in_flight();
            let threshold = self.window.slow_start_below;
            let room = self.repair.room(pipe, threshold, delivered, newly_lost);
            self.window.packets = pipe + room;
        }
    }
}
