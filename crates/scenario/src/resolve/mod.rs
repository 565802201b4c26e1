// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes a [`Run`] of the checked values of one run: adds defaults, and checks relations between keys.
//!
//! Invariant: a function here returns `None` only after an error about one of its values was reported.

mod groups;
mod host;
mod network;
mod traffic;

use crate::document::{Document, Layer, Setting};
use crate::error::{Error, Place, Problem};
use crate::field::{Field, Reader};
use crate::files::{Files, NO_FILES};
use crate::key::Absent;
use crate::keys;
use crate::plan::expected_arrivals;
use crate::section::Section;
use crate::value::{range, Form, Value};
use crate::*;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU64;

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
        let (document, layer) = (Document::default(), Layer::new());
        let mut resolver = Resolver {
            document: &document,
            files: &Files::new(NO_FILES),
            layer: &layer,
            hosts: None,
            group: None,
            errors: Vec::new(),
        };
        let transport = Transport::read(&mut resolver, "host");
        transport.expect("the table of keys has the defaults")
    }
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

impl<'a> Reader for Resolver<'a> {
    fn given(&self, path: &str) -> bool {
        self.layer.contains_key(path)
    }

    fn value_of(&mut self, path: &str) -> Option<Option<Value>> {
        let (key, _) = keys::find(path)?;
        if !self.given(path) && matches!(key.default, Absent::Without(_)) {
            return Some(None);
        }
        let value = self.value(path)?;
        if let Form::HostOr(_) = key.form {
            self.exists(path, &value);
        }
        Some(Some(value))
    }

    /// Reports at the overriding key among `paths`, else at the first that is given, else at the
    /// table that lacks the first.
    fn report(&mut self, paths: &[&str], mut problem: Problem) {
        let strongest = |a: &'a Setting, b: &'a Setting| if b.rank > a.rank { b } else { a };
        let layer: &'a Layer = self.layer;
        let of_group = paths.iter().filter_map(|path| self.of_group(path));
        let given = paths.iter().filter_map(|path| layer.get(*path));
        let of_group = of_group.reduce(strongest);
        let strongest = of_group.or_else(|| given.reduce(strongest));
        if let (Some(_), Some(group), Some(key)) = (of_group, &self.group, problem.key_mut()) {
            *key = format!("{group}.{key}");
        }
        let place = strongest.map_or_else(|| self.table_of(paths[0]), |setting| setting.place);
        self.errors.push(Error { place, problem });
    }
}

impl Resolver<'_> {
    /// The value of `path`, as given or by default, if it is one of that type.
    fn field<T: Field>(&mut self, path: &str) -> Option<T> {
        let reader: &mut dyn Reader = self;
        reader.field(path)
    }

    /// As given, or by default.
    fn value(&mut self, path: &str) -> Option<Value> {
        if let Some(setting) = self.layer.get(path) {
            return setting.value.clone();
        }
        let (key, _) = keys::find(path)?;
        match key.default {
            Absent::Required => self.missing(path),
            Absent::By(_, compute) => return compute(self),
            Absent::Is(_) | Absent::Without(_) | Absent::Source(_) => {}
        }
        key.default_value()
    }

    fn missing(&mut self, path: &str) {
        let expected = keys::find(path).map_or_else(String::new, |(key, _)| key.form.to_string());
        let problem = Problem::Missing {
            key: path.to_owned(),
            expected,
        };
        self.report(&[path], problem);
    }

    fn table_of(&self, path: &str) -> Place {
        let mut table = path;
        while let Some((above, _)) = table.rsplit_once('.') {
            if let Some(&line) = self.document.tables.get(above) {
                return Place::Line(line);
            }
            table = above;
        }
        Place::Line(1)
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
        let title = self.field::<String>("title");
        let seed = self.field::<u64>("seed");
        let duration = self.field::<Span>("duration");
        let warmup = self.field::<Span>("warmup");
        self.below("warmup", warmup, duration, "duration");
        let time_dilation = self.field::<u64>("time_dilation").and_then(NonZeroU64::new);
        let host = self.host();
        let mut network = self.network();
        let tuning = self.tuning_of(host);
        let clock = Clock::read(self, "clock");
        let onramp = self.onramp(network.as_ref(), host);
        let traffic = self.traffic(duration);
        let groups = self.groups(&mut network, host);
        let mut run = Run {
            params: BTreeMap::new(),
            title: title?,
            seed: seed?,
            duration: duration?,
            warmup: warmup?,
            time_dilation: time_dilation?,
            network: network?,
            host: host?,
            tuning: tuning?,
            clock: clock?,
            onramp: onramp?,
            groups: groups?,
            traffic: traffic?,
        };
        run.note_keys_of_groups(|path| self.given(path));
        self.check_size(&run);
        self.check_reads(&run);
        Some(run)
    }

    fn check_size(&mut self, run: &Run) {
        for (index, traffic) in run.traffic.iter().enumerate() {
            let arrivals = expected_arrivals(run, traffic);
            if arrivals > MAX_ARRIVALS {
                let key = format!("traffic.{index}");
                let path = |name: &str| format!("{key}.{name}");
                let paths = [path("load"), path("interval"), "duration".to_owned()];
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
