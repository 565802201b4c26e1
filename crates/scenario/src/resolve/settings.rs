// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Which keys apply in a run, and their values: what is written.

use super::*;
use crate::key::LIST;
use crate::network::{
    EcnKeys, FabricKeys, FailedKeys, GraphKeys, LinkKeys, Ports, RuleKeys, TopologyKeys,
};
use crate::setting::Setting;

impl Resolver<'_> {
    /// The run with its settings, and those of its groups.
    pub(super) fn with_settings(&self, mut run: Run) -> Run {
        let of_host = self.settings_of_host(&run.host, &run.onramp);
        for group in &mut run.groups {
            group.own.retain(|own| {
                let path = own.path();
                let differs = !of_host
                    .iter()
                    .any(|other| other.key.path == own.key.path && other.text == own.text);
                self.given(&path) || differs && !own.key.is_parameter()
            });
        }
        let mut settings = self.settings_of(Experiment::KEYS.iter());
        settings.extend(self.settings_of(keys_of(&run.network)));
        settings.extend(of_host);
        for inherited in run.groups.iter().flat_map(|group| &group.inherited) {
            if !settings.iter().any(|s| s.key.path == inherited.key.path) {
                settings.push(inherited.clone());
            }
        }
        settings.extend(self.settings_of(Clock::KEYS.iter().chain(Measure::KEYS)));
        let place = |s: &Setting| keys::all().position(|key| key.path == s.key.path);
        settings.sort_by_cached_key(place);
        run.settings = settings;
        run
    }

    pub(super) fn settings_of(&self, keys: impl IntoIterator<Item = &'static Key>) -> Vec<Setting> {
        let setting = |key: &'static Key| {
            let text = self.texts(key.path)?.join(LIST);
            Some(Setting {
                key,
                entry: None,
                text,
            })
        };
        keys.into_iter().filter_map(setting).collect()
    }

    /// Keys of [host], [cc] and [onramp].
    pub(super) fn settings_of_host(&self, host: &Host, onramp: &OnRamp) -> Vec<Setting> {
        let name = host.cc.name();
        let has = |key: &&Key| {
            key.on.is_none_or(|on| on == host.kind)
                && (key.of_cc.is_empty() || key.of_cc.contains(&name))
        };
        let of_host = Host::KEYS.iter().chain(Transport::KEYS);
        let of_cc = keys::all().filter(|key| !key.of_cc.is_empty());
        let mut settings = self.settings_of(of_host.chain(of_cc).filter(has));
        match onramp.law == Law::Off {
            true => {
                let says = |key: &&Key| [OnRamp::law, OnRamp::threshold].contains(&key.path);
                let off = |key| Setting {
                    key,
                    entry: None,
                    text: Law::Off.to_string(),
                };
                settings.extend(OnRamp::KEYS.iter().filter(says).map(off));
            }
            false => {
                let law = onramp.law.name();
                let of_law = keys::all().filter(|key| key.of_law == Some(law));
                settings.extend(self.settings_of(OnRamp::KEYS.iter().filter(has).chain(of_law)));
            }
        }
        settings
    }
}

/// Keys of [network] that apply in this one.
fn keys_of(network: &Network) -> Vec<&'static Key> {
    let mut paths = vec![TopologyKeys::kind];
    match &network.topology {
        Topology::File { .. } => paths.push(TopologyKeys::path),
        Topology::Inline(_) => paths.push(GraphKeys::graph),
        Topology::Shape(shape) => {
            paths.push(TopologyKeys::hosts);
            paths.extend(shape.kind().counts.iter().map(|count| count.key));
            let links = LinkKeys::KEYS.iter().chain(FabricKeys::KEYS);
            paths.extend(links.map(|key| key.path));
        }
    }
    let of_paths = network.paths.entry.parameters.iter();
    paths.extend(of_paths.map(|parameter| parameter.key));
    if let Some(rule) = &network.rule {
        paths.extend(rule.entry.parameters.iter().map(|parameter| parameter.key));
    }
    if network.ecn.is_some() {
        paths.extend(EcnKeys::KEYS.iter().map(|key| key.path));
    }
    let everywhere = Ports::KEYS
        .iter()
        .chain(FailedKeys::KEYS)
        .chain(RuleKeys::KEYS);
    let everywhere = everywhere.map(|key| key.path);
    paths.extend(everywhere);
    keys::all()
        .filter(|key| paths.contains(&key.path))
        .collect()
}
