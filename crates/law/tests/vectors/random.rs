// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Randomised vectors, a section for each registered law: flows over a queue that breathes, with losses,
//! reordering and nonsense, and flows of nothing but extreme integers. One seed, one text: a further law
//! adds a section at the end and leaves the others as they are.

use super::host::Host;
use super::vectors::{config_line, step, Machine, Op};
use onramp_law::abi::{onr_cfg, onr_record};
use onramp_law::{Law, SAMPLE_BYTES};

const SEED: u64 = 7;
/// Flows of each law.
const FLOWS: u64 = 8;
const HOSTILE_FLOWS: u64 = 3;
/// Flows of each law with a guard: after the flows above.
const GUARDED_FLOWS: u64 = 3;
/// More than the flows of a law: each law has seeds of its own.
const SEEDS_OF_A_LAW: u64 = 1_000;
const STEPS: u32 = 60;
const GUARDED_STEPS: u32 = 120;
const HEAD: &str = "\
# Randomised vectors of the control laws; the format is in law-vectors.hand.txt.
# Written by `cargo run -p onramp-law --example law-vectors`, never by hand.
";

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its stream is the file's, so it must never change.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Any 64-bit integer, the edges often.
    fn extreme(&mut self) -> i64 {
        match self.below(4) {
            0 => self.pick(&[0, 1, -1, i64::MIN, i64::MAX]),
            1 => 1i64
                .wrapping_shl(self.below(64) as u32)
                .wrapping_sub(self.below(2) as i64),
            2 => self.next() as i64 >> self.below(64),
            _ => self.next() as i64,
        }
    }
}

/// The whole file.
pub fn text() -> String {
    let mut out = HEAD.to_owned();
    let cfg = config(&mut Rng(SEED), Law::Final);
    let mut numbers = 0..;
    flow(&mut out, "a full ring", &cfg, 85, || {
        full_ring_op(numbers.next().unwrap_or(0))
    });
    let mut numbers = 0..;
    flow(
        &mut out,
        "a ring that is too short for a while",
        &cfg,
        830,
        || short_ring_op(numbers.next().unwrap_or(0)),
    );
    for law in Law::all() {
        for number in 0..FLOWS + HOSTILE_FLOWS {
            let mut rng = Rng(SEED + law as u64 * SEEDS_OF_A_LAW + number);
            let (hostile, wild) = (number >= FLOWS, rng.one_in(2));
            let cfg = if hostile && wild {
                extreme_config(&mut rng, law)
            } else {
                config(&mut rng, law)
            };
            let mut journey = Journey::new(&cfg, &mut rng);
            let title = format!("{law}, flow {number}");
            let mut steps = 0;
            flow(&mut out, &title, &cfg, STEPS, || {
                steps += 1;
                match hostile {
                    _ if law == Law::Level && steps % 6 == 1 => path_op(&mut rng, hostile),
                    true => extreme_op(&mut rng),
                    false => journey.op(&mut rng),
                }
            });
        }
    }
    for law in Law::all() {
        guarded(&mut out, law);
    }
    out
}

/// The section of a law with a guard.
fn guarded(out: &mut String, law: Law) {
    let rng_of = |number| Rng(SEED + law as u64 * SEEDS_OF_A_LAW + SEEDS_OF_A_LAW / 2 + number);
    let config_of = |rng: &mut Rng| onr_cfg {
        guard_window_ns: 100_000,
        ..config(rng, law)
    };
    for number in 0..GUARDED_FLOWS {
        let mut rng = rng_of(number);
        let cfg = config_of(&mut rng);
        let mut journey = Journey::new(&cfg, &mut rng);
        let title = format!("{law} with a guard, flow {number}");
        flow(out, &title, &cfg, GUARDED_STEPS, || journey.op(&mut rng));
    }
    let mut rng = rng_of(GUARDED_FLOWS + 1);
    let cfg = config_of(&mut rng);
    let mut journey = Journey::new(&cfg, &mut rng);
    let title = format!("{law} with a guard, alone for a while");
    let mut steps = 0;
    flow(out, &title, &cfg, GUARDED_STEPS, || {
        steps += 1;
        match steps % 10 {
            1 => alone_op(&mut rng),
            _ => journey.op(&mut rng),
        }
    });
    let mut rng = rng_of(GUARDED_FLOWS);
    let cfg = onr_cfg {
        guard_window_ns: rng.extreme(),
        ..extreme_config(&mut rng, law)
    };
    let title = format!("{law} with a guard, nonsense");
    flow(out, &title, &cfg, STEPS, || extreme_op(&mut rng));
}

/// Appends one flow of `steps` operations and what the host makes of them.
fn flow(out: &mut String, title: &str, cfg: &onr_cfg, steps: u32, mut next: impl FnMut() -> Op) {
    let mut host = Host::new();
    host.configure(cfg);
    *out += &format!("\n# {title}\n{}\nnew\n", config_line(cfg));
    for _ in 0..steps {
        *out += &step(&mut host, &next());
        out.push('\n');
    }
}

/// Departure of the segment with this number.
fn left(segment: u32) -> i64 {
    1_000_000_000 + i64::from(segment) * 12_000
}

fn sent(segment: u32) -> Op {
    Op::Sent {
        now: left(segment),
        seq: segment * SAMPLE_BYTES,
        len: SAMPLE_BYTES,
    }
}

fn orack(segment: u32, now: i64) -> Op {
    Op::Orack {
        now,
        seq: segment * SAMPLE_BYTES,
        rx: left(segment) + 80_000,
    }
}

/// 75 sampled segments into a ring of 64; the oldest OR-ACKs; a retransmission of the newer half.
fn full_ring_op(number: u32) -> Op {
    let now = left(75) + i64::from(number) * 1_000;
    match number {
        0..75 => sent(number),
        75..80 => orack(number - 75 + 9, now), // 11 is the oldest that is still there
        80 => Op::Sent {
            now,
            seq: 38 * SAMPLE_BYTES,
            len: 37 * SAMPLE_BYTES,
        },
        _ => orack(number - 81 + 36, now), // 37 is the newest that was sent once
    }
}

/// After the first OR-ACK 326 segments without one; then one after each segment.
fn short_ring_op(number: u32) -> Op {
    match number {
        0..4 => sent(number),
        4 => orack(3, left(4)),
        5..331 => sent(number - 1),
        _ if number % 2 == 1 => sent(330 + (number - 331) / 2),
        _ => orack(
            330 + (number - 332) / 2,
            left(330 + (number - 332) / 2) + 90_000,
        ),
    }
}

fn config(rng: &mut Rng, law: Law) -> onr_cfg {
    onr_cfg {
        threshold_ns: rng.pick(&[16_000, 50_000, 150_000]),
        max_pause_ns: rng.pick(&[100_000, 5_000_000]),
        max_owd_ns: 100_000_000,
        gate_tau_ns: 1_000_000,
        law: law as u32,
        gain_q16: rng.pick(&[4_096, 16_384, 65_536]),
        line_ns_per_byte_q16: rng.pick(&[52_428, 52_428, 5_242, 0]),
        gate_allowance_bytes: 1_448,
        guard_window_ns: 0,
    }
}

fn extreme_config(rng: &mut Rng, law: Law) -> onr_cfg {
    onr_cfg {
        threshold_ns: rng.extreme(),
        max_pause_ns: rng.extreme(),
        max_owd_ns: rng.extreme(),
        gate_tau_ns: rng.extreme(),
        law: law as u32,
        gain_q16: rng.extreme() as u32,
        line_ns_per_byte_q16: rng.extreme() as u32,
        gate_allowance_bytes: rng.extreme() as u32,
        guard_window_ns: 0,
    }
}

fn extreme_op(rng: &mut Rng) -> Op {
    let (now, rx) = (rng.extreme() & i64::MAX, rng.extreme());
    let (seq, len) = (rng.extreme() as u32, rng.extreme() as u32);
    let record = onr_record {
        sent_mono_ns: rng.extreme(),
        mark: rng.extreme() as u64,
        seq,
        len,
    };
    match rng.below(5) {
        0 => Op::Sent { now, seq, len },
        1 => Op::Orack {
            now,
            seq: seq - seq % SAMPLE_BYTES,
            rx,
        },
        2 => Op::Arrived {
            now,
            seq: seq.wrapping_add(len / 2),
            rx,
            record,
        },
        3 => Op::Arrived {
            now,
            seq: seq.wrapping_add(len / 3),
            rx: record
                .sent_mono_ns
                .saturating_add(rng.below(200_000_000) as i64),
            record,
        },
        _ => Op::MayGo { now },
    }
}

/// What comes with an OR-ACK: mostly of a full port of managed flows.
fn path_op(rng: &mut Rng, hostile: bool) -> Op {
    if hostile {
        return Op::Path {
            least: rng.extreme() >> 12,
            ahead: rng.extreme() >> 12,
            hint: rng.next() as u16,
        };
    }
    let (managed, flows) = (rng.pick(&[31, 31, 31, 20, 5]), 1 + rng.below(12) as u16);
    Op::Path {
        least: 2_000 + rng.below(1_000) as i64,
        ahead: rng.pick(&[0, 1_000_000_000, -3_600_000_000_000]),
        hint: managed << 11 | rng.pick(&[7, 7, 3]) << 8 | flows,
    }
}

/// A receiver at which nothing else arrives, or nearly so.
fn alone_op(rng: &mut Rng) -> Op {
    Op::Path {
        least: rng.pick(&[0, 4_000, 40_000, -1_000_000]),
        ahead: 0,
        hint: rng.pick(&[31, 31, 29, 28]) << 11 | 7 << 8 | rng.pick(&[1, 1, 0, 2]),
    }
}

/// A flow that sends in order through a queue whose delay walks at random.
struct Journey {
    now: i64,
    next_seq: u32,
    owd: i64,
    line_ns_per_byte_q16: i64,
    /// Sampled bytes sent, and when they left.
    samples: Vec<(u32, i64)>,
    /// How many of them have been acknowledged.
    acked: usize,
}

impl Journey {
    fn new(cfg: &onr_cfg, rng: &mut Rng) -> Journey {
        Journey {
            now: 1_000_000_000 + rng.below(1_000_000) as i64,
            next_seq: rng.next() as u32,
            owd: 20_000,
            line_ns_per_byte_q16: cfg.line_ns_per_byte_q16.into(),
            samples: Vec::new(),
            acked: 0,
        }
    }

    fn op(&mut self, rng: &mut Rng) -> Op {
        self.now += match rng.below(20) {
            0 => rng.below(20_000_000) as i64, // idle
            _ => rng.below(12_000) as i64,
        };
        self.owd = (self.owd + rng.below(60_000) as i64 - 29_000).clamp(-2_000, 300_000);
        match rng.below(10) {
            0..=3 => self.send(rng),
            4 | 5 => Op::MayGo { now: self.now },
            _ => self.acknowledge(rng),
        }
    }

    fn send(&mut self, rng: &mut Rng) -> Op {
        let len = rng.pick(&[1_448, 7_240, 14_480, 14_480, 28_960]);
        let now = self.now;
        if rng.one_in(12) {
            let back = rng.below(60_000) as u32;
            return Op::Sent {
                now,
                seq: self.next_seq.wrapping_sub(back),
                len: 1_448,
            };
        }
        let seq = self.next_seq;
        self.next_seq = seq.wrapping_add(len);
        if let Some(last) = onramp_law::sampled_byte(seq, len, SAMPLE_BYTES) {
            for byte in [last.wrapping_sub(SAMPLE_BYTES), last] {
                let offset = byte.wrapping_sub(seq);
                if offset < len {
                    let left = now + ((i64::from(offset) * self.line_ns_per_byte_q16) >> 16);
                    self.samples.push((byte, left));
                }
            }
        }
        Op::Sent { now, seq, len }
    }

    /// The next sample in order; sometimes one that is lost before it, or an old one again.
    fn acknowledge(&mut self, rng: &mut Rng) -> Op {
        let lost = usize::from(rng.one_in(8));
        self.acked = (self.acked + lost).max(self.samples.len().saturating_sub(6));
        let old = self.acked > 0 && rng.one_in(8);
        let index = if old {
            rng.below(self.acked as u64) as usize
        } else {
            self.acked
        };
        let Some(&(byte, left)) = self.samples.get(index) else {
            return Op::MayGo { now: self.now };
        };
        self.acked += usize::from(!old);
        let wrong = match rng.below(30) {
            0 => 3_600_000_000_000,
            1 => -1_000_000_000,
            _ => 0,
        };
        self.now = self.now.max(left + self.owd + 5_000);
        Op::Orack {
            now: self.now,
            seq: byte,
            rx: left + self.owd + wrong,
        }
    }
}
