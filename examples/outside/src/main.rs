// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs a scenario with parts of one's own, and prints its metrics: `cargo run -- [FILE]`.

mod aimd;
mod by_sender;
mod dragonfly;
mod partly;
mod shuffle;
mod slowest;
mod tcn;

use onramp_scenario::Scenario;
use onramp_sim::run::{run, Watch};
use std::error::Error;
use std::process::ExitCode;

/// Before the first scenario is read, because its keys follow.
fn register() {
    onramp_cc::tcp::register(&aimd::ENTRY);
    onramp_cc::switch::register(&tcn::ENTRY);
    onramp_cc::path::register(&by_sender::ENTRY);
    onramp_cc::law::register(&partly::ENTRY);
    onramp_scenario::register_shape(&dragonfly::KIND);
    onramp_scenario::register_traffic(&shuffle::KIND);
    onramp_results::register_measure(&slowest::KIND);
}

fn main() -> ExitCode {
    register();
    match simulate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn simulate() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let file =
        file.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/scenario.toml").to_owned());
    let scenario = Scenario::parse(&std::fs::read_to_string(&file)?, &file)?;
    for (number, planned) in scenario.runs().iter().enumerate() {
        let report = run(planned, number, Watch::default(), &mut |_| true)?;
        if let Some(mistake) = report.mistake {
            return Err(mistake.into());
        }
        let (result, _) = report.into_tables();
        for (metric, value) in &result.metrics {
            println!("{metric}: {value}");
        }
    }
    Ok(())
}

/// What all parts of a kind do, these do too.
#[cfg(test)]
mod tests {
    use super::*;
    use onramp_cc::law::ControlLaw;
    use onramp_sim::conformance;
    use std::sync::Once;

    fn registered() {
        static ONCE: Once = Once::new();
        ONCE.call_once(register);
    }

    #[test]
    fn aimd_is_a_congestion_control() {
        registered();
        let aimd = onramp_cc::Cc::named(aimd::ENTRY.name).expect("it is registered");
        conformance::congestion_control(aimd);
    }

    #[test]
    fn tcn_is_a_rule_and_by_sender_a_choice_of_paths() {
        registered();
        conformance::switch_rule(&tcn::ENTRY);
        conformance::path_choice(&by_sender::ENTRY);
    }

    #[test]
    fn partly_is_a_control_law() {
        registered();
        conformance::control_law(ControlLaw::Custom(&partly::ENTRY));
    }

    #[test]
    fn partly_is_the_strawman_if_the_part_is_the_whole() {
        registered();
        let text = include_str!("../scenario.toml").replace("partly.part = 0.8\n", "");
        let metrics = |set: &[(&str, &str)]| {
            let scenario = Scenario::parse_with(&text, "scenario.toml", set).expect("it is right");
            let report = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| true);
            report.expect("it runs").into_tables().0.metrics
        };
        let strawman = metrics(&[("onramp.law", "strawman")]);
        assert_eq!(metrics(&[("onramp.partly.part", "1")]), strawman);
        assert_ne!(metrics(&[]), strawman);
    }

    #[test]
    fn dragonfly_is_a_shape() {
        registered();
        conformance::shape(&dragonfly::KIND);
    }

    #[test]
    fn the_scenario_is_the_same_on_any_number_of_threads() {
        registered();
        let text = include_str!("../scenario.toml");
        let scenario = Scenario::parse(text, "scenario.toml").expect("it is right");
        conformance::scenario(&scenario);
    }
}
