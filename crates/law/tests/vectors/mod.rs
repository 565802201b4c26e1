// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Vector files (tests/law-vectors.*): their text, and replaying them on a [`Machine`]. A replay
//! writes every line anew from what the machine did; it must be the line that was read.

use onramp_law::abi::{onr_cfg, onr_flow, onr_record, onr_records};
use onramp_law::Law;
use std::fmt::Write as _;

/// The laws as one place runs them: this host's build, or the kernel's.
pub trait Machine {
    /// Configures what follows.
    fn configure(&mut self, cfg: &onr_cfg);
    /// Starts a new flow.
    fn begin(&mut self);
    /// Runs one operation; returns the verdict or the time to ask again.
    fn run(&mut self, op: &Op) -> i64;
    /// The state now.
    fn state(&self) -> (onr_flow, onr_records);
}

/// An operation on a flow. Times in ns of the sender's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// A segment leaves: `onr_records_sent`.
    Sent { now: i64, seq: u32, len: u32 },
    /// An OR-ACK arrives and is looked up: `onr_records_orack`.
    Orack { now: i64, seq: u32, rx: i64 },
    /// An OR-ACK arrives for a given record, which may be nonsense: `onr_orack_arrived`.
    Arrived {
        now: i64,
        seq: u32,
        rx: i64,
        record: onr_record,
    },
    /// May the head go: `onr_may_go`.
    MayGo { now: i64 },
    /// What comes with the next OR-ACK: `onr_path_set`.
    Path { least: i64, ahead: i64, hint: u16 },
}

/// The verdicts as vector files name them, in the order of `enum onr_verdict`.
const VERDICTS: [&str; 4] = ["used", "reordered", "absurd", "unknown"];

/// Lists the fields of a structure as (name, value), and their total size in bytes.
macro_rules! fields {
    ($of:expr; $($name:ident)*) => {
        ([$((stringify!($name), i128::from($of.$name))),*], 0 $(+ size_of_val(&$of.$name))*)
    };
}

fn flow_fields(f: &onr_flow) -> [(&'static str, i128); 47] {
    let (list, bytes) = fields!(f;
        held_since_mono_ns sample_sent_mono_ns sample_owd_ns sent_bytes sample_pause_ns
        pause_total_ns pause_from_mono_ns pause_until_mono_ns acked_bytes acked_rx_mono_ns
        acked_mono_ns drain_from_mono_ns rate_bytes rate_ns inv_q16 above_since_mono_ns far_since_mono_ns
        left_mono_ns mode_mono_ns level_ns allowed_ns fleet_ahead_ns back_ns step_bytes doubled_bytes
        young_bytes owd_avg_ns hint doublings tries free young sent_seq
        guard_from_mono_ns guard_held_ns guard_lowest_ns guard_threshold_ns guard_raised_mono_ns
        beta_q16 sample_offset threshold_ns sooner_q16 least_ns sampled held capped gated);
    let reserved = size_of_val(&f.reserved);
    assert_eq!(
        bytes + reserved,
        size_of::<onr_flow>(),
        "a field is not compared"
    );
    list
}

/// Replays a file on `machine` and returns it rewritten. Comments and blank lines stay.
pub fn replay(text: &str, machine: &mut dyn Machine) -> String {
    let mut cfg = onr_cfg::default();
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let operation = line.split(" -> ").next().unwrap_or_default();
        let words = Words::new(operation, number + 1);
        match words.verb {
            "" | "#" => out.push_str(line),
            "config" => {
                cfg = words.config(cfg);
                machine.configure(&cfg);
                out.push_str(&config_line(&cfg));
            }
            "new" => {
                machine.begin();
                out.push_str("new");
            }
            _ => out.push_str(&step(machine, &words.op())),
        }
        out.push('\n');
    }
    out
}

/// Runs `op` and writes its line.
pub fn step(machine: &mut dyn Machine, op: &Op) -> String {
    let before = machine.state();
    let result = machine.run(op);
    let after = machine.state();
    let mut line = op.to_string();
    let answer = match op {
        Op::Sent { .. } => "sent".to_owned(),
        Op::Path { .. } => "path".to_owned(),
        Op::MayGo { .. } => result.to_string(),
        Op::Orack { .. } | Op::Arrived { .. } => VERDICTS[result as usize].to_owned(),
    };
    write!(line, " -> {answer}").unwrap();
    write_changes(&mut line, &before, &after);
    line
}

fn write_changes(line: &mut String, old: &(onr_flow, onr_records), new: &(onr_flow, onr_records)) {
    for ((name, was), (_, is)) in flow_fields(&old.0).iter().zip(flow_fields(&new.0)) {
        if *was != is {
            write!(line, " {name}={is}").unwrap();
        }
    }
    for (i, (was, is)) in old.1.ring.iter().zip(new.1.ring).enumerate() {
        if *was != is {
            let onr_record {
                sent_mono_ns,
                mark,
                seq,
                len,
            } = is;
            write!(line, " ring[{i}]={sent_mono_ns}:{mark}:{seq}:{len}").unwrap();
        }
    }
    let (ends, _) = fields!(new.1; next count snd_nxt begun samples thin);
    let (were, _) = fields!(old.1; next count snd_nxt begun samples thin);
    for ((name, is), (_, was)) in ends.iter().zip(were) {
        if *is != was {
            write!(line, " {name}={is}").unwrap();
        }
    }
}

/// The line that configures `cfg`.
pub fn config_line(cfg: &onr_cfg) -> String {
    format!(
        "config law={} threshold_ns={} max_pause_ns={} max_owd_ns={} gain_q16={} \
         line_ns_per_byte_q16={} gate_tau_ns={} gate_allowance_bytes={} guard_window_ns={}",
        Law::NAMES[cfg.law as usize],
        cfg.threshold_ns,
        cfg.max_pause_ns,
        cfg.max_owd_ns,
        cfg.gain_q16,
        cfg.line_ns_per_byte_q16,
        cfg.gate_tau_ns,
        cfg.gate_allowance_bytes,
        cfg.guard_window_ns
    )
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Op::Sent { now, seq, len } => write!(f, "sent now={now} seq={seq} len={len}"),
            Op::Orack { now, seq, rx } => write!(f, "orack now={now} seq={seq} rx={rx}"),
            Op::Arrived {
                now,
                seq,
                rx,
                record: r,
            } => write!(
                f,
                "arrived now={now} seq={seq} rx={rx} rec.sent={} rec.mark={} rec.seq={} rec.len={}",
                r.sent_mono_ns, r.mark, r.seq, r.len
            ),
            Op::MayGo { now } => write!(f, "may_go now={now}"),
            Op::Path { least, ahead, hint } => {
                write!(f, "path least={least} ahead={ahead} hint={hint}")
            }
        }
    }
}

/// A line: a verb and key=value words.
struct Words<'a> {
    verb: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
    line: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str, line: usize) -> Words<'a> {
        let mut words = text.split_whitespace();
        let verb = words.next().unwrap_or_default();
        if verb.starts_with('#') {
            return Words {
                verb: "#",
                pairs: Vec::new(),
                line,
            };
        }
        let pairs = words
            .map(|w| {
                w.split_once('=')
                    .unwrap_or_else(|| panic!("line {line}: {w} has no ="))
            })
            .collect();
        Words { verb, pairs, line }
    }

    fn get<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        let (_, value) = self.pairs.iter().find(|(k, _)| *k == key)?;
        let parsed = value.parse();
        Some(parsed.unwrap_or_else(|_| panic!("line {}: {key}={value} is no number", self.line)))
    }

    fn need<T: std::str::FromStr>(&self, key: &str) -> T {
        let line = self.line;
        self.get(key)
            .unwrap_or_else(|| panic!("line {line}: {} needs {key}", self.verb))
    }

    fn config(&self, old: onr_cfg) -> onr_cfg {
        let law = self.get::<String>("law").map(|name| {
            let known = name.parse::<Law>();
            known.unwrap_or_else(|error| panic!("line {}: {error}", self.line)) as u32
        });
        let or = |key, old| self.get(key).unwrap_or(old);
        let or32 = |key, old| self.get(key).unwrap_or(old);
        onr_cfg {
            threshold_ns: or("threshold_ns", old.threshold_ns),
            max_pause_ns: or("max_pause_ns", old.max_pause_ns),
            max_owd_ns: or("max_owd_ns", old.max_owd_ns),
            gate_tau_ns: or("gate_tau_ns", old.gate_tau_ns),
            guard_window_ns: or("guard_window_ns", old.guard_window_ns),
            law: law.unwrap_or(old.law),
            gain_q16: or32("gain_q16", old.gain_q16),
            line_ns_per_byte_q16: or32("line_ns_per_byte_q16", old.line_ns_per_byte_q16),
            gate_allowance_bytes: or32("gate_allowance_bytes", old.gate_allowance_bytes),
        }
    }

    fn op(&self) -> Op {
        if self.verb == "path" {
            return Op::Path {
                least: self.need("least"),
                ahead: self.need("ahead"),
                hint: self.need("hint"),
            };
        }
        let now = self.need("now");
        match self.verb {
            "sent" => Op::Sent {
                now,
                seq: self.need("seq"),
                len: self.need("len"),
            },
            "orack" => Op::Orack {
                now,
                seq: self.need("seq"),
                rx: self.need("rx"),
            },
            "arrived" => Op::Arrived {
                now,
                seq: self.need("seq"),
                rx: self.need("rx"),
                record: onr_record {
                    sent_mono_ns: self.need("rec.sent"),
                    mark: self.need("rec.mark"),
                    seq: self.need("rec.seq"),
                    len: self.need("rec.len"),
                },
            },
            "may_go" => Op::MayGo { now },
            verb => panic!("line {}: no operation {verb}", self.line),
        }
    }
}
