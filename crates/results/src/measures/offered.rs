// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The load that traffic offered, beside the one that its entry asks for: a short run draws few sizes.

use super::{metric, Measure, MeasureKind, Metrics, ALL, BOTH};
use crate::counters::Counters;
use crate::row::FlowRow;
use onramp_scenario::{Measured, Receivers, Run};
use serde_json::{json, Value};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "offered",
    metrics: &[
        metric(("traffic.N.offered", "1", "number", BOTH, ALL, "Payload of the flows of traffic entry N that started within the window, as a fraction of the rates of its receivers' links: what its `load` asks for. Only of incasts and Poisson flows with `load`")),
    ],
    of: |run| Box::new(Offered::new(run)),
};

/// The load that the flows of a run's window offer.
pub struct Offered<'a> {
    run: &'a Run,
    /// By entry of `[[traffic]]`, bytes that its receivers' links carry in a second; none: it has no `load`.
    capacities: Vec<Option<f64>>,
    /// By entry, payload that started within the window.
    bytes: Vec<u64>,
}

impl Offered<'_> {
    /// Of no flow yet.
    pub fn new(run: &Run) -> Offered<'_> {
        let resolved = json!(run);
        let entries = &resolved["traffic"];
        let capacity = |entry: usize| {
            let measured = run.traffic[entry].measured();
            let has_load = entries[entry]["load"].is_number();
            let is_counted = matches!(measured, Measured::Flows | Measured::Incasts) && has_load;
            is_counted.then(|| capacity(run, &entries[entry]["to"]))
        };
        let entries = 0..run.traffic.len();
        Offered {
            run,
            bytes: vec![0; entries.len()],
            capacities: entries.map(capacity).collect(),
        }
    }
}

impl Offered<'_> {
    /// Adds a flow of an entry that starts within the window.
    pub fn add(&mut self, entry: usize, bytes: u64) {
        self.bytes[entry] += bytes;
    }

    /// `traffic.N.offered` of each entry with a load.
    pub fn metrics(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let window_s = self.run.window().as_s_f64();
        let of = move |(entry, capacity): (usize, &Option<f64>)| {
            let offered = self.bytes[entry] as f64 / ((*capacity)? * window_s);
            Some((format!("traffic.{entry}.offered"), offered))
        };
        self.capacities.iter().enumerate().filter_map(of)
    }
}

/// Bytes that the links of the hosts `to` carry in a second.
fn capacity(run: &Run, to: &Value) -> f64 {
    let text = to.as_str().map_or_else(|| to.to_string(), str::to_owned);
    let receivers: Receivers = text.parse().expect("the scenario was checked");
    let rate = |host| run.network.link_of(host).rate.bits_per_s() as f64 / 8.0;
    receivers.hosts(run).into_iter().map(rate).sum()
}

impl Measure for Offered<'_> {
    fn add_flow(&mut self, flow: &FlowRow) {
        if flow.measured {
            self.add(flow.traffic as usize, flow.size_bytes.unwrap_or(0) as u64);
        }
    }

    fn finish(self: Box<Self>, _counters: &Counters, metrics: &mut Metrics) {
        for (name, offered) in self.metrics() {
            metrics.put(&name, offered);
        }
    }
}
