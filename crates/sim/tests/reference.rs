//! The NIC host and the switch against the HPCC authors' ns-3: flow completion times to the
//! nanosecond where nothing is random. Files: tests/reference/README.md.

mod harness;

use harness::{reference_rows, run, Case};

fn agrees(case: &Case) {
    assert_eq!(
        run(case, 1),
        reference_rows(case),
        "{} under {}",
        case.name,
        case.cc
    );
}

#[test]
fn every_idle_network_agrees_to_the_nanosecond() {
    for cc in ["hpcc", "dcqcn", "dcqcn_w", "timely", "timely_w", "dctcp"] {
        agrees(&Case::single(cc));
    }
}

#[test]
fn incasts_without_random_marks_agree_to_the_nanosecond() {
    for cc in ["hpcc", "timely", "timely_w", "dctcp"] {
        agrees(&Case::incast(cc));
    }
}

#[test]
fn long_and_short_flows_without_random_marks_agree_to_the_nanosecond() {
    for cc in ["hpcc", "timely", "timely_w", "dctcp"] {
        agrees(&Case::long_and_short(cc));
    }
}

/// The window keeps the queue below the lowest mark.
#[test]
fn dcqcn_with_a_window_is_never_marked_and_agrees_to_the_nanosecond() {
    agrees(&Case::incast("dcqcn_w"));
    agrees(&Case::long_and_short("dcqcn_w"));
}
