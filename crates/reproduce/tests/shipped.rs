// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The figures that ship: every one can be run at its scales, and the table in docs is current.

use onramp_reproduce::{Library, Planned, ScaleName};

#[test]
fn every_figure_can_be_run_at_its_scales() {
    for (scale, least) in [
        (ScaleName::Quick, 20),
        (ScaleName::Full, 20),
        (ScaleName::Rack, 4),
    ] {
        let all = Planned::all(&Library::BuiltIn, scale).unwrap_or_else(|e| panic!("{e}"));
        assert!(all.len() >= least);
        for figure in &all {
            assert!(!figure.spec.rows.is_empty(), "{}", figure.id);
            let is_declared = figure.scale == ScaleName::Full
                || figure.scenario.is_none()
                || !figure.settings.scaled_down.is_empty()
                || figure.settings.set.is_empty();
            assert!(
                is_declared,
                "{} does not say what it scales down",
                figure.id
            );
        }
    }
}

#[test]
fn every_figure_of_the_paper_with_results_is_there() {
    for id in [
        "f1", "f2", "f5", "f6", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17",
        "f18", "f19", "f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "sec4", "table1",
    ] {
        Planned::read(&Library::BuiltIn, id, ScaleName::Quick).unwrap_or_else(|e| panic!("{e}"));
    }
    let unknown = Planned::read(&Library::BuiltIn, "f99", ScaleName::Quick).unwrap_err();
    let unknown = unknown.to_string();
    assert!(
        unknown.starts_with("unknown figure f99, expected one of f1, f2,"),
        "{unknown}"
    );
    assert!(unknown.contains("f22"), "{unknown}");
}

#[test]
fn only_what_declares_a_rack_and_fits_it_runs_there() {
    let error = Planned::read(&Library::BuiltIn, "f15", ScaleName::Rack).unwrap_err();
    assert_eq!(
        error.to_string(),
        "figure f15 has no section [rack], so it cannot run on the rack; expected one of f5, f9, f10, table1, x-law, x-level-kernel"
    );

    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: String| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let text = |path: &str| String::from_utf8(Library::BuiltIn.read(path).unwrap()).unwrap();
    let figure = text("figures/f9.toml").replace("time_dilation = 500", "time_dilation = 5");
    write("figures/f9.toml", figure);
    write("scenarios/paper/f9.toml", text("scenarios/paper/f9.toml"));
    let here = Library::Directory(root.path().to_owned());
    let error = Planned::read(&here, "f9", ScaleName::Rack).unwrap_err();
    assert_eq!(
        error.to_string(),
        "figures/f9.toml: rack is beyond the rack: network.link.rate / time_dilation is \
         2 Gbit/s, above max 200 Mbit/s of the rack: raise time_dilation"
    );
}
