// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Simulates a scenario in this process, without Python's lock, and keeps the rows in memory.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use onramp_batch::{available_memory, check_memory, Batch, Hooks};
use onramp_results::{merge, part, write_json, Frame, RunResult, SummaryFile, TableKind, Tables};
use onramp_runs::Status;
use onramp_scenario::Scenario;
use onramp_sim::run::{check_watch, BuildError, Report, Watch};
use pyo3::prelude::*;

use crate::errors;
use crate::extend::mistake_of;
use crate::tables::Table;

/// Time between two looks for signals, such as Ctrl-C.
const PERIOD: Duration = Duration::from_millis(50);

/// Runs that were made.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Made {
    scenario: Scenario,
    runs: Vec<(RunResult, Tables)>,
    /// What ended the simulation early.
    failure: Option<PyErr>,
}

/// From the simulation to the thread that has Python's lock.
enum News {
    /// Fraction done, 0 to 1, and a line about it.
    Progress(f64, String),
    Over(Result<(), BuildError>),
}

/// What all runs share.
#[derive(Default)]
struct Kept {
    runs: Mutex<Vec<(RunResult, Tables)>>,
    /// The first mistake of a part that was written in Python.
    mistake: Mutex<Option<PyErr>>,
}

/// Simulates all runs. `progress` is called with the fraction done, 0 to 1, and a line about it. An exception in it, in a
/// part that was written in Python, or a signal ends the simulation: what was made until then is kept.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    scenario: &crate::scenario::Scenario,
    threads: Option<usize>,
    series: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Made> {
    let scenario = &scenario.checked;
    let processors = || std::thread::available_parallelism().map_or(1, Into::into);
    let threads = threads.unwrap_or_else(processors).max(1);
    for run in scenario.runs() {
        check_watch(run, &[], &series).map_err(errors::scenario)?;
    }
    check_memory(scenario, threads, available_memory()).map_err(errors::scenario)?;
    let (kept, cancel) = (Kept::default(), AtomicBool::new(false));
    let batch = Batch {
        scenario,
        threads,
        cancel: &cancel,
    };
    let (send, mut receive) = channel();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| run(&batch, &series, &kept, send));
        watch(py, &mut receive, &cancel, progress.as_ref())
    });
    let take = |failure: &Mutex<Option<PyErr>>| {
        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    };
    let failure = take(&kept.mistake).or(outcome?);
    let mut runs = kept
        .runs
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    runs.sort_unstable_by_key(|(result, _)| result.run);
    Ok(Made {
        scenario: scenario.clone(),
        runs,
        failure,
    })
}

fn run(batch: &Batch<'_>, series: &[String], kept: &Kept, news: Sender<News>) {
    let keep = |_: usize, report: Report| {
        if let Some(mistake) = &report.mistake {
            let error = mistake_of(mistake);
            let mut first = kept.mistake.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            batch.cancel.store(true, Ordering::Relaxed);
        }
        let made = report.into_tables();
        let mut runs = kept.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(made);
        Ok(())
    };
    let hooks = Hooks::<BuildError> {
        watch: &|_| {
            Ok(Watch {
                captures: Vec::new(),
                series: series.to_vec(),
            })
        },
        keep: &keep,
        show: &mut |status: &Status, _| {
            // Nobody listens after an exception.
            let _ = news.send(News::Progress(status.part_done(), status.text("")));
        },
    };
    let numbers = (0..batch.scenario.runs().len()).collect();
    let over = batch.run(numbers, hooks);
    let _ = news.send(News::Over(over));
}

/// Waits for the end. Returns what ended it early, if anything did; an error is one of the scenario.
fn watch(
    py: Python<'_>,
    news: &mut Receiver<News>,
    cancel: &AtomicBool,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Option<PyErr>> {
    let mut failure = None;
    loop {
        let waiting = &mut *news;
        let next = py.detach(move || waiting.recv_timeout(PERIOD));
        let shown = match next {
            Ok(News::Over(over)) => {
                return match over {
                    Ok(()) => Ok(failure),
                    Err(error) => Err(errors::scenario(error)),
                }
            }
            Ok(News::Progress(done, line)) if failure.is_none() => match progress {
                Some(progress) => progress.call1(py, (done, line)).map(drop),
                None => Ok(()),
            },
            Ok(News::Progress(..)) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Ok(failure),
        };
        if let Err(error) = shown.and_then(|()| py.check_signals()) {
            cancel.store(true, Ordering::Relaxed);
            failure.get_or_insert(error);
        }
    }
}

#[pymethods]
impl Made {
    /// The text of its `summary.json`.
    fn summary(&self) -> PyResult<String> {
        let results = self.runs.iter().map(|(result, _)| result.clone());
        let summary = SummaryFile::of(&self.scenario, "sim", results.collect());
        serde_json::to_string(&summary).map_err(errors::results)
    }

    /// The exception that ended it early.
    #[getter]
    fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        self.failure.as_ref().map(|error| error.clone_ref(py))
    }

    /// Its flows.
    fn flows(&self) -> PyResult<Table> {
        Table::of(Frame::of(TableKind::Flows, &self.runs))
    }

    /// Its requests.
    fn requests(&self) -> PyResult<Table> {
        Table::of(Frame::of(TableKind::Requests, &self.runs))
    }

    /// Its series.
    fn series(&self) -> PyResult<Table> {
        Table::of(Frame::of(TableKind::Series, &self.runs))
    }

    /// Writes the files that `onramp sim run` writes.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let write = || -> onramp_results::Result<()> {
            for (result, tables) in &self.runs {
                tables.clone().write(&directory, result)?;
                write_json(&part(&directory, "run", result.run, "json"), result)?;
            }
            merge(&self.scenario, &directory, "sim").map(drop)
        };
        py.detach(write).map_err(errors::results)
    }
}
