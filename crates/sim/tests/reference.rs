// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The NIC host and the switch against the HPCC authors' ns-3: flow completion times to the
//! nanosecond, DCQCN's too, whose random marks are drawn as ns-3 draws them. Files:
//! tests/reference/README.md.

mod dcqcn;
mod harness;

use harness::{reference_rows, run, Case};

const CCS: [&str; 6] = ["hpcc", "dcqcn", "dcqcn_w", "timely", "timely_w", "dctcp"];

fn agrees(case: &Case) {
    let (mut rows, mut reference) = (run(case, 1), reference_rows(case));
    // Flows that end in the same nanosecond are in any order.
    rows.sort_unstable();
    reference.sort_unstable();
    assert_eq!(rows.len(), reference.len());
    for (row, reference) in rows.iter().zip(&reference) {
        assert_eq!(row, reference, "{} under {}", case.name, case.cc);
    }
}

#[test]
fn every_idle_network_agrees_to_the_nanosecond() {
    for cc in CCS {
        agrees(&Case::single(cc));
    }
}

#[test]
fn every_incast_agrees_to_the_nanosecond() {
    for cc in CCS {
        agrees(&Case::incast(cc));
    }
}

#[test]
fn all_long_and_short_flows_agree_to_the_nanosecond() {
    for cc in CCS {
        agrees(&Case::long_and_short(cc));
    }
}

/// 1,389 flows under each congestion control, a test each so that they run at the same time.
mod web_search_on_the_fat_tree_agrees_to_the_nanosecond {
    use super::*;

    #[test]
    fn hpcc() {
        agrees(&Case::web_search("hpcc"));
    }

    #[test]
    fn dcqcn() {
        agrees(&Case::web_search("dcqcn"));
    }

    #[test]
    fn dcqcn_w() {
        agrees(&Case::web_search("dcqcn_w"));
    }

    #[test]
    fn timely() {
        agrees(&Case::web_search("timely"));
    }

    #[test]
    fn timely_w() {
        agrees(&Case::web_search("timely_w"));
    }

    #[test]
    fn dctcp() {
        agrees(&Case::web_search("dctcp"));
    }
}

/// 43,269 flows under each congestion control.
mod incasts_on_top_of_web_search_agree_to_the_nanosecond {
    use super::*;

    #[test]
    fn hpcc() {
        agrees(&Case::web_search_with_incasts("hpcc"));
    }

    #[test]
    fn timely() {
        agrees(&Case::web_search_with_incasts("timely"));
    }
}

#[test]
fn a_network_of_lines_with_different_rates_and_delays_agrees_to_the_nanosecond() {
    for cc in CCS {
        agrees(&Case::mixed(cc));
    }
}

/// Not HPCC: the reference's telemetry has no code for 40 Gbit/s.
#[test]
fn a_network_that_loses_packets_agrees_to_the_nanosecond() {
    for cc in CCS.into_iter().filter(|cc| *cc != "hpcc") {
        agrees(&Case::mixed_and_short_of_room(cc));
    }
}

#[test]
fn timers_that_are_due_with_other_events_agree_to_the_nanosecond() {
    agrees(&Case::timers());
}

#[test]
fn flows_that_go_back_within_their_window_agree_to_the_nanosecond() {
    agrees(&Case::going_back());
}

/// The reference's completion times under DCQCN are those of one run of its random numbers; another
/// run gives others.
#[test]
fn dcqcn_depends_on_the_run() {
    let case = Case::incast("dcqcn");
    assert_ne!(run(&case, 2), run(&case, 1));
}
