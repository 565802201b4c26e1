//! What a host tells about its clock. Plain data; tables and metrics are made from it elsewhere.

use std::net::SocketAddr;

use onramp_units::{Fleet as FleetTime, Time};
use serde::{Deserialize, Serialize};

use crate::wire::Delays;

/// Everything that `onramp clock status` shows. ns unless the name says otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// This host, as the other members know it.
    pub own: SocketAddr,
    /// Where it reports to: the leader.
    pub coordinator: Option<SocketAddr>,
    /// Of this leader; 0 in a fleet that is a list.
    pub term: u64,
    /// Of the fleet, this host among them.
    pub members: usize,
    /// Where the fleet is from; none: a list.
    pub fleet: Option<Fleet>,
    /// Hosts that speak another version of the protocol, and which.
    pub other_versions: Vec<(SocketAddr, u8)>,
    /// What stamps come from.
    pub source: String,
    /// False when messages are signed with the well-known key.
    pub authenticated: bool,
    /// `starting`, `alone`, `without a leader`, `synchronised`, `apart`, `contradictory` or `expired`.
    pub state: String,
    /// Fleet time on this host, while it may be used.
    pub clock: Option<FleetClock>,
    /// The system's clock, which programs read.
    #[serde(default)]
    pub system: System,
    /// To its neighbours that it probes itself, after the last window.
    pub edges: Vec<Edge>,
    /// One-way delays by fleet time: the coordinator knows those of all edges, others their own.
    pub ways: Vec<Way>,
    /// What synchronisation costs this host.
    pub cost: Cost,
    /// In the order of [`COUNTERS`].
    pub counters: Vec<(String, u64)>,
}

/// A fleet that is kept in etcd.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fleet {
    /// Its name.
    pub name: String,
    /// This host's.
    pub node: String,
    /// Whether etcd answers, and has this node.
    pub connected: bool,
    /// The same in words: where it is connected to, or why it is not.
    pub state: String,
    /// Times that the connection was lost or could not be made.
    pub failures: u64,
    /// Nodes, the oldest first.
    pub nodes: Vec<Node>,
    /// Keys that are no nodes: their names, and why.
    pub refused: Vec<(String, String)>,
}

/// A node that is registered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Where it probes from.
    pub address: SocketAddr,
    /// Version of its messages.
    pub protocol: u8,
    /// Of its program.
    pub version: String,
}

/// Fleet time as a line over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FleetClock {
    /// Where the line is told.
    pub reference_mono_ns: i64,
    /// Fleet time less CLOCK_MONOTONIC there.
    pub offset_ns: i64,
    /// What that grows by, ns a ns.
    pub drift: f64,
    /// Standard deviation at the reference.
    pub sigma_ns: i64,
    /// When the verdict came that it is from.
    pub heard_mono_ns: i64,
    /// Beyond this, nobody should use it.
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
    /// What becomes of it.
    pub follows: Follows,
    /// Ahead of the leader's after the last verdict; none without fleet time.
    pub ahead_ns: Option<i64>,
    /// We make it run faster by this, ns a ns.
    pub rate: f64,
}

/// What becomes of a system's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follows {
    /// Nobody asked for it to be set.
    #[default]
    Nothing,
    /// It is made to follow the leader's.
    Leader,
    /// It is no more, and why.
    GivenUp(String),
}

/// An edge after a window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Edge {
    /// Its other end.
    pub neighbour: SocketAddr,
    /// Pairs that came to it.
    pub pairs_out: usize,
    /// Pairs that came back.
    pub pairs_back: usize,
    /// The neighbour's clock less ours; none if there were too few pairs.
    pub offset_ns: Option<i64>,
    /// What that grows by, ns a ns.
    pub drift: Option<f64>,
    /// Half of the shortest round trip.
    pub delay_ns: Option<i64>,
}

/// A one-way delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Who sends.
    pub from: SocketAddr,
    /// Who receives.
    pub to: SocketAddr,
    /// The shortest of the last half minute.
    pub min_ns: i64,
    /// The median of the last window.
    pub now_ns: i64,
}

impl Way {
    /// Both ways between a host and its neighbour.
    pub fn both(own: SocketAddr, neighbour: SocketAddr, delays: &Delays) -> [Way; 2] {
        let way = |from, to, min_ns, now_ns| Way {
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

/// What synchronisation costs a host, since it began.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Time that it ran.
    pub wall_ns: i64,
    /// Of a core.
    pub cpu_ns: i64,
    /// Sent, on an Ethernet wire with preamble and gap.
    pub wire_bytes: u64,
}

macro_rules! counters {
    ($($name:ident: $meaning:literal,)+) => {
        /// What happened since the program began.
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
    edges_fitted: "edges of which a window told a line",
    edges_unfitted: "edges of which a window told too few pairs",
    reports_taken: "reports taken as coordinator",
    verdicts_taken: "verdicts of the coordinator taken",
    verdicts_refused: "verdicts refused: their clock is absurd",
    old_terms: "verdicts refused: of a leader that has been replaced",
    deposed: "times that a newer leader was heard of while etcd did not answer: fleet time was dropped",
    malformed: "datagrams that are no message",
    other_versions: "messages of another version of the protocol",
    bad_tag: "messages with a wrong tag or an unknown key",
    strangers: "messages from addresses that are no members, or not the leader",
    repeated: "reports and verdicts heard again: all are sent three times",
    stale: "messages reordered or replayed",
    unasked: "acks of pairs that nobody waits for",
    unstamped: "probes that arrived without a time stamp",
    wall_steps: "steps of the wall clock: probes under way were dropped",
    suspensions: "times that this host was suspended: its fleet time was dropped",
    system_steps: "times that --discipline stepped the system's clock, being too far off to be slewed",
    fleet_steps: "times that fleet time stepped here, being too far off to be steered",
}
