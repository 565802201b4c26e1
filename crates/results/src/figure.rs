//! What `onramp reproduce` found for one of a paper's figures or tables: `figure.json`. The report and
//! figures/ draw it; nothing about it is known anywhere else.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `figure.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// Of onramp.
    pub version: String,
    /// As on the command line: `f15`, `table1`.
    pub id: String,
    /// One line.
    pub title: String,
    /// What the paper asks and how it says it ran that, with the place in the paper.
    pub asked: String,
    /// `quick`, `full` or `rack`.
    pub scale: String,
    /// What this scale left smaller than the paper; empty at the paper's own.
    pub scaled_down: String,
    /// Seeds of every statistical row.
    pub seeds: Vec<u64>,
    /// Whether runs are missing, because somebody ended it early.
    pub partial: bool,
    /// The paper's numbers beside ours.
    pub rows: Vec<Row>,
    /// What to draw, in order.
    pub plots: Vec<Plot>,
    /// The scenario with everything resolved, the same for all worlds: a list of one, or none.
    pub resolved: Vec<Value>,
}

/// One number or statement of the paper, and what we measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is: `RCT mean, off / final`.
    pub name: String,
    /// `x`, `us`, `%`; none for a bare number.
    pub unit: String,
    /// What the paper's text says; none where the number is only in a picture.
    pub paper: Option<f64>,
    /// Where in the paper.
    pub source: String,
    /// What each world measured that can, the simulator first.
    pub measured: Vec<Measured>,
    /// Why it differs, what was compared where the paper has only a picture.
    pub note: String,
}

/// What one world measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `sim`, `rack` or `bench`.
    pub world: String,
    /// Mean over seeds; none where nothing could be measured.
    pub value: Option<f64>,
    /// 95 % confidence interval of it over seeds.
    pub interval: Option<[f64; 2]>,
    /// How far it is the paper's.
    pub verdict: Verdict,
}

/// Worlds of `rows`, in the order in which they come.
pub fn worlds<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut worlds: Vec<&str> = Vec::new();
    for measured in rows.into_iter().flat_map(|row| &row.measured) {
        if !worlds.contains(&measured.world.as_str()) {
            worlds.push(&measured.world);
        }
    }
    worlds
}

/// A world's name for people.
pub fn world_name(world: &str) -> &str {
    match world {
        "sim" => "simulator",
        "rack" => "real kernel",
        other => other,
    }
}

/// How far the paper was reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within a factor of 1.5 of the paper's number, or of its picture's shape.
    Reproduced,
    /// It goes the same way.
    DirectionOnly,
    /// It does not; the row's note says why.
    NotReproduced,
    /// The paper has no number or shape for it.
    Beyond,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// One line.
    pub title: String,
    /// How its series are drawn.
    pub kind: PlotKind,
    /// Of bars, the names of the groups are in `categories`.
    pub x: Axis,
    /// The other one.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// How series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// Points joined.
    Line,
    /// Lines upon each other, filled.
    Stacked,
    /// A cumulative distribution: y steps from point to point.
    Step,
    /// Bars in groups: `x` of a series counts `categories`.
    Bar,
    /// Points alone.
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

/// Points of one name; all lists given are of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// In the legend.
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
    /// Of cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub z: Vec<Option<f64>>,
}
