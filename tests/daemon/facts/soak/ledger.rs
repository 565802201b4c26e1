// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a soak has seen: samples of all daemons, the table of them, and what must hold.
use std::time::Duration;

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};

use super::STAYS;
use crate::{
    agent::{Agent, LATENESS_NS},
    net::Host,
};

const EVERY: Duration = Duration::from_secs(300);

/// Counters of all daemons since the beginning; those that have ended included.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    holds: u64,
    drops: u64,
    table_full: u64,
    held_max_ns: u64,
    oracks_used: u64,
    oracks_refused: u64,
}

impl Counted {
    fn of(agent: &Agent) -> Counted {
        let status = agent.status();
        let value = |name: &str| status.counter(name).expect("a counter");
        let sum = |names: &[&str]| names.iter().map(|name| value(name)).sum();
        Counted {
            holds: value("holds"),
            drops: sum(&["limit_drops", "flow_limit_drops"]),
            table_full: value("flow_table_full"),
            held_max_ns: value("held_max_ns"),
            oracks_used: value("oracks_used"),
            oracks_refused: sum(&["oracks_malformed", "oracks_bad_tag", "oracks_stale"]),
        }
    }

    fn with(self, other: Counted) -> Counted {
        Counted {
            holds: self.holds + other.holds,
            drops: self.drops + other.drops,
            table_full: self.table_full + other.table_full,
            held_max_ns: self.held_max_ns.max(other.held_max_ns),
            oracks_used: self.oracks_used + other.oracks_used,
            oracks_refused: self.oracks_refused + other.oracks_refused,
        }
    }
}

/// What the system holds at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    flows: u32,
    peers: usize,
    descriptors: usize,
    /// Resident memory of the daemon that stays.
    rss_kib: u64,
    /// Memory of the maps and programs that all daemons hold open.
    bpf_kib: u64,
    /// BPF maps and programs of the whole system.
    maps: usize,
    programs: usize,
}

/// One of the numbers of `Held`.
type Amount = fn(&Held) -> u64;

impl Held {
    fn by(agents: &[Agent]) -> Held {
        let status: Vec<_> = agents.iter().map(Agent::status).collect();
        Held {
            flows: status.iter().map(|s| s.flows).sum(),
            peers: status.iter().map(|s| s.peers.len()).sum(),
            descriptors: agents.iter().map(Agent::descriptors).sum(),
            rss_kib: agents[STAYS].rss_kib(),
            bpf_kib: agents.iter().map(Agent::bpf_bytes).sum::<u64>() / 1024,
            maps: MapInfoIter::default().count(),
            programs: ProgInfoIter::default().count(),
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    steps: usize,
    /// Median of the flows after the faults since the last sample.
    mbit_per_s: f64,
    counted: Counted,
    held: Held,
}

#[derive(Default)]
pub struct Ledger {
    samples: Vec<Sample>,
    /// Counters of daemons that have ended.
    ended: Counted,
    /// Longest pause that a daemon permits.
    cap_ns: u64,
    /// Throughput of the flow after each fault.
    mbit_per_s: Vec<f64>,
    /// Segments that neither the switch nor the fault has dropped.
    pub lost: u64,
}

impl Ledger {
    /// Counts a daemon for the last time, before it ends.
    pub fn retire(&mut self, agent: &Agent) {
        self.ended = self.ended.with(Counted::of(agent));
    }

    pub fn step(&mut self, mbit_per_s: f64) {
        self.mbit_per_s.push(mbit_per_s);
    }

    /// Has there been no step since the last sample?
    pub fn is_complete(&self) -> bool {
        let last = self.samples.last();
        last.is_some_and(|last| last.steps == self.mbit_per_s.len())
    }

    pub fn is_due(&self, at: Duration) -> bool {
        self.samples.last().is_none_or(|last| at >= last.at + EVERY)
    }

    pub fn sample(&mut self, at: Duration, agents: &[Agent], hosts: &[Host]) {
        for host in hosts {
            let qdisc = host.ns.qdisc("eth0").expect("the daemon's");
            println!("{}: {} drops by tc", host.ns.0, qdisc["drops"]);
        }
        self.cap_ns = agents[STAYS].status().max_pause_ns as u64;
        let counted = agents
            .iter()
            .map(Counted::of)
            .fold(self.ended, Counted::with);
        let since = self.samples.last().map_or(0, |last| last.steps);
        let sample = Sample {
            at,
            steps: self.mbit_per_s.len(),
            mbit_per_s: median(&self.mbit_per_s[since..]),
            counted,
            held: Held::by(agents),
        };
        println!("{sample:?}");
        self.samples.push(sample);
    }

    /// The table, as Markdown.
    pub fn print(&self, length: Duration, seed: u64) {
        let (length_s, faults) = (length.as_secs(), self.mbit_per_s.len());
        let lost = self.lost;
        println!(
            "|@ {length_s} s of virtual time, seed {seed}, {faults} faults, {lost} segments lost that neither the \
             switch nor the fault dropped"
        );
        println!(
            "| minute | faults | goodput after a fault, Mbit/s | holds | longest hold, ms | drops by On-Ramp \
             | OR-ACKs used | OR-ACKs refused | flows | peers | descriptors | RSS, KiB | BPF memory, KiB | maps | programs |"
        );
        println!("|---{}|", "|---".repeat(14));
        for Sample {
            at,
            steps,
            mbit_per_s,
            counted: c,
            held: h,
        } in &self.samples
        {
            let goodput = match *steps {
                0 => "-".to_owned(),
                _ => format!("{mbit_per_s:.1}"),
            };
            println!(
                "| {} | {steps} | {goodput} | {} | {:.1} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                at.as_secs() / 60,
                c.holds,
                c.held_max_ns as f64 / 1e6,
                c.drops,
                c.oracks_used,
                c.oracks_refused,
                h.flows,
                h.peers,
                h.descriptors,
                h.rss_kib,
                h.bpf_kib,
                h.maps,
                h.programs
            );
        }
    }

    pub fn assert_flat_and_harmless(&self) {
        let last = self.samples.last().expect("it was sampled");
        let held = last.counted.held_max_ns;
        assert!(last.counted.holds > 0, "nothing was held");
        assert!(held <= self.cap_ns + LATENESS_NS, "held {held} ns");
        assert_eq!(last.counted.drops, 0, "drops by On-Ramp");
        assert_eq!(self.lost, 0, "segments lost");
        assert_eq!(last.counted.table_full, 0, "flows without a place");
        // The first sample is of daemons that have not worked yet.
        let worked = &self.samples[1..];
        let quarter = worked.len().div_ceil(4);
        let (first, last) = (&worked[..quarter], &worked[worked.len() - quarter..]);
        let most =
            |of: &[Sample], what: Amount| of.iter().map(|s| what(&s.held)).max().expect("a sample");
        let flat: [(&str, Amount, f64); 5] = [
            ("descriptors", |h| h.descriptors as u64, 1.0),
            ("maps", |h| h.maps as u64, 1.0),
            ("programs", |h| h.programs as u64, 1.0),
            ("BPF memory", |h| h.bpf_kib, 1.01),
            ("RSS", |h| h.rss_kib, 1.05),
        ];
        for (name, what, growth) in flat {
            let (before, after) = (most(first, what), most(last, what));
            assert!(
                after as f64 <= growth * before as f64,
                "{name}: {before} in the first quarter, {after} in the last"
            );
        }
        let all = self.mbit_per_s.len().div_ceil(4);
        let before = median(&self.mbit_per_s[..all]);
        let after = median(&self.mbit_per_s[self.mbit_per_s.len() - all..]);
        assert!(after > 0.9 * before, "{before} Mbit/s, then {after}");
    }
}

/// NaN of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
