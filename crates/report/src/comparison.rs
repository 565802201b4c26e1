// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Comparison with the paper: a row's numbers, ratios and verdict.

use maud::{html, Markup};
use onramp_results::figure::{world_name, worlds, Gives, Measured, Row, Verdict};

use crate::number::{exact, three, unit};

/// All verdicts, best first.
pub const VERDICTS: [Verdict; 6] = [
    Verdict::Reproduced,
    Verdict::PointEstimate,
    Verdict::DirectionOnly,
    Verdict::NotReproduced,
    Verdict::NotMeasured,
    Verdict::Beyond,
];

/// The strip of ratios reaches from 1/REACH to REACH.
const REACH: f64 = 4.0;
/// The largest ratio of [`Verdict::Reproduced`].
const CLOSE: f64 = 1.5;
/// Width of the strip, in its own units.
const WIDTH: f64 = 120.0;

/// A verdict's class, mark and words.
pub fn words(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Reproduced => ("good", "\u{2713}", "reproduced"),
        Verdict::PointEstimate => ("likely", "~", "point estimate only"),
        Verdict::DirectionOnly => ("fair", "\u{2248}", "direction only"),
        Verdict::NotReproduced => ("bad", "\u{2717}", "not reproduced"),
        Verdict::NotMeasured => ("unknown", "?", "not measured"),
        Verdict::Beyond => ("beyond", "+", "beyond the paper"),
    }
}

/// A verdict with its mark and its count.
pub fn badge(verdict: Verdict, count: Option<usize>) -> Markup {
    let (class, mark, words) = words(verdict);
    html! {
        span class={ "badge " (class) } {
            span aria-hidden="true" { (mark) } " "
            @if let Some(count) = count { (count) " " }
            (words)
        }
    }
}

/// A verdict's mark and its count, without its words.
pub fn tally(verdict: Verdict, count: usize) -> Markup {
    let (class, mark, words) = words(verdict);
    let meaning = format!("{count} {words}");
    html! {
        span class={ "badge " (class) } role="img" aria-label=(meaning) title=(meaning) { (mark) " " (count) }
    }
}

/// The table of a figure's rows.
pub fn table(rows: &[Row], is_of_paper: bool) -> Markup {
    match is_of_paper {
        true => table_with_paper(rows),
        false => own_table(rows),
    }
}

/// That of an experiment of one's own: no paper, no verdicts.
fn own_table(rows: &[Row]) -> Markup {
    let worlds = worlds(rows);
    let of =
        |row: &Row, world: &str| value(row.measured.iter().find(|m| m.world == world), &row.unit);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Measured" {
            table.comparison {
                thead { tr {
                    th scope="col" { "Quantity" }
                    @for world in &worlds { th.number scope="col" { (world_name(world)) } }
                    th scope="col" { "Note" }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" { (row.name) }
                    @for world in &worlds { td.number data-label=(world_name(world)) { (of(row, world)) } }
                    td.note data-label="Note" { (row.note) }
                } } }
            }
        }
    }
}

fn table_with_paper(rows: &[Row]) -> Markup {
    let worlds = worlds(rows);
    let has_paper = rows.iter().any(|row| row.paper.is_some());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Comparison with the paper" {
            table.comparison {
                thead { tr {
                    th scope="col" { "Quantity" }
                    th.number scope="col" { "Paper" }
                    @for world in &worlds { th.number scope="col" { (world_name(world)) } }
                    @if has_paper { th scope="col" { "Measured \u{f7} paper" (scale()) } }
                    th scope="col" { "Verdict" }
                    th scope="col" { "Why" }
                } }
                tbody { @for row in rows { (table_row(row, &worlds, has_paper)) } }
            }
        }
    }
}

fn table_row(row: &Row, worlds: &[&str], has_paper: bool) -> Markup {
    let of = |world: &str| row.measured.iter().find(|m| m.world == world);
    html! {
        tr {
            th scope="row" { (row.name) }
            td.number data-label="Paper" { div {
                @match (row.paper, row.gives) {
                    (Some(paper), _) => span.value { (exact(paper)) (unit(&row.unit)) },
                    (None, Some(Gives::Words)) => span.muted { "in words" },
                    (None, Some(_)) => span.muted { "picture only" },
                    (None, None) => "\u{2013}",
                }
                @if !row.source.is_empty() { div.muted.small.source { (row.source) } }
            } }
            @for world in worlds {
                @let measured = of(world).filter(|measured| measured.value.is_some());
                td.number.none[measured.is_none()] data-label=(world_name(world)) { (value(measured, &row.unit)) }
            }
            @if has_paper { td.ratio data-label="Measured \u{f7} paper" { (ratios(row)) } }
            td data-label="Verdict" { div { @for measured in &row.measured {
                div.verdict-line {
                    (badge(measured.verdict, None))
                    @if worlds.len() > 1 { " " span.muted.small { (world_name(&measured.world)) } }
                }
            } } }
            td.note data-label="Why" { (row.note) }
        }
    }
}

fn value(measured: Option<&Measured>, of: &str) -> Markup {
    let Some(Measured {
        value: Some(value),
        interval,
        ..
    }) = measured
    else {
        return html! { "\u{2013}" };
    };
    html! {
        div {
            span.value title=(value) { (three(*value)) (unit(of)) }
            @if let Some([low, high]) = interval {
                div.muted.small title="95 % confidence interval over seeds" {
                    "[" (three(*low)) ", " (three(*high)) "]"
                }
            }
        }
    }
}

fn ratios(row: &Row) -> Markup {
    let ratio = |m: &Measured| {
        row.ratio(m)
            .map(|ratio| (world_name(&m.world).to_owned(), ratio))
    };
    let ratios: Vec<_> = row.measured.iter().filter_map(ratio).collect();
    html! {
        @if !ratios.is_empty() {
            div { @for (world, (ratio, interval)) in ratios {
                div.strip-line {
                    span.value { (three(ratio)) }
                    (strip(ratio, interval))
                    span.muted.small { (world) }
                }
            } }
        }
    }
}

/// The range of the strips, for the heading.
fn scale() -> Markup {
    html! { div.muted.small.scale { "strip: \u{bc} to 4, shaded within 1.5" } }
}

/// Position of a ratio between 1/REACH and REACH, with 1 in the middle; an arrow outside.
fn strip(ratio: f64, interval: Option<[f64; 2]>) -> Markup {
    let at = |ratio: f64| {
        let part = ratio.max(f64::MIN_POSITIVE).log(REACH).clamp(-1.0, 1.0);
        WIDTH / 2.0 * (1.0 + part)
    };
    let tenth = |v: f64| format!("{v:.1}");
    let is_inside = (1.0 / REACH..=REACH).contains(&ratio);
    let x = at(ratio);
    let tip = if ratio > REACH { WIDTH } else { 0.0 };
    let base = tip + if ratio > REACH { -8.0 } else { 8.0 };
    html! {
        svg.strip viewBox={ "0 0 " (WIDTH) " 16" } width=(WIDTH) height="16" aria-hidden="true" {
            rect.band x=(tenth(at(1.0 / CLOSE))) width=(tenth(at(CLOSE) - at(1.0 / CLOSE))) y="1" height="14" {}
            line.one x1=(WIDTH / 2.0) x2=(WIDTH / 2.0) y1="0" y2="16" {}
            @if let Some([low, high]) = interval {
                line.whisker x1=(tenth(at(low))) x2=(tenth(at(high))) y1="8" y2="8" {}
            }
            @if is_inside {
                circle.dot cx=(tenth(x)) cy="8" r="4" {}
            } @else {
                path.dot d={ "M" (tip) " 8 L" (base) " 3 L" (base) " 13 Z" } {}
            }
        }
    }
}
