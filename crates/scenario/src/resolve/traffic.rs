// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Resolves [[traffic]]: each kind reads its own keys; what kinds have in common is checked here.

use super::*;
use crate::setting::Setting;
use crate::traffic::{Context, KindKeys, TrafficKind};

impl<'a> Context for Resolver<'a> {
    fn text_at(&self, key: &Key, path: &str, from: &dyn Source) -> Option<Vec<String>> {
        text_of(key, self.layer.get(path), from)
    }

    fn is_given(&self, path: &str) -> bool {
        self.given(path)
    }

    fn require(&mut self, keys: &[(&'static Key, String)]) -> Option<()> {
        Resolver::require(self, keys.iter().cloned())
    }

    fn report(&mut self, paths: &[&str], problem: Problem) {
        Resolver::report(self, paths, problem);
    }

    fn hosts(&self) -> Option<u32> {
        self.hosts
    }

    fn files(&self) -> &Files<'_> {
        self.files
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
        TrafficEntry::new(self, number, kind).resolve()
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
