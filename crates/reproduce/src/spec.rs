// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Figures as `figures/ID.toml` declares them: what is asked, what runs, which numbers are compared and
//! what is drawn. A small closed set of forms; nothing is programmed. `figures/README.md` explains it.

mod claim;
mod experiment;
mod row;

pub use claim::{Claim, Range};
pub use row::{FlowsMeasure, RowSpec, SeriesMeasure, Statistic};

use crate::error::{Error, Result};
use onramp_results::figure::PlotKind;
use onramp_results::unit_of;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// A choice of runs: values of what the scenario varies, as `summary.json` gives them.
pub type Choice = BTreeMap<String, String>;

/// Fewest seeds from which an interval means something.
pub const LEAST_SEEDS: u64 = 5;

/// How much is run, and in which worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleName {
    /// In a minute, in the simulator.
    Quick,
    /// As the paper, in the simulator.
    Full,
    /// What a rack of real kernels can, there and in the simulator.
    Rack,
    /// All of an experiment of one's own, which has no other scale.
    #[serde(skip)]
    Own,
}

impl fmt::Display for ScaleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScaleName::Quick => "quick",
            ScaleName::Full => "full",
            ScaleName::Rack => "rack",
            ScaleName::Own => "",
        })
    }
}

/// `figures/ID.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// One line.
    pub title: String,
    /// Other figures of the paper that this one shows: `f22`.
    #[serde(default)]
    pub also: Vec<String>,
    /// What the paper asks and how it ran that, with the place; or what is asked beyond it.
    pub asked: String,
    /// Below `scenarios/`. A figure without one compares what was measured elsewhere.
    pub scenario: Option<String>,
    /// Places of series, as `onramp sim run --series` has them.
    #[serde(default)]
    pub series: Vec<String>,
    /// In a minute.
    pub quick: Scale,
    /// The paper's own. All figures that are shipped have it.
    pub full: Option<Scale>,
    /// On real kernels too, slowed down; only figures that declare it can be.
    pub rack: Option<Scale>,
    /// The paper's numbers.
    #[serde(default, rename = "row")]
    pub rows: Vec<RowSpec>,
    /// What to draw.
    #[serde(default, rename = "plot")]
    pub plots: Vec<PlotSpec>,
}

/// What a scale changes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Seeds 1 to this.
    pub seeds: u64,
    /// Why there are fewer than five.
    pub few_seeds: Option<String>,
    /// What is smaller than in the paper.
    #[serde(default)]
    pub scaled_down: String,
    /// Seconds on two processors.
    pub takes_s: f64,
    /// Keys of the scenario; a list is swept.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
    /// One line; with `each`, its value is added.
    pub title: String,
    /// What is drawn.
    pub show: Show,
    /// Only these runs.
    #[serde(default)]
    pub of: Choice,
    /// One plot for each value of one key.
    pub each: Each,
    /// Label of the x axis; else what it is.
    pub x_label: Option<String>,
    /// Label of the y axis, with unit; bars have their metric's.
    #[serde(default)]
    pub y_label: String,
    /// Logarithmic.
    #[serde(default)]
    pub log_x: bool,
    /// Logarithmic.
    #[serde(default)]
    pub log_y: bool,
}

/// What a chart shows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Show {
    /// Metrics, or one over a key's values, as groups of bars.
    Bars {
        /// What is drawn. Several are groups of bars, or with `x` bars of each group.
        metrics: Vec<String>,
        /// The key whose values are groups.
        x: Option<String>,
        /// Only these of its values, in this order; empty: all.
        #[serde(default)]
        groups: Vec<String>,
        /// The key whose values are the bars of a group.
        by: Option<String>,
        /// Divided by the same of these runs.
        relative_to: Option<Choice>,
    },
    /// A place's series over time, of the first seed.
    Time {
        /// `queue_us`.
        series: String,
        /// Where: a line each where there is one run, else the first.
        places: Vec<String>,
        /// A line for each run, called by this key's value.
        by: Option<String>,
        /// Upon each other.
        #[serde(default)]
        stacked: bool,
        /// Only from here.
        from_ms: Option<f64>,
        /// Only to here.
        to_ms: Option<f64>,
    },
    /// Distribution of a column of measured flows, of all seeds.
    Cdf {
        /// Which.
        column: FlowColumn,
        /// The kind of traffic whose rows count.
        kind: String,
        /// A line each.
        by: String,
    },
    /// The delays that packets met over what their senders knew, of the first seed; or the fractions of marked packets of
    /// rounds over their round-trip times.
    Pairs {
        /// `pair_last_owd_us`, `pair_last_rtt_us` or `round_rtt_us`.
        signal: String,
    },
}

/// What of flows is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowColumn {
    /// Payload.
    SizeBytes,
    /// Completion time.
    FctUs,
}

impl Show {
    /// How it is drawn.
    pub fn kind(&self) -> PlotKind {
        match self {
            Show::Bars { .. } => PlotKind::Bar,
            Show::Time { stacked: true, .. } => PlotKind::Stacked,
            Show::Time { .. } => PlotKind::Line,
            Show::Cdf { .. } => PlotKind::Step,
            Show::Pairs { .. } => PlotKind::Scatter,
        }
    }
}

impl Spec {
    /// Reads the text of `file`, its name for errors.
    ///
    /// # Errors
    /// What is wrong with it, with file, line and key.
    pub fn parse(text: &str, file: &str) -> Result<Spec> {
        let spec: Spec = toml::from_str(text).map_err(|error| Error::Format {
            file: file.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        spec.check().map_err(|(key, reason)| Error::Key {
            file: file.to_owned(),
            key,
            reason,
        })?;
        Ok(spec)
    }

    /// What `scale` changes; none: it is not declared.
    pub fn scale(&self, scale: ScaleName) -> Option<&Scale> {
        match scale {
            ScaleName::Quick | ScaleName::Own => Some(&self.quick),
            ScaleName::Full => self.full.as_ref(),
            ScaleName::Rack => self.rack.as_ref(),
        }
    }

    /// What the types do not say: the key and what is wrong.
    fn check(&self) -> Result<(), (String, String)> {
        if self.rack.is_some() && self.scenario.is_none() {
            return Err(("rack".to_owned(), "given, but no scenario".to_owned()));
        }
        for name in [ScaleName::Quick, ScaleName::Full, ScaleName::Rack] {
            let Some(scale) = self.scale(name) else {
                continue;
            };
            if scale.seeds == 0 {
                return Err((format!("{name}.seeds"), "0, below min 1".to_owned()));
            }
            if scale.seeds < LEAST_SEEDS && scale.few_seeds.is_none() {
                let reason = format!(
                    "{}, below {LEAST_SEEDS}, and few_seeds does not say why",
                    scale.seeds
                );
                return Err((format!("{name}.seeds"), reason));
            }
        }
        self.check_content()
    }

    /// What is wrong with its rows or plots.
    fn check_content(&self) -> Result<(), (String, String)> {
        for (n, row) in self.rows.iter().enumerate() {
            row.check()
                .map_err(|(key, reason)| (format!("row.{n}.{key}"), reason))?;
        }
        for (n, plot) in self.plots.iter().enumerate() {
            check_each(&plot.each).map_err(|(key, reason)| (format!("plot.{n}.{key}"), reason))?;
            if matches!(&plot.show, Show::Bars { x: None, groups, .. } if !groups.is_empty()) {
                let reason = "given, but not x, whose values they are".to_owned();
                return Err((format!("plot.{n}.show.bars.groups"), reason));
            }
            if matches!(&plot.show, Show::Time { places, .. } if places.is_empty()) {
                return Err((format!("plot.{n}.show.time.places"), "empty".to_owned()));
            }
            if let Show::Bars { metrics, .. } = &plot.show {
                check_metrics(metrics)
                    .map_err(|reason| (format!("plot.{n}.show.bars.metrics"), reason))?;
            }
        }
        Ok(())
    }

    /// With a row or plot for each value of its `each`, which may be all that `runs` have.
    #[must_use]
    pub fn expanded(mut self, runs: &[&Choice]) -> Spec {
        let rows = self.rows.iter().flat_map(|row| {
            each_of(&row.each, &row.runs.of, runs)
                .into_iter()
                .map(|each| {
                    let mut row = row.clone();
                    row.name += &suffix(&each);
                    row.runs.of.extend(each.clone());
                    if let Some(over) = &mut row.runs.over {
                        over.extend(each);
                    }
                    row
                })
        });
        let plots = self.plots.iter().flat_map(|plot| {
            each_of(&plot.each, &plot.of, runs).into_iter().map(|each| {
                let mut plot = plot.clone();
                plot.title += &suffix(&each);
                plot.of.extend(each);
                plot
            })
        });
        (self.rows, self.plots) = (rows.collect(), plots.collect());
        self
    }
}

/// A key and its values.
pub type Each = Option<BTreeMap<String, Values>>;

/// Values of a key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// These.
    These(Vec<String>),
    /// All that the chosen runs have, in their order.
    Of(Runs),
}

/// The word for the values of all chosen runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// All.
    All,
}

/// Whether there is at least one, and all are numbers of runs.
fn check_metrics(metrics: &[String]) -> Result<(), String> {
    if metrics.is_empty() {
        return Err("empty".to_owned());
    }
    let check = |path: &String| unit_of(path).map_err(|reason| format!("{path}, {reason}"));
    metrics.iter().try_for_each(|path| check(path).map(drop))
}

fn check_each(each: &Each) -> Result<(), (String, String)> {
    match each {
        Some(each) if each.len() != 1 => Err(("each".to_owned(), "not exactly one key".to_owned())),
        _ => Ok(()),
    }
}

/// The choices that `each` adds to `of`.
fn each_of(each: &Each, of: &Choice, runs: &[&Choice]) -> Vec<Choice> {
    let Some((key, values)) = each.as_ref().and_then(|each| each.first_key_value()) else {
        return vec![Choice::new()];
    };
    let values = match values {
        Values::These(values) => values.clone(),
        Values::Of(Runs::All) => values_of(key, of, runs),
    };
    // A row or plot of no run stays, so that it is an error.
    if values.is_empty() {
        return vec![Choice::new()];
    }
    let one = |value| Choice::from([(key.clone(), value)]);
    values.into_iter().map(one).collect()
}

/// The values of `key` in the runs of `of`, each once.
fn values_of(key: &str, of: &Choice, runs: &[&Choice]) -> Vec<String> {
    let is_of = |run: &&&Choice| of.iter().all(|(key, value)| run.get(key) == Some(value));
    let mut values = Vec::new();
    for value in runs.iter().filter(is_of).filter_map(|run| run.get(key)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

fn suffix(each: &Choice) -> String {
    each.values().map(|value| format!(", {value}")).collect()
}

#[cfg(test)]
mod tests;
