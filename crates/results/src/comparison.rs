// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Cases beside a baseline: differences of runs that have the same seed, with their confidence intervals.

use crate::case::{cases, Case, Lines};
use crate::run_result::RunResult;
use crate::statistics::Estimate;
use crate::table::{render, table_columns};

/// What cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No case is the baseline.
    #[error("no run has {baseline}; the cases are {cases}")]
    NoBaseline {
        /// What was asked for.
        baseline: String,
        /// Their names.
        cases: String,
    },
    /// Every case is.
    #[error("all runs have {0}: there is nothing to compare with it")]
    NothingElse(String),
    /// A run has no partner.
    #[error("{run} (seed {seed}) has no partner: {found} runs with {baseline} have its seed and its other parameters, expected one")]
    NoPartner {
        /// The run's case.
        run: String,
        /// Its seed; empty: all runs have the same.
        seed: String,
        /// What was asked for.
        baseline: String,
        /// How many there are.
        found: usize,
    },
    /// No run has the metric.
    #[error("no run has the metric {0}")]
    NoMetric(String),
}

/// Parameters of the baseline, with their values: `case=fq`.
pub type Baseline = [(String, String)];

/// A case's metric beside the baseline's.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The case.
    pub case: String,
    /// `incast.rct_us.p99`.
    pub metric: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Mean over the pairs, of the baseline.
    pub baseline: f64,
    /// The same of the case.
    pub value: f64,
    /// Mean of the differences of the pairs, with its 95 % interval.
    pub difference: Estimate,
    /// Geometric mean of the ratios of the pairs, with its interval.
    pub ratio: Estimate,
}

impl Compared {
    /// Whether the interval of the difference excludes 0, or that of the ratio 1. None for a single pair.
    pub fn is_beyond_noise(&self) -> Option<bool> {
        let excludes = |estimate: Estimate, nothing: f64| {
            let [low, high] = estimate.interval?;
            Some(low > nothing || high < nothing)
        };
        let difference = excludes(self.difference, 0.0)?;
        Some(difference || excludes(self.ratio, 1.0) == Some(true))
    }
}

/// Compares every other case of `runs` with the one that has the parameters of `baseline`, in `metrics`; if there are none,
/// in those that the table shows. Runs with the same seed, and the same other parameters, are a pair.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(
    runs: &[RunResult],
    baseline: &Baseline,
    metrics: &[String],
) -> Result<Vec<Compared>, CompareError> {
    let all = cases(runs, Lines::Cases);
    let (bases, others): (Vec<&Case<'_>>, Vec<&Case<'_>>) =
        all.iter().partition(|case| has(case.runs[0], baseline));
    let asked = text(baseline);
    if bases.is_empty() {
        let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
        return Err(CompareError::NoBaseline {
            baseline: asked,
            cases: names.join(", "),
        });
    }
    if others.is_empty() {
        return Err(CompareError::NothingElse(asked));
    }
    let shown = || table_columns(&all).into_iter().filter_map(|c| c.metric);
    let metrics: Vec<String> = match metrics {
        [] => shown().map(str::to_owned).collect(),
        given => given.to_vec(),
    };
    let mut compared = Vec::new();
    for metric in &metrics {
        let has_it = |run: &RunResult| run.number(metric).is_some();
        if !runs.iter().any(has_it) {
            return Err(CompareError::NoMetric(metric.clone()));
        }
        for case in &others {
            compared.extend(of_case(case, &bases, baseline, metric)?);
        }
    }
    Ok(compared)
}

fn has(run: &RunResult, baseline: &Baseline) -> bool {
    let has = |(key, value): &(String, String)| {
        let mut params = run.params.iter();
        params.any(|(name, found)| is_named(name, key) && found == value)
    };
    baseline.iter().all(has)
}

/// Whether `key` is the parameter `name`, or its last word, as in names of cases.
fn is_named(name: &str, key: &str) -> bool {
    name == key || name.rsplit('.').next() == Some(key)
}

fn text(baseline: &Baseline) -> String {
    let words = baseline.iter().map(|(key, value)| format!("{key}={value}"));
    words.collect::<Vec<_>>().join(" and ")
}

fn of_case(
    case: &Case<'_>,
    bases: &[&Case<'_>],
    baseline: &Baseline,
    metric: &str,
) -> Result<Option<Compared>, CompareError> {
    let mut pairs = Vec::new();
    for run in &case.runs {
        let partner = partner(run, &case.name, bases, baseline)?;
        pairs.extend(run.number(metric).zip(partner.number(metric)));
    }
    let mean = |pick: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = pairs.iter().map(pick).collect();
        Estimate::of(&values)
    };
    let compared = || {
        Some(Compared {
            case: case.name.clone(),
            metric: metric.to_owned(),
            pairs: pairs.len(),
            baseline: mean(|pair| pair.1)?.value,
            value: mean(|pair| pair.0)?.value,
            difference: mean(|pair| pair.0 - pair.1)?,
            ratio: Estimate::of_ratios(&pairs)?,
        })
    };
    Ok(compared())
}

/// The run of a baseline with the same seed. If there are several: the one whose other parameters, but for those of the
/// baseline, are the same.
fn partner<'a>(
    run: &RunResult,
    name: &str,
    bases: &[&Case<'a>],
    baseline: &Baseline,
) -> Result<&'a RunResult, CompareError> {
    let all = bases.iter().flat_map(|case| &case.runs).copied();
    let same_seed: Vec<&'a RunResult> = all.filter(|base| base.seed() == run.seed()).collect();
    if let [one] = same_seed[..] {
        return Ok(one);
    }
    let is_other = |key: &String| !baseline.iter().any(|(given, _)| is_named(key, given));
    let agrees = |base: &&&RunResult| {
        let mut keys = run.params.keys().filter(|key| is_other(key));
        keys.all(|key| base.params.get(key) == run.params.get(key))
    };
    let partners: Vec<&&RunResult> = same_seed.iter().filter(agrees).collect();
    match partners[..] {
        [one] => Ok(one),
        _ => Err(CompareError::NoPartner {
            run: name.to_owned(),
            seed: run.seed().to_owned(),
            baseline: text(baseline),
            found: partners.len(),
        }),
    }
}

/// A number with three figures, and at most three decimals.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 99.95 => 0,
        some if some >= 9.995 => 1,
        one if one >= 0.9995 => 2,
        0.0 => 0,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A line for each case and metric.
///
/// ```text
/// metric              case  pairs  case=fq  value   difference                    change  beyond noise
/// incast.rct_us.p99  final      5    36879    558  -36321 ±940  -98.5 % (-98.6 to -98.3)           yes
/// ```
pub fn comparison_table(compared: &[Compared], baseline: &Baseline) -> String {
    let heading = [
        "metric",
        "case",
        "pairs",
        &text(baseline),
        "value",
        "difference",
        "change",
        "beyond noise",
    ]
    .map(str::to_owned);
    let row = |line: &Compared| {
        let half = line.difference.half();
        let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
        let interval = line
            .ratio
            .interval
            .map(|[low, high]| format!(" ({} to {})", percent(low), percent(high)));
        [
            line.metric.clone(),
            line.case.clone(),
            line.pairs.to_string(),
            digits(line.baseline),
            digits(line.value),
            digits(line.difference.value)
                + &half.map_or(String::new(), |half| format!(" ±{}", digits(half))),
            format!(
                "{} %{}",
                percent(line.ratio.value),
                interval.unwrap_or_default()
            ),
            match line.is_beyond_noise() {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => "one seed".to_owned(),
            },
        ]
    };
    let rows: Vec<[String; 8]> = [heading]
        .into_iter()
        .chain(compared.iter().map(row))
        .collect();
    let column = |at: usize| rows.iter().map(|row| row[at].clone()).collect();
    let columns: Vec<Vec<String>> = (0..8).map(column).collect();
    render(&columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::json;

    fn run(params: &[(&str, &str)], p99: f64) -> RunResult {
        let mut run = fixture::run(0, params);
        let rct = json!({ "p99": p99 });
        run.metrics.insert("incast.rct_us".to_owned(), rct);
        run
    }

    fn fq() -> Vec<(String, String)> {
        vec![("case".to_owned(), "fq".to_owned())]
    }

    #[test]
    fn runs_of_the_same_seed_are_pairs() {
        let mut runs = Vec::new();
        for (seed, base) in [("1", 100.0), ("2", 200.0), ("3", 300.0)] {
            runs.push(run(&[("case", "fq"), ("seed", seed)], base));
            runs.push(run(&[("case", "final"), ("seed", seed)], base - 50.0));
        }
        let compared = compare(&runs, &fq(), &[]).unwrap();
        assert_eq!(compared.len(), 1);
        let one = &compared[0];
        assert_eq!((one.case.as_str(), one.pairs), ("final", 3));
        assert_eq!((one.baseline, one.value), (200.0, 150.0));
        assert_eq!(one.difference.interval, Some([-50.0, -50.0]));
        assert_eq!(one.is_beyond_noise(), Some(true));
        let text = comparison_table(&compared, &fq());
        assert!(text.contains("case=fq") && text.contains("yes"), "{text}");
    }

    #[test]
    fn the_baseline_has_the_same_other_parameters_if_it_has_several_runs() {
        let runs = [
            run(&[("case", "fq"), ("host.cc", "cubic")], 10.0),
            run(&[("case", "fq"), ("host.cc", "bbr")], 20.0),
            run(&[("case", "final"), ("host.cc", "bbr")], 5.0),
        ];
        let compared = compare(&runs, &fq(), &[]).unwrap();
        assert_eq!((compared[0].baseline, compared[0].value), (20.0, 5.0));
        assert_eq!(compared[0].is_beyond_noise(), None);
        let by_cc = vec![("cc".to_owned(), "cubic".to_owned())];
        let compared = compare(&runs, &by_cc, &[]).unwrap();
        let bbr = compared.iter().map(|one| (one.case.as_str(), one.baseline));
        let bbr: Vec<(&str, f64)> = bbr.collect();
        assert_eq!(bbr, [("fq cc=bbr", 10.0), ("final", 10.0)]);
    }

    #[test]
    fn a_run_with_two_partners_or_none_is_named() {
        let mut runs = vec![
            run(&[("case", "fq"), ("t", "1"), ("seed", "7")], 10.0),
            run(&[("case", "fq"), ("t", "2"), ("seed", "7")], 20.0),
            run(&[("case", "final"), ("t", "3"), ("seed", "7")], 5.0),
        ];
        let error = compare(&runs, &fq(), &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("final (seed 7) has no partner: 0 runs"),
            "{error}"
        );
        runs[2].params.insert("t".to_owned(), "2".to_owned());
        assert_eq!(compare(&runs, &fq(), &[]).unwrap()[0].baseline, 20.0);
    }

    #[test]
    fn numbers_have_three_figures() {
        let all = [0.0, -0.00321, 0.453, 4.126, 36.54, 99.97, 86940.2].map(digits);
        assert_eq!(
            all,
            ["0", "-0.003", "0.453", "4.13", "36.5", "100", "86940"]
        );
    }

    #[test]
    fn what_is_far_smaller_each_time_is_beyond_noise_although_the_difference_varies() {
        let mut runs = Vec::new();
        for (seed, base) in [("1", 100.0), ("2", 300.0), ("3", 90_000.0)] {
            runs.push(run(&[("case", "fq"), ("seed", seed)], base));
            runs.push(run(&[("case", "final"), ("seed", seed)], base / 10.0));
        }
        let one = &compare(&runs, &fq(), &[]).unwrap()[0];
        let [low, high] = one.difference.interval.unwrap();
        assert!(low < 0.0 && high > 0.0);
        assert_eq!(one.is_beyond_noise(), Some(true));
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let runs = [run(&[("case", "fq")], 10.0), run(&[("case", "final")], 5.0)];
        let error = |key: &str, value: &str, metrics: &[String]| {
            let baseline = vec![(key.to_owned(), value.to_owned())];
            compare(&runs, &baseline, metrics).unwrap_err().to_string()
        };
        assert_eq!(
            error("case", "fifo", &[]),
            "no run has case=fifo; the cases are fq, final"
        );
        let unknown = ["incast.rct_us.p9999".to_owned()];
        assert_eq!(
            error("case", "fq", &unknown),
            "no run has the metric incast.rct_us.p9999"
        );
        let error = compare(&runs[..1], &fq(), &[]).unwrap_err().to_string();
        assert!(error.contains("nothing to compare"), "{error}");
    }
}
