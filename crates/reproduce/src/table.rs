//! The paper's numbers beside ours, for a terminal and for docs/reproduction.md.

use crate::library::natural;
use onramp_results::figure::{Figure, Measured, Row, Verdict};
use std::fmt::Write;

/// One figure for a terminal.
pub fn terminal(figure: &Figure) -> String {
    let mut text = format!("{}: {} ({})\n", figure.id, figure.title, figure.scale);
    if !figure.scaled_down.is_empty() {
        let _ = writeln!(text, "scaled down: {}", figure.scaled_down);
    }
    if figure.partial {
        text += "PARTIAL: runs are missing\n";
    }
    let names = figure.rows.iter().map(|row| row.name.chars().count());
    let width = names.max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "{:<width$}  {:>12}  {:>28}  verdict",
        "what", "paper", "measured"
    );
    for row in &figure.rows {
        let measured: Vec<String> = row.measured.iter().map(|m| of_world(m, row)).collect();
        let measured = measured.join(", ");
        let (name, paper) = (&row.name, paper(row));
        let _ = writeln!(
            text,
            "{name:<width$}  {paper:>12}  {measured:>28}  {}",
            verdict(row.verdict)
        );
        if !row.note.is_empty() {
            let _ = writeln!(text, "    {}", one_line(&row.note));
        }
    }
    text
}

/// docs/reproduction.md: all rows of `figures`.
pub fn markdown(figures: &[Figure]) -> String {
    let mut figures: Vec<&Figure> = figures.iter().collect();
    figures.sort_by_key(|figure| (natural(&figure.id), figure.scale == "quick"));
    let mut text = String::from(
        "# Reproduction\n\n\
         <!-- Generated from the figure.json of runs, which docs/reproduction.json keeps without their \
         plots; a test compares: onramp reproduce --table -->\n\n\
         Each row of the On-Ramp paper (NSDI'21), and what `onramp reproduce ID` measured: means with \
         their 95 % confidence intervals over seeds (Student's t; of ratios by their logarithms, over the \
         seeds' ratios). *Ratio*: ours by the paper's, of what falls by so many per cent what is left by what is left. **Reproduced**: within a \
         factor of 1.5 of the paper's number and on its side of no change; where the paper has only a \
         picture, its shape, as a bound that the row names. **Direction only**: the same way, and not by \
         chance. **Not reproduced**: the note says why, where a reason was found. Numbers depend on no \
         machine: the same version gives the same.\n\n",
    );
    let (beyond, paper): (Vec<&Figure>, _) = figures.into_iter().partition(|f| is_beyond(f));
    text += &totals(&paper);
    for figure in paper {
        section(&mut text, figure);
    }
    if !beyond.is_empty() {
        text += "\n# Beyond the paper\n\nWhat its reader may still ask. There is no number to compare with: \
                 means with their 95 % confidence intervals over seeds, and what they show.\n";
    }
    for figure in beyond {
        section_beyond(&mut text, figure);
    }
    text
}

/// Whether the paper has nothing of what `figure` asks.
fn is_beyond(figure: &Figure) -> bool {
    figure.rows.iter().all(|row| row.verdict == Verdict::Beyond)
}

fn totals(figures: &[&Figure]) -> String {
    let rows: Vec<&Row> = figures.iter().flat_map(|figure| &figure.rows).collect();
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    format!(
        "{} rows: {} reproduced, {} direction only, {} not reproduced, {} beyond the paper.\n",
        rows.len(),
        count(Verdict::Reproduced),
        count(Verdict::DirectionOnly),
        count(Verdict::NotReproduced),
        count(Verdict::Beyond),
    )
}

/// Title, question, and what is special of the runs.
fn heading(text: &mut String, figure: &Figure) {
    let _ = writeln!(
        text,
        "\n## {}: {}, {}\n",
        figure.id, figure.title, figure.scale
    );
    let _ = writeln!(text, "{}\n", one_line(&figure.asked));
    if !figure.scaled_down.is_empty() {
        let _ = writeln!(
            text,
            "Scaled down: {}.\n",
            figure.scaled_down.trim_end_matches('.')
        );
    }
    if figure.partial {
        text.push_str("**Partial:** runs are missing.\n\n");
    }
}

fn section_beyond(text: &mut String, figure: &Figure) {
    heading(text, figure);
    text.push_str("| what | measured | seeds | note |\n|---|---|---|---|\n");
    for row in &figure.rows {
        let measured: Vec<String> = row.measured.iter().map(|m| of_world(m, row)).collect();
        let cells = [
            row.name.clone(),
            measured.join("<br>"),
            figure.seeds.len().to_string(),
            one_line(&row.note),
        ];
        write_row(text, &cells);
    }
}

fn write_row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn section(text: &mut String, figure: &Figure) {
    heading(text, figure);
    text.push_str("| what | where | paper | measured | ratio | verdict | seeds | note |\n");
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for row in &figure.rows {
        let measured: Vec<String> = row.measured.iter().map(|m| of_world(m, row)).collect();
        let cells = [
            row.name.clone(),
            row.source.clone(),
            paper(row),
            measured.join("<br>"),
            ratio(row),
            verdict(row.verdict).to_owned(),
            figure.seeds.len().to_string(),
            one_line(&row.note),
        ];
        write_row(text, &cells);
    }
}

fn paper(row: &Row) -> String {
    match (row.paper, row.verdict) {
        (Some(value), _) => with_unit(value, &row.unit),
        (None, Verdict::Beyond) => String::new(),
        (None, _) => "picture".to_owned(),
    }
}

fn of_world(measured: &Measured, row: &Row) -> String {
    let Some(value) = measured.value else {
        return "not measured".to_owned();
    };
    let mut text = with_unit(value, &row.unit);
    if let Some([low, high]) = measured.interval {
        let _ = write!(text, " ({} to {})", number(low), number(high));
    }
    match measured.world.as_str() {
        "sim" => text,
        world => format!("{world}: {text}"),
    }
}

/// Ours by the paper's.
fn ratio(row: &Row) -> String {
    let ours = row.measured.first().and_then(|measured| measured.value);
    let Some((ours, theirs)) = ours.zip(row.paper) else {
        return String::new();
    };
    let are_changes = row.unit == "%" && (ours < 0.0 || theirs <= 0.0);
    let factor = |value: f64| match are_changes {
        true => 1.0 + value / 100.0,
        false => value,
    };
    number(factor(ours) / factor(theirs))
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

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::DirectionOnly => "direction only",
        Verdict::NotReproduced => "not reproduced",
        Verdict::Beyond => "beyond the paper",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str, verdict: Verdict) -> Figure {
        let row = Row {
            name: "RCT".to_owned(),
            unit: "x".to_owned(),
            paper: None,
            source: String::new(),
            measured: Vec::new(),
            verdict,
            note: String::new(),
        };
        Figure {
            schema: 1,
            version: String::new(),
            id: id.to_owned(),
            title: String::new(),
            asked: String::new(),
            scale: "quick".to_owned(),
            scaled_down: String::new(),
            seeds: vec![1],
            partial: false,
            rows: vec![row],
            plots: Vec::new(),
            resolved: Vec::new(),
        }
    }

    #[test]
    fn what_is_beyond_the_paper_comes_last_and_does_not_count() {
        let figures = [
            figure("a1", Verdict::Beyond),
            figure("f1", Verdict::Reproduced),
        ];
        let text = markdown(&figures);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        place("1 rows: 1 reproduced, 0 direction only, 0 not reproduced, 0 beyond the paper.");
        assert!(place("## f1") < place("# Beyond the paper"));
        assert!(place("# Beyond the paper") < place("## a1"));
        assert!(!text[place("## a1")..].contains("picture"));
    }
}
