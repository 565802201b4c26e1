//! `onramp status`: the status of daemons as a table or as JSON.
use std::{fmt::Write as _, net::IpAddr, path::PathBuf};

use anyhow::{Context, Result};
use onramp_law::abi::{COUNTERS, ONR_ORACK_PORT};
use onramp_status::{netns_inode, query, sockets, Health, RootQdisc, Status};

#[derive(clap::Args)]
pub struct Args {
    /// Device of the daemon [default: all daemons in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// Socket of a daemon that was started with --socket
    #[arg(long, conflicts_with = "dev")]
    socket: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let netns = netns_inode().context("reading the network namespace")?;
    let sockets = match &args.socket {
        Some(socket) => vec![socket.clone()],
        None => sockets(netns, args.dev.as_deref())?,
    };
    for socket in sockets {
        let status: Status = query(&socket)?;
        if args.json {
            println!("{}", serde_json::to_string_pretty(&status)?);
        } else {
            print!("{}", table(&status));
        }
    }
    Ok(())
}

/// The table for a terminal.
fn table(s: &Status) -> String {
    let mut out = String::new();
    let lease = if s.clock.lease_left_ns > 0 {
        format!("lease {} s", seconds(s.clock.lease_left_ns))
    } else {
        "LEASE EXPIRED, nothing is held".to_owned()
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
        "{}: path {}, law {}, threshold {threshold}, OR-ACKs {tags}, pid {}\nclock {}: offset {} us, sigma {} us, {lease}\nflows {} of {}\n",
        s.dev, s.path, s.law, s.pid, s.clock.source, micros(s.clock.offset_ns),
        micros(s.clock.sigma_ns), s.flows, s.max_flows,
    );
    out.push_str(&warnings(&s.health));
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
            p.owd_min_ns.map_or("-".to_owned(), micros),
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

/// What keeps flows from being held.
fn warnings(health: &Health) -> String {
    let how = "no flow is held; restart the daemon to hold flows again";
    let mut out = match &health.root_qdisc {
        RootQdisc::Own => String::new(),
        RootQdisc::NotTaken => "OBSERVING: no flow is held\n\n".to_owned(),
        RootQdisc::Default => format!("NO QDISC: another program removed it, {how}\n\n"),
        RootQdisc::Foreign(kind) => {
            format!("NO QDISC: another program made {kind} the root qdisc, {how}\n\n")
        }
    };
    if health.peers_without_threshold > 0 {
        let _ = writeln!(
            out,
            "{} PEERS WITHOUT A THRESHOLD: the table is full, flows to them are not held\n",
            health.peers_without_threshold
        );
    }
    if !health.silent_peers.is_empty() {
        let _ = writeln!(
            out,
            "NO OR-ACKS FROM {}: flows to them are not held; does the network pass UDP {ONR_ORACK_PORT}?\n",
            join(&health.silent_peers)
        );
    }
    if !health.peers_beyond_threshold.is_empty() {
        let _ = writeln!(
            out,
            "THRESHOLD BELOW THE DELAY OF THE PATH TO {}: flows to them are held in vain; use --threshold auto\n",
            join(&health.peers_beyond_threshold)
        );
    }
    out
}

fn join(peers: &[IpAddr]) -> String {
    let all: Vec<String> = peers.iter().map(IpAddr::to_string).collect();
    all.join(", ")
}

fn micros(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn seconds(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_flows_from_being_held_is_at_the_top() {
        assert_eq!(warnings(&Health::default()), "");
        let health = Health {
            root_qdisc: RootQdisc::Foreign("fq".to_owned()),
            peers_without_threshold: 3,
            silent_peers: vec!["10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap()],
            peers_beyond_threshold: vec!["10.0.0.4".parse().unwrap()],
        };
        let text = warnings(&health);
        for part in [
            "NO QDISC: another program made fq the root qdisc",
            "restart the daemon",
            "3 PEERS WITHOUT A THRESHOLD",
            "NO OR-ACKS FROM 10.0.0.2, 10.0.0.3",
            "UDP 5199",
            "THE PATH TO 10.0.0.4",
        ] {
            assert!(text.contains(part), "{part:?} is missing in: {text}");
        }
    }
}
