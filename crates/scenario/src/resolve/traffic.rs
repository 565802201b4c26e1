// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Resolves [[traffic]]: each kind reads its own keys; what kinds have in common is checked here.

use super::*;
use crate::keys::Entry;
use crate::traffic::{KindKeys, TrafficKind};
use crate::write::Setting;

/// An entry of `[[traffic]]` that its kind reads. Its keys are named as they are declared: "traffic.size".
pub struct TrafficEntry<'r, 'a> {
    resolver: &'r mut Resolver<'a>,
    number: usize,
    kind: &'static TrafficKind,
}

impl Source for TrafficEntry<'_, '_> {
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        match self.kind.key(path) {
            Some(key) => text_of(key, self.resolver.layer.get(&self.path(path)), self),
            None => self.resolver.texts(path),
        }
    }
}

impl TrafficEntry<'_, '_> {
    /// The keys of the kind. `None`: one has no valid value, which has been reported.
    pub fn read<S: Section<More = Scope>>(&mut self) -> Option<S> {
        let keys: Vec<_> = S::TABLES.iter().copied().flatten().collect();
        let keys = keys.into_iter().map(|key| (key, self.path(key.path)));
        let keys: Vec<_> = keys.collect();
        self.resolver.require(keys.into_iter())?;
        S::read(self)
    }

    /// Number of hosts, if the network is valid.
    pub fn hosts(&self) -> Option<u32> {
        self.resolver.hosts
    }

    /// The duration of the run, if it is valid.
    pub fn duration(&self) -> Option<Span> {
        self.resolver.value(Experiment::duration)
    }

    /// Whether the scenario gives the key.
    pub fn is_set(&self, key: &str) -> bool {
        self.resolver.given(&self.path(key))
    }

    /// Reports that the value of a key is `found` in place of what is `expected`.
    pub fn refuse(&mut self, key: &str, found: impl Display, expected: &str) {
        let key = self.path(key);
        let problem = Problem::Expected {
            key: key.clone(),
            found: found.to_string(),
            expected: expected.to_owned(),
        };
        self.resolver.report(&[&key], problem);
    }

    /// Reports a key that is set beside another one.
    pub fn refuse_beside(&mut self, key: &str, other: &str) {
        if self.is_set(key) && self.is_set(other) {
            let (key, other) = (self.path(key), self.path(other));
            let problem = Problem::Beside {
                key: key.clone(),
                other: other.clone(),
            };
            self.resolver.report(&[&key, &other], problem);
        }
    }

    /// Reports a single sender, the value of `from`, that is also one of the receivers, the value of `to`.
    pub fn refuse_itself(&mut self, from: Sources, to: Receivers) {
        let sender = match from {
            Sources::Host(host) => host,
            Sources::Range(first, last) if first == last => first,
            Sources::Range(..) | Sources::Others => return,
        };
        let receives = match to {
            Receivers::Host(host) => host == sender,
            Receivers::Range(first, last) => (first..=last).contains(&sender),
            Receivers::All => true,
        };
        if receives {
            let (key, to) = (self.path("traffic.from"), self.path("traffic.to"));
            let problem = Problem::ToItself {
                key: key.clone(),
                host: sender,
            };
            self.resolver.report(&[&key, &to], problem);
        }
    }

    /// Reports a time that is not below the duration.
    pub fn refuse_after_end(&mut self, key: &str, time: Option<Span>) {
        let (key, duration) = (self.path(key), self.duration());
        self.resolver
            .below(&key, time, duration, Experiment::duration);
    }

    /// Reports a time above the duration.
    pub fn refuse_beyond_end(&mut self, key: &str, time: Span) {
        let (key, duration) = (self.path(key), self.duration());
        self.resolver
            .at_most(&key, Some(time), duration, Experiment::duration);
    }

    /// Reports a time that is not below that of another key.
    pub fn refuse_not_below(&mut self, key: &str, time: Span, other: &str, bound: Span) {
        let (key, other) = (self.path(key), self.path(other));
        self.resolver.below(&key, Some(time), Some(bound), &other);
    }

    /// The content of the file that a key names. `None`: an error has been reported.
    pub(crate) fn file<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Files<'_>, &str) -> Result<T, String>,
    ) -> Option<T> {
        let name = self.text(key)?;
        match read(self.resolver.files, &name) {
            Ok(content) => Some(content),
            Err(error) => {
                self.refuse_file(key, error);
                None
            }
        }
    }

    /// Reports what is wrong with the file that a key names.
    pub(crate) fn refuse_file(&mut self, key: &str, error: String) {
        let (path, key) = (self.text(key).unwrap_or_default(), self.path(key));
        let problem = Problem::File {
            key: key.clone(),
            path,
            error,
        };
        self.resolver.report(&[&key], problem);
    }

    /// "traffic.0.size" of "traffic.size".
    fn path(&self, key: &str) -> String {
        let name = key.strip_prefix("traffic.").unwrap_or(key);
        format!("traffic.{}.{name}", self.number)
    }

    fn settings(&self) -> Vec<Setting> {
        let setting = |key: &'static Key| {
            let text = self.text(key.path)?;
            Some(self.setting(key, text))
        };
        let kind = self.setting(&KindKeys::KEYS[0], self.kind.name.to_owned());
        let own = self.kind.keys.iter().filter_map(setting);
        std::iter::once(kind).chain(own).collect()
    }

    fn setting(&self, key: &'static Key, text: String) -> Setting {
        Setting {
            key,
            entry: Some(Entry::Traffic(self.number)),
            text,
        }
    }
}

impl Resolver<'_> {
    pub(super) fn traffic(&mut self) -> Option<Vec<Traffic>> {
        let count = self.document.entries.traffic.len();
        if count == 0 {
            let expected = "at least one [[traffic]] entry".to_owned();
            self.report(
                &["traffic"],
                Problem::Missing {
                    key: "traffic".to_owned(),
                    expected,
                },
            );
            return None;
        }
        // All entries are read before the first failure returns, so that all errors are reported.
        let entries: Vec<_> = (0..count).map(|number| self.entry(number)).collect();
        entries.into_iter().collect()
    }

    fn entry(&mut self, number: usize) -> Option<Traffic> {
        let path = format!("traffic.{number}.kind");
        self.require(std::iter::once((&KindKeys::KEYS[0], path.clone())))?;
        let kind = crate::traffic::kind(self.layer.get(&path)?.text()?)?;
        self.refuse_foreign(number, kind);
        let mut entry = TrafficEntry {
            resolver: self,
            number,
            kind,
        };
        let generator = (kind.read)(&mut entry)?;
        Some(Traffic {
            kind,
            generator,
            settings: entry.settings(),
        })
    }

    fn refuse_foreign(&mut self, number: usize, kind: &TrafficKind) {
        let prefix = format!("traffic.{number}.");
        let layer = self.layer;
        let of_entry = layer.range(prefix.clone()..).map(|(path, _)| path);
        for path in of_entry.take_while(|path| path.starts_with(&prefix)) {
            let name = format!("traffic.{}", &path[prefix.len()..]);
            let owners = keys::owners(&name);
            if !owners.is_empty() && !owners.contains(&kind.name) {
                let (key, kind) = (path.clone(), kind.name.to_owned());
                let owners = owners.join(" or ");
                self.report(&[path], Problem::Foreign { key, owners, kind });
            }
        }
    }

    /// Reports settings with which the hosts of `run` cannot read.
    pub(super) fn check_reads(&mut self, run: &Run) {
        let reads = |(_, traffic): &(usize, &Traffic)| traffic.generator().op() == Op::Read;
        for (index, traffic) in run.traffic.iter().enumerate().filter(reads) {
            let op = format!("traffic.{index}.op");
            if !run.host.cc.sends_bursts() {
                let bursts = Cc::all().filter(|cc| cc.sends_bursts()).map(Cc::name);
                let names = bursts.collect::<Vec<_>>().join(" or ");
                self.cannot_read(&op, Host::cc, &names);
            }
            if run.onramp.law != Law::Off {
                self.cannot_read(&op, OnRamp::law, "off");
            }
            let asks = |s: &Setting| s.key.name() == "ask_size" && s.text != "0 B";
            if traffic.settings.iter().any(asks) {
                self.cannot_read(&op, &format!("traffic.{index}.ask_size"), "0 B");
            }
            // The rate within a burst is the responder's, which only has its line.
            let burst_rate = |key: &&Key| key.name() == "burst_rate" && self.given(key.path);
            if let Some(key) = keys::all().find(burst_rate) {
                self.cannot_read(&op, key.path, "not set");
            }
        }
    }

    /// Reports that the reads of `op` need another value of the key `other`.
    fn cannot_read(&mut self, op: &str, other: &str, value: &str) {
        let problem = Problem::Needs {
            key: op.to_owned(),
            value: Op::Read.to_string(),
            needs: format!("{other} {value}"),
        };
        self.report(&[op, other], problem);
    }
}
