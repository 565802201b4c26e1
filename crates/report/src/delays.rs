// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of the one-way delays of `onramp clock matrix --json`.

use onramp_results::figure::{Axis, Plot, PlotKind, Series};

use crate::number::three;
use crate::section::{Section, Table};

/// A one-way delay between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneWayDelay {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Shortest recent delay, ns.
    pub min_ns: i64,
    /// Current delay, ns.
    pub now_ns: i64,
}

/// The values of a path that a heat map or a table shows, with their names.
type Shown = (&'static str, fn(&OneWayDelay) -> i64);

const SHOWN: [Shown; 3] = [
    ("shortest", |way| way.min_ns),
    ("present", |way| way.now_ns),
    ("current minus shortest", |way| way.now_ns - way.min_ns),
];

impl Section {
    /// A section of the paths `ways` between the hosts of a fleet. `name` is short; `facts` are shown above.
    pub fn of_delays(
        name: &str,
        facts: Vec<(&'static str, String)>,
        ways: &[OneWayDelay],
    ) -> Section {
        let mut hosts: Vec<String> = Vec::new();
        for host in ways.iter().flat_map(|way| [&way.from, &way.to]) {
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        hosts.sort();
        Section {
            name: name.to_owned(),
            title: format!("One-way delays between {} hosts", hosts.len()),
            asked:
                "How long a probe takes from each host (row) to each other (column) by fleet time: \
                    the shortest of the last half minute, and the median of the last window. Pairs \
                    that do not probe each other are empty."
                    .into(),
            facts,
            tables: vec![table(ways)],
            plots: SHOWN
                .iter()
                .map(|shown| heat(shown, ways, &hosts))
                .collect(),
            ..Section::default()
        }
    }
}

fn heat((name, value): &Shown, ways: &[OneWayDelay], hosts: &[String]) -> Plot {
    let position = |host: &String| hosts.binary_search(host).unwrap_or(0) as f64;
    let axis = |label: &str| Axis {
        label: label.into(),
        log: false,
        categories: hosts.to_vec(),
    };
    Plot {
        title: format!("One-way delay, {name}"),
        kind: PlotKind::Heat,
        x: axis("to"),
        y: axis("from"),
        series: vec![Series {
            name: "OWD (us)".into(),
            x: ways.iter().map(|way| position(&way.to)).collect(),
            y: ways.iter().map(|way| Some(position(&way.from))).collect(),
            z: ways
                .iter()
                .map(|way| Some(value(way) as f64 / 1e3))
                .collect(),
            ..Series::default()
        }],
    }
}

fn table(ways: &[OneWayDelay]) -> Table {
    let own = ["from", "to"].map(|name| (String::new(), name.to_owned()));
    let shown = SHOWN.map(|(name, _)| ("one-way delay (us)".to_owned(), name.to_owned()));
    let row = |way: &OneWayDelay| {
        let values = SHOWN.map(|(_, value)| three(value(way) as f64 / 1e3));
        [way.from.clone(), way.to.clone()]
            .into_iter()
            .chain(values)
            .collect()
    };
    Table {
        title: "All pairs".into(),
        folded: true,
        columns: own.into_iter().chain(shown).collect(),
        rows: ways.iter().map(row).collect(),
    }
}
