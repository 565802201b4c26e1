//! `onramp agent run`: attaches the data path to one device until a signal stops it, renews the clock's
//! lease, and answers `onramp status`. The kernel programs decide; nothing here runs per packet.
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    os::{fd::AsFd, unix::net::UnixListener},
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail, Context, Result};
use nix::{poll::PollTimeout, sys::signalfd::SignalFd};
use tracing::{info, warn};

use onramp_clock::{stamps::now_mono_ns, status::Way};
use onramp_law::abi::{onr_clock_params, onr_peer, COUNTERS, ONR_NO_OWD, ONR_ORACK_PORT};

use onramp_status::{
    clock_socket_path, netns_inode, query, socket_path, Clock, Health, Peer, Reasons, RootQdisc,
    Status,
};

use crate::args::{transmit_queues, Args, Threshold};
use crate::capabilities;
use crate::datapath::Datapath;
use crate::edge::{self, Edge};
use crate::peers::Peers;
use crate::server::{answer, block_signals, is_hangup, listen, reload_keys, wait};
use crate::silence::Silence;
use crate::source::Source;
use crate::threshold::{thresholds, Margin};
use crate::trouble::Trouble;

/// Time between two looks at the device and at the peers.
const LOOK: Duration = Duration::from_secs(1);
/// A peer that was not heard for this time is forgotten.
const FORGOTTEN_NS: i64 = 60_000_000_000;
/// Time between two checks whether peers answer.
const CHECK_NS: i64 = 5_000_000_000;
/// Most silent peers that the log names; the status lists all.
const MOST_NAMED: usize = 16;

/// Shortest time between two moves of the tcx programs to the front.
const FRONT_PERIOD: Duration = Duration::from_secs(60);

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
    /// By peer, with `--threshold auto`.
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
        &edge::qdisc_id(netns, ifindex),
        &cfg,
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
    if let Some(edge) = daemon.datapath.edge() {
        set_up(edge, args);
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
        "{} {dev}: law {}, threshold {}, peers {}",
        if args.observe {
            "observing"
        } else {
            "holding on"
        },
        args.law.law.name(),
        args.law.threshold,
        daemon.peers.text()
    );
    if daemon.peers.are_none() && daemon.clock.part().is_none() {
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

/// Limits GSO segments as asked, and warns of a device with several queues.
fn set_up(edge: &mut Edge, args: &Args) {
    let dev = &args.dev;
    if let Some(bytes) = args.link.gso_max {
        if let Err(error) = edge.limit_gso(bytes.get() as u32) {
            warn!("{dev}: {error:#}; flows are controlled in larger bursts");
        }
    }
    let queues = transmit_queues(dev);
    if queues > 1 {
        warn!(
            "{dev} has {queues} transmit queues, and On-Ramp serves all with one qdisc and one lock; on a \
             line faster than 10 Gbit/s compare the throughput with and without it"
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

    /// Puts the tcx programs in front of those that were attached before them meanwhile, but does not fight: at
    /// most once in `FRONT_PERIOD`. Until then OR-ACKs are sent as long as the others let them pass.
    fn stay_in_front(&mut self) -> Result<()> {
        if Instant::now() < self.front_due {
            return Ok(());
        }
        let (before, muted) = (self.datapath.before_us()?, self.datapath.is_muted()?);
        if before.is_empty() && !muted {
            return Ok(());
        }
        self.front_due = Instant::now() + FRONT_PERIOD;
        let effect = match muted {
            true => "it ended the chain, so no OR-ACKs were sent",
            false => "it let OR-ACKs pass",
        };
        warn!(
            "{}: tcx program {before:?} was attached before On-Ramp's (bpftool prog show id names it); {effect}; \
             On-Ramp's is the first again",
            self.args.dev
        );
        self.datapath.move_to_front()
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

    /// What is done once a second.
    fn look(&mut self) -> Result<()> {
        if nix::net::if_::if_nametoindex(self.args.dev.as_str()) != Ok(self.ifindex as u32) {
            bail!(
                "device {} was removed; start the daemon again when it is back",
                self.args.dev
            );
        }
        let watched = self.watch_qdisc();
        self.qdisc_trouble.note(watched);
        let front = self.stay_in_front();
        self.front_trouble.note(front);
        let kept = self
            .keep_members()
            .and_then(|()| self.keep_peers())
            .and_then(|()| self.check_silence());
        self.peer_trouble.note(kept);
        Ok(())
    }

    /// Makes the members of the fleet peers.
    fn keep_members(&mut self) -> Result<()> {
        let Some(part) = self.clock.part() else {
            return Ok(());
        };
        let change = self.peers.change_members(part.members());
        for peer in change.new {
            self.datapath.add_peer(peer)?;
        }
        for peer in change.gone {
            self.datapath.remove_peer(peer)?;
        }
        Ok(())
    }

    /// Logs and keeps which peers get data and do not answer. Without a lease nobody's OR-ACKs are used.
    fn check_silence(&mut self) -> Result<()> {
        let now = now_mono_ns();
        let since = self.checked_mono_ns;
        if now - since < CHECK_NS || self.params.lease_expires_mono_ns <= now {
            return Ok(());
        }
        self.checked_mono_ns = now;
        let peers = self.datapath.peers()?.into_iter();
        let heard = peers.filter(|(_, peer)| peer.heard_mono_ns >= since);
        let heard: BTreeSet<IpAddr> = heard.map(|(addr, _)| addr).collect();
        let wanted = |addr| !heard.contains(&addr) && self.peers.contains(addr);
        let unanswered = self.datapath.sampled_since(since, wanted)?;
        let named = self.health.silent_peers.len();
        let new = self.silence.check(&heard, unanswered);
        for peer in new.iter().take(MOST_NAMED.saturating_sub(named)) {
            warn!(
                "{peer} gets data and sends no usable OR-ACK, so flows to it are not held: does On-Ramp run \
                 there with the same keys and clock, and does the network pass UDP {ONR_ORACK_PORT}?"
            );
        }
        self.health.silent_peers = self.silence.peers();
        Ok(())
    }

    /// Logs and keeps who has the root qdisc. Whoever takes it away keeps it: two programs that replace each
    /// other's qdisc would drop packets without end.
    fn watch_qdisc(&mut self) -> Result<()> {
        let owner = match self.datapath.edge() {
            Some(edge) => edge.owner()?,
            None => RootQdisc::NotTaken,
        };
        if owner == self.health.root_qdisc {
            return Ok(());
        }
        let dev = &self.args.dev;
        let how = "no flow is held; to hold flows again, restart the daemon";
        match &owner {
            RootQdisc::NotTaken => {}
            RootQdisc::Own => info!("{dev} has On-Ramp's qdisc again: flows are held"),
            RootQdisc::Default => {
                warn!("another program removed On-Ramp's qdisc from {dev}: {how}")
            }
            RootQdisc::Foreign(kind) => {
                warn!("another program made {kind} the root qdisc of {dev}: {how}");
            }
        }
        self.health.root_qdisc = owner;
        Ok(())
    }

    /// Forgets silent peers. With `--threshold auto`, sets the thresholds of the others.
    fn keep_peers(&mut self) -> Result<()> {
        let now = now_mono_ns();
        let is_heard = |(_, peer): &(_, onr_peer)| now - peer.heard_mono_ns < FORGOTTEN_NS;
        let (heard, silent): (Vec<_>, Vec<_>) =
            self.datapath.peers()?.into_iter().partition(is_heard);
        for (peer, _) in silent {
            self.datapath.forget_peer(peer)?;
        }
        match self.args.law.threshold {
            Threshold::Fixed(_) => Ok(()),
            Threshold::Auto => self.set_thresholds(&heard),
        }
    }

    /// Writes changed thresholds into the data path. Those that do not fit are counted: flows to these peers
    /// are not held.
    fn set_thresholds(&mut self, heard: &[(IpAddr, onr_peer)]) -> Result<()> {
        let way = |way: Way| (way.to.ip(), way.min_ns);
        let probed = self.clock.part().map_or(vec![], |part| part.delays());
        let probed: Vec<_> = probed.into_iter().map(way).collect();
        let acked = |(addr, peer): &(_, onr_peer)| Some((*addr, min_owd_ns(peer)?));
        let acked: Vec<_> = heard.iter().filter_map(acked).collect();
        let margin = Margin {
            headroom_ns: self.args.law.headroom.as_ns(),
            sigma_ns: self.params.sigma_ns,
            burst_ns: self.args.burst().as_ns(),
        };
        let wanted = thresholds(&probed, &acked, margin);
        let is_gone = |peer: &&IpAddr| !wanted.contains_key(*peer);
        let gone: Vec<IpAddr> = self.thresholds.keys().filter(is_gone).copied().collect();
        for peer in gone {
            self.datapath.remove_threshold(peer)?;
            self.thresholds.remove(&peer);
        }
        self.health.peers_without_threshold = 0;
        let mut outcome = Ok(());
        for (peer, reasons) in wanted {
            let t_ns = reasons.threshold_ns;
            let is = self.thresholds.get(&peer).map(|is| is.threshold_ns);
            if is != Some(t_ns) {
                if let Err(error) = self.datapath.set_threshold(peer, t_ns as u32) {
                    let what = format!("cannot set the threshold of {peer}");
                    outcome = Err(error.context(what));
                    self.health.peers_without_threshold += 1;
                    continue;
                }
            }
            self.thresholds.insert(peer, reasons);
        }
        outcome
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
