//! Figures as `figures/ID.toml` declares them: what is asked, what runs, which numbers are compared and
//! what is drawn. A small closed set of forms; nothing is programmed. `figures/README.md` explains it.

use crate::error::{Error, Result};
use onramp_results::figure::{By, Gives, PlotKind};
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
}

impl fmt::Display for ScaleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScaleName::Quick => "quick",
            ScaleName::Full => "full",
            ScaleName::Rack => "rack",
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
    /// The paper's own.
    pub full: Scale,
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

/// A number or statement of the paper, and how ours is computed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowSpec {
    /// What it is; with `each`, its value is added.
    pub name: String,
    /// Of `value`s; ratios have `x`, changes `%`.
    pub unit: Option<String>,
    /// The paper's number.
    pub paper: Option<f64>,
    /// What the paper has where it gives no number: bounds say what that comes to.
    pub gives: Option<Gives>,
    /// Where in the paper; empty for what is beyond it.
    #[serde(default)]
    pub source: String,
    /// Only at this scale.
    pub at: Option<ScaleName>,
    /// One row for each value of one key.
    pub each: Option<BTreeMap<String, Vec<String>>>,
    /// A metric of `summary.json`: `incast.rct_us.p99`, `long.goodput_gbps.0`, `long.goodput_gbps.jain`;
    /// or of its cost: `cost.cpu_s`.
    pub metric: Option<String>,
    /// A metric of the same run by which it is divided.
    pub per: Option<String>,
    /// Or a statistic of a series.
    pub series: Option<SeriesMeasure>,
    /// Or of the flows.
    pub flows: Option<FlowsMeasure>,
    /// Or a number of docs/cost-table.json: a path of keys and positions.
    pub cost: Option<String>,
    /// Which runs.
    #[serde(default)]
    pub of: Choice,
    /// Which runs they are compared with.
    pub over: Option<Choice>,
    /// How the two come to one number; `value` without `over`.
    #[serde(rename = "as", default)]
    pub by: By,
    /// A factor: from fractions to %, from ns to us.
    pub times: Option<f64>,
    /// Largest factor from the paper's number.
    pub within: Option<f64>,
    /// What the picture's shape, or the paper's direction, comes to.
    pub at_least: Option<f64>,
    /// The same from above.
    pub at_most: Option<f64>,
    /// Why ours differs; what was compared where there is only a picture.
    #[serde(default)]
    pub note: String,
    /// The same of what ran on the rack and beside it, instead of `note`.
    pub rack_note: Option<String>,
}

/// A statistic of a place's series.
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
    /// Of `last_above_ms` and `fraction_below`.
    #[serde(default)]
    pub level: f64,
}

/// Of a series' points.
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
    pub each: Option<BTreeMap<String, Vec<String>>>,
    /// Label of the x axis; else what it is.
    pub x_label: Option<String>,
    /// Label of the y axis, with unit.
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
        /// One, or several that are groups.
        metrics: Vec<String>,
        /// The key whose values are groups, where there is one metric.
        x: Option<String>,
        /// Only these of its values, in this order; empty: all.
        #[serde(default)]
        groups: Vec<String>,
        /// The key whose values are the bars of a group.
        by: String,
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
        /// Of this kind of traffic.
        kind: String,
        /// A line each.
        by: String,
    },
    /// The delays that packets met over what their senders knew, of the first seed.
    Pairs {
        /// `pair_last_owd_us` or `pair_last_rtt_us`.
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
        Ok(spec.expanded())
    }

    /// What `scale` changes; none: it is not declared.
    pub fn scale(&self, scale: ScaleName) -> Option<&Scale> {
        match scale {
            ScaleName::Quick => Some(&self.quick),
            ScaleName::Full => Some(&self.full),
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
        }
        Ok(())
    }

    /// With a row or plot for each value of its `each`.
    fn expanded(mut self) -> Spec {
        let rows = self.rows.iter().flat_map(|row| {
            each_of(&row.each).into_iter().map(|each| {
                let mut row = row.clone();
                row.name += &suffix(&each);
                row.of.extend(each.clone());
                if let Some(over) = &mut row.over {
                    over.extend(each);
                }
                row
            })
        });
        let plots = self.plots.iter().flat_map(|plot| {
            each_of(&plot.each).into_iter().map(|each| {
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

impl RowSpec {
    /// What the paper has for it; none for a row beyond the paper.
    pub fn given(&self) -> Option<Gives> {
        self.paper.map(|_| Gives::Number).or(self.gives)
    }

    /// Whether it is CPU time, which only real kernels take.
    pub fn is_cpu(&self) -> bool {
        let metric = self.metric.as_deref();
        metric.is_some_and(|path| path.starts_with("cost.cpu"))
    }

    fn check(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, reason: &str| Err((key.to_owned(), reason.to_owned()));
        check_each(&self.each)?;
        let m = self;
        let given = [
            m.metric.is_some(),
            m.series.is_some(),
            m.flows.is_some(),
            m.cost.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return wrong("metric", "not one of metric, series, flows and cost alone");
        }
        if m.per.is_some() && m.metric.is_none() {
            return wrong("per", "given, but no metric");
        }
        match (m.by, &m.over) {
            (By::Ratio | By::Change, None) if self.cost.is_none() => {
                return wrong("over", "missing, but `as` compares")
            }
            (By::Value, Some(_)) => return wrong("as", "missing: ratio or change"),
            _ => {}
        }
        if self.by == By::Value && self.unit.is_none() {
            return wrong("unit", "missing; \"\" for a bare number");
        }
        let compares = m.paper.or(m.at_least).or(m.at_most).is_some();
        let bounds = m.at_least.or(m.at_most).is_some();
        match (m.paper, m.gives) {
            (Some(_), Some(_)) => return wrong("gives", "given, but `paper` is a number"),
            (None, Some(Gives::Number)) => return wrong("paper", "missing, but it gives a number"),
            (None, Some(_)) if !bounds => {
                return wrong("at_least", "missing: what the paper gives as a bound")
            }
            (None, None) if bounds => {
                return wrong(
                    "gives",
                    "missing: \"words\" or \"picture\", or a number as `paper`",
                )
            }
            _ => {}
        }
        if compares && m.source.is_empty() {
            return wrong("source", "missing, but there is a number of the paper");
        }
        if self.within.is_some_and(|within| within < 1.0) {
            return wrong("within", "below min 1");
        }
        Ok(())
    }
}

type Each = Option<BTreeMap<String, Vec<String>>>;

fn check_each(each: &Each) -> Result<(), (String, String)> {
    match each {
        Some(each) if each.len() != 1 => Err(("each".to_owned(), "not exactly one key".to_owned())),
        _ => Ok(()),
    }
}

fn each_of(each: &Each) -> Vec<Choice> {
    let Some((key, values)) = each.as_ref().and_then(|each| each.first_key_value()) else {
        return vec![Choice::new()];
    };
    let one = |value: &String| Choice::from([(key.clone(), value.clone())]);
    values.iter().map(one).collect()
}

fn suffix(each: &Choice) -> String {
    each.values().map(|value| format!(", {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"title = "t"
asked = "a"
scenario = "s.toml"
[quick]
seeds = 5
takes_s = 1
[full]
seeds = 5
takes_s = 1
[[row]]
name = "RCT"
source = "s"
metric = "incast.rct_us.mean"
each = { "host.cc" = ["dcqcn", "hpcc"] }
of = { "onramp.law" = "off" }
over = { "onramp.law" = "final" }
as = "ratio"
"#;

    fn error(from: &str, to: &str) -> String {
        assert!(SPEC.contains(from), "{from}");
        let text = SPEC.replacen(from, to, 1);
        Spec::parse(&text, "figures/t.toml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_row_is_repeated_for_each_value() {
        let spec = Spec::parse(SPEC, "t").unwrap();
        let names: Vec<&str> = spec.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["RCT, dcqcn", "RCT, hpcc"]);
        assert_eq!(spec.rows[1].of["host.cc"], "hpcc");
        assert_eq!(spec.rows[1].over.as_ref().unwrap()["host.cc"], "hpcc");
    }

    #[test]
    fn errors_name_file_and_key() {
        for (from, to, expected) in [
            (
                "title =",
                "tilte =",
                "figures/t.toml: TOML parse error at line 1",
            ),
            ("metric =", "metrik =", "unknown field `metrik`"),
            (
                "seeds = 5",
                "seeds = 4",
                "figures/t.toml: quick.seeds is 4, below 5",
            ),
            (
                "seeds = 5",
                "seeds = 0",
                "figures/t.toml: quick.seeds is 0, below min 1",
            ),
            ("as = \"ratio\"", "", "figures/t.toml: row.0.as is missing"),
            ("over = {", "# {", "figures/t.toml: row.0.over is missing"),
            (
                "metric = \"incast.rct_us.mean\"",
                "",
                "row.0.metric is not one of",
            ),
            (
                "\"host.cc\" = [\"dcqcn\", \"hpcc\"]",
                "",
                "row.0.each is not exactly one key",
            ),
            ("as = \"ratio\"", "as = \"half\"", "unknown variant `half`"),
            (
                "metric = \"incast.rct_us.mean\"",
                "cost = \"3.sender_percent\"\nper = \"drops\"",
                "row.0.per is given, but no metric",
            ),
            (
                "[[row]]",
                "[rack]\nseeds = 3\ntakes_s = 1\n[[row]]",
                "figures/t.toml: rack.seeds is 3, below 5",
            ),
            (
                "[[row]]",
                "[rack]\nseeds = 5\ntakes_s = 1\nhosts = 3\n[[row]]",
                "unknown field `hosts`",
            ),
            (
                "scenario = \"s.toml\"\n[quick]",
                "[rack]\nseeds = 5\ntakes_s = 1\n[quick]",
                "figures/t.toml: rack is given, but no scenario",
            ),
            (
                "as = \"ratio\"",
                "as = \"ratio\"\nat = \"slow\"",
                "unknown variant `slow`",
            ),
            (
                "as = \"ratio\"",
                "as = \"ratio\"\nat_least = 2",
                "row.0.gives is missing: \"words\" or \"picture\"",
            ),
            (
                "as = \"ratio\"",
                "as = \"ratio\"\ngives = \"picture\"",
                "row.0.at_least is missing",
            ),
            (
                "source = \"s\"",
                "paper = 2",
                "row.0.source is missing, but there is a number of the paper",
            ),
        ] {
            let error = error(from, to);
            assert!(error.contains(expected), "{error}");
        }
    }
}
