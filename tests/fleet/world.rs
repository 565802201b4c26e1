// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! An etcd and agents, on one 127.0.x.0/24 a test.
use std::{
    fs::{File, Permissions},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use etcd_client::{Client, ConnectOptions, PutOptions};
use nix::{
    sys::signal::{kill, Signal},
    unistd::Pid,
};
use onramp_clock::{
    stamps::now_mono_ns,
    status::{FleetClock, Status},
    wire::PORT,
};
use onramp_status::query_within;

use crate::machine::until;

/// A daemon without a processor is asked again after this.
const ANSWER: Duration = Duration::from_secs(1);
/// Clocks are 10 ppm and more apart: unsynchronised, they part by more than this in a window.
const RIGHT_NS: f64 = 10_000.0;
/// A status that comes later than this after the last one may be of another line.
const NEXT_NS: i64 = 1_000_000_000;
/// What a status' rounding may add to a jump.
const ROUNDED_NS: f64 = 5.0;

/// The address of a host of a test. No two tests have one `net`, and hardly two processes on this machine one second number.
pub fn ip(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 100 + (process::id() % 100) as u8, net, host)
}

/// A server, killed when dropped.
pub struct Etcd {
    child: Option<Child>,
    pub url: String,
    dir: PathBuf,
    options: Vec<String>,
}

impl Etcd {
    pub fn start(net: u8, dir: &Path, options: &[&str]) -> Etcd {
        let scheme = if options.is_empty() { "http" } else { "https" };
        let mut etcd = Etcd {
            child: None,
            url: format!("{scheme}://{}:2379", ip(net, 254)),
            dir: dir.to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        etcd.again();
        etcd
    }

    /// Starts it, with what it has remembered.
    pub fn again(&mut self) {
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../.cache/etcd/usr/bin/etcd"
        );
        let log = File::create(self.dir.join("etcd.log")).expect("a log");
        let peer = self.url.replace("2379", "2380").replace("https", "http");
        let child = Command::new(program)
            .args(["--data-dir", &self.data().to_string_lossy()])
            .args([
                "--listen-client-urls",
                &self.url,
                "--advertise-client-urls",
                &self.url,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args([
                "--initial-cluster",
                &format!("default={peer}"),
                "--logger",
                "zap",
            ])
            .args(&self.options)
            .stderr(log)
            .spawn();
        self.child =
            Some(child.unwrap_or_else(|e| panic!("{program}: {e}; make setup fetches it")));
        let address = self.url.split("//").nth(1).expect("a URL").to_owned();
        until("etcd listens", || TcpStream::connect(&address).is_ok());
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
    }

    /// Forgets everything.
    pub fn wipe(&self) {
        std::fs::remove_dir_all(self.data()).expect("it was there");
    }

    fn data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    /// Runs a conversation with it.
    pub fn ask<T>(&self, options: Option<ConnectOptions>, ask: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let client = Client::connect([&self.url], options).await;
            ask(client.expect("it answers")).await
        })
    }

    /// Puts a key of a fleet's member, with a lease that lasts if asked to; returns the lease.
    pub fn put_member(&self, name: &str, value: &str, is_leased: bool) -> i64 {
        let key = format!("/onramp/default/members/{name}");
        self.ask(None, async |mut client| {
            let mut lease = 0;
            if is_leased {
                let granted = client.lease_grant(3600, None).await;
                lease = granted.expect("a lease").id();
            }
            let with_lease = PutOptions::new().with_lease(lease);
            client.put(key, value, Some(with_lease)).await.expect("put");
            lease
        })
    }

    pub fn revoke(&self, lease: i64) {
        self.ask(None, async |mut client| {
            client.lease_revoke(lease).await.expect("revoked");
        });
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An `onramp clock run`, killed when dropped.
pub struct Agent {
    child: Child,
    pub own: SocketAddr,
    socket: PathBuf,
    log: PathBuf,
}

impl Agent {
    fn spawn(dir: &Path, own: SocketAddr, name: &str, options: &[&str]) -> Agent {
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = STARTED.fetch_add(1, Ordering::Relaxed);
        let (socket, log) = (
            dir.join(format!("{name}-{n}")),
            dir.join(format!("{name}-{n}.log")),
        );
        let child = Command::new(env!("CARGO_BIN_EXE_onramp"))
            .args(["clock", "run", "--own", &own.to_string(), "--node", name])
            .args(["--socket", &socket.to_string_lossy()])
            .args(options)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("onramp starts");
        Agent {
            child,
            own,
            socket,
            log,
        }
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Ends it; the exit code, unless it was killed.
    pub fn stop(&mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.child.wait().expect("a child").code()
    }

    /// The exit code, when it ends by itself.
    pub fn ends(&mut self) -> Option<i32> {
        self.child.wait().expect("a child").code()
    }

    /// Its code, if it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("a child");
        status.map(|status| status.code().expect("nobody kills it"))
    }

    /// None before it answers.
    pub fn try_status(&self) -> Option<Status> {
        query_within(&self.socket, ANSWER).ok()
    }

    /// Asks until it answers: it may have no processor just now.
    pub fn status(&self) -> Status {
        let mut status = None;
        until("it answers", || {
            status = self.try_status();
            status.is_some()
        });
        status.expect("it has answered")
    }

    /// What `onramp clock status` prints.
    pub fn shown(&self) -> String {
        let command = &mut Command::new(env!("CARGO_BIN_EXE_onramp"));
        let output = command
            .args(["clock", "status", "--socket"])
            .arg(&self.socket)
            .output()
            .expect("onramp starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn count(&self, name: &str) -> u64 {
        let counters = self.status().counters;
        let found = counters.into_iter().find(|(counter, _)| counter == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            println!("{}:\n{}", self.own, self.text());
        }
    }
}

/// Agents of one fleet.
pub struct Fleet {
    pub net: u8,
    pub etcd: Etcd,
    /// By number, from 1; none: it does not run.
    pub agents: Vec<Option<Agent>>,
    pub dir: PathBuf,
    /// When the hosts' clocks were `n` ms ahead, each; they have drifted since.
    since_mono_ns: i64,
    /// What each said last, and the largest jump of all in sigmas.
    last: Vec<Option<FleetClock>>,
    pub jump: f64,
    worst_ns: f64,
}

impl Fleet {
    /// An etcd and so many agents, which have a fleet time.
    pub fn start(net: u8, agents: usize) -> Fleet {
        let mut fleet = Fleet::empty(net, &[]);
        (1..=agents).for_each(|n| fleet.launch(n, &[]));
        fleet.settle();
        fleet
    }

    /// An etcd alone.
    pub fn empty(net: u8, options: &[&str]) -> Fleet {
        let name = format!("onramp-fleet-{}-{net}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a directory");
        Fleet {
            etcd: Etcd::start(net, &dir, options),
            net,
            agents: vec![],
            dir,
            since_mono_ns: now_mono_ns(),
            last: vec![],
            jump: 0.0,
            worst_ns: 0.0,
        }
    }

    /// Writes the key file of the fleet; its path.
    pub fn write_keys(&self, text: &str) -> String {
        let path = self.dir.join("keys");
        std::fs::write(&path, text).expect("written");
        let private = Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, private).expect("it is ours");
        path.to_string_lossy().into_owned()
    }

    pub fn address(&self, n: usize) -> SocketAddr {
        SocketAddr::from((ip(self.net, n as u8), PORT))
    }

    /// Starts agent `n`, with these options instead of the way to etcd if there are any.
    pub fn launch(&mut self, n: usize, options: &[&str]) {
        let url = self.etcd.url.clone();
        let usual = ["--etcd", &url];
        let options = if options.is_empty() {
            &usual[..]
        } else {
            options
        };
        self.agents
            .resize_with(self.agents.len().max(n + 1), || None);
        self.last.resize(self.agents.len(), None);
        self.last[n] = None;
        self.agents[n] = Some(self.spawn(n, &format!("n{n}"), options));
    }

    /// Starts an agent that is not looked after.
    pub fn spawn(&self, n: usize, name: &str, options: &[&str]) -> Agent {
        let drift = ((n % 16) as f64 - 3.0) * 1e-5;
        let offset_ns = n as i64 * 1_000_000 - (drift * self.since_mono_ns as f64) as i64;
        let clock = format!("offset={offset_ns}ns,drift={drift}");
        let options = [options, &["--synthetic-clock", &clock]].concat();
        Agent::spawn(&self.dir, self.address(n), name, &options)
    }

    pub fn agent(&self, n: usize) -> &Agent {
        self.agents[n].as_ref().expect("it runs")
    }

    pub fn running(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().flatten()
    }

    /// Ends agent `n`.
    pub fn stop(&mut self, n: usize, signal: Signal) {
        self.agents[n].take().expect("it runs").stop(signal);
        self.last[n] = None;
    }

    /// Number of the agent that the others follow, and the term.
    pub fn leader(&self, of: usize) -> Option<(usize, u64)> {
        let status = self.agent(of).try_status()?;
        let leader = status.membership.coordinator?;
        let n = (1..self.agents.len()).find(|n| self.address(*n) == leader)?;
        Some((n, status.membership.term))
    }

    /// Whether all that run are members of one fleet of that many, and have its time.
    pub fn is_whole(&self) -> bool {
        let all: Vec<_> = self.running().map(Agent::try_status).collect();
        let first = all[0].as_ref().and_then(|s| s.membership.coordinator);
        all.iter().all(|status| {
            status.as_ref().is_some_and(|s| {
                s.clock.is_some()
                    && s.membership.members == all.len()
                    && s.membership.coordinator == first
            })
        })
    }

    /// Whether nobody doubts its clock by more than it may be wrong.
    fn is_sure(&self) -> bool {
        let clocks = self.running().map(|agent| agent.try_status()?.clock);
        clocks
            .into_iter()
            .all(|clock| clock.is_some_and(|clock| (clock.sigma_ns as f64) < RIGHT_NS))
    }

    /// Until the fleet is whole and sure; then two windows for what is learnt late.
    pub fn settle(&mut self) {
        until("the fleet is whole", || self.is_whole() && self.is_sure());
        self.watch(2);
    }

    /// Looks until all that run have ended so many windows more: nobody is wrong, and nobody jumps by more than its sigma.
    pub fn watch(&mut self, windows: u64) {
        let count = |fleet: &Fleet| -> Vec<u64> {
            fleet
                .running()
                .map(|agent| agent.count("windows"))
                .collect()
        };
        let before = count(self);
        self.until("windows end", |fleet| {
            count(fleet)
                .iter()
                .zip(&before)
                .all(|(now, before)| *now >= before + windows)
        });
    }

    pub fn look(&mut self) {
        let mut times = vec![];
        for n in 1..self.agents.len() {
            let status = self.agents[n].as_ref().and_then(Agent::try_status);
            let clock = status.and_then(|status| status.clock);
            if let (Some(last), Some(clock)) = (&self.last[n], &clock) {
                let at = clock.reference_mono_ns;
                let jump_ns = (at_ns(clock, at) - at_ns(last, at)).abs() - ROUNDED_NS;
                let jump = jump_ns / clock.sigma_ns.max(last.sigma_ns) as f64;
                // What a host said is good until its next line: no jump if more than that lies between, as
                // when another agent does not answer us.
                let is_next = at - last.reference_mono_ns < NEXT_NS;
                self.jump = self.jump.max(if is_next { jump } else { 0.0 });
                assert!(
                    jump <= 1.0 || !is_next,
                    "n{n} jumped by {jump_ns} ns: {last:?}, {clock:?}"
                );
            }
            self.last[n] = clock;
            times.extend(clock.map(|clock| (n, clock)));
        }
        let now = now_mono_ns();
        let mut sorted: Vec<f64> = times.iter().map(|(_, c)| at_ns(c, now)).collect();
        sorted.sort_by(f64::total_cmp);
        for (n, clock) in &times {
            let error_ns = (at_ns(clock, now) - sorted[sorted.len() / 2]).abs();
            self.worst_ns = self.worst_ns.max(error_ns);
            // The median may be off, too, and who says so is asked of both.
            let sigma_ns = times.iter().map(|(_, clock)| clock.sigma_ns).max();
            let most_ns = 1_000.0 + 5.0 * sigma_ns.unwrap_or(0) as f64;
            assert!(error_ns < most_ns, "n{n} is {error_ns} ns off: {times:?}");
        }
    }

    /// Waits, and looks meanwhile.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Fleet) -> bool) {
        until(what, || {
            self.look();
            is_so(self)
        });
    }

    /// Whether nobody of these has a fleet time.
    pub fn is_timeless(&self, agents: &[usize]) -> bool {
        agents
            .iter()
            .all(|n| self.agent(*n).status().clock.is_none())
    }

    /// Fleet time less CLOCK_MONOTONIC of agent `n`, ns.
    pub fn offset_ns(&self, n: usize, mono_ns: i64) -> f64 {
        let clock = self.agent(n).status().clock.expect("it has one");
        at_ns(&clock, mono_ns)
    }

    pub fn steps(&self) -> u64 {
        self.running().map(|agent| agent.count("fleet_steps")).sum()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let (worst_ns, jump) = (self.worst_ns, self.jump);
        println!(
            "nobody was off by more than {worst_ns:.0} ns, or jumped by more than {jump:.2} sigma"
        );
        if !thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

fn at_ns(clock: &FleetClock, mono_ns: i64) -> f64 {
    clock.offset_ns as f64 + clock.drift * (mono_ns - clock.reference_mono_ns) as f64
}
