// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A connection of a kernel, and the events that it can meet in any order.

pub mod path;

use onramp_cc::tcp::{
    self, Acked, Arrival, Device, Pacing, RateSample, Reported, Window, WindowControl,
};
use onramp_units::{Sim, Span, Time};
use proptest::prelude::*;

/// Between 1 ps and 100 s, each order of magnitude as often as another.
pub fn span() -> impl Strategy<Value = Span> {
    (0u32..15, 1i64..10).prop_map(|(power, digit)| Span::from_ps(digit * 10i64.pow(power)))
}

/// The same, or zero: the stamps of a packet and of its acknowledgement are equal.
pub fn round_trip() -> impl Strategy<Value = Span> {
    prop_oneof![1 => Just(Span::ZERO), 8 => span()]
}

/// The same forward or back.
pub fn step() -> impl Strategy<Value = Span> {
    (span(), any::<bool>()).prop_map(|(span, is_back)| if is_back { -span } else { span })
}

/// What a kernel's connection can meet.
#[derive(Debug, Clone)]
pub enum TcpEvent {
    Ack {
        packets: u32,
        marked: u32,
        rtt: Span,
        owd: Option<Span>,
        may_grow: bool,
        lost: bool,
        rate: Option<u32>,
        app_limited: bool,
    },
    Loss,
    Timeout,
    Idle,
    /// The receiver's clock steps.
    ClockStep(Span),
}

pub fn tcp_event() -> impl Strategy<Value = TcpEvent> {
    let flags = any::<(bool, bool, bool)>();
    let rate = prop::option::of(1u32..=u32::MAX);
    let delay = prop::option::of(step());
    prop_oneof![
        8 => (1u32..100, 0u32..100, (round_trip(), delay), flags, rate).prop_map(
            |(packets, marked, (rtt, owd), (may_grow, lost, app_limited), rate)| TcpEvent::Ack {
                packets, marked: marked.min(packets), rtt, owd, may_grow, lost, rate, app_limited
            }
        ),
        1 => Just(TcpEvent::Loss),
        1 => Just(TcpEvent::Timeout),
        1 => Just(TcpEvent::Idle),
        1 => step().prop_map(TcpEvent::ClockStep),
    ]
}

/// A connection of a kernel, with as much in flight as its window allows.
#[derive(Debug)]
pub struct Connection {
    pub control: tcp::Control,
    pub window: Window,
    pub now: Time<Sim>,
    pub acked: u32,
    /// The packet to be sent next.
    pub next: u32,
    min_rtt: Span,
    /// By how much the receiver's clock is ahead.
    clock: Span,
}

impl Connection {
    pub fn new(entry: &tcp::Entry) -> Connection {
        let mut window = Window::initial(10);
        let mut control = (entry.algorithm)().start();
        control.begin(&mut window);
        Connection {
            control,
            window,
            now: Time::ZERO,
            acked: 0,
            next: 0,
            min_rtt: Span::MAX,
            clock: Span::ZERO,
        }
    }

    pub fn meet(&mut self, event: &TcpEvent, gap: Span) {
        match *event {
            TcpEvent::Ack {
                packets,
                marked,
                rtt,
                owd,
                may_grow,
                lost,
                rate,
                app_limited,
            } => {
                self.acked += packets;
                let filled = self.acked.saturating_add(self.window.packets);
                self.next = self.next.max(filled);
                let pacing = Pacing {
                    packets_per_s: self.control.packets_per_s(rtt),
                    ..pacing(app_limited)
                };
                let acked = Acked {
                    now: self.now,
                    packets,
                    marked,
                    cumulative: self.acked,
                    next: self.next,
                    rtt,
                    min_rtt: self.least_rtt(rtt),
                    may_grow,
                    in_flight: self.window.packets,
                    delivered: self.acked.into(),
                    lost,
                    repairing: lost,
                    reported: Reported {
                        arrival: (rate.is_some()).then_some(Arrival {
                            number: self.acked - 1,
                            sent_at: self.now,
                            arrived_at: self.now + rtt + self.clock,
                            app_limited,
                        }),
                        owd,
                    },
                    sample: RateSample {
                        packets_per_s: rate.map(f64::from),
                        prior_delivered: (self.acked - packets).into(),
                        app_limited,
                    },
                    pacing,
                };
                self.control.on_ack(&mut self.window, &acked);
            }
            TcpEvent::Loss => {
                self.fall();
                let (in_flight, delivered) = (self.window.packets, self.acked.into());
                let window = &mut self.window;
                self.control.repairing_from(in_flight, delivered, window);
                if !self.control.owns_window() {
                    self.window.packets = self.window.slow_start_below;
                }
            }
            TcpEvent::Timeout => {
                self.fall();
                self.control.on_timeout();
                self.window.packets = 1;
            }
            TcpEvent::Idle => self.control.on_idle(gap),
            TcpEvent::ClockStep(step) => self.clock += step,
        }
    }

    /// The least round-trip time of the connection, with this one.
    fn least_rtt(&mut self, rtt: Span) -> Span {
        self.min_rtt = self.min_rtt.min(rtt);
        self.min_rtt
    }

    fn fall(&mut self) {
        let threshold = self.control.on_loss(&self.window);
        assert!(threshold >= 2, "RFC 5681: at least two packets");
        self.window.slow_start_below = threshold;
    }
}

/// Before TCP has a pacing rate.
fn pacing(paces: bool) -> Pacing {
    Pacing {
        packets_per_s: None,
        small_queue: Span::from_us(977),
        device: Device { segment: 45, paces },
    }
}
