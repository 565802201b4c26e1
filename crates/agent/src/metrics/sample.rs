// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Statuses with a value for every metric, for tests of this crate and of Prometheus.
use std::collections::BTreeMap;

use onramp_clock::status::{
    Fleet, FleetClock, Follows, Membership, OneWayDelays, Status as ClockStatus, System,
};
use onramp_law::{abi::COUNTERS, HISTOGRAM_BUCKETS};
use onramp_status::{Clock, Device, Health, Peer, Reasons, RootQdisc, Status};

/// A status in which each counter has a value of its own.
pub fn datapath() -> Status {
    let counters: BTreeMap<String, u64> = (1..)
        .zip(COUNTERS)
        .map(|(n, (name, _))| ((*name).to_owned(), n * 1_000))
        .collect();
    let peer = |n: u64| Peer {
        addr: format!("10.0.{}.{}", n / 256, n % 256).parse().unwrap(),
        owd_last_ns: 20_000,
        owd_min_ns: Some(10_000),
        owd_ewma_ns: 15_000,
        oracks: 7,
        holds: 3,
        held_ns: n,
        threshold: Some(Reasons {
            threshold_ns: 30_000,
            min_ns: 10_000,
            by_probes: true,
            headroom_ns: 14_000,
            clocks_ns: 1_000,
            burst_ns: 5_000,
        }),
        looks_held_ns: Some(4),
    };
    Status {
        version: "1".to_owned(),
        pid: 1,
        devices: vec![Device {
            name: "eth\"0".to_owned(),
            root_qdisc: RootQdisc::Own,
            counters: counters.clone(),
            pauses: (0..HISTOGRAM_BUCKETS as u64).collect(),
        }],
        path: "edge".to_owned(),
        law: "final".to_owned(),
        threshold_ns: Some(50_000),
        max_pause_ns: 1,
        authenticated: true,
        clock: Clock {
            source: "huygens".to_owned(),
            sigma_ns: 300,
            lease_left_ns: 2_000_000_000,
            ..Clock::default()
        },
        health: Health::default(),
        flows: 5,
        max_flows: 4_096,
        peers: (1..=300).map(peer).collect(),
        counters,
        trace: Some(onramp_status::Trace {
            written: 9,
            lost: 1,
            ..Default::default()
        }),
    }
}

pub fn clock() -> ClockStatus {
    let (own, other) = ("10.0.0.1:5198", "10.0.0.2:5198");
    let way = |from: &str, to: &str| OneWayDelays {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        min_ns: 10_000,
        now_ns: 12_000,
    };
    ClockStatus {
        version: String::new(),
        pid: 1,
        membership: Membership {
            own: own.parse().unwrap(),
            coordinator: Some(own.parse().unwrap()),
            term: 7,
            members: 2,
            fleet: Some(Fleet::default()),
            other_versions: vec![],
            contradictory: vec![],
        },
        source: String::new(),
        authenticated: true,
        state: "synchronised".into(),
        doubt_ns: 40.0,
        starved: Some(0.5),
        clock: Some(FleetClock {
            reference_mono_ns: 0,
            offset_ns: 1_500,
            drift: 0.0,
            sigma_ns: 300,
            heard_mono_ns: 0,
            valid_until_mono_ns: 0,
        }),
        system: System {
            follows: Follows::Leader,
            ahead_ns: Some(1_200),
            rate: 1e-5,
        },
        edges: vec![],
        ways: vec![way(own, other), way("10.0.0.3:5198", other)],
        cost: Default::default(),
        counters: vec![("windows".into(), 7)],
    }
}
