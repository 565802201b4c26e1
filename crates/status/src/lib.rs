//! What a daemon reports about itself, as types, and how to ask for it: a JSON document on a Unix
//! socket. For whoever asks: the command line, the rack, tests, benchmarks.
//!
//! Does not: load BPF programs, or know the daemon.
#![warn(missing_docs)]

use std::{
    collections::BTreeMap,
    io::{self, Read},
    net::IpAddr,
    os::unix::{fs::MetadataExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{de::DeserializeOwned, Deserialize, Serialize};

/// Where daemons put their sockets.
pub const RUN_DIR: &str = "/run/onramp";
/// Longest wait for a daemon's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The status of the data path on one device. Times in ns unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The device whose traffic it holds.
    pub dev: String,
    /// Name of the control law.
    pub law: String,
    /// None: each peer has its own.
    pub threshold_ns: Option<i64>,
    /// No packet is held longer.
    pub max_pause_ns: i64,
    /// False when OR-ACKs are signed with the well-known key.
    pub authenticated: bool,
    /// The clock that the data path uses now.
    pub clock: Clock,
    /// Entries in the flow table.
    pub flows: u32,
    /// Its size.
    pub max_flows: u32,
    /// By address.
    pub peers: Vec<Peer>,
    /// By name, as `ONR_COUNTERS` of bpf/abi.h lists them.
    pub counters: BTreeMap<String, u64>,
}

/// Fleet time as a line over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// `local` or `huygens`.
    pub source: String,
    /// Fleet time less CLOCK_MONOTONIC at `reference_mono_ns`.
    pub offset_ns: i64,
    /// Where the line has that offset.
    pub reference_mono_ns: i64,
    /// How much faster fleet time runs, ns a ns.
    pub drift: f64,
    /// Standard deviation of fleet time.
    pub sigma_ns: i64,
    /// Negative: expired, nothing is held.
    pub lease_left_ns: i64,
}

/// One-way delays to a peer, and what was held because of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Its address.
    pub addr: IpAddr,
    /// The newest one-way delay.
    pub owd_last_ns: i64,
    /// The shortest.
    pub owd_min_ns: i64,
    /// Their average, gain 1/16.
    pub owd_ewma_ns: i64,
    /// OR-ACKs from it.
    pub oracks: u64,
    /// Times that a flow to it was paused.
    pub holds: u64,
    /// For how long, in all.
    pub held_ns: u64,
    /// How its threshold came about, under `--threshold auto`.
    pub threshold: Option<Reasons>,
}

/// How the threshold of a peer came about: it is the sum of the other times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasons {
    /// T.
    pub threshold_ns: i64,
    /// The shortest one-way delay.
    pub min_ns: i64,
    /// Whether probes of the last half minute measured that; else OR-ACKs since the daemon began.
    pub by_probes: bool,
    /// The larger of `--headroom` and 2 sigma of the clock.
    pub headroom_ns: i64,
    /// The time of a segment at line rate.
    pub burst_ns: i64,
}

impl Status {
    /// The counter `name`; none if this version has no such counter.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}

/// Why a daemon's status is not known.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Nobody listens.
    #[error("no daemon answers at {}: {source}", path.display())]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It listens and does not answer.
    #[error("the daemon at {} did not answer in {} s: {source}", path.display(), PATIENCE.as_secs())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It answers with something else.
    #[error("the answer of the daemon at {} is not its status: {source}", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// No daemon has a socket.
    #[error(
        "no On-Ramp daemon runs in this network namespace; start one: onramp agent run --dev DEV"
    )]
    NoneHere,
}

/// Inode of the present network namespace.
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
/// There is none.
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

/// Asks the daemon behind `socket` for its status: [`Status`], or a clock's.
///
/// # Errors
/// It does not answer within five seconds, or with something else.
pub fn query<T: DeserializeOwned>(socket: &Path) -> Result<T, StatusError> {
    query_within(socket, PATIENCE)
}

/// The same with another patience.
///
/// # Errors
/// As [`query`].
pub fn query_within<T: DeserializeOwned>(
    socket: &Path,
    patience: Duration,
) -> Result<T, StatusError> {
    let path = || socket.to_owned();
    let text = UnixStream::connect(socket)
        .map_err(|source| StatusError::NoDaemon {
            path: path(),
            source,
        })
        .and_then(|stream| {
            read(stream, patience).map_err(|source| StatusError::NoAnswer {
                path: path(),
                source,
            })
        })?;
    serde_json::from_str(&text).map_err(|source| StatusError::Foreign {
        path: path(),
        source,
    })
}

fn read(mut stream: UnixStream, patience: Duration) -> io::Result<String> {
    stream.set_read_timeout(Some(patience))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
