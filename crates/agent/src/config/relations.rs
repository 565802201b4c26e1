// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Relations between keys that a configuration must keep.

use super::class::{Class, LONGEST_T};
use super::error::{Error, Origin};
use super::key::{Daemon, Daemons};
use super::keys::{self, ClockKeys, Config, LawKeys};
use super::settings::{Setting, Settings};
use super::values::{ClockSource, Others, Threshold};

/// The clock sources that another program keeps right within `clock.bound`.
const BOUNDED: &[ClockSource] = &[ClockSource::System, ClockSource::Phc];

/// A configuration whose relations are checked.
pub struct Relations<'c> {
    pub daemon: Daemon,
    pub settings: &'c Settings,
    pub values: &'c Config,
    pub classes: &'c [Class],
    /// Keys whose value was refused: the values have their defaults, which nobody wrote.
    pub invalid: &'c [&'static str],
}

impl Relations<'_> {
    /// Those that do not hold.
    pub fn mistakes(&self) -> Vec<Error> {
        let is_agent = self.daemon == Daemon::Agent;
        let of_daemon = keys::all().filter(|key| is_agent || key.is_of_clock());
        let set = of_daemon.filter_map(|key| self.settings.set(key.path));
        let mut errors: Vec<Error> = set.flat_map(|setting| self.of(setting)).collect();
        if is_agent {
            errors.extend(self.threshold());
            errors.extend(self.others());
            errors.extend(self.longest_delay());
        }
        errors
    }

    /// Whether all of these have values that were accepted.
    fn are_valid(&self, paths: &[&str]) -> bool {
        !self.invalid.iter().any(|path| paths.contains(path))
    }

    /// The name of a key at its place.
    fn name(&self, path: &str) -> String {
        self.settings.place(path).name(keys::find(path))
    }

    /// A mistake at the place of a key.
    fn error(&self, path: &str, text: String) -> Error {
        let place = self.settings.place(path);
        Error { place, text }
    }

    /// Those of one key.
    fn of(&self, setting: &Setting) -> Vec<Error> {
        let (key, name) = (setting.key, setting.name());
        let found = format!("{name} is {setting}");
        let lacks = |path: &&&str| self.settings.set(path).is_none() && self.are_valid(&[**path]);
        let needs = key.needs.iter().filter(lacks).map(|path| {
            let other = setting.place.name(keys::find(path));
            format!("{found}, which needs {other}; set it, or remove {name}")
        });
        let excluded = key.excludes.iter().filter_map(|path| {
            let other = self.settings.set(path)?.name();
            Some(format!(
                "{found}, and {other} is set too; remove one of them"
            ))
        });
        let of_source = self.of_source(setting, &found);
        let texts = needs.chain(excluded).chain(of_source);
        texts.map(|text| self.error(key.path, text)).collect()
    }

    /// A key that the source of fleet time does not use, and the bound that it needs.
    fn of_source(&self, setting: &Setting, found: &str) -> Option<String> {
        let (key, place, source) = (setting.key, setting.place, self.values.clock.source);
        let users: &[ClockSource] = match key.path {
            ClockKeys::source => {
                let lacks_bound = self.settings.set(ClockKeys::bound).is_none();
                let needs = BOUNDED.contains(&source) && lacks_bound;
                let bound = place.name(keys::find(ClockKeys::bound));
                return (needs && self.are_valid(&[ClockKeys::bound])).then(|| {
                    format!(
                        "{found}, which needs {bound}, the largest error of that clock, e.g. 5 us"
                    )
                });
            }
            ClockKeys::bound => BOUNDED,
            ClockKeys::device => &[ClockSource::Phc],
            _ if self.daemon == Daemon::Agent && key.of == Daemons::Fleet => {
                &[ClockSource::Huygens]
            }
            _ => return None,
        };
        if users.contains(&source) || !self.are_valid(&[ClockKeys::source]) {
            return None;
        }
        let set = |source: &ClockSource| place.set(keys::find(ClockKeys::source), source.name());
        let users: Vec<String> = users.iter().map(set).collect();
        Some(format!(
            "{found}, which {} does not use; write {}, or remove it",
            set(&source),
            users.join(" or ")
        ))
    }

    /// Longer delays than the longest that is believed are ignored, so no flow would ever be held.
    fn threshold(&self) -> Option<Error> {
        let law = &self.values.law;
        let (path, t) = match law.threshold {
            Threshold::Fixed(t) => (LawKeys::threshold, t),
            Threshold::Auto => (LawKeys::headroom, law.headroom),
        };
        let is_known = self.are_valid(&[LawKeys::threshold, path, LawKeys::max_owd]);
        if !is_known || t <= law.max_owd {
            return None;
        }
        let (name, most) = (self.name(path), self.name(LawKeys::max_owd));
        let text = format!(
            "{name} is {t}, above {most} {}: longer delays are ignored, so no flow would ever be held; lower {name} or \
             raise {most}",
            law.max_owd
        );
        // Of the two, blame the one that was written.
        let is_default = self.settings.place(path) == Origin::Default;
        let blamed = if is_default { LawKeys::max_owd } else { path };
        Some(self.error(blamed, text))
    }

    /// Somebody must be held.
    fn others(&self) -> Option<Error> {
        let nobody = self.passes_others() && self.classes.iter().all(|class| !class.hold);
        nobody.then(|| {
            let text = format!(
                "{} is pass, and no [[class]] is held, so no flow is; add a class, or write observe = true",
                self.name(Config::others)
            );
            self.error(Config::others, text)
        })
    }

    fn passes_others(&self) -> bool {
        self.values.others == Others::Pass
    }

    /// `law.max_owd` must suit the classes.
    fn longest_delay(&self) -> Vec<Error> {
        let (name, most) = (self.name(LawKeys::max_owd), self.values.law.max_owd);
        if !self.are_valid(&[LawKeys::max_owd]) {
            return vec![];
        }
        let has_pass = self.passes_others() || self.classes.iter().any(|class| !class.hold);
        let is_too_long = has_pass && most > LONGEST_T;
        let too_long = is_too_long.then(|| {
            format!(
                "{name} is {most}, above max {LONGEST_T} where some flows are never held; lower it"
            )
        });
        let never_held = self
            .classes
            .iter()
            .filter(|class| class.threshold > Some(most));
        let too_short = never_held.map(|class| {
            format!(
                "{name} is {most}, below the threshold of class \"{}\", so its flows would never be held; raise it, or \
                 write hold = false in the class",
                class.name
            )
        });
        let texts = too_long.into_iter().chain(too_short);
        texts
            .map(|text| self.error(LawKeys::max_owd, text))
            .collect()
    }
}
