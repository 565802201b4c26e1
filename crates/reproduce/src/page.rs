// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! docs/reproduction.md: an overview with one row for each figure, then all rows of every figure.

use crate::library::natural;
use crate::papers;
use crate::table::{column, of_world, one_line, paper, ratio, value, verdict_of};
use onramp_results::figure::{fullest, worlds, Figure, Gives, MadeBy, Row, Tally};
use std::fmt::Write;

const INTRODUCTION: &str = "# Reproduction

<!-- Generated from docs/reproduction/ and figures/ by `onramp reproduce --table`; a test compares. -->

This page compares papers with what `onramp reproduce` measures: On-Ramp (NSDI'21), [TIMELY](timely.md)
(figures `timely-*`), [Tiny Buffer TCP](tbtcp.md) (figures `tbtcp-*`), and [TCP RAPID](rapid.md) (figures `rapid-*`). It is for readers who want to know which of the
papers' results hold here, how far, and why not.

**How to read it.** A value is a mean over seeds with its 95 % confidence interval (Student's t; ratios are
averaged by their logarithms). The ratio is our value divided by the paper's. For a change in per cent it is
the ratio of what remains: falls of 28 % and 21 % have the ratio 0.72 / 0.79.

One rule judges all rows of all papers. It looks at two things: does our mean agree with the paper, and does the
whole interval?

| verdict | means |
|---|---|
| reproduced | The whole interval agrees with the paper. |
| point estimate only | The mean agrees, but part of the interval does not, or there is no interval. The result may be by chance. |
| direction only | The whole interval has the paper's direction, but the mean has another size. |
| not reproduced | None of these. The note gives the reason where one was found. |
| not measured | We have no number. |

A paper gives a number, an effect, words, a bound or a picture. Each has its own test:

| the paper says | our value agrees if |
|---|---|
| a number | it is within a factor of 1.5, or within the factor or the difference that the row declares |
| an effect: a ratio or a change in % | it is within a factor of 1.5 as a ratio, and the logarithm of the ratio is within a factor of 1.5 too |
| more or less, in words | it is on that side of no effect |
| the same, no more or no less, in words | it is within the margin that the row declares |
| a bound, or a shape of a picture | it is within the bounds that the row declares |

*Example.* The paper has a change of -21 %, which is a ratio of 0.79 with the logarithm -0.236. Logarithms from
-0.157 to -0.354 agree, which are changes from -14.5 to -29.8 %. So -47 % is *direction only* if its interval excludes
0, and 0 % is *not reproduced*. A mean of -25 % is *reproduced* with the interval -28 to -22 %, and *point estimate
only* with -33 to -17 %. The factor of the logarithm limits small effects. The factor of the ratio limits large ones:
for a ratio of 13, the logarithm alone would accept 47.

Rows are of three kinds, which are counted apart: the paper gives a number, a claim in words, or only a picture. A
number is the strongest evidence. The bounds of a picture are ours, so these rows show less.

The simulator's numbers do not depend on the machine. At the scale *rack* the same scenario, equally small and
slow, runs in the simulator and on real Linux kernels in a virtual rack ([what it shows](fidelity.md)); compare
these two columns with each other.

**Stale** marks results of an older version: the simulator's model, or the data path, has changed since in what
this figure uses. The model is compared by what it does, not by its source text: the figure's own scenario, cut
to its first moments, must give the same flows.

";

/// The page. Rows refer to their notes; `now` gives the digests of this version for a figure.
pub fn markdown(figures: &[Figure], now: &dyn Fn(&str) -> MadeBy) -> String {
    let mut figures = figures.to_vec();
    figures.sort_by_key(|figure| (natural(&figure.id), figure.scale.clone()));
    let counted: Vec<&Figure> = fullest(&figures).collect();
    let (beyond, paper): (Vec<&Figure>, _) = counted.into_iter().partition(|f| is_beyond(f));
    let mut text = INTRODUCTION.to_owned();
    totals(&mut text, &paper);
    by_paper(&mut text, &figures);
    overview(&mut text, &paper, now);
    for figure in paper {
        section(&mut text, figure, now);
    }
    if !beyond.is_empty() {
        text += "\n## Beyond the paper\n\nExperiments that the paper does not have, so there is no number to \
                 compare with. [What they show](beyond.md).\n";
    }
    for figure in beyond {
        section(&mut text, figure, now);
    }
    text
}

/// Whether the paper gives nothing to compare `figure` with.
fn is_beyond(figure: &Figure) -> bool {
    figure.rows.iter().all(|row| row.gives.is_none())
}

const GIVEN: [(Gives, &str); 3] = [
    (Gives::Number, "numbers"),
    (Gives::Words, "claims in words"),
    (Gives::Picture, "pictures"),
];

/// Whether a measurement counts: in a figure on the rack only that of real kernels does.
fn counts(figure: &Figure, world: &str) -> bool {
    (figure.scale == "rack") == (world == "rack")
}

fn tally(figures: &[&Figure], gives: Gives) -> Tally {
    let mut all = Tally::default();
    for figure in figures {
        let one = Tally::of(&figure.rows, gives, |world| counts(figure, world));
        all.reproduced += one.reproduced;
        all.point_estimate += one.point_estimate;
        all.direction_only += one.direction_only;
        all.not_reproduced += one.not_reproduced;
        all.not_measured += one.not_measured;
    }
    all
}

/// Counts of verdicts: each row of the paper once, at the largest scale that ran.
fn totals(text: &mut String, figures: &[&Figure]) {
    let (rack, others): (Vec<&Figure>, Vec<&Figure>) =
        figures.iter().partition(|figure| figure.scale == "rack");
    text.push_str("Each row counts once, at the fullest scale that ran:\n\n");
    write_headings(
        text,
        &[
            "the paper gives",
            "rows",
            "reproduced",
            "point estimate only",
            "direction only",
            "not reproduced",
            "not measured",
        ],
    );
    for (world, figures) in [("", &others), (", on real kernels", &rack)] {
        for (gives, name) in GIVEN {
            let tally = tally(figures, gives);
            let numbers = [
                tally.total(),
                tally.reproduced,
                tally.point_estimate,
                tally.direction_only,
                tally.not_reproduced,
                tally.not_measured,
            ];
            if tally.total() > 0 {
                let mut cells = vec![format!("{name}{world}")];
                cells.extend(numbers.map(|n| n.to_string()));
                write_row(text, &cells);
            }
        }
    }
}

/// README.md has the same rows; its links begin at the top of the repository.
fn by_paper(text: &mut String, figures: &[Figure]) {
    text.push_str("\nBy paper, without the rows on real kernels:\n\n");
    text.push_str(&papers::counts(figures).replace("](docs/", "]("));
}

/// One row for each figure: verdicts by the form in which the paper gives the row.
fn overview(text: &mut String, figures: &[&Figure], now: &dyn Fn(&str) -> MadeBy) {
    text.push_str(
        "\nVerdicts by figure, as *reproduced / point estimate only / direction only / not \
         reproduced*; *?* counts rows that were not measured:\n\n",
    );
    write_headings(
        text,
        &[
            "figure",
            "shows",
            "scale",
            "numbers",
            "claims in words",
            "pictures",
            "evidence",
        ],
    );
    for figure in figures {
        let (id, scale) = (&figure.id, &figure.scale);
        let mut cells = vec![
            format!("[{id}](#{})", anchor(figure)),
            figure.title.clone(),
            scale.clone(),
        ];
        cells.extend(GIVEN.map(|(gives, _)| brief(tally(&[figure], gives))));
        cells.push(
            figure
                .made_by
                .stale(&now(id))
                .map_or("current", |_| "**stale**")
                .to_owned(),
        );
        write_row(text, &cells);
    }
}

fn brief(tally: Tally) -> String {
    if tally.total() == 0 {
        return String::new();
    }
    let mut text = format!(
        "{} / {} / {} / {}",
        tally.reproduced, tally.point_estimate, tally.direction_only, tally.not_reproduced
    );
    if tally.not_measured > 0 {
        let _ = write!(text, " / {} ?", tally.not_measured);
    }
    text
}

fn heading(figure: &Figure) -> String {
    format!("{}: {}, {}", figure.id, figure.title, figure.scale)
}

/// The anchor that Markdown renderers make of the heading.
fn anchor(figure: &Figure) -> String {
    let heading = heading(figure).to_lowercase();
    let fits = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading
        .chars()
        .filter(fits)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn section(text: &mut String, figure: &Figure, now: &dyn Fn(&str) -> MadeBy) {
    let _ = writeln!(text, "\n## {}\n", heading(figure));
    if let Some(what) = figure.made_by.stale(&now(&figure.id)) {
        let _ = writeln!(
            text,
            "**Stale:** {what} changed after these results were made.\n"
        );
    }
    let _ = writeln!(text, "{}\n", one_line(&figure.asked));
    if !figure.scaled_down.is_empty() {
        let smaller = figure.scaled_down.trim_end_matches('.');
        let _ = writeln!(text, "Scaled down: {smaller}.\n");
    }
    if figure.partial {
        text.push_str("**Partial:** runs are missing.\n\n");
    }
    let notes = rows(text, figure);
    if !notes.is_empty() {
        text.push('\n');
    }
    for (n, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "{}. {note}", n + 1);
    }
}

/// The table of a figure's rows. Returns the notes, each once, to which its cells refer by number.
fn rows(text: &mut String, figure: &Figure) -> Vec<String> {
    let worlds = worlds(&figure.rows);
    let beyond = is_beyond(figure);
    let mut headings = vec!["quantity"];
    if !beyond {
        headings.extend(["source", "paper"]);
    }
    for world in &worlds {
        headings.push(column(world, &worlds));
        if !beyond {
            headings.extend(["ratio", "verdict"]);
        }
    }
    headings.extend(["seeds", "note"]);
    write_headings(text, &headings);
    let mut notes = Vec::new();
    for row in &figure.rows {
        let mut cells = vec![row.name.clone()];
        if !beyond {
            cells.extend([row.source.clone(), paper(row)]);
        }
        for measured in worlds.iter().map(|world| of_world(row, world)) {
            cells.push(value(measured, row));
            if !beyond {
                cells.extend([ratio(measured, row), verdict_of(measured).to_owned()]);
            }
        }
        cells.extend([figure.seeds.len().to_string(), reference(row, &mut notes)]);
        write_row(text, &cells);
    }
    notes
}

/// The number of the row's note in `notes`; a new note is added.
fn reference(row: &Row, notes: &mut Vec<String>) -> String {
    let note = one_line(&row.note);
    if note.is_empty() {
        return note;
    }
    let known = notes.iter().position(|other| *other == note);
    let place = known.unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    (place + 1).to_string()
}

fn write_headings(text: &mut String, headings: &[&str]) {
    let _ = writeln!(text, "| {} |", headings.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(headings.len()));
}

fn write_row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{figure, measured, row};
    use onramp_results::figure::Verdict;

    fn now(_: &str) -> MadeBy {
        MadeBy::default()
    }

    fn both() -> Figure {
        let rct = vec![
            measured("sim", Some(2.6), Verdict::Reproduced),
            measured("rack", Some(13.0), Verdict::DirectionOnly),
        ];
        let cpu = vec![measured("rack", None, Verdict::NotMeasured)];
        figure("rack", vec![row("RCT", 2.6, rct), row("CPU", 2.0, cpu)])
    }

    #[test]
    fn paper_simulator_and_real_kernel_are_columns() {
        let text = markdown(&[both()], &now);
        let heading = "| quantity | source | paper | simulator | ratio | verdict | real kernel | ratio | verdict | seeds | note |\n";
        assert!(text.contains(heading), "{text}");
        let rct = "| RCT | 5.2 | 2.60 x | 2.60 x | 1.00 | reproduced | 13.0 x | 5.00 | direction only | 2 |  |\n";
        assert!(text.contains(rct), "{text}");
        let cpu = "| CPU | 5.2 | 2.00 x | - |  |  | not measured |  | not measured | 2 |  |\n";
        assert!(text.contains(cpu), "{text}");
    }

    #[test]
    fn each_row_counts_once_at_the_fullest_scale_and_the_rack_apart() {
        let rct = |verdict| vec![row("RCT", 2.6, vec![measured("sim", Some(2.6), verdict)])];
        let quick = figure("quick", rct(Verdict::NotReproduced));
        let full = figure("full", rct(Verdict::Reproduced));
        let text = markdown(&[quick, full, both()], &now);
        assert!(
            text.contains("\n| numbers | 1 | 1 | 0 | 0 | 0 | 0 |\n"),
            "{text}"
        );
        let rack = "\n| numbers, on real kernels | 2 | 0 | 0 | 1 | 0 | 1 |\n";
        assert!(text.contains(rack), "{text}");
        assert!(
            text.contains("| [f9](#f9-rct-full) | RCT | full | 1 / 0 / 0 / 0 |"),
            "{text}"
        );
        assert!(
            text.contains("| [f9](#f9-rct-rack) | RCT | rack | 0 / 0 / 1 / 0 / 1 ? |"),
            "{text}"
        );
        assert!(!text.contains("## f9: RCT, quick"));
    }

    #[test]
    fn numbers_words_and_pictures_are_counted_apart() {
        let of = |gives, verdict| {
            let mut one = row("RCT", 2.6, vec![measured("sim", Some(2.6), verdict)]);
            one.gives = Some(gives);
            one
        };
        let rows = vec![
            of(Gives::Number, Verdict::PointEstimate),
            of(Gives::Words, Verdict::Reproduced),
            of(Gives::Words, Verdict::NotReproduced),
            of(Gives::Picture, Verdict::DirectionOnly),
        ];
        let text = markdown(&[figure("full", rows)], &now);
        for line in [
            "| numbers | 1 | 0 | 1 | 0 | 0 | 0 |",
            "| claims in words | 2 | 1 | 0 | 0 | 1 | 0 |",
            "| pictures | 1 | 0 | 0 | 1 | 0 | 0 |",
            "| full | 0 / 1 / 0 / 0 | 1 / 0 / 0 / 1 | 0 / 0 / 1 / 0 |",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_note_stands_once() {
        let mut noted = both();
        for row in &mut noted.rows {
            row.note = "The same\nreason.".to_owned();
        }
        let text = markdown(&[noted], &now);
        assert_eq!(text.matches("The same reason.").count(), 1);
        assert_eq!(text.matches("| 2 | 1 |\n").count(), 2, "{text}");
    }

    #[test]
    fn what_another_version_made_is_stale() {
        let mut made = both();
        made.made_by.data_path = Some("old".to_owned());
        let newer = |_: &str| MadeBy {
            data_path: Some("new".to_owned()),
            ..MadeBy::default()
        };
        let text = markdown(&[made], &newer);
        assert!(text.contains("**Stale:** the data path changed"), "{text}");
        assert!(text.contains(" | **stale** |\n"), "{text}");
        assert!(!markdown(&[both()], &newer).contains("**Stale:**"));
    }

    #[test]
    fn what_is_beyond_the_paper_comes_last_and_does_not_count() {
        let mut rct = row(
            "RCT",
            2.0,
            vec![measured("sim", Some(2.0), Verdict::Beyond)],
        );
        (rct.paper, rct.gives) = (None, None);
        let beyond = Figure {
            id: "a1".to_owned(),
            ..figure("quick", vec![rct])
        };
        let text = markdown(&[beyond, both()], &now);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(place("## f9") < place("# Beyond the paper"));
        assert!(place("# Beyond the paper") < place("## a1"));
        assert!(text.contains("| quantity | measured | seeds | note |\n"));
        assert!(!text.contains("[a1]"));
    }
}
