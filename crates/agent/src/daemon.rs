//! `onramp agent run`: attaches the data path to one device until a signal stops it, renews the clock's
//! lease, and answers `onramp status`. The kernel programs decide; nothing here runs per packet.
mod look;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    os::{fd::AsFd, unix::net::UnixListener},
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail, Context, Result};
use nix::{poll::PollTimeout, sys::signalfd::SignalFd};
use tracing::{info, warn};

use onramp_clock::stamps::now_mono_ns;
use onramp_law::abi::{onr_clock_params, onr_peer, COUNTERS, ONR_NO_OWD};

use onramp_status::{
    clock_socket_path, netns_inode, query, socket_path, Clock, Health, Peer, Reasons, RootQdisc,
    Status,
};

use crate::args::{transmit_queues, Args, Threshold};
use crate::capabilities;
use crate::datapath::{Datapath, Holder};
use crate::peers::Peers;
use crate::server::{answer, block_signals, is_hangup, listen, reload_keys, wait};
use crate::silence::Silence;
use crate::source::Source;
use crate::trouble::Trouble;

/// Time between two looks at the device and at the peers.
const LOOK: Duration = Duration::from_secs(1);
/// A running daemon: the data path, its clock and its thresholds.
struct Daemon<'a> {
    args: &'a Args,
    ifindex: i32,
    datapath: Datapath,
    clock: Source,
    params: onr_clock_params,
    peers: Peers,
    silence: Silence,
    checked_mono_ns: i64,
    health: Health,
    qdisc_trouble: Trouble,
    front_trouble: Trouble,
    peer_trouble: Trouble,
    /// In the data path, with `--threshold auto`.
    thresholds: BTreeMap<IpAddr, Reasons>,
    /// When the tcx programs may be put in front again.
    front_due: Instant,
}

/// Runs until SIGINT or SIGTERM.
///
/// # Errors
/// An option is refused, or the data path cannot be attached, renewed or removed.
pub fn run(args: &Args) -> Result<()> {
    let dev = &args.dev;
    let ifindex = check_device(dev)?;
    check_privilege()?;
    capabilities::allow_maps();
    capabilities::keep_only(args.capabilities())?;
    let netns = netns_inode().context("reading the network namespace")?;
    let socket = args
        .socket
        .clone()
        .unwrap_or_else(|| socket_path(netns, dev));
    if let Ok(other) = query::<Status>(&socket) {
        bail!(
            "On-Ramp already runs on {dev} (pid {0}); stop it first: kill {0}",
            other.pid
        );
    }

    let keys = args.keys()?;
    let peers = args.peers()?;
    let cfg = args.device_config()?;
    let signals = block_signals()?;
    let listener = listen(&socket)?;
    let clock = args.clock_source()?;
    let clock_socket = clock_socket_path(netns);
    let clock_listener = match clock.part() {
        Some(_) => Some(listen(&clock_socket)?),
        None => None,
    };
    let params = clock.renew();
    let attached = Datapath::attach(
        ifindex,
        &cfg,
        args.path,
        &keys,
        peers.prefixes(),
        &args.peers.serve,
        &params,
    );
    let datapath = match attached {
        Ok(datapath) => datapath,
        Err(error) => {
            let _ = std::fs::remove_file(&socket);
            return Err(error).with_context(|| format!("cannot attach to {dev}"));
        }
    };
    let mut daemon = Daemon {
        args,
        ifindex,
        datapath,
        clock,
        params,
        peers,
        silence: Silence::default(),
        checked_mono_ns: now_mono_ns(),
        health: Health::default(),
        qdisc_trouble: Trouble::of("the root qdisc is not watched"),
        front_trouble: Trouble::of("the order of the tcx programs is not watched"),
        peer_trouble: Trouble::of("what is known of peers is not up to date"),
        thresholds: BTreeMap::new(),
        front_due: Instant::now(),
    };
    if let Some(holder) = daemon.datapath.holder() {
        set_up(holder, args);
    }
    if let Some(warning) = args.line_rate_warning() {
        warn!("{warning}");
    }
    if args.peers.key_file.is_none() {
        warn!(
            "OR-ACKs are not authenticated: anyone who can send packets to this host can pause its \
             flows, for up to {} at a time; add --key-file",
            args.law.max_pause
        );
    }
    info!(
        "{} {dev}: path {}, law {}, threshold {}, peers {}",
        if args.observe {
            "observing"
        } else {
            "holding on"
        },
        daemon.datapath.path(),
        args.law.law.name(),
        args.law.threshold,
        daemon.peers.text()
    );
    if daemon.peers.are_none() {
        warn!(
            "no host is a peer, so nothing is held: {dev} has no subnet, and --clock {} no members; add \
             --peers, e.g. --peers 10.0.0.0/8",
            daemon.clock.name()
        );
    }

    let outcome = daemon.serve(&signals, &listener, clock_listener.as_ref());
    let _ = std::fs::remove_file(&socket);
    if clock_listener.is_some() {
        let _ = std::fs::remove_file(&clock_socket);
    }
    let detached = daemon.datapath.detach();
    outcome?;
    match detached.with_context(|| format!("cannot restore the qdisc of {dev}"))? {
        None | Some(RootQdisc::NotTaken) => info!("{dev} is no longer observed"),
        Some(RootQdisc::Foreign(kind)) => info!("{dev} keeps the {kind} qdisc of another program"),
        Some(_) => info!("{dev} has its former qdisc again"),
    }
    Ok(())
}

/// Limits GSO segments as asked, and says what a device with several transmit queues gets.
fn set_up(holder: &mut Holder, args: &Args) {
    let dev = &args.dev;
    if let Some(bytes) = args.link.gso_max {
        if let Err(error) = holder.limit_gso(bytes.get() as u32) {
            warn!("{dev}: {error:#}; flows are controlled in larger bursts");
        }
    }
    let (queues, qdiscs) = (transmit_queues(dev), holder.qdiscs());
    if qdiscs > 1 {
        info!("{dev}: each of the {qdiscs} transmit queues has a qdisc of its own");
    } else if queues > 1 {
        warn!(
            "{dev} has {queues} transmit queues and, because of {}, one qdisc and one lock for all; on a line \
             faster than 10 Gbit/s compare the throughput with and without On-Ramp",
            match args.link.shape {
                Some(_) => "--shape",
                None => "its former root qdisc",
            }
        );
    }
}

impl Daemon<'_> {
    fn serve(
        &mut self,
        signals: &SignalFd,
        listener: &UnixListener,
        clock_listener: Option<&UnixListener>,
    ) -> Result<()> {
        let period = Duration::from_nanos(self.clock.period_ns().max(1_000_000) as u64);
        let (mut renewal_due, mut look_due) = (Instant::now(), Instant::now());
        let mut fds = vec![signals.as_fd(), listener.as_fd()];
        fds.extend(clock_listener.map(|listener| listener.as_fd()));
        loop {
            if is_due(&mut renewal_due, period) {
                self.params = self.clock.renew();
                self.datapath.set_clock(&self.params)?;
            }
            if is_due(&mut look_due, LOOK) {
                self.look()?;
            }
            let ready = wait(&fds, until(renewal_due.min(look_due)))?;
            if ready[0] {
                if !is_hangup(signals)? {
                    return Ok(());
                }
                self.reload_keys();
            }
            if ready[1] {
                self.answer(listener);
            }
            if let (Some(true), Some(listener), Some(part)) =
                (ready.get(2), clock_listener, self.clock.part())
            {
                crate::server::answer_next(listener, || part.status());
            }
        }
    }

    /// Gives the data path and the clock the keys of the key file as it is now.
    fn reload_keys(&mut self) {
        reload_keys(self.args.peers.key_file.as_deref(), |keys| {
            self.datapath.set_keys(&keys)?;
            if let Some(part) = self.clock.part() {
                part.set_keys(keys);
            }
            Ok(())
        });
    }

    fn answer(&self, listener: &UnixListener) {
        let answered = listener
            .accept()
            .map_err(|e| anyhow!(e))
            .and_then(|(stream, _)| answer(stream, &self.status()?));
        if let Err(error) = answered {
            warn!("status client: {error:#}");
        }
    }

    fn status(&self) -> Result<Status> {
        let counters = self.datapath.counters()?;
        let peer = |(addr, p): (_, onr_peer)| Peer {
            addr,
            owd_last_ns: p.owd_last_ns,
            owd_min_ns: min_owd_ns(&p),
            owd_ewma_ns: p.owd_ewma_ns,
            oracks: p.oracks,
            holds: p.holds,
            held_ns: p.held_ns,
            threshold: self.thresholds.get(&addr).copied(),
        };
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            dev: self.args.dev.clone(),
            path: self.datapath.path().to_owned(),
            law: self.args.law.law.name().to_owned(),
            threshold_ns: match self.args.law.threshold {
                Threshold::Fixed(span) => Some(span.as_ns()),
                Threshold::Auto => None,
            },
            max_pause_ns: self.args.law.max_pause.as_ns(),
            authenticated: self.args.peers.key_file.is_some(),
            clock: Clock {
                source: self.clock.name().to_owned(),
                offset_ns: self.params.offset_ns,
                reference_mono_ns: self.params.reference_mono_ns,
                drift: self.params.drift_q32 as f64 / 2f64.powi(32),
                sigma_ns: self.params.sigma_ns,
                lease_left_ns: self.params.lease_expires_mono_ns - now_mono_ns(),
            },
            health: self.health.clone(),
            flows: self.datapath.flows() as u32,
            max_flows: self.args.limits.flows,
            peers: self.datapath.peers()?.into_iter().map(peer).collect(),
            counters: COUNTERS
                .iter()
                .zip(counters)
                .map(|((name, _), value)| ((*name).to_owned(), value))
                .collect(),
        })
    }
}

/// The least delay to a peer in the last two windows.
fn min_owd_ns(peer: &onr_peer) -> Option<i64> {
    let min_ns = peer.owd_min_ns.min(peer.owd_min_before_ns);
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

fn check_device(dev: &str) -> Result<i32> {
    let all = nix::net::if_::if_nameindex().context("listing network devices")?;
    let name = |i: &nix::net::if_::Interface| i.name().to_string_lossy().into_owned();
    let names: Vec<String> = all.iter().map(name).collect();
    let Some(device) = all.iter().find(|i| name(i) == dev) else {
        bail!(
            "--dev is {dev}, which is not a network device here; devices: {}",
            names.join(", ")
        );
    };
    let loopback = nix::ifaddrs::getifaddrs()?.any(|a| {
        a.interface_name == dev
            && a.flags
                .contains(nix::net::if_::InterfaceFlags::IFF_LOOPBACK)
    });
    if loopback {
        bail!("--dev is {dev}, the loopback device, which leads to no network; use another device");
    }
    Ok(device.index() as i32)
}

fn check_privilege() -> Result<()> {
    let euid = nix::unistd::geteuid();
    if !euid.is_root() {
        bail!("attaching BPF programs needs root (uid 0), this is uid {euid}; run the command with sudo");
    }
    Ok(())
}
