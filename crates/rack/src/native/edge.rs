// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The On-Ramp daemons of a rack: starts one `onramp agent run` in each host, as an operator does, reads its
//! counters over its socket, and stops it. Does not know what daemons do.

use super::dilation::Dilation;
use super::sys::{self, NetNs};
use super::{clocks, links};
use crate::error::{Doing, Error, Result};
use onramp_law::defaults;
use onramp_scenario::{ClockSync, HostSettings, Law, Run};
use onramp_status::{query_within, Status, StatusError};
use onramp_sync::correction::{self, Correction};
use onramp_sync::synthetic::Oscillator;
use onramp_units::{Bytes, Span, Time};
use rustix::fd::AsRawFd;
use rustix::process::{kill_process, Pid, Signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for a daemon to answer or to end: on one processor 64 of them take a second each.
const PATIENCE: Duration = Duration::from_secs(120);
/// Processor time until a daemon answers, nearly all of it the kernel's check of its BPF programs. Only
/// progress depends on it.
const LOADING: Duration = Duration::from_millis(1050);
/// Longest wait for one answer of a daemon that may still be loading.
const ANSWER: Duration = Duration::from_secs(1);
/// Flows a daemon tracks: all that a rack has between hosts, with room.
const FLOWS: u32 = 1024;
/// From the first fleet time of the last host until lines are fitted to as much as they ever are.
const SETTLING: Duration = Duration::from_secs(8);

/// Running daemons; ended when dropped.
#[derive(Debug)]
pub struct Edges {
    agents: Vec<Agent>,
    /// Sockets and logs.
    directory: TempDir,
}

#[derive(Debug)]
struct Agent {
    host: u32,
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Edges {
    /// Starts a daemon in each host that has one and waits until all answer. `progress` gets the fraction of the start-up
    /// time that has passed.
    pub fn start(
        run: &Run,
        hosts: &[NetNs],
        agent: &Path,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Edges> {
        let directory = tempfile::tempdir().doing(|| "making a directory for sockets".into())?;
        let mut edges = Edges {
            agents: Vec::new(),
            directory,
        };
        let clocks = clocks::wrong(run);
        for host in run.edge_hosts() {
            let (namespace, clock) = (&hosts[host as usize], &clocks[host as usize]);
            let socket = edges.directory.path().join(format!("agent-{host}.sock"));
            let mut line = arguments(run, host, &socket);
            line.extend(clock_arguments(run, clock, host));
            edges
                .agents
                .push(Agent::spawn(host, namespace, agent, &line, socket)?);
        }
        // They load in parallel, and answer at about the same time.
        let (started, takes) = (Instant::now(), LOADING.mul_f64(edges.agents.len() as f64));
        let mut loading = || progress(started.elapsed().div_duration_f64(takes).min(1.0));
        for agent in &mut edges.agents {
            agent.wait_until("answers", &mut loading, |_| true)?;
        }
        if run.clock.sync == ClockSync::Huygens {
            for agent in &mut edges.agents {
                agent.wait_until("knows fleet time", &mut loading, |status| {
                    fleet_time(status).is_some()
                })?;
            }
            std::thread::sleep(SETTLING);
        }
        Ok(edges)
    }

    /// Sum of each counter over all daemons; the largest value of a maximum.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let mut sums = BTreeMap::new();
        for agent in &self.agents {
            let status = agent
                .status()
                .map_err(|error| agent.failed(format!("its status: {error}")))?;
            add_counters(&status, &mut sums);
        }
        Ok(sums)
    }

    /// Fleet times of the hosts that have it at CLOCK_MONOTONIC `at_ns`, and their estimated standard
    /// deviations, ns.
    pub fn fleet_times(&self, at_ns: i64) -> Vec<(i64, f64)> {
        let at = Time::from_ticks(at_ns);
        let published = |agent: &Agent| {
            let clock = fleet_time(&agent.status().ok()?)?;
            Some((clock.fleet(at).ticks(), clock.error.sigma_ns))
        };
        self.agents.iter().filter_map(published).collect()
    }

    /// Ends all daemons in order.
    pub fn stop(mut self) -> Result<()> {
        self.agents.iter().for_each(Agent::terminate);
        for agent in &mut self.agents {
            agent.wait_for_the_end()?;
        }
        self.agents.clear();
        Ok(())
    }
}

impl Drop for Edges {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            agent.terminate();
            let _ = agent.wait_for_the_end();
        }
    }
}

/// Arguments of a host's daemon, all in the rack's time.
fn arguments(run: &Run, host: u32, socket: &Path) -> Vec<String> {
    let dilation = Dilation::new(run.time_dilation);
    let rate = dilation
        .slow_rate(run.network.link_of(host).rate)
        .to_string();
    let slow = |span: Span| dilation.slow(span).to_string();
    let HostSettings { host, onramp, .. } = run.settings_of(host);
    let gain = f64::from(onramp.gain.q16()) / 65536.0;
    // With law off, segments have the same size as without On-Ramp.
    let gso = if onramp.law == Law::Off {
        host.gso
    } else {
        onramp.gso
    };
    let orack_every = run
        .shared_onramp()
        .orack_every
        .map(|every| ("--orack-every", every.to_string()));
    let ahead = host.nic_queue;
    let ahead = (ahead > Bytes::ZERO).then(|| ("--shape-ahead", ahead.to_string()));
    let stamp = (!onramp.subtract_nic_queue).then(|| ("--stamp", "qdisc".to_owned()));
    let options = [
        ("--config", "/dev/null".to_owned()), // not that of the machine
        ("--dev", "eth0".to_owned()),
        ("--law", onramp.law.to_string()),
        ("--threshold", slow(onramp.t())),
        ("--gain", gain.to_string()),
        ("--max-pause", slow(onramp.max_pause)),
        ("--guard", onramp.guard.0.map_or("off".to_owned(), slow)),
        ("--max-owd", slow(defaults::MAX_OWD)),
        ("--gate-tau", slow(defaults::GATE_TAU)),
        ("--gso-max", gso.to_string()),
        (
            "--pace",
            if onramp.pacing { "on" } else { "off" }.to_owned(),
        ),
        ("--shape", rate.clone()),
        ("--line-rate", rate),
        ("--peers", "10.0.0.0/8".to_owned()),
        ("--flows", FLOWS.to_string()),
        ("--socket", socket.display().to_string()),
    ];
    let run = ["agent", "run"].into_iter().map(str::to_owned);
    run.chain(
        options
            .into_iter()
            .chain(orack_every)
            .chain(ahead)
            .chain(stamp)
            .flat_map(|(name, value)| [name.to_owned(), value]),
    )
    .collect()
}

/// Options of a host's clock and of its synchronisation.
fn clock_arguments(run: &Run, clock: &Oscillator, host: u32) -> Vec<String> {
    let dilation = Dilation::new(run.time_dilation);
    let mut options = vec![("--synthetic-clock", clock.to_string())];
    if run.clock.sync == ClockSync::Huygens {
        let members = run.edge_hosts().map(|host| links::ipv4(host).to_string());
        // Dilation also scales the noise of stamps, so no noise is added.
        let noise = dilation.times() - 1;
        options.extend([
            ("--clock", "huygens".to_owned()),
            ("--member", members.collect::<Vec<_>>().join(",")),
            ("--own", links::ipv4(host).to_string()),
            ("--degree", run.clock.degree.to_string()),
            (
                "--probe-interval",
                dilation.slow(run.clock.probe_interval).to_string(),
            ),
            ("--synthetic-noise", noise.to_string()),
        ]);
    }
    let words = options
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value]);
    words.collect()
}

/// Fleet time over CLOCK_MONOTONIC, by a daemon's status; none when its lease is over.
fn fleet_time(status: &Status) -> Option<Correction> {
    let clock = &status.clock;
    (clock.lease_left_ns > 0).then_some(Correction {
        reference: Time::from_ticks(clock.reference_mono_ns),
        offset_ns: clock.offset_ns,
        drift: clock.drift,
        bend: 0.0,
        error: correction::Error {
            sigma_ns: clock.sigma_ns as f64,
            ..correction::Error::default()
        },
    })
}

/// Adds the counters of a daemon over all its peers. For a maximum the larger value stays.
fn add_counters(status: &Status, sums: &mut BTreeMap<String, u64>) {
    for (name, &value) in &status.counters {
        let sum = sums.entry(name.clone()).or_default();
        *sum = match name.contains("_max") {
            true => value.max(*sum),
            false => *sum + value,
        };
    }
}

impl Agent {
    fn spawn(
        host: u32,
        namespace: &NetNs,
        exe: &Path,
        arguments: &[String],
        socket: PathBuf,
    ) -> Result<Agent> {
        let log = socket.with_extension("log");
        let stderr = File::create(&log).map_err(|source| Error::File {
            path: log.clone(),
            source,
        })?;
        let fd = namespace.as_fd().as_raw_fd();
        let mut command = Command::new(exe);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        // SAFETY: two system calls, no allocation, between fork and exec.
        unsafe {
            command.pre_exec(move || {
                sys::die_with_parent()?;
                sys::join_in_child(fd)
            });
        }
        let child = command
            .spawn()
            .doing(|| format!("starting {} in host {host}", exe.display()))?;
        Ok(Agent {
            host,
            child,
            socket,
            log,
        })
    }

    fn failed(&self, reason: String) -> Error {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = log
            .trim()
            .lines()
            .last()
            .unwrap_or("it said nothing")
            .to_owned();
        Error::Agent {
            host: self.host,
            reason: format!("{reason} ({last})"),
        }
    }

    /// Waits until `right` holds for the daemon's status; `what` describes this state. Calls `waiting` from
    /// time to time.
    fn wait_until(
        &mut self,
        what: &str,
        waiting: &mut dyn FnMut(),
        right: impl Fn(&Status) -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        loop {
            waiting();
            if let Some(status) = self
                .child
                .try_wait()
                .doing(|| "waiting for an agent".into())?
            {
                return Err(self.failed(format!("ended at once with {status}")));
            }
            if query_within(&self.socket, ANSWER).is_ok_and(|s| right(&s)) {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                let patience = PATIENCE.as_secs();
                return Err(self.failed(format!("after {patience} s it is not so that it {what}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn status(&self) -> std::result::Result<Status, StatusError> {
        query_within(&self.socket, Duration::from_secs(5))
    }

    fn terminate(&self) {
        let pid = Pid::from_child(&self.child);
        // The process may have ended already.
        let _ = kill_process(pid, Signal::TERM);
    }

    fn wait_for_the_end(&mut self) -> Result<()> {
        let started = Instant::now();
        while self
            .child
            .try_wait()
            .doing(|| "waiting for an agent".into())?
            .is_none()
        {
            if started.elapsed() > PATIENCE {
                let _ = self.child.kill();
                return Err(self.failed(format!("ignores SIGTERM for {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;

    #[test]
    fn daemons_live_in_the_racks_time() {
        let text = "title = \"t\"\nduration = \"1 ms\"\ntime_dilation = 100\n[network]\n\
                    topology = { kind = \"star\", hosts = 3 }\n\
                    link = { rate = \"10 Gbit/s\", delay = \"1 us\" }\n\
                    [[traffic]]\nkind = \"long\"\nto = 0\nflows = 1\n\
                    [onramp]\nlaw = \"gate\"\nthreshold = \"40 us\"\norack_every = \"1448 B\"\n";
        let run = Scenario::parse(text, "t.toml").unwrap().runs()[0].clone();
        let line = arguments(&run, 0, Path::new("/s")).join(" ");
        assert!(line.contains("--orack-every 1.448 kB"), "{line}");
        assert!(line.contains("--law gate --threshold 4 ms"), "{line}");
        assert!(
            line.contains("--shape 100 Mbit/s --line-rate 100 Mbit/s"),
            "{line}"
        );
        assert!(line.contains("--gate-tau 100 ms --gso-max 16 kB"), "{line}");
    }

    #[test]
    fn each_daemon_gets_a_clock_of_its_own_and_the_scenarios_synchronisation() {
        let text = "title = \"t\"\nduration = \"1 ms\"\ntime_dilation = 100\n[network]\n\
                    topology = { kind = \"star\", hosts = 3 }\n\
                    link = { rate = \"10 Gbit/s\", delay = \"1 us\" }\n\
                    [clock]\noffset = \"1 ms\"\nsync = \"huygens\"\nprobe_interval = \"200 us\"\n\
                    window = \"20 ms\"\n\
                    [[traffic]]\nkind = \"long\"\nto = 0\nflows = 1\n";
        let run = Scenario::parse(text, "t.toml").unwrap().runs()[0].clone();
        let clocks = clocks::wrong(&run);
        assert!(clocks[0].offset != clocks[1].offset);
        let line = clock_arguments(&run, &clocks[1], 1).join(" ");
        for part in [
            &format!("--synthetic-clock {}", clocks[1]),
            "--member 10.0.0.1,10.0.0.2,10.0.0.3 --own 10.0.0.2",
            "--probe-interval 20 ms --synthetic-noise 99",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn counters_of_hosts_are_added_and_count_their_peers_once() {
        let status = |n| Status {
            version: String::new(),
            pid: 1,
            devices: vec![],
            law: "final".to_owned(),
            threshold_ns: None,
            max_pause_ns: 0,
            path: "edge".to_owned(),
            authenticated: false,
            clock: onramp_status::Clock::default(),
            health: onramp_status::Health::default(),
            flows: 0,
            max_flows: 0,
            peers: vec![onramp_status::Peer {
                addr: "10.0.0.1".parse().unwrap(),
                owd_last_ns: 0,
                owd_min_ns: None,
                owd_ewma_ns: 0,
                oracks: 0,
                holds: n,
                held_ns: n,
                threshold: None,
                looks_held_ns: None,
            }],
            counters: ["holds", "held_ns", "held_max_ns"]
                .map(|name| (name.to_owned(), n))
                .into(),
            trace: None,
        };
        let mut sums = BTreeMap::new();
        for n in [1, 2] {
            add_counters(&status(n), &mut sums);
        }
        assert_eq!((sums["holds"], sums["held_ns"]), (3, 3));
        assert_eq!(sums["held_max_ns"], 2);
    }
}
