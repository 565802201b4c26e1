// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What `onramp agent run` would run with: its configuration and its options, as far as doctor judges by them.
use std::path::PathBuf;

use anyhow::Result;
use onramp_units::Rate;

use super::{Finding, State};
use crate::{
    config::{ClockSource, Configuration, Daemon, DoctorOptions, Given},
    devices,
};

/// The part of the configuration that decides what a device needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The number of its mistakes.
    pub mistakes: usize,
    /// The devices that it names.
    pub devices: Vec<String>,
    /// Whether it names peers, or a fleet whose members are peers.
    pub has_peers: bool,
    /// Its line rate.
    pub line_rate: Option<Rate>,
}

impl Plan {
    /// What a file and options ask for. A file with mistakes counts as empty.
    ///
    /// # Errors
    /// An option is refused.
    pub fn of(options: &DoctorOptions) -> Result<Plan> {
        let load = |given: &Given| Configuration::load(given, Daemon::Agent);
        let given = &options.0;
        let without_file = Given {
            config: Some("/dev/null".into()),
            ..given.clone()
        };
        let (found, mistakes) = match load(given) {
            Ok(found) => (found, 0),
            Err(errors) => (load(&without_file)?, errors.count()),
        };
        let has_fleet = found.clock.source == ClockSource::Huygens;
        Ok(Plan {
            file: Configuration::file_of(given),
            mistakes,
            devices: found.devices.clone(),
            has_peers: has_fleet || !found.peers.prefixes.is_empty(),
            line_rate: found.link.line_rate,
        })
    }

    /// The devices that the daemon takes.
    ///
    /// # Errors
    /// None is named, and there is no default route.
    pub fn devices(&self) -> Result<Vec<String>> {
        match self.devices.is_empty() {
            true => devices::of_default_routes(),
            false => Ok(self.devices.clone()),
        }
    }

    pub(super) fn finding(&self) -> Finding {
        let feature = "configuration";
        let Some(file) = self.file.as_ref().map(|file| file.display()) else {
            return Finding::ok(feature, "no file: defaults and options");
        };
        match self.mistakes {
            0 => Finding::ok(feature, format!("{file}: valid")),
            1 => Finding::new(
                feature,
                State::Missing,
                format!("{file}: 1 mistake, so the daemon does not start"),
            )
            .fix(format!("onramp agent validate {file} names it")),
            many => Finding::new(
                feature,
                State::Missing,
                format!("{file}: {many} mistakes, so the daemon does not start"),
            )
            .fix(format!("onramp agent validate {file} names them")),
        }
    }
}
