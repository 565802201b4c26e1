//! `onramp agent run`: attaches the data path to one device until a signal stops it, renews the clock's
//! lease, and answers `onramp status`. The kernel programs decide; nothing here runs per packet.
use std::{
    collections::BTreeMap,
    net::IpAddr,
    os::{fd::AsFd, unix::net::UnixListener},
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail, Context, Result};
use nix::{poll::PollTimeout, sys::signalfd::SignalFd};
use tracing::{info, warn};

use onramp_clock::{stamps::now_mono_ns, status::Way};
use onramp_law::abi::{onr_clock_params, onr_peer, COUNTERS};

use onramp_status::{
    clock_socket_path, netns_inode, query, socket_path, Clock, Peer, Reasons, Status,
};

use crate::args::{transmit_queues, Args, Threshold};
use crate::datapath::{self, Datapath};
use crate::server::{answer, block_signals, listen, wait};
use crate::source::Source;
use crate::threshold::{thresholds, Margin};

/// Shortest time between two moves of the tcx programs to the front.
const FRONT_PERIOD: Duration = Duration::from_secs(60);

/// A running daemon: the data path, its clock and its thresholds.
struct Daemon<'a> {
    args: &'a Args,
    ifindex: i32,
    datapath: Datapath,
    clock: Source,
    params: onr_clock_params,
    /// By peer, with `--threshold auto`.
    thresholds: BTreeMap<IpAddr, Reasons>,
    thresholds_due: Instant,
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
    let peers = args.peer_prefixes()?;
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
        &datapath::qdisc_id(netns, ifindex),
        &cfg,
        keys.all(),
        &peers,
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
        thresholds: BTreeMap::new(),
        thresholds_due: Instant::now(),
        front_due: Instant::now(),
    };
    if let Some(bytes) = args.link.gso_max {
        if let Err(error) = daemon.datapath.limit_gso(bytes.get() as u32) {
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
    if args.peers.key_file.is_none() {
        warn!(
            "OR-ACKs are not authenticated: anyone who can send packets to this host can pause its \
             flows, for up to {} at a time; add --key-file",
            args.law.max_pause
        );
    }
    info!(
        "holding on {dev}: law {}, threshold {}, peers {}",
        args.law.law.name(),
        args.law.threshold,
        args.peers_text(&peers)
    );

    let outcome = daemon.serve(&signals, &listener, clock_listener.as_ref());
    let _ = std::fs::remove_file(&socket);
    if clock_listener.is_some() {
        let _ = std::fs::remove_file(&clock_socket);
    }
    let detached = daemon.datapath.detach();
    outcome?;
    detached.with_context(|| format!("cannot restore the qdisc of {dev}"))?;
    info!("{dev} has its former qdisc again");
    Ok(())
}

impl Daemon<'_> {
    fn serve(
        &mut self,
        signals: &SignalFd,
        listener: &UnixListener,
        clock_listener: Option<&UnixListener>,
    ) -> Result<()> {
        let period_ms = (self.clock.period_ns() / 1_000_000).max(1);
        let timeout = PollTimeout::try_from(period_ms).unwrap_or(PollTimeout::MAX);
        let mut fds = vec![signals.as_fd(), listener.as_fd()];
        fds.extend(clock_listener.map(|listener| listener.as_fd()));
        loop {
            self.params = self.clock.renew();
            self.datapath.set_clock(&self.params)?;
            self.set_thresholds()?;
            if let Err(error) = self.stay_in_front() {
                warn!("{}: {error:#}", self.args.dev);
            }
            let ready = wait(&fds, timeout)?;
            if ready[0] {
                return Ok(());
            }
            if ready[1] {
                self.answer(listener);
            }
            if let (Some(true), Some(listener), Some(part)) =
                (ready.get(2), clock_listener, self.clock.part())
            {
                crate::server::answer_next(listener, || part.status());
            }
            if nix::net::if_::if_nametoindex(self.args.dev.as_str()) != Ok(self.ifindex as u32) {
                bail!(
                    "device {} was removed; start the daemon again when it is back",
                    self.args.dev
                );
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

    /// With `--threshold auto`, writes changed thresholds into the data path once a second.
    fn set_thresholds(&mut self) -> Result<()> {
        if self.args.law.threshold != Threshold::Auto || Instant::now() < self.thresholds_due {
            return Ok(());
        }
        self.thresholds_due = Instant::now() + Duration::from_secs(1);
        let way = |way: Way| (way.to.ip(), way.min_ns);
        let probed = self.clock.part().map_or(vec![], |part| part.delays());
        let probed: Vec<_> = probed.into_iter().map(way).collect();
        let acked = |(addr, peer): (_, onr_peer)| (addr, peer.owd_min_ns);
        let acked: Vec<_> = self.datapath.peers()?.into_iter().map(acked).collect();
        let margin = Margin {
            headroom_ns: self.args.law.headroom.as_ns(),
            sigma_ns: self.params.sigma_ns,
            burst_ns: self.args.burst()?.as_ns(),
        };
        let wanted = thresholds(&probed, &acked, margin);
        for (peer, reasons) in &wanted {
            let is = self
                .thresholds
                .get(peer)
                .map(|reasons| reasons.threshold_ns);
            if is != Some(reasons.threshold_ns) {
                self.datapath
                    .set_threshold(*peer, reasons.threshold_ns as u32)?;
            }
        }
        self.thresholds = wanted;
        Ok(())
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
            owd_min_ns: p.owd_min_ns,
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
