// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Cases: the runs of a scenario that differ in nothing but their seed.

use crate::run_result::{RunResult, SEED};

/// What has a line in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// A case, with the means of its runs.
    Cases,
    /// A run.
    Runs,
}

/// Runs that differ in nothing but their seed, or a single run.
#[derive(Debug, Clone, PartialEq)]
pub struct Case<'a> {
    /// The case of the scenario, and the parameters in which it differs from the others.
    pub name: String,
    /// In the scenario's order; at least one.
    pub runs: Vec<&'a RunResult>,
}

/// The cases of `runs`, in the order of their first runs.
pub fn cases(runs: &[RunResult], lines: Lines) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for run in runs {
        let same = |case: &&mut Case<'_>| lines == Lines::Cases && is_same(case.runs[0], run);
        match cases.iter_mut().find(same) {
            Some(case) => case.runs.push(run),
            None => cases.push(Case {
                name: name(run, runs, lines),
                runs: vec![run],
            }),
        }
    }
    cases
}

/// The case, and the parameters in which this one of its `runs` differs from the others.
pub fn case_name(run: &RunResult, runs: &[RunResult]) -> String {
    name(run, runs, Lines::Runs)
}

fn is_same(one: &RunResult, other: &RunResult) -> bool {
    one.params_but_seed().eq(other.params_but_seed())
}

fn name(run: &RunResult, runs: &[RunResult], lines: Lines) -> String {
    let case = run.params.get("case");
    let same = |other: &&RunResult| other.params.get("case") == case;
    let implied = |key: &String| {
        let all = |other: &RunResult| other.params.get(key) == run.params.get(key);
        case.is_some() && runs.iter().filter(same).all(all)
    };
    let is_folded = |key: &str| lines == Lines::Cases && key == SEED;
    let rest = run.params.iter();
    let rest = rest.filter(|(key, _)| !is_folded(key) && !implied(key));
    let words = words(case, rest);
    match words.is_empty() && runs.len() > 1 {
        true => "all".to_owned(),
        false => words,
    }
}

/// A case and parameters in a line, each with the last part of its key.
pub(crate) fn words<'a>(
    case: Option<&String>,
    params: impl Iterator<Item = (&'a String, &'a String)>,
) -> String {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let params = params.map(|(key, value)| format!("{}={value}", last(key)));
    let words: Vec<String> = case.cloned().into_iter().chain(params).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run;

    fn names(runs: &[RunResult], lines: Lines) -> Vec<(String, usize)> {
        let all = cases(runs, lines).into_iter();
        all.map(|case| (case.name, case.runs.len())).collect()
    }

    #[test]
    fn runs_of_several_seeds_are_one_case() {
        let runs = [
            run(0, &[("case", "fq"), ("host.cc", "cubic"), ("seed", "1")]),
            run(1, &[("case", "fq"), ("host.cc", "bbr"), ("seed", "1")]),
            run(2, &[("case", "fq"), ("host.cc", "cubic"), ("seed", "2")]),
        ];
        let name = |name: &str, runs| (name.to_owned(), runs);
        assert_eq!(
            names(&runs, Lines::Cases),
            [name("fq cc=cubic", 2), name("fq cc=bbr", 1)]
        );
        assert_eq!(names(&runs, Lines::Runs)[2], name("fq cc=cubic seed=2", 1));
    }

    #[test]
    fn a_scenario_whose_seed_alone_varies_has_one_case_with_a_name() {
        let runs = [run(0, &[("seed", "1")]), run(1, &[("seed", "2")])];
        assert_eq!(names(&runs, Lines::Cases), [("all".to_owned(), 2)]);
        assert_eq!(names(&runs[..1], Lines::Cases), [(String::new(), 1)]);
    }
}
