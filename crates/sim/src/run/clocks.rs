//! How wrong synchronised clocks were, as metrics.

use super::observe::Observer;
use crate::huygens::ClockWindow;
use onramp_results::Summary;
use onramp_units::Time;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// How wrong synchronised clocks were, in the windows that ended under the traffic that counts.
pub(super) fn clock_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let all = observer.simulation.clock_windows();
    let counts = |w: &&ClockWindow| w.end > observer.warmup && w.end <= observer.end;
    let windows: Vec<&ClockWindow> = all.iter().filter(counts).collect();
    let errors = |window: &&ClockWindow| window.errors_ns.clone();
    if let Some(errors) = magnitudes(windows.iter().flat_map(errors)) {
        metrics.insert("clock.error_ns".to_owned(), json!(errors));
        let sigmas = windows.iter().flat_map(|w| w.errors_in_sigmas.iter());
        metrics.insert("clock.within_2_sigma".to_owned(), json!(honest(sigmas)));
    }
    if !windows.is_empty() {
        let windows: Vec<Value> = windows.into_iter().map(clock_window).collect();
        metrics.insert("clock.windows".to_owned(), json!(windows));
    }
}

fn clock_window(window: &ClockWindow) -> Value {
    json!({
        "end_ms": (window.end - Time::ZERO).as_s_f64() * 1e3,
        "error_ns": magnitudes(window.errors_ns.iter().copied()),
        "within_2_sigma": honest(window.errors_in_sigmas.iter()),
        "edge_sigma_ns": window.edge_sigma_ns,
        "lost_hosts": window.lost,
        "pairs": window.pairs,
        "pure": window.pure,
    })
}

fn magnitudes(errors: impl Iterator<Item = f64>) -> Option<Summary> {
    Summary::of(errors.map(f64::abs).collect())
}

/// Part of the errors within two sigmas, if there are any.
fn honest<'a>(in_sigmas: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (mut within, mut all) = (0u32, 0u32);
    for error in in_sigmas {
        within += u32::from(error.abs() <= 2.0);
        all += 1;
    }
    (all > 0).then(|| f64::from(within) / f64::from(all))
}
