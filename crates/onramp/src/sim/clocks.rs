// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The table of `onramp clock simulate`: a line for each window of each run.

use anyhow::{bail, Result};
use onramp_results::{RunResult, SummaryFile};
use onramp_scenario::{Clock, Scenario};
use onramp_units::Span;
use serde_json::Value;
use std::fmt::Write as _;

/// Refuses a scenario whose table would be empty.
pub fn check(scenario: &Scenario) -> Result<()> {
    let runs = scenario.runs();
    if runs.iter().all(|run| are_exact(&run.clock)) {
        bail!(
            "clock.offset, clock.drift, clock.noise and clock.wander are 0, so all clocks are exact; set one, e.g. \
             --set \"clock.drift=1/100000\""
        );
    }
    let short = runs.iter().find(|run| run.duration < run.clock.window);
    if let Some(run) = short {
        bail!(
            "duration is {}, below clock.window {}, so no clock is corrected; lengthen the one or shorten the other",
            run.duration,
            run.clock.window
        );
    }
    Ok(())
}

fn are_exact(clock: &Clock) -> bool {
    let parts = [clock.drift, clock.wander].map(|part| part.get());
    parts == [0.0; 2] && [clock.offset, clock.noise] == [Span::ZERO; 2]
}

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
            "window  hosts  error ns                              within    most   an edge  pure\n\
             end ms             mean     p50     p99     max   2 sigma  sigmas  sigma ns   pairs"
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
    let errors = ["error_ns", "within_2_sigma", "most_sigmas"].map(|name| &window[name]);
    row(out, &end, errors, &edges);
}

fn all(out: &mut String, run: &RunResult) {
    let of = |name: &str| run.metrics.get(name).unwrap_or(&Value::Null);
    let names = [
        "clock.error_ns",
        "clock.within_2_sigma",
        "clock.most_sigmas",
    ];
    row(out, "   all", names.map(of), "");
}

/// `errors`: their distribution, the part within two sigmas, the largest in sigmas.
fn row(out: &mut String, what: &str, [errors, within, most]: [&Value; 3], rest: &str) {
    // No host has fleet time before the first correction.
    if errors.is_null() {
        let _ = writeln!(out, "{what}      0{:>57}{rest}", "");
        return;
    }
    let [n, mean, p50, p99, max] = ["n", "mean", "p50", "p99", "max"].map(|f| number(&errors[f]));
    let (within, most) = (100.0 * number(within), number(most));
    let _ = writeln!(
        out,
        "{what}  {n:>5}  {mean:>7.1} {p50:>7.1} {p99:>7.1} {max:>7.1}   {within:>5.1} %{most:>8.1}{rest}"
    );
}

fn pure(window: &Value) -> f64 {
    100.0 * number(&window["pure"]) / number(&window["pairs"]).max(1.0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(clock: &str) -> Option<String> {
        let text = format!(
            "title = \"t\"\nduration = \"200 ms\"\n[network]\ntopology = {{ kind = \"star\", hosts = 2 }}\n\
             link = {{ rate = \"10 Gbit/s\", delay = \"1 us\" }}\n[host]\ncc = \"cubic\"\n{clock}\n\
             [[traffic]]\nkind = \"poisson\"\nto = \"all\"\nworkload = \"websearch\"\nload = \"50 %\"\n"
        );
        let scenario = Scenario::parse(&text, "t").unwrap();
        check(&scenario).err().map(|error| error.to_string())
    }

    #[test]
    fn clocks_without_errors_or_corrections_have_no_table() {
        let exact = refused("[clock]\nwindow = \"20 ms\"").unwrap();
        assert!(exact.contains("all clocks are exact; set one"), "{exact}");
        let short = refused("[clock]\ndrift = \"1/100000\"").unwrap();
        assert!(
            short.starts_with("duration is 200 ms, below clock.window 2 s"),
            "{short}"
        );
        assert_eq!(
            refused("[clock]\ndrift = \"1/100000\"\nwindow = \"20 ms\""),
            None
        );
    }
}
