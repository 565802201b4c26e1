// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What results say: tables, means with intervals, comparisons, a page. Results come as the text of `summary.json`.

use std::path::{Path, PathBuf};

use onramp_report::{page, Samples, Section};
use onramp_results::{
    cases, comparison_table, measured_series, read_versioned, request_times, table_columns,
    write_whole, Estimate, Lines, RunResult, SummaryFile, SCHEMA,
};
use pyo3::prelude::*;

use crate::errors;

/// A case's name, the numbers of its runs, their values in order, and the ends of the 95 % interval of their mean.
type Folded = (String, Vec<usize>, Vec<Option<f64>>, Option<[f64; 2]>);
/// A case, a metric, the number of pairs, the means of baseline and case, and difference and ratio with their ends.
type Pair = (
    String,
    String,
    usize,
    [f64; 2],
    f64,
    Option<[f64; 2]>,
    f64,
    Option<[f64; 2]>,
    Option<bool>,
);
/// Group and name of a column, its metric, and a cell for each case.
type Cells = (String, String, Option<String>, Vec<Option<String>>);

fn summary_of(json: &str) -> PyResult<SummaryFile> {
    serde_json::from_str(json).map_err(errors::results)
}

fn lines(each_seed: bool) -> Lines {
    match each_seed {
        true => Lines::Runs,
        false => Lines::Cases,
    }
}

/// The text of `directory`/summary.json, if it is of this version.
#[pyfunction]
pub fn read_summary(directory: PathBuf) -> PyResult<String> {
    let file = directory.join("summary.json");
    let summary: SummaryFile =
        read_versioned(&file, SCHEMA, "run the scenario").map_err(errors::results)?;
    serde_json::to_string(&summary).map_err(errors::results)
}

/// The table that `onramp sim run` prints.
#[pyfunction]
pub fn table(summary: &str, each_seed: bool) -> PyResult<String> {
    Ok(onramp_results::table(
        &summary_of(summary)?,
        lines(each_seed),
    ))
}

/// What a specialist would notice.
#[pyfunction]
pub fn remarks(summary: &str) -> PyResult<Vec<String>> {
    Ok(onramp_results::remarks(&summary_of(summary)?))
}

/// The table by columns, with the names of the cases.
#[pyfunction]
pub fn table_cells(summary: &str, each_seed: bool) -> PyResult<(Vec<String>, Vec<Cells>)> {
    let summary = summary_of(summary)?;
    let cases = cases(&summary.runs, lines(each_seed));
    let columns = table_columns(&cases).into_iter();
    let cells = columns.map(|column| {
        let metric = column.metric.map(str::to_owned);
        (
            column.group.to_owned(),
            column.name.to_owned(),
            metric,
            column.cells,
        )
    });
    let cells = cells.collect();
    Ok((cases.into_iter().map(|case| case.name).collect(), cells))
}

/// A metric of each case, over its seeds.
#[pyfunction]
pub fn folded(summary: &str, metric: &str) -> PyResult<Vec<Folded>> {
    let summary = summary_of(summary)?;
    let of = |case: &onramp_results::Case<'_>| {
        let values: Vec<Option<f64>> = case.runs.iter().map(|run| run.number(metric)).collect();
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let interval = Estimate::of(&known).and_then(|estimate| estimate.interval);
        let numbers = case.runs.iter().map(|run| run.run).collect();
        (case.name.clone(), numbers, values, interval)
    };
    Ok(cases(&summary.runs, Lines::Cases).iter().map(of).collect())
}

/// Cases beside a baseline, and the table of them. Each of `results` has a name, or none if there is one only.
#[pyfunction]
pub fn compare(
    results: Vec<(String, String)>,
    baseline: Vec<(String, String)>,
    metrics: Vec<String>,
) -> PyResult<(Vec<Pair>, String)> {
    let mut runs: Vec<RunResult> = Vec::new();
    for (name, json) in results {
        let mut summary = summary_of(&json)?;
        for run in summary.runs.iter_mut().filter(|_| !name.is_empty()) {
            run.params.insert("dir".to_owned(), name.clone());
        }
        runs.extend(summary.runs);
    }
    let compared = onramp_results::compare(&runs, &baseline, &metrics).map_err(errors::results)?;
    let table = comparison_table(&compared, &baseline);
    let pair = |one: onramp_results::Compared| {
        let beyond_noise = one.is_beyond_noise();
        (
            one.case,
            one.metric,
            one.pairs,
            [one.baseline, one.value],
            one.difference.value,
            one.difference.interval,
            one.ratio.value,
            one.ratio.interval,
            beyond_noise,
        )
    };
    Ok((compared.into_iter().map(pair).collect(), table))
}

/// Writes one page of the results in `directories`. Returns its size in bytes.
#[pyfunction]
pub fn write_report(directories: Vec<PathBuf>, out: PathBuf) -> PyResult<usize> {
    let sections: PyResult<Vec<Section>> = directories.iter().map(|at| section(at)).collect();
    let html = page(&sections?);
    write_whole(&out, html.as_bytes()).map_err(errors::results)?;
    Ok(html.len())
}

fn section(directory: &Path) -> PyResult<Section> {
    let file = directory.join("summary.json");
    let read = || -> onramp_results::Result<(SummaryFile, Samples)> {
        let summary = read_versioned(&file, SCHEMA, "run the scenario")?;
        let samples = Samples {
            requests: request_times(directory)?,
            queue: measured_series(directory, "queue_us")?,
            owd: measured_series(directory, "owd_us")?,
        };
        Ok((summary, samples))
    };
    let (summary, samples) = read().map_err(errors::results)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let shown = directory.display().to_string();
    Ok(Section::of_runs(summary, &samples, &name, &shown))
}
