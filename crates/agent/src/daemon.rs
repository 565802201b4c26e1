// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp agent run`: attaches the data path to its devices until a signal stops it, renews the clock's
//! lease, and answers `onramp status`. The kernel programs decide; nothing here runs per packet.
mod flow;
mod look;
mod members;
mod reload;
mod renew;
mod sockets;
mod traced;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};
use nix::{poll::PollTimeout, sys::signalfd::SignalFd};
use tracing::{info, warn};

use onramp_clock::keys::Keys;
use onramp_clock::stamps::now_mono_ns;
use onramp_law::abi::{onr_clock_params, onr_peer, COUNTERS, ONR_NO_OWD};

use onramp_status::{
    clock_socket_path, netns_inode, query, socket_path, Clock, Device, Health, Peer, Reasons,
    Request, Status,
};

use crate::config::{self, AgentOptions, Config, Configuration, Given, Threshold};
use crate::datapath::pace::Pacing;
use crate::datapath::pins::{self, BpfFs};
use crate::datapath::{join, kept, Datapath, InitialMaps};
use crate::devices::{self, Link, Named};
use crate::floor::Floors;
use crate::metrics::{self, Snapshot};
use crate::notify::Notifier;
use crate::peers::Peers;
use crate::port::OrackPort;
use crate::rules::{rules, tell_missing};
use crate::server::{asked, block_signals, json, wait, Asked, Door, OwnDoor};
use crate::silence::Silence;
use crate::source::Source;
use crate::trace::Trace;
use crate::trouble::Trouble;
use crate::{capabilities, cgroup};
use members::{Claim, Member};
use sockets::Sockets;

/// Time between two looks at the device and at the peers.
const LOOK: Duration = Duration::from_secs(1);
/// A running daemon: the data path, its clock and its thresholds.
struct Daemon {
    /// The command line, which a reload reads again with the file.
    given: Given,
    config: Configuration,
    notifier: Notifier,
    datapath: Datapath,
    named: Vec<Named>,
    members: Vec<Member>,
    sockets: Sockets,
    clock: Source,
    params: onr_clock_params,
    floors: Floors,
    peers: Peers,
    silence: Silence,
    checked_mono_ns: i64,
    burst: look::Burst,
    health: Health,
    qdisc_trouble: Trouble,
    front_trouble: Trouble,
    member_trouble: Trouble,
    peer_trouble: Trouble,
    trace: Option<Trace>,
    trace_trouble: Trouble,
    /// Once a device had fq.
    pacing: Option<Pacing>,
    pacing_trouble: Trouble,
    /// In the data path, with `--threshold auto`.
    thresholds: BTreeMap<IpAddr, Reasons>,
}

/// Runs until SIGINT or SIGTERM.
///
/// # Errors
/// An option is refused, or the data path cannot be attached, renewed or removed.
pub fn run(options: &AgentOptions) -> Result<()> {
    let config = configuration(options)?;
    devices::check(&config.devices)?;
    check_privilege()?;
    capabilities::allow_maps();
    capabilities::keep_only(config.capabilities())?;
    let netns = netns_inode().context("reading the network namespace")?;
    let paths = socket_paths(&config, netns);
    refuse_second(&paths)?;
    let (keys, peers) = (config.keys()?, config.peers()?);
    let claims = claims(&config)?;
    prepare_pins(&config.bpffs);
    let signals = block_signals()?;
    let (sockets, doors) = Sockets::open(netns, &paths)?;
    let _port = OrackPort::bind();
    let clock = config.clock_source()?;
    let clock_door = clock
        .part()
        .map(|_| OwnDoor::open(clock_socket_path(netns)))
        .transpose()?;
    serve_metrics(&config, &clock, sockets.first())?;
    tell_missing(&config.classes);
    let mut daemon = Daemon::new(options.0.clone(), config, (keys, peers), sockets, clock)?;
    daemon.attach_all(claims)?;
    daemon.pace();
    daemon.warn_of_lacks();
    daemon.notifier.ready(&daemon.summary());
    let outcome = daemon.serve(&signals, &doors, clock_door.as_deref());
    daemon.notifier.stopping();
    daemon.end_trace();
    drop(clock_door);
    daemon.finish(outcome)
}

/// The configuration, with the devices of the default routes unless it names some.
fn configuration(options: &AgentOptions) -> Result<Configuration> {
    let mut config = Configuration::load(&options.0, config::Daemon::Agent)?;
    if config.devices.is_empty() {
        config.devices = devices::of_default_routes()?;
        info!(
            "devices is not set: the devices of the default routes are {}",
            config.devices.join(", ")
        );
    }
    let ineffective = config.without_effect();
    if !ineffective.is_empty() {
        warn!(
            "observe is true, so these keys have no effect: {}",
            ineffective.join(", ")
        );
    }
    Ok(config)
}

/// Fails if a daemon answers at one of the sockets.
fn refuse_second(paths: &[PathBuf]) -> Result<()> {
    for socket in paths {
        if let Ok(other) = query::<Status>(socket) {
            let held = other.devices.iter().map(|dev| dev.name.as_str());
            let missing = other.health.missing_devices.iter().map(String::as_str);
            let names: Vec<&str> = held.chain(missing).collect();
            bail!(
                "On-Ramp already runs on {} (pid {1}); stop it first: kill {1}",
                names.join(", "),
                other.pid
            );
        }
    }
    Ok(())
}

/// The devices to attach to, all of which the configuration fits and no other daemon has.
fn claims(config: &Config) -> Result<Vec<Claim>> {
    let claim = |dev: &String| {
        config.device_config(dev, &Link::of(dev))?;
        let ifindex = devices::index(dev).with_context(|| format!("{dev} was removed"))?;
        Claim::of(ifindex, dev)
    };
    devices::present(&config.devices)
        .iter()
        .map(claim)
        .collect()
}

/// Removes pins that nobody uses any more, and says whether this daemon will have some.
fn prepare_pins(bpffs: &Path) {
    match kept::sweep(bpffs) {
        Ok(gone) if gone.is_empty() => {}
        Ok(gone) => info!(
            "removed the pins of devices that have gone: {}",
            gone.join(", ")
        ),
        Err(error) => warn!("pins of devices that have gone stay: {error:#}"),
    }
    let at = bpffs.display();
    let (fault, fix) = match pins::bpffs_at(bpffs) {
        BpfFs::Writable => return,
        BpfFs::ReadOnly => ("is read-only", "mount -o remount,rw"),
        BpfFs::None => ("is no BPF file system", "mount -t bpf bpf"),
    };
    warn!("{at} {fault}, so the next daemon begins anew; mount one: {fix} {at}");
}

/// Serves `--metrics`. The thread asks the daemon over its socket, as `onramp status` does, so it shares nothing with the
/// data path.
fn serve_metrics(config: &Config, clock: &Source, socket: Arc<Mutex<PathBuf>>) -> Result<()> {
    let Some(address) = config.metrics else {
        return Ok(());
    };
    let part = clock.shared_part().map(|part| Arc::downgrade(&part));
    let snapshot = move || {
        let socket = socket.lock().ok()?.clone();
        Some(Snapshot {
            datapath: Some(query(&socket).ok()?),
            clock: part
                .as_ref()
                .and_then(|part| Some(part.upgrade()?.status())),
        })
    };
    metrics::serve(address, snapshot)?;
    Ok(())
}

/// Where `onramp status` asks: one socket for each device that is named, or has a data path now.
fn socket_paths(config: &Config, netns: u64) -> Vec<PathBuf> {
    if let Some(socket) = &config.socket {
        return vec![socket.clone()];
    }
    let mut names = config.devices.clone();
    names.extend(devices::present(&config.devices));
    names.sort();
    names.dedup();
    names.iter().map(|dev| socket_path(netns, dev)).collect()
}

impl Daemon {
    /// A daemon without devices.
    fn new(
        given: Given,
        config: Configuration,
        (keys, peers): (Keys, Peers),
        sockets: Sockets,
        mut clock: Source,
    ) -> Result<Self> {
        let mut floors = Floors::default();
        let params = renew::params(&mut clock, &config, &mut floors);
        let rules = rules(
            &config.classes,
            config.others,
            &floors,
            devices::index,
            cgroup::find,
        );
        let maps = InitialMaps {
            keys,
            peers: peers.prefixes().to_vec(),
            served: config.peers.serve.clone(),
            rules,
            clock: params,
        };
        let named = |dev: &String| Named::new(dev, devices::index(dev));
        Ok(Self {
            given,
            notifier: Notifier::from_env(),
            datapath: Datapath::new(config.path, &config.bpffs, config.limits.flows, maps),
            named: config.devices.iter().map(named).collect(),
            members: vec![],
            sockets,
            trace: traced::begin(&config, clock.name())?,
            clock,
            params,
            floors,
            peers,
            silence: Silence::default(),
            checked_mono_ns: now_mono_ns(),
            burst: look::Burst::default(),
            health: Health::default(),
            qdisc_trouble: Trouble::of("the root qdisc is not watched"),
            front_trouble: Trouble::of("the order of the tcx programs is not watched"),
            member_trouble: Trouble::of("not all devices are held"),
            peer_trouble: Trouble::of("what is known of peers is not up to date"),
            trace_trouble: Trouble::of("the flows are not looked at for the trace"),
            pacing: None,
            pacing_trouble: Trouble::of(
                "TCP does not space its segments, as it did with fq, and sends each window in bursts",
            ),
            thresholds: BTreeMap::new(),
            config,
        })
    }

    /// Says what it does, and what keeps it from holding or lets others make it hold.
    fn warn_of_lacks(&self) {
        if self.config.peers.key_file.is_none() {
            warn!(
                "OR-ACKs are not authenticated: anyone who can send packets to this host can pause its \
                 flows, for up to {} at a time; make a key with onramp keygen, and name it with --key-file",
                self.config.law.max_pause
            );
        }
        info!("{}", self.summary());
        if self.peers.are_none() {
            warn!(
                "no host is a peer, so nothing is held: {} has no subnet, and --clock {} no members; add \
                 --peers, e.g. --peers 10.0.0.0/8",
                self.names(),
                self.clock.name()
            );
        }
    }

    /// Restores the devices, or leaves them to the next daemon if it was asked for that.
    fn finish(mut self, outcome: Result<Asked>) -> Result<()> {
        if matches!(outcome, Ok(Asked::HandOver)) {
            info!(
                "{} is left to the next daemon; onramp detach restores it",
                self.names()
            );
            return Ok(());
        }
        let detached = self.detach_all();
        outcome.and(detached)
    }

    /// What it does with its devices.
    fn doing(&self) -> &'static str {
        match self.config.observe {
            true => "observing",
            false => "holding on",
        }
    }

    /// What it does, in a line.
    fn summary(&self) -> String {
        format!(
            "{} {}: path {}, law {}, threshold {}, peers {}",
            self.doing(),
            self.names(),
            self.path(),
            self.config.law.name.name(),
            self.config.law.threshold,
            self.peers.text()
        )
    }

    fn serve(
        &mut self,
        signals: &SignalFd,
        doors: &[Door],
        clock_door: Option<&Door>,
    ) -> Result<Asked> {
        let period = Duration::from_nanos(self.clock.period_ns().max(1_000_000) as u64);
        let (mut renewal_due, mut look_due) = (Instant::now(), Instant::now());
        let mut trace_due = self.trace.as_ref().map(|_| Instant::now());
        let mut fds = vec![signals.as_fd()];
        fds.extend(doors.iter().map(AsFd::as_fd));
        fds.extend(clock_door.map(AsFd::as_fd));
        loop {
            if is_due(&mut renewal_due, period) {
                self.renew()?;
            }
            if is_due(&mut look_due, LOOK) {
                self.look()?;
                self.notifier.beat();
            }
            if let Some(due) = &mut trace_due {
                if is_due(due, self.trace_period()) {
                    self.trace();
                }
            }
            let due = renewal_due.min(look_due);
            let ready = wait(&fds, until(trace_due.map_or(due, |trace| trace.min(due))))?;
            if ready[0] {
                match asked(signals)? {
                    Asked::Reload => drop(self.reload()),
                    end => return Ok(end),
                }
            }
            for (door, _) in doors.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                self.answer(door);
            }
            let of_clock = ready.get(1 + doors.len());
            if let (Some(true), Some(door), Some(part)) = (of_clock, clock_door, self.clock.part())
            {
                let status = part.status();
                door.answer(|request| match request {
                    Request::Status => json(&status),
                    Request::Reload => json(&self.reload()),
                    Request::Flow(_) => bail!("a clock has no flows"),
                });
            }
        }
    }

    fn answer(&mut self, door: &Door) {
        door.answer(|request| match request {
            Request::Status => json(&self.status()?),
            Request::Reload => json(&self.reload()),
            Request::Flow(ends) => json(&self.find_flow(ends)?),
        });
    }

    fn status(&self) -> Result<Status> {
        let devices: Vec<Device> = self
            .members
            .iter()
            .map(Member::status)
            .collect::<Result<_>>()?;
        let of_all = |name: &str| {
            let values = devices
                .iter()
                .filter_map(|device| device.counters.get(name));
            (name.to_owned(), join(name, values.copied()))
        };
        let counters = COUNTERS.iter().map(|(name, _)| of_all(name)).collect();
        let peer = |(addr, p): (_, onr_peer)| Peer {
            addr,
            owd_last_ns: p.owd_last_ns,
            owd_min_ns: min_owd_ns(&p),
            owd_ewma_ns: p.owd_ewma_ns,
            oracks: p.oracks,
            holds: p.holds,
            held_ns: p.held_ns,
            threshold: self.thresholds.get(&addr).copied(),
            looks_held_ns: self.trace.as_ref().and_then(|trace| trace.held_ns(addr)),
        };
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            path: self.path().to_owned(),
            law: self.config.law.name.name().to_owned(),
            threshold_ns: match self.config.law.threshold {
                Threshold::Fixed(span) => Some(span.as_ns()),
                Threshold::Auto => None,
            },
            max_pause_ns: self.config.law.max_pause.as_ns(),
            authenticated: self.config.peers.key_file.is_some(),
            clock: Clock {
                source: self.clock.name().to_owned(),
                offset_ns: self.params.offset_ns,
                reference_mono_ns: self.params.reference_mono_ns,
                drift: self.params.drift_q32 as f64 / 2f64.powi(32),
                sigma_ns: self.params.sigma_ns,
                lease_left_ns: self.params.lease_expires_mono_ns - now_mono_ns(),
                doubts: self.clock.doubts(),
                doubt: self.clock.doubt(),
            },
            health: self.health.clone(),
            flows: self.datapath.flows()? as u32,
            max_flows: self.config.limits.flows,
            peers: self.datapath.peers()?.into_iter().map(peer).collect(),
            counters,
            devices,
            trace: self.trace.as_ref().and_then(Trace::status),
        })
    }
}

/// The least delay to a peer in the last two windows.
fn min_owd_ns(peer: &onr_peer) -> Option<i64> {
    let min_ns = peer.least.owd_min_ns.min(peer.least.owd_min_before_ns);
    (min_ns != ONR_NO_OWD as i64).then_some(min_ns)
}

/// Whether `due` has come; then it is due again after `period`.
fn is_due(due: &mut Instant, period: Duration) -> bool {
    let now = Instant::now();
    let is_due = now >= *due;
    if is_due {
        *due = now + period;
    }
    is_due
}

/// The time to wait until `due`, rounded up to whole milliseconds, so that it has come then.
fn until(due: Instant) -> PollTimeout {
    let left = due.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

fn check_privilege() -> Result<()> {
    let euid = nix::unistd::geteuid();
    if !euid.is_root() {
        bail!("attaching BPF programs needs root (uid 0), this is uid {euid}; run the command with sudo");
    }
    Ok(())
}
