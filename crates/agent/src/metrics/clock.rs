// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The table of the metrics of clock synchronisation.
use std::net::SocketAddr;

use onramp_clock::{
    stamps::now_mono_ns,
    status::{Fleet, FleetClock, Follows, OneWayDelays, Status},
};

use super::{one, Kind, Kind::Gauge, Metric, Of, Sample};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "onramp_clock_synchronised",
        kind: Gauge,
        labels: "",
        help: "1 if this host has a valid fleet time, else 0",
        of: Of::Clock(|s| one(f64::from(u8::from(s.clock.is_some())))),
    },
    Metric {
        name: "onramp_clock_leader",
        kind: Gauge,
        labels: "",
        help: "1 if this host leads the fleet, else 0",
        of: Of::Clock(|s| one(f64::from(u8::from(s.membership.leads())))),
    },
    Metric {
        name: "onramp_clock_term",
        kind: Gauge,
        labels: "",
        help: "term of the leader; it grows with each new leader; 0 without etcd",
        of: Of::Clock(|s| one(s.membership.term as f64)),
    },
    Metric {
        name: "onramp_clock_members",
        kind: Gauge,
        labels: "",
        help: "members of the fleet that this host knows, itself included",
        of: Of::Clock(|s| one(s.membership.members as f64)),
    },
    Metric {
        name: "onramp_clock_etcd_connected",
        kind: Gauge,
        labels: "",
        help: "1 if etcd answers and has this host's key, else 0; absent without etcd",
        of: Of::Clock(|s| fleet(s, |f| f64::from(u8::from(f.connected)))),
    },
    Metric {
        name: "onramp_clock_etcd_failures_total",
        kind: Kind::Counter,
        labels: "",
        help: "how often the connection to etcd failed or was lost",
        of: Of::Clock(|s| fleet(s, |f| f.failures as f64)),
    },
    Metric {
        name: "onramp_clock_resignations_total",
        kind: Kind::Counter,
        labels: "",
        help: "how often this host gave up to lead, because it lacked a processor for too long",
        of: Of::Clock(|s| fleet(s, |f| f.resignations as f64)),
    },
    Metric {
        name: "onramp_clock_etcd_refused",
        kind: Gauge,
        labels: "",
        help: "keys of the fleet in etcd that are not valid nodes",
        of: Of::Clock(|s| fleet(s, |f| f.refused.len() as f64)),
    },
    Metric {
        name: "onramp_clock_offset_seconds",
        kind: Gauge,
        labels: "",
        help: "fleet time minus CLOCK_MONOTONIC",
        of: Of::Clock(|s| s.clock.map_or(vec![], |c| one(c.offset_ns as f64 / 1e9))),
    },
    Metric {
        name: "onramp_clock_drift_ratio",
        kind: Gauge,
        labels: "",
        help: "rate of fleet time relative to CLOCK_MONOTONIC, minus 1",
        of: Of::Clock(|s| s.clock.map_or(vec![], |c| one(c.drift))),
    },
    Metric {
        name: "onramp_clock_sigma_seconds",
        kind: Gauge,
        labels: "",
        help: "standard deviation of fleet time on this host",
        of: Of::Clock(|s| s.clock.map_or(vec![], |c| one(c.sigma_ns as f64 / 1e9))),
    },
    Metric {
        name: "onramp_clock_doubt_seconds",
        kind: Gauge,
        labels: "",
        help: "by how much probes show fleet time to be wrong at least; sigma includes it",
        of: Of::Clock(|s| one(s.doubt_ns / 1e9)),
    },
    Metric {
        name: "onramp_clock_starved_ratio",
        kind: Gauge,
        labels: "",
        help: "part of the last window for which this host lacked a processor, if that was much, else 0",
        of: Of::Clock(|s| one(s.starved.unwrap_or(0.0))),
    },
    Metric {
        name: "onramp_clock_system_ahead_seconds",
        kind: Gauge,
        labels: "",
        help: "system clock (CLOCK_REALTIME) minus the leader's",
        of: Of::Clock(|s| match s.system.ahead_ns {
            Some(ns) => one(ns as f64 / 1e9),
            None => vec![],
        }),
    },
    Metric {
        name: "onramp_clock_system_follows",
        kind: Gauge,
        labels: "",
        help: "1 if --discipline steers the system clock, 0 if it has given up; absent without --discipline",
        of: Of::Clock(|s| match s.system.follows {
            Follows::Nothing => vec![],
            Follows::Leader => one(1.0),
            Follows::GivenUp(_) => one(0.0),
        }),
    },
    Metric {
        name: "onramp_clock_system_rate_ratio",
        kind: Gauge,
        labels: "",
        help: "change of the system clock's rate by --discipline",
        of: Of::Clock(|s| one(s.system.rate)),
    },
    Metric {
        name: "onramp_clock_lease_seconds",
        kind: Gauge,
        labels: "",
        help: "time until the lease of fleet time ends",
        of: Of::Clock(|s| {
            let left_ns =
                |c: FleetClock| c.valid_until_mono_ns - now_mono_ns();
            s.clock.map_or(vec![], |c| one(left_ns(c) as f64 / 1e9))
        }),
    },
    Metric {
        name: "onramp_clock_delay_min_seconds",
        kind: Gauge,
        labels: "from, to",
        help: "minimum one-way delay between this host and a neighbour over the last half minute",
        of: Of::Clock(|s| ways(s, |way| way.min_ns)),
    },
    Metric {
        name: "onramp_clock_delay_seconds",
        kind: Gauge,
        labels: "from, to",
        help: "median one-way delay between this host and a neighbour in the last window",
        of: Of::Clock(|s| ways(s, |way| way.now_ns)),
    },
    Metric {
        name: "onramp_clock_cpu_seconds_total",
        kind: Kind::Counter,
        labels: "",
        help: "processor time of the synchronisation",
        of: Of::Clock(|s| one(s.cost.cpu_ns as f64 / 1e9)),
    },
    Metric {
        name: "onramp_clock_wire_bytes_total",
        kind: Kind::Counter,
        labels: "",
        help: "bytes sent, as on an Ethernet wire with preamble and gap",
        of: Of::Clock(|s| one(s.cost.wire_bytes as f64)),
    },
    Metric {
        name: "onramp_clock_events_total",
        kind: Kind::Counter,
        labels: "event",
        help: "count of each event since the program began",
        of: Of::Clock(|s| {
            let event = |(name, value): &(String, u64)| {
                Sample::new(vec![("event", name.clone())], *value as f64)
            };
            s.counters.iter().map(event).collect()
        }),
    },
];

fn fleet(s: &Status, of: fn(&Fleet) -> f64) -> Vec<Sample> {
    s.membership.fleet.as_ref().map_or(vec![], |f| one(of(f)))
}

/// Samples of the edges of this host. The leader knows all edges, but the other hosts serve theirs themselves.
fn ways(s: &Status, of: fn(&OneWayDelays) -> i64) -> Vec<Sample> {
    let label = |name: &'static str, host: SocketAddr| (name, host.to_string());
    let own = s.membership.own;
    s.ways
        .iter()
        .filter(|way| way.from == own || way.to == own)
        .map(|way| {
            let labels = vec![label("from", way.from), label("to", way.to)];
            Sample::new(labels, of(way) as f64 / 1e9)
        })
        .collect()
}
