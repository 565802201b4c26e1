// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The traffic plan: who starts to send what to whom, and when. A pure function of the run.
//!
//! Random numbers come from ChaCha8 keyed with the seed, one stream per traffic entry, receiver
//! and purpose ([`stream`]). So an entry's arrivals depend on nothing but the seed and its own
//! settings: every case of a scenario sees the same traffic, adding an entry moves no other, and
//! changing a load changes gaps but no size. Logarithms come from `libm`, so that a plan is the
//! same on every machine.
//!
//! Loads count payload bytes. Times are the scenario's, not dilated.

use super::{Arrivals, TrafficKind};
use crate::hosts::HostId;
use crate::types::Run;
use crate::values::{Receivers, Sources};
use onramp_cc::{without_panic, Mistake};
use onramp_units::{Bytes, Sim, Span, Time};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One flow, answer or long flow that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When the sender has the data; for an incast, when the aggregator sends its request. If `after` is given,
    /// the earliest such time.
    pub at: Time<Sim>,
    /// The group of flows that it waits for, if any.
    pub after: Option<After>,
    /// The group to which it belongs, if flows wait for it.
    pub joins: Option<u32>,
    /// Kind of the traffic entry.
    pub kind: &'static TrafficKind,
    /// Index of the entry of [`Run::traffic`].
    pub traffic: usize,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Amount of data.
    pub work: Work,
    /// Number of the request or step within its entry, from 0, of kinds that are [measured
    /// together](super::Measured::is_together). A request and its answer have the same number.
    pub request: Option<u64>,
    /// Parallel connection from `src` to `dst` within the entry, from 0: the n-th answer of a
    /// server to one request, or the n-th long flow between the two. 0 for Poisson flows.
    pub slot: u32,
    /// Whether all flows of its entry between its hosts use one connection, one after the other in the plan's
    /// order.
    pub in_order: bool,
}

/// A flow starts `delay` after all flows of `group` have arrived, if they belong to its own request or step, or if
/// that time is within the duration. All of them arrive at the host that sends the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    /// Counts from 0 in the whole plan.
    pub group: u32,
    /// Time from the last byte of the last flow.
    pub delay: Span,
}

/// Amount of data of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// This payload.
    Send(Bytes),
    /// As much as possible until this time.
    Until(Time<Sim>),
}

/// All arrivals of a run with `0 <= at < duration` (answers of an incast may come later), by time; at
/// the same time by traffic entry, then in the order in which the entry makes them. Flows that wait
/// for others come last: as many as a network without queues could have.
///
/// ```
/// # use onramp_scenario::{plan, Scenario, Work};
/// # let text = r#"
/// # title = "example"
/// # duration = "1 ms"
/// # [network]
/// # topology = { kind = "star", hosts = 3 }
/// # link = { rate = "10 Gbit/s", delay = "1 us" }
/// # [[traffic]]
/// # kind = "incast"
/// # fanout = 2
/// # size = "2 kB"
/// # interval = "400 us"
/// # arrivals = "periodic"
/// # "#;
/// let scenario = Scenario::parse(text, "example.toml")?;
/// let arrivals = plan(&scenario.runs()[0]);
/// assert_eq!(arrivals.len(), 4); // two answers at 400 us, two at 800 us
/// assert_eq!(arrivals[3].request, Some(1));
/// # Ok::<(), onramp_scenario::Errors>(())
/// ```
///
/// # Panics
/// A kind of traffic of another crate is wrong: [`try_plan`] answers with an error.
pub fn plan(run: &Run) -> Vec<Arrival> {
    try_plan(run).unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// As [`plan`].
///
/// # Errors
/// A kind of traffic of another crate panicked, or adds a flow that cannot be.
pub fn try_plan(run: &Run) -> Result<Vec<Arrival>, Mistake> {
    planned(run, false)
}

/// The plan of the rack. Its aggregators send their requests themselves, so requests are not flows, and answers
/// are due when the request is sent.
///
/// # Panics
/// As [`plan`].
pub fn rack_plan(run: &Run) -> Vec<Arrival> {
    planned(run, true).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn planned(run: &Run, is_for_rack: bool) -> Result<Vec<Arrival>, Mistake> {
    let (mut arrivals, mut groups) = (Vec::new(), 0);
    for (index, traffic) in run.traffic.iter().enumerate() {
        let mut plan = Plan {
            run,
            index,
            is_for_rack,
            arrivals,
            groups,
        };
        let made = without_panic(|| traffic.generator().generate(&mut plan));
        made.map_err(|what| Mistake {
            part: format!("traffic.{index} of kind {}", traffic.kind().name),
            call: "generate",
            what,
            at: None,
        })?;
        (arrivals, groups) = (plan.arrivals, plan.groups);
    }
    // Stable: entries keep their order among equal times.
    arrivals.sort_by_key(|a: &Arrival| (a.after.is_some(), a.at, a.traffic));
    Ok(arrivals)
}

/// Mean number of flows in the plan of `run`, without making it.
pub fn expected_flows(run: &Run) -> f64 {
    let of = |traffic: &crate::Traffic| traffic.generator().expected_flows(run);
    run.traffic.iter().map(of).sum()
}

/// The plan of one entry, to which its [`Generator`](super::Generator) adds flows.
pub struct Plan<'a> {
    run: &'a Run,
    /// The number of the entry.
    index: usize,
    is_for_rack: bool,
    arrivals: Vec<Arrival>,
    groups: u32,
}

impl<'a> Plan<'a> {
    /// The run.
    pub fn run(&self) -> &'a Run {
        self.run
    }

    /// Whether the rack's aggregators send the requests of incasts.
    pub(crate) fn is_for_rack(&self) -> bool {
        self.is_for_rack
    }

    /// A flow that starts `at` a time since the start of the run, and neither waits for others nor is waited for.
    pub fn flow(&self, at: Span, src: HostId, dst: HostId, work: Work) -> Arrival {
        Arrival {
            at: Time::ZERO + at,
            after: None,
            joins: None,
            kind: self.run.traffic[self.index].kind(),
            traffic: self.index,
            src,
            dst,
            work,
            request: None,
            slot: 0,
            in_order: false,
        }
    }

    /// Adds a flow.
    ///
    /// # Panics
    /// A host sends to itself, or does not exist: the generator is wrong.
    pub fn add(&mut self, arrival: Arrival) {
        let Arrival { src, dst, .. } = arrival;
        let last = self.run.network.topology.hosts() - 1;
        assert!(
            src.max(dst) <= last && src != dst,
            "a flow from host {src} to host {dst}; a host sends to another one of 0 to {last}"
        );
        self.arrivals.push(arrival);
    }

    /// Adds a request of `size`, and its answer, which starts when the request has arrived.
    pub(crate) fn add_with_request(&mut self, size: Bytes, answer: Arrival) {
        let group = self.new_groups(1);
        for arrival in answer.asked_for(size, group) {
            self.add(arrival);
        }
    }

    /// The first of `count` new groups of flows that others wait for.
    pub fn new_groups(&mut self, count: u32) -> u32 {
        let first = self.groups;
        self.groups += count;
        first
    }

    /// Random numbers of a host, which depend on nothing but the seed and the place of the entry.
    pub fn random(&self, host: HostId, purpose: Purpose) -> Random {
        Random(stream(self.run.seed, self.index, host, purpose))
    }
}

impl Arrival {
    /// A request of `size` and this answer, which starts when the request has arrived; `group` is that of the
    /// request.
    pub(crate) fn asked_for(self, size: Bytes, group: u32) -> [Arrival; 2] {
        let request = Arrival {
            joins: Some(group),
            src: self.dst,
            dst: self.src,
            work: Work::Send(size),
            ..self
        };
        let after = After {
            group,
            delay: Span::ZERO,
        };
        let answer = Arrival {
            after: Some(after),
            ..self
        };
        [request, answer]
    }
}

impl Arrivals {
    pub(crate) fn gap_ps(self, mean_ps: f64, random: &mut Random) -> f64 {
        match self {
            Arrivals::Periodic => mean_ps,
            Arrivals::Poisson => random.exponential(mean_ps),
        }
    }
}

impl Sources {
    /// Hosts that can send to `receiver`, in ascending order.
    pub fn servers(self, run: &Run, receiver: HostId) -> Vec<HostId> {
        match self {
            Sources::Host(host) => vec![host],
            Sources::Range(first, last) => (first..=last).filter(|&h| h != receiver).collect(),
            Sources::Others => others(run, receiver),
        }
    }
}

impl Receivers {
    /// The one with the least number.
    pub fn first(self) -> HostId {
        match self {
            Receivers::Host(host) | Receivers::Range(host, _) => host,
            Receivers::All => 0,
        }
    }

    /// All hosts, in ascending order.
    pub fn hosts(self, run: &Run) -> Vec<HostId> {
        match self {
            Receivers::Host(host) => vec![host],
            Receivers::Range(first, last) => (first..=last).collect(),
            Receivers::All => (0..run.network.topology.hosts()).collect(),
        }
    }
}

fn others(run: &Run, host: HostId) -> Vec<HostId> {
    (0..run.network.topology.hosts())
        .filter(|&h| h != host)
        .collect()
}

/// Purpose of random numbers: each has a stream of its own, so that what one draws changes no other.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// Times between flows.
    Gaps = 0,
    /// Sizes.
    Sizes = 1,
    /// Which hosts.
    Sources = 2,
    /// Deviations from times.
    Jitter = 3,
}

/// Stream number `entry * 2^32 + receiver * 4 + purpose` of ChaCha8 whose key is the seed (little
/// endian, zero-extended). The layout is part of the format: changing it changes all results.
fn stream(seed: u64, entry: usize, receiver: HostId, purpose: Purpose) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(((entry as u64) << 32) + (u64::from(receiver) << 2) + purpose as u64);
    rng
}

/// A stream of random numbers, the same on every machine.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Uniform in [0, 1), on a grid of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n, biased by less than n / 2^64. Written out because `rand` may change its
    /// method, and with it every plan, in a minor version.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// Exponential with this mean, in the same unit.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.uniform())
    }

    /// One of `hosts`, which has at least one; without a choice no number is used.
    pub fn pick(&mut self, hosts: &[HostId]) -> HostId {
        match hosts {
            [host] => *host,
            hosts => hosts[self.below(hosts.len())],
        }
    }
}

/// Start times, each a gap after the one before, up to the end of the run.
pub(crate) struct Starts {
    random: Random,
    arrivals: Arrivals,
    gap_ps: f64,
    at_ps: f64,
    end: Span,
}

impl Starts {
    /// Those of flows to `host`, with gaps of this mean.
    pub(crate) fn new(plan: &Plan<'_>, host: HostId, arrivals: Arrivals, gap_ps: f64) -> Starts {
        Starts {
            random: plan.random(host, Purpose::Gaps),
            arrivals,
            gap_ps,
            at_ps: 0.0,
            end: plan.run.duration,
        }
    }
}

impl Iterator for Starts {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        self.at_ps += self.arrivals.gap_ps(self.gap_ps, &mut self.random);
        let at = Span::from_ps(self.at_ps.round() as i64);
        (at < self.end).then_some(at)
    }
}

/// Servers of one request with their slots: as often as the fanout allows all of `servers`, then
/// distinct random ones (in ascending order) for the rest. Leaves `servers` as it was.
pub(crate) fn choose(
    servers: &mut [HostId],
    fanout: u32,
    random: &mut Random,
) -> Vec<(u32, HostId)> {
    let count = servers.len() as u32;
    let (rounds, rest) = (fanout / count, (fanout % count) as usize);
    let mut chosen = Vec::with_capacity(fanout as usize);
    for slot in 0..rounds {
        chosen.extend(servers.iter().map(|&server| (slot, server)));
    }
    for i in 0..rest {
        servers.swap(i, i + random.below(servers.len() - i));
    }
    servers[..rest].sort_unstable();
    chosen.extend(servers[..rest].iter().map(|&server| (rounds, server)));
    servers.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests;
