// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Merges the files of finished runs into `summary.json`, `flows.parquet`, `requests.parquet` and
//! `series.parquet`. Omits runs without JSON.

use crate::columns;
use crate::error::Result;
use crate::files::{part, read_json, write_json};
use crate::labels::Labels;
use crate::run_result::{RunResult, SummaryFile};
use crate::schema::tables;
use onramp_scenario::Scenario;
use std::path::Path;

/// Merges the scenario's runs in `directory` and writes the merged files there. A missing or interrupted
/// run makes the summary partial. `world` is "rack" or "sim".
///
/// # Errors
/// Files that cannot be read or written.
pub fn merge(scenario: &Scenario, directory: &Path, world: &str) -> Result<SummaryFile> {
    let planned = scenario.runs().len();
    // A run's JSON is written last, so a run with JSON is complete.
    let finished: Vec<usize> = (0..planned)
        .filter(|&index| part(directory, "run", index, "json").exists())
        .collect();
    let read = |&index: &usize| read_json::<RunResult>(&part(directory, "run", index, "json"));
    let runs = finished.iter().map(read).collect::<Result<Vec<_>>>()?;
    let labels = Labels::of(&runs);
    for table in tables(runs.iter().any(RunResult::has_groups)) {
        let names = table.names();
        let groups = runs.iter().flat_map(|run| {
            let path = part(directory, table.stem, run.run, "parquet");
            let labels = &labels;
            columns::read(path, &names).map(move |group| Ok(labels.before(run, group?)))
        });
        let path = directory.join(table.stem).with_extension("parquet");
        columns::write(&path, &table.schema(&labels.declarations()), groups)?;
    }
    let summary = SummaryFile::of(scenario, world, runs);
    write_json(&directory.join("summary.json"), &summary)?;
    Ok(summary)
}

/// Runs of `scenario` that are incomplete in `directory`: a file is missing, or the run was interrupted.
pub fn missing_runs(scenario: &Scenario, directory: &Path) -> Vec<usize> {
    let is_whole = |index: usize| {
        let result: Result<RunResult> = read_json(&part(directory, "run", index, "json"));
        let has = |stem: &str| part(directory, stem, index, "parquet").exists();
        result.is_ok_and(|result| !result.partial)
            && tables(false).iter().all(|table| has(table.stem))
    };
    let runs = 0..scenario.runs().len();
    runs.filter(|&index| !is_whole(index)).collect()
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use crate::row::{FlowRow, RequestRow, SeriesRow};
    use crate::tables::Tables;
    use std::collections::BTreeMap;

    fn rows() -> Tables {
        let flow = FlowRow {
            kind: "incast",
            traffic: 0,
            request: Some(3),
            src: 1,
            group: None,
            dst: 0,
            size_bytes: Some(2000),
            start_ns: 10,
            fct_ns: None,
            retransmissions: 2,
            timeouts: 1,
            measured: true,
            path: Some("host1 switch0-host0".into()),
            simulated: None,
        };
        let request = RequestRow {
            traffic: 0,
            request: 3,
            start_ns: 10,
            rct_ns: Some(99),
            acked_ns: None,
            missing: 0,
            measured: true,
        };
        let series = SeriesRow {
            time_ns: 5,
            name: "queue_us",
            place: "switch0-host0".into(),
            value: 1.5,
        };
        Tables {
            flows: vec![flow; 3],
            requests: vec![request],
            series: vec![series],
        }
    }

    #[test]
    fn finished_runs_are_merged_and_missing_ones_make_it_partial() {
        let text = "title = \"t\"\nduration = \"1 ms\"\n[network]\n\
                    topology = { kind = \"star\", hosts = 3 }\n\
                    link = { rate = \"10 Gbit/s\", delay = \"1 us\" }\n\
                    [[traffic]]\nkind = \"long\"\nto = 0\nflows = 1\n\
                    [sweep]\n\"onramp.threshold\" = [\"40 us\", \"50 us\"]\n";
        let scenario = Scenario::parse(text, "t.toml").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let result = RunResult {
            run: 1,
            params: scenario.runs()[1].params.clone(),
            resolved: serde_json::Value::Null,
            partial: false,
            metrics: BTreeMap::from([("drops".to_owned(), 4.into())]),
            cost: BTreeMap::new(),
        };
        rows().write(directory.path(), &result).unwrap();
        write_json(&part(directory.path(), "run", 1, "json"), &result).unwrap();

        assert_eq!(missing_runs(&scenario, directory.path()), [0]);
        let summary = merge(&scenario, directory.path(), "rack").unwrap();
        assert!(summary.partial);
        assert_eq!(summary.runs, [result]);
        let names = ["run", "param_onramp_threshold_ns", "fct_ns"];
        let flows = columns::read(directory.path().join("flows.parquet"), &names)
            .collect::<Result<Vec<_>>>()
            .unwrap();
        assert_eq!(flows.len(), 1);
        assert_eq!(flows[0][0], columns::Column::Int(vec![1, 1, 1]));
        let threshold = columns::Column::OptDouble(vec![Some(50_000.0); 3]);
        assert_eq!(flows[0][1], threshold);
        assert_eq!(flows[0][2], columns::Column::OptInt(vec![None; 3]));
        let written: SummaryFile = read_json(&directory.path().join("summary.json")).unwrap();
        assert_eq!(written, summary);
        assert_eq!((written.runs.len(), written.whole_runs()), (1, 1));

        std::fs::remove_file(part(directory.path(), "flows", 1, "parquet")).unwrap();
        assert_eq!(missing_runs(&scenario, directory.path()), [0, 1]);
    }
}
