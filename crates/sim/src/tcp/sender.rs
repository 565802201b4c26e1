// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The sending end: what is outstanding, what is lost, how much may be sent.
//!
//! Losses are found by time (RACK) and probes (TLP; RFC 8985), repaired by selective
//! acknowledgements with proportional rate reduction (RFC 6937), else by the retransmission timeout.
//! Differs from RFC 8985: no packet overtakes another here, so the reordering window does not
//! adapt, and a probe that repaired a loss does not reduce the window.

mod delivery;
mod recovery;
mod timers;

use self::delivery::Deliveries;
use self::recovery::{Phase, Repair};
use self::timers::{Timer, Timers};
use super::rtt::Rtt;
use super::Acknowledgement;
use onramp_cc::tcp::{
    Acked, Arrival, Control, Device, Pacing, Reported, TcpAlgorithm, Window, WindowControl,
};
use onramp_scenario::Transport;
use onramp_units::{Sim, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Duplicates after which nothing is given time to arrive late.
const DUPLICATES: u32 = 3;
/// Packets handed down at once, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub first: u32,
    pub count: u32,
    /// Not for the first time.
    pub again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sent,
    Sacked,
    /// To be sent again.
    Lost,
}

/// A packet that is not cumulatively acknowledged.
#[derive(Debug, Clone, Copy)]
struct Outstanding {
    sent_at: Time<Sim>,
    /// Number of its transmission among those of the connection. Packets of a segment have one.
    transmission: u32,
    state: State,
    again: bool,
    /// When it was sent: packets delivered so far, when the last was, and when the one was sent that
    /// this was about.
    delivered: u64,
    delivered_at: Time<Sim>,
    first_sent_at: Time<Sim>,
    app_limited: bool,
}

/// The packet sent last of those delivered (RACK.xmit_ts, end_seq, rtt). Which was sent last is known by the number of the
/// transmission: several may have one time, because all that a NIC's interrupt brings is handled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    transmission: u32,
    number: u32,
    rtt: Span,
}

impl Newest {
    /// Whether packet `number`, sent in `transmission`, was sent before this one.
    fn is_after(&self, (transmission, number): (u32, u32)) -> bool {
        (self.transmission, self.number) > (transmission, number)
    }
}

/// What one acknowledgement delivered.
#[derive(Debug, Clone, Copy, Default)]
struct News {
    packets: u32,
    /// Round-trip times of the first and the last packet that was sent once.
    first_rtt: Option<Span>,
    rtt: Option<Span>,
    /// The packet sent last.
    last: Option<Outstanding>,
}

/// How much of its window a connection uses.
#[derive(Debug, Default)]
struct Usage {
    /// Most that was outstanding in this window, which ends at that packet.
    most: u32,
    window_end: u32,
    /// The window was full.
    is_limited: bool,
}

impl Usage {
    /// tcp_is_cwnd_limited
    fn may_grow(&self, window: &Window) -> bool {
        self.is_limited || window.in_slow_start() && window.packets < 2 * self.most
    }
}

/// State of one connection.
#[derive(Debug)]
pub struct Sender {
    transport: Arc<Transport>,
    device: Device,
    /// TCP waits for its pace itself, with a timer, as no qdisc does.
    has_pacing_timer: bool,
    total: u32,
    unacked: u32,
    next: u32,
    outstanding: VecDeque<Outstanding>,
    sacked: u32,
    lost: u32,
    window: Window,
    control: Control,
    /// One-way delay of an OR-ACK that the congestion control has not seen.
    owd: Option<Span>,
    repair: Repair,
    deliveries: Deliveries,
    rtt: Rtt,
    newest: Option<Newest>,
    timers: Timers,
    usage: Usage,
    /// When something was handed down last.
    last_sent: Time<Sim>,
    /// Since they were forgotten last.
    pub retransmissions: u32,
    pub timeouts: u32,
}

impl Sender {
    /// The sender of a connection whose handshake took `handshake`, with nothing to send.
    pub fn new(
        algorithm: &TcpAlgorithm,
        transport: Arc<Transport>,
        device: Device,
        handshake: Span,
    ) -> Sender {
        let mut rtt = Rtt::default();
        rtt.sample(handshake, handshake);
        let mut window = Window::initial(transport.initial_window);
        let mut control = algorithm.start();
        control.begin(&mut window);
        Sender {
            transport,
            device,
            has_pacing_timer: false,
            total: 0,
            unacked: 0,
            next: 0,
            outstanding: VecDeque::new(),
            sacked: 0,
            lost: 0,
            window,
            control,
            owd: None,
            repair: Repair::default(),
            deliveries: Deliveries::default(),
            rtt,
            newest: None,
            timers: Timers::default(),
            usage: Usage::default(),
            last_sent: Time::ZERO,
            retransmissions: 0,
            timeouts: 0,
        }
    }

    /// TCP waits for its pace itself.
    pub fn with_pacing_timer(self, has_pacing_timer: bool) -> Sender {
        Sender {
            has_pacing_timer,
            ..self
        }
    }

    /// `packets` more are to be sent.
    pub fn resume(&mut self, now: Time<Sim>, packets: u32) {
        let was_idle = self.is_done();
        self.total += packets;
        if was_idle && self.next > 0 {
            self.restart_window(now - self.last_sent);
        }
    }

    /// Retransmissions and timeouts are counted anew.
    pub fn forget_counts(&mut self) {
        (self.retransmissions, self.timeouts) = (0, 0);
    }

    /// tcp_cwnd_restart (RFC 2861): half of the window for every timeout that nothing was sent.
    fn restart_window(&mut self, idle: Span) {
        self.control.on_idle(idle);
        let timeout = self.rtt.timeout(self.transport.min_rto);
        if idle <= timeout {
            return;
        }
        let packets = self.window.packets;
        let threshold = &mut self.window.slow_start_below;
        *threshold = (*threshold).max(packets / 2 + packets / 4);
        let halvings = (idle.as_ps() / timeout.as_ps()).min(31);
        let least = packets.min(self.transport.initial_window);
        self.window.packets = (packets >> halvings).max(least);
    }

    /// Packets that were ever to be sent.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The first packet that is not cumulatively acknowledged.
    pub fn unacked(&self) -> u32 {
        self.unacked
    }

    /// The packet to be sent next for the first time.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Everything is acknowledged.
    pub fn is_done(&self) -> bool {
        self.unacked >= self.total
    }

    /// Nothing new is sent from now on.
    pub fn stop(&mut self) {
        self.total = self.next;
    }

    /// Packets that have been delivered.
    pub fn delivered(&self) -> u64 {
        self.deliveries.packets
    }

    /// Packets in the network, as far as is known.
    pub fn in_flight(&self) -> u32 {
        self.outstanding.len() as u32 - self.sacked - self.lost
    }

    /// The congestion window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Last round-trip time, if there has been any.
    pub fn last_rtt(&self) -> Option<Span> {
        self.rtt.last
    }

    /// Shortest round-trip time, the handshake's included.
    pub fn min_rtt(&self) -> Option<Span> {
        self.rtt.min
    }

    /// Whether the congestion control has a pace of its own, which TCP keeps.
    pub fn paces(&self) -> bool {
        self.own_pace().is_some()
    }

    fn own_pace(&self) -> Option<f64> {
        self.control.packets_per_s(self.rtt.smoothed?)
    }

    /// TCP's pace: the congestion control's, else tcp_update_pacing_rate, twice the window a round
    /// trip in the first half of slow start, later 1.2 times; of what is outstanding, if that is more.
    pub fn packets_per_s(&self) -> Option<f64> {
        let smoothed = self.rtt.smoothed?;
        let by_window = || {
            let early = self.window.packets < self.window.slow_start_below / 2;
            let factor = if early { 2.0 } else { 1.2 };
            let packets = self.window.packets.max(self.outstanding.len() as u32);
            f64::from(packets) * factor / smoothed.as_s_f64()
        };
        Some(self.own_pace().unwrap_or_else(by_window))
    }

    /// When [`Sender::timer_expired`] is to be called.
    pub fn timer(&self) -> Option<Time<Sim>> {
        self.timers.armed.map(|(at, _)| at)
    }

    /// What to hand down now, at most `most` packets, if anything may go.
    pub fn next_segment(&mut self, now: Time<Sim>, most: u32) -> Option<Segment> {
        let idle = self.outstanding.is_empty();
        let segment = self.pick(now, most)?;
        self.last_sent = now;
        self.repair.out += segment.count;
        if segment.again {
            self.retransmissions += segment.count;
        } else {
            self.note_usage();
        }
        if idle
            || segment.again
            || self
                .timers
                .armed
                .is_none_or(|(_, timer)| timer == Timer::Probe)
        {
            self.arm(now);
        }
        Some(segment)
    }

    /// Something new has been sent (tcp_cwnd_validate). With a pacing timer the window is only known to be full where the pace
    /// lets TCP send: then windows of paced flows stay as small as on a real kernel (docs/simulator.md).
    fn note_usage(&mut self) {
        let outstanding = self.outstanding.len() as u32;
        let is_limited = !self.has_pacing_timer && self.in_flight() >= self.window.packets;
        let usage = &mut self.usage;
        let is_more = !usage.is_limited && outstanding > usage.most;
        if self.unacked >= usage.window_end || is_limited || is_more {
            *usage = Usage {
                most: outstanding,
                window_end: self.next,
                is_limited,
            };
        }
    }

    fn pick(&mut self, now: Time<Sim>, most: u32) -> Option<Segment> {
        if self.timers.probe_due {
            self.timers.probe_due = false;
            return Some(self.probe(now));
        }
        let room = self.window.packets.saturating_sub(self.in_flight());
        if room == 0 || self.has_pacing_timer {
            self.usage.is_limited = room == 0;
        }
        if room == 0 {
            return None;
        }
        let most = most.min(room);
        if self.lost > 0 {
            return self.repeat(now, most);
        }
        let new = most.min(self.total - self.next);
        if new == 0 {
            self.deliveries.limit(self.in_flight());
            return None;
        }
        Some(self.send_new(now, new))
    }

    /// A packet as it is sent now.
    fn sending(&mut self, now: Time<Sim>, again: bool) -> Outstanding {
        let is_idle = self.outstanding.is_empty();
        self.deliveries.sending(now, again, is_idle)
    }

    fn send_new(&mut self, now: Time<Sim>, count: u32) -> Segment {
        let first = self.next;
        let packet = self.sending(now, false);
        self.outstanding
            .extend(std::iter::repeat_n(packet, count as usize));
        self.next += count;
        Segment {
            first,
            count,
            again: false,
        }
    }

    /// The first run of lost packets.
    fn repeat(&mut self, now: Time<Sim>, most: u32) -> Option<Segment> {
        let sending = self.sending(now, true);
        let is_lost = |packet: &Outstanding| packet.state == State::Lost;
        let first = self.outstanding.iter().position(is_lost)?;
        let run = self.outstanding.iter_mut().skip(first).take(most as usize);
        let mut count = 0;
        for packet in run.take_while(|packet| packet.state == State::Lost) {
            *packet = sending;
            count += 1;
        }
        self.lost -= count;
        Some(Segment {
            first: self.unacked + first as u32,
            count,
            again: true,
        })
    }

    /// RFC 8985 §7.3: new data if there is any, else the last packet again.
    fn probe(&mut self, now: Time<Sim>) -> Segment {
        self.timers.is_probing = true;
        if self.next < self.total {
            return self.send_new(now, 1);
        }
        let sending = self.sending(now, true);
        if let Some(last) = self.outstanding.back_mut() {
            *last = sending;
        }
        Segment {
            first: self.next - 1,
            count: 1,
            again: true,
        }
    }

    /// An acknowledgement has arrived. Returns its round-trip time, if it has one.
    pub fn acknowledged(&mut self, now: Time<Sim>, ack: &Acknowledgement) -> Option<Span> {
        if self.outstanding.is_empty() {
            return None;
        }
        let was_growing = self.usage.may_grow(&self.window);
        let (unacked, newest) = (self.unacked, self.newest);
        let arrival = self.arrival(ack);
        let mut news = News::default();
        self.take_cumulative(now, ack.cumulative, &mut news);
        for block in ack.blocks {
            self.take_block(now, block, &mut news);
        }
        if let (Some(first), Some(last)) = (news.first_rtt, news.rtt) {
            self.rtt.sample(first, last);
        }
        let delivered = news.packets;
        self.deliveries.add(now, delivered);
        if self.unacked > unacked {
            self.timers.backoff = 0;
            self.timers.is_probing = false;
        }
        let lost = self.newest != newest && self.find_losses(now);
        self.change_phase(delivered, lost);
        // tcp_may_raise_cwnd: selective acknowledgements alone raise nothing.
        let raises = self.unacked > unacked && self.repair.phase != Phase::Recovery;
        if raises || delivered > 0 && self.control.owns_window() {
            let before = self.window.packets;
            self.grow(now, (ack.marked, arrival), &news, (lost, was_growing));
            let is_cut = self.window.packets < before && !self.control.owns_window();
            if is_cut && self.repair.phase == Phase::Open {
                self.begin_reduction(before, delivered);
            }
        }
        self.arm(now);
        news.rtt
    }

    fn take_cumulative(&mut self, now: Time<Sim>, to: u32, news: &mut News) {
        while self.unacked < to {
            let Some(packet) = self.outstanding.pop_front() else {
                return;
            };
            match packet.state {
                State::Sacked => self.sacked -= 1,
                State::Lost => self.lost -= 1,
                State::Sent => {}
            }
            if packet.state != State::Sacked {
                self.note(now, self.unacked, packet, news);
            }
            self.unacked += 1;
        }
    }

    fn take_block(&mut self, now: Time<Sim>, (start, end): (u32, u32), news: &mut News) {
        let mut number = start.max(self.unacked);
        while let Some(new) = self.not_sacked(number, end.min(self.next)) {
            let packet = &mut self.outstanding[(new - self.unacked) as usize];
            self.lost -= u32::from(packet.state == State::Lost);
            packet.state = State::Sacked;
            let packet = *packet;
            self.sacked += 1;
            self.note(now, new, packet, news);
            number = new + 1;
        }
    }

    /// The first packet of a range that is not known to have arrived.
    fn not_sacked(&self, start: u32, end: u32) -> Option<u32> {
        let place = |number: u32| (number - self.unacked) as usize;
        if start >= end {
            return None;
        }
        let mut range = self.outstanding.range(place(start)..place(end));
        let first = range.position(|packet| packet.state != State::Sacked)?;
        Some(start + first as u32)
    }

    /// RFC 8985 §6.2, step 2, and Karn's rule.
    fn note(&mut self, now: Time<Sim>, number: u32, packet: Outstanding, news: &mut News) {
        news.packets += 1;
        if news
            .last
            .is_none_or(|last| packet.delivered >= last.delivered)
        {
            news.last = Some(packet);
        }
        let rtt = now - packet.sent_at;
        if !packet.again {
            news.first_rtt.get_or_insert(rtt);
            news.rtt = Some(rtt);
        } else if self.rtt.min.is_some_and(|min| rtt < min) {
            return; // an acknowledgement of the first transmission
        }
        let sent = (packet.transmission, number);
        if !self.newest.is_some_and(|newest| newest.is_after(sent)) {
            self.newest = Some(Newest {
                transmission: packet.transmission,
                number,
                rtt,
            });
        }
    }

    /// The packet that led to an acknowledgement, unless it was sent again or is known to have arrived.
    fn arrival(&self, ack: &Acknowledgement) -> Option<Arrival> {
        let (number, arrived_at) = ack.last?;
        let place = number.checked_sub(self.unacked)?;
        let packet = self.outstanding.get(place as usize)?;
        let first = !packet.again && packet.state != State::Sacked;
        first.then_some(Arrival {
            number,
            sent_at: packet.sent_at,
            arrived_at,
            app_limited: packet.app_limited,
        })
    }

    /// Bandwidth that the congestion control has estimated last, in bytes a second.
    pub fn estimate(&self) -> Option<f64> {
        self.control.estimate()
    }

    /// An OR-ACK reports this one-way delay.
    pub fn or_acked(&mut self, owd: Option<Span>) {
        self.owd = owd;
    }

    /// Whether the congestion control sets the time of each packet.
    pub fn clocks_gaps(&self) -> bool {
        self.control.clocks_gaps()
    }

    /// Then: the time from a segment of one packet to the next packet. One that is sent again takes the place of a
    /// packet at the mean rate.
    pub fn gap(&mut self, segment: &Segment) -> Option<Span> {
        match segment.again {
            false => self.control.gap(segment.first + segment.count),
            true => None,
        }
    }

    fn grow(
        &mut self,
        now: Time<Sim>,
        (marked, arrival): (u32, Option<Arrival>),
        news: &News,
        (lost, may_grow): (bool, bool),
    ) {
        let rtt = news.rtt.or(self.rtt.smoothed).unwrap_or(Span::ZERO);
        let acked = Acked {
            now,
            packets: news.packets,
            marked,
            cumulative: self.unacked,
            next: self.next,
            rtt,
            min_rtt: self.rtt.min.unwrap_or(rtt),
            may_grow,
            in_flight: self.in_flight(),
            delivered: self.deliveries.packets,
            lost,
            repairing: !self.repair.phase.is_whole(),
            sample: self.deliveries.sample(now, news.last, self.rtt.min),
            reported: Reported {
                arrival,
                owd: self.owd.take(),
            },
            pacing: Pacing {
                packets_per_s: self.packets_per_s(),
                small_queue: self.transport.small_queue,
                device: self.device,
            },
        };
        self.control.on_ack(&mut self.window, &acked);
    }
}

#[cfg(test)]
mod tests;
