// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `figure.json`: the result of `onramp reproduce` for one figure or table of a paper. The report and
//! figures/ draw it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the layout of `figure.json`.
pub const SCHEMA: u32 = 4;

/// `figure.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of onramp.
    pub version: String,
    /// As on the command line: `f15`, `table1`.
    pub id: String,
    /// One line.
    pub title: String,
    /// The paper's question and setup, with the section of the paper.
    pub asked: String,
    /// `quick`, `full` or `rack`; empty for an experiment of one's own.
    pub scale: String,
    /// What is smaller at this scale than in the paper; empty at the paper's scale.
    pub scaled_down: String,
    /// Seeds of every statistical row.
    pub seeds: Vec<u64>,
    /// Whether runs are missing, because the command was interrupted.
    pub partial: bool,
    /// The paper's numbers beside ours.
    pub rows: Vec<Row>,
    /// Digests of the sources that made it.
    pub made_by: MadeBy,
    /// Charts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<Plot>,
    /// The scenario with all settings, the same for all worlds: a list of one, or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<Value>,
}

impl Figure {
    /// Whether it is an experiment of one's own, which no paper is compared with.
    pub fn is_own(&self) -> bool {
        self.scale.is_empty()
    }
}

/// Digests of the sources that made a figure. If a digest has changed, the results may change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Digest of the simulator's results in this figure's scenario; none if it ran nothing.
    pub model: Option<String>,
    /// Digest of the kernel programs and the law; none if no kernel ran.
    pub data_path: Option<String>,
}

/// In place of a digest: other sources than those of the command made some of the runs.
pub const ANOTHER_BUILD: &str = "another build";

impl MadeBy {
    /// Names what has changed since; none if nothing has.
    pub fn stale(&self, now: &MadeBy) -> Option<&'static str> {
        let differs = |then: &Option<String>, now: &Option<String>| then.is_some() && then != now;
        let model = differs(&self.model, &now.model);
        match (model, differs(&self.data_path, &now.data_path)) {
            (false, false) => None,
            (true, false) => Some("the simulator's model"),
            (false, true) => Some("the data path"),
            (true, true) => Some("the simulator's model and the data path"),
        }
    }
}

/// One number or statement of the paper, and our measurements of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name: `RCT mean, off / final`.
    pub name: String,
    /// `x`, `us`, `%`; none for a bare number.
    pub unit: String,
    /// How the number is computed from one or two runs.
    #[serde(rename = "as")]
    pub by: By,
    /// The form in which the paper gives it; none for a row beyond the paper.
    pub gives: Option<Gives>,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    /// Section of the paper.
    pub source: String,
    /// The measurement of each world that can measure it, the simulator first.
    pub measured: Vec<Measured>,
    /// Why it differs, or what was compared if the paper has no number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// How a number is computed from the runs of a seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The value of one run.
    #[default]
    Value,
    /// The value of one run divided by that of another.
    Ratio,
    /// The difference of two runs, in per cent of the second.
    Change,
}

impl By {
    /// `value` as a ratio: 1 is no effect, and a change of -50 % is 0.5.
    pub fn scale(self, value: f64) -> f64 {
        match self {
            By::Change => 1.0 + value / 100.0,
            By::Ratio | By::Value => value,
        }
    }
}

/// The form in which the paper gives a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// A number in the text or in a table.
    Number,
    /// A claim in words.
    Words,
    /// The shape of a plot.
    Picture,
}

impl Row {
    /// Our number divided by the paper's, with the interval. For changes in per cent, the ratio of
    /// 1 + change: reductions of 28 % and 21 % give 0.72 / 0.79. None if a number is missing or the
    /// ratio has no meaning.
    pub fn ratio(&self, measured: &Measured) -> Option<(f64, Option<[f64; 2]>)> {
        let paper = self.by.scale(self.paper?);
        let ratio = |ours: f64| self.by.scale(ours) / paper;
        let ends = measured.interval.map(|ends| ends.map(ratio));
        Some((ratio(measured.value?), ends)).filter(|(ratio, _)| ratio.is_finite())
    }
}

/// The measurement of one world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `sim`, `rack` or `bench`.
    pub world: String,
    /// Mean over seeds; none if nothing could be measured.
    pub value: Option<f64>,
    /// 95 % confidence interval of the mean over seeds.
    pub interval: Option<[f64; 2]>,
    /// Its agreement with the paper.
    pub verdict: Verdict,
}

/// How often each verdict was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// [`Verdict::Reproduced`].
    pub reproduced: usize,
    /// [`Verdict::PointEstimate`].
    pub point_estimate: usize,
    /// [`Verdict::DirectionOnly`].
    pub direction_only: usize,
    /// [`Verdict::NotReproduced`].
    pub not_reproduced: usize,
    /// [`Verdict::NotMeasured`].
    pub not_measured: usize,
}

impl Tally {
    /// Verdicts on the rows for which the paper gives `gives`, measured in a world that `counts`. Rows
    /// beyond the paper have no verdict.
    pub fn of<'a>(
        rows: impl IntoIterator<Item = &'a Row>,
        gives: Gives,
        counts: impl Fn(&str) -> bool,
    ) -> Tally {
        let mut tally = Tally::default();
        let rows = rows.into_iter().filter(|row| row.gives == Some(gives));
        for measured in rows
            .flat_map(|row| &row.measured)
            .filter(|m| counts(&m.world))
        {
            match measured.verdict {
                Verdict::Reproduced => tally.reproduced += 1,
                Verdict::PointEstimate => tally.point_estimate += 1,
                Verdict::DirectionOnly => tally.direction_only += 1,
                Verdict::NotReproduced => tally.not_reproduced += 1,
                Verdict::NotMeasured => tally.not_measured += 1,
                Verdict::Beyond => {}
            }
        }
        tally
    }

    /// Number of verdicts.
    pub fn total(&self) -> usize {
        let agree = self.reproduced + self.point_estimate;
        agree + self.direction_only + self.not_reproduced + self.not_measured
    }
}

/// The figures whose rows count: each at the largest scale at which the simulator ran it, and on the rack.
pub fn fullest(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    let is_full = |id: &str| figures.iter().any(|f| f.id == id && f.scale == "full");
    figures
        .iter()
        .filter(move |figure| figure.scale != "quick" || !is_full(&figure.id))
}

/// Worlds of `rows`, in the order of their first occurrence.
pub fn worlds<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut worlds: Vec<&str> = Vec::new();
    for measured in rows.into_iter().flat_map(|row| &row.measured) {
        if !worlds.contains(&measured.world.as_str()) {
            worlds.push(&measured.world);
        }
    }
    worlds
}

/// A world's name in texts.
pub fn world_name(world: &str) -> &str {
    match world {
        "sim" => "simulator",
        "rack" => "real kernel",
        other => other,
    }
}

/// The agreement of a measurement with the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval agrees with the paper.
    Reproduced,
    /// The mean agrees with the paper, but its interval does not, or there is none.
    PointEstimate,
    /// The whole interval has the paper's direction, but the size differs.
    DirectionOnly,
    /// Neither; the row's note explains why, where that is known.
    NotReproduced,
    /// We have no number: runs are missing, or they could not measure it.
    NotMeasured,
    /// The paper gives no number or shape for it.
    Beyond,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// One line.
    pub title: String,
    /// How its series are drawn.
    pub kind: PlotKind,
    /// For bars, `categories` has the names of the groups.
    pub x: Axis,
    /// Axis of the values.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// How series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// Points joined by lines.
    Line,
    /// Stacked lines, filled.
    Stacked,
    /// A cumulative distribution: y steps from point to point.
    Step,
    /// Bars in groups: `x` of a series counts `categories`.
    Bar,
    /// Points without lines.
    Scatter,
    /// Cells: `x` counts columns, `y` rows, and `z` is the cell's value.
    Heat,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// With its unit: `RCT (us)`.
    pub label: String,
    /// Logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Names of groups, columns or rows; empty for numbers.
    #[serde(default)]
    pub categories: Vec<String>,
}

/// The points of one name; all lists that are not empty have the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Along x.
    pub x: Vec<f64>,
    /// Along y; null where there is none.
    pub y: Vec<Option<f64>>,
    /// Lower ends of the 95 % confidence intervals, or of whiskers; empty without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Option<f64>>,
    /// Upper ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
    /// Values of cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub z: Vec<Option<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(by: By, paper: f64, value: f64, interval: Option<[f64; 2]>) -> Row {
        let measured = Measured {
            world: "sim".to_owned(),
            value: Some(value),
            interval,
            verdict: Verdict::Reproduced,
        };
        Row {
            name: "RCT".to_owned(),
            unit: "%".to_owned(),
            by,
            gives: Some(Gives::Number),
            paper: Some(paper),
            source: "5".to_owned(),
            measured: vec![measured],
            note: String::new(),
        }
    }

    #[test]
    fn the_ratio_of_two_falls_is_that_of_what_they_leave() {
        let row = row(By::Change, -19.0, -39.2, Some([-50.0, -19.0]));
        let (ratio, ends) = row.ratio(&row.measured[0]).unwrap();
        assert!((ratio - 0.608 / 0.81).abs() < 1e-9, "{ratio}");
        assert_eq!(ends, Some([0.5 / 0.81, 1.0]));
    }

    #[test]
    fn percentages_that_are_no_changes_are_divided() {
        let row = row(By::Value, 50.0, 75.0, None);
        assert_eq!(row.ratio(&row.measured[0]), Some((1.5, None)));
    }

    #[test]
    fn what_changed_since_is_named() {
        let by = |model: &str, data_path: Option<&str>| MadeBy {
            model: Some(model.to_owned()),
            data_path: data_path.map(str::to_owned),
        };
        let now = by("a", Some("b"));
        assert_eq!(by("a", None).stale(&now), None);
        assert_eq!(by("c", None).stale(&now), Some("the simulator's model"));
        assert_eq!(by("a", Some("d")).stale(&now), Some("the data path"));
    }

    #[test]
    fn rows_are_counted_apart_by_what_the_paper_gives() {
        let mut words = row(By::Ratio, 1.0, 2.0, None);
        words.gives = Some(Gives::Words);
        words.measured[0].verdict = Verdict::NotMeasured;
        let rows = [row(By::Ratio, 1.0, 2.0, None), words];
        let tally = |gives| Tally::of(&rows, gives, |world| world == "sim");
        assert_eq!(
            (
                tally(Gives::Number).reproduced,
                tally(Gives::Number).total()
            ),
            (1, 1)
        );
        assert_eq!(
            (
                tally(Gives::Words).not_measured,
                tally(Gives::Words).total()
            ),
            (1, 1)
        );
        assert_eq!(tally(Gives::Picture), Tally::default());
        assert_eq!(
            Tally::of(&rows, Gives::Number, |world| world == "rack").total(),
            0
        );
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let row = row(By::Value, 0.0, 75.0, None);
        assert_eq!(row.ratio(&row.measured[0]), None);
    }
}
