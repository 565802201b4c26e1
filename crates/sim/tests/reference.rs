//! The NIC host and the switch against the HPCC authors' ns-3: flow completion times to the
//! nanosecond where nothing is random. Files: tests/reference/README.md.

mod harness;

use harness::{reference_rows, run, Case, Row};

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

/// Rank test of the reference's one sample among as many of ours as there are seeds: the mean
/// completion time of the flows of one size, two-sided, at the level of 1 %.
fn dcqcn_agrees_in_distribution(case: &Case, size: u64) {
    const SEEDS: u64 = 199;
    let mean = |rows: &[Row]| {
        let of_size = rows.iter().filter(|row| row.2 == size);
        let fcts: Vec<i64> = of_size.map(|row| row.4).collect();
        fcts.iter().sum::<i64>() as f64 / fcts.len() as f64
    };
    let reference = mean(&reference_rows(case));
    let means: Vec<f64> = (0..SEEDS).map(|seed| mean(&run(case, seed))).collect();
    let below = means.iter().filter(|&&mean| mean < reference).count() as u64;
    let p = 2.0 * (below.min(SEEDS - below) + 1) as f64 / (SEEDS + 1) as f64;
    println!(
        "{}, {size} B: reference {reference} ns is above {below} of {SEEDS} seeds, p = {p:.3}",
        case.name
    );
    assert!(p > 0.01);
}

#[test]
fn dcqcn_incast_agrees_in_distribution() {
    dcqcn_agrees_in_distribution(&Case::incast("dcqcn"), 500_000);
}

#[test]
fn dcqcn_long_flows_agree_in_distribution() {
    dcqcn_agrees_in_distribution(&Case::long_and_short("dcqcn"), 10_000_000);
}

#[test]
fn dcqcn_short_flows_agree_in_distribution() {
    dcqcn_agrees_in_distribution(&Case::long_and_short("dcqcn"), 10_000);
}
