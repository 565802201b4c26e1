//! Checked values of one run into a [`Run`]: defaults, and the bounds that tie keys together.
//!
//! Invariant: a function here answers `None` only when it has reported an error, or when a value
//! it needs was reported before.

mod host;
mod network;
mod traffic;

use crate::document::{Document, Layer};
use crate::error::{Error, Place, Problem};
use crate::files::{Files, NO_FILES};
use crate::keys::{self, Absent, KEYS};
use crate::plan::expected_arrivals;
use crate::value::{range, Value};
use crate::*;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Beyond this the simulator would need more than 2 GB, and files of results are as large.
const MAX_ARRIVALS: f64 = 1e7;

/// Makes a run without params out of `layer`, or says what is wrong.
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
            errors: Vec::new(),
        };
        let transport = resolver.transport(Some(HostKind::Kernel));
        transport.expect("the table of keys has the defaults")
    }
}

struct Resolver<'a> {
    document: &'a Document,
    files: &'a Files<'a>,
    layer: &'a Layer,
    /// How many the network has.
    hosts: Option<u32>,
    errors: Vec<Error>,
}

/// Reads one variant of [`Value`]; the key's form guarantees that it is that one.
macro_rules! getter {
    ($name:ident, $variant:ident, $type:ty) => {
        fn $name(&mut self, path: &str) -> Option<$type> {
            match self.value(path)? {
                Value::$variant(value) => Some(value),
                _ => None,
            }
        }
    };
}

impl Resolver<'_> {
    getter!(text, Text, String);
    getter!(count, Count, u64);
    getter!(flag, Flag, bool);
    getter!(fraction, Fraction, Fraction);
    getter!(span, Span, Span);
    getter!(rate, Rate, Rate);
    getter!(bytes, Bytes, Bytes);

    /// As given, or by default.
    fn value(&mut self, path: &str) -> Option<Value> {
        if let Some(setting) = self.layer.get(path) {
            return setting.value.clone();
        }
        let (key, _) = keys::find(path)?;
        if key.default == Absent::Required {
            self.missing(path);
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

    fn small(&mut self, path: &str) -> Option<u32> {
        u32::try_from(self.count(path)?).ok()
    }

    fn name<T: FromStr>(&mut self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    fn given(&self, path: &str) -> bool {
        self.layer.contains_key(path)
    }

    /// Reports at the overriding key among `paths`, else at the first that is given, else at the
    /// table that lacks the first.
    fn report(&mut self, paths: &[&str], problem: Problem) {
        let given = paths.iter().filter_map(|path| self.layer.get(*path));
        let strongest = given.reduce(|a, b| if b.rank > a.rank { b } else { a });
        let place = strongest.map_or_else(|| self.table_of(paths[0]), |setting| setting.place);
        self.errors.push(Error { place, problem });
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
        let title = self.text("title");
        let seed = self.count("seed");
        let duration = self.span("duration");
        let warmup = self.span("warmup");
        self.below("warmup", warmup, duration, "duration");
        let time_dilation = self.count("time_dilation").and_then(NonZeroU64::new);
        let host = self.host();
        let network = self.network(host);
        let tuning = self.tuning(host);
        let clock = self.clock();
        let onramp = self.onramp(&network, host);
        let traffic = self.traffic(duration);
        let run = Run {
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
            traffic: traffic?,
        };
        self.check_size(&run);
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
