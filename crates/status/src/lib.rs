// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The status of a daemon, as types, and the request for it: the daemon answers with a JSON document on a
//! Unix socket. For the command line, the rack, tests and benchmarks.
//!
//! Does not: load BPF programs, or depend on the daemon.
#![warn(missing_docs)]

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{IpAddr, Shutdown},
    os::unix::{fs::MetadataExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

mod flow;

use schemars::JsonSchema;
use serde::{de::DeserializeOwned, Deserialize, Serialize};

pub use flow::{Ends, Flow, Found, Verdict};

/// Directory of the daemons' sockets.
pub const RUN_DIR: &str = "/run/onramp";
/// Longest wait for a daemon's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client asks of a daemon: a line, after which it sends no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// [`Status`], or that of a clock.
    Status,
    /// Read the configuration again, and answer with [`Reloaded`].
    Reload,
    /// One flow; the answer is [`Found`].
    Flow(Ends),
}

impl Request {
    /// As it is sent.
    pub fn text(self) -> String {
        match self {
            Request::Status => "status\n".to_owned(),
            Request::Reload => "reload\n".to_owned(),
            Request::Flow(ends) => format!("flow {ends}\n"),
        }
    }

    /// The request with this text; an empty one asks for the status.
    pub fn of(text: &str) -> Option<Request> {
        match text.trim() {
            "" | "status" => Some(Request::Status),
            "reload" => Some(Request::Reload),
            other => Some(Request::Flow(other.strip_prefix("flow ")?.parse().ok()?)),
        }
    }
}

/// What became of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The configuration file, if there is one.
    pub file: Option<String>,
    /// What has changed, in words.
    pub changed: Vec<String>,
    /// Why nothing has changed.
    pub error: Option<String>,
}

/// The status of the data path of one daemon. Times are in ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// ID of its process.
    pub pid: u32,
    /// The devices whose traffic it holds, each with its own numbers.
    pub devices: Vec<Device>,
    /// How it is held: `edge`, `edt`, or `observe`.
    pub path: String,
    /// Name of the control law.
    pub law: String,
    /// Threshold T; none if each peer has its own.
    pub threshold_ns: Option<i64>,
    /// Longest pause.
    pub max_pause_ns: i64,
    /// False when OR-ACKs are signed with the well-known key.
    pub authenticated: bool,
    /// The clock that the data path uses now.
    pub clock: Clock,
    /// What keeps flows from being held.
    pub health: Health,
    /// Entries in the flow table.
    pub flows: u32,
    /// Size of the flow table.
    pub max_flows: u32,
    /// Peers, ordered by address.
    pub peers: Vec<Peer>,
    /// Counters by name, of all devices together; `ONR_COUNTERS` of bpf/abi.h lists them. Those with `max` in the
    /// name are maxima, the others sums.
    pub counters: BTreeMap<String, u64>,
    /// The file of the trace, if one is written.
    #[serde(default)]
    pub trace: Option<Trace>,
}

/// The trace of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Its file.
    pub path: PathBuf,
    /// Records written.
    pub written: u64,
    /// Records lost: the file could not be written, or the disk was too slow.
    pub lost: u64,
    /// Why the last record could not be written.
    pub error: Option<String>,
}

/// What a device has of its own. Flows, peers, thresholds, keys and the clock are the daemon's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Who has its root qdisc.
    pub root_qdisc: RootQdisc,
    /// Counters by name. An OR-ACK is counted where it comes back, a pause where the packet waits.
    pub counters: BTreeMap<String, u64>,
    /// How many pauses had which length, by bucket of law/histogram.h: the first holds those up to 1.024 us, each next
    /// one those up to twice as long, the last all longer ones.
    #[serde(default)]
    pub pauses: Vec<u64>,
}

/// Whether the data path can do its work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Peers whose threshold could not be set, with `--threshold auto`; flows to them are not held.
    pub peers_without_threshold: u32,
    /// Peers that get data and send no usable OR-ACK; flows to them are not held.
    pub silent_peers: Vec<IpAddr>,
    /// Peers that send data and have answered an OR-ACK with "port unreachable" in the last minute: On-Ramp does not run
    /// there.
    #[serde(default)]
    pub refusing_peers: Vec<IpAddr>,
    /// Peers to which a delay was below zero in the last minute, by more than the error of the clocks explains: a clock is
    /// wrong by more than it says.
    #[serde(default)]
    pub peers_below_zero: Vec<IpAddr>,
    /// Peers whose minimum delay is above a fixed threshold: flows to them are held in vain.
    pub peers_beyond_threshold: Vec<IpAddr>,
    /// Devices of the configuration that are not there; the daemon waits for them.
    #[serde(default)]
    pub missing_devices: Vec<String>,
    /// Thresholds that the error of the clocks alone can reach; nothing is held for them.
    #[serde(default)]
    pub thresholds_below_error: Vec<BelowError>,
    /// Times that a threshold became one of these.
    #[serde(default)]
    pub times_below_error: u64,
}

/// A threshold that the error of the clocks alone can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BelowError {
    /// `law.threshold`, for which the lease of the data path has ended, or that of a class, whose flows pass.
    pub threshold: String,
    /// The threshold, the error, and sigma, in words.
    pub why: String,
}

/// Who has the root qdisc of a device. Flows are held only while it is the daemon's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootQdisc {
    /// The daemon.
    #[default]
    Own,
    /// The kernel: another program has removed the daemon's qdisc, or a new transmit queue could not be given one.
    Default,
    /// Whoever had it: the daemon only observes.
    NotTaken,
    /// Another program has replaced the daemon's qdisc by one of this kind.
    Foreign(String),
}

/// Fleet time as a line over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `local`, `huygens`, `system` or `phc`.
    pub source: String,
    /// Fleet time minus CLOCK_MONOTONIC at `reference_mono_ns`.
    pub offset_ns: i64,
    /// CLOCK_MONOTONIC at the line's reference point.
    pub reference_mono_ns: i64,
    /// Growth of the offset, ns per ns.
    pub drift: f64,
    /// Standard deviation of fleet time.
    pub sigma_ns: i64,
    /// Time until the lease ends; negative after its end, when nothing is held.
    pub lease_left_ns: i64,
    /// With `system` and `phc`: times that this clock was doubted, so that nothing was held.
    #[serde(default)]
    pub doubts: u64,
    /// With `system` and `phc`: why it is doubted now.
    #[serde(default)]
    pub doubt: Option<String>,
}

/// One-way delays to a peer, and the pauses of flows to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// Address of the peer.
    pub addr: IpAddr,
    /// The latest one-way delay.
    pub owd_last_ns: i64,
    /// The minimum of the last 15 to 30 s; none if all delays were implausible.
    pub owd_min_ns: Option<i64>,
    /// Moving average with gain 1/16.
    pub owd_ewma_ns: i64,
    /// OR-ACKs from the peer.
    pub oracks: u64,
    /// Number of pauses of flows to the peer.
    pub holds: u64,
    /// Sum of these pauses.
    pub held_ns: u64,
    /// The terms of its threshold, with `--threshold auto`.
    pub threshold: Option<Reasons>,
    /// How long flows to it were held, or with `--observe` would have been: the number of looks of the trace that saw a
    /// flow held, times the time between looks. None if no look saw that.
    #[serde(default)]
    pub looks_held_ns: Option<u64>,
}

/// The threshold of a peer and its terms: it is the sum of the other times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reasons {
    /// Threshold T.
    pub threshold_ns: i64,
    /// Minimum one-way delay.
    pub min_ns: i64,
    /// True if probes measured the minimum, false if OR-ACKs did; both over the last half minute.
    pub by_probes: bool,
    /// `--headroom`, for the noise of an idle path.
    pub headroom_ns: i64,
    /// What the error of the clocks adds to the headroom.
    #[serde(default)]
    pub clocks_ns: i64,
    /// Time to send one segment at the line rate.
    pub burst_ns: i64,
}

impl Status {
    /// The counter `name`; none if this version has no such counter.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}

/// Why the status of a daemon cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Nothing listens.
    #[error(
        "no daemon answers at {}: {source}; start one: onramp agent run --dev DEV, or for the clock alone: onramp clock run",
        path.display()
    )]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The daemon listens and does not answer.
    #[error(
        "the daemon at {} did not answer in {} s: {source}; if it hangs, stop and start it again",
        path.display(), patience.as_secs_f64()
    )]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// The longest wait.
        patience: Duration,
        /// The error of the system.
        source: io::Error,
    },
    /// The daemon answers with something else.
    #[error(
        "the answer of the daemon at {} is not its status: {source}; use the onramp of the daemon's version",
        path.display()
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// No daemon has a socket in this network namespace.
    #[error(
        "no On-Ramp daemon runs in this network namespace; start one: onramp agent run --dev DEV"
    )]
    NoneHere,
}

/// Inode of the network namespace of this process.
///
/// # Errors
/// /proc cannot be read.
pub fn netns_inode() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/ns/net")?.ino())
}

/// The socket of the daemon on `dev` in a network namespace.
pub fn socket_path(netns_inode: u64, dev: &str) -> PathBuf {
    Path::new(RUN_DIR).join(format!("{netns_inode}-{dev}.sock"))
}

/// The socket of the clock in a network namespace.
pub fn clock_socket_path(netns_inode: u64) -> PathBuf {
    Path::new(RUN_DIR).join(format!("clock-{netns_inode}.sock"))
}

/// Sockets of all daemons in a network namespace, or the one of `dev`.
///
/// # Errors
/// There is no socket.
pub fn sockets(netns_inode: u64, dev: Option<&str>) -> Result<Vec<PathBuf>, StatusError> {
    if let Some(dev) = dev {
        return Ok(vec![socket_path(netns_inode, dev)]);
    }
    let own = format!("{netns_inode}-");
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(&own)
    };
    let entries = std::fs::read_dir(RUN_DIR).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_own).collect();
    found.sort();
    match found.is_empty() {
        true => Err(StatusError::NoneHere),
        false => Ok(found),
    }
}

/// Requests the status of the daemon behind `socket`: [`Status`], or that of a clock.
///
/// # Errors
/// The daemon does not answer within five seconds, or answers with something else.
pub fn query<T: DeserializeOwned>(socket: &Path) -> Result<T, StatusError> {
    query_within(socket, PATIENCE)
}

/// [`query`] with another longest wait.
///
/// # Errors
/// As [`query`].
pub fn query_within<T: DeserializeOwned>(
    socket: &Path,
    patience: Duration,
) -> Result<T, StatusError> {
    ask(socket, Request::Status, patience)
}

/// Lets the daemon behind `socket` read its configuration again.
///
/// # Errors
/// As [`query`]. A refused configuration is none: the answer says so.
pub fn reload(socket: &Path) -> Result<Reloaded, StatusError> {
    ask(socket, Request::Reload, PATIENCE)
}

/// Asks the daemon behind `socket` for a flow.
///
/// # Errors
/// As [`query`]. A flow that does not exist is none: the answer says so.
pub fn find_flow(socket: &Path, ends: Ends) -> Result<Found, StatusError> {
    ask(socket, Request::Flow(ends), PATIENCE)
}

fn ask<T: DeserializeOwned>(
    socket: &Path,
    request: Request,
    patience: Duration,
) -> Result<T, StatusError> {
    let path = || socket.to_owned();
    let text = UnixStream::connect(socket)
        .map_err(|source| StatusError::NoDaemon {
            path: path(),
            source,
        })
        .and_then(|stream| {
            converse(stream, request, patience).map_err(|source| StatusError::NoAnswer {
                path: path(),
                patience,
                source,
            })
        })?;
    serde_json::from_str(&text).map_err(|source| StatusError::Foreign {
        path: path(),
        source,
    })
}

fn converse(mut stream: UnixStream, request: Request, patience: Duration) -> io::Result<String> {
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(request.text().as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_sent() {
        let ends = "[fd00::1]:4000 [fd00::2]:80".parse().unwrap();
        for request in [Request::Status, Request::Reload, Request::Flow(ends)] {
            assert_eq!(Request::of(&request.text()), Some(request));
        }
        assert_eq!(Request::of("flow 10.0.0.1:4000"), None);
    }

    #[test]
    fn a_daemon_that_does_not_run_is_named_with_the_command_that_starts_it() {
        let error = query::<Status>(Path::new("/nope")).unwrap_err().to_string();
        assert!(error.starts_with("no daemon answers at /nope"), "{error}");
        assert!(error.contains("onramp agent run --dev DEV"), "{error}");
    }
}
