// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A real `onramp agent run` on a host's eth0.
//! machine: its time is virtual (main.rs).
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{kill, Signal},
    unistd::Pid,
};
use onramp_status::{clock_socket_path, query, socket_path, Clock, Peer, Status, StatusError};
use serde::de::DeserializeOwned;

use crate::{
    guest::wait_until,
    net::Host,
    tcp::{finish_all, transfers, Load},
};

pub const PROGRAM: &str = "/job/onramp";
/// Loading the programs takes 0.5 to 2 s.
const START: Duration = Duration::from_secs(20);
/// How much later than asked a held flow may go: timers, and the packets before it.
pub const LATENESS_NS: u64 = 2_000_000;
/// For networks of 100 Mbit/s: shorter GSO segments and a threshold above the burst of a few of them, longer
/// pauses and delays, a small table. Without a guard, because lies of the facts make it raise T.
pub const USUAL: &[&str] = &[
    "--guard",
    "off",
    "--threshold",
    "5ms",
    "--max-pause",
    "100ms",
    "--max-owd",
    "1s",
    "--line-rate",
    "100Mbit/s",
    "--flows",
    "256",
    "--gso-max",
    "16kB",
];

/// Writes a key file that only its owner can read, as daemons demand.
pub fn write_keys(path: &str, text: &str) {
    std::fs::write(path, text).expect("/tmp is writable");
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
}

/// Number of the next daemon's log.
static LOGS: AtomicU32 = AtomicU32::new(0);

/// How a daemon ended.
#[derive(Debug)]
pub struct Ended {
    /// None: by a signal.
    pub code: Option<i32>,
    /// What it wrote to standard error.
    pub text: String,
}

/// Exit code, output and errors of the program with these arguments on a host.
pub fn onramp(host: &Host, words: &[&str]) -> (Option<i32>, String, String) {
    let command = &mut host.ns.command(&[&[PROGRAM], words].concat());
    let output = command.output().expect("ip starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A running daemon, killed when dropped.
pub struct Agent {
    child: Child,
    host: Host,
    log: String,
}

impl Agent {
    /// Starts a daemon with the usual options and these, and waits until it holds.
    pub fn start(host: &Host, options: &[&str]) -> Self {
        Self::start_exactly(host, &[USUAL, options].concat())
    }

    /// Starts a daemon that only observes, with the usual options otherwise.
    pub fn observe(host: &Host) -> Self {
        Self::observe_with(host, &[])
    }

    pub fn observe_with(host: &Host, options: &[&str]) -> Self {
        let usual = USUAL.chunks(2).filter(|option| option[0] != "--gso-max");
        let usual: Vec<&str> = usual.flatten().copied().collect();
        Self::start_exactly(host, &[&usual, &["--observe"][..], options].concat())
    }

    pub fn start_exactly(host: &Host, options: &[&str]) -> Self {
        Self::start_build(PROGRAM, host, options)
    }

    /// As `start_exactly`, of this build of the program.
    pub fn start_build(program: &str, host: &Host, options: &[&str]) -> Self {
        let mut agent = Self::spawn(program, host, options);
        let deadline = Instant::now() + START;
        while !agent.answers(program) {
            if let Some(ended) = agent.ended_by(Instant::now()) {
                panic!("the daemon on {} ended: {ended:?}", host.ns.0);
            }
            assert!(
                Instant::now() < deadline,
                "the daemon on {} does not answer: {}",
                host.ns.0,
                agent.text()
            );
            thread::sleep(Duration::from_millis(20));
        }
        agent
    }

    /// Starts a daemon with exactly these options, which must make it refuse.
    pub fn refuse(host: &Host, options: &[&str]) -> Ended {
        let mut agent = Self::spawn(PROGRAM, host, options);
        let ended = agent.ended_by(Instant::now() + START);
        let ended = ended.unwrap_or_else(|| panic!("{options:?} was accepted: {}", agent.text()));
        assert!(
            ended.code.is_some_and(|code| code != 0),
            "{options:?}: {ended:?}"
        );
        ended
    }

    fn spawn(program: &str, host: &Host, options: &[&str]) -> Self {
        let mut words = vec![program, "agent", "run"];
        // A file of a fact names its devices.
        if !options.contains(&"--dev") && !options.contains(&"--config") {
            words.extend(["--dev", "eth0"]);
        }
        // A later option stands in for a usual one of the same name.
        let mut given: Vec<&[&str]> = vec![];
        for option in options.chunk_by(|_, next| !next.starts_with("--")) {
            given.retain(|usual| usual[0] != option[0]);
            given.push(option);
        }
        words.extend(given.concat());
        let log = format!(
            "/tmp/{}-{}.log",
            host.ns.0,
            LOGS.fetch_add(1, Ordering::Relaxed)
        );
        let mut command = host.ns.command(&words);
        command
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(File::create(&log).expect("/tmp is writable"));
        Self {
            child: command.spawn().expect("ip starts"),
            host: host.clone(),
            log,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the daemon runs");
    }

    /// How the daemon ended, if it did by then.
    pub fn ended_by(&mut self, deadline: Instant) -> Option<Ended> {
        let status = match self.child.try_wait().expect("a child can be waited for") {
            Some(status) => status,
            None => wait_until(&mut self.child, deadline)?,
        };
        Some(Ended {
            code: status.code(),
            text: self.text(),
        })
    }

    /// Sends a signal and waits for the end.
    pub fn stop(mut self, signal: Signal) -> Ended {
        self.signal(signal);
        let ended = self.ended_by(Instant::now() + START);
        ended.unwrap_or_else(|| panic!("the daemon survives {signal}: {}", self.text()))
    }

    /// What the daemon tells `onramp status`.
    pub fn status(&self) -> Status {
        self.try_status()
            .unwrap_or_else(|| panic!("no status: {}", self.text()))
    }

    /// Another build's status may have other fields, so that build reads it.
    fn answers(&self, program: &str) -> bool {
        match program {
            PROGRAM => self.try_status().is_some(),
            _ => {
                let mut status = self.host.ns.command(&[program, "status"]);
                let output = status.output().expect("ip starts");
                output.status.success()
            }
        }
    }

    fn try_status(&self) -> Option<Status> {
        ask(&socket_path(self.host.ns.inode(), "eth0"))
    }

    /// What the daemon tells `onramp clock status`.
    pub fn clock_status(&self) -> onramp_clock::status::Status {
        ask(&clock_socket_path(self.host.ns.inode()))
            .unwrap_or_else(|| panic!("no clock status: {}", self.text()))
    }

    /// A counter of the clock.
    pub fn clock_counter(&self, name: &str) -> u64 {
        let counters = self.clock_status().counters;
        let found = counters.into_iter().find(|(counter, _)| counter == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.status()
            .counter(name)
            .unwrap_or_else(|| panic!("no counter {name}"))
    }

    pub fn descriptors(&self) -> usize {
        self.proc_entries("fd").len()
    }

    /// Memory of the process.
    pub fn rss_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        number(&status.expect("it runs"), "VmRSS:").expect("a size")
    }

    /// Memory of the maps and programs that the daemon holds open.
    pub fn bpf_bytes(&self) -> u64 {
        let files = self.proc_entries("fdinfo").into_iter();
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts.filter_map(|text| number(&text, "memlock:")).sum()
    }

    /// Processor time of all its threads so far.
    pub fn cpu_ns(&self) -> u64 {
        let of_thread = |thread: &PathBuf| {
            let text = fs::read_to_string(thread.join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.proc_entries("task").iter().filter_map(of_thread).sum()
    }

    fn proc_entries(&self, directory: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(format!("/proc/{}/{directory}", self.pid()));
        let entries = entries.expect("it runs").flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Waits for an event; the daemon looks once a second.
    pub fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < deadline, "not {what}: {}", self.text());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its clock when it is so; at most within this time.
    pub fn await_clock(&self, most: Duration, is_so: impl Fn(&Clock) -> bool) -> Clock {
        let deadline = Instant::now() + most;
        loop {
            let clock = self.status().clock;
            if is_so(&clock) {
                return clock;
            }
            assert!(Instant::now() < deadline, "{clock:?}: {}", self.text());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Goodput of two flows to another host, Mbit/s, and how often they were held.
    pub fn traffic(&self, to: &Host) -> (f64, u64) {
        let before = self.counter("holds");
        let mbit_per_s = finish_all(transfers(&self.host, to, Load::seconds(0.5), 2));
        let holds = self.counter("holds") - before;
        println!("{mbit_per_s:.1} Mbit/s, {holds} holds");
        (mbit_per_s, holds)
    }

    /// Its flows go on, and none is held.
    pub fn assert_open(&self, to: &Host) {
        let (mbit_per_s, holds) = self.traffic(to);
        assert_eq!(holds, 0);
        assert!(mbit_per_s > 80.0, "{mbit_per_s} Mbit/s");
    }

    /// What the daemon reports about a peer.
    pub fn peer(&self, peer: &Host) -> Peer {
        let peers = self.status().peers;
        let is_it = |p: &Peer| [peer.v4, peer.v6].contains(&p.addr);
        let found = peers.into_iter().find(is_it);
        found.unwrap_or_else(|| panic!("{} is not a peer", peer.v4))
    }

    /// Mean one-way delay to a peer, ms; gain 1/16 an OR-ACK.
    pub fn owd_ms(&self, peer: &Host) -> f64 {
        self.peer(peer).owd_ewma_ns as f64 / 1e6
    }

    /// No flow was paused beyond the cap, and nothing was dropped here.
    pub fn assert_harmless(&self) {
        let status = self.status();
        let value = |name: &str| status.counter(name).expect("a counter");
        let cap = status.max_pause_ns as u64;
        let held = value("held_max_ns");
        assert!(
            held <= cap + LATENESS_NS,
            "held {held} ns, cap {cap} ns: {status:#?}"
        );
        assert_eq!(value("limit_drops"), 0, "{status:#?}");
        let qdisc = self.host.ns.qdisc("eth0").expect("the qdisc is installed");
        assert_eq!(qdisc["drops"], 0, "{qdisc:#}");
    }
}

/// The number behind `field` in a file of /proc.
fn number(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Asks a daemon as the program does, but without a process, which would take longer than the answer. None if nobody
/// answers.
fn ask<T: DeserializeOwned>(socket: &Path) -> Option<T> {
    match query(socket) {
        Ok(answer) => Some(answer),
        Err(StatusError::Foreign { source, .. }) => panic!("JSON of its type: {source}"),
        Err(_) => None,
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            print!("daemon on {}: {}", self.host.ns.0, self.text());
        }
    }
}
