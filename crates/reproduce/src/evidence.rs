// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What recorded figures were made by, and what this version is: digests of the simulator's model and
//! of the data path.
//!
//! The simulator's digest is one of behaviour, so that rewriting it does not make results stale: a
//! figure's own scenario, cut short ([`probe`]), is simulated, and the outcomes of its flows are
//! hashed. docs/reproduction/models.json has the digest of each figure; a test compares. The data
//! path's is one of its sources without comments.

use crate::error::Result;
use crate::library::Library;
use crate::plan::Planned;
use crate::rows;
use crate::spec::{RowSpec, ScaleName};
use onramp_results::figure::{Figure, MadeBy, Row};
use onramp_scenario::Run;
use std::collections::BTreeMap;

/// Digests by figure.
pub type Models = BTreeMap<String, String>;

const MODELS: &str = include_str!("../../../docs/reproduction/models.json");
/// Digest of law/ and bpf/ without comments.
const DATA_PATH: &str = env!("ONRAMP_DATA_PATH");
/// A probe has one in so many parts of the duration and of the warm-up.
const SHORTER: i64 = 20;

/// The digests of all figures that this version was built with.
pub fn models() -> Models {
    serde_json::from_str(MODELS).expect("docs/reproduction/models.json maps figures to digests")
}

/// What makes figure `id` in this version.
pub fn made_by(id: &str) -> MadeBy {
    MadeBy {
        model: models().remove(id),
        data_path: Some(DATA_PATH.to_owned()),
    }
}

impl Planned {
    /// The digests of the sources that make it: for an experiment none of the simulator's, because no record knows it.
    pub fn made_by(&self) -> MadeBy {
        match self.scale {
            ScaleName::Own => made_by(""),
            _ => made_by(&self.id),
        }
    }
}

/// The runs whose behaviour is the digest of the figure `planned`: those of its first seed, cut short.
pub fn probe(planned: &Planned) -> Vec<Run> {
    let runs = planned.scenario.iter().flat_map(|scenario| scenario.runs());
    let is_first = |run: &&Run| run.params.get("seed").is_none_or(|seed| seed == "1");
    runs.filter(is_first)
        .map(|run| run.shortened(SHORTER))
        .collect()
}

/// Gives a recorded `figure` what its declaration alone has: title, question, notes, what the paper says, and the
/// verdicts, which follow from that and the recorded values. A new rule or claim needs no new run. Answers
/// `false`, and changes nothing, if the rows are not those that are declared.
///
/// # Errors
/// The figure is not declared, or not at that scale.
pub fn annotate(library: &Library, figure: &mut Figure) -> Result<bool> {
    let scale = match figure.scale.as_str() {
        "full" => ScaleName::Full,
        "rack" => ScaleName::Rack,
        _ => ScaleName::Quick,
    };
    let spec = Planned::read(library, &figure.id, scale)?.spec;
    let Some(rows) = as_declared(&figure.rows, &spec.rows) else {
        return Ok(false);
    };
    figure.rows = rows;
    figure.title = spec.title;
    figure.asked = spec.asked.trim().to_owned();
    Ok(true)
}

/// The `recorded` rows as `declared` now, in that order; none if they are others.
fn as_declared(recorded: &[Row], declared: &[RowSpec]) -> Option<Vec<Row>> {
    let mut left: Vec<&Row> = recorded.iter().collect();
    let mut rows = Vec::new();
    for spec in declared {
        let is_it = |row: &&Row| row.name == spec.name && row.by == spec.runs.by;
        let row = left.remove(left.iter().position(is_it)?);
        rows.push(rows::judged_again(spec, row));
    }
    left.is_empty().then_some(rows)
}

/// `figure` as docs/reproduction/ keeps it: without what other files have.
pub fn record(mut figure: Figure) -> Figure {
    (figure.plots, figure.resolved) = (Vec::new(), Vec::new());
    (figure.title, figure.asked) = (String::new(), String::new());
    for row in &mut figure.rows {
        row.note.clear();
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{measured, row};
    use onramp_results::figure::Verdict;

    #[test]
    fn recorded_values_are_judged_by_what_is_declared_now() {
        let declared = |name: &str, paper: &str| -> RowSpec {
            let text = format!("name = \"{name}\"\nsource = \"s\"\nas = \"ratio\"\n{paper}");
            toml::from_str(&text).unwrap()
        };
        let recorded = |name: &str, value: f64| {
            let mut one = measured("sim", Some(value), Verdict::NotReproduced);
            one.interval = Some([value * 0.99, value * 1.01]);
            row(name, 9.0, vec![one])
        };
        let rows = [recorded("RCT", 2.0), recorded("FCT", 0.5)];
        let fct = declared("FCT", "gives = \"words\"\nsays = \"less\"");
        let specs = [fct, declared("RCT", "paper = 2.1")];
        let again = as_declared(&rows, &specs).unwrap();
        let names: Vec<_> = again.iter().map(|row| (&*row.name, row.paper)).collect();
        assert_eq!(names, [("FCT", None), ("RCT", Some(2.1))]);
        let is_reproduced = |row: &Row| row.measured[0].verdict == Verdict::Reproduced;
        assert!(again.iter().all(is_reproduced));
        assert_eq!(as_declared(&rows, &specs[..1]), None);
        assert_eq!(as_declared(&rows[..1], &specs), None);
    }
}
