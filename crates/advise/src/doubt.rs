// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the best setting does if the buffer of the switch is another than was assumed: nobody outside the network's
//! operator knows it.

use onramp_results::{Estimate, SummaryFile};
use std::collections::BTreeMap;

use crate::judge::{change, doubt_about, windows_of, Measured};

/// The scenario's key of the buffer.
const BUFFER: &str = "network.buffer";

/// The effect with another buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The buffer, as the scenario has it.
    pub buffer: String,
    /// The 99th percentile of completion times, as a ratio to that without On-Ramp; none: nothing ended.
    pub p99: Option<Estimate>,
}

impl Doubt {
    /// Whether its gain is one for which a setting is recommended.
    pub fn helps(&self) -> bool {
        self.p99.is_some_and(|p99| doubt_about(p99).is_none())
    }

    /// The change of the 99th percentile, in words.
    pub fn change(&self) -> String {
        self.p99.map_or("nothing ended".to_owned(), change)
    }
}

/// By buffer, in the scenario's order.
pub(crate) fn doubts(summary: &SummaryFile) -> Vec<Doubt> {
    let mut buffers: Vec<String> = Vec::new();
    for buffer in summary.runs.iter().filter_map(|run| run.params.get(BUFFER)) {
        if !buffers.contains(buffer) {
            buffers.push(buffer.clone());
        }
    }
    buffers
        .into_iter()
        .map(|buffer| doubt(summary, buffer))
        .collect()
}

fn doubt(summary: &SummaryFile, buffer: String) -> Doubt {
    let runs = summary
        .runs
        .iter()
        .filter(|run| run.params.get(BUFFER) == Some(&buffer));
    let mut cases: BTreeMap<String, _> = windows_of(runs);
    let base = cases.remove(crate::plan::BASE).unwrap_or_default();
    let with = cases.into_values().next().unwrap_or_default();
    let pair = |(window, with): (&String, &Measured)| Some((with.p99_us, base.get(window)?.p99_us));
    let pairs: Vec<(f64, f64)> = with.iter().filter_map(pair).collect();
    let p99 = (!pairs.is_empty())
        .then(|| Estimate::of_ratios(&pairs))
        .flatten();
    Doubt { buffer, p99 }
}
