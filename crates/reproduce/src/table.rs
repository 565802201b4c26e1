// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The paper's numbers beside ours: the table of a figure for a terminal, whose cells
//! docs/reproduction.md ([`crate::page`]) also uses.

use onramp_results::figure::{world_name, worlds, Figure, Gives, Measured, Plot, Row, Verdict};
use std::fmt::Write;

/// One figure for a terminal; an experiment of one's own has no columns of a paper.
pub fn terminal(figure: &Figure) -> String {
    let own = figure.is_own();
    let mut text = match own {
        true => format!("{}: {}\n", figure.id, figure.title),
        false => format!("{}: {} ({})\n", figure.id, figure.title, figure.scale),
    };
    if !figure.scaled_down.is_empty() {
        let _ = writeln!(text, "scaled down: {}", figure.scaled_down);
    }
    if figure.partial {
        text += "PARTIAL: runs are missing\n";
    }
    if !figure.rows.is_empty() {
        rows(&mut text, &figure.rows, own);
    }
    for plot in figure.plots.iter().filter(|plot| is_empty(plot)) {
        let _ = writeln!(
            text,
            "nothing to draw in \"{}\": no run has a value",
            plot.title
        );
    }
    text
}

fn rows(text: &mut String, rows: &[Row], own: bool) {
    let names = rows.iter().map(|row| row.name.chars().count());
    let width = names.max().unwrap_or(0).max(4);
    let worlds = worlds(rows);
    let paper_of = |cell: &str| match own {
        true => String::new(),
        false => format!("  {cell:>12}"),
    };
    let verdict = |cell: &str| match own {
        true => String::new(),
        false => format!("  {cell:<19}"),
    };
    let _ = write!(text, "{:<width$}{}", "what", paper_of("paper"));
    for world in &worlds {
        let _ = write!(
            text,
            "  {:>28}{}",
            column(world, &worlds),
            verdict("verdict")
        );
    }
    end_line(text);
    for row in rows {
        let _ = write!(text, "{:<width$}{}", row.name, paper_of(&paper(row)));
        for measured in worlds.iter().map(|world| of_world(row, world)) {
            let cell = value(measured, row);
            let _ = write!(text, "  {cell:>28}{}", verdict(verdict_of(measured)));
        }
        end_line(text);
        if !row.note.is_empty() {
            let _ = writeln!(text, "    {}", one_line(&row.note));
        }
    }
}

fn is_empty(plot: &Plot) -> bool {
    plot.series
        .iter()
        .all(|series| series.y.iter().all(Option::is_none))
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push('\n');
}

/// Heading of a world's column. The simulator has none if it is the only world.
pub(crate) fn column<'a>(world: &'a str, worlds: &[&str]) -> &'a str {
    match worlds {
        ["sim"] => "measured",
        _ => world_name(world),
    }
}

/// The measurement of `world`; none if it cannot measure the row.
pub(crate) fn of_world<'a>(row: &'a Row, world: &str) -> Option<&'a Measured> {
    row.measured.iter().find(|m| m.world == world)
}

pub(crate) fn paper(row: &Row) -> String {
    match (row.paper, row.gives) {
        (Some(value), _) => with_unit(value, &row.unit),
        (None, Some(Gives::Words)) => "in words".to_owned(),
        (None, Some(_)) => "picture".to_owned(),
        (None, None) => String::new(),
    }
}

pub(crate) fn value(measured: Option<&Measured>, row: &Row) -> String {
    let Some(measured) = measured else {
        return "-".to_owned();
    };
    let Some(value) = measured.value else {
        return "not measured".to_owned();
    };
    let mut text = with_unit(value, &row.unit);
    if let Some([low, high]) = measured.interval {
        let _ = write!(text, " ({} to {})", number(low), number(high));
    }
    text
}

/// Our number divided by the paper's.
pub(crate) fn ratio(measured: Option<&Measured>, row: &Row) -> String {
    let ratio = measured.and_then(|measured| row.ratio(measured));
    ratio.map_or(String::new(), |(ratio, _)| number(ratio))
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => number(value),
        "x" => format!("{} x", number(value)),
        unit => format!("{} {unit}", number(value)),
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        m if m >= 100.0 || m == 0.0 => format!("{value:.0}"),
        m if m >= 10.0 => format!("{value:.1}"),
        m if m >= 1.0 => format!("{value:.2}"),
        m if m >= 0.1 => format!("{value:.3}"),
        m if m >= 0.0001 => format!("{value:.5}"),
        _ => format!("{value:.1e}"),
    }
}

pub(crate) fn verdict_of(measured: Option<&Measured>) -> &'static str {
    match measured.map(|measured| measured.verdict) {
        None => "",
        Some(Verdict::Reproduced) => "reproduced",
        Some(Verdict::PointEstimate) => "point estimate only",
        Some(Verdict::DirectionOnly) => "direction only",
        Some(Verdict::NotReproduced) => "not reproduced",
        Some(Verdict::NotMeasured) => "not measured",
        Some(Verdict::Beyond) => "beyond the paper",
    }
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{figure, measured, row};

    #[test]
    fn each_world_has_a_column() {
        let rct = vec![
            measured("sim", Some(2.6), Verdict::Reproduced),
            measured("rack", Some(13.0), Verdict::DirectionOnly),
        ];
        let cpu = vec![measured("rack", None, Verdict::NotMeasured)];
        let text = terminal(&figure(
            "rack",
            vec![row("RCT", 2.6, rct), row("CPU", 2.0, cpu)],
        ));
        let cells = |line: &str| -> Vec<String> {
            let cells = line.split("  ").map(str::trim);
            cells
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
        let heading = [
            "what",
            "paper",
            "simulator",
            "verdict",
            "real kernel",
            "verdict",
        ];
        assert_eq!(lines[1], heading);
        let rct = [
            "RCT",
            "2.60 x",
            "2.60 x",
            "reproduced",
            "13.0 x",
            "direction only",
        ];
        assert_eq!(lines[2], rct);
        assert_eq!(
            lines[3],
            ["CPU", "2.00 x", "-", "not measured", "not measured"]
        );
    }
}
