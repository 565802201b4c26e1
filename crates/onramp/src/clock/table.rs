// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A clock's status as text for a terminal.
use std::{collections::BTreeSet, fmt::Write as _, net::SocketAddr};

use onramp_clock::{
    stamps::now_mono_ns,
    status::{Fleet, Follows, Node, Status, COUNTERS},
    wire::VERSION,
};

/// Nodes of a fleet that fit on a screen.
const MOST_LISTED: usize = 32;

/// The whole status.
pub fn status(s: &Status) -> String {
    let mut out = String::new();
    let tags = if s.authenticated {
        "authenticated"
    } else {
        "NOT AUTHENTICATED (no --key-file)"
    };
    let _ = writeln!(
        out,
        "host {}, {} members, {}, messages {tags}, pid {}\n{}{}; stamps: {}\n{}\n{}\n",
        s.membership.own,
        s.membership.members,
        leader(s),
        s.pid,
        s.membership.fleet.as_ref().map_or(String::new(), fleet),
        clock(s),
        s.source,
        system(s),
        cost(s),
    );
    for (host, version) in &s.membership.other_versions {
        let _ = writeln!(
            out,
            "{host} uses version {version} of the protocol, this host uses {VERSION}"
        );
    }
    for host in &s.membership.contradictory {
        let _ = writeln!(
            out,
            "{host} is excluded: its edges contradict those of the other hosts"
        );
    }
    let _ = writeln!(
        out,
        "{:<28} {:>10} {:>10} {:>14} {:>10} {:>10}",
        "neighbour", "pairs out", "back", "ahead us", "drift ppm", "delay us"
    );
    for edge in &s.edges {
        let _ = writeln!(
            out,
            "{:<28} {:>10} {:>10} {:>14} {:>10} {:>10}",
            edge.neighbour.to_string(),
            edge.pairs_out,
            edge.pairs_back,
            edge.offset_ns.map_or("-".into(), micros),
            edge.drift.map_or("-".into(), ppm),
            edge.delay_ns.map_or("-".into(), micros),
        );
    }
    out.push('\n');
    for ((_, meaning), (_, value)) in COUNTERS.iter().zip(&s.counters) {
        let _ = writeln!(out, "{value:>16}  {meaning}");
    }
    out
}

fn leader(s: &Status) -> String {
    match s.membership.coordinator {
        None => "no leader".to_owned(),
        Some(leader) => {
            let ours = if s.membership.leads() {
                ", this host"
            } else {
                ""
            };
            format!("leader {leader}{ours} (term {})", s.membership.term)
        }
    }
}

/// The fleet in etcd: a line for the connection and one for each node.
fn fleet(f: &Fleet) -> String {
    let mut out = format!("node {} of fleet {}; etcd: {}", f.node, f.name, f.state);
    if !f.connected {
        out.push_str("; the members are the last known ones");
    }
    if f.resignations > 0 {
        let _ = write!(out, "; {} times too starved to lead", f.resignations);
    }
    out.push('\n');
    for node in f.nodes.iter().take(MOST_LISTED) {
        let Node {
            name,
            address,
            protocol,
            version,
        } = node;
        let _ = write!(out, "  {name:<24} {address:<28} version {version}");
        if *protocol != VERSION {
            let _ = write!(
                out,
                ": NOT A MEMBER, uses protocol {protocol}, this host {VERSION}"
            );
        }
        out.push('\n');
    }
    if f.nodes.len() > MOST_LISTED {
        let _ = writeln!(out, "  and {} more", f.nodes.len() - MOST_LISTED);
    }
    for (name, why) in f.refused.iter().take(MOST_LISTED) {
        let _ = writeln!(out, "  refused: {name}: {why}");
    }
    out
}

/// The clock in one line.
pub fn line(s: &Status) -> String {
    format!("{}\n", clock(s))
}

/// One-way delays in us, `minimum/median`, one row per sender.
pub fn matrix(s: &Status) -> String {
    let hosts: BTreeSet<SocketAddr> = s.ways.iter().flat_map(|way| [way.from, way.to]).collect();
    if hosts.is_empty() {
        return "no one-way delays yet; wait two windows of 2 s\n".to_owned();
    }
    let mut out = format!("{:<28}", "from \\ to, us (min/now)");
    for to in &hosts {
        let _ = write!(out, " {:>21}", to.to_string());
    }
    out.push('\n');
    for from in &hosts {
        let _ = write!(out, "{:<28}", from.to_string());
        for to in &hosts {
            let way = s.ways.iter().find(|w| w.from == *from && w.to == *to);
            let text = way.map(|w| format!("{}/{}", micros(w.min_ns), micros(w.now_ns)));
            let _ = write!(out, " {:>21}", text.unwrap_or("-".into()));
        }
        out.push('\n');
    }
    out
}

fn clock(s: &Status) -> String {
    let mut line = fleet_time(s);
    if s.doubt_ns > 0.0 {
        let _ = write!(
            line,
            "; DOUBTED: probes show it wrong by {} us",
            micros(s.doubt_ns as i64)
        );
    }
    if let Some(part) = s.starved {
        let _ = write!(
            line,
            "; STARVED: no processor for {:.0} % of the last window",
            100.0 * part
        );
    }
    line
}

fn fleet_time(s: &Status) -> String {
    let now = now_mono_ns();
    match &s.clock {
        Some(clock) => format!(
            "{}: offset {} us, drift {} ppm, sigma {} us, heard {:.1} s ago, lease {:.1} s",
            s.state,
            micros(clock.offset_ns),
            ppm(clock.drift),
            micros(clock.sigma_ns),
            (now - clock.heard_mono_ns) as f64 / 1e9,
            (clock.valid_until_mono_ns - now) as f64 / 1e9,
        ),
        None => format!("{}: NO FLEET TIME", s.state),
    }
}

/// The system's clock.
fn system(s: &Status) -> String {
    let system = &s.system;
    let ahead = match system.ahead_ns {
        Some(ns) => format!("{} us ahead of the leader's", micros(ns)),
        None => "not compared with the leader's".to_owned(),
    };
    let follows = match &system.follows {
        Follows::Nothing => "not disciplined".to_owned(),
        Follows::Leader if s.membership.leads() => "this host leads".to_owned(),
        Follows::Leader => format!("follows it, rate changed by {} ppm", ppm(system.rate)),
        Follows::GivenUp(why) => format!("NO LONGER FOLLOWS IT: {why}"),
    };
    format!("system clock: {ahead}; {follows}")
}

fn cost(s: &Status) -> String {
    let wall_ns = s.cost.wall_ns.max(1) as f64;
    format!(
        "cost: {:.2} % of a core, {:.2} Mbit/s sent",
        100.0 * s.cost.cpu_ns as f64 / wall_ns,
        s.cost.wire_bytes as f64 * 8e3 / wall_ns,
    )
}

fn micros(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn ppm(ratio: f64) -> String {
    format!("{:.3}", ratio * 1e6)
}
