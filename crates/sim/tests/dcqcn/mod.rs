// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! DCQCN, whose marks are drawn at random, as a distribution. Prints its statistics: `cargo test -p
//! onramp-sim --test reference dcqcn -- --nocapture`. The reference has one run a case, which is our seed 1 in
//! the ns3 rounding to the nanosecond (tests/reference.rs). So: whether that run is one of many, and
//! whether exact times and other random numbers change the distribution.

use crate::harness::{reference_rows, run, run_exactly, Case, Row};

const SEEDS: u64 = 20;

/// Largest distance between the two distribution functions, and how likely one as large is if they
/// are the same: Kolmogorov's series with the correction for few values (Stephens, 1970).
fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> (f64, f64) {
    let part = |values: &[f64], x: f64| {
        let below = values.iter().filter(|&&value| value <= x).count();
        below as f64 / values.len() as f64
    };
    let distance = |&x: &f64| (part(a, x) - part(b, x)).abs();
    let largest = a.iter().chain(b).map(distance).fold(0.0, f64::max);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let root = (n * m / (n + m)).sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * largest;
    let term = |j: i32| {
        let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(j * j) * lambda * lambda).exp()
    };
    let likely: f64 = (1..=100).map(term).sum();
    (largest, if lambda < 0.2 { 1.0 } else { likely })
}

/// What is compared of a run, in us: the mean completion time, and when the last flow ended.
fn measures_us(rows: &[Row]) -> [f64; 2] {
    let fcts = rows.iter().map(|row| row.4 as f64);
    let first = rows.iter().map(|row| row.3).min().unwrap_or(0);
    let ends = rows.iter().map(|row| (row.3 + row.4 - first) as f64);
    let mean = fcts.sum::<f64>() / rows.len() as f64;
    [mean / 1e3, ends.fold(0.0, f64::max) / 1e3]
}

fn column(runs: &[[f64; 2]], n: usize) -> Vec<f64> {
    runs.iter().map(|measures| measures[n]).collect()
}

fn compare(case: &Case) {
    let reference = measures_us(&reference_rows(case));
    let seeds = || 2..2 + SEEDS;
    let ns3: Vec<_> = seeds().map(|seed| measures_us(&run(case, seed))).collect();
    let exact: Vec<_> = seeds()
        .map(|seed| measures_us(&run_exactly(case, seed)))
        .collect();
    for (n, name) in ["mean FCT", "last end"].into_iter().enumerate() {
        let (ns3, exact) = (column(&ns3, n), column(&exact, n));
        let below = |runs: &[f64]| runs.iter().filter(|&&us| us < reference[n]).count();
        let range = |runs: &[f64]| {
            let least = runs.iter().copied().fold(f64::MAX, f64::min);
            (least, runs.iter().copied().fold(0.0, f64::max))
        };
        let (distance, likely) = kolmogorov_smirnov(&ns3, &exact);
        println!(
            "{} {} {name}: reference {:.1} us, above {} of {SEEDS} runs in ns3 rounding {:.1?} and {} of \
             {SEEDS} exact ones {:.1?}; D = {distance:.2}, p = {likely:.2}",
            case.name, case.cc, reference[n], below(&ns3), range(&ns3), below(&exact), range(&exact),
        );
        assert!(likely > 0.01, "{} {} {name}", case.name, case.cc);
        // Neither below all nor above all.
        assert!((1..SEEDS as usize).contains(&below(&ns3)));
    }
}

#[test]
fn the_reference_is_one_run_of_many_and_exact_times_change_no_distribution() {
    compare(&Case::incast("dcqcn"));
    compare(&Case::long_and_short("dcqcn"));
}

/// Its window keeps the queue below the marks.
#[test]
fn with_a_window_nothing_is_random() {
    for case in [Case::incast("dcqcn_w"), Case::long_and_short("dcqcn_w")] {
        let reference = reference_rows(&case);
        (2..2 + SEEDS).for_each(|seed| assert_eq!(run(&case, seed), reference));
    }
}

/// Critical values of the exact distribution (two samples of 20): 0.40 at 8.2 %, 0.55 at 0.34 %.
#[test]
fn the_statistic_is_that_of_the_tables() {
    let from = |first: u32| (first..first + 20).map(f64::from).collect::<Vec<_>>();
    let (distance, likely) = kolmogorov_smirnov(&from(0), &from(8));
    assert!(
        (distance - 0.4).abs() < 1e-9 && (0.05..0.09).contains(&likely),
        "{likely}"
    );
    let (distance, likely) = kolmogorov_smirnov(&from(0), &from(11));
    assert!(
        (distance - 0.55).abs() < 1e-9 && (0.001..0.005).contains(&likely),
        "{likely}"
    );
    assert_eq!(kolmogorov_smirnov(&from(0), &from(0)), (0.0, 1.0));
}
