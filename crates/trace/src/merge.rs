// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Traces of several daemons as one list of flows between numbered hosts.

use std::collections::{BTreeMap, BTreeSet};

use onramp_units::{Rate, Span};

use crate::{Flow, Trace};

/// A flow to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayFlow {
    /// After the first flow began.
    pub start: Span,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Payload.
    pub size_bytes: u64,
}

/// Flows of one or more traces, and what the traces say of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// Ordered by start.
    pub flows: Vec<ReplayFlow>,
    /// Addresses; the index is the number of the host.
    pub hosts: Vec<String>,
    /// From the start of the first flow to the last known segment.
    pub span: Span,
    /// The line rate that most devices have; none if no trace knows one.
    pub line_rate: Option<Rate>,
    /// Median of the least delays of the paths; none if no flow has a delay above 0.
    pub base_delay: Option<Span>,
    /// Hosts that have a trace, or are the sender of one of its flows.
    pub senders: usize,
    /// Whether the flows of all traces have one time: there is one trace, or all clocks are synchronised.
    pub one_time: bool,
}

/// Merges traces. Flows that a host sends to itself are left out.
pub fn merge(traces: &[Trace]) -> Merged {
    let flows = traces.iter().flat_map(|trace| &trace.flows);
    Merged {
        line_rate: line_rate(traces),
        one_time: traces.len() < 2 || traces.iter().all(|trace| trace.head.clock == "huygens"),
        ..merge_flows(flows)
    }
}

/// Merges flows of one time, of a network whose line rate is not known. Flows that a host sends to itself are left out.
pub fn merge_flows<'t>(flows: impl Iterator<Item = &'t Flow> + Clone) -> Merged {
    let all = || flows.clone().filter(|flow| flow.from != flow.to);
    let names: BTreeSet<&str> = all().flat_map(|flow| [&*flow.from, &*flow.to]).collect();
    let number: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
    let first_ns = all().map(|flow| flow.start_fleet_ns).min().unwrap_or(0);
    let end_ns = all().map(|flow| flow.start_fleet_ns.saturating_add(flow.duration_ns));
    let span = Span::from_ns(end_ns.max().unwrap_or(0).saturating_sub(first_ns));
    let replayed = |flow: &Flow| ReplayFlow {
        start: Span::from_ns(flow.start_fleet_ns - first_ns),
        src: number[&*flow.from],
        dst: number[&*flow.to],
        size_bytes: flow.size_bytes,
    };
    let mut replay: Vec<_> = all().map(replayed).collect();
    replay.sort_unstable();
    let senders: BTreeSet<&str> = all().map(|flow| &*flow.from).collect();
    Merged {
        flows: replay,
        span,
        line_rate: None,
        base_delay: base_delay(all()),
        senders: senders.len(),
        one_time: true,
        hosts: names.into_iter().map(str::to_owned).collect(),
    }
}

/// The most frequent rate, of several the lowest: too low a rate makes a replay more congested, not less.
fn line_rate(traces: &[Trace]) -> Option<Rate> {
    let mut count: BTreeMap<u64, usize> = BTreeMap::new();
    for device in traces.iter().flat_map(|trace| &trace.head.devices) {
        if let Some(rate) = device.line_rate_bits_per_s {
            *count.entry(rate).or_default() += 1;
        }
    }
    let most = *count.values().max()?;
    let (rate, _) = count.into_iter().find(|(_, number)| *number == most)?;
    Rate::from_bits_per_s(rate)
}

/// The median over paths of the path's least delay.
fn base_delay<'t>(flows: impl Iterator<Item = &'t Flow>) -> Option<Span> {
    let mut least: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for flow in flows {
        if let Some(delays) = flow.delays.filter(|delays| delays.min_ns > 0) {
            let of_path = least.entry((&flow.from, &flow.to)).or_insert(i64::MAX);
            *of_path = delays.min_ns.min(*of_path);
        }
    }
    let mut all: Vec<i64> = least.into_values().collect();
    all.sort_unstable();
    all.get(all.len() / 2).map(|ns| Span::from_ns(*ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delays, Device, Head, VERSION};

    fn trace(clock: &str, rate: u64, flows: &[(&str, &str, i64, i64)]) -> Trace {
        let flow = |&(from, to, start_fleet_ns, owd): &(&str, &str, i64, i64)| Flow {
            from: from.into(),
            from_port: 1,
            to: to.into(),
            to_port: 2,
            start_fleet_ns,
            duration_ns: 10,
            size_bytes: 100,
            delays: Delays::of(&mut [owd]),
            held_ns: 0,
        };
        Trace {
            head: Head {
                version: VERSION,
                onramp: String::new(),
                addresses: "plain".into(),
                observes: true,
                clock: clock.into(),
                look_ns: 1,
                gap_ns: 1,
                devices: vec![Device {
                    name: "eth0".into(),
                    line_rate_bits_per_s: Some(rate),
                }],
            },
            flows: flows.iter().map(flow).collect(),
            hours: vec![],
            is_cut: false,
        }
    }

    #[test]
    fn flows_of_several_hosts_are_one_list_from_time_0() {
        let first = trace("huygens", 1_000, &[("b", "c", 70, 5), ("b", "b", 0, 1)]);
        let second = trace("huygens", 2_000, &[("a", "c", 60, 7), ("a", "c", 65, 3)]);
        let merged = merge(&[first, second]);
        assert_eq!(merged.hosts, ["a", "b", "c"]);
        let starts: Vec<_> = merged
            .flows
            .iter()
            .map(|f| (f.start.as_ns(), f.src))
            .collect();
        assert_eq!(starts, [(0, 0), (5, 0), (10, 1)]);
        assert!(merged.flows.iter().all(|flow| flow.dst == 2));
        assert_eq!(merged.span.as_ns(), 20);
        assert_eq!(merged.base_delay, Some(Span::from_ns(5)));
        assert_eq!(merged.line_rate, Rate::from_bits_per_s(1_000));
        assert!(merged.one_time && merged.senders == 2);
    }

    #[test]
    fn traces_without_a_common_clock_have_no_common_time() {
        let local = || trace("local", 1, &[("a", "b", 0, 1)]);
        assert!(merge(&[local()]).one_time);
        assert!(!merge(&[local(), local()]).one_time);
    }

    #[test]
    fn a_trace_without_flows_gives_none() {
        let merged = merge(&[trace("local", 1, &[])]);
        assert!(merged.flows.is_empty() && merged.hosts.is_empty());
        assert_eq!((merged.span, merged.base_delay), (Span::ZERO, None));
    }
}
