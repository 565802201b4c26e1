// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs of scenarios, and what they came to.
#![allow(dead_code)] // each test that includes this file uses a part of it

use onramp_results::{RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{run, Watch};

/// All runs of a scenario.
pub fn simulate_all(scenario: &Scenario) -> Vec<(RunResult, Tables)> {
    let one = |(n, planned)| {
        let done = run(planned, n, Watch::default(), &mut |_| true);
        done.unwrap_or_else(|e| panic!("{e}")).into_tables()
    };
    scenario.runs().iter().enumerate().map(one).collect()
}

pub fn number(result: &RunResult, metric: &str) -> f64 {
    result.metrics[metric].as_f64().unwrap()
}

pub fn field(result: &RunResult, metric: &str, field: &str) -> f64 {
    result.metrics[metric][field].as_f64().unwrap()
}
