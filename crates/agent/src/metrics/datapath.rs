// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The table of the metrics of the data path.
use onramp_law::histogram_bound_ns;
use onramp_status::{Device, Peer, RootQdisc, Status};

use super::{one, Kind::Counter, Kind::Gauge, Kind::Histogram, Metric, Of, Sample};

/// Most peers with metrics of their own, so that a large fleet does not flood Prometheus.
pub const MOST_PEERS: usize = 256;
/// Counters of times are in ns.
const NS: f64 = 1e-9;

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "onramp_info",
        kind: Gauge,
        labels: "version, path, law, clock",
        help: "always 1; the labels say which data path, law and clock the daemon uses",
        of: Of::Datapath(|s| {
            let label = |name, value: &str| (name, value.to_owned());
            let labels = vec![
                label("version", &s.version),
                label("path", &s.path),
                label("law", &s.law),
                label("clock", &s.clock.source),
            ];
            vec![Sample::new(labels, 1.0)]
        }),
    },
    Metric {
        name: "onramp_device_holds",
        kind: Gauge,
        labels: "device",
        help: "1 if flows that leave by this device can be held, 0 if the daemon observes, has lost the root qdisc or has no valid clock",
        of: Of::Datapath(|s| {
            let holds = |device: &Device| {
                let has_qdisc = device.root_qdisc == RootQdisc::Own;
                f64::from(u8::from(has_qdisc && s.clock.lease_left_ns > 0))
            };
            let sample = |device: &Device| Sample::new(of_device(device), holds(device));
            s.devices.iter().map(sample).collect()
        }),
    },
    Metric {
        name: "onramp_devices_missing",
        kind: Gauge,
        labels: "",
        help: "devices of the configuration that are not there; the daemon waits for them",
        of: Of::Datapath(|s| one(s.health.missing_devices.len() as f64)),
    },
    Metric {
        name: "onramp_fleet_time_lease_seconds",
        kind: Gauge,
        labels: "",
        help: "time until the clock lease of the data path ends; negative after its end, when nothing is held",
        of: Of::Datapath(|s| one(s.clock.lease_left_ns as f64 * NS)),
    },
    Metric {
        name: "onramp_fleet_time_error_seconds",
        kind: Gauge,
        labels: "",
        help: "standard deviation of the fleet time that the data path uses; 0 with the local clock",
        of: Of::Datapath(|s| one(s.clock.sigma_ns as f64 * NS)),
    },
    Metric {
        name: "onramp_fleet_time_doubted",
        kind: Gauge,
        labels: "",
        help: "1 while the clock that another program keeps right (clock.source system or phc) is doubted, so that nothing is held; else 0",
        of: Of::Datapath(|s| one(f64::from(u8::from(s.clock.doubt.is_some())))),
    },
    Metric {
        name: "onramp_fleet_time_doubts_total",
        kind: Counter,
        labels: "",
        help: "times that this clock was doubted",
        of: Of::Datapath(|s| one(s.clock.doubts as f64)),
    },
    Metric {
        name: "onramp_thresholds_below_error",
        kind: Gauge,
        labels: "",
        help: "thresholds (law.threshold, and those of classes) that the error of the clocks alone can reach, so that nothing is held for them; with law.threshold auto, 1 while sigma is above 100 us",
        of: Of::Datapath(|s| one(s.health.thresholds_below_error.len() as f64)),
    },
    Metric {
        name: "onramp_thresholds_below_error_total",
        kind: Counter,
        labels: "",
        help: "times that a threshold became one of these",
        of: Of::Datapath(|s| one(s.health.times_below_error as f64)),
    },
    Metric {
        name: "onramp_threshold_seconds",
        kind: Gauge,
        labels: "",
        help: "threshold T of all peers; absent if each peer has its own",
        of: Of::Datapath(|s| s.threshold_ns.map_or(vec![], |ns| one(ns as f64 * NS))),
    },
    Metric {
        name: "onramp_pause_seconds",
        kind: Histogram,
        labels: "device, le",
        help: "lengths of the pauses of flows",
        of: Of::Datapath(|s| s.devices.iter().flat_map(pauses).collect()),
    },
    Metric {
        name: "onramp_pause_max_seconds",
        kind: Gauge,
        labels: "device",
        help: "longest pause of a flow since the daemon started",
        of: Of::Counter("held_max_ns", NS),
    },
    Metric {
        name: "onramp_pauses_ended_early_total",
        kind: Counter,
        labels: "device",
        help: "pauses that a new OR-ACK ended early",
        of: Of::Counter("kicks", 1.0),
    },
    Metric {
        name: "onramp_kicks_altered_total",
        kind: Counter,
        labels: "device",
        help: "OR-ACKs that end a pause and were changed by another program on their way to the qdisc, which knew them all the same",
        of: Of::Counter("kicks_altered", 1.0),
    },
    Metric {
        name: "onramp_fail_open_total",
        kind: Counter,
        labels: "device, reason",
        help: "events in which the data path did not control a flow, by reason",
        of: Of::Counters(
            "reason",
            &[
                ("flow_table_full", "flow_table_full"),
                ("lease_expired", "holds_refused_lease"),
                ("departure_ignored", "departures_ignored"),
                ("guard_raised", "guard_raises"),
                ("let_go", "let_go"),
                ("receiver_silent", "oracks_without_hint"),
            ],
        ),
    },
    Metric {
        name: "onramp_dropped_packets_total",
        kind: Counter,
        labels: "device, reason",
        help: "packets that the qdisc dropped",
        of: Of::Counters(
            "reason",
            &[
                ("limit", "limit_drops"),
                ("flow_limit", "flow_limit_drops"),
                ("codel", "codel_drops"),
            ],
        ),
    },
    Metric {
        name: "onramp_flows",
        kind: Gauge,
        labels: "",
        help: "flows in the flow table",
        of: Of::Datapath(|s| one(f64::from(s.flows))),
    },
    Metric {
        name: "onramp_flows_limit",
        kind: Gauge,
        labels: "",
        help: "size of the flow table",
        of: Of::Datapath(|s| one(f64::from(s.max_flows))),
    },
    Metric {
        name: "onramp_flow_events_total",
        kind: Counter,
        labels: "device, event",
        help: "flows that entered and left the flow table",
        of: Of::Counters(
            "event",
            &[
                ("created", "flows_created"),
                ("aged", "flows_aged"),
                ("ended", "flows_ended"),
            ],
        ),
    },
    Metric {
        name: "onramp_oracks_made_total",
        kind: Counter,
        labels: "device, outcome",
        help: "OR-ACKs that this host owed as receiver of data, by outcome",
        of: Of::Counters(
            "outcome",
            &[
                ("sent", "oracks_sent"),
                ("unsent", "oracks_unsent"),
                ("intercepted", "oracks_intercepted"),
                ("muted", "oracks_muted"),
                ("strayed", "oracks_strayed"),
                ("unwanted", "oracks_unwanted"),
            ],
        ),
    },
    Metric {
        name: "onramp_oracks_refused_total",
        kind: Counter,
        labels: "device",
        help: "sent OR-ACKs that a host without agent answered with port unreachable",
        of: Of::Counter("oracks_refused", 1.0),
    },
    Metric {
        name: "onramp_oracks_authentic_total",
        kind: Counter,
        labels: "device",
        help: "authentic OR-ACKs received",
        of: Of::Counter("oracks_received", 1.0),
    },
    Metric {
        name: "onramp_oracks_received_total",
        kind: Counter,
        labels: "device, outcome",
        help: "packets received at the OR-ACK port as sender of data, by outcome",
        of: Of::Counters(
            "outcome",
            &[
                ("used", "oracks_used"),
                ("malformed", "oracks_malformed"),
                ("bad_tag", "oracks_bad_tag"),
                ("stale", "oracks_stale"),
                ("unknown_flow", "oracks_unknown_flow"),
                ("unmatched", "oracks_unmatched"),
                ("reordered", "oracks_reordered"),
                ("absurd", "oracks_absurd"),
                ("no_lease", "oracks_no_lease"),
            ],
        ),
    },
    Metric {
        name: "onramp_delays_below_zero_total",
        kind: Counter,
        labels: "device",
        help: "used OR-ACKs with a one-way delay below zero by more than the error of the clocks",
        of: Of::Counter("oracks_below_zero", 1.0),
    },
    Metric {
        name: "onramp_nic_waits_total",
        kind: Counter,
        labels: "device",
        help: "segments that found bytes in the NIC's own queue",
        of: Of::Counter("nic_waits", 1.0),
    },
    Metric {
        name: "onramp_nic_wait_seconds_total",
        kind: Counter,
        labels: "device",
        help: "time that segments waited in the NIC's own queue, which is no delay of the network",
        of: Of::Counter("nic_wait_ns", NS),
    },
    Metric {
        name: "onramp_nic_wait_max_seconds",
        kind: Gauge,
        labels: "device",
        help: "longest wait in the NIC's own queue since the daemon started",
        of: Of::Counter("nic_wait_max_ns", NS),
    },
    Metric {
        name: "onramp_would_pause_total",
        kind: Counter,
        labels: "device",
        help: "with --observe: pauses that On-Ramp would have made",
        of: Of::Counter("would_hold", 1.0),
    },
    Metric {
        name: "onramp_would_pause_seconds_total",
        kind: Counter,
        labels: "device",
        help: "with --observe: total time of the pauses that On-Ramp would have made",
        of: Of::Counter("would_hold_ns", NS),
    },
    Metric {
        name: "onramp_peers",
        kind: Gauge,
        labels: "",
        help: "peers that were heard in the last minute",
        of: Of::Datapath(|s| one(s.peers.len() as f64)),
    },
    Metric {
        name: "onramp_peers_unheld",
        kind: Gauge,
        labels: "reason",
        help: "peers whose flows are not held as wanted: silent (data goes there, no OR-ACK comes back), refusing (they send data and refuse OR-ACKs, so they do not hold it), no_threshold (the table is full), beyond_threshold (the path's delay is above T, so holding is futile), below_zero (a delay was below zero in the last minute, so a clock is wrong)",
        of: Of::Datapath(|s| {
            let health = &s.health;
            vec![
                labelled("reason", "silent", health.silent_peers.len() as f64),
                labelled("reason", "refusing", health.refusing_peers.len() as f64),
                labelled("reason", "no_threshold", health.peers_without_threshold as f64),
                labelled("reason", "beyond_threshold", health.peers_beyond_threshold.len() as f64),
                labelled("reason", "below_zero", health.peers_below_zero.len() as f64),
            ]
        }),
    },
    Metric {
        name: "onramp_peer_delay_seconds",
        kind: Gauge,
        labels: "peer",
        help: "one-way delay to the peer, moving average over OR-ACKs with gain 1/16",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.owd_ewma_ns as f64 * NS))),
    },
    Metric {
        name: "onramp_peer_delay_min_seconds",
        kind: Gauge,
        labels: "peer",
        help: "minimum one-way delay to the peer of the last 15 to 30 s",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.owd_min_ns? as f64 * NS))),
    },
    Metric {
        name: "onramp_peer_threshold_seconds",
        kind: Gauge,
        labels: "peer",
        help: "threshold T of the peer, with --threshold auto",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.threshold?.threshold_ns as f64 * NS))),
    },
    Metric {
        name: "onramp_peer_oracks_total",
        kind: Counter,
        labels: "peer",
        help: "OR-ACKs from the peer",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.oracks as f64))),
    },
    Metric {
        name: "onramp_peer_pauses_total",
        kind: Counter,
        labels: "peer",
        help: "pauses of flows to the peer",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.holds as f64))),
    },
    Metric {
        name: "onramp_peer_paused_seconds_total",
        kind: Counter,
        labels: "peer",
        help: "total time that flows to the peer were paused",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.held_ns as f64 * NS))),
    },
    Metric {
        name: "onramp_peer_paused_by_looks_seconds_total",
        kind: Counter,
        labels: "peer",
        help: "total time that flows to the peer were paused, or with --observe would have been, estimated by looks (trace.look); absent if no look saw that",
        of: Of::Datapath(|s| by_peer(s, |p| Some(p.looks_held_ns? as f64 * NS))),
    },
    Metric {
        name: "onramp_trace_records_total",
        kind: Counter,
        labels: "outcome",
        help: "records of the trace: written, or lost because the file could not be written",
        of: Of::Datapath(|s| {
            let of_trace = |t: &onramp_status::Trace| {
                vec![
                    labelled("outcome", "written", t.written as f64),
                    labelled("outcome", "lost", t.lost as f64),
                ]
            };
            s.trace.as_ref().map_or(vec![], of_trace)
        }),
    },
];

fn of_device(device: &Device) -> Vec<(&'static str, String)> {
    vec![("device", device.name.clone())]
}

/// The histogram of a device. Its count is that of its buckets, because the counters are read one after another.
fn pauses(device: &Device) -> Vec<Sample> {
    let part = |suffix, labels, value| Sample {
        suffix,
        labels,
        value,
    };
    let mut count = 0;
    let mut samples = vec![];
    for (bucket, pauses) in device.pauses.iter().enumerate() {
        count += pauses;
        let bound = histogram_bound_ns(bucket).map(|ns| (ns as f64 * NS).to_string());
        let mut labels = of_device(device);
        labels.push(("le", bound.unwrap_or("+Inf".to_owned())));
        samples.push(part("_bucket", labels, count as f64));
    }
    let held_ns = device.counters.get("held_ns").copied().unwrap_or(0);
    samples.push(part("_sum", of_device(device), held_ns as f64 * NS));
    samples.push(part("_count", of_device(device), count as f64));
    samples
}

/// The values of a counter. One that this version of the data path does not have has none.
pub(super) fn by_device(
    s: &Status,
    counter: &str,
    further: Option<(&'static str, &str)>,
    unit: f64,
) -> Vec<Sample> {
    let sample = |device: &Device| {
        let value = *device.counters.get(counter)? as f64 * unit;
        let mut labels = of_device(device);
        labels.extend(further.map(|(name, value)| (name, value.to_owned())));
        Some(Sample::new(labels, value))
    };
    s.devices.iter().filter_map(sample).collect()
}

fn labelled(label: &'static str, value: &str, sample: f64) -> Sample {
    Sample::new(vec![(label, value.to_owned())], sample)
}

fn by_peer(s: &Status, of: fn(&Peer) -> Option<f64>) -> Vec<Sample> {
    let mut peers: Vec<&Peer> = s.peers.iter().collect();
    peers.sort_by_key(|peer| (std::cmp::Reverse(peer.held_ns), peer.addr));
    let sample = |peer: &Peer| {
        let label = vec![("peer", peer.addr.to_string())];
        Some(Sample::new(label, of(peer)?))
    };
    let most = peers.into_iter().take(MOST_PEERS);
    most.filter_map(sample).collect()
}
