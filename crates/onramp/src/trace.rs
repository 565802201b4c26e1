// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp trace`: one flow, a line a look, until Ctrl-C or until the flow leaves the flow table.
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, Result};
use onramp_runs::cancelled_by_signals;
use onramp_status::{find_flow, Ends, Flow, Found};
use onramp_units::Span;

use crate::daemons::{Daemons, Interval};

const SHORTEST: Span = Span::from_ms(1);
/// Longest time until Ctrl-C is noticed.
const NAP: Duration = Duration::from_millis(20);

#[derive(clap::Args)]
pub struct Args {
    /// This host's end of the flow, ADDRESS:PORT
    from: SocketAddr,
    /// The peer's end of the flow, ADDRESS:PORT
    to: SocketAddr,
    #[command(flatten)]
    daemons: Daemons,
    #[command(flatten)]
    interval: Interval,
    /// Print a JSON object a look
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let interval = args.interval.at_least(SHORTEST)?;
    let ends = Ends {
        from: args.from,
        to: args.to,
    };
    let stop = cancelled_by_signals();
    let sockets = args.daemons.sockets()?;
    let (socket, first) = first_look(&sockets, ends)?;
    if !args.json {
        println!("{}", head());
    }
    let mut before = first.clone();
    let mut flow = first;
    loop {
        match args.json {
            true => println!("{}", serde_json::to_string(&flow)?),
            false => println!("{}", line(&before, &flow)),
        }
        before = flow;
        if !sleep(interval, stop) {
            return Ok(());
        }
        match find_flow(socket, ends)?.flow {
            Some(next) => flow = next,
            None => {
                eprintln!("the flow has left the flow table");
                return Ok(());
            }
        }
    }
}

/// The socket of the daemon that knows the flow, and the flow.
fn first_look(sockets: &[PathBuf], ends: Ends) -> Result<(&Path, Flow)> {
    let mut candidates: Vec<Ends> = vec![];
    for socket in sockets {
        let Found {
            flow,
            candidates: more,
        } = find_flow(socket, ends)?;
        if let Some(flow) = flow {
            return Ok((socket, flow));
        }
        // A daemon has a socket for each of its devices.
        candidates.extend(
            more.iter()
                .filter(|ends| !candidates.contains(ends))
                .copied()
                .collect::<Vec<_>>(),
        );
    }
    bail!(missing(ends, &candidates))
}

/// That a flow does not exist, and which do.
fn missing(ends: Ends, candidates: &[Ends]) -> String {
    let such = format!(
        "no flow from {} to {} is in the flow table",
        ends.from, ends.to
    );
    if candidates.is_empty() {
        return format!("{such}, which is empty: only TCP flows from this host to peers are in it (onramp status)");
    }
    let commands: Vec<String> = candidates
        .iter()
        .map(|ends| format!("\n  onramp trace {ends}"))
        .collect();
    format!("{such}; these are, most alike first:{}", commands.concat())
}

/// Whether it has slept to the end.
fn sleep(time: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(NAP));
    }
    false
}

fn head() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>10} {:>10}  verdict",
        "Mbit/s", "delay us", "age ms", "T us", "asked %", "held us", "OR-ACKs/s", "pauses/s"
    )
}

/// A look. Rates are those since the look before; OR-ACKs and pauses are those of all flows to the peer.
fn line(before: &Flow, now: &Flow) -> String {
    let seconds = (now.mono_ns - before.mono_ns) as f64 / 1e9;
    let rate = |before: u64, now: u64| match seconds > 0.0 {
        true => Some(now.saturating_sub(before) as f64 / seconds),
        false => None,
    };
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let in_units = |ns: Option<i64>, unit_ns: f64| ns.map(|ns| ns as f64 / unit_ns);
    let raised = if now.is_raised {
        ", T raised by the guard"
    } else {
        ""
    };
    format!(
        "{:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>10} {:>10}  {}{raised}",
        number(
            rate(before.sent_bytes, now.sent_bytes).map(|bytes| bytes * 8e-6),
            1
        ),
        number(in_units(now.owd_ns, 1e3), 1),
        number(in_units(now.sample_age_ns, 1e6), 1),
        number(in_units(now.threshold_ns, 1e3), 1),
        number(rate(before.paused_ns, now.paused_ns).map(|ns| ns * 1e-7), 1),
        number(Some(now.held_left_ns as f64 / 1e3), 1),
        number(rate(before.peer_oracks, now.peer_oracks), 0),
        number(rate(before.peer_holds, now.peer_holds), 0),
        now.verdict.text(),
    )
}

#[cfg(test)]
mod tests {
    use onramp_status::Verdict;

    use super::*;

    fn flow(seconds: i64) -> Flow {
        Flow {
            ends: "10.0.0.1:4000 10.0.0.2:80".parse().unwrap(),
            mono_ns: 1_000_000_000 * seconds,
            sent_bytes: 250_000 * seconds as u64,
            idle_ns: 0,
            owd_ns: Some(75_500),
            sample_age_ns: Some(2_000_000),
            threshold_ns: Some(50_000),
            is_raised: false,
            paused_ns: 250_000_000 * seconds as u64,
            held_left_ns: 25_500,
            peer_oracks: 10 * seconds as u64,
            peer_holds: 5 * seconds as u64,
            verdict: Verdict::Held,
        }
    }

    #[test]
    fn a_line_has_the_rates_since_the_look_before() {
        let text = line(&flow(1), &flow(3));
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = [
            "2.0", "75.5", "2.0", "50.0", "25.0", "25.5", "10", "5", "held",
        ];
        assert_eq!(words, expected);
        assert_eq!(
            head().split("  ").filter(|part| !part.is_empty()).count(),
            9
        );
    }

    #[test]
    fn the_first_line_has_no_rates() {
        let text = line(&flow(1), &flow(1));
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(
            words,
            ["-", "75.5", "2.0", "50.0", "-", "25.5", "-", "-", "held"]
        );
    }

    #[test]
    fn a_flow_that_does_not_exist_names_others_as_commands() {
        let ends: Ends = "10.0.0.1:4000 10.0.0.2:80".parse().unwrap();
        let other: Ends = "10.0.0.1:4001 10.0.0.2:80".parse().unwrap();
        let text = missing(ends, &[other]);
        assert!(
            text.ends_with("\n  onramp trace 10.0.0.1:4001 10.0.0.2:80"),
            "{text}"
        );
        assert!(missing(ends, &[]).contains("empty"));
    }
}
