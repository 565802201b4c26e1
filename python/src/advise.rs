// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether On-Ramp would help: records of traffic, the scenarios that replay them, and the answer.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use onramp_advise::{Advice, Assumptions, Doubt};
use onramp_logs::Logs;
use onramp_report::{page, Samples, Section};
use onramp_results::SummaryFile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// What traffic is asked.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Question(onramp_advise::Question);

/// The answer: the advice, and what it is with other buffers.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Answer {
    advice: Advice,
    doubts: Vec<Doubt>,
}

#[pymethods]
impl Question {
    /// Reads `files`. Quantities are texts with units, as in scenarios.
    #[new]
    fn new(
        py: Python<'_>,
        files: Vec<PathBuf>,
        quantities: (Option<String>, Option<String>, String, String),
        cc: String,
        qdisc: String,
        one_clock: bool,
    ) -> PyResult<Question> {
        let (rate, delay, buffer, window) = quantities;
        let assumed = Assumptions {
            rate: rate.map(|text| quantity("rate", &text)).transpose()?,
            delay: delay.map(|text| quantity("delay", &text)).transpose()?,
            buffer: quantity("buffer", &buffer)?,
            window: quantity("window", &window)?,
            cc,
            qdisc,
        };
        let log = py.detach(|| -> PyResult<_> {
            let mut logs = Logs::default();
            for path in &files {
                let file = File::open(path)?;
                logs.add(&path.display().to_string(), BufReader::new(file))
                    .map_err(wrong)?;
            }
            logs.finish(one_clock).map_err(wrong)
        })?;
        let question = onramp_advise::Question::of(&log.flows, log.remarks, &assumed);
        question.map(Question).map_err(wrong)
    }

    /// Names and texts of the scenario and its lists of flows.
    fn files(&self) -> Vec<(String, String)> {
        self.0.files()
    }

    /// Name and text of the scenario of the doubts, after the runs with this summary.
    fn doubts(&self, summary: &str) -> PyResult<(&str, String)> {
        let advice = self.0.judge(&read(summary)?).map_err(wrong)?;
        Ok((onramp_advise::DOUBTS, self.0.doubts(&advice)))
    }

    /// The answer of the runs and of those of the doubts.
    fn answer(&self, summary: &str, doubted: &str) -> PyResult<Answer> {
        Ok(Answer {
            advice: self.0.judge(&read(summary)?).map_err(wrong)?,
            doubts: self.0.doubted(&read(doubted)?),
        })
    }

    /// The answer in words.
    fn text(&self, answer: &Answer) -> String {
        self.0.text(&answer.advice, &answer.doubts)
    }

    /// What the answer rests on.
    fn limits(&self) -> Vec<String> {
        self.0.limits().to_vec()
    }

    /// The answer as a page.
    fn page(&self, answer: &Answer, summary: &str) -> PyResult<String> {
        let runs = Section::of_runs(read(summary)?, &Samples::default(), "runs", "memory");
        let advice = self.0.section(&answer.advice, &answer.doubts, "memory");
        Ok(page(&[advice, runs]))
    }
}

/// A mean and the ends of its interval.
type Change = (f64, Option<[f64; 2]>);

#[pymethods]
impl Answer {
    /// The setting that is recommended, if one is.
    fn recommends(&self) -> Option<&str> {
        self.advice.recommends()
    }

    /// The best setting.
    fn best(&self) -> &str {
        self.advice.best()
    }

    /// In a line.
    fn verdict(&self) -> String {
        self.advice.verdict()
    }

    /// The 99th percentile of completion times with the best setting, as a ratio.
    fn p99(&self) -> Change {
        let p99 = self.advice.p99();
        (p99.value, p99.interval)
    }

    /// The same with other buffers.
    fn doubts(&self) -> Vec<(String, Option<Change>)> {
        let of = |doubt: &Doubt| {
            (
                doubt.buffer.clone(),
                doubt.p99.map(|p99| (p99.value, p99.interval)),
            )
        };
        self.doubts.iter().map(of).collect()
    }
}

fn read(summary: &str) -> PyResult<SummaryFile> {
    serde_json::from_str(summary).map_err(errors::results)
}

fn quantity<T: std::str::FromStr>(name: &str, text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error| PyValueError::new_err(format!("{name} is {text:?}: {error}")))
}

/// Names of options are those of this call.
fn wrong(error: impl std::fmt::Display) -> PyErr {
    let words = error.to_string().replace("--one-clock", "one_clock=True");
    let words = words
        .replace("--window", "window")
        .replace("--rate", "rate")
        .replace("--delay", "delay");
    PyValueError::new_err(words)
}
