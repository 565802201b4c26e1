// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows of a file.

use super::plan::{Plan, Work};
use super::{Generator, Measured, TrafficEntry, TrafficKind};
use crate::flow_list::ListedFlow;
use crate::hosts::HostId;
use crate::key::{both, Scope};
use crate::types::Run;
use crate::values::FilePath;
use onramp_keys::Absent::Required;
use onramp_keys::{section, Section};
use onramp_units::Time;
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "replay",
    about: "flows that a file lists",
    keys: ReplayKeys::KEYS,
    measured: Measured::Flows,
    in_rack: false,
    read: |entry| {
        let _: ReplayKeys = entry.read()?;
        let flows = entry.file(ReplayKeys::path, |files, path| files.flows(path))?;
        refuse_impossible(&flows, entry)?;
        Some(Arc::new(Replay { flows }))
    },
};

section! {
    /// The keys of an entry.
    struct ReplayKeys in "traffic" with Scope {
        path: FilePath = Required, both(),
            "File that lists the flows by start time. A name that ends in `.csv` or `.parquet`: it has columns src, dst, size_bytes and start_ns, in any order. A name that ends in `.trace` or `.jsonl`: a trace of a daemon; its hosts have the numbers of their addresses in order, and the first flow starts at 0. Rates and delays are the scenario's; `onramp advise` writes a scenario with those of the trace. Any other name: the HPCC authors' format, which has the number of flows, then a line `src dst priority port size_bytes start_s` for each flow.";
    }
}

#[derive(Debug)]
struct Replay {
    /// In the order of their starts.
    flows: Arc<Vec<ListedFlow>>,
}

impl Generator for Replay {
    fn generate(&self, plan: &mut Plan<'_>) {
        for flow in self.flows.iter() {
            plan.add(plan.flow(
                flow.at - Time::ZERO,
                flow.src,
                flow.dst,
                Work::Send(flow.size),
            ));
        }
    }

    fn expected_flows(&self, _run: &Run) -> f64 {
        self.flows.len() as f64
    }

    fn receiver(&self) -> HostId {
        self.flows.first().map_or(0, |flow| flow.dst)
    }
}

/// Reports the first flow of hosts that the network does not have, or that starts after the end.
fn refuse_impossible(flows: &[ListedFlow], entry: &mut TrafficEntry<'_>) -> Option<()> {
    let (hosts, duration) = (entry.hosts()?, entry.duration()?);
    for (row, flow) in (1..).zip(flows) {
        let (host, start) = (flow.src.max(flow.dst), flow.at - Time::ZERO);
        let error = if host >= hosts {
            format!("flow {row}: host {host} is above max {}", hosts - 1)
        } else if start >= duration {
            format!("flow {row}: start is {start}, not below {duration} (duration)")
        } else {
            continue;
        };
        entry.refuse_file(ReplayKeys::path, error);
        return None;
    }
    Some(())
}
