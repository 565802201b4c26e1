//! How wrong synchronised clocks were, as metrics.

use super::observe::Observer;
use crate::huygens::ClockWindow;
use onramp_results::Summary;
use onramp_sync::synthetic::FleetErrors;
use onramp_units::Time;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// How wrong synchronised clocks were, in the windows that ended under the traffic that counts.
pub(super) fn clock_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let told = observer.simulation.clock_windows();
    let counts = |w: &&ClockWindow| w.end > observer.warmup && w.end <= observer.end;
    let windows: Vec<&ClockWindow> = told.iter().filter(counts).collect();
    let mut all = FleetErrors::default();
    windows
        .iter()
        .for_each(|window| all.extend(window.errors.clone()));
    if let Some(errors) = magnitudes(&all) {
        metrics.insert("clock.error_ns".to_owned(), json!(errors));
        let within = all.within_2_sigma();
        metrics.insert("clock.within_2_sigma".to_owned(), json!(within));
    }
    if !windows.is_empty() {
        let windows: Vec<Value> = windows.into_iter().map(clock_window).collect();
        metrics.insert("clock.windows".to_owned(), json!(windows));
    }
}

fn clock_window(window: &ClockWindow) -> Value {
    json!({
        "end_ms": (window.end - Time::ZERO).as_s_f64() * 1e3,
        "error_ns": magnitudes(&window.errors),
        "within_2_sigma": window.errors.within_2_sigma(),
        "edge_sigma_ns": window.edge_sigma_ns,
        "lost_hosts": window.lost,
        "pairs": window.pairs,
        "pure": window.pure,
    })
}

fn magnitudes(errors: &FleetErrors) -> Option<Summary> {
    Summary::of(errors.ns.iter().map(|error| error.abs()).collect())
}
