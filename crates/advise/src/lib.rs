// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether On-Ramp would help a network whose traffic is known. The traffic's busiest windows become a scenario that
//! replays them with and without On-Ramp. A setting is chosen in half of the windows and judged in the other half.
//!
//! Does not: read files, or simulate. The caller simulates the [scenario](Question::files), and gives the results back.
#![warn(missing_docs)]

mod doubt;
mod error;
mod judge;
mod page;
mod plan;

pub use doubt::Doubt;
pub use error::{AdviseError, Result};
pub use judge::Advice;

use onramp_results::SummaryFile;
use onramp_trace::Merged;
use onramp_units::{Bytes, Rate, Span};
use plan::{Plan, Window};

/// The scenario among the [files](Question::files).
pub const SCENARIO: &str = "scenario.toml";
/// The scenario of the doubts.
pub const DOUBTS: &str = "doubts.toml";

/// What is assumed of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumptions {
    /// Line rate of the hosts; none: that of the record.
    pub rate: Option<Rate>,
    /// One-way delay of an idle path; none: the least of the record.
    pub delay: Option<Span>,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Congestion control of the hosts.
    pub cc: String,
    /// Queueing discipline that the hosts have without On-Ramp.
    pub qdisc: String,
    /// Longest part of the record that one run replays.
    pub window: Span,
}

/// What the traffic is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    plan: Plan,
    windows: Vec<Window>,
    limits: Vec<String>,
}

impl Question {
    /// What `flows` are asked. `remarks` say what the record cannot show.
    ///
    /// # Errors
    /// No flows, or in too few windows.
    pub fn of(flows: &Merged, remarks: Vec<String>, assumed: &Assumptions) -> Result<Question> {
        if flows.flows.is_empty() {
            return Err(AdviseError::NoFlows);
        }
        let windows = plan::windows(flows, assumed.window)?;
        Ok(Question {
            plan: Plan::of(flows, assumed),
            limits: page::limits(flows, remarks, assumed, windows.len()),
            windows,
        })
    }

    /// Names and texts of files of one directory: the scenario, and what it names.
    pub fn files(&self) -> Vec<(String, String)> {
        let list = |(number, window): (usize, &Window)| (plan::list_name(number), window.csv());
        let scenario = (SCENARIO.to_owned(), self.plan.scenario(&self.windows));
        let lists = self.windows.iter().enumerate().map(list);
        std::iter::once(scenario).chain(lists).collect()
    }

    /// The advice that the runs of the scenario give.
    ///
    /// # Errors
    /// Too few flows ended.
    pub fn judge(&self, summary: &SummaryFile) -> Result<Advice> {
        judge::judge(summary)
    }

    /// The scenario [`DOUBTS`], in the same directory: the best setting, where the buffer is another than was assumed.
    pub fn doubts(&self, advice: &Advice) -> String {
        self.plan.doubts(&self.windows, advice.best())
    }

    /// What the runs of the doubts show.
    pub fn doubted(&self, summary: &SummaryFile) -> Vec<Doubt> {
        doubt::doubts(summary)
    }

    /// What an answer rests on, and what the record cannot show.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }
}
