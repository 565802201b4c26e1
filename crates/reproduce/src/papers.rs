// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What each paper's rows came to: counts of verdicts and a few results, misses included. docs/reproduction.md and
//! README.md show both.

use std::fmt::Write;

use onramp_results::figure::{fullest, By, Figure, Gives, Measured, Row, Tally};

use crate::table::{of_world, one_line, paper, value, verdict_of};

const WORLD: &str = "sim";

/// A paper: its name, how the names of its figures begin, and the page about it.
const PAPERS: [(&str, &str, &str); 4] = [
    ("On-Ramp, NSDI 2021", "", "docs/reproduction.md"),
    ("TIMELY, SIGCOMM 2015", "timely-", "docs/timely.md"),
    ("Tiny Buffer TCP", "tbtcp-", "docs/tbtcp.md"),
    ("TCP RAPID", "rapid-", "docs/rapid.md"),
];

/// A figure, one of its rows, and its name for readers. Each paper has a result that holds and one that does not.
const HEADLINES: [(&str, &str, &str); 11] = [
    (
        "f9",
        "RCT mean, off / final",
        "mean time of a request, without / with On-Ramp, CUBIC",
    ),
    ("f10", "RCT mean, off / final", "the same with BBR"),
    (
        "f15",
        "RCT mean, off / final, dcqcn",
        "the same with DCQCN in an RDMA fabric",
    ),
    (
        "f13",
        "timeouts, off / final, incast at a load of 0.2",
        "timeouts with answers of 500 kB, without / with On-Ramp",
    ),
    (
        "timely-t1",
        "RTT p99, PFC / TIMELY",
        "p99 of round-trip times, PFC alone / TIMELY",
    ),
    ("timely-t1", "throughput, TIMELY", "throughput of TIMELY"),
    (
        "tbtcp-f17",
        "FCT mean, 4 kB, Tiny Buffer TCP / DCTCP",
        "flows of 4 kB, Tiny Buffer TCP against DCTCP",
    ),
    (
        "tbtcp-f17",
        "FCT mean, 5 MB, Tiny Buffer TCP / DCTCP",
        "flows of 5 MB, Tiny Buffer TCP against DCTCP",
    ),
    (
        "tbtcp-f15",
        "longest queue of 100 flows, Tiny Buffer TCP / DCTCP with K = 400 kB",
        "longest queue of 100 flows against DCTCP",
    ),
    (
        "rapid-t1",
        "throughput, rapid, bct",
        "throughput of RAPID beside bursty traffic",
    ),
    (
        "rapid-t1",
        "loss, rapid, web-30ms",
        "loss of RAPID beside web traffic",
    ),
];

/// Rows of verdicts by paper: the simulator's, each at the fullest scale that ran.
pub fn counts(figures: &[Figure]) -> String {
    let mut text =
        "| paper | rows | reproduced | point estimate only | direction only | not reproduced | not measured |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    for (name, prefix, page) in PAPERS {
        let figures = fullest(figures).filter(|figure| figure.scale != "rack");
        let rows = figures
            .filter(|figure| prefix_of(&figure.id) == prefix)
            .flat_map(|figure| &figure.rows);
        let rows: Vec<&Row> = rows.collect();
        let tallies = [Gives::Number, Gives::Words, Gives::Picture]
            .map(|gives| Tally::of(rows.iter().copied(), gives, |world| world != "rack"));
        let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
        let _ = writeln!(
            text,
            "| [{name}]({page}) | {} | {} | {} | {} | {} | {} |",
            sum(Tally::total),
            sum(|tally| tally.reproduced),
            sum(|tally| tally.point_estimate),
            sum(|tally| tally.direction_only),
            sum(|tally| tally.not_reproduced),
            sum(|tally| tally.not_measured)
        );
    }
    text
}

/// How the names of the figures of this one's paper begin.
fn prefix_of(id: &str) -> &'static str {
    let mut papers = PAPERS.iter().rev().map(|(_, prefix, _)| *prefix);
    let found = papers.find(|prefix| id.starts_with(prefix));
    found.unwrap_or_default()
}

/// The headlines that these figures have.
pub fn headlines(figures: &[Figure]) -> String {
    let mut text =
        "| figure | result | paper | here | verdict |\n|---|---|---|---|---|\n".to_owned();
    for (id, name, words) in HEADLINES {
        let mut figures = fullest(figures).filter(|figure| figure.scale != "rack");
        let figure = figures.find(|figure| figure.id == id);
        let row = figure.and_then(|figure| figure.rows.iter().find(|row| row.name == name));
        if let Some(row) = row {
            let measured = of_world(row, WORLD);
            let (value, verdict) = (signed(measured, row), verdict_of(measured));
            let _ = writeln!(
                text,
                "| {id} | {words} | {} | {value} | {verdict} |",
                said(row)
            );
        }
    }
    text
}

/// Our number. A change has its sign, because the paper's words have it in another form.
fn signed(measured: Option<&Measured>, row: &Row) -> String {
    let grows = measured.and_then(|measured| measured.value) > Some(0.0);
    let sign = if row.by == By::Change && grows {
        "+"
    } else {
        ""
    };
    format!("{sign}{}", value(measured, row))
}

/// The paper's number, or its words.
fn said(row: &Row) -> String {
    let words = row
        .source
        .rsplit_once(": ")
        .map(|(_, words)| one_line(words));
    match (row.paper, words) {
        (None, Some(words)) => words,
        _ => paper(row),
    }
}

/// Headlines whose row no figure has: it was renamed.
pub fn lost_headlines(figures: &[Figure]) -> Vec<&'static str> {
    let has = |id: &str, name: &str| {
        let mut of_id = figures.iter().filter(|figure| figure.id == id);
        of_id.any(|figure| figure.rows.iter().any(|row| row.name == name))
    };
    let lost = HEADLINES.iter().filter(|(id, name, _)| !has(id, name));
    lost.map(|(_, name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{figure, measured, row};
    use onramp_results::figure::Verdict;

    fn figures() -> Vec<Figure> {
        let rct = |verdict| {
            let of = |world| measured(world, Some(2.9), verdict);
            row("RCT mean, off / final", 2.6, vec![of("sim"), of("rack")])
        };
        let rows = vec![rct(Verdict::Reproduced), rct(Verdict::NotReproduced)];
        let mut timely = figure("quick", rows.clone());
        timely.id = "timely-t1".to_owned();
        vec![figure("full", rows.clone()), figure("rack", rows), timely]
    }

    #[test]
    fn rows_count_for_their_paper_and_not_again_on_the_rack() {
        let text = counts(&figures());
        assert!(
            text.contains("docs/reproduction.md) | 2 | 1 | 0 | 0 | 1 | 0 |"),
            "{text}"
        );
        assert!(
            text.contains("docs/timely.md) | 2 | 1 | 0 | 0 | 1 | 0 |"),
            "{text}"
        );
        assert!(
            text.contains("docs/rapid.md) | 0 | 0 | 0 | 0 | 0 | 0 |"),
            "{text}"
        );
    }

    #[test]
    fn a_headline_is_the_simulators_row() {
        let text = headlines(&figures());
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.ends_with("CUBIC | 2.60 x | 2.90 x | reproduced |\n"),
            "{text}"
        );
        assert_eq!(lost_headlines(&figures()).len(), HEADLINES.len() - 1);
    }
}
