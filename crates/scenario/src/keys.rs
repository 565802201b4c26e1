// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The keys of scenarios. Each is declared once, as the field of a section, or by the part that has it: a congestion
//! control, a rule, a shape, a control law. The parser, `explain`, docs/scenario.md and the rack's check all read this table.

mod cc;
mod law;
mod rule;
mod topology;

use crate::clock::Clock;
use crate::experiment::Experiment;
use crate::groups::GroupKeys;
use crate::host::{Host, Transport};
use crate::key::{section, Key};
use crate::measure::Measure;
use crate::network::{
    EcnKeys, FabricKeys, FailedKeys, GraphKeys, LinkKeys, Ports, RuleKeys, TopologyKeys,
};
use crate::on_ramp::OnRamp;
pub(crate) use crate::setting::TableEntry;
use crate::traffic::{self, KindKeys, TrafficKind};
use onramp_keys::Section;

/// Every key but those of traffic, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    let sections: [&[Key]; 19] = [
        Experiment::KEYS,
        TopologyKeys::KEYS,
        &topology::KEYS,
        GraphKeys::KEYS,
        LinkKeys::KEYS,
        FabricKeys::KEYS,
        FailedKeys::KEYS,
        Ports::KEYS,
        EcnKeys::KEYS,
        RuleKeys::KEYS,
        &rule::KEYS,
        Host::KEYS,
        Transport::KEYS,
        &cc::KEYS,
        GroupKeys::KEYS,
        Clock::KEYS,
        OnRamp::KEYS,
        &law::KEYS,
        Measure::KEYS,
    ];
    sections.into_iter().flatten()
}

/// Keys of [[traffic]]; those that kinds have in common come several times.
pub(crate) fn of_traffic() -> impl Iterator<Item = &'static Key> {
    let of_kinds = traffic::kinds().flat_map(|kind| kind.keys);
    KindKeys::KEYS.iter().chain(of_kinds)
}

/// The only key of another section that a `[[hosts]]` entry can override.
pub(crate) const LINK_RATE: &str = LinkKeys::rate;

/// Whether a `[[hosts]]` entry can override it.
pub(crate) fn is_of_a_host(key: &Key) -> bool {
    match section(key.path) {
        "host" | "onramp" | "cc" => !key.everywhere,
        _ => key.path == LINK_RATE,
    }
}

/// The names of the kinds of traffic that have the key `path`.
pub(crate) fn owners(path: &str) -> Vec<&'static str> {
    let owners = traffic::kinds().filter(|kind| kind.key(path).is_some());
    owners.map(|kind| kind.name).collect()
}

/// The entries of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    /// Number of `[[hosts]]`.
    pub hosts: usize,
    /// The kinds of `[[traffic]]`; `None`: an entry has no such kind.
    pub traffic: Vec<Option<&'static TrafficKind>>,
}

impl Entries {
    /// The key at `path`, and its entry. For an entry without a kind, or of another one: that of any kind.
    pub(crate) fn find(&self, path: &str) -> Option<(&'static Key, Option<TableEntry>)> {
        let (name, entry) = without_entry(path);
        let key = match entry {
            Some(TableEntry::Traffic(number)) => self.key_of_traffic(number, &name),
            _ => all().find(|key| key.path == name),
        }?;
        let fits = match entry {
            Some(TableEntry::Traffic(_)) => true,
            Some(TableEntry::Hosts(_)) => section(key.path) == "hosts" || is_of_a_host(key),
            None => section(key.path) != "hosts",
        };
        fits.then_some((key, entry))
    }

    fn key_of_traffic(&self, number: usize, name: &str) -> Option<&'static Key> {
        let kind = self.traffic.get(number).copied().flatten();
        let own = kind.and_then(|kind| kind.key(name));
        own.or_else(|| of_traffic().find(|key| key.path == name))
    }
}

/// Whether some key lies below `path`.
pub(crate) fn is_table(path: &str) -> bool {
    let prefix = format!("{}.", without_entry(path).0);
    all()
        .chain(of_traffic())
        .any(|key| key.path.starts_with(&prefix))
}

/// The key that a person who wrote `path` may have meant.
pub(crate) fn nearest(path: &str) -> Option<String> {
    let (name, entry) = without_entry(path);
    let last = |p: &str| p.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |k: &&Key| {
        let whole = strsim::damerau_levenshtein(k.path, &name);
        let moved = if last(k.path) == last(&name) {
            1
        } else {
            usize::MAX
        };
        whole.min(moved)
    };
    let group = match entry {
        Some(TableEntry::Hosts(group)) => Some(format!("hosts.{group}.")),
        _ => None,
    };
    let fits = |k: &&Key| group.is_none() || section(k.path) == "hosts" || is_of_a_host(k);
    let best = all()
        .chain(of_traffic())
        .filter(fits)
        .min_by_key(distance)?;
    let meant = best.path.strip_prefix("hosts.").unwrap_or(best.path);
    (distance(&best) <= 2).then(|| match group {
        Some(group) => group + meant,
        None => best.path.to_owned(),
    })
}

/// "traffic.3.load" as "traffic.load", "hosts.3.range" as "hosts.range" and "hosts.3.host.cc" as "host.cc",
/// each with its entry; other paths as they are.
fn without_entry(path: &str) -> (String, Option<TableEntry>) {
    let numbered = |table: &str| {
        let rest = path.strip_prefix(table)?.strip_prefix('.')?;
        let (number, name) = rest.split_once('.').unwrap_or((rest, ""));
        // "007" must not be a second name of "7".
        let entry: usize = number
            .parse()
            .ok()
            .filter(|n: &usize| n.to_string() == number)?;
        Some((name, entry))
    };
    match (numbered("traffic"), numbered("hosts")) {
        (Some(("", entry)), _) => ("traffic".to_owned(), Some(TableEntry::Traffic(entry))),
        (Some((name, entry)), _) => (format!("traffic.{name}"), Some(TableEntry::Traffic(entry))),
        (_, Some(("", entry))) => ("hosts".to_owned(), Some(TableEntry::Hosts(entry))),
        (_, Some((name, entry))) if name.contains('.') || is_section(name) => {
            (name.to_owned(), Some(TableEntry::Hosts(entry)))
        }
        (_, Some((name, entry))) => (format!("hosts.{name}"), Some(TableEntry::Hosts(entry))),
        (None, None) => (path.to_owned(), None),
    }
}

fn is_section(name: &str) -> bool {
    all().any(|key| section(key.path) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Rack;
    use onramp_keys::Absent;

    #[test]
    fn every_default_is_within_its_bounds() {
        for key in all().chain(of_traffic()) {
            let is_text = matches!(key.absent, Absent::Is(_));
            assert_eq!(key.default().is_some(), is_text, "{key:?}");
        }
    }

    #[test]
    fn the_rack_has_every_default() {
        let in_rack = traffic::kinds()
            .filter(|kind| kind.in_rack)
            .flat_map(|kind| kind.keys);
        for key in all().chain(in_rack) {
            if let (Rack::Only(values), Some(default)) = (key.in_rack(), key.default()) {
                assert!(values.contains(&default.as_str()), "{key:?}");
            }
        }
    }

    #[test]
    fn no_key_is_listed_twice_or_lies_below_another() {
        let check = |keys: Vec<&Key>| {
            for (index, key) in keys.iter().enumerate() {
                assert!(!is_table(key.path), "{key:?}");
                assert!(
                    keys[..index].iter().all(|other| other.path != key.path),
                    "{key:?}"
                );
            }
        };
        check(all().collect());
        for kind in traffic::kinds() {
            check(KindKeys::KEYS.iter().chain(kind.keys).collect());
            assert!(
                kind.keys.iter().all(|key| section(key.path) == "traffic"),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn traffic_keys_need_a_number() {
        let entries = Entries {
            traffic: vec![traffic::kind("poisson"); 4],
            ..Entries::default()
        };
        let find = |path| entries.find(path).map(|(key, entry)| (key.path, entry));
        assert_eq!(
            find("traffic.3.load"),
            Some(("traffic.load", Some(TableEntry::Traffic(3))))
        );
        for path in [
            "traffic.load",
            "traffic.03.load",
            "traffic.-1.load",
            "traffic.3",
            "network.3.buffer",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn misspelt_and_misplaced_keys_are_recognised() {
        for (written, meant) in [
            ("onramp.treshold", Some("onramp.threshold")),
            ("network.rate", Some("network.link.rate")),
            ("traffic.0.fan_out", Some("traffic.fanout")),
            ("hosts.2.rage", Some("hosts.2.range")),
            ("hosts.2.cc", Some("hosts.2.host.cc")),
            ("hosts.2.onramp.treshold", Some("hosts.2.onramp.threshold")),
            ("hosts.2.rate", Some("hosts.2.network.link.rate")),
            ("colour", None),
        ] {
            assert_eq!(nearest(written).as_deref(), meant, "{written}");
        }
    }
}
