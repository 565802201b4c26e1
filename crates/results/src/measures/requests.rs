// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Requests and steps: groups of flows that are measured together.

use super::times::{is_nic, Times};
use super::{entries, metric, several, Measure, MeasureKind, Metrics, ALL, BOTH, NIC, SIM};
use crate::counters::Counters;
use crate::row::RequestRow;
use onramp_scenario::{traffic_kinds, Measured, Run, TrafficKind};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "requests",
    metrics: &[
        metric(("incast.rct_us", "us", "distribution", BOTH, ALL, "Request completion time of an incast: from the request (rack: the aggregator's first write; simulator: the start of the first answer) to the last byte of the last answer at the aggregator")),
        metric(("incast.rct_acked_us", "us", "distribution", SIM, NIC, "As `incast.rct_us`, up to the last acknowledgement at the last sender, as the paper's simulator measures it")),
        metric(("incast.unfinished", "1", "number", BOTH, ALL, "Requests of an incast that are unfinished 2 s after the end of the traffic")),
        metric(("request.rct_us", "us", "distribution", SIM, ALL, "Completion time of a request of kind request: from its first byte to the last byte of its answer")),
        metric(("request.rct_acked_us", "us", "distribution", SIM, NIC, "As `request.rct_us`, up to the last acknowledgement at the sender")),
        metric(("request.answered_per_s", "1/s", "number", SIM, ALL, "Requests of kind request whose answer arrived within the window, per second")),
        metric(("request.unfinished", "1", "number", SIM, ALL, "Requests of kind request that are unfinished 2 s after the end of the traffic")),
        metric(("all_to_all.step_us", "us", "distribution", SIM, ALL, "Duration of a step: from the start of its first flow to its last byte at a receiver")),
        metric(("all_to_all.step_acked_us", "us", "distribution", SIM, NIC, "As `all_to_all.step_us`, up to the last acknowledgement at a sender")),
        metric(("all_to_all.unfinished", "1", "number", SIM, ALL, "Steps that are unfinished 2 s after the end of the traffic")),
        metric(("KIND.rct_us", "us", "distribution", SIM, ALL, "As `incast.rct_us` or `request.rct_us`, of a kind of traffic that another crate has added")),
        metric(("KIND.rct_acked_us", "us", "distribution", SIM, NIC, "As `KIND.rct_us`, up to the last acknowledgement at the sender")),
        metric(("KIND.answered_per_s", "1/s", "number", SIM, ALL, "As `request.answered_per_s`, of a kind of traffic that another crate has added")),
        metric(("KIND.step_us", "us", "distribution", SIM, ALL, "As `all_to_all.step_us`, of a kind of traffic that another crate has added")),
        metric(("KIND.step_acked_us", "us", "distribution", SIM, NIC, "As `KIND.step_us`, up to the last acknowledgement at a sender")),
        metric(("KIND.unfinished", "1", "number", SIM, ALL, "Requests or steps of a kind of traffic that another crate has added that are unfinished 2 s after the end of the traffic")),
        metric(("traffic.N.rct_us", "us", "distribution", BOTH, ALL, "`incast.rct_us` or `request.rct_us` of traffic entry N, if several entries are of that kind")),
        metric(("traffic.N.rct_acked_us", "us", "distribution", SIM, NIC, "`incast.rct_acked_us` or `request.rct_acked_us` of traffic entry N, if several entries are of that kind")),
    ],
    of: |run| Box::new(Requests::new(run)),
};

struct Requests<'a> {
    run: &'a Run,
    /// By entry of `[[traffic]]`.
    times: Vec<Times>,
    /// Those whose answer arrived within the window, by entry.
    answered: Vec<u64>,
}

impl Requests<'_> {
    fn new(run: &Run) -> Requests<'_> {
        Requests {
            run,
            times: vec![Times::default(); run.traffic.len()],
            answered: vec![0; run.traffic.len()],
        }
    }

    fn put_kind(&self, kind: &TrafficKind, entries: &[usize], metrics: &mut Metrics) {
        let name = kind.name;
        let all = Times::of(entries.iter().map(|&entry| &self.times[entry]));
        metrics.put(&format!("{name}.unfinished"), all.unfinished);
        if kind.measured == Measured::Steps {
            return all.put(self.run, &format!("{name}.step"), "", metrics);
        }
        all.put(self.run, &format!("{name}.rct"), "", metrics);
        if kind.measured == Measured::Requests {
            let answered: u64 = entries.iter().map(|&entry| self.answered[entry]).sum();
            let answered_per_s = answered as f64 / self.run.window().as_s_f64();
            metrics.put(&format!("{name}.answered_per_s"), answered_per_s);
        }
        for &entry in several(entries) {
            let times = self.times[entry].clone();
            times.put(self.run, &format!("traffic.{entry}.rct"), "", metrics);
        }
    }

    fn is_in_window(&self, time_ns: i64) -> bool {
        (self.run.warmup.as_ns()..self.run.duration.as_ns()).contains(&time_ns)
    }
}

impl Measure for Requests<'_> {
    fn add_request(&mut self, request: &RequestRow) {
        let entry = request.traffic as usize;
        let end_ns = request.rct_ns.map(|rct_ns| request.start_ns + rct_ns);
        self.answered[entry] += u64::from(end_ns.is_some_and(|end_ns| self.is_in_window(end_ns)));
        if request.measured {
            let acked_ns = request.acked_ns.filter(|_| is_nic(self.run));
            self.times[entry].add(request.rct_ns, acked_ns);
        }
    }

    fn finish(self: Box<Self>, _counters: &Counters, metrics: &mut Metrics) {
        for kind in traffic_kinds().filter(|kind| kind.measured.is_together()) {
            let entries = entries(self.run, |traffic| traffic.kind() == kind);
            if !entries.is_empty() {
                self.put_kind(kind, &entries, metrics);
            }
        }
    }
}
