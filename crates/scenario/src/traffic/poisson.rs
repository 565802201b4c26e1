// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that start at random, with sizes from a workload, at a load (payload bytes) of each receiver's link.

use super::plan::{Plan, Purpose, Starts, Work};
use super::{Arrivals, Generator, Measured, Op, TrafficKind};
use crate::fraction::Fraction;
use crate::hosts::HostId;
use crate::key::{both, Rack, Scope};
use crate::types::Run;
use crate::values::{Receivers, Sources, WorkloadName};
use crate::workload::{BuiltIn, Distribution};
use onramp_keys::Absent::{Is, Required};
use onramp_keys::{choice, section, Section};
use onramp_units::{Bytes, Rate, Span};
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "poisson",
    about: "flows of random sizes, with exponential times between their starts",
    keys: PoissonKeys::KEYS,
    measured: Measured::Flows,
    in_rack: true,
    read: |entry| {
        let keys: PoissonKeys = entry.read()?;
        entry.refuse_itself(keys.from, keys.to);
        let sizes = entry.file(PoissonKeys::workload, |files, name| files.workload(name))?;
        Some(Arc::new(Poisson { keys, sizes }))
    },
};

section! {
    /// The keys of an entry.
    #[derive(Debug)]
    struct PoissonKeys in "traffic" with Scope {
        to: Receivers = Is("0"), both(),
            "The receiver. A range or `all`: each of these hosts is one, and `load` applies to each.";
        from: Sources = Is("others"), both(),
            "The sender. A range or `others` (all hosts but the receiver): each flow has a random one.";
        workload: WorkloadName = Required, both().rack(Rack::If("named distributions", |_, name| name.parse::<BuiltIn>().is_err())),
            "Distribution of flow sizes: the name of a distribution in workloads/, or a file. Its rows are a size in bytes and the part of flows up to it: `10000,0.15` below a line `# interpolation: linear` or `step`, or `10000 15` in percent, linear, as HPCC's traffic generator reads them.";
        load: Fraction [0.000_001, 1.0] = Required, both(),
            "Offered load: payload sent to the receiver, as a fraction of the rate of its link.";
        sizes: Sizes = Is("random"), both(),
            "How sizes are drawn. `random`: each by itself; a short run draws few, so that its load is another one. `stratified`: as many flows as `load` asks for, each with the mean size of its part of `workload`: of N flows one is the mean of the smallest N-th, one that of the next, and so on. So every seed offers `load`, over all receivers together and to a whole flow; seeds differ in starts, order and hosts. The parts before and after the end of `warmup` are drawn apart.";
        op: Op = Is("write"), both().later().rack_only(&["write"]),
            "As for incast.";
    }
}

choice! {
    /// How sizes are drawn.
    enum Sizes {
        /// Each by itself.
        Random = "random",
        /// One of each part of the distribution.
        Stratified = "stratified",
    }
}

#[derive(Debug)]
struct Poisson {
    keys: PoissonKeys,
    sizes: Arc<Distribution>,
}

impl Generator for Poisson {
    fn generate(&self, plan: &mut Plan<'_>) {
        match self.keys.sizes {
            Sizes::Random => self.random(plan),
            Sizes::Stratified => self.stratified(plan),
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        self.flows_within(run, run.duration)
    }

    fn receiver(&self) -> HostId {
        self.keys.to.first()
    }

    fn op(&self) -> Op {
        self.keys.op
    }
}

impl Poisson {
    /// Receiver by receiver, with random gaps and sizes.
    fn random(&self, plan: &mut Plan<'_>) {
        let run = plan.run();
        for dst in self.keys.to.hosts(run) {
            let gap_ps = self.mean_gap_ps(run.network.link_of(dst).rate);
            let starts = Starts::new(plan, dst, Arrivals::Poisson, gap_ps);
            let mut sizes = plan.random(dst, Purpose::Sizes);
            let mut sources = plan.random(dst, Purpose::Sources);
            let servers = self.keys.from.servers(run, dst);
            for at in starts {
                let size = self.sizes.quantile(sizes.uniform());
                let src = sources.pick(&servers);
                plan.add(plan.flow(at, src, dst, Work::Send(size)));
            }
        }
    }

    /// All flows that the load asks for, at random times. A Poisson process of which the number of events is known has
    /// them at independent uniform times.
    fn stratified(&self, plan: &mut Plan<'_>) {
        let run = plan.run();
        let first = self.keys.to.first();
        let mut times = plan.random(first, Purpose::Gaps);
        let mut order = plan.random(first, Purpose::Sizes);
        let mut hosts = plan.random(first, Purpose::Sources);
        let receivers = self.keys.to.hosts(run);
        for (from, length) in [(Span::ZERO, run.warmup), (run.warmup, run.window())] {
            let flows = self.flows_within(run, length).round() as usize;
            let mut sizes = self.strata(flows);
            for left in (1..=sizes.len()).rev() {
                let size = sizes.swap_remove(order.below(left));
                let within = Span::from_ps((length.as_ps() as f64 * times.uniform()) as i64);
                let dst = self.receiver_of(run, &receivers, hosts.uniform());
                let src = hosts.pick(&self.keys.from.servers(run, dst));
                plan.add(plan.flow(from + within, src, dst, Work::Send(size)));
            }
        }
    }

    /// The mean size of each of so many equal parts of the distribution, in whole bytes.
    fn strata(&self, parts: usize) -> Vec<Bytes> {
        let end = |part: usize| part as f64 / parts as f64;
        let mean = |part| self.sizes.mean_between(end(part), end(part + 1)).round();
        let sizes = (0..parts).map(|part| Bytes::new((mean(part) as u64).max(1)));
        sizes.collect()
    }

    /// The receiver at `u` (0 to 1), where each has a share as its link's rate.
    fn receiver_of(&self, run: &Run, receivers: &[HostId], u: f64) -> HostId {
        let rate = |host: &HostId| run.network.link_of(*host).rate.bits_per_s() as f64;
        let mut left = u * receivers.iter().map(rate).sum::<f64>();
        let is_it = |host: &&HostId| {
            left -= rate(host);
            left < 0.0
        };
        let found = receivers.iter().find(is_it);
        *found.unwrap_or(&receivers[receivers.len() - 1])
    }

    /// Mean number of flows within a time.
    fn flows_within(&self, run: &Run, time: Span) -> f64 {
        let flows = |host| {
            let gap_ps = self.mean_gap_ps(run.network.link_of(host).rate);
            time.as_ps() as f64 / gap_ps
        };
        self.keys.to.hosts(run).into_iter().map(flows).sum()
    }

    /// Mean time between the flows of one receiver, in ps, when its link runs at `rate`.
    fn mean_gap_ps(&self, rate: Rate) -> f64 {
        // A thousand flows at once: the mean size is no whole number of bytes.
        let thousand = Bytes::new((self.sizes.mean_bytes() * 1e3).round() as u64);
        rate.time_to_send(thousand).as_ps() as f64 / 1e3 / self.keys.load.get()
    }
}
