//! What the daemon tells about itself: a JSON document on a Unix socket, and its table for people.
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{Read, Write},
    net::IpAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{bail, Context, Result};
use serde::{de::DeserializeOwned, Deserialize, Serialize};

use onramp_law::abi::COUNTERS;

use super::threshold::Reasons;

/// Where daemons put their sockets.
pub const RUN_DIR: &str = "/run/onramp";

/// Everything `onramp status` shows. Times in ns unless the name says otherwise.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub pid: u32,
    pub dev: String,
    pub law: String,
    /// None: by peer.
    pub threshold_ns: Option<i64>,
    pub max_pause_ns: i64,
    /// False when OR-ACKs are signed with the well-known key.
    pub authenticated: bool,
    pub clock: Clock,
    pub flows: usize,
    pub max_flows: u32,
    pub peers: Vec<Peer>,
    pub counters: BTreeMap<String, u64>,
}

/// The clock that the data path uses now.
#[derive(Debug, Serialize, Deserialize)]
pub struct Clock {
    pub source: String,
    /// Fleet time less CLOCK_MONOTONIC at `reference_mono_ns`.
    pub offset_ns: i64,
    pub reference_mono_ns: i64,
    /// How much faster fleet time runs.
    pub drift: f64,
    pub sigma_ns: i64,
    /// Negative: expired, nothing is held.
    pub lease_left_ns: i64,
}

/// One-way delays to a peer and what was held because of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Peer {
    pub addr: IpAddr,
    pub owd_last_ns: i64,
    pub owd_min_ns: i64,
    pub owd_ewma_ns: i64,
    pub oracks: u64,
    pub holds: u64,
    pub held_ns: u64,
    /// How this peer's threshold came about, under `--threshold auto`.
    pub threshold: Option<Reasons>,
}

/// The socket of the daemon on `dev` in this network namespace.
pub fn socket_path(netns_inode: u64, dev: &str) -> PathBuf {
    Path::new(RUN_DIR).join(format!("{netns_inode}-{dev}.sock"))
}

/// Asks the daemon behind `socket`.
pub fn query<T: DeserializeOwned>(socket: &Path) -> Result<T> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("no daemon answers at {}", socket.display()))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .context("the daemon did not answer in 5 s")?;
    serde_json::from_str(&text).context("the daemon's answer is not its status")
}

/// Answers one client. A client that does not read is left alone.
pub fn answer(mut stream: UnixStream, status: &impl Serialize) -> Result<()> {
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(serde_json::to_string_pretty(status)?.as_bytes())?;
    Ok(())
}

/// Sockets of all daemons in this namespace, or the one of `dev`.
pub fn sockets(netns_inode: u64, dev: Option<&str>) -> Result<Vec<PathBuf>> {
    if let Some(dev) = dev {
        return Ok(vec![socket_path(netns_inode, dev)]);
    }
    let own = format!("{netns_inode}-");
    let mut found: Vec<PathBuf> = std::fs::read_dir(RUN_DIR)
        .map(|dir| dir.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    found.retain(|path| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(&own))
    });
    if found.is_empty() {
        bail!("no On-Ramp daemon runs in this network namespace (start one: onramp agent run --dev DEV)");
    }
    found.sort();
    Ok(found)
}

/// The table for a terminal.
pub fn table(s: &Status) -> String {
    let mut out = String::new();
    let lease = if s.clock.lease_left_ns > 0 {
        format!("lease {} s", seconds(s.clock.lease_left_ns))
    } else {
        "LEASE EXPIRED: nothing is held".to_owned()
    };
    let tags = if s.authenticated {
        "authenticated"
    } else {
        "NOT AUTHENTICATED (no --key-file)"
    };
    let threshold = s
        .threshold_ns
        .map_or("auto (below)".to_owned(), |ns| format!("{} us", micros(ns)));
    let _ = writeln!(
        out,
        "{}: law {}, threshold {threshold}, OR-ACKs {tags}, pid {}\nclock {}: offset {} us, sigma {} us, {lease}\nflows {} of {}\n",
        s.dev, s.law, s.pid, s.clock.source, micros(s.clock.offset_ns),
        micros(s.clock.sigma_ns), s.flows, s.max_flows,
    );
    let _ = writeln!(
        out,
        "{:<39} {:>10} {:>10} {:>10} {:>9} {:>8} {:>10}",
        "peer", "OWD us", "min us", "mean us", "OR-ACKs", "pauses", "paused ms"
    );
    for p in &s.peers {
        let _ = writeln!(
            out,
            "{:<39} {:>10} {:>10} {:>10} {:>9} {:>8} {:>10.3}",
            p.addr.to_string(),
            micros(p.owd_last_ns),
            micros(p.owd_min_ns),
            micros(p.owd_ewma_ns),
            p.oracks,
            p.holds,
            p.held_ns as f64 / 1e6,
        );
    }
    for p in &s.peers {
        let Some(t) = &p.threshold else { continue };
        let _ = writeln!(
            out,
            "{}: threshold {} us = minimum {} (by {}) + headroom {} + a segment {}",
            p.addr,
            micros(t.threshold_ns),
            micros(t.min_ns),
            if t.by_probes { "probes" } else { "OR-ACKs" },
            micros(t.headroom_ns),
            micros(t.burst_ns),
        );
    }
    out.push('\n');
    for (name, meaning) in COUNTERS {
        let _ = writeln!(
            out,
            "{:>16}  {meaning}",
            s.counters.get(*name).copied().unwrap_or(0)
        );
    }
    out
}

fn micros(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn seconds(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e9)
}
