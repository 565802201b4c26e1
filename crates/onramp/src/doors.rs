// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The help of `onramp` itself: its commands by what somebody came for. clap has one list of them and no groups.
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::Command;

/// A heading and its commands, in the order in which somebody meets them. Each command has one heading.
const DOORS: [(&str, &[&str]); 4] = [
    (
        "I run hosts",
        &[
            "doctor",
            "agent",
            "status",
            "top",
            "trace",
            "advise",
            "connectivity",
            "clock",
            "keygen",
            "reload",
            "detach",
            "bugtool",
        ],
    ),
    (
        "I do research",
        &[
            "scenario",
            "sim",
            "rack",
            "sweep",
            "experiment",
            "compare",
            "report",
            "cc",
            "tbtcp",
        ],
    ),
    ("I doubt the papers", &["reproduce"]),
    ("Help", &["reference", "help"]),
];
const ABOUT_HELP: &str = "Show this, or the help of a command";

/// The command with its help by doors.
pub fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> StyledStr {
    let (header, literal) = (
        command.get_styles().get_header(),
        command.get_styles().get_literal(),
    );
    let names = DOORS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut out = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (door, names) in DOORS {
        let _ = writeln!(out, "\n{header}{door}:{header:#}");
        for name in names {
            let about = about(command, name);
            let _ = writeln!(out, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = write!(
        out,
        "\n{header}Options:{header:#}\n{{options}}\n\nThe book: docs/index.md"
    );
    out.into()
}

fn about(command: &Command, name: &str) -> String {
    let found = command.find_subcommand(name);
    let about = found.and_then(Command::get_about);
    about.map_or_else(|| ABOUT_HELP.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_stands_below_one_door() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut commands: Vec<&str> = shown.map(Command::get_name).collect();
        commands.push("help");
        let mut listed: Vec<&str> = DOORS.iter().flat_map(|(_, names)| names.to_vec()).collect();
        commands.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, commands);
    }

    #[test]
    fn the_help_has_the_doors_in_their_order() {
        let help = grouped(Cli::command()).render_help().to_string();
        let at: Vec<_> = DOORS.iter().map(|(door, _)| help.find(door)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{help}");
        assert!(
            help.contains("\nI doubt the papers:\n  reproduce     Reproduce figures"),
            "{help}"
        );
        assert!(help.contains("\n  -V, --version"), "{help}");
    }
}
