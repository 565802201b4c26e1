// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Every registered congestion control keeps its limits sane, whatever order acknowledgements, losses,
//! marks, timeouts and idle times come in.

mod connection;

use connection::path::{Path, PACKETS_PER_S};
use connection::{round_trip, span, step, tcp_event, Connection, TcpEvent};
use onramp_cc::int::{IntFormat, IntHop, MAX_INT_HOPS};
use onramp_cc::nic::{self, Ack, Completion, CongestionControl, PathFacts};
use onramp_cc::tcp::{self, WindowControl};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use proptest::prelude::*;

/// What a NIC's flow can meet.
#[derive(Debug, Clone)]
enum NicEvent {
    /// An acknowledgement of so many bytes more, after so many bytes more were sent.
    Ack {
        sent: u64,
        acked: u64,
        rtt: Span,
        /// Error of the stamps of a burst.
        error: Span,
        marked: bool,
        /// Bytes that each switch sent and has waiting since the last one.
        hops: Vec<(u64, u64)>,
    },
    /// An acknowledgement that says nothing new.
    Duplicate,
    /// Sending starts again at the first byte that is not acknowledged.
    GoBack,
}

fn nic_event() -> impl Strategy<Value = NicEvent> {
    let bytes = || prop_oneof![0u64..2_000, 0u64..10_000_000];
    let hops = prop::collection::vec((bytes(), 0u64..40_000_000), 1..=MAX_INT_HOPS);
    prop_oneof![
        6 => (bytes(), bytes(), (round_trip(), step()), any::<bool>(), hops).prop_map(
            |(sent, acked, (rtt, error), marked, hops)| NicEvent::Ack {
                sent, acked, rtt, error, marked, hops
            }
        ),
        1 => Just(NicEvent::Duplicate),
        1 => Just(NicEvent::GoBack),
    ]
}

/// Payloads of a full packet: the HPCC authors' packets, and frames of 1280 and 9000 B.
fn payload() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1000u64), Just(1222), Just(8942)]
}

/// A flow of a NIC, as the simulator drives it.
struct NicFlow {
    control: nic::Control,
    path: PathFacts,
    format: IntFormat,
    now: Time<Sim>,
    next: u64,
    /// The largest that `next` was.
    highest: u64,
    acked: u64,
    /// Payload of complete bursts.
    completed: u64,
    sent_by_hops: [u64; MAX_INT_HOPS],
}

impl NicFlow {
    fn new(preset: &nic::Preset, line: Rate, base_rtt: Span, payload_bytes: u64) -> NicFlow {
        let path = PathFacts {
            line_rate: line,
            base_rtt,
            bdp_bytes: line.bytes_in(base_rtt).get(),
            payload_bytes,
        };
        NicFlow {
            control: (preset.algorithm)(line).start(&path),
            path,
            format: IntFormat::new(line, &[line]).unwrap(),
            now: Time::ZERO,
            next: 1000,
            highest: 1000,
            acked: 0,
            completed: 0,
            sent_by_hops: [0; MAX_INT_HOPS],
        }
    }

    fn meet(&mut self, event: &NicEvent) {
        match event {
            NicEvent::Ack {
                sent,
                acked,
                rtt,
                error,
                marked,
                hops,
            } => {
                self.next += sent;
                self.highest = self.highest.max(self.next);
                self.acked = (self.acked + acked).min(self.next);
                let mut stack = Vec::new();
                for (total, &(bytes, queue)) in self.sent_by_hops.iter_mut().zip(hops) {
                    *total += bytes;
                    stack.push(self.format.hop(self.now, *total, queue, 0));
                }
                self.acknowledge((*rtt, *error), *marked, &stack);
            }
            NicEvent::Duplicate => {
                let stack = [IntHop::default(); MAX_INT_HOPS];
                self.acknowledge((self.path.base_rtt, Span::ZERO), false, &stack);
            }
            NicEvent::GoBack => self.next = self.acked,
        }
    }

    fn acknowledge(&mut self, (rtt, error): (Span, Span), marked: bool, hops: &[IntHop]) {
        self.control.on_ack(&Ack {
            now: self.now,
            acked: self.acked,
            next: self.next,
            rtt,
            marked,
            hops,
            int: &self.format,
        });
        let burst = self
            .control
            .burst()
            .map_or(u64::MAX, |burst| burst.bytes.into());
        let bytes = self.acked - self.completed;
        if bytes >= burst {
            self.completed = self.acked;
            self.control.on_completion(&Completion {
                now: self.now,
                bytes,
                rtt: rtt + error,
                is_limited: marked,
            });
        }
    }
}

proptest! {
    #[test]
    fn a_nics_rate_stays_within_its_line_and_its_window_above_zero(
        events in prop::collection::vec((nic_event(), span()), 1..60),
        gbit_per_s in prop_oneof![Just(1u64), Just(25), Just(100), Just(800)],
        base_rtt in prop_oneof![Just(Span::from_us(10)), Just(Span::from_us(12)), Just(Span::from_ms(100))],
        payload in payload(),
    ) {
        let line = Rate::from_bits_per_s(gbit_per_s * 1_000_000_000).unwrap();
        for preset in nic::presets() {
            let mut flow = NicFlow::new(preset, line, base_rtt, payload);
            for (event, gap) in &events {
                // Timers of the congestion control that are due in 100 s take long to catch up.
                flow.now += (*gap).min(Span::from_ms(10));
                flow.meet(event);
                flow.control.advance(flow.now);
                let limits = flow.control.limits();
                prop_assert!(limits.rate <= line, "{}: {} of {line}", preset.name, limits.rate);
                prop_assert!(limits.window_bytes >= 1, "{}: no window", preset.name);
            }
        }
    }

    #[test]
    fn a_kernels_window_stays_above_zero_and_its_pace_finite(
        events in prop::collection::vec((tcp_event(), span()), 1..200),
    ) {
        for entry in tcp::entries() {
            let mut connection = Connection::new(entry);
            for (event, gap) in &events {
                connection.now += *gap;
                connection.meet(event, *gap);
                prop_assert!(connection.window.packets >= 1, "{}: no window", entry.name);
                if connection.control.clocks_gaps() {
                    let gap = connection.control.gap(connection.acked);
                    let sane = gap.is_none_or(|gap| gap > Span::ZERO && gap <= Span::from_s(100));
                    prop_assert!(sane, "{}: a gap of {gap:?}", entry.name);
                }
                let pace = connection.control.packets_per_s(Span::from_us(100));
                let sane = pace.is_none_or(|pace| pace.is_finite() && pace > 0.0);
                prop_assert!(sane, "{}: {pace:?} packets/s", entry.name);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_flow_whose_path_is_idle_again_gets_its_line_back(
        events in prop::collection::vec((nic_event(), span()), 1..60),
        payload in payload(),
    ) {
        let line = Rate::from_bits_per_s(100_000_000_000).unwrap();
        // FAST* takes the least round-trip time ever for that of the idle path, so one that was too short holds it back.
        for preset in nic::presets().filter(|preset| preset.name != "fast_star") {
            let mut flow = NicFlow::new(preset, line, Span::from_us(12), payload);
            for (event, gap) in &events {
                flow.now += (*gap).min(Span::from_ms(10));
                flow.meet(event);
            }
            // All is acknowledged; then a fifth of a second without marks or queues, at a packet each 10 us.
            let idle = NicEvent::Ack {
                sent: 1000,
                acked: 1000,
                rtt: flow.path.base_rtt,
                error: Span::ZERO,
                marked: false,
                hops: vec![(1000, 0); MAX_INT_HOPS],
            };
            (flow.next, flow.acked) = (flow.highest, flow.highest);
            // One that keeps a rate which is not used (TIMELY, section 4.4) gets packets at its rate.
            let uses_rate = flow.control.burst().is_some();
            for _ in 0..if uses_rate { 400_000 } else { 20_000 } {
                let at_rate = flow.control.limits().rate.time_to_send(Bytes::new(1000));
                flow.now += if uses_rate { at_rate } else { Span::from_us(10) };
                flow.meet(&idle);
            }
            flow.control.advance(flow.now);
            let rate = flow.control.limits().rate;
            prop_assert!(rate.bits_per_s() * 10 >= line.bits_per_s() * 9, "{}: {rate}", preset.name);
        }
    }

    #[test]
    fn a_connection_whose_path_is_idle_again_fills_a_long_path(
        events in prop::collection::vec((tcp_event(), span()), 1..100),
    ) {
        // Those that set window or pace from samples need a path that answers; the simulator has it.
        let by_acks = |entry: &&tcp::Entry| !(entry.algorithm)().start().owns_window();
        for entry in tcp::entries().filter(by_acks) {
            let mut connection = Connection::new(entry);
            for (event, gap) in &events {
                connection.now += *gap;
                connection.meet(event, *gap);
            }
            // 5,000 round trips of 100 us without losses, marks or queues.
            for _ in 0..5_000 {
                connection.now += Span::from_us(100);
                let clean = TcpEvent::Ack {
                    packets: connection.window.packets.min(1000),
                    marked: 0,
                    rtt: Span::from_us(100),
                    owd: None,
                    may_grow: connection.window.packets < 1000,
                    lost: false,
                    rate: None,
                    app_limited: false,
                };
                connection.meet(&clean, Span::ZERO);
            }
            // A growth of 0.1 packets a round trip makes 500.
            let window = connection.window.packets;
            prop_assert!(window >= 400, "{}: {window} packets", entry.name);
        }
    }

    #[test]
    fn a_connection_whose_path_answers_again_uses_it_also_after_a_window_of_zero(
        events in prop::collection::vec((tcp_event(), span()), 1..100),
    ) {
        for entry in tcp::entries() {
            let mut connection = Connection::new(entry);
            for (event, gap) in &events {
                connection.now += *gap;
                connection.meet(event, *gap);
            }
            let mut path = Path::of(&connection);
            // From its least rate, 9 packets a second, TCP RAPID takes minutes.
            let is_used = |path: &mut Path, connection: &mut Connection| (0..600).any(|_| {
                let delivered = path.run(connection, Span::from_s(1));
                delivered as f64 >= PACKETS_PER_S / 4.0
            });
            prop_assert!(is_used(&mut path, &mut connection), "{}: {connection:?}", entry.name);
            path.close(&mut connection, Span::from_s(100));
            prop_assert!(is_used(&mut path, &mut connection), "{}: {connection:?}", entry.name);
        }
    }
}
