//! The paper's numbers beside ours, for a terminal and for docs/reproduction.md.

use crate::library::natural;
use onramp_results::figure::{world_name, worlds, Figure, Measured, Row, Verdict};
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
    let worlds = worlds(&figure.rows);
    let _ = write!(text, "{:<width$}  {:>12}", "what", "paper");
    for world in &worlds {
        let _ = write!(text, "  {:>28}  {:<14}", column(world, &worlds), "verdict");
    }
    end_line(&mut text);
    for row in &figure.rows {
        let _ = write!(text, "{:<width$}  {:>12}", row.name, paper(row));
        for measured in worlds.iter().map(|world| of_world(row, world)) {
            let (measured, verdict) = (value(measured, row), verdict_of(measured));
            let _ = write!(text, "  {measured:>28}  {verdict:<14}");
        }
        end_line(&mut text);
        if !row.note.is_empty() {
            let _ = writeln!(text, "    {}", one_line(&row.note));
        }
    }
    text
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push('\n');
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
         seeds' ratios). *Ratio*: ours by the paper's; of changes in per cent, what is left of ours by what is left of \
         the paper's (falls of 28 and 21 %: 0.72 / 0.79). **Reproduced**: within a factor of 1.5 of the paper's \
         number and, if that is a change, on its side for sure (its interval does not hold none); where the \
         paper has only a picture, its shape, as a bound that the row names, for sure if that asks for a \
         change. **Direction only**: the same way for sure, but not as far, or further. **Not \
         reproduced**: the note says why, where a reason was found. The simulator's numbers depend on \
         no machine: the same version gives the same.\n\n\
         At the scale *rack* the same scenario, just as small and as slow, runs in the simulator and on real \
         kernels (`onramp reproduce --rack`): Linux TCP, qdiscs, BPF programs and daemons in a virtual rack \
         ([what it shows](fidelity.md)). The two columns are to be compared with each other; the simulator's at \
         the other scales is not slowed down.\n\n",
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
    let mut measured = figure.rows.iter().flat_map(|row| &row.measured);
    measured.all(|measured| measured.verdict == Verdict::Beyond)
}

/// Of the figures that need no rack, and of what the rack's real kernels measured.
fn totals(figures: &[&Figure]) -> String {
    let (rack, others): (Vec<&Figure>, Vec<&Figure>) =
        figures.iter().partition(|figure| figure.scale == "rack");
    let measured = |figures: Vec<&'_ Figure>| {
        let rows = figures.into_iter().flat_map(|figure| figure.rows.clone());
        rows.flat_map(|row| row.measured).collect::<Vec<_>>()
    };
    let (others, mut rack) = (measured(others), measured(rack));
    rack.retain(|measured| measured.world == "rack");
    let mut text = format!("{}.\n", total("rows", &others));
    if !rack.is_empty() {
        let _ = writeln!(text, "{}.", total("rows on real kernels", &rack));
    }
    text
}

fn total(what: &str, measured: &[Measured]) -> String {
    let count = |verdict| measured.iter().filter(|m| m.verdict == verdict).count();
    format!(
        "{} {what}: {} reproduced, {} direction only, {} not reproduced, {} beyond the paper",
        measured.len(),
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
    let worlds = worlds(&figure.rows);
    let mut headings = vec!["what"];
    headings.extend(worlds.iter().map(|world| column(world, &worlds)));
    headings.extend(["seeds", "note"]);
    write_headings(text, &headings);
    for row in &figure.rows {
        let mut cells = vec![row.name.clone()];
        let values = worlds.iter().map(|world| value(of_world(row, world), row));
        cells.extend(values);
        cells.extend([figure.seeds.len().to_string(), one_line(&row.note)]);
        write_row(text, &cells);
    }
}

fn write_headings(text: &mut String, headings: &[&str]) {
    let _ = writeln!(text, "| {} |", headings.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(headings.len()));
}

fn write_row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn section(text: &mut String, figure: &Figure) {
    heading(text, figure);
    let worlds = worlds(&figure.rows);
    let mut headings = vec!["what", "where", "paper"];
    for world in &worlds {
        headings.extend([column(world, &worlds), "ratio", "verdict"]);
    }
    headings.extend(["seeds", "note"]);
    write_headings(text, &headings);
    for row in &figure.rows {
        let mut cells = vec![row.name.clone(), row.source.clone(), paper(row)];
        for measured in worlds.iter().map(|world| of_world(row, world)) {
            let verdict = verdict_of(measured).to_owned();
            cells.extend([value(measured, row), ratio(measured, row), verdict]);
        }
        cells.extend([figure.seeds.len().to_string(), one_line(&row.note)]);
        write_row(text, &cells);
    }
}

/// Of a world's column: the simulator alone needs no name.
fn column<'a>(world: &'a str, worlds: &[&str]) -> &'a str {
    match worlds {
        ["sim"] => "measured",
        _ => world_name(world),
    }
}

/// What `world` measured; none where it cannot.
fn of_world<'a>(row: &'a Row, world: &str) -> Option<&'a Measured> {
    row.measured.iter().find(|m| m.world == world)
}

fn paper(row: &Row) -> String {
    let mut verdicts = row.measured.iter().map(|measured| measured.verdict);
    match row.paper {
        Some(value) => with_unit(value, &row.unit),
        None if verdicts.all(|verdict| verdict == Verdict::Beyond) => String::new(),
        None => "picture".to_owned(),
    }
}

fn value(measured: Option<&Measured>, row: &Row) -> String {
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

/// Ours by the paper's.
fn ratio(measured: Option<&Measured>, row: &Row) -> String {
    let ours = measured.and_then(|measured| measured.value);
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

fn verdict_of(measured: Option<&Measured>) -> &'static str {
    match measured.map(|measured| measured.verdict) {
        None => "",
        Some(Verdict::Reproduced) => "reproduced",
        Some(Verdict::DirectionOnly) => "direction only",
        Some(Verdict::NotReproduced) => "not reproduced",
        Some(Verdict::Beyond) => "beyond the paper",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(world: &str, value: Option<f64>, verdict: Verdict) -> Measured {
        Measured {
            world: world.to_owned(),
            value,
            interval: None,
            verdict,
        }
    }

    fn row(name: &str, paper: f64, measured: Vec<Measured>) -> Row {
        Row {
            name: name.to_owned(),
            unit: "x".to_owned(),
            paper: Some(paper),
            source: "5.2".to_owned(),
            measured,
            note: String::new(),
        }
    }

    fn figure(scale: &str, rows: Vec<Row>) -> Figure {
        Figure {
            schema: onramp_results::SCHEMA,
            version: "0".to_owned(),
            id: "f9".to_owned(),
            title: "RCT".to_owned(),
            asked: "Better?".to_owned(),
            scale: scale.to_owned(),
            scaled_down: String::new(),
            seeds: vec![1, 2],
            partial: false,
            rows,
            plots: Vec::new(),
            resolved: Vec::new(),
        }
    }

    fn both() -> Figure {
        let (good, fair) = (Verdict::Reproduced, Verdict::DirectionOnly);
        let rct = vec![
            measured("sim", Some(2.6), good),
            measured("rack", Some(13.0), fair),
        ];
        let cpu = vec![measured("rack", None, Verdict::NotReproduced)];
        figure("rack", vec![row("RCT", 2.6, rct), row("CPU", 2.0, cpu)])
    }

    #[test]
    fn paper_simulator_and_real_kernel_are_columns() {
        let text = terminal(&both());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .filter(|cell| !cell.is_empty())
                    .map(str::trim)
                    .collect()
            })
            .collect();
        let heading = [
            "what",
            "paper",
            "simulator",
            "verdict",
            "real kernel",
            "verdict",
        ];
        assert_eq!(lines[1], heading);
        assert_eq!(
            lines[2],
            [
                "RCT",
                "2.60 x",
                "2.60 x",
                "reproduced",
                "13.0 x",
                "direction only"
            ]
        );
        assert_eq!(
            lines[3],
            ["CPU", "2.00 x", "-", "not measured", "not reproduced"]
        );

        let text = markdown(&[both()]);
        let heading = "| what | where | paper | simulator | ratio | verdict | real kernel | ratio | verdict | seeds | note |\n\
                       |---|---|---|---|---|---|---|---|---|---|---|\n";
        assert!(text.contains(heading), "{text}");
        let rct = "| RCT | 5.2 | 2.60 x | 2.60 x | 1.00 | reproduced | 13.0 x | 5.00 | direction only | 2 |  |\n";
        assert!(text.contains(rct), "{text}");
        assert!(
            text.contains("| CPU | 5.2 | 2.00 x | - |  |  | not measured |"),
            "{text}"
        );
    }

    #[test]
    fn the_rack_is_counted_apart() {
        let rct = vec![measured("sim", Some(2.6), Verdict::Reproduced)];
        let quick = figure("quick", vec![row("RCT", 2.6, rct)]);
        let alone = markdown(std::slice::from_ref(&quick));
        assert!(
            alone.contains("| what | where | paper | measured | ratio | verdict | seeds | note |")
        );
        assert!(!alone.contains("on real kernels:"));
        let text = markdown(&[quick, both()]);
        assert!(
            text.contains("\n1 rows: 1 reproduced, 0 direction only,"),
            "{text}"
        );
        assert!(
            text.contains(
                "\n2 rows on real kernels: 0 reproduced, 1 direction only, 1 not reproduced,"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_is_beyond_the_paper_comes_last_and_does_not_count() {
        let of = |id: &str, verdict| {
            let mut rct = row("RCT", 2.0, vec![measured("sim", Some(2.0), verdict)]);
            rct.paper = None;
            Figure {
                id: id.to_owned(),
                ..figure("quick", vec![rct])
            }
        };
        let figures = [of("a1", Verdict::Beyond), of("f1", Verdict::Reproduced)];
        let text = markdown(&figures);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        place("1 rows: 1 reproduced, 0 direction only, 0 not reproduced, 0 beyond the paper.");
        assert!(place("## f1") < place("# Beyond the paper"));
        assert!(place("# Beyond the paper") < place("## a1"));
        assert!(!text[place("## a1")..].contains("picture"));
    }

    #[test]
    fn what_is_beyond_the_paper_tells_each_worlds_value() {
        let worlds = [("sim", 2.0), ("rack", 4.0)];
        let values = worlds.map(|(world, value)| measured(world, Some(value), Verdict::Beyond));
        let text = markdown(&[figure("rack", vec![row("RCT", 2.0, values.to_vec())])]);
        assert!(text.contains("| what | simulator | real kernel | seeds | note |\n"));
        assert!(
            text.contains("| RCT | 2.00 x | 4.00 x | 2 |  |\n"),
            "{text}"
        );
    }
}
