// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp reference`: manual pages, shell completions and docs/cli.md, all made from the declared arguments.
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, Command, Subcommand};
use clap_complete::Shell;

#[derive(Subcommand)]
pub enum Args {
    /// Write a manual page for each command
    #[command(after_help = "Example: onramp reference man /usr/local/share/man/man1")]
    Man {
        /// Directory of the pages; it is made if it does not exist
        directory: PathBuf,
    },
    /// Print the completion script of a shell
    #[command(
        after_help = "Example: onramp reference completions bash > /etc/bash_completion.d/onramp"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print docs/cli.md: every command with its arguments and options
    #[command(after_help = "Example: onramp reference markdown > docs/cli.md")]
    Markdown,
}

const HEAD: &str = "\
# Command line
Every command of `onramp` with its arguments and options. For those who run hosts or simulations.

`onramp reference markdown` writes this page. `onramp reference man` and `onramp reference completions` write manual
pages and completions of shells from the same declarations.
";

pub fn run(args: &Args, root: Command) -> Result<()> {
    match args {
        Args::Man { directory } => man(root, directory),
        Args::Completions { shell } => {
            let mut script = vec![];
            clap_complete::generate(*shell, &mut shown(&root), "onramp", &mut script);
            print!("{}", String::from_utf8_lossy(&script));
            Ok(())
        }
        Args::Markdown => {
            print!("{}", markdown(root));
            Ok(())
        }
    }
}

/// The command without hidden options and commands, which completions would offer.
fn shown(command: &Command) -> Command {
    // clap wants names for as long as the process lives; there are some tens.
    let name: &'static str = command.get_name().to_owned().leak();
    let about = command.get_about().cloned().unwrap_or_default();
    let is_version = |arg: &Arg| ["help", "version"].contains(&arg.get_id().as_str());
    let arguments = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !is_version(arg));
    let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    Command::new(name)
        .version("")
        .about(about)
        .args(arguments.cloned())
        .subcommands(commands.map(shown))
}

/// A page without the digests of this build, so that it changes with the arguments alone.
fn man(root: Command, directory: &Path) -> Result<()> {
    let failed = || {
        let name = directory.display();
        format!("cannot write manual pages to {name}; name a directory that you can write")
    };
    fs::create_dir_all(directory).with_context(failed)?;
    let root = root
        .long_version(None::<&str>)
        .disable_help_subcommand(true);
    clap_mangen::generate_to(root, directory).with_context(failed)
}

fn markdown(root: Command) -> String {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut commands = vec![];
    collect(&root, "onramp", &mut commands);
    let mut out = HEAD.to_owned();
    out += "\n| command | purpose |\n|---|---|\n";
    for (name, command) in &commands {
        let about = command
            .get_about()
            .map_or_else(String::new, ToString::to_string);
        let _ = writeln!(out, "| [`{name}`](#{}) | {} |", anchor(name), cell(&about));
    }
    for (name, command) in &commands {
        section(&mut out, name, command);
    }
    out
}

/// The visible commands that do something themselves, in the order of the help.
fn collect<'a>(command: &'a Command, name: &str, found: &mut Vec<(String, &'a Command)>) {
    if !command.has_subcommands() {
        found.push((name.to_owned(), command));
    }
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &format!("{name} {}", sub.get_name()), found);
    }
}

fn anchor(name: &str) -> String {
    name.replace(' ', "-")
}

fn section(out: &mut String, name: &str, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command
        .get_about()
        .map_or_else(String::new, ToString::to_string);
    let _ = write!(out, "\n## {name}\n{about}.\n\n```console\n{usage}\n```\n");
    let is_own =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let mut arguments = command.get_arguments().filter(is_own).peekable();
    if arguments.peek().is_some() {
        *out += "\n| argument | meaning | default |\n|---|---|---|\n";
        arguments.for_each(|arg| row(out, arg));
    }
    if let Some(example) = command.get_after_help() {
        let _ = write!(out, "\n```text\n{example}\n```\n");
    }
}

fn row(out: &mut String, arg: &Arg) {
    let help = arg.get_help().map_or_else(String::new, ToString::to_string);
    let (meaning, default) = split_default(&help);
    let takes_values = arg.get_action().takes_values();
    let names = arg.get_possible_values();
    let names: Vec<_> = names.iter().map(|value| value.get_name()).collect();
    let has_names = !names.is_empty() && !arg.is_hide_possible_values_set();
    let meaning = match takes_values && has_names {
        true => format!("{meaning} ({})", names.join(" or ")),
        false => meaning.to_owned(),
    };
    let declared = arg.get_default_values().iter().filter(|_| takes_values);
    let declared: Vec<_> = declared.map(|value| value.to_string_lossy()).collect();
    let default = match declared.is_empty() {
        true => default.to_owned(),
        false => declared.join(","),
    };
    let (name, meaning, default) = (escaped(&arg.to_string()), cell(&meaning), cell(&default));
    let _ = writeln!(out, "| `{name}` | {meaning} | {default} |");
}

/// A help without its `[default: ...]`, and the default.
fn split_default(help: &str) -> (&str, &str) {
    let split = help.rsplit_once("[default: ");
    let split = split.and_then(|(meaning, rest)| Some((meaning.trim(), rest.strip_suffix(']')?)));
    split.unwrap_or((help, ""))
}

/// Text that fits a cell of a table.
fn cell(text: &str) -> String {
    escaped(text).replace('<', "&lt;")
}

/// Code that fits a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_in_a_help_gets_its_own_column() {
        let help = "Longest pause [default: 5 ms]";
        assert_eq!(split_default(help), ("Longest pause", "5 ms"));
        assert_eq!(split_default("Print JSON"), ("Print JSON", ""));
    }
}
