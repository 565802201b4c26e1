// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The command line of a daemon, from the table of keys: an option for each key, and `--config`. Values are texts here;
//! `settings` reads them together with the file.

use std::{ffi::OsStr, path::PathBuf};

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use onramp_keys::{Absent, Toml};

use super::key::Key;
use super::keys::{self, ClockKeys, Config, LinkKeys, PeerKeys, SECTIONS};

/// What a command line gives: texts by key.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--config`.
    pub config: Option<PathBuf>,
    pub options: Vec<(&'static str, Vec<String>)>,
}

/// Options of `onramp agent run`.
#[derive(Clone, Debug)]
pub struct AgentOptions(pub Given);

/// Options of `onramp clock run`.
#[derive(Clone, Debug)]
pub struct ClockOptions(pub Given);

/// Options of `onramp doctor`.
#[derive(Clone, Debug, Default)]
pub struct DoctorOptions(pub Given);

/// The keys by which doctor judges.
const OF_DOCTOR: [&str; 5] = [
    Config::devices,
    LinkKeys::line_rate,
    PeerKeys::prefixes,
    ClockKeys::source,
    ClockKeys::bound,
];

/// Names that completions of shells offer. Other texts are read too: the configuration refuses them, with all other
/// mistakes.
#[derive(Clone, Debug)]
pub struct Offered(pub Vec<&'static str>);

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.0.iter().map(|name| PossibleValue::new(*name));
        Some(Box::new(values))
    }
}

fn argument(key: &'static Key) -> Arg {
    let heading = SECTIONS.iter().find(|(name, ..)| *name == key.table());
    let arg = Arg::new(key.path)
        .long(key.option)
        .value_name(key.form.placeholder())
        .help(help(key))
        .help_heading(heading.map(|(_, heading, _)| *heading))
        .hide(key.hidden);
    match (key.form.names(), key.form.written()) {
        ([], [Toml::Flag]) => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        ([], _) if key.form.is_list() => arg.action(ArgAction::Append).value_delimiter(','),
        ([], _) => arg.allow_hyphen_values(true),
        (names, _) => arg
            .hide_possible_values(true)
            .value_parser(Offered(names.to_vec())),
    }
}

fn help(key: &Key) -> String {
    let values = match key.form.names() {
        [] => String::new(),
        _ => format!(" [{}]", key.form.words().replace('"', "")),
    };
    let default = match key.absent {
        Absent::Is("") => String::new(),
        _ => format!(" [default: {}]", key.default_words()),
    };
    let plain = key.explanation().replace('`', "");
    format!("{}{values}{default}", plain.trim_end_matches('.'))
}

fn add(command: Command, wanted: fn(&Key) -> bool) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help(format!(
            "Configuration file; options override it [default: {} if it exists]",
            super::DEFAULT_FILE
        ));
    let all = keys::all().filter(|key| wanted(key)).map(argument);
    command.arg(config).args(all)
}

fn take(matches: &ArgMatches) -> Given {
    let texts = |key: &'static Key| {
        let values = matches.try_get_many::<String>(key.path).ok().flatten()?;
        Some((key.path, values.cloned().collect()))
    };
    Given {
        config: matches.get_one("config").cloned(),
        options: keys::all().filter_map(texts).collect(),
    }
}

macro_rules! options {
    ($name:ident, $wanted:expr) => {
        impl clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(take(matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = take(matches);
                Ok(())
            }
        }

        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                add(command, $wanted)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

options!(AgentOptions, |_| true);
options!(ClockOptions, |key| key.is_of_clock());
options!(DoctorOptions, |key| OF_DOCTOR.contains(&key.path));
