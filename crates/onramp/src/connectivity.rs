// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp connectivity`: sends data between two hosts that run the daemon, and judges from the daemon's counters whether
//! OR-ACKs go there and come back, keys agree, and clocks agree.
use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Subcommand;
use onramp_status::{netns_inode, query, sockets, Status};

/// Data each way: so many sampled bytes that lost ones do not matter.
const BYTES: u64 = 2_000_000;
const CHUNK: usize = 65_536;
/// Longest wait for the peer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for the last OR-ACKs.
const SETTLE: Duration = Duration::from_millis(500);
const DEFAULT_PORT: u16 = 5197;

#[derive(Subcommand)]
pub enum Command {
    /// On the other host: send back what `connectivity test` sends, until interrupted. For tests only
    #[command(after_help = "Example: onramp connectivity serve")]
    Serve(ServeArgs),
    /// Send 2 MB to a peer that runs `connectivity serve`, and back, and judge OR-ACKs, keys and clocks
    #[command(
        after_help = "Example: onramp connectivity test 10.0.0.2\nThe exit code is 0 if all is well, else 1."
    )]
    Test(TestArgs),
}

#[derive(clap::Args)]
pub struct ServeArgs {
    /// TCP port to listen on
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
}

#[derive(clap::Args)]
pub struct TestArgs {
    /// Address of the peer
    peer: IpAddr,
    /// TCP port of `connectivity serve` there
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Device of the daemon here [default: the first daemon in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// Socket of a daemon that was started with --socket
    #[arg(long, conflicts_with = "dev")]
    socket: Option<PathBuf>,
}

pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Serve(args) => serve(args.port).map(|()| ExitCode::SUCCESS),
        Command::Test(args) => test(args),
    }
}

/// One connection at a time: this is no service.
fn serve(port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).with_context(|| {
        format!("cannot listen on TCP port {port}; choose another with --port here and there")
    })?;
    println!("onramp connectivity: port {port}, until interrupted");
    loop {
        let (stream, from) = listener.accept()?;
        match send_back(stream) {
            Ok(bytes) => println!("{from}: {bytes} B"),
            Err(error) => println!("{from}: {error}"),
        }
    }
}

fn send_back(mut stream: TcpStream) -> io::Result<u64> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let reader = stream.try_clone()?;
    io::copy(&mut reader.take(BYTES), &mut stream)
}

fn test(args: &TestArgs) -> Result<ExitCode> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => {
            let netns = netns_inode().context("reading the network namespace")?;
            sockets(netns, args.dev.as_deref())?.remove(0)
        }
    };
    let before: Status = query(&socket)?;
    let to = SocketAddr::new(args.peer, args.port);
    let moved = exchange(to).with_context(|| {
        format!(
            "cannot exchange data with {to}; start there: onramp connectivity serve --port {}",
            args.port
        )
    })?;
    thread::sleep(SETTLE);
    let after: Status = query(&socket)?;
    println!("{moved} B there and back");
    let lines = judge(&before, &after, args.peer);
    for line in &lines {
        let state = if line.is_good { "ok" } else { "FAILED" };
        println!("{:<14} {state:<7} {}", line.what, line.found);
    }
    Ok(match lines.iter().all(|line| line.is_good) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Sends and receives at the same time. Returns the bytes that came back.
fn exchange(to: SocketAddr) -> io::Result<u64> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream.try_clone()?;
    let sender = thread::spawn(move || -> io::Result<()> {
        let chunk = vec![0; CHUNK];
        let mut left = BYTES as usize;
        while left > 0 {
            let bytes = left.min(CHUNK);
            writer.write_all(&chunk[..bytes])?;
            left -= bytes;
        }
        writer.shutdown(Shutdown::Write)
    });
    let mut reader = stream;
    let back = io::copy(&mut reader, &mut io::sink())?;
    sender.join().expect("the sender does not panic")?;
    Ok(back)
}

/// What was found about one thing.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    what: &'static str,
    is_good: bool,
    found: String,
}

/// Other traffic of the host counts too, so only growth that nothing else explains is a failure.
fn judge(before: &Status, after: &Status, peer: IpAddr) -> Vec<Line> {
    let grown = |name: &str| {
        let value = |status: &Status| status.counter(name).unwrap_or(0);
        value(after).saturating_sub(value(before))
    };
    let from_peer = |status: &Status| {
        let found = status.peers.iter().find(|known| known.addr == peer);
        found.map_or(0, |known| known.oracks)
    };
    let back = from_peer(after).saturating_sub(from_peer(before));
    let (sent, refused) = (grown("oracks_sent"), grown("oracks_refused"));
    let (bad_tag, stale) = (grown("oracks_bad_tag"), grown("oracks_stale"));
    let absurd = grown("oracks_absurd");
    let lease_s = after.clock.lease_left_ns as f64 / 1e9;
    let line = |what, is_good, good: String, bad: String| Line {
        what,
        is_good,
        found: if is_good { good } else { bad },
    };
    vec![
        line(
            "lease",
            lease_s > 0.0,
            format!("fleet time is valid for {lease_s:.1} s"),
            "no valid fleet time here; see onramp clock status".to_owned(),
        ),
        line(
            "OR-ACKs there",
            sent > 0 && refused == 0,
            format!("{sent} sent"),
            match refused {
                0 => format!("none sent: is {peer} a peer of this daemon? See --peers, and --clock huygens' members"),
                _ => format!("{refused} answered with port unreachable: no daemon runs on {peer}"),
            },
        ),
        line(
            "OR-ACKs back",
            back > 0,
            format!("{back} used"),
            format!("none used: does the daemon run on {peer}, is this host its peer, does the network pass UDP 5199?"),
        ),
        line(
            "keys",
            bad_tag == 0,
            "no OR-ACK with a wrong tag".to_owned(),
            format!("{bad_tag} OR-ACKs with a wrong tag or unknown key: give both hosts the same --key-file"),
        ),
        line(
            "clocks",
            stale == 0 && absurd == 0,
            delay(after, peer),
            format!("{stale} OR-ACKs stale and {absurd} absurd: the clocks differ; see onramp clock status on both hosts"),
        ),
    ]
}

fn delay(status: &Status, peer: IpAddr) -> String {
    let found = status.peers.iter().find(|known| known.addr == peer);
    match found.and_then(|known| known.owd_min_ns) {
        Some(ns) => format!("minimum one-way delay {:.1} us", ns as f64 / 1e3),
        None => "no OR-ACK from another time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(counters: &[(&str, u64)], oracks: u64, lease_left_ns: i64) -> Status {
        let json = serde_json::json!({
            "version": "", "pid": 1, "devices": [], "path": "edge", "law": "final", "threshold_ns": null,
            "max_pause_ns": 1, "authenticated": true, "flows": 0, "max_flows": 1,
            "health": {"peers_without_threshold": 0, "silent_peers": [], "peers_beyond_threshold": []},
            "clock": {"source": "local", "offset_ns": 0, "reference_mono_ns": 0, "drift": 0.0, "sigma_ns": 0,
                "lease_left_ns": lease_left_ns},
            "peers": [{"addr": "10.0.0.2", "owd_last_ns": 1, "owd_min_ns": 20_500, "owd_ewma_ns": 1,
                "oracks": oracks, "holds": 0, "held_ns": 0, "threshold": null}],
            "counters": counters.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        });
        serde_json::from_value(json).unwrap()
    }

    /// The lines that are not good, after these counters have grown.
    fn failed(counters: &[(&str, u64)], oracks: u64, lease_left_ns: i64) -> Vec<&'static str> {
        let lines = judge(
            &status(&[("oracks_sent", 5), ("oracks_bad_tag", 7)], 3, 1),
            &status(counters, oracks, lease_left_ns),
            "10.0.0.2".parse().unwrap(),
        );
        let bad = lines.iter().filter(|line| !line.is_good);
        bad.map(|line| line.what).collect()
    }

    #[test]
    fn each_trouble_is_one_line() {
        let good = ("oracks_sent", 9);
        let same_tags = ("oracks_bad_tag", 7);
        assert!(failed(&[good, same_tags], 4, 1).is_empty());
        assert_eq!(failed(&[good, same_tags], 4, -1), ["lease"]);
        assert_eq!(failed(&[("oracks_sent", 5)], 4, 1), ["OR-ACKs there"]);
        assert_eq!(
            failed(&[good, ("oracks_refused", 1)], 4, 1),
            ["OR-ACKs there"]
        );
        assert_eq!(failed(&[good], 3, 1), ["OR-ACKs back"]);
        assert_eq!(failed(&[good, ("oracks_bad_tag", 8)], 4, 1), ["keys"]);
        assert_eq!(failed(&[good, ("oracks_stale", 1)], 4, 1), ["clocks"]);
    }

    #[test]
    fn what_is_sent_comes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let server = thread::spawn(move || send_back(listener.accept().unwrap().0).unwrap());
        assert_eq!(exchange(to).unwrap(), BYTES);
        assert_eq!(server.join().unwrap(), BYTES);
    }
}
