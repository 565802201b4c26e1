// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Results of a simulated run: its rows (rows.rs, series.rs), and its counters, from which crates/results
//! computes the metrics.

use super::clocks::clock_counters;
use super::observe::{Instant, Observer};
use super::rows::{Requests, Rows};
use super::series::{pair_rows, round_rows, rtt_rows};
use crate::deadlock::Deadlock;
use crate::host::config::MSS;
use crate::host::delays::Delays;
use crate::host::edge::OR_ACK_BYTES;
use crate::host::kernel::rounds::Round;
use crate::host::kernel::signals::Pair;
use onramp_cc::Mistake;
use onramp_results::{
    Counters, FlowRow, Measures, PairSample, PortCounters, Received, RequestRow, Resent,
    RoundSample, RunResult, SeriesRow, SimCounters, Summary, Tables, WorldCounters,
};
use onramp_scenario::{HostKind, HostSettings, Qdisc, Run};
use serde_json::json;
use std::collections::BTreeMap;

/// The results of a run. Rows are made one at a time, because all of them may need too much memory.
pub struct Report {
    result: RunResult,
    requests: Requests,
    observer: Observer,
    /// Names of ports.
    names: Vec<String>,
    /// Why the run used one thread although several were available, if it did. Threads are not a result.
    pub why_one_thread: Option<&'static str>,
    /// What a part of another crate did wrong. The run ended there, and its result is partial.
    pub mistake: Option<Mistake>,
    /// A deadlock of priority flow control in which the run ended.
    pub deadlock: Option<Deadlock>,
}

impl Report {
    /// The report of run `index` of a scenario; `whole`: the run was not interrupted.
    pub(super) fn new(
        run: &Run,
        index: usize,
        names: Vec<String>,
        observer: Observer,
        whole: bool,
    ) -> Report {
        let (mut requests, mut measures) = (Requests::default(), Measures::new(run));
        for (_, flow) in rows(&observer).each() {
            requests.add(&flow);
            measures.add_flow(&flow);
        }
        for (traffic, request) in rows(&observer).missing() {
            requests.miss(traffic, request);
        }
        for request in requests.rows(observer.warmup) {
            measures.add_request(&request);
        }
        let counters = observer.simulation.counters();
        let result = RunResult {
            run: index,
            params: run.params.clone(),
            resolved: json!(run),
            partial: !whole,
            metrics: match whole {
                true => measures.finish(&self::counters(run, &observer, &names)),
                false => BTreeMap::new(),
            },
            cost: BTreeMap::from([
                ("events".to_owned(), counters.events as f64),
                ("packet_hops".to_owned(), counters.packet_hops as f64),
                ("flows".to_owned(), observer.labels.count() as f64),
            ]),
        };
        Report {
            deadlock: observer.simulation.deadlock(&names),
            result,
            requests,
            observer,
            names,
            why_one_thread: None,
            mistake: None,
        }
    }

    /// Metrics; an interrupted run has none.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// Flows that have started, in the plan's order.
    pub fn flows(&self) -> impl Iterator<Item = FlowRow> + '_ {
        let rows = rows(&self.observer);
        rows.each().map(move |(plan, row)| FlowRow {
            path: rows.path(plan, &self.names).map(Into::into),
            ..row
        })
    }

    /// Requests that have started, by entry of the scenario's traffic and number.
    pub fn requests(&self) -> impl Iterator<Item = RequestRow> + '_ {
        self.requests.rows(self.observer.warmup)
    }

    /// Values by time.
    pub fn series(&self) -> impl Iterator<Item = SeriesRow> + '_ {
        let simulation = &self.observer.simulation;
        let pairs = pair_rows(&simulation.pairs());
        let rtts = rtt_rows(&simulation.rtt_samples());
        let rounds = round_rows(&simulation.rounds());
        let rows = self.observer.series.rows().iter().cloned();
        rows.chain(pairs).chain(rtts).chain(rounds)
    }

    /// The results with all rows in memory.
    pub fn into_tables(self) -> (RunResult, Tables) {
        let tables = Tables {
            flows: self.flows().collect(),
            requests: self.requests().collect(),
            series: self.series().collect(),
        };
        (self.result, tables)
    }
}

fn rows(observer: &Observer) -> Rows<'_> {
    Rows {
        simulation: &observer.simulation,
        labels: &observer.labels,
        warmup: observer.warmup,
        now: observer.simulation.now(),
    }
}

/// The counters of the simulation.
fn counters(run: &Run, observer: &Observer, names: &[String]) -> Counters {
    let (warm, end): (&Instant, &Instant) = (&observer.at_warmup, &observer.at_end);
    let (before, after) = (warm.counters, observer.simulation.counters());
    let retransmissions = after.retransmissions - before.retransmissions;
    let long = warm.long.iter().zip(&end.long);
    let ports = port_counters(observer, names);
    Counters {
        received: Received {
            background_bytes: (end.background - warm.background).get(),
            long_bytes: long.map(|(&warm, &end)| (end - warm).get()).collect(),
        },
        resent: Resent {
            retransmissions,
            timeouts: after.timeouts - before.timeouts,
            again: retransmissions,
            sent: after.data_packets - before.data_packets,
        },
        drops: after.drops - before.drops,
        port: ports[0].clone(),
        ports: match run.measure().ports.is_empty() {
            true => Vec::new(),
            false => ports,
        },
        clocks: clock_counters(observer),
        world: WorldCounters::Sim(sim_counters(run, observer)),
    }
}

/// The measured ports. The first also has the delays to the measured host.
fn port_counters(observer: &Observer, names: &[String]) -> Vec<PortCounters> {
    let mut ports = observer.ports.counters(&observer.simulation, names);
    let delays = observer.delays.as_ref();
    if let Some(first) = ports.first_mut() {
        first.owd_us = delays.filter(|delays| delays.count() > 0).map(delays_us);
    }
    ports
}

fn sim_counters(run: &Run, observer: &Observer) -> SimCounters {
    let (before, after) = (&observer.at_warmup.counters, observer.simulation.counters());
    let in_window = observer.at_end.counters.or_acks - before.or_acks;
    let codel = |of: HostSettings<'_>| of.host.qdisc == Qdisc::FqCodel;
    let has_codel = run.host.kind == HostKind::Kernel && run.each_settings().any(codel);
    let sample = |pair: &Pair| PairSample {
        owd: pair.owd,
        last_owd: pair.last_owd,
        last_rtt: pair.last_rtt,
    };
    let of_round = |round: &Round| RoundSample {
        packets: round.packets,
        marked: round.marked,
        least_rtt: round.least_rtt,
    };
    SimCounters {
        long_resent: long_resent(run, observer),
        marks: after.marks - before.marks,
        or_acks: after.or_acks - before.or_acks,
        or_ack_bytes: in_window * u64::from(OR_ACK_BYTES),
        pfc_pauses: after.pauses - before.pauses,
        host_drops: has_codel.then_some(after.host_drops),
        rtt_us: observer.simulation.rtts().as_ref().map(delays_us),
        pairs: observer.simulation.pairs().iter().map(sample).collect(),
        rounds: observer.simulation.rounds().iter().map(of_round).collect(),
    }
}

/// Fraction of packets sent again, by long flow of kernel hosts. Its packets are full.
fn long_resent(run: &Run, observer: &Observer) -> Vec<f64> {
    if run.host.kind != HostKind::Kernel {
        return Vec::new();
    }
    let (warm, end) = (&observer.at_warmup, &observer.at_end);
    let received = warm.long.iter().zip(&end.long);
    let packets = received.map(|(&warm, &end)| (end - warm).get() / u64::from(MSS));
    let again = warm.long_again.iter().zip(&end.long_again);
    let again = again.map(|(&warm, &end)| u64::from(end - warm));
    let sent = packets.zip(again);
    sent.map(|(packets, again)| again as f64 / (packets + again).max(1) as f64)
        .collect()
}

fn delays_us(delays: &Delays) -> Summary {
    Summary {
        n: Some(delays.count()),
        mean: delays.mean_us(),
        p50: delays.quantile_us(0.5),
        p90: delays.quantile_us(0.9),
        p95: delays.quantile_us(0.95),
        p99: delays.quantile_us(0.99),
        max: delays.longest_us(),
    }
}
