// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes a [`Run`] of the checked values of one run: adds defaults, and checks relations between keys.
//!
//! Invariant: a function here returns `None` only after an error about one of its values was reported.

mod groups;
mod host;
mod network;
mod settings;
mod traffic;

use crate::document::{Document, Given, Layer};
use crate::error::{Error, Origin, Problem};
use crate::experiment::Experiment;
use crate::files::Files;
use crate::key::{Key, Scope, Texts};
use crate::keys;
use crate::values::{last_host, names_hosts};
use crate::*;
use onramp_keys::{Absent, Section, Source};
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Beyond this the simulator would need more than 2 GB, and files of results are as large.
const MAX_ARRIVALS: f64 = 1e7;

/// Makes a run without params out of `layer`, or returns its errors.
pub(crate) fn resolve(
    document: &Document,
    files: &Files<'_>,
    layer: &Layer,
) -> Result<Run, Vec<Error>> {
    let mut resolver = Resolver {
        document,
        files,
        layer,
        hosts: None,
        group: None,
        errors: Vec::new(),
    };
    let run = resolver.run();
    match run {
        Some(run) if resolver.errors.is_empty() => Ok(run),
        _ => Err(resolver.errors),
    }
}

impl Default for Transport {
    /// A kernel's.
    fn default() -> Transport {
        Transport::read(&Defaults).expect("the table of keys has the defaults")
    }
}

/// A scenario that gives nothing.
struct Defaults;

impl Source for Defaults {
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        text_of(keys::all().find(|key| key.path == path)?, None, self)
    }
}

/// The text of a key, as given or by default.
fn text_of(key: &Key, given: Option<&Given>, from: &dyn Source) -> Option<Vec<String>> {
    let text = match (given, &key.absent) {
        (Some(given), _) => given.text()?.to_owned(),
        (None, Absent::By(_, compute)) => key.form.check(&compute(from)?).ok()?,
        (None, _) => key.default()?,
    };
    Some(key.texts(&text))
}

pub(crate) struct Resolver<'a> {
    document: &'a Document,
    files: &'a Files<'a>,
    layer: &'a Layer,
    /// Number of hosts of the network.
    hosts: Option<u32>,
    /// The table whose settings `layer` has in place of those of all hosts: "hosts.0".
    group: Option<String>,
    errors: Vec<Error>,
}

impl Source for Resolver<'_> {
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let key = keys::all().find(|key| key.path == path)?;
        text_of(key, self.layer.get(path), self)
    }
}

impl<'a> Resolver<'a> {
    /// Whether the scenario gives the key.
    fn given(&self, path: &str) -> bool {
        self.layer.contains_key(path)
    }

    /// Reports at the overriding key among `paths`, else at the first that is given, else at the
    /// table that lacks the first.
    fn report(&mut self, paths: &[&str], mut problem: Problem) {
        let strongest = |a: &'a Given, b: &'a Given| if b.rank > a.rank { b } else { a };
        let layer: &'a Layer = self.layer;
        let of_group = paths.iter().filter_map(|path| self.of_group(path));
        let given = paths.iter().filter_map(|path| layer.get(*path));
        let of_group = of_group.reduce(strongest);
        let strongest = of_group.or_else(|| given.reduce(strongest));
        if let (Some(_), Some(group), Some(key)) = (of_group, &self.group, problem.key_mut()) {
            *key = format!("{group}.{key}");
        }
        let place = strongest.map_or_else(|| self.table_of(paths[0]), |given| given.place);
        self.errors.push(Error { place, problem });
    }

    /// A section outside of entries. `None`: an error has been reported.
    fn section<S: Section<More = Scope>>(&mut self) -> Option<S> {
        let keys = S::TABLES.iter().copied().flatten();
        self.require(keys.map(|key| (key, key.path.to_owned())))?;
        S::read(self)
    }

    /// Reports keys that must be given and are not, texts that are no value of a key, and hosts that do not exist. `None`: a
    /// key has no value.
    fn require(&mut self, keys: impl Iterator<Item = (&'static Key, String)>) -> Option<()> {
        let mut complete = Some(());
        for (key, path) in keys {
            match (self.layer.get(&path), &key.absent) {
                (Some(given), _) => {
                    let text = given.text();
                    if text
                        .and_then(|text| self.checked(key, &path, text))
                        .is_none()
                    {
                        complete = None;
                    }
                }
                (None, Absent::Required) => {
                    self.missing(&path, key);
                    complete = None;
                }
                (None, _) => {}
            }
        }
        complete
    }

    /// Checks a text that the file's reader has accepted. `--set` may have given its entry another kind since, whose key takes
    /// other values.
    fn checked(&mut self, key: &Key, path: &str, text: &str) -> Option<()> {
        if let Err(wrong) = key.check(text) {
            self.report(&[path], Problem::wrong(path, text, wrong));
            return None;
        }
        if names_hosts(key.form) {
            self.exists(path, text);
        }
        Some(())
    }

    /// Checks that the hosts of a text exist.
    fn exists(&mut self, path: &str, text: &str) {
        let max = self.hosts.map(|hosts| hosts - 1);
        self.at_most(path, last_host(text), max, self.nodes_key());
    }

    /// The value of a key outside of entries, as given or by default.
    fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    fn missing(&mut self, path: &str, key: &Key) {
        let (name, expected) = (path.to_owned(), key.words());
        let problem = Problem::Missing {
            key: name,
            expected,
        };
        self.report(&[path], problem);
    }

    /// Reports that a key outside of entries is missing, unless it is given.
    fn needed(&mut self, path: &str) {
        if let (false, Some(key)) = (self.given(path), keys::all().find(|key| key.path == path)) {
            self.missing(path, key);
        }
    }

    fn table_of(&self, path: &str) -> Origin {
        let mut table = path;
        while let Some((above, _)) = table.rsplit_once('.') {
            if let Some(&line) = self.document.tables.get(above) {
                return Origin::Line(line);
            }
            table = above;
        }
        Origin::Line(1)
    }

    /// Checks `value <= max`, where `max` is what `of` allows.
    fn at_most<Q: PartialOrd + Display>(
        &mut self,
        path: &str,
        value: Option<Q>,
        max: Option<Q>,
        of: &str,
    ) {
        if let (Some(value), Some(max)) = (value, max) {
            if value > max {
                let (key, max) = (path.to_owned(), format!("{max} ({of})"));
                self.report(
                    &[path, of],
                    Problem::Above {
                        key,
                        value: value.to_string(),
                        max,
                    },
                );
            }
        }
    }

    /// Checks `value < bound`, where `bound` is the value of `of`.
    fn below<Q: PartialOrd + Display>(
        &mut self,
        path: &str,
        value: Option<Q>,
        bound: Option<Q>,
        of: &str,
    ) {
        if let (Some(value), Some(bound)) = (value, bound) {
            if value >= bound {
                let (key, bound) = (path.to_owned(), format!("{bound} ({of})"));
                self.report(
                    &[path, of],
                    Problem::NotBelow {
                        key,
                        value: value.to_string(),
                        bound,
                    },
                );
            }
        }
    }

    fn run(&mut self) -> Option<Run> {
        let experiment: Option<Experiment> = self.section();
        let duration = self.value(Experiment::duration);
        let warmup = self.value::<Span>(Experiment::warmup);
        self.below(Experiment::warmup, warmup, duration, Experiment::duration);
        let host = self.host();
        let mut network = self.network();
        let tuning = self.tuning_of(host);
        let clock = self.section::<Clock>();
        let measure = self.section::<Measure>();
        let onramp = self.onramp(network.as_ref(), host);
        let law_tuning = self.law_tuning_of(onramp);
        let traffic = self.traffic();
        let groups = self.groups(&mut network, host);
        let (experiment, Measure { .. }) = (experiment?, measure?);
        let run = Run {
            params: BTreeMap::new(),
            title: experiment.title.0,
            seed: experiment.seed,
            duration: experiment.duration,
            warmup: experiment.warmup,
            time_dilation: NonZeroU64::new(experiment.time_dilation)?,
            network: network?,
            host: host?,
            tuning: tuning?,
            clock: clock?,
            onramp: onramp?,
            law_tuning: law_tuning?,
            groups: groups?,
            traffic: traffic?,
            settings: Vec::new(),
        };
        let run = self.with_settings(run);
        self.check_size(&run);
        self.check_reads(&run);
        Some(run)
    }

    fn check_size(&mut self, run: &Run) {
        for (index, traffic) in run.traffic.iter().enumerate() {
            let arrivals = traffic.generator().expected_flows(run);
            if arrivals > MAX_ARRIVALS {
                let key = format!("traffic.{index}");
                let path = |name: &str| format!("{key}.{name}");
                let paths = [
                    path("load"),
                    path("interval"),
                    Experiment::duration.to_owned(),
                ];
                let value = format!("about {arrivals:.0} flows");
                let max = format!("{MAX_ARRIVALS:.0}");
                self.report(
                    &paths.each_ref().map(String::as_str),
                    Problem::Above { key, value, max },
                );
            }
        }
    }
}
