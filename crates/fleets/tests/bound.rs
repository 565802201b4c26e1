// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of fleet time lie within what hosts say of them, in a part of the grid (docs/clock.md has all of it).

use onramp_fleets::{
    errors::Errors,
    grid::{rows, Row, TITLE},
};

/// Runs those rows whose names begin so, with fleets of three, four and eight hosts.
fn run(names: &[&str]) -> Errors {
    let all = rows(&[3, 4, 8], 1);
    let is_asked = |row: &&Row| names.iter().any(|name| row.what.starts_with(name));
    let (mut pooled, mut found) = (Errors::default(), 0);
    println!("{TITLE}");
    for row in all.iter().filter(is_asked) {
        let errors = row.run(25);
        println!("{}", row.line(&errors));
        pooled.extend(&errors);
        found += 1;
    }
    assert!(found >= names.len(), "a row has another name");
    assert!(pooled.count() > 1_000, "{} samples", pooled.count());
    assert!(
        pooled.beyond(3.0) <= 0.001,
        "beyond 3 sigma: {}",
        pooled.beyond(3.0)
    );
    assert_eq!(pooled.beyond(5.0), 0.0, "worst: {} sigma", pooled.worst());
    pooled
}

/// Sigma is not bought by being large.
#[test]
fn sigma_is_close_to_the_error_of_idle_hosts() {
    let errors = run(&["idle"]);
    let (error_ns, sigma_ns) = (errors.error_ns(0.5), errors.sigma_ns(0.5));
    assert!(sigma_ns < 3.0 * error_ns, "{sigma_ns} ns, {error_ns} ns");
    assert_eq!(errors.availability(), 1.0);
}

#[test]
fn busy_and_unequal_paths_are_within_sigma() {
    let errors = run(&["ports busy", "directions", "1 %"]);
    assert!(errors.availability() > 0.99, "{}", errors.availability());
}

/// As in the rack, where time is dilated: what is a large error elsewhere is noise here.
#[test]
fn coarse_stamps_are_within_sigma() {
    let errors = run(&["stamps"]);
    assert_eq!(errors.availability(), 1.0);
}

#[test]
fn starved_machines_are_within_sigma() {
    run(&["machine stolen"]);
}

#[test]
fn starved_processes_are_within_sigma() {
    run(&["process starved"]);
}

#[test]
fn clocks_and_fleets_that_change_are_within_sigma() {
    run(&[
        "rates",
        "other leaders",
        "hosts die",
        "hosts are suspended",
        "hosts are frozen",
        "clocks jump",
    ]);
}
