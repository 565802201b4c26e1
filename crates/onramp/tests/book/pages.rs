// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads commands and their marks in pages, and compares what commands print with what a page shows.

/// What the tests do with a block of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Run,
    /// It is run, and each command fails.
    Fails,
    NotRun,
    /// The page does not say.
    None,
}

impl Mark {
    pub fn is_run(self) -> bool {
        matches!(self, Mark::Run | Mark::Fails)
    }
}

/// A block of commands.
pub struct Block {
    pub line: usize,
    pub mark: Mark,
    pub steps: Vec<Step>,
}

/// A command, and what the page shows as its output.
pub struct Step {
    pub line: usize,
    pub command: String,
    pub output: String,
    /// Command and output as they stand in the page.
    pub source: String,
}

const BLOCK: &str = "```console";
const END: &str = "```";
const ANY: &str = "...";
/// What lines of progress have.
const PROGRESS: [&str; 2] = [" runs done, ", " packet-hops in "];

impl Step {
    /// `source` with another output. Lines that differ from run to run become `...`.
    pub fn printing(&self, output: &str) -> String {
        let command = self.source.strip_suffix(&self.output);
        let mut lines: Vec<&str> = vec![];
        for line in output.lines() {
            let line = if PROGRESS.iter().any(|sign| line.contains(sign)) {
                ANY
            } else {
                line
            };
            if line != ANY || lines.last() != Some(&ANY) {
                lines.push(line);
            }
        }
        let output: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{}{output}", command.unwrap_or(&self.source))
    }
}

/// The pages that lists of links name below the headings that begin with one of these words.
pub fn listed(index: &str, headings: &[&str]) -> Vec<String> {
    let mut pages = vec![];
    let mut is_listed = false;
    for line in index.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            is_listed = headings.iter().any(|word| heading.starts_with(word));
        }
        let link = line
            .strip_prefix("- [")
            .and_then(|rest| rest.split_once("]("));
        if let Some((page, _)) = link.and_then(|(_, rest)| rest.split_once(')')) {
            pages.extend(is_listed.then(|| page.to_owned()));
        }
    }
    pages
}

fn mark(line: &str) -> Mark {
    match line.trim() {
        "<!-- run -->" => Mark::Run,
        "<!-- run: fails -->" => Mark::Fails,
        line if line.starts_with("<!-- not run: ") && line.ends_with(" -->") => Mark::NotRun,
        _ => Mark::None,
    }
}

/// The blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.split_inclusive('\n').collect();
    let head = lines.iter().take_while(|line| !line.starts_with("## "));
    let of_page = match head.clone().any(|line| mark(line) == Mark::NotRun) {
        true => Mark::NotRun,
        false => Mark::None,
    };
    let mut found = vec![];
    for at in 0..lines.len() {
        if lines[at].trim() != BLOCK {
            continue;
        }
        let above = at
            .checked_sub(1)
            .map_or(Mark::None, |above| mark(lines[above]));
        let mark = if above == Mark::None { of_page } else { above };
        let body = lines[at + 1..].iter().take_while(|line| line.trim() != END);
        let body: Vec<&str> = body.copied().collect();
        let (line, steps) = (at + 1, steps(&body, at + 2));
        found.push(Block { line, mark, steps });
    }
    found
}

/// The commands of a block, whose first line has this number.
fn steps(lines: &[&str], first: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![];
    let mut goes_on = false;
    for (at, line) in lines.iter().enumerate() {
        let command = line.strip_prefix("$ ").or(Some(*line).filter(|_| goes_on));
        if let (Some(command), false) = (command, goes_on) {
            steps.push(Step {
                line: first + at,
                command: command.to_owned(),
                output: String::new(),
                source: String::new(),
            });
        } else if let (Some(step), true) = (steps.last_mut(), goes_on) {
            step.command += line;
        } else if let Some(step) = steps.last_mut() {
            step.output += line;
        }
        goes_on = command.is_some_and(|command| command.trim_end().ends_with('\\'));
        if let Some(step) = steps.last_mut() {
            step.source += line;
        }
    }
    steps
}

/// Whether a page shows what a command prints.
pub fn fits(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_end().lines();
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    let (shown, printed) = (lines(shown), lines(printed));
    lines_fit(&shown, &printed)
}

fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == ANY => {
            (0..=printed.len()).any(|taken| lines_fit(rest, &printed[taken..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| line_fits(first, line) && lines_fit(rest, others)),
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let Some((before, after)) = shown.split_once(ANY) else {
        return shown == printed;
    };
    let Some(rest) = printed.strip_prefix(before) else {
        return false;
    };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().any(|at| line_fits(after, &rest[at..]))
}

#[test]
fn marks_hold_for_a_block_or_for_a_page() {
    let of = |page: &str| {
        blocks(page)
            .iter()
            .map(|block| block.mark)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("<!-- run -->\n```console\n$ a\n```\n```console\n```\n"),
        [Mark::Run, Mark::None]
    );
    let page =
        "# A\n<!-- not run: root -->\n## B\n```console\n```\n<!-- run -->\n```console\n```\n";
    assert_eq!(of(page), [Mark::NotRun, Mark::Run]);
    assert_eq!(of("<!-- not run -->\n```console\n```\n"), [Mark::None]);
}

#[test]
fn a_command_may_have_several_lines_and_keeps_its_output() {
    let page = "<!-- run -->\n```console\n$ a \\\n  b\none\n$ c\n```\n";
    let block = &blocks(page)[0];
    let commands: Vec<_> = block
        .steps
        .iter()
        .map(|step| step.command.as_str())
        .collect();
    assert_eq!(commands, ["a \\\n  b\n", "c\n"]);
    assert_eq!(
        (block.steps[0].output.as_str(), block.steps[0].line),
        ("one\n", 3)
    );
    assert_eq!(block.steps[0].printing("two\n"), "$ a \\\n  b\ntwo\n");
    let progress = "0 of 3 runs done, 0 s\n9 packet-hops in 1 s\ntwo\n";
    assert_eq!(block.steps[1].printing(progress), "$ c\n...\ntwo\n");
}

#[test]
fn three_dots_stand_for_text_and_for_lines() {
    assert!(fits(
        "one\n...\nlast ... MB\n",
        "one\ntwo\nthree\nlast 1.8 MB"
    ));
    assert!(fits("...\n", "") && fits("", "\n"));
    assert!(!fits("one\n", "one\ntwo\n") && !fits("a ... b\n", "a b c\n"));
}

#[test]
fn pages_are_those_below_the_headings() {
    let index =
        "## Start\n- [A](a.md): first\n## Reference\n- [B](b.md)\n## Guides: x\n- [C](../c.md)\n";
    assert_eq!(listed(index, &["Start", "Guides"]), ["a.md", "../c.md"]);
}
