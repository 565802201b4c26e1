// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs scenarios/table.toml and renders docs/results/table.md.

use onramp_results::RunResult;
use onramp_scenario::Scenario;
use onramp_sim::run::{run, Watch};
use std::fmt::Write;

const SCENARIO: &str = include_str!("../../../../scenarios/table.toml");

/// Metric, field of its distribution, and decimals; then the heading.
type Column = (&'static str, &'static str, usize, &'static str);

const COLUMNS: [Column; 9] = [
    ("incast.rct_us", "mean", 2, "RCT mean us"),
    ("incast.rct_us", "p99", 2, "RCT p99 us"),
    ("background.fct_us.small", "mean", 2, "FCT small us"),
    ("background.fct_us.medium", "mean", 2, "medium us"),
    ("background.fct_us.large", "mean", 1, "large us"),
    ("drops", "", 0, "drops"),
    ("timeouts", "", 0, "timeouts"),
    ("queue_us", "mean", 3, "queue mean us"),
    ("queue_us", "p99", 2, "queue p99 us"),
];

/// The whole of docs/results/table.md.
pub fn table() -> String {
    let scenario = Scenario::parse(SCENARIO, "table.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut text = format!("# {}\n\n", scenario.title());
    text += "<!-- cargo run -p onramp-sim --example table > docs/results/table.md -->\n\n";
    text += "These results of the simulator show when the model changes: `crates/sim/tests/table.rs` compares them.\n";
    text += "The scenario is `scenarios/table.toml`.\n\n";
    let headings: Vec<&str> = COLUMNS.iter().map(|column| column.3).collect();
    let _ = writeln!(text, "| case | buffer | load | {} |", headings.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(3 + COLUMNS.len()));
    for (index, planned) in scenario.runs().iter().enumerate() {
        let done = run(planned, index, Watch::default(), &mut |_| true);
        let (result, _) = done.unwrap_or_else(|e| panic!("{e}")).into_tables();
        let _ = writeln!(text, "{}", row(&result));
    }
    text
}

fn row(run: &RunResult) -> String {
    let params = ["case", "network.buffer", "traffic.0.load"].map(|key| run.params[key].clone());
    let cell = |&(metric, field, decimals, _): &Column| {
        let value = &run.metrics[metric];
        let value = if field.is_empty() {
            value
        } else {
            &value[field]
        };
        value
            .as_f64()
            .map_or("-".to_owned(), |v| format!("{v:.decimals$}"))
    };
    let cells: Vec<String> = params.into_iter().chain(COLUMNS.iter().map(cell)).collect();
    format!("| {} |", cells.join(" | "))
}
