// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The command line, with help texts that fit the terminal. clap itself breaks no lines here: that needs its feature
//! `wrap_help`.
use std::ffi::OsString;
use std::io::{self, stderr, stdout, IsTerminal, Write};

use clap::error::ErrorKind;
use clap::{Command, Error, Parser};
use crossterm::terminal;

use crate::pipe;

/// Columns of a help that no terminal shows.
const USUAL: usize = 100;
/// With fewer columns the help is not broken.
const LEAST: usize = 20;

/// The arguments of this process; else prints help, version or error, and ends the process.
pub fn parse<C: Parser>(mut command: Command) -> C {
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = matches.and_then(|mut matches| C::from_arg_matches_mut(&mut matches));
    parsed.unwrap_or_else(|error| show(&error.format(&mut command)))
}

fn show(error: &Error) -> ! {
    let (text, goes_to_stderr) = (error.render(), error.use_stderr());
    let is_terminal = match goes_to_stderr {
        true => stderr().is_terminal(),
        false => stdout().is_terminal(),
    };
    let text = match is_terminal {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let is_help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    let text = match is_help.contains(&error.kind()) {
        true => wrapped(&text, columns(std::env::var_os("COLUMNS"), is_terminal)),
        false => text,
    };
    let written = match goes_to_stderr {
        true => stderr().write_all(text.as_bytes()),
        false => stdout()
            .write_all(text.as_bytes())
            .and_then(|()| stdout().flush()),
    };
    // As clap: who closes the pipe has read enough.
    match written {
        Err(cause) if !goes_to_stderr && cause.kind() != io::ErrorKind::BrokenPipe => {
            pipe::cannot_write(&cause)
        }
        _ => std::process::exit(error.exit_code()),
    }
}

fn columns(named: Option<OsString>, is_terminal: bool) -> usize {
    let named = named.and_then(|text| text.to_str()?.parse().ok());
    let of_terminal = || Some(usize::from(terminal::size().ok()?.0)).filter(|_| is_terminal);
    named.or_else(of_terminal).unwrap_or(USUAL)
}

/// The text with lines of at most so many columns, except words that are longer.
fn wrapped(text: &str, columns: usize) -> String {
    if columns < LEAST {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| broken(line, columns));
    lines.collect::<Vec<_>>().join("\n")
}

/// A line in pieces, each below the start of its help.
fn broken(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let margin = margin(line);
    // Beside a margin that leaves little room, a third of the line is enough.
    let margin = if margin > columns / 2 {
        columns / 3
    } else {
        margin
    };
    let mut out = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        if used > margin && used + width(word.trim_end()) > columns {
            out.truncate(out.trim_end().len());
            out = out + "\n" + &" ".repeat(margin);
            used = margin;
        }
        out += word;
        used += width(word);
    }
    out
}

/// The column at which the text of a line starts: behind the last gap of two spaces or more.
fn margin(line: &str) -> usize {
    let start = line.len() - line.trim_start().len();
    let gap = line[start..].find("  ").map(|at| start + at);
    let text = gap.map(|gap| line.len() - line[gap..].trim_start().len());
    width(&line[..text.unwrap_or(start)])
}

/// Columns of a text; styles (ESC [ ... m) take none.
fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut is_style = false;
    for c in text.chars() {
        match (is_style, c) {
            (false, '\u{1b}') => is_style = true,
            (true, 'm') => is_style = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_below_the_start_of_their_help() {
        let help =
            "Options:\n      --quick        Run at small scale: about a minute for each figure\n";
        let expected = "Options:\n      --quick        Run at small scale:\n                     about a minute for\n                     each figure\n";
        assert_eq!(wrapped(help, 42), expected);
        assert_eq!(wrapped(help, 100), help);
        assert_eq!(wrapped(help, 5), help);
    }

    #[test]
    fn a_help_on_its_own_line_keeps_its_margin() {
        let help = "          one two three four";
        assert_eq!(wrapped(help, 24), "          one two three\n          four");
    }

    #[test]
    fn a_narrow_terminal_gets_a_narrow_margin() {
        let help = "      --a-long-option <VALUE>   one two three four five six";
        let text = wrapped(help, 30);
        assert!(text.lines().all(|line| width(line) <= 30), "{text}");
        assert_eq!(
            text.split_whitespace().count(),
            help.split_whitespace().count()
        );
    }

    #[test]
    fn styles_take_no_columns() {
        let line = "\u{1b}[1m\u{1b}[4mOptions:\u{1b}[0m and more";
        assert_eq!(width(line), "Options: and more".len());
        assert_eq!(wrapped(line, 20), line);
    }

    #[test]
    fn the_named_number_of_columns_wins() {
        assert_eq!(columns(Some("40".into()), false), 40);
        assert_eq!(columns(Some("many".into()), false), USUAL);
        assert_eq!(columns(None, false), USUAL);
    }
}
