// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Small figures for tests.

use onramp_results::figure::{By, Figure, Gives, MadeBy, Measured, Row, Verdict};

pub(crate) fn measured(world: &str, value: Option<f64>, verdict: Verdict) -> Measured {
    Measured {
        world: world.to_owned(),
        value,
        interval: None,
        verdict,
    }
}

pub(crate) fn row(name: &str, paper: f64, measured: Vec<Measured>) -> Row {
    Row {
        name: name.to_owned(),
        unit: "x".to_owned(),
        by: By::Ratio,
        gives: Some(Gives::Number),
        paper: Some(paper),
        source: "5.2".to_owned(),
        measured,
        note: String::new(),
    }
}

pub(crate) fn figure(scale: &str, rows: Vec<Row>) -> Figure {
    Figure {
        schema: onramp_results::figure::SCHEMA,
        version: "0".to_owned(),
        id: "f9".to_owned(),
        title: "RCT".to_owned(),
        asked: "Better?".to_owned(),
        scale: scale.to_owned(),
        scaled_down: String::new(),
        seeds: vec![1, 2],
        partial: false,
        rows,
        made_by: MadeBy::default(),
        plots: Vec::new(),
        resolved: Vec::new(),
    }
}
