//! The NIC host and the switch against the HPCC authors' ns-3: flow completion times to the
//! nanosecond. Files: tests/reference/README.md.

mod harness;

use harness::{reference_rows, run, Case, HPCC};

fn agrees(case: Case, cc: &str) {
    let rows = run(&case, 1);
    let expected = reference_rows(case.name, cc);
    assert_eq!(rows, expected, "{} under {cc}", case.name);
}

#[test]
fn hpcc_on_an_idle_network_agrees_to_the_nanosecond() {
    agrees(Case::single(HPCC), "hp");
}

#[test]
fn hpcc_incast_agrees_to_the_nanosecond() {
    agrees(Case::incast(HPCC), "hp");
}

#[test]
fn hpcc_long_and_short_flows_agree_to_the_nanosecond() {
    agrees(Case::long_and_short(HPCC), "hp");
}
