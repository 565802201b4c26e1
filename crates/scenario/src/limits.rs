// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Bounds of the virtual rack. A run beyond them is valid: the simulator can run it.

use crate::clock::ClockSync;
use crate::groups::HostSettings;
use crate::key::Rack;
use crate::keys::TableEntry;
use crate::on_ramp::{Law, OnRamp};
use crate::setting::Setting;
use crate::traffic::{self, KindKeys, Traffic};
use crate::types::Run;
use onramp_cc::law::ControlLaw;
use onramp_units::{Bytes, Rate, Span};
use std::fmt;

/// A bound of the rack that a run exceeds. Values are in the rack's slowed-down time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RackLimit {
    /// Network namespaces.
    Hosts {
        /// In the run.
        hosts: u32,
    },
    /// Emulated packets, each of which costs guest instructions (docs/fidelity.md).
    Rate {
        /// The rate of a link, slowed down.
        rate: Rate,
    },
    /// The time limit of the virtual machine.
    Duration {
        /// Slowed down.
        duration: Span,
    },
    /// The switch ports count packets, not bytes.
    Buffer {
        /// The buffer of a port.
        buffer: Bytes,
    },
    /// Something that only the simulator has.
    Simulated {
        /// Dotted.
        key: String,
        /// With its unit.
        value: String,
        /// A remedy other than the simulator.
        fix: String,
    },
    /// Intervals that the daemons' synchronisation does not have.
    Probing {
        /// Between corrections, slowed down.
        window: Span,
        /// Between pairs of probes, slowed down.
        interval: Span,
    },
    /// Parameters of a congestion control that are not the same in all groups.
    Tunings {
        /// Its name.
        cc: &'static str,
    },
    /// Sockets and the edge's flow table.
    Connections {
        /// Kept open by incasts and long flows.
        connections: u64,
    },
}

/// Most hosts in a rack.
pub const RACK_MAX_HOSTS: u32 = 64;
/// Fastest link of a rack in a virtual machine.
pub const RACK_MAX_MBIT_PER_S: u64 = 200;
/// Longest run of a rack.
pub const RACK_MAX_DURATION: Span = Span::from_s(3600);
/// Time between the daemons' corrections.
pub const RACK_CLOCK_WINDOW: Span = Span::from_s(2);
/// Shortest and longest time between their pairs of probes.
pub const RACK_PROBE_INTERVAL: (Span, Span) = (Span::from_us(200), Span::from_ms(200));
/// Smallest switch buffer of a rack: four full frames.
pub const RACK_MIN_BUFFER: Bytes = Bytes::new(6_000);
/// Size of the request that the rack's aggregators send to each server, at any setting of the scenario.
pub const RACK_ASK_SIZE: Bytes = Bytes::new(64);
/// Most connections that a run keeps open.
pub const RACK_MAX_CONNECTIONS: u64 = 16_384;

/// The bounds that `run` exceeds. Empty: the rack can run it.
///
/// The rate is a limit of the virtual machine alone; a rack on a native kernel may ignore it.
pub fn rack_limits(run: &Run) -> Vec<RackLimit> {
    let mut limits = simulated(run);
    let hosts = run.network.topology.hosts();
    if hosts > RACK_MAX_HOSTS {
        limits.push(RackLimit::Hosts { hosts });
    }
    let fastest = (0..hosts).map(|host| run.network.link_of(host).rate).max();
    let rate = fastest
        .unwrap_or(run.network.link.rate)
        .slowed(run.time_dilation);
    if rate.bits_per_s() > RACK_MAX_MBIT_PER_S * 1_000_000 {
        limits.push(RackLimit::Rate { rate });
    }
    // At most 1000 by the table of keys.
    let duration = run.duration * run.time_dilation.get() as i64;
    if duration > RACK_MAX_DURATION {
        limits.push(RackLimit::Duration { duration });
    }
    let buffer = run.network.ports.buffer;
    if buffer < RACK_MIN_BUFFER {
        limits.push(RackLimit::Buffer { buffer });
    }
    limits.extend(probing(run));
    limits.extend(tunings(run));
    let kept = |traffic: &Traffic| traffic.generator().connections(run);
    let connections = run.traffic.iter().map(kept).sum();
    if connections > RACK_MAX_CONNECTIONS {
        limits.push(RackLimit::Connections { connections });
    }
    limits
}

/// The rack runs the real daemons, whose intervals are constants.
fn probing(run: &Run) -> Option<RackLimit> {
    let slow = |span: Span| span * run.time_dilation.get() as i64;
    let (window, interval) = (slow(run.clock.window), slow(run.clock.probe_interval));
    let (least, most) = RACK_PROBE_INTERVAL;
    let fits = window == RACK_CLOCK_WINDOW && interval >= least && interval <= most;
    (run.clock.sync == ClockSync::Huygens && !fits)
        .then_some(RackLimit::Probing { window, interval })
}

/// The kernel has a congestion control of ours once, with its parameters.
fn tunings(run: &Run) -> Option<RackLimit> {
    let all: Vec<_> = run.each_settings().collect();
    let differ = |a: &HostSettings<'_>, b: &HostSettings<'_>| {
        let cc = a.host.cc;
        cc.is_loaded_by_us() && cc == b.host.cc && a.tuning != b.tuning
    };
    let mut pairs = all.iter().enumerate();
    let (a, _) = pairs.find_map(|(n, a)| all[..n].iter().find(|b| differ(a, b)).map(|b| (a, b)))?;
    let cc = a.host.cc.name();
    Some(RackLimit::Tunings { cc })
}

/// Keys whose values only the simulator has, by the table of keys.
fn simulated(run: &Run) -> Vec<RackLimit> {
    let limit = |setting: &Setting| {
        Some(RackLimit::Simulated {
            key: setting.path(),
            value: setting.text.clone(),
            fix: fix(run, setting)?,
        })
    };
    run.settings().filter_map(limit).collect()
}

/// What to change about a setting that the rack does not have.
fn fix(run: &Run, setting: &Setting) -> Option<String> {
    let text = &*setting.text;
    if let Some(TableEntry::Traffic(number)) = setting.entry {
        // One word about the kind is enough.
        let has_kind = run.traffic[number].kind().in_rack;
        let is_kind = setting.key.path == KindKeys::kind;
        if is_kind || !has_kind {
            let fix = || format!("set it to {}", traffic::in_rack().join(" or "));
            return (is_kind && !has_kind).then(fix);
        }
    }
    if setting.key.path == OnRamp::law && !text.parse().is_ok_and(ControlLaw::in_kernel) {
        return Some(format!("set it to {}", Law::NAMES.join(" or ")));
    }
    match setting.key.in_rack() {
        Rack::Only(values) if !values.contains(&text) => {
            Some(format!("set it to {}", values.join(" or ")))
        }
        Rack::If(words, refuses) if refuses(run, text) => {
            Some(format!("set it to {}", words.replace('`', "")))
        }
        Rack::Never => Some("remove the key".to_owned()),
        Rack::Has | Rack::Ignores(_) | Rack::Only(_) | Rack::If(..) => None,
    }
}

impl fmt::Display for RackLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RackLimit::Hosts { hosts } => {
                write!(
                    f,
                    "network.topology.hosts is {hosts}, above max {RACK_MAX_HOSTS} of the rack"
                )
            }
            RackLimit::Rate { rate } => write!(
                f,
                "network.link.rate / time_dilation is {rate}, above max {RACK_MAX_MBIT_PER_S} Mbit/s of \
                 the rack: raise time_dilation"
            ),
            RackLimit::Duration { duration } => write!(
                f,
                "duration * time_dilation is {duration}, above max {RACK_MAX_DURATION} of the rack: \
                 lower one of them"
            ),
            RackLimit::Buffer { buffer } => {
                write!(
                    f,
                    "network.buffer is {buffer}, below min {RACK_MIN_BUFFER} of the rack"
                )
            }
            RackLimit::Simulated { key, value, fix } => write!(
                f,
                "{key} is {value}, which only the simulator supports: use `onramp sim run`, or {fix}"
            ),
            RackLimit::Probing { window, interval } => write!(
                f,
                "clock.window * time_dilation is {window} and clock.probe_interval * time_dilation is \
                 {interval}, expected {RACK_CLOCK_WINDOW} and {} to {} in the rack",
                RACK_PROBE_INTERVAL.0, RACK_PROBE_INTERVAL.1
            ),
            RackLimit::Tunings { cc } => write!(
                f,
                "[[hosts]] has {cc} with several values of [cc.{cc}], which only the simulator supports: use \
                 `onramp sim run`, or set them in [cc.{cc}] alone"
            ),
            RackLimit::Connections { connections } => write!(
                f,
                "traffic keeps {connections} connections open, above max {RACK_MAX_CONNECTIONS} of the \
                 rack: lower fanout, flows or the number of receivers"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const TEXT: &str = r#"title = "test"
duration = "40 ms"
time_dilation = 50
[network]
topology = { kind = "star", hosts = 64 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "incast"
fanout = 8
size = "2 kB"
"#;

    fn limits(set: &[(&str, &str)]) -> Vec<String> {
        let scenario = Scenario::parse_with(TEXT, "t", set).unwrap_or_else(|e| panic!("{e}"));
        rack_limits(&scenario.runs()[0])
            .iter()
            .map(RackLimit::to_string)
            .collect()
    }

    #[test]
    fn sixty_four_hosts_at_200_mbit_per_s_fit() {
        assert!(limits(&[]).is_empty());
    }

    #[test]
    fn each_bound_is_named_with_value_and_limit() {
        let set = [
            ("network.topology.hosts", "65"),
            ("time_dilation", "10"),
            ("duration", "400 s"),
            ("network.buffer", "3 kB"),
            ("traffic.0.fanout", "10000"),
            ("traffic.0.interval", "1 s"),
        ];
        let expected = [
            "network.topology.hosts is 65, above max 64 of the rack",
            "network.link.rate / time_dilation is 1 Gbit/s, above max 200 Mbit/s of the rack: raise time_dilation",
            "duration * time_dilation is 4000 s, above max 3600 s of the rack: lower one of them",
            "network.buffer is 3 kB, below min 6 kB of the rack",
        ];
        assert_eq!(limits(&set), expected);
    }

    #[test]
    fn what_only_the_simulator_has_is_refused() {
        let set = [("host.kind", "nic"), ("host.cc", "hpcc")];
        let expected = [
            "network.sharing is lossless, which only the simulator supports: use `onramp sim run`, or set it to per_port",
            "host.kind is nic, which only the simulator supports: use `onramp sim run`, or set it to kernel",
        ];
        assert_eq!(limits(&set), expected);
    }

    #[test]
    fn aggregators_ask_as_the_racks_do() {
        assert!(limits(&[("traffic.0.ask_size", "64 B")]).is_empty());
        assert_eq!(
            limits(&[("traffic.0.ask_size", "1 kB")]),
            ["traffic.0.ask_size is 1 kB, which only the simulator supports: use `onramp sim run`, or set it to 0 B or 64 B"]
        );
    }

    #[test]
    fn windows_of_the_daemons_are_two_seconds() {
        let huygens = ("clock.sync", "huygens");
        let probes = ("clock.probe_interval", "1 ms");
        assert!(limits(&[huygens, probes, ("clock.window", "40 ms")]).is_empty());
        assert_eq!(
            limits(&[huygens, probes, ("clock.window", "20 ms")]),
            [
                "clock.window * time_dilation is 1 s and clock.probe_interval * time_dilation is 50 ms, \
              expected 2 s and 200 us to 200 ms in the rack"
            ]
        );
        assert!(limits(&[("clock.window", "20 ms")]).is_empty());
    }

    #[test]
    fn connections_are_counted_for_every_server() {
        let two = TEXT.replace("fanout = 8", "fanout = 10000");
        let two = format!("{two}[[traffic]]\nkind = \"long\"\nflows = 10000\n");
        let run = &Scenario::parse(&two, "t")
            .unwrap_or_else(|e| panic!("{e}"))
            .runs()[0]
            .clone();
        // 10,000 answers of 63 servers: 159 connections with each.
        assert_eq!(
            rack_limits(run),
            [RackLimit::Connections {
                connections: 159 * 63 + 10_000
            }]
        );
        // 320 answers: 6 connections with each server, at each of 64 aggregators.
        let everywhere = limits(&[("traffic.0.to", "all"), ("traffic.0.fanout", "320")]);
        assert_eq!(
            everywhere,
            ["traffic keeps 24192 connections open, above max 16384 of the rack: lower fanout, flows or the number of receivers"]
        );
    }
}
