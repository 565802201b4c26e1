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
use onramp_keys::{section, Section};
use onramp_units::{Bytes, Rate};
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
        op: Op = Is("write"), both().later().rack_only(&["write"]),
            "As for incast.";
    }
}

#[derive(Debug)]
struct Poisson {
    keys: PoissonKeys,
    sizes: Arc<Distribution>,
}

impl Generator for Poisson {
    fn generate(&self, plan: &mut Plan<'_>) {
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

    fn expected_flows(&self, run: &Run) -> f64 {
        let flows = |host| {
            let gap_ps = self.mean_gap_ps(run.network.link_of(host).rate);
            run.duration.as_ps() as f64 / gap_ps
        };
        self.keys.to.hosts(run).into_iter().map(flows).sum()
    }

    fn receiver(&self) -> HostId {
        self.keys.to.first()
    }

    fn op(&self) -> Op {
        self.keys.op
    }
}

impl Poisson {
    /// Mean time between the flows of one receiver, in ps, when its link runs at `rate`.
    fn mean_gap_ps(&self, rate: Rate) -> f64 {
        // A thousand flows at once: the mean size is no whole number of bytes.
        let thousand = Bytes::new((self.sizes.mean_bytes() * 1e3).round() as u64);
        rate.time_to_send(thousand).as_ps() as f64 / 1e3 / self.keys.load.get()
    }
}
