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
use crate::spec::ScaleName;
use onramp_results::figure::{Figure, MadeBy};
use onramp_scenario::Run;
use std::collections::BTreeMap;

/// Digests by figure.
pub type Models = BTreeMap<String, String>;

const MODELS: &str = include_str!("../../../docs/reproduction/models.json");
/// Of law/ and bpf/ without comments.
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

/// The runs whose behaviour is the digest of the figure `planned`: those of its first seed, cut short.
pub fn probe(planned: &Planned) -> Vec<Run> {
    let runs = planned.scenario.iter().flat_map(|scenario| scenario.runs());
    let is_first = |run: &&Run| run.params.get("seed").is_none_or(|seed| seed == "1");
    runs.filter(is_first)
        .map(|run| Run {
            duration: run.duration / SHORTER,
            warmup: run.warmup / SHORTER,
            ..run.clone()
        })
        .collect()
}

/// Gives a recorded `figure` the texts of its declaration, which alone has them: title, question, notes.
/// Answers `false`, and changes nothing, if the rows are not those that are declared.
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
    let declared = spec.rows;
    let key = |name: &str, paper: Option<f64>| (name.to_owned(), paper.map(f64::to_bits));
    let of_rows = figure.rows.iter().map(|row| key(&row.name, row.paper));
    if !of_rows.eq(declared.iter().map(|row| key(&row.name, row.paper.number))) {
        return Ok(false);
    }
    figure.title = spec.title;
    figure.asked = spec.asked.trim().to_owned();
    for (row, declared) in figure.rows.iter_mut().zip(declared) {
        row.note = declared.note.trim().to_owned();
    }
    Ok(true)
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
