// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The laws in a closed loop: always backlogged senders with a fixed window, a port that drains at
//! 10 Gbit/s, 10 us each way. Not a simulator (no transport, no losses): it shows that each law does
//! to delay and to the port what docs/law.md says.

use onramp_law::{sampled_byte, Config, Flow, Law, Records, SAMPLE_BYTES};
use onramp_units::{Bytes, Mono, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const MSS: u32 = 1_448;
const WIRE_NS: i64 = 1_158; // of an MSS at 10 Gbit/s
const ONE_WAY_NS: i64 = 10_000;
const T_NS: i64 = 60_000;
const FIRST_WINDOW: u64 = 10 * MSS as u64;
const LAST_WINDOW: u64 = 1_000_000;
const WARM_NS: i64 = 40_000_000;
const END_NS: i64 = 80_000_000;

/// Ordered by time, then by number: a total order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A sender looks whether its head may go.
    Wake { sender: usize },
    /// A frame reaches the port's queue.
    AtPort { sender: usize, seq: u32 },
    /// A frame's acknowledgement is back, and its OR-ACK if it was sampled.
    Acked { sender: usize, seq: u32, rx: i64 },
}

#[derive(Default)]
struct Sender {
    flow: Flow,
    records: Records,
    next_seq: u32,
    in_flight: u64,
    window: u64,
    nic_free: i64,
    /// The one wake-up that counts; others are stale.
    wake_at: Option<i64>,
}

/// What the port and the frames saw once warm.
#[derive(Debug, Clone, Copy)]
struct Seen {
    utilisation: f64,
    mean_owd_ns: f64,
    max_owd_ns: i64,
}

struct World {
    config: Config,
    segment: u32,
    senders: Vec<Sender>,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    scheduled: u64,
    port_free: i64,
    /// When the frames on their way to the port left, a queue a sender.
    departures: Vec<VecDeque<i64>>,
    owds: Vec<i64>,
    busy_ns: i64,
}

fn at(ns: i64) -> Time<Mono> {
    Time::from_ticks(ns)
}

impl World {
    fn schedule(&mut self, time: i64, event: Event) {
        self.events.push(Reverse((time, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn wake_at(&mut self, time: i64, sender: usize) {
        if self.senders[sender]
            .wake_at
            .is_none_or(|pending| time < pending)
        {
            self.senders[sender].wake_at = Some(time);
            self.schedule(time, Event::Wake { sender });
        }
    }

    fn wake(&mut self, now: i64, sender: usize) {
        let s = &mut self.senders[sender];
        if s.wake_at != Some(now) {
            return;
        }
        s.wake_at = None;
        if s.in_flight + u64::from(self.segment) > s.window {
            return; // an acknowledgement wakes it
        }
        let again = s
            .flow
            .may_go(&self.config, at(now))
            .map_or(now, Time::ticks)
            .max(s.nic_free);
        if again > now {
            return self.wake_at(again, sender);
        }
        let seq = s.next_seq;
        s.records
            .sent(&self.config, &mut s.flow, at(now), seq, self.segment);
        s.in_flight += u64::from(self.segment);
        s.next_seq = seq.wrapping_add(self.segment);
        s.nic_free = now + WIRE_NS * i64::from(self.segment / MSS);
        let free = s.nic_free;
        for frame in 0..self.segment / MSS {
            let time = now + WIRE_NS * i64::from(frame + 1) + ONE_WAY_NS / 2;
            let seq = seq.wrapping_add(frame * MSS);
            self.departures[sender].push_back(now + WIRE_NS * i64::from(frame));
            self.schedule(time, Event::AtPort { sender, seq });
        }
        self.wake_at(free, sender);
    }

    fn at_port(&mut self, now: i64, sender: usize, seq: u32) {
        let start = self.port_free.max(now);
        self.port_free = start + WIRE_NS;
        let rx = self.port_free + ONE_WAY_NS / 2;
        let left = self.departures[sender].pop_front().expect("it left");
        if (WARM_NS..END_NS).contains(&start) {
            self.busy_ns += WIRE_NS;
            self.owds.push(rx - left);
        }
        self.schedule(rx + ONE_WAY_NS, Event::Acked { sender, seq, rx });
    }

    fn acked(&mut self, now: i64, sender: usize, seq: u32, rx: i64) {
        let s = &mut self.senders[sender];
        s.in_flight -= u64::from(MSS);
        s.window = (s.window + u64::from(MSS)).min(LAST_WINDOW); // slow start, without an end
        if let Some(byte) = sampled_byte(seq, MSS, SAMPLE_BYTES) {
            s.records
                .orack(&self.config, &mut s.flow, byte, at(now), at(rx));
        }
        self.wake_at(now, sender);
    }
}

/// `flows` senders start 7 us apart and run for 60 ms; segments of `frames` frames.
fn run(law: Law, flows: usize, frames: u32) -> Seen {
    let line = Rate::from_bits_per_s(10_000_000_000).expect("not zero");
    let mut world = World {
        config: Config::new(law, Span::from_ns(T_NS))
            .line_rate(line)
            .gate_allowance(Bytes::new(MSS.into())),
        segment: frames * MSS,
        senders: (0..flows)
            .map(|_| Sender {
                window: FIRST_WINDOW.max((frames * MSS).into()),
                ..Sender::default()
            })
            .collect(),
        events: BinaryHeap::new(),
        scheduled: 0,
        port_free: 0,
        departures: vec![Default::default(); flows],
        owds: Vec::new(),
        busy_ns: 0,
    };
    for sender in 0..flows {
        world.wake_at(1 + 7_000 * sender as i64, sender);
    }
    while let Some(Reverse((now, _, event))) = world.events.pop() {
        if now >= END_NS {
            break;
        }
        match event {
            Event::Wake { sender } => world.wake(now, sender),
            Event::AtPort { sender, seq } => world.at_port(now, sender, seq),
            Event::Acked { sender, seq, rx } => world.acked(now, sender, seq, rx),
        }
    }
    Seen {
        utilisation: world.busy_ns as f64 / (END_NS - WARM_NS) as f64,
        mean_owd_ns: world.owds.iter().sum::<i64>() as f64 / world.owds.len() as f64,
        max_owd_ns: world.owds.iter().copied().max().unwrap_or(0),
    }
}

const SEGMENTS: [u32; 3] = [1, 4, 10];

/// Above T stand each flow's allowances, three where the queue stays there (8 flows: 28 us), and what
/// its segments overshoot by.
#[test]
fn the_gate_holds_delay_at_t_and_never_idles_the_port() {
    for frames in SEGMENTS {
        for flows in [2, 8] {
            let seen = run(Law::Gate, flows, frames);
            assert!(
                seen.utilisation > 0.999,
                "{flows} flows, {frames} frames: {seen:?}"
            );
            assert!(
                seen.mean_owd_ns < 1.8 * T_NS as f64,
                "{flows} flows, {frames} frames: {seen:?}"
            );
        }
    }
}

/// What the final law costs where few flows share a port, and the strawman more: docs/law.md.
#[test]
fn two_flows_idle_the_port_under_the_pause_laws() {
    for frames in SEGMENTS {
        let (strawman, last) = (run(Law::Strawman, 2, frames), run(Law::Final, 2, frames));
        assert!(strawman.utilisation < 0.80, "{frames} frames: {strawman:?}");
        assert!(
            (0.82..0.92).contains(&last.utilisation),
            "{frames} frames: {last:?}"
        );
        assert!(last.max_owd_ns < 4 * T_NS, "{frames} frames: {last:?}");
    }
}

/// Why a GSO segment must be short against T under the gate: each flow overshoots by one.
#[test]
fn long_segments_blur_the_gate() {
    let (short, long) = (run(Law::Gate, 8, 10), run(Law::Gate, 8, 43));
    assert!(
        long.mean_owd_ns > 3.0 * short.mean_owd_ns,
        "{short:?}, {long:?}"
    );
}

#[test]
fn off_lets_the_windows_stand_in_the_queue() {
    let seen = run(Law::Off, 2, 4);
    assert!(seen.mean_owd_ns > 20.0 * T_NS as f64, "{seen:?}");
}
