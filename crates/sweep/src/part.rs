// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A part: the runs of some points, made one after the other. What goes wrong in one is noted in its row.

use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use onramp_batch::{available_memory, check_memory};
use onramp_results::json_bytes;
use onramp_scenario::{Run, Scenario};
use onramp_sim::run::{run_in_parts, Parts, Progress, Watch};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::points::{Point, Read, Sweep};

/// Version of `sweep.json`, of the parts, and of the data set's columns.
pub const SWEEP_SCHEMA: u32 = 1;

/// The results of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// [`SWEEP_SCHEMA`].
    pub schema: u32,
    /// Its number.
    pub part: usize,
    pub(crate) rows: Vec<Row>,
}

/// A run, or a point that has none because its scenario is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub point: usize,
    /// Position among the runs of the point.
    pub run: usize,
    pub params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost: BTreeMap<String, f64>,
    /// Why it has no metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Part {
    /// The bytes of its file.
    pub fn bytes(&self) -> Vec<u8> {
        json_bytes(self)
    }
}

/// How a part is made.
pub struct Making<'a> {
    /// Of which sweep.
    pub sweep: &'a Sweep,
    /// Reads the files that the scenario names.
    pub read: Read<'a>,
    /// Threads of a run.
    pub threads: usize,
}

impl Making<'_> {
    /// Makes a part, below [`Sweep::parts`]. `going` hears what fraction of it is done, 0 to 1, and says whether to go on.
    /// None if it said no.
    pub fn part(&self, part: usize, going: &mut dyn FnMut(f64) -> bool) -> Option<Part> {
        let points = self.sweep.points_of(part);
        let number = points.len() as f64;
        let mut rows = Vec::new();
        for (position, point) in points.enumerate() {
            let mut going = |done: f64| going((position as f64 + done) / number);
            rows.extend(self.point(point, &mut going)?);
        }
        Some(Part {
            schema: SWEEP_SCHEMA,
            part,
            rows,
        })
    }

    fn point(&self, number: usize, going: &mut dyn FnMut(f64) -> bool) -> Option<Vec<Row>> {
        let settings = self.sweep.point(number);
        let scenario = match self.checked(&settings) {
            Ok(scenario) => scenario,
            Err(error) => {
                let row = Row::failed(number, 0, settings.into_iter().collect(), error);
                return Some(vec![row]);
            }
        };
        let runs = scenario.runs();
        let mut rows = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let mut params = run.params.clone();
            params.extend(settings.iter().cloned());
            let mut going = |done: f64| going((index as f64 + done) / runs.len() as f64);
            rows.push(match self.run(run, index, &mut going) {
                Made::Interrupted => return None,
                Made::Failed(error) => Row::failed(number, index, params, error),
                Made::Whole(metrics, cost) => Row {
                    point: number,
                    run: index,
                    params,
                    metrics,
                    cost,
                    error: None,
                },
            });
        }
        Some(rows)
    }

    fn checked(&self, settings: &Point) -> Result<Scenario, String> {
        let scenario = self.sweep.scenario(settings, self.read);
        let scenario = scenario.map_err(|errors| errors.to_string().replace("--set: ", ""))?;
        check_memory(&scenario, 1, available_memory()).map_err(|error| error.to_string())?;
        Ok(scenario)
    }

    fn run(&self, run: &Run, index: usize, going: &mut dyn FnMut(f64) -> bool) -> Made {
        let mut interrupted = false;
        let made = catch_unwind(AssertUnwindSafe(|| {
            let mut progress = |now: Progress| {
                interrupted = !going(now.done);
                !interrupted
            };
            let parts = Parts::AtMost(self.threads);
            run_in_parts(run, index, Watch::default(), parts, &mut progress)
        }));
        match made {
            Ok(_) if interrupted => Made::Interrupted,
            Ok(Ok(report)) => match &report.mistake {
                Some(mistake) => Made::Failed(mistake.to_string()),
                None => Made::Whole(
                    report.result().metrics.clone(),
                    report.result().cost.clone(),
                ),
            },
            Ok(Err(error)) => Made::Failed(error.to_string()),
            Err(_) => Made::Failed("the simulator panicked; what it printed says where".to_owned()),
        }
    }
}

enum Made {
    Whole(BTreeMap<String, Value>, BTreeMap<String, f64>),
    Failed(String),
    Interrupted,
}

impl Row {
    fn failed(point: usize, run: usize, params: BTreeMap<String, String>, error: String) -> Row {
        Row {
            point,
            run,
            params,
            metrics: BTreeMap::new(),
            cost: BTreeMap::new(),
            error: Some(error),
        }
    }
}
