// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! An advice in words: for a terminal, and as a section of a page.

use onramp_report::{Section, Table};
use onramp_runs::count;
use onramp_trace::Merged;

use crate::doubt::Doubt;
use crate::judge::{Advice, COLUMNS};
use crate::plan::Plan;
use crate::{Assumptions, Question};

/// What an advice rests on, and what a record cannot show.
pub(crate) fn limits(
    flows: &Merged,
    remarks: Vec<String>,
    assumed: &Assumptions,
    windows: usize,
) -> Vec<String> {
    let from = |given: bool, recorded: bool| match (given, recorded) {
        (true, _) => "given",
        (false, true) => "of the record",
        (false, false) => "assumed, because the record does not have it",
    };
    let plan = Plan::of(flows, assumed);
    let mut lines = vec![
        format!(
            "{} of {} to {}; the busiest {} replayed, so quiet times gain less",
            count(flows.flows.len(), "flow"),
            count(flows.senders, "sender"),
            count(flows.hosts.len(), "host"),
            match windows {
                1 => "window was".to_owned(),
                many => format!("{many} windows were"),
            }
        ),
        format!(
            "line rate {} ({})",
            plan.rate,
            from(assumed.rate.is_some(), flows.line_rate.is_some())
        ),
        format!(
            "idle delay {} ({})",
            plan.delay,
            from(assumed.delay.is_some(), flows.base_delay.is_some())
        ),
        format!(
            "assumed: one switch with a buffer of {}, {}, all hosts with On-Ramp",
            assumed.buffer, assumed.cc
        ),
    ];
    if flows.senders < flows.hosts.len() {
        lines.push(format!(
            "not recorded, or sent nothing: {}; what they sent is missing, and an incast with them too",
            count(flows.hosts.len() - flows.senders, "host")
        ));
    }
    lines.extend(remarks);
    lines
}

impl Question {
    /// For a terminal.
    pub fn text(&self, advice: &Advice, doubts: &[Doubt]) -> String {
        let mut text = advice.text();
        if !doubts.is_empty() {
            text += &format!(
                "\nWith another buffer {} changes the 99th percentile by:\n",
                advice.best()
            );
        }
        for doubt in doubts {
            text += &format!("- {}: {}\n", doubt.buffer, doubt.change());
        }
        let helps = advice.recommends().is_some();
        if doubts.iter().any(|doubt| doubt.helps() != helps) {
            text += "So the answer depends on the buffer: find out that of your switches.\n";
        }
        text += "\nThis rests on:\n";
        for limit in &self.limits {
            text += &format!("- {limit}\n");
        }
        text
    }

    /// For a page. `directory` has the files.
    pub fn section(&self, advice: &Advice, doubts: &[Doubt], directory: &str) -> Section {
        let columns = |names: &[&str]| {
            names
                .iter()
                .map(|name| (String::new(), (*name).to_owned()))
                .collect()
        };
        let table = |title: &str, names: &[&str], rows: Vec<Vec<String>>| Table {
            title: title.to_owned(),
            folded: false,
            columns: columns(names),
            rows,
        };
        let of_doubt = |doubt: &Doubt| vec![doubt.buffer.clone(), doubt.change()];
        let mut tables = vec![table(
            "Settings, against no On-Ramp",
            &COLUMNS,
            advice.rows(),
        )];
        if !doubts.is_empty() {
            tables.push(table(
                &format!(
                    "{}, if the buffer is another than was assumed",
                    advice.best()
                ),
                &["buffer", "99th percentile of completion times"],
                doubts.iter().map(of_doubt).collect(),
            ));
        }
        let limits = self
            .limits
            .iter()
            .map(|limit| vec![limit.clone()])
            .collect();
        tables.push(table("What this rests on", &["limit"], limits));
        Section {
            name: "advice".to_owned(),
            title: advice.verdict(),
            asked: "What would On-Ramp do for this traffic? A setting is chosen in half of the windows and judged in the other half."
                .to_owned(),
            facts: vec![("Directory", directory.to_owned())],
            tables,
            ..Section::default()
        }
    }
}
