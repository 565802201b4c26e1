// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A `[[row]]` of a figure: which numbers of which runs are compared with what the paper gives.

use super::claim::{wrong, Paper, Says};
use super::{check_each, Choice, Each, ScaleName};
use onramp_results::figure::{By, Gives};
use onramp_results::unit_of;
use serde::Deserialize;

/// A number or statement of the paper, and how ours is computed. The keys of a `[[row]]` are flat: see `RowKeys`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RowKeys")]
pub struct RowSpec {
    /// What the row shows; with `each`, the value of the key is added.
    pub name: String,
    /// The unit where runs are not compared. Ratios have `x`, changes `%`.
    pub unit: Option<String>,
    /// The only scale at which the row is computed.
    pub at: Option<ScaleName>,
    /// One row for each value of one key.
    pub each: Each,
    /// What is measured of a run.
    pub measure: Measure,
    /// Which runs are measured.
    pub runs: Compared,
    /// What the paper gives.
    pub paper: Paper,
    /// Why our value differs, or what is compared where the paper has no number.
    pub note: String,
    /// Replaces `note` for the scale `rack`.
    pub rack_note: Option<String>,
}

/// What is measured of a run: exactly one of `metric`, `series`, `flows` and `cost`.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// A metric of `summary.json`: `incast.rct_us.p99`, `long.goodput_gbps.0`, `long.goodput_gbps.jain`;
    /// or of the run's cost: `cost.cpu_s`.
    pub metric: Option<String>,
    /// A metric of the same run; `metric` is divided by it.
    pub per: Option<String>,
    /// A statistic of a series.
    pub series: Option<SeriesMeasure>,
    /// A statistic of some of the flows.
    pub flows: Option<FlowsMeasure>,
    /// A number of docs/cost-table.json: a link's index and the number's name, with a dot between them.
    pub cost: Option<String>,
    /// A factor for a change of unit: 100 from a fraction to %, 0.001 from ns to us.
    pub times: Option<f64>,
}

/// Which runs are measured, and how their values make one number.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The runs that are measured.
    pub of: Choice,
    /// The runs that they are compared with.
    pub over: Option<Choice>,
    /// How `of` and `over` are compared; `value` where there is no `over`.
    pub by: By,
}

/// The keys of a `[[row]]`, as the file has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowKeys {
    name: String,
    unit: Option<String>,
    paper: Option<f64>,
    gives: Option<Gives>,
    #[serde(default)]
    source: String,
    at: Option<ScaleName>,
    each: Each,
    metric: Option<String>,
    per: Option<String>,
    series: Option<SeriesMeasure>,
    flows: Option<FlowsMeasure>,
    cost: Option<String>,
    #[serde(default)]
    of: Choice,
    over: Option<Choice>,
    #[serde(rename = "as", default)]
    by: By,
    times: Option<f64>,
    within: Option<f64>,
    tolerance: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    says: Option<Says>,
    margin: Option<f64>,
    #[serde(default)]
    note: String,
    rack_note: Option<String>,
}

impl From<RowKeys> for RowSpec {
    fn from(keys: RowKeys) -> RowSpec {
        RowSpec {
            name: keys.name,
            unit: keys.unit,
            at: keys.at,
            each: keys.each,
            measure: Measure {
                metric: keys.metric,
                per: keys.per,
                series: keys.series,
                flows: keys.flows,
                cost: keys.cost,
                times: keys.times,
            },
            runs: Compared {
                of: keys.of,
                over: keys.over,
                by: keys.by,
            },
            paper: Paper {
                number: keys.paper,
                gives: keys.gives,
                source: keys.source,
                within: keys.within,
                tolerance: keys.tolerance,
                at_least: keys.at_least,
                at_most: keys.at_most,
                says: keys.says,
                margin: keys.margin,
            },
            note: keys.note,
            rack_note: keys.rack_note,
        }
    }
}

/// A statistic of one series.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesMeasure {
    /// `queue_us`.
    pub name: String,
    /// `switch0-host0`.
    pub place: String,
    /// Only from here, in ms.
    pub from_ms: Option<f64>,
    /// Only to here.
    pub to_ms: Option<f64>,
    /// What is taken.
    pub statistic: Statistic,
    /// The value that `last_above_ms` and `fraction_below` compare with.
    #[serde(default)]
    pub level: f64,
}

/// Statistics of a series' points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// All points alike.
    Mean,
    /// Standard deviation.
    Deviation,
    /// How long after the start the last point above `level` comes, in ms.
    LastAboveMs,
    /// Part of the points below `level`.
    FractionBelow,
}

/// Part of measured flows, or of their bytes, that is at most so large.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsMeasure {
    /// Only this kind of traffic: `poisson`.
    pub kind: String,
    /// Sizes up to this.
    pub at_most_bytes: i64,
    /// Count bytes, not flows.
    #[serde(default)]
    pub by_bytes: bool,
}

impl RowSpec {
    /// What the paper gives for this row; none for a row beyond the paper.
    pub fn given(&self) -> Option<Gives> {
        self.paper
            .number
            .map(|_| Gives::Number)
            .or(self.paper.gives)
    }

    /// Whether the row is CPU time, which only real kernels have.
    pub fn is_cpu(&self) -> bool {
        let metric = self.measure.metric.as_deref();
        metric.is_some_and(|path| path.starts_with("cost.cpu"))
    }

    /// What the types do not say: the key and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        check_each(&self.each)?;
        self.measure.check()?;
        self.runs.check(self.measure.cost.is_some())?;
        self.paper.check(self.runs.by)?;
        if self.runs.by == By::Value && self.unit.is_none() {
            return wrong("unit", "missing; \"\" for a bare number");
        }
        Ok(())
    }
}

impl Measure {
    fn check(&self) -> Result<(), (String, String)> {
        let given = [
            self.metric.is_some(),
            self.series.is_some(),
            self.flows.is_some(),
            self.cost.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return wrong("metric", "not one of metric, series, flows and cost alone");
        }
        if self.per.is_some() && self.metric.is_none() {
            return wrong("per", "given, but no metric");
        }
        for (key, path) in [("metric", &self.metric), ("per", &self.per)] {
            if let Some(Err(reason)) = path.as_deref().map(unit_of) {
                return wrong(
                    key,
                    &format!("\"{}\", {reason}", path.as_deref().unwrap_or_default()),
                );
            }
        }
        Ok(())
    }
}

impl Compared {
    /// A number of the table of cost may be a ratio already.
    fn check(&self, cost: bool) -> Result<(), (String, String)> {
        match (self.by, &self.over) {
            (By::Ratio | By::Change, None) if !cost => wrong("over", "missing, but `as` compares"),
            (By::Value, Some(_)) => wrong("as", "missing: ratio or change"),
            _ => Ok(()),
        }
    }
}
