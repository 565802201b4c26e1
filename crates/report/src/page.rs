// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The page: an overview, then every section.

use std::ops::RangeFrom;

use maud::{html, Markup, PreEscaped, DOCTYPE};
use onramp_results::figure::{Axis, Gives, Plot, PlotKind, Row, Verdict};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::comparison::{self, badge, VERDICTS};
use crate::section::{Section, Table};

const PLOTLY: &str = include_str!("../assets/plotly-cartesian.min.js");
const PLOTLY_LICENCE: &str = include_str!("../assets/plotly-LICENSE");
const THEME: &str = include_str!("../assets/theme.js");
const SCRIPT: &str = include_str!("../assets/report.js");
const STYLE: &str = include_str!("../assets/report.css");
const PALETTE: &str = include_str!("../assets/palette.json");

/// Nothing may be fetched, sent or framed; all scripts are in the page.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; form-action 'none'; base-uri 'none'";

/// The forms in which the paper gives a row.
const GIVEN: [(Option<Gives>, &str); 4] = [
    (Some(Gives::Number), "Numbers"),
    (Some(Gives::Words), "Claims in words"),
    (Some(Gives::Picture), "Pictures"),
    (None, "Beyond the paper"),
];

/// Data of the script.
#[derive(Serialize)]
struct Data<'a> {
    palette: &'a RawValue,
    plots: Vec<Drawn<'a>>,
}

/// A plot, and the colour of each of its series: one name has one colour in a section.
#[derive(Serialize)]
struct Drawn<'a> {
    #[serde(flatten)]
    plot: &'a Plot,
    colours: Vec<usize>,
}

/// One page of `sections`, in their order. The same sections give the same bytes.
pub fn page(sections: &[Section]) -> String {
    let mut numbers = 0..;
    let anchors = anchors(sections);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "onramp report" }
                style { (PreEscaped(STYLE)) }
                script { (PreEscaped(THEME)) }
            }
            body {
                header.top {
                    h1 { "onramp report" }
                    button #theme type="button" { "dark" }
                }
                main {
                    noscript { p.partial { "The plots need JavaScript; the tables do not." } }
                    (overview(sections, &anchors))
                    @for (section, anchor) in sections.iter().zip(&anchors) {
                        (show(section, anchor, &mut numbers))
                    }
                }
                script #data type="application/json" { (PreEscaped(data(sections))) }
                script { "/* Plotly:\n" (PreEscaped(PLOTLY_LICENCE)) "*/\n" (PreEscaped(PLOTLY)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// An anchor for each section: its name, made unique.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let mut anchor = format!(
            "figure-{}",
            section.name.chars().map(fits).collect::<String>()
        );
        if anchors.contains(&anchor) {
            anchor = format!("{anchor}--{index}");
        }
        anchors.push(anchor);
    }
    anchors
}

/// The plots, in the order of their numbers, as JSON that cannot end its script element.
fn data(sections: &[Section]) -> String {
    let palette = serde_json::from_str(PALETTE).expect("the palette is JSON");
    let plots = sections.iter().flat_map(drawn).collect();
    let text = serde_json::to_string(&Data { palette, plots }).expect("plain data has a JSON form");
    text.replace('<', "\\u003c").replace('>', "\\u003e")
}

fn drawn(section: &Section) -> Vec<Drawn<'_>> {
    let mut names: Vec<&str> = Vec::new();
    let mut drawn = Vec::new();
    for plot in &section.plots {
        let mut colours = Vec::new();
        for series in &plot.series {
            // `off (n = 561)` is `off`.
            let name = series.name.split(" (").next().unwrap_or_default();
            let known = names.iter().position(|other| *other == name);
            colours.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(name);
            }
        }
        drawn.push(Drawn { plot, colours });
    }
    drawn
}

/// Verdicts that were given, with their counts.
fn counts<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<(Verdict, usize)> {
    let verdicts: Vec<Verdict> = rows
        .into_iter()
        .flat_map(|row| &row.measured)
        .map(|measured| measured.verdict)
        .collect();
    let count = |verdict| (verdict, verdicts.iter().filter(|v| **v == verdict).count());
    VERDICTS
        .map(count)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Whether the rows of `section` count: they do not if the same figure is here at a larger scale.
fn is_counted(section: &Section, sections: &[Section]) -> bool {
    let is_fuller = |other: &Section| other.name == section.name && other.scale == "full";
    section.scale != "quick" || !sections.iter().any(is_fuller)
}

/// Marks of the verdicts on the rows for which the paper gives `gives`.
fn verdicts(section: &Section, gives: Option<Gives>) -> Markup {
    let rows = section.rows.iter().filter(|row| row.gives == gives);
    html! { @for (verdict, count) in counts(rows) { (comparison::tally(verdict, count)) " " } }
}

/// Counts of the verdicts on the rows of one kind: a number shows more than the shape of a picture.
fn of_kind(rows: &[&Row], gives: Option<Gives>, name: &str) -> Markup {
    let all = counts(rows.iter().copied().filter(|row| row.gives == gives));
    html! {
        @if !all.is_empty() {
            p.verdicts {
                strong { (name) ":" } " "
                @for (verdict, count) in &all { (badge(*verdict, Some(*count))) " " }
            }
            div.share aria-hidden="true" {
                @for (verdict, count) in &all {
                    span class=(comparison::words(*verdict).0) style={ "flex-grow:" (count) } {}
                }
            }
        }
    }
}

fn overview(sections: &[Section], anchors: &[String]) -> Markup {
    let counted = sections
        .iter()
        .filter(|section| is_counted(section, sections));
    let of_papers = counted.filter(|section| section.is_of_paper());
    let rows: Vec<&Row> = of_papers.flat_map(|section| &section.rows).collect();
    let total: usize = counts(rows.iter().copied()).iter().map(|(_, n)| n).sum();
    let partial = sections
        .iter()
        .filter(|section| section.partial.is_some())
        .count();
    html! {
        section #overview aria-label="Overview" {
            @if total > 0 {
                @for (gives, given) in GIVEN { (of_kind(&rows, gives, given)) }
                details.legend-of-verdicts {
                    summary { "What the verdicts mean" }
                    ul {
                        li { (badge(Verdict::Reproduced, None)) " the whole confidence interval agrees with the paper: within a factor of 1.5 of its number, or of its effect as a ratio and as a logarithm; or within what the row states for words and pictures" }
                        li { (badge(Verdict::PointEstimate, None)) " the mean agrees, but part of its interval does not, or there is no interval" }
                        li { (badge(Verdict::DirectionOnly, None)) " the whole interval has the paper's direction, but the size differs" }
                        li { (badge(Verdict::NotReproduced, None)) " neither; the row gives the reason where one was found" }
                        li { (badge(Verdict::NotMeasured, None)) " no number of ours: runs are missing" }
                        li { (badge(Verdict::Beyond, None)) " the paper does not have it" }
                    }
                    p { "Intervals are 95 % confidence intervals of the mean over seeds." }
                }
            }
            @if partial > 0 {
                p.partial { strong { "Partial: " } (partial) " of " (sections.len()) " ended early; marked below." }
            }
            div.scroll tabindex="0" role="region" aria-label="Contents" {
                table.contents {
                    thead { tr {
                        th scope="col" { "" } th scope="col" { "Figure" }
                        @if total > 0 { @for (_, given) in GIVEN { th scope="col" { (given) } } }
                        th scope="col" { "" }
                    } }
                    tbody { @for (section, anchor) in sections.iter().zip(anchors) {
                        tr {
                            td { a href={ "#" (anchor) } { (section.name) } }
                            td.title { a href={ "#" (anchor) } { (section.title) } }
                            @if total > 0 { @for (gives, given) in GIVEN {
                                td data-label=(given) { @if section.is_of_paper() { (verdicts(section, gives)) } }
                            } }
                            td {
                                @if section.partial.is_some() { span.badge.warn { "partial" } " " }
                                @if section.stale.is_some() { span.badge.warn { "stale" } " " }
                                @if !is_counted(section, sections) { span.muted.small { "counted at scale full" } }
                            }
                        }
                    } }
                }
            }
        }
    }
}

/// A section; `numbers` are the numbers of its plots.
fn show(section: &Section, anchor: &str, numbers: &mut RangeFrom<usize>) -> Markup {
    html! {
        section.figure id=(anchor) {
            h2 { span.id { (section.name) } " " (section.title) }
            @if let Some(partial) = &section.partial {
                p.partial { strong { "Partial. " } (partial) }
            }
            @if let Some(what) = section.stale {
                p.partial { strong { "Stale. " } "After these results were made, " (what) " changed." }
            }
            @if !section.asked.is_empty() { p.asked { strong { "Asked: " } (section.asked) } }
            @if !section.scaled_down.is_empty() {
                p.scaled { strong { "Smaller than the paper: " } (section.scaled_down) }
            }
            @if !section.rows.is_empty() { (comparison::table(&section.rows, section.is_of_paper())) }
            @for table in &section.tables { (show_table(table)) }
            div.plots {
                @for (plot, number) in section.plots.iter().zip(numbers) { (show_plot(plot, number)) }
            }
            dl.facts { @for (name, fact) in &section.facts { div { dt { (name) } dd { (fact) } } } }
            @if !section.resolved.is_empty() {
                details {
                    summary { "Scenario, everything resolved (" (section.resolved.len()) ")" }
                    @for (name, scenario) in &section.resolved {
                        details {
                            summary { (name) }
                            pre tabindex="0" { (serde_json::to_string_pretty(scenario).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

fn show_plot(plot: &Plot, number: usize) -> Markup {
    html! {
        figure.plot {
            figcaption { (plot.title) }
            div.legend role="group" aria-label="Series, press to hide or show" {}
            div.chart data-plot=(number) role="img" aria-label=(plot.title) {}
            @if let Some(hidden) = unshown(plot) { p.muted.small { (hidden) } }
        }
    }
}

/// A note about values, or ends of intervals, that a logarithmic axis cannot show.
fn unshown(plot: &Plot) -> Option<String> {
    let is_lost = |axis: &Axis, value: f64| axis.log && value <= 0.0;
    let lost =
        |x: &f64, y: &Option<f64>| is_lost(&plot.x, *x) || y.is_some_and(|y| is_lost(&plot.y, y));
    let points = plot
        .series
        .iter()
        .flat_map(|series| series.x.iter().zip(&series.y));
    let (all, lost) = points.fold((0, 0), |(all, count), (x, y)| {
        (all + 1, count + usize::from(lost(x, y)))
    });
    let ends = plot.series.iter().flat_map(|series| &series.low).flatten();
    let ends = ends.filter(|end| is_lost(&plot.y, **end)).count();
    let words = match (lost, ends) {
        (0, 0) => return None,
        (0, 1) => "the lower end of an interval, which is".to_owned(),
        (0, ends) => format!("the lower ends of {ends} intervals, which are"),
        (lost, _) => format!("{lost} of {all} values are"),
    };
    (plot.kind != PlotKind::Heat)
        .then(|| format!("Not shown: {words} not above 0, as a logarithmic axis needs."))
}

fn show_table(table: &Table) -> Markup {
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table.plain {
                thead { (headings(table)) }
                tbody { @for row in &table.rows { tr {
                    @for (index, cell) in row.iter().enumerate() {
                        @if index == 0 { th scope="row" { (cell) } } @else { td.number { (cell) } }
                    }
                } } }
            }
        }
    };
    html! {
        @if table.folded {
            details { summary { (table.title) } (body) }
        } @else {
            h3 { (table.title) }
            (body)
        }
    }
}

/// A line of names, below a line of headings that neighbours share, if there are any.
fn headings(table: &Table) -> Markup {
    let groups = table.columns.chunk_by(|a, b| a.0 == b.0);
    html! {
        @if table.columns.iter().any(|(group, _)| !group.is_empty()) {
            tr { @for group in groups { th.group colspan=(group.len()) { (group[0].0) } } }
        }
        tr { @for (index, (_, name)) in table.columns.iter().enumerate() {
            th.number[index > 0] scope="col" { (name) }
        } }
    }
}
