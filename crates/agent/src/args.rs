//! The daemon's options, their bounds, and what they mean to the data path.
use std::{net::IpAddr, path::PathBuf, str::FromStr, sync::Arc};

use anyhow::{bail, Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onramp_clock::keys::Keys;
use onramp_law::{
    abi::{onr_dev_cfg, ONR_MAX_FLOWS, ONR_MAX_SLOTS},
    defaults, ns_per_byte_q16, Config, Law, SAMPLE_BYTES,
};
use onramp_units::{Bytes, Rate, Span};

use crate::datapath::Prefix;
use crate::fleet::FleetArgs;
use crate::source::{self, Source};

/// 1 in units of 2^-16.
const Q16: f64 = 65536.0;
const MTU: u32 = 1514;

/// `--threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The same to all peers.
    Fixed(Span),
    /// For each peer from what is known of it.
    Auto,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Threshold::Auto),
            _ => text
                .parse()
                .map(Threshold::Fixed)
                .map_err(|error: onramp_units::ParseError| format!("{error}, nor auto")),
        }
    }
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Threshold::Fixed(span) => span.fmt(f),
            Threshold::Auto => f.write_str("auto"),
        }
    }
}

/// Options of `onramp agent run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Network device to hold traffic on
    #[arg(long)]
    pub dev: String,
    /// One-way delay above which flows are held: the path's minimum plus headroom for errors; or auto:
    /// for each peer its minimum, the larger of --headroom and 2 sigma of the clock, and the time
    /// that a segment takes at the line rate
    #[arg(long, default_value = "50us")]
    pub threshold: Threshold,
    /// Least headroom of --threshold auto
    #[arg(long, default_value = "10us")]
    pub headroom: Span,
    /// Control law
    #[arg(long, value_parser = law_parser(), default_value = Law::Final.name())]
    pub law: Law,
    /// Gain g of the final law's average, in (0, 1]
    #[arg(long, default_value_t = f64::from(defaults::GAIN_Q16) / Q16)]
    pub gain: f64,
    /// No packet is held longer than this, whatever arrives
    #[arg(long, default_value_t = defaults::MAX_PAUSE)]
    pub max_pause: Span,
    /// One-way delays beyond this (either sign) are taken for errors and ignored
    #[arg(long, default_value_t = defaults::MAX_OWD)]
    pub max_owd: Span,
    /// Line rate of the device [default: what the driver says]
    #[arg(long)]
    pub line_rate: Option<Rate>,
    /// Keep to this rate on egress, so that the queue forms here and not in a hypervisor's limiter
    #[arg(long)]
    pub shape: Option<Rate>,
    /// Largest GSO segment of new connections: a segment leaves as one burst, so it is the granule of
    /// control (bytes; 64kB leaves the device as it is)
    #[arg(long, default_value = "16kB")]
    pub gso_max: Bytes,
    /// Bytes of a flow from one OR-ACK to the next, the same on all hosts: fewer bytes are more and
    /// newer delays, and more packets
    #[arg(long, default_value_t = Bytes::new(SAMPLE_BYTES.into()))]
    pub orack_every: Bytes,
    /// Let segments leave at TCP's pace, as fq does, instead of as soon as they may
    #[arg(long)]
    pub pace: bool,
    /// Addresses that run On-Ramp too, e.g. 10.0.0.0/8 [default: the device's own subnets]
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<Prefix>,
    /// File with the fleet's keys, a line each: ID (0-3) and 32 hex digits; the first signs
    #[arg(long)]
    pub key_file: Option<PathBuf>,
    /// Flows tracked at most; about 6 kB of kernel memory each
    #[arg(long, default_value_t = ONR_MAX_FLOWS, value_parser = clap::value_parser!(u32).range(16..=65536))]
    pub flows: u32,
    /// Packets queued at most
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=ONR_MAX_SLOTS as i64))]
    pub limit: u32,
    /// Packets queued at most of one flow, so that one cannot take the room of all
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=ONR_MAX_SLOTS as i64))]
    pub flow_limit: u32,
    /// A flow without packets for this long is forgotten
    #[arg(long, default_value = "10s")]
    pub flow_age: Span,
    /// Without a clock renewal for this long nothing is held
    #[arg(long, default_value = "5s")]
    pub lease: Span,
    /// Where fleet time comes from
    #[arg(long, value_enum, default_value = "local")]
    pub clock: source::Kind,
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Averaging time of the gate law's delivery rate
    #[arg(long, default_value_t = defaults::GATE_TAU)]
    pub gate_tau: Span,
    /// Where `onramp status` finds this daemon [default: in /run/onramp]
    #[arg(long)]
    pub socket: Option<PathBuf>,
}

impl Args {
    /// The configuration of the BPF programs.
    pub fn device_config(&self) -> Result<onr_dev_cfg> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            bail!("--gain is {}, outside (0, 1]", self.gain);
        }
        for (name, value) in [
            ("--headroom", self.headroom),
            ("--max-pause", self.max_pause),
            ("--max-owd", self.max_owd),
            ("--lease", self.lease),
            ("--flow-age", self.flow_age),
            ("--gate-tau", self.gate_tau),
        ] {
            if value.as_ns() <= 0 {
                bail!("{name} is {value}, not above 0");
            }
        }
        match self.threshold {
            Threshold::Fixed(span) if span.as_ns() <= 0 => {
                bail!("--threshold is {span}, not above 0")
            }
            Threshold::Auto => drop(self.burst()?),
            Threshold::Fixed(_) => {}
        }
        let (name, least) = match self.threshold {
            Threshold::Fixed(span) => ("--threshold", span),
            Threshold::Auto => ("--headroom", self.headroom),
        };
        if least > self.max_owd {
            bail!(
                "{name} is {least}, above --max-owd {}: longer delays are ignored, so no flow would \
                 ever be held; lower {name} or raise --max-owd",
                self.max_owd
            );
        }
        if !(1_448..=65_536).contains(&self.gso_max.get()) {
            bail!("--gso-max is {}, outside 1448 B to 65536 B", self.gso_max);
        }
        if !(1..=1_000_000).contains(&self.orack_every.get()) {
            bail!("--orack-every is {}, outside 1 B to 1 MB", self.orack_every);
        }
        let line_rate = self.line_rate();
        if self.law == Law::Gate && line_rate.is_none() {
            bail!(
                "the gate law needs the line rate, and {} does not tell it; give --line-rate",
                self.dev
            );
        }
        Ok(onr_dev_cfg {
            law: *self.law_config(line_rate).abi(),
            flow_age_ns: self.flow_age.as_ns(),
            orack_fresh_ns: self.max_owd.as_ns(),
            limit_packets: self.limit,
            max_flows: self.flows,
            quantum_bytes: 2 * MTU,
            shape_ns_per_byte_q16: self.shape.map_or(0, ns_per_byte_q16),
            key_id: self.keys()?.signing().id,
            flow_limit_packets: self.flow_limit,
            orack_every_bytes: self.orack_every.get() as u32,
            paced: self.pace.into(),
        })
    }

    /// What the law is told.
    fn law_config(&self, line_rate: Option<Rate>) -> Config {
        let config = match self.threshold {
            Threshold::Fixed(span) => Config::new(self.law, span),
            Threshold::Auto => Config::new(self.law, Span::ZERO).threshold_of_peer(),
        };
        let config = config
            .max_pause(self.max_pause)
            .max_owd(self.max_owd)
            .gate_tau(self.gate_tau)
            .gain_q16((self.gain * Q16).round() as u32);
        line_rate.map_or(config, |rate| config.line_rate(rate))
    }

    fn line_rate(&self) -> Option<Rate> {
        self.line_rate.or_else(|| driver_rate(&self.dev))
    }

    /// The time that the longest segment takes at the line rate.
    pub fn burst(&self) -> Result<Span> {
        let rate = self.shape.or_else(|| self.line_rate()).with_context(|| {
            format!(
                "--threshold auto needs the line rate, and {} does not tell it; give --line-rate",
                self.dev
            )
        })?;
        Ok(rate.time_to_send(self.gso_max))
    }

    /// The fleet's keys; without a file, one well-known key that authenticates nothing.
    pub fn keys(&self) -> Result<Keys> {
        let file = self.key_file.as_deref();
        Ok(file.map_or(Ok(Keys::well_known()), Keys::read)?)
    }

    /// The clock source; `huygens` starts to synchronise, and serves its metrics if asked to.
    pub fn clock_source(&self) -> Result<Source> {
        let lease_ns = self.lease.as_ns();
        if self.clock == source::Kind::Local {
            let given = self.fleet.given();
            if !given.is_empty() {
                bail!(
                    "--clock local does not use {}; add --clock huygens, or leave the option out",
                    given.join(", ")
                );
            }
            return Ok(Source::Local {
                lease_ns,
                oscillator: self.fleet.synthetic_clock,
            });
        }
        let (keys, dev) = (self.key_file.as_deref(), Some(self.dev.as_str()));
        let part = Arc::new(self.fleet.join(keys, self.lease, dev)?);
        self.fleet.serve_metrics(Arc::downgrade(&part))?;
        Ok(Source::Huygens { part, lease_ns })
    }

    /// `--peers`, or the subnets of the device's addresses.
    pub fn peer_prefixes(&self) -> Result<Vec<Prefix>> {
        if !self.peers.is_empty() {
            return Ok(self.peers.clone());
        }
        let own: Vec<Prefix> = nix::ifaddrs::getifaddrs()?
            .filter(|a| a.interface_name == self.dev)
            .filter_map(|a| Prefix::of_interface(&a))
            .collect();
        if own.is_empty() {
            bail!(
                "{} has no address, so its subnets cannot be the peers; give --peers",
                self.dev
            );
        }
        Ok(own)
    }

    pub fn peers_text(&self, peers: &[Prefix]) -> String {
        peers
            .iter()
            .map(Prefix::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The registered laws, with what each does.
fn law_parser() -> impl TypedValueParser<Value = Law> {
    let value = |law: Law| PossibleValue::new(law.name()).help(law.meaning());
    PossibleValuesParser::new(Law::all().map(value)).try_map(|name| name.parse::<Law>())
}

/// What the driver reports, in Mbit/s; virtual devices often report nothing or -1.
fn driver_rate(dev: &str) -> Option<Rate> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{dev}/speed")).ok()?;
    let mbit: u64 = text.trim().parse().ok()?;
    Rate::from_bits_per_s(mbit.checked_mul(1_000_000)?)
}

impl Prefix {
    fn of_interface(a: &nix::ifaddrs::InterfaceAddress) -> Option<Prefix> {
        let (addr, mask) = (a.address.as_ref()?, a.netmask.as_ref()?);
        if let (Some(addr), Some(mask)) = (addr.as_sockaddr_in(), mask.as_sockaddr_in()) {
            let bits = u32::from(mask.ip()).count_ones() as u8;
            return Some(Prefix {
                addr: addr.ip().into(),
                bits,
            });
        }
        let (addr, mask) = (addr.as_sockaddr_in6()?, mask.as_sockaddr_in6()?);
        let bits = u128::from(mask.ip()).count_ones() as u8;
        Some(Prefix {
            addr: addr.ip().into(),
            bits,
        })
    }
}

impl FromStr for Prefix {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (addr, bits) = text.split_once('/').unwrap_or((text, ""));
        let addr: IpAddr = addr
            .parse()
            .with_context(|| format!("{addr} is not an address"))?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() {
            most
        } else {
            bits.parse().context("prefix length")?
        };
        if bits > most {
            bail!("the prefix length of {text} is {bits}, above {most}");
        }
        Ok(Prefix { addr, bits })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    /// What the data path gets from these options on a line of 10 Gbit/s.
    fn config(options: &[&str]) -> onr_dev_cfg {
        args(options).device_config().unwrap()
    }

    fn args(options: &[&str]) -> Args {
        let usual = ["run", "--dev", "eth0", "--line-rate", "10Gbit/s"];
        let command = Command::try_parse_from(usual.iter().chain(options)).unwrap();
        command.args
    }

    #[test]
    fn a_byte_takes_the_same_time_as_in_the_simulator() {
        let rate = "10 Gbit/s".parse().unwrap();
        let simulated = Config::new(Law::Off, Span::ZERO).line_rate(rate);
        let byte = simulated.abi().line_ns_per_byte_q16;
        let device = config(&["--shape", "10Gbit/s"]);
        assert_eq!(device.law.line_ns_per_byte_q16, byte);
        assert_eq!(device.shape_ns_per_byte_q16, byte);
    }

    #[test]
    fn every_registered_law_is_an_option() {
        for law in Law::all() {
            assert_eq!(config(&["--law", law.name()]).law.law, law as u32);
        }
    }

    #[test]
    fn a_threshold_above_the_longest_believed_delay_is_refused() {
        let options = ["--threshold", "5s", "--max-owd", "100ms"];
        let error = args(&options).device_config().unwrap_err().to_string();
        let says = "--threshold is 5 s, above --max-owd 100 ms";
        assert!(error.contains(says), "{error}");
        let fix = "lower --threshold or raise --max-owd";
        assert!(error.contains(fix), "{error}");
        let options = ["--threshold", "auto", "--headroom", "5s"];
        let error = args(&options).device_config().unwrap_err().to_string();
        assert!(
            error.contains("--headroom is 5 s, above --max-owd"),
            "{error}"
        );
        config(&["--threshold", "100ms", "--max-owd", "100ms"]);
    }

    #[test]
    fn options_that_the_local_clock_ignores_are_refused() {
        for option in [
            ["--metrics", "127.0.0.1:0"],
            ["--member", "10.0.0.1"],
            ["--etcd", "http://10.0.0.9:2379"],
            ["--own", "10.0.0.1"],
        ] {
            let error = args(&option).clock_source().err().expect("it is refused");
            let error = error.to_string();
            assert!(
                error.contains(option[0]) && error.contains("add --clock huygens"),
                "{error}"
            );
        }
        assert!(args(&[]).clock_source().is_ok());
    }

    #[test]
    fn prefixes_have_bounds() {
        assert_eq!("10.0.0.0/8".parse::<Prefix>().unwrap().bits, 8);
        assert_eq!("fd00::1".parse::<Prefix>().unwrap().bits, 128);
        assert!("10.0.0.0/33".parse::<Prefix>().is_err());
    }
}
