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

use crate::{
    Arrivals, HostId, Incast, Kind, Long, Poisson, Receivers, Replay, Run, Sources, Spacing,
    Traffic,
};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeFrom;

mod waiting;

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
    pub kind: Kind,
    /// Index of the entry of [`Run::traffic`].
    pub traffic: usize,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Amount of data.
    pub work: Work,
    /// Incast: number of the request within its entry, from 0. A request and its answer have the same number. For
    /// all_to_all: number of the step.
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
pub fn plan(run: &Run) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut groups = 0;
    for (index, traffic) in run.traffic.iter().enumerate() {
        let entry = Entry {
            run,
            index,
            kind: traffic.kind(),
        };
        match traffic {
            Traffic::Incast(incast) => entry.incast(incast, &mut groups, &mut arrivals),
            Traffic::Long(long) => entry.long(long, &mut arrivals),
            Traffic::Poisson(poisson) => entry.poisson(poisson, &mut arrivals),
            Traffic::Request(request) => entry.request(request, &mut groups, &mut arrivals),
            Traffic::AllToAll(all) => entry.all_to_all(all, &mut groups, &mut arrivals),
            Traffic::Replay(replay) => entry.replay(replay, &mut arrivals),
        }
    }
    // Stable: entries keep their order among equal times.
    arrivals.sort_by_key(|a: &Arrival| (a.after.is_some(), a.at, a.traffic));
    arrivals
}

/// The plan of the rack. Its aggregators send their requests themselves, so requests are not flows, and answers
/// are due when the request is sent.
pub fn rack_plan(run: &Run) -> Vec<Arrival> {
    let mut run = run.clone();
    for traffic in &mut run.traffic {
        if let Traffic::Incast(incast) = traffic {
            incast.ask_size = Bytes::ZERO;
        }
    }
    plan(&run)
}

/// Mean number of flows in the plan of `run`, without making it.
pub fn expected_flows(run: &Run) -> f64 {
    let of = |traffic| expected_arrivals(run, traffic);
    run.traffic.iter().map(of).sum()
}

/// Mean number of arrivals of `traffic` in the plan of `run`.
pub(crate) fn expected_arrivals(run: &Run, traffic: &Traffic) -> f64 {
    let duration_ps = run.duration.as_ps() as f64;
    let rate = |host| run.network.link_of(host).rate;
    match traffic {
        Traffic::Incast(i) => {
            let most = i.requests.unwrap_or(u64::MAX) as f64;
            let requests = |host| (duration_ps / i.mean_gap_ps(rate(host))).min(most);
            let requests: f64 = i.to.hosts(run).into_iter().map(requests).sum();
            let each = if i.ask_size > Bytes::ZERO { 2.0 } else { 1.0 };
            requests * each * f64::from(i.fanout)
        }
        Traffic::Long(l) => f64::from(l.flows),
        Traffic::Poisson(p) => {
            let flows = |host| duration_ps / p.mean_gap_ps(rate(host));
            p.to.hosts(run).into_iter().map(flows).sum()
        }
        Traffic::Request(r) => {
            let most = r.requests.unwrap_or(u64::MAX) as f64;
            let requests =
                |host| (duration_ps / r.least_gap_ps(run.network.link_of(host))).min(most);
            2.0 * r.to.hosts(run).into_iter().map(requests).sum::<f64>()
        }
        Traffic::AllToAll(a) => {
            let hosts = a.among.hosts(run);
            let steps = duration_ps / a.least_gap_ps(run, &hosts);
            let steps = steps.min(a.steps.unwrap_or(u64::MAX) as f64) + 1.0;
            let flows = a.rounds(hosts.len()) * hosts.len() * a.each_sends_to(hosts.len());
            steps * flows as f64
        }
        Traffic::Replay(r) => r.flows.len() as f64,
    }
}

struct Entry<'a> {
    run: &'a Run,
    index: usize,
    kind: Kind,
}

impl Entry<'_> {
    fn arrival(&self, at_ps: i64, src: HostId, dst: HostId, work: Work) -> Arrival {
        let at = Time::from_ticks(at_ps);
        Arrival {
            at,
            after: None,
            joins: None,
            kind: self.kind,
            traffic: self.index,
            src,
            dst,
            work,
            request: None,
            slot: 0,
            in_order: false,
        }
    }

    fn stream(&self, receiver: HostId, purpose: Purpose) -> ChaCha8Rng {
        stream(self.run.seed, self.index, receiver, purpose)
    }

    fn incast(&self, incast: &Incast, groups: &mut u32, arrivals: &mut Vec<Arrival>) {
        let first = arrivals.len();
        let mut numbers = 0..;
        for aggregator in incast.to.hosts(self.run) {
            self.incast_to(aggregator, incast, &mut numbers, arrivals);
        }
        if incast.ask_size > Bytes::ZERO {
            let told = arrivals.split_off(first);
            let asked = told.into_iter().zip(*groups..);
            arrivals.extend(asked.flat_map(|(told, group)| told.asked_for(incast.ask_size, group)));
            *groups += ((arrivals.len() - first) / 2) as u32;
        }
    }

    /// The requests of one aggregator, with the next `numbers` of the entry.
    fn incast_to(
        &self,
        to: HostId,
        incast: &Incast,
        numbers: &mut RangeFrom<u64>,
        arrivals: &mut Vec<Arrival>,
    ) {
        let starts = Starts {
            rng: self.stream(to, Purpose::Gaps),
            arrivals: incast.arrivals,
            gap_ps: incast.mean_gap_ps(self.run.network.link_of(to).rate),
            at_ps: 0.0,
            end_ps: self.run.duration.as_ps(),
        };
        let mut sources = self.stream(to, Purpose::Sources);
        let mut servers = incast.from.servers(self.run, to);
        let mut jitter = self.stream(to, Purpose::Jitter);
        let limit = incast.requests.map_or(usize::MAX, |most| most as usize);
        for (at_ps, request) in starts.take(limit).zip(numbers) {
            let answers = choose(&mut servers, incast.fanout, &mut sources);
            for (n, (slot, src)) in (0..).zip(answers) {
                let mut at_ps = at_ps + incast.stagger.as_ps() * n;
                if incast.jitter > Span::ZERO {
                    at_ps += (incast.jitter.as_ps() as f64 * uniform(&mut jitter)) as i64;
                }
                let answer = self.arrival(at_ps, src, to, Work::Send(incast.size));
                arrivals.push(Arrival {
                    request: Some(request),
                    slot,
                    ..answer
                });
            }
        }
    }

    fn long(&self, long: &Long, arrivals: &mut Vec<Arrival>) {
        let sources = match long.from {
            Sources::Host(host) => vec![host],
            Sources::Range(..) | Sources::Others => long.from.servers(self.run, long.to),
        };
        let stop = Time::ZERO + long.stop;
        for flow in 0..long.flows {
            let src = sources[flow as usize % sources.len()];
            let start = self.arrival(long.start.as_ps(), src, long.to, Work::Until(stop));
            arrivals.push(Arrival {
                slot: flow / sources.len() as u32,
                ..start
            });
        }
    }

    fn poisson(&self, poisson: &Poisson, arrivals: &mut Vec<Arrival>) {
        let sizes_of = &poisson.workload.distribution;
        for dst in poisson.to.hosts(self.run) {
            let starts = Starts {
                rng: self.stream(dst, Purpose::Gaps),
                arrivals: Arrivals::Poisson,
                gap_ps: poisson.mean_gap_ps(self.run.network.link_of(dst).rate),
                at_ps: 0.0,
                end_ps: self.run.duration.as_ps(),
            };
            let mut sizes = self.stream(dst, Purpose::Sizes);
            let mut sources = self.stream(dst, Purpose::Sources);
            let servers = poisson.from.servers(self.run, dst);
            for at_ps in starts {
                let size = sizes_of.quantile(uniform(&mut sizes));
                let src = pick(&servers, &mut sources);
                arrivals.push(self.arrival(at_ps, src, dst, Work::Send(size)));
            }
        }
    }

    fn replay(&self, replay: &Replay, arrivals: &mut Vec<Arrival>) {
        let flows = replay.flows.iter();
        arrivals.extend(flows.map(|flow| {
            let at_ps = (flow.at - Time::ZERO).as_ps();
            self.arrival(at_ps, flow.src, flow.dst, Work::Send(flow.size))
        }));
    }
}

impl Arrivals {
    fn gap_ps(self, mean_ps: f64, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Arrivals::Periodic => mean_ps,
            Arrivals::Poisson => -mean_ps * libm::log1p(-uniform(rng)),
        }
    }
}

impl Sources {
    /// Hosts that can send to `receiver`.
    fn servers(self, run: &Run, receiver: HostId) -> Vec<HostId> {
        match self {
            Sources::Host(host) => vec![host],
            Sources::Range(first, last) => (first..=last).filter(|&h| h != receiver).collect(),
            Sources::Others => others(run, receiver),
        }
    }
}

/// A random host; without a choice no random number is used.
fn pick(hosts: &[HostId], rng: &mut ChaCha8Rng) -> HostId {
    match hosts {
        [host] => *host,
        hosts => hosts[below(hosts.len(), rng)],
    }
}

impl Incast {
    /// Mean time between requests, in ps, when the aggregator's link runs at `rate`.
    pub(crate) fn mean_gap_ps(&self, rate: Rate) -> f64 {
        match self.spacing {
            Spacing::Interval(gap) => gap.as_ps() as f64,
            Spacing::Load(load) => {
                let answers = self.size * u64::from(self.fanout);
                rate.time_to_send(answers).as_ps() as f64 / load.get()
            }
        }
    }

    /// Mean time between requests when the aggregator's link runs at `rate`.
    pub fn mean_gap(&self, rate: Rate) -> Span {
        Span::from_ps(self.mean_gap_ps(rate).round() as i64)
    }
}

impl Poisson {
    /// Mean time between the flows of one receiver, in ps, when its link runs at `rate`.
    pub(crate) fn mean_gap_ps(&self, rate: Rate) -> f64 {
        // A thousand flows at once: the mean size is no whole number of bytes.
        let thousand = Bytes::new((self.workload.distribution.mean_bytes() * 1e3).round() as u64);
        rate.time_to_send(thousand).as_ps() as f64 / 1e3 / self.load.get()
    }
}

impl Receivers {
    /// All hosts, in ascending order.
    pub(crate) fn hosts(self, run: &Run) -> Vec<HostId> {
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

/// Purpose of a stream of random numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Gaps = 0,
    Sizes = 1,
    Sources = 2,
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

/// Uniform in [0, 1), on a grid of 2^-53.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform in 0..n, biased by less than n / 2^64. Written out because `rand` may change its
/// method, and with it every plan, in a minor version.
fn below(n: usize, rng: &mut ChaCha8Rng) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Start times in ps, each a gap after the one before, up to `end_ps`.
struct Starts {
    rng: ChaCha8Rng,
    arrivals: Arrivals,
    gap_ps: f64,
    at_ps: f64,
    end_ps: i64,
}

impl Iterator for Starts {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.at_ps += self.arrivals.gap_ps(self.gap_ps, &mut self.rng);
        let at_ps = self.at_ps.round() as i64;
        (at_ps < self.end_ps).then_some(at_ps)
    }
}

/// Servers of one request with their slots: as often as the fanout allows all of `servers`, then
/// distinct random ones (in ascending order) for the rest. Leaves `servers` as it was.
fn choose(servers: &mut [HostId], fanout: u32, rng: &mut ChaCha8Rng) -> Vec<(u32, HostId)> {
    let count = servers.len() as u32;
    let (rounds, rest) = (fanout / count, (fanout % count) as usize);
    let mut chosen = Vec::with_capacity(fanout as usize);
    for slot in 0..rounds {
        chosen.extend(servers.iter().map(|&server| (slot, server)));
    }
    for i in 0..rest {
        servers.swap(i, i + below(servers.len() - i, rng));
    }
    servers[..rest].sort_unstable();
    chosen.extend(servers[..rest].iter().map(|&server| (rounds, server)));
    servers.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests;
