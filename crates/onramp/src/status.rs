// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp status`: the status of daemons as a table or as JSON.
use std::{fmt::Write as _, net::IpAddr};

use anyhow::Result;
use onramp_law::abi::{COUNTERS, ONR_ORACK_PORT};
use onramp_status::{query, Device, Health, RootQdisc, Status};

use crate::daemons::Daemons;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    daemons: Daemons,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the schema of --json, which is docs/status.schema.json
    #[arg(long, exclusive = true)]
    schema: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.schema {
        print!("{}", schema()?);
        return Ok(());
    }
    let sockets = args.daemons.sockets()?;
    let mut shown = vec![]; // a daemon has a socket for each of its devices
    for socket in sockets {
        let status: Status = query(&socket)?;
        if shown.contains(&status.pid) {
            continue;
        }
        shown.push(status.pid);
        if args.json {
            println!("{}", serde_json::to_string_pretty(&status)?);
        } else {
            print!("{}", table(&status));
        }
    }
    Ok(())
}

/// The JSON schema of a status.
fn schema() -> Result<String> {
    let schema = schemars::schema_for!(Status);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// The table for a terminal.
fn table(s: &Status) -> String {
    let mut out = String::new();
    let lease = if s.clock.lease_left_ns > 0 {
        format!("lease {} s", seconds(s.clock.lease_left_ns))
    } else {
        let reason = s.clock.doubt.as_ref();
        let reason = reason.map_or(String::new(), |doubt| format!(": {doubt}"));
        format!("LEASE EXPIRED, nothing is held{reason}")
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
        names(&s.devices), s.path, s.law, s.pid, s.clock.source, micros(s.clock.offset_ns),
        micros(s.clock.sigma_ns), s.flows, s.max_flows,
    );
    s.devices
        .iter()
        .for_each(|device| out.push_str(&qdisc_warning(device)));
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
            "{}: threshold {} us = minimum {} (by {}) + headroom {} + clocks {} + a segment {}",
            p.addr,
            micros(t.threshold_ns),
            micros(t.min_ns),
            if t.by_probes { "probes" } else { "OR-ACKs" },
            micros(t.headroom_ns),
            micros(t.clocks_ns),
            micros(t.burst_ns),
        );
    }
    out.push('\n');
    out.push_str(&counters(s));
    out
}

fn names(devices: &[Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    match names.is_empty() {
        true => "no device".to_owned(),
        false => names.join(", "),
    }
}

/// A line for each counter: of all devices together, then of each if there are several.
fn counters(s: &Status) -> String {
    let mut out = String::new();
    let columns = if s.devices.len() > 1 {
        s.devices.as_slice()
    } else {
        &[]
    };
    if !columns.is_empty() {
        let _ = write!(out, "{:>16}", "all devices");
        for device in columns {
            let _ = write!(out, " {:>16}", device.name);
        }
        out.push('\n');
    }
    for (name, meaning) in COUNTERS {
        let all = [&s.counters].into_iter();
        for counters in all.chain(columns.iter().map(|device| &device.counters)) {
            let _ = write!(out, "{:>16} ", counters.get(*name).copied().unwrap_or(0));
        }
        let _ = writeln!(out, " {meaning}");
    }
    out
}

/// That flows are not held on a device, and why.
fn qdisc_warning(device: &Device) -> String {
    let how = "no flow is held there; restart the daemon to hold flows again";
    let dev = &device.name;
    match &device.root_qdisc {
        RootQdisc::Own => String::new(),
        RootQdisc::NotTaken => format!("OBSERVING {dev}: no flow is held\n\n"),
        RootQdisc::Default => format!(
            "NO QDISC ON {dev}: another program removed it, or a new transmit queue could not be given one, {how}\n\n"
        ),
        RootQdisc::Foreign(kind) => {
            format!("NO QDISC ON {dev}: another program made {kind} the root qdisc, {how}\n\n")
        }
    }
}

/// What keeps flows from being held.
fn warnings(health: &Health) -> String {
    let mut out = String::new();
    if !health.missing_devices.is_empty() {
        let devices = health.missing_devices.join(", ");
        let _ = writeln!(out, "NO DEVICE {devices}: the daemon waits for it\n");
    }
    for below in &health.thresholds_below_error {
        let _ = writeln!(
            out,
            "CLOCK NOT GOOD ENOUGH FOR {}: nothing is held for it: {}\n",
            below.threshold, below.why
        );
    }
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
    if !health.refusing_peers.is_empty() {
        let _ = writeln!(
            out,
            "{} REFUSE OR-ACKS (PORT UNREACHABLE): On-Ramp does not run there\n",
            join(&health.refusing_peers)
        );
    }
    if !health.peers_below_zero.is_empty() {
        let _ = writeln!(
            out,
            "DELAYS BELOW ZERO TO {}: its clock or this host's is wrong by more than it says; see onramp clock status\n",
            join(&health.peers_below_zero)
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
    use onramp_status::BelowError;

    use super::*;

    #[test]
    fn the_documented_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.schema.json");
        let is = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            is,
            schema().unwrap(),
            "run: onramp status --schema > docs/status.schema.json"
        );
    }

    #[test]
    fn what_keeps_flows_from_being_held_is_at_the_top() {
        assert_eq!(warnings(&Health::default()), "");
        let health = Health {
            peers_without_threshold: 3,
            silent_peers: vec!["10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap()],
            refusing_peers: vec!["10.0.0.5".parse().unwrap()],
            peers_below_zero: vec!["10.0.0.6".parse().unwrap()],
            peers_beyond_threshold: vec!["10.0.0.4".parse().unwrap()],
            thresholds_below_error: vec![BelowError {
                threshold: "law.threshold".to_owned(),
                why: "it is 20 us".to_owned(),
            }],
            times_below_error: 1,
            missing_devices: vec!["eth2".to_owned()],
        };
        let device = Device {
            name: "eth1".to_owned(),
            root_qdisc: RootQdisc::Foreign("fq".to_owned()),
            ..Device::default()
        };
        let text = qdisc_warning(&device) + &warnings(&health);
        for part in [
            "NO QDISC ON eth1: another program made fq the root qdisc",
            "restart the daemon",
            "NO DEVICE eth2: the daemon waits for it",
            "3 PEERS WITHOUT A THRESHOLD",
            "NO OR-ACKS FROM 10.0.0.2, 10.0.0.3",
            "UDP 5199",
            "THE PATH TO 10.0.0.4",
            "NOT GOOD ENOUGH FOR law.threshold: nothing is held for it: it is 20 us",
        ] {
            assert!(text.contains(part), "{part:?} is missing in: {text}");
        }
    }
}
