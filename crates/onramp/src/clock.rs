//! `onramp clock`: synchronisation alone, and what it knows. The work is onramp-clock's.
mod metrics;
mod table;

use std::{
    net::{IpAddr, SocketAddr},
    os::{fd::AsFd, unix::net::UnixListener},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use nix::poll::PollTimeout;
use onramp_clock::{
    host::{Config, Host},
    keys::Keys,
    members::{Members, MOST_DEGREE, USUAL_DEGREE},
    status::Status,
    synthetic::Synthetic,
    wire::PORT,
};
use onramp_units::Span;
use tracing::{info, warn};

use crate::agent::status::{answer, query, RUN_DIR};
use crate::agent::{block_signals, listen, netns_inode, wait};
use crate::sim;

#[derive(Subcommand)]
pub enum Command {
    /// Synchronise this host with its fleet, without a data path, until SIGINT or SIGTERM
    #[command(after_help = "Example: onramp clock run --member 10.0.0.1,10.0.0.2 --key-file keys")]
    Run(RunArgs),
    /// Offset, drift and sigma of this host's fleet time, its edges, what failed
    #[command(after_help = "Example: onramp clock status --json")]
    Status(QueryArgs),
    /// The same in a line every two seconds, until interrupted
    #[command(after_help = "Example: onramp clock watch")]
    Watch(QueryArgs),
    /// Shortest and present one-way delays; of all pairs that are probed on the coordinator's host
    #[command(after_help = "Examples: onramp clock matrix\n          \
                      onramp clock matrix --json > matrix.json; onramp report matrix.json")]
    Matrix(QueryArgs),
    /// Huygens on a scenario's network in the simulator, under its load: how wrong the clocks are
    #[command(after_help = "Example: onramp clock simulate scenarios/clock.toml --threads 2")]
    Simulate(sim::RunArgs),
    /// Print docs/metrics.md: every metric of --metrics
    #[command(hide = true)]
    Reference,
}

/// Who the fleet is, and how to take part.
#[derive(Clone, Debug, clap::Args)]
pub struct FleetArgs {
    /// Hosts of the fleet, this one among them, ADDRESS or ADDRESS:PORT, the same list in the same
    /// order everywhere; the first does the central step
    #[arg(long, value_delimiter = ',')]
    pub member: Vec<String>,
    /// File with such a list, a host a line
    #[arg(long)]
    pub members_file: Option<PathBuf>,
    /// Neighbours of a host in the mesh of probes
    #[arg(long, default_value_t = USUAL_DEGREE as u32, value_parser = clap::value_parser!(u32).range(1..=MOST_DEGREE as i64))]
    pub degree: u32,
    /// Time between two pairs of probes to a neighbour
    #[arg(long, default_value = "20ms")]
    pub probe_interval: Span,
    /// Serve Prometheus metrics over HTTP on this ADDRESS:PORT
    #[arg(long)]
    pub metrics: Option<SocketAddr>,
    /// This host's address in the list [default: the first that is one of its addresses]
    #[arg(long)]
    pub own: Option<String>,
    /// For tests on one machine: a clock that is wrong, e.g. offset=1ms,drift=2e-5
    #[arg(long, hide = true, default_value = "")]
    pub synthetic_clock: Synthetic,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    /// File with the fleet's keys, a line each: ID (0-3) and 32 hex digits; the first signs
    #[arg(long)]
    key_file: Option<PathBuf>,
    /// Without word from the coordinator for this long there is no fleet time
    #[arg(long, default_value = "5s")]
    lease: Span,
    /// Where `onramp clock status` finds this daemon [default: in /run/onramp]
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct QueryArgs {
    /// Socket of the daemon, when it was started with --socket
    #[arg(long)]
    socket: Option<PathBuf>,
    /// JSON, for machines
    #[arg(long)]
    json: bool,
}

impl FleetArgs {
    /// Whether a fleet was named.
    pub fn is_given(&self) -> bool {
        !self.member.is_empty() || self.members_file.is_some()
    }

    /// Joins the fleet. `key_file`: none for the well-known key. `lease`: how long fleet time may be
    /// used after the last word of the coordinator.
    pub fn join(&self, key_file: Option<&Path>, lease: Span) -> Result<Host> {
        let members = self.members()?;
        let own = match &self.own {
            Some(text) => members.own(&[member(text)?.ip()])?,
            None => members.own(&own_addresses()?)?,
        };
        if !(Span::from_us(200)..=Span::from_ms(200)).contains(&self.probe_interval) {
            bail!(
                "--probe-interval is {}, outside 200 us to 200 ms",
                self.probe_interval
            );
        }
        let keys = key_file.map_or(Ok(Keys::well_known()), Keys::read)?;
        if key_file.is_none() {
            warn!(
                "clock messages are not authenticated: whoever can send to this host can set its \
                 fleet time; give --key-file"
            );
        }
        info!(
            "clock: {own} of {} members, coordinator {}",
            members.all().len(),
            members.coordinator()
        );
        Host::start(Config {
            own,
            members,
            keys,
            authenticated: key_file.is_some(),
            degree: self.degree as usize,
            interval: self.probe_interval,
            lease,
            synthetic: self.synthetic_clock,
        })
        .with_context(|| format!("cannot probe from {own}"))
    }

    fn members(&self) -> Result<Members> {
        let mut list = self.member.clone();
        if let Some(path) = &self.members_file {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the members in {}", path.display()))?;
            let lines = text.lines().map(str::trim);
            list.extend(
                lines
                    .filter(|line| !line.is_empty() && !line.starts_with('#'))
                    .map(str::to_owned),
            );
        }
        if list.is_empty() {
            bail!("who is the fleet? give --member or --members-file");
        }
        let list = list.iter().map(|text| member(text));
        Ok(Members::new(list.collect::<Result<_>>()?)?)
    }

    /// Serves metrics if asked to; the listener lives as long as the process.
    pub fn serve_metrics(&self, status: impl Fn() -> Status + Send + 'static) -> Result<()> {
        match self.metrics {
            Some(address) => metrics::serve(address, status),
            None => Ok(()),
        }
    }
}

fn member(text: &str) -> Result<SocketAddr> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    bare.or_else(|_| text.parse())
        .with_context(|| format!("{text} is neither ADDRESS nor ADDRESS:PORT"))
}

fn own_addresses() -> Result<Vec<IpAddr>> {
    let address = |a: nix::ifaddrs::InterfaceAddress| {
        let address = a.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
    };
    Ok(nix::ifaddrs::getifaddrs()?.filter_map(address).collect())
}

/// Where `onramp clock status` finds the daemon: `given`, or by this network namespace.
pub fn socket_path(given: Option<&Path>) -> Result<PathBuf> {
    let usual = || Ok(Path::new(RUN_DIR).join(format!("clock-{}.sock", netns_inode()?)));
    given.map_or_else(usual, |path| Ok(path.to_owned()))
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => synchronise(&args),
        Command::Status(args) => show(&args, table::status),
        Command::Matrix(args) => show(&args, table::matrix),
        Command::Watch(args) => loop {
            show(&args, table::line)?;
            thread::sleep(Duration::from_secs(2));
        },
        Command::Simulate(args) => sim::simulate_clocks(args),
        Command::Reference => {
            print!("{}", metrics::markdown());
            Ok(())
        }
    }
}

fn synchronise(args: &RunArgs) -> Result<()> {
    if args.lease <= Span::ZERO {
        bail!("--lease is {}, not above 0", args.lease);
    }
    let socket = socket_path(args.socket.as_deref())?;
    if let Ok(other) = query::<Status>(&socket) {
        bail!(
            "a clock already runs here (pid {}); stop it first",
            other.pid
        );
    }
    let signals = block_signals()?;
    let host = Arc::new(args.fleet.join(args.key_file.as_deref(), args.lease)?);
    let listener = listen(&socket)?;
    let told = Arc::clone(&host);
    args.fleet.serve_metrics(move || told.status())?;
    let outcome = loop {
        let ready = wait(&[signals.as_fd(), listener.as_fd()], PollTimeout::NONE);
        match ready.as_deref() {
            Ok([true, _]) => break Ok(()),
            Ok(_) => tell(&listener, &host),
            Err(_) => break ready.map(|_| ()),
        }
    };
    let _ = std::fs::remove_file(&socket);
    outcome
}

/// Answers one client of the clock's socket.
pub fn tell(listener: &UnixListener, host: &Host) {
    let answered = listener
        .accept()
        .map_err(anyhow::Error::from)
        .and_then(|(stream, _)| answer(stream, &host.status()));
    if let Err(error) = answered {
        warn!("clock client: {error:#}");
    }
}

fn show(args: &QueryArgs, text: fn(&Status) -> String) -> Result<()> {
    let status: Status = query(&socket_path(args.socket.as_deref())?)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        print!("{}", text(&status));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_addresses_with_or_without_port() {
        assert_eq!(member("10.0.0.1").unwrap().port(), PORT);
        assert_eq!(member("fd00::1").unwrap().port(), PORT);
        assert_eq!(member("[fd00::1]:99").unwrap().port(), 99);
        assert!(member("host").is_err());
    }
}
