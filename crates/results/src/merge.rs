//! Puts the files of finished runs together: `summary.json`, `flows.parquet`, `requests.parquet`,
//! `series.parquet`. A run whose JSON is missing is left out.

use crate::columns;
use crate::error::Result;
use crate::tables::SCHEMAS;
use crate::{part, read_json, write_json, RunResult, SummaryFile, SCHEMA};
use onramp_scenario::Scenario;
use std::path::Path;

/// Merges what `directory` holds of the scenario's runs and writes the whole files beside it. A
/// missing run, or one that was ended early, makes the summary partial. `world` is "rack" or "sim".
///
/// # Errors
/// Files that cannot be read or written.
pub fn merge(scenario: &Scenario, directory: &Path, world: &str) -> Result<SummaryFile> {
    let planned = scenario.runs().len();
    // A run is over when its JSON is there: it is written last.
    let finished: Vec<usize> = (0..planned)
        .filter(|&index| part(directory, "run", index, "json").exists())
        .collect();
    let read = |&index: &usize| read_json::<RunResult>(&part(directory, "run", index, "json"));
    let runs = finished.iter().map(read).collect::<Result<Vec<_>>>()?;
    for (stem, schema) in SCHEMAS {
        let groups = finished
            .iter()
            .flat_map(|&index| columns::read(part(directory, stem, index, "parquet")));
        columns::write(
            &directory.join(stem).with_extension("parquet"),
            schema,
            groups,
        )?;
    }
    let summary = SummaryFile {
        schema: SCHEMA,
        scenario: scenario.title().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: scenario.runs().first().map_or(0, |run| run.seed),
        world: world.to_owned(),
        partial: finished.len() < planned || runs.iter().any(|run| run.partial),
        planned_runs: planned,
        runs,
    };
    write_json(&directory.join("summary.json"), &summary)?;
    Ok(summary)
}

/// Runs of `scenario` that are not whole in `directory`: of which a file is missing, or that were ended early.
pub fn missing_runs(scenario: &Scenario, directory: &Path) -> Vec<usize> {
    let is_whole = |index: usize| {
        let result: Result<RunResult> = read_json(&part(directory, "run", index, "json"));
        let has = |stem: &str| part(directory, stem, index, "parquet").exists();
        result.is_ok_and(|result| !result.partial) && SCHEMAS.iter().all(|(stem, _)| has(stem))
    };
    let runs = 0..scenario.runs().len();
    runs.filter(|&index| !is_whole(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowRow, RequestRow, SeriesRow, Tables};
    use std::collections::BTreeMap;

    fn tables() -> Tables {
        let flow = FlowRow {
            kind: "incast",
            traffic: 0,
            request: Some(3),
            src: 1,
            dst: 0,
            size_bytes: Some(2000),
            start_ns: 10,
            fct_ns: None,
            retransmissions: 2,
            timeouts: 1,
            measured: 1,
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
            measured: 1,
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
        tables().write(directory.path(), 1).unwrap();
        write_json(&part(directory.path(), "run", 1, "json"), &result).unwrap();

        assert_eq!(missing_runs(&scenario, directory.path()), [0]);
        let summary = merge(&scenario, directory.path(), "rack").unwrap();
        assert!(summary.partial);
        assert_eq!(summary.runs, [result]);
        let flows = columns::read(directory.path().join("flows.parquet"))
            .collect::<Result<Vec<_>>>()
            .unwrap();
        assert_eq!(flows.len(), 1);
        assert_eq!(flows[0][0], columns::Column::Int(vec![1, 1, 1]));
        assert_eq!(flows[0][8], columns::Column::OptInt(vec![None; 3]));
        let written: SummaryFile = read_json(&directory.path().join("summary.json")).unwrap();
        assert_eq!(written, summary);
        assert_eq!((written.runs.len(), written.whole_runs()), (1, 1));

        std::fs::remove_file(part(directory.path(), "flows", 1, "parquet")).unwrap();
        assert_eq!(missing_runs(&scenario, directory.path()), [0, 1]);
    }
}
