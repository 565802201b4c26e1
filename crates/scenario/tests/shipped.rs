// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The files that ship: every scenario is valid and fits its world, the reference is current.

use onramp_scenario::{explain_markdown, plan, rack_limits, Run, Scenario};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn scenario(name: &str) -> Scenario {
    let directory = root().join("scenarios");
    let text = read(&directory.join(name));
    let beside = |path: &str| std::fs::read(directory.join(path));
    Scenario::parse_files(&text, name, &[], &beside).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_scenario_is_valid_and_fits_the_rack_unless_it_says_otherwise() {
    let files = std::fs::read_dir(root().join("scenarios")).unwrap();
    let mut names: Vec<_> = files
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.ends_with(".toml"));
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        // tools/record reads this line too.
        let text = read(&root().join("scenarios").join(&name));
        let simulated = text.starts_with("# Only in the simulator.\n");
        for run in scenario(&name).runs() {
            let fits = rack_limits(run).is_empty();
            assert_eq!(fits, !simulated, "{name} {:?}", run.params);
            assert!(!plan(run).is_empty(), "{name} {:?}", run.params);
        }
    }
}

/// Requests of incast entries that start after the warmup.
fn measured_requests(run: &Run) -> usize {
    let measured = |at| at - onramp_units::Time::ZERO >= run.warmup;
    let mut requests: Vec<_> = plan(run)
        .into_iter()
        .filter(|a| a.kind.name == "incast" && measured(a.at))
        .map(|a| (a.traffic, a.request))
        .collect();
    requests.dedup();
    requests.len()
}

#[test]
fn incast_has_at_least_500_requests() {
    for name in ["incast.toml", "incast-bbr.toml"] {
        for run in scenario(name).runs() {
            assert!(
                measured_requests(run) >= 500,
                "{name}: {}",
                measured_requests(run)
            );
        }
    }
}

#[test]
fn every_case_sees_the_same_traffic() {
    let scenario = scenario("incast.toml");
    let first = plan(&scenario.runs()[0]);
    assert_eq!(scenario.runs().len(), 6);
    assert!(scenario.runs().iter().all(|run| plan(run) == first));
}

#[test]
fn the_reference_is_current() {
    let path = root().join("docs/scenario.md");
    let hint = "run: cargo run -p onramp-scenario --example scenario-reference > docs/scenario.md";
    assert!(
        read(&path) == explain_markdown(),
        "{} is stale; {hint}",
        path.display()
    );
}
