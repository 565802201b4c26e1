//! The table of `onramp clock simulate`: a line for each window of each run.

use onramp_results::{RunResult, SummaryFile};
use serde_json::Value;
use std::fmt::Write as _;

/// The errors of the hosts' clocks at the end of each window, and over all windows.
pub fn table(summary: &SummaryFile) -> String {
    let mut out = String::new();
    for run in &summary.runs {
        let params: Vec<String> = run
            .params
            .iter()
            .map(|(k, v)| format!("{k} = {v}"))
            .collect();
        if !params.is_empty() {
            let _ = writeln!(out, "{}", params.join(", "));
        }
        let _ = writeln!(
            out,
            "window  hosts  error ns                              within   an edge  pure\n\
             end ms             mean     p50     p99     max   2 sigma  sigma ns   pairs"
        );
        let windows = run.metrics.get("clock.windows").and_then(Value::as_array);
        for window in windows.into_iter().flatten() {
            line(&mut out, window);
        }
        all(&mut out, run);
    }
    out
}

fn line(out: &mut String, window: &Value) {
    let edges = format!(
        "{:>10.1}  {:>4.1} %",
        number(&window["edge_sigma_ns"]),
        pure(window)
    );
    let end = format!("{:>6.0}", number(&window["end_ms"]));
    errors(
        out,
        &end,
        &window["error_ns"],
        &window["within_2_sigma"],
        &edges,
    );
}

fn all(out: &mut String, run: &RunResult) {
    let of = |name: &str| run.metrics.get(name).unwrap_or(&Value::Null);
    errors(
        out,
        "   all",
        of("clock.error_ns"),
        of("clock.within_2_sigma"),
        "",
    );
}

fn errors(out: &mut String, what: &str, errors: &Value, honest: &Value, rest: &str) {
    // No host has fleet time before the first correction.
    if errors.is_null() {
        let _ = writeln!(out, "{what}      0{:>49}{rest}", "");
        return;
    }
    let [n, mean, p50, p99, max] = ["n", "mean", "p50", "p99", "max"].map(|f| number(&errors[f]));
    let honest = 100.0 * number(honest);
    let _ = writeln!(
        out,
        "{what}  {n:>5}  {mean:>7.1} {p50:>7.1} {p99:>7.1} {max:>7.1}   {honest:>5.1} %{rest}"
    );
}

fn pure(window: &Value) -> f64 {
    100.0 * number(&window["pure"]) / number(&window["pairs"]).max(1.0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
