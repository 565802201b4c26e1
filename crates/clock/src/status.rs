// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The status of a host's clock. Plain data, from which other crates make tables and metrics.

use std::net::SocketAddr;

use onramp_units::{Fleet as FleetTime, Time};
use serde::{Deserialize, Serialize};

use crate::wire::Delays;

/// What `onramp clock status` shows. Times are in ns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// ID of its process.
    pub pid: u32,
    /// This host and its fleet. The fields are in the same JSON object.
    #[serde(flatten)]
    pub membership: Membership,
    /// Source of the time stamps.
    pub source: String,
    /// False when messages are signed with the well-known key.
    pub authenticated: bool,
    /// `starting`, `alone`, `without a leader`, `synchronised`, `apart`, `contradictory`, `unconfirmed` or `expired`.
    pub state: String,
    /// Fleet time on this host, while it may be used.
    pub clock: Option<FleetClock>,
    /// By how much probes show fleet time to be wrong at least, ns; sigma includes it.
    #[serde(default)]
    pub doubt_ns: f64,
    /// Part of the last window for which this host lacked a processor, 0 to 1, if that was much.
    #[serde(default)]
    pub starved: Option<f64>,
    /// CLOCK_REALTIME, which programs read.
    #[serde(default)]
    pub system: System,
    /// The edges that this host probes, after the last window.
    pub edges: Vec<Edge>,
    /// One-way delays by fleet time: on the coordinator of all edges, on other hosts of their own edges.
    pub ways: Vec<OneWayDelays>,
    /// Resources that synchronisation has used on this host.
    pub cost: Cost,
    /// In the order of [`COUNTERS`].
    pub counters: Vec<(String, u64)>,
}

/// This host as a member of its fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// The address at which the other members reach this host.
    pub own: SocketAddr,
    /// The leader, which does the central step; none while there is no leader.
    pub coordinator: Option<SocketAddr>,
    /// The leader's term; 0 if the fleet is a list.
    pub term: u64,
    /// Number of members, this host included.
    pub members: usize,
    /// The fleet in etcd; none if the fleet is a list.
    pub fleet: Option<Fleet>,
    /// Hosts that use another version of the protocol, with that version.
    pub other_versions: Vec<(SocketAddr, u8)>,
    /// Hosts that have no fleet time since the last central step, because their edges contradict those of the others.
    /// Only the leader knows them.
    #[serde(default)]
    pub contradictory: Vec<SocketAddr>,
}

impl Membership {
    /// Whether this host leads the fleet.
    pub fn leads(&self) -> bool {
        self.coordinator == Some(self.own)
    }
}

/// A fleet whose members are registered in etcd.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Name of the fleet.
    pub name: String,
    /// Name of this host in it.
    pub node: String,
    /// Whether etcd answers and has this host's key.
    pub connected: bool,
    /// The connection in words: the server, or the reason why there is none.
    pub state: String,
    /// How often the connection failed or was lost.
    pub failures: u64,
    /// How often this host gave up to lead, because it was too starved.
    #[serde(default)]
    pub resignations: u64,
    /// Registered nodes, the oldest first.
    pub nodes: Vec<Node>,
    /// Keys that are not valid nodes: name and reason.
    pub refused: Vec<(String, String)>,
}

/// A node that is registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The address from which it probes.
    pub address: SocketAddr,
    /// Version of its messages.
    pub protocol: u8,
    /// Version of its program.
    pub version: String,
}

/// Fleet time as a line over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FleetClock {
    /// CLOCK_MONOTONIC at the line's reference point.
    pub reference_mono_ns: i64,
    /// Fleet time minus CLOCK_MONOTONIC at the reference point.
    pub offset_ns: i64,
    /// Growth of that offset, ns per ns.
    pub drift: f64,
    /// Standard deviation of fleet time at the reference point.
    pub sigma_ns: i64,
    /// When the last verdict arrived.
    pub heard_mono_ns: i64,
    /// End of the lease: fleet time must not be used after it.
    pub valid_until_mono_ns: i64,
}

impl FleetClock {
    /// Fleet time at CLOCK_MONOTONIC `mono_ns`, near the reference.
    pub fn fleet(&self, mono_ns: i64) -> Time<FleetTime> {
        let grown_ns = self.drift * (mono_ns - self.reference_mono_ns) as f64;
        let ahead_ns = self.offset_ns.saturating_add(grown_ns.round() as i64);
        Time::from_ticks(mono_ns.saturating_add(ahead_ns))
    }
}

/// CLOCK_REALTIME against the leader's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct System {
    /// Whether it follows the leader's.
    pub follows: Follows,
    /// This host's CLOCK_REALTIME minus the leader's, after the last verdict; none without fleet time.
    pub ahead_ns: Option<i64>,
    /// Change of its rate by `--discipline`, ns per ns.
    pub rate: f64,
}

/// Whether the system clock follows the leader's (`--discipline`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follows {
    /// `--discipline` is not given.
    #[default]
    Nothing,
    /// It follows the leader's clock.
    Leader,
    /// It has stopped to follow, for this reason.
    GivenUp(String),
}

/// An edge after a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Edge {
    /// Host at the other end.
    pub neighbour: SocketAddr,
    /// Pairs that arrived at the neighbour.
    pub pairs_out: usize,
    /// Pairs that arrived back here.
    pub pairs_back: usize,
    /// The neighbour's clock minus this host's; none if there were too few pairs.
    pub offset_ns: Option<i64>,
    /// Growth of that offset, ns per ns.
    pub drift: Option<f64>,
    /// Half of the shortest round-trip time.
    pub delay_ns: Option<i64>,
    /// How exactly the probes fix the offset: its standard deviation.
    #[serde(default)]
    pub sigma_ns: Option<i64>,
}

/// One-way delays of one direction of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneWayDelays {
    /// Sender.
    pub from: SocketAddr,
    /// Receiver.
    pub to: SocketAddr,
    /// Minimum over the last half minute.
    pub min_ns: i64,
    /// Median of the last window.
    pub now_ns: i64,
}

impl OneWayDelays {
    /// Both directions between a host and its neighbour.
    pub fn both(own: SocketAddr, neighbour: SocketAddr, delays: &Delays) -> [OneWayDelays; 2] {
        let way = |from, to, min_ns, now_ns| OneWayDelays {
            from,
            to,
            min_ns,
            now_ns,
        };
        [
            way(own, neighbour, delays.out_min_ns, delays.out_now_ns),
            way(neighbour, own, delays.back_min_ns, delays.back_now_ns),
        ]
    }
}

/// Resources that synchronisation has used on a host since it began.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Elapsed time.
    pub wall_ns: i64,
    /// Processor time.
    pub cpu_ns: i64,
    /// Bytes sent, as on an Ethernet wire with preamble and gap.
    pub wire_bytes: u64,
}

macro_rules! counters {
    ($($name:ident: $meaning:literal,)+) => {
        /// Counts of events since the program began.
        #[derive(Debug, Clone, Copy, Default)]
        #[allow(missing_docs)]
        pub struct Counters {
            $(pub $name: u64,)+
        }

        impl Counters {
            /// In the order of [`COUNTERS`].
            pub fn list(&self) -> Vec<(String, u64)> {
                vec![$((stringify!($name).to_owned(), self.$name),)+]
            }
        }

        /// Names and meanings.
        pub const COUNTERS: &[(&str, &str)] = &[$((stringify!($name), $meaning),)+];
    };
}

counters! {
    pairs_sent: "pairs of probes sent",
    pairs_acked: "pairs of probes answered",
    windows: "windows ended",
    edges_fitted: "edges for which a window gave a line",
    edges_unsupported: "edges whose window gave a line that its probes leave open by more than 1 ms, so it was not reported",
    edges_unfitted: "edges for which a window had too few pairs",
    reports_taken: "reports accepted as coordinator",
    verdicts_taken: "verdicts of the coordinator accepted",
    verdicts_refused: "verdicts refused because their clock is implausible",
    old_terms: "verdicts refused because their leader has been replaced",
    deposed: "fleet times dropped because a newer leader was heard while etcd did not answer",
    dropped: "datagrams that the kernel dropped: they came from a port that no member has, or more came than this host reads",
    malformed: "datagrams that are not a valid message",
    other_versions: "messages of another version of the protocol",
    bad_tag: "messages with a wrong tag or an unknown key",
    strangers: "messages from addresses that are not members, or not the leader",
    repeated: "repeated reports and verdicts (each is sent three times)",
    stale: "messages that were reordered or replayed",
    unasked: "acks of pairs that this host does not wait for",
    unstamped: "probes without a usable receive time stamp",
    stamps_of_the_future: "time stamps that were not used because they were 1 ms or more ahead of the clock",
    clock_backwards: "times that CLOCK_MONOTONIC went back, each of which drops this host's fleet time",
    wall_steps: "steps of CLOCK_REALTIME, each of which drops the probes in flight",
    windows_starved: "windows in which this host lacked a processor for a quarter of the time, or for 200 ms at once",
    windows_unwatched: "windows in which the kernel said neither how long the clock's thread waited (schedstat) nor what the hypervisor took (steal)",
    doubts: "times that probes began to show this host's fleet time as wrong by more than their noise, so sigma grew",
    clock_jumps: "fleet times dropped because probes showed them to be wrong by more than 20 us, or by more than ten times the noise of the probes if that is more",
    withheld: "times that fleet time was withheld because no neighbour was heard for 0.5 s",
    suspensions: "suspensions of this host, each of which drops its fleet time",
    system_steps: "steps of the system clock by --discipline, when it was too far off to slew",
    fleet_steps: "steps of fleet time on this host, when it was too far off to steer",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_is_in_the_same_json_object_as_the_rest() {
        let own: SocketAddr = "10.0.0.1:5198".parse().unwrap();
        let status = Status {
            version: String::new(),
            pid: 1,
            membership: Membership {
                own,
                coordinator: Some(own),
                term: 7,
                members: 2,
                fleet: None,
                other_versions: vec![],
                contradictory: vec![],
            },
            source: String::new(),
            authenticated: true,
            state: "starting".to_owned(),
            clock: None,
            doubt_ns: 0.0,
            starved: None,
            system: System::default(),
            edges: vec![],
            ways: vec![],
            cost: Cost::default(),
            counters: vec![],
        };
        let json = serde_json::to_string(&status).unwrap();
        assert!(json.contains(r#""own":"10.0.0.1:5198","coordinator":"10.0.0.1:5198","term":7"#));
        let read: Status = serde_json::from_str(&json).unwrap();
        assert_eq!(read.membership, status.membership);
    }
}
