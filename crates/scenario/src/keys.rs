// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The keys of scenarios: name, form, bounds, default, meaning, and the worlds that have them. Each key is
//! declared once: here, or as a field of a [`Section`]. The parser, `explain`, docs/scenario.md and the
//! rack's check all read this table.

mod cc;
mod network;
mod rule;
mod topology;
mod traffic;

use crate::groups;
use crate::key::*;
pub(crate) use network::ALPHAS;

use crate::section::Section;
use crate::value::Form;
use crate::{Clock, Host, OnRamp, Transport};
use onramp_units::Span;

/// Every key, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    let sections: [&[Key]; 11] = [
        EXPERIMENT,
        &topology::KEYS,
        network::KEYS,
        &rule::KEYS,
        Host::KEYS,
        Transport::KEYS,
        &cc::KEYS,
        groups::KEYS,
        Clock::KEYS,
        traffic::KEYS,
        OnRamp::KEYS,
    ];
    sections.into_iter().flatten()
}

const EXPERIMENT: &[Key] = &[
    key("title", Form::Title, Required, "What the experiment shows.").fixed(),
    key(
        "seed",
        Form::Count(0, ANY_NUMBER),
        Is("1"),
        "Seed of all random numbers. All cases of a seed have the same traffic.",
    ),
    key(
        "duration",
        Form::Span(Span::from_us(1), HOUR),
        Required,
        "Time within which traffic starts.",
    ),
    key(
        "warmup",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Traffic that starts before this time is not measured. Must be below `duration`.",
    ),
    key(
        "time_dilation",
        Form::Count(1, 1000),
        Is("1"),
        "The rack runs slower by this factor and scales its results back. The simulator ignores it.",
    )
    .rack_has(Rack::Ignores("rack")),
];

/// An entry of an array of tables, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Hosts(usize),
    Traffic(usize),
}

impl Entry {
    /// The number of an entry of traffic.
    pub(crate) fn of_traffic(self) -> Option<usize> {
        match self {
            Entry::Traffic(number) => Some(number),
            Entry::Hosts(_) => None,
        }
    }
}

/// The key at `path`, and its entry of `[[traffic]]` or `[[hosts]]`.
pub(crate) fn find(path: &str) -> Option<(&'static Key, Option<Entry>)> {
    let (name, entry) = without_entry(path);
    let key = all().find(|k| k.path == name)?;
    let fits = match entry {
        Some(Entry::Traffic(_)) => key.path.starts_with("traffic."),
        Some(Entry::Hosts(_)) => key.path.starts_with("hosts.") || key.is_of_a_host(),
        None => !["traffic", "hosts"].contains(&key.section()),
    };
    fits.then_some((key, entry))
}

/// Whether some key lies below `path`.
pub(crate) fn is_table(path: &str) -> bool {
    let prefix = format!("{}.", without_entry(path).0);
    all().any(|k| k.path.starts_with(&prefix))
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
        Some(Entry::Hosts(group)) => Some(format!("hosts.{group}.")),
        _ => None,
    };
    let fits = |k: &&Key| group.is_none() || k.section() == "hosts" || k.is_of_a_host();
    let best = all().filter(fits).min_by_key(distance)?;
    let meant = best.path.strip_prefix("hosts.").unwrap_or(best.path);
    (distance(&best) <= 2).then(|| match group {
        Some(group) => group + meant,
        None => best.path.to_owned(),
    })
}

/// "traffic.3.load" as "traffic.load", "hosts.3.range" as "hosts.range" and "hosts.3.host.cc" as "host.cc",
/// each with its entry; other paths as they are.
fn without_entry(path: &str) -> (String, Option<Entry>) {
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
        (Some(("", entry)), _) => ("traffic".to_owned(), Some(Entry::Traffic(entry))),
        (Some((name, entry)), _) => (format!("traffic.{name}"), Some(Entry::Traffic(entry))),
        (_, Some(("", entry))) => ("hosts".to_owned(), Some(Entry::Hosts(entry))),
        (_, Some((name, entry))) if name.contains('.') || is_section(name) => {
            (name.to_owned(), Some(Entry::Hosts(entry)))
        }
        (_, Some((name, entry))) => (format!("hosts.{name}"), Some(Entry::Hosts(entry))),
        (None, None) => (path.to_owned(), None),
    }
}

fn is_section(name: &str) -> bool {
    all().any(|key| key.section() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_within_its_bounds() {
        for key in all() {
            assert_eq!(
                key.default_value().is_some(),
                matches!(key.default, Is(_)),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn the_rack_has_every_default() {
        for key in all() {
            if let (Rack::Only(values), Some(default)) = (key.rack(), key.default_value()) {
                assert!(
                    values.contains(&default.to_string().as_str()),
                    "{}",
                    key.path
                );
            }
        }
    }

    #[test]
    fn no_key_is_listed_twice_or_lies_below_another() {
        for (index, key) in all().enumerate() {
            assert!(!is_table(key.path), "{}", key.path);
            assert!(
                all().take(index).all(|k| k.path != key.path),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn traffic_keys_need_a_number() {
        assert_eq!(
            find("traffic.3.load").map(|(k, n)| (k.path, n)),
            Some(("traffic.load", Some(Entry::Traffic(3))))
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
