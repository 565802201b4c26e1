//! The daemon's options, their bounds, and the configuration of the data path that follows from them.
use std::{path::PathBuf, str::FromStr, sync::Arc};

use anyhow::{bail, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onramp_clock::keys::Keys;
use onramp_law::{
    abi::{onr_at_egress, onr_dev_cfg, ONR_FLOWS, ONR_MAX_FLOWS, ONR_MAX_SLOTS},
    defaults, ns_per_byte_q16, Config, Law, SAMPLE_BYTES,
};
use onramp_units::{Bytes, Rate, Span};
use rustix::thread::CapabilitySet;

use crate::datapath::{edge, Path};
use crate::fleet::FleetArgs;
use crate::peers::Peers;
use crate::prefix::Prefix;
use crate::source::{self, Source};
use crate::{
    capabilities,
    devices::{attribute, present, transmit_queues},
};

/// 1 in units of 2^-16.
const Q16: f64 = 65536.0;
/// MTU of a device that does not report one.
const USUAL_MTU: u32 = 1500;
/// IPv4 and TCP headers with a time stamp: an MTU less its largest payload.
const HEADERS: u32 = 52;
const ETHERNET_HEADER: u32 = 14;
/// The longest GSO segment of a device that does not report one.
const USUAL_GSO_MAX: Bytes = Bytes::new(65_536);
/// The rate of a line whose rate is not known. It makes the thresholds of --threshold auto too large rather than
/// too small: a threshold that is too small costs throughput.
const SLOWEST_LINE: Rate = Rate::from_bits_per_s(100_000_000).expect("it is above 0");

/// `--threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The same T for all peers.
    Fixed(Span),
    /// A T for each peer, from its delays.
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
                .map_err(|error: onramp_units::ParseError| format!("{error}; or write auto")),
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

/// Where a segment gets its stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stamp {
    /// When the NIC sends it.
    Wire,
    /// When it leaves the qdisc.
    Qdisc,
}

/// `--pace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Pace {
    Auto,
    On,
    Off,
}

/// `--guard`: the window, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard(Option<Span>);

impl FromStr for Guard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Guard(None)),
            _ => text
                .parse()
                .map(|window| Guard(Some(window)))
                .map_err(|error: onramp_units::ParseError| format!("{error}; or write off")),
        }
    }
}

/// Options of `onramp agent run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Network device whose outgoing traffic is held; for traffic in a tunnel, the tunnel's device; for a bond, the
    /// bond, whose slaves are followed as they come and go. Give several times for several devices
    #[arg(long, required = true, value_delimiter = ',')]
    pub dev: Vec<String>,
    /// Only measure: hold nothing, and leave qdisc and GSO limit as they are. The status tells what would have
    /// been held
    #[arg(long, conflicts_with_all = ["shape", "gso_max", "pace"])]
    pub observe: bool,
    /// How flows are held
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "observe")]
    pub path: Path,
    /// Socket that `onramp status` connects to [default: one in /run/onramp]
    #[arg(long)]
    pub socket: Option<PathBuf>,
    #[command(flatten)]
    pub law: LawArgs,
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub peers: PeerArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub clock: ClockArgs,
}

/// When and for how long flows are held.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Control law")]
pub struct LawArgs {
    /// Threshold T: a flow whose one-way delay is above T is held. With `auto`, each peer has its own
    /// T: its minimum delay of the last half minute + headroom (the larger of --headroom and 2 sigma of
    /// the clock) + the time to send one segment at the line rate
    #[arg(long, default_value = "auto")]
    pub threshold: Threshold,
    /// Minimum headroom of --threshold auto
    #[arg(long, default_value = "10us")]
    pub headroom: Span,
    /// Control law
    #[arg(long, value_parser = law_parser(), default_value = Law::Final.name())]
    pub law: Law,
    /// Gain g of the moving average of the final law, in (0, 1]
    #[arg(long, default_value_t = f64::from(defaults::GAIN_Q16) / Q16)]
    pub gain: f64,
    /// Averaging time of the delivery rate of the gate law
    #[arg(long, default_value_t = defaults::GATE_TAU)]
    pub gate_tau: Span,
    /// Time after which the guard judges holding: it raises T of a flow that is held in vain, e.g. because
    /// T is below the delay of the path. `off`: no guard
    #[arg(long, default_value = "50ms")]
    pub guard: Guard,
    /// Longest pause: no packet is held longer
    #[arg(long, default_value_t = defaults::MAX_PAUSE)]
    pub max_pause: Span,
    /// Longest plausible one-way delay: larger measurements, of either sign, are ignored
    #[arg(long, default_value_t = defaults::MAX_OWD)]
    pub max_owd: Span,
}

/// How packets leave the device.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Link")]
pub struct LinkArgs {
    /// Line rate of the device [default: the rate that the driver reports]
    #[arg(long)]
    pub line_rate: Option<Rate>,
    /// Limit outgoing traffic to this rate. In a virtual machine, a rate below the hypervisor's limit
    /// keeps the queue in this host
    #[arg(long)]
    pub shape: Option<Rate>,
    /// Set the largest GSO segment of the device [default: leave it]. A segment leaves as one burst, so
    /// smaller segments give finer control. Connections that are open by then keep longer segments, which
    /// the kernel then splits in software, at a cost
    #[arg(long)]
    pub gso_max: Option<Bytes>,
    /// Send segments at TCP's pacing rate, as the fq qdisc does, instead of as early as possible. With
    /// `auto`, do so if the device had fq. A pace that an application has set is always kept
    #[arg(long, value_enum, default_value = "auto")]
    pub pace: Pace,
    /// For the virtual rack: bytes that may leave ahead of the line of --shape, as a NIC takes them into its
    /// own queue
    #[arg(long, hide = true, requires = "shape", default_value = "0 B")]
    pub shape_ahead: Bytes,
    /// For comparison: with `qdisc`, the wait in the NIC's own queue counts as delay of the network
    #[arg(long, hide = true, value_enum, default_value = "wire")]
    pub stamp: Stamp,
}

/// Which hosts take part, and how they exchange OR-ACKs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Peers")]
pub struct PeerArgs {
    /// Addresses of hosts that also run On-Ramp, e.g. 10.0.0.0/8 [default: the subnets of the device, and the
    /// members of the fleet]
    #[arg(long = "peers", value_delimiter = ',')]
    pub prefixes: Vec<Prefix>,
    /// Addresses of pods or containers behind this host, whose flows it treats as its own. It leaves other
    /// flows alone that it forwards
    #[arg(long, value_delimiter = ',')]
    pub serve: Vec<Prefix>,
    /// File with the fleet's keys, mode 600. Each line has an ID (0-3) and 32 hex digits. The first key
    /// signs; all are accepted
    #[arg(long)]
    pub key_file: Option<PathBuf>,
    /// Bytes that a flow receives between two OR-ACKs; must be the same on all hosts. A smaller value
    /// gives newer delays and more packets
    #[arg(long, default_value_t = Bytes::new(SAMPLE_BYTES.into()))]
    pub orack_every: Bytes,
}

/// Bounds of the flow table and of the queues.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Maximum number of tracked flows; others pass unheld. Each takes 6.5 kB of kernel memory
    #[arg(long, default_value_t = ONR_FLOWS, value_parser = clap::value_parser!(u32).range(16..=i64::from(ONR_MAX_FLOWS)))]
    pub flows: u32,
    /// Maximum number of queued packets
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=ONR_MAX_SLOTS as i64))]
    pub limit: u32,
    /// Maximum number of queued packets of one flow
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=ONR_MAX_SLOTS as i64))]
    pub flow_limit: u32,
    /// A flow that sends nothing for this time is removed from the table
    #[arg(long, default_value = "10s")]
    pub flow_age: Span,
}

/// Source of fleet time.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Clock")]
pub struct ClockArgs {
    /// Source of fleet time
    #[arg(long = "clock", value_enum, default_value = "local")]
    pub source: source::Kind,
    /// Nothing is held if the clock is not renewed for this time
    #[arg(long, default_value = "5s")]
    pub lease: Span,
    #[command(flatten)]
    pub fleet: FleetArgs,
}

impl Args {
    /// The configuration of the BPF programs of one device.
    ///
    /// # Errors
    /// An option is out of bounds, or the line rate is needed and not known.
    pub fn device_config(&self, dev: &str) -> Result<onr_dev_cfg> {
        self.law.check()?;
        self.link.check()?;
        self.peers.check()?;
        above_0("--lease", self.clock.lease)?;
        above_0("--flow-age", self.limits.flow_age)?;
        let line_rate = self.line_rate(dev);
        if self.law.law == Law::Gate && line_rate.is_none() {
            bail!(
                "--law gate needs the line rate, and the driver of {} does not report it; add \
                 --line-rate, e.g. --line-rate 10Gbit/s",
                dev
            );
        }
        let former = edge::former(dev)?;
        let queues = match former.per_queue && self.link.shape.is_none() && !self.observe {
            true => edge::qdiscs(transmit_queues(dev)),
            false => 1,
        };
        let mtu = mtu(dev);
        let segment = Bytes::new(mtu.saturating_sub(HEADERS).into());
        let config = self.law.config(line_rate).gate_allowance(segment);
        Ok(onr_dev_cfg {
            law: *config.abi(),
            flow_age_ns: self.limits.flow_age.as_ns(),
            orack_fresh_ns: self.law.max_owd.as_ns(),
            limit_packets: self.limits.limit,
            max_flows: self.limits.flows,
            queues,
            queue: 0,
            quantum_bytes: 2 * (mtu + ETHERNET_HEADER),
            shape_ns_per_byte_q16: self.link.shape.map_or(0, ns_per_byte_q16),
            key_id: self.keys()?.signing().id,
            flow_limit_packets: self.limits.flow_limit,
            orack_every_bytes: self.peers.orack_every.get() as u32,
            paced: self.paces(former.had_fq).into(),
            at_egress: match self.observe {
                true => onr_at_egress::Observes,
                false => onr_at_egress::Passes,
            } as u8,
            link_bytes: link_bytes(dev)?,
            shape_ahead_ns: self.link.ahead_ns(),
            stamps_at_qdisc: (self.link.stamp == Stamp::Qdisc).into(),
        })
    }

    /// Do all flows leave at TCP's pace?
    fn paces(&self, had_fq: bool) -> bool {
        match self.link.pace {
            Pace::On => true,
            Pace::Off => false,
            Pace::Auto => had_fq,
        }
    }

    /// The longest GSO segment that the device will send.
    fn longest_segment(&self, dev: &str) -> Bytes {
        let of_device = || edge::gso_max(dev).unwrap_or(USUAL_GSO_MAX);
        self.link.gso_max.unwrap_or_else(of_device)
    }

    /// The capabilities that the daemon needs with these options.
    pub fn capabilities(&self) -> CapabilitySet {
        let of_clock = match self.clock.source {
            source::Kind::Local => CapabilitySet::empty(),
            source::Kind::Huygens => capabilities::of_clock(self.clock.fleet.discipline),
        };
        capabilities::of_data_path() | of_clock
    }

    fn line_rate(&self, dev: &str) -> Option<Rate> {
        self.link.line_rate.or_else(|| driver_rate(dev))
    }

    /// The time to send the longest segment at the line rate, by the device that takes longest: a peer's threshold
    /// is the same on all.
    pub fn burst(&self) -> Span {
        let of_device = |dev: &String| {
            let rate = self.link.shape.or_else(|| self.line_rate(dev));
            rate.unwrap_or(SLOWEST_LINE)
                .time_to_send(self.longest_segment(dev))
        };
        present(&self.dev)
            .iter()
            .map(of_device)
            .max()
            .unwrap_or(Span::ZERO)
    }

    /// What to tell an operator whose device needs --line-rate.
    pub fn line_rate_warning(&self, dev: &str) -> Option<String> {
        let is_needed = self.law.threshold == Threshold::Auto && self.link.shape.is_none();
        (is_needed && self.line_rate(dev).is_none()).then(|| {
            format!(
                "the driver of {} does not report the line rate, so --threshold auto assumes {SLOWEST_LINE}, \
                 and flows are held late; add --line-rate, e.g. --line-rate 10Gbit/s",
                dev
            )
        })
    }

    /// The keys of `--key-file`; without it, one well-known key that authenticates nothing.
    ///
    /// # Errors
    /// The file is refused.
    pub fn keys(&self) -> Result<Keys> {
        let file = self.peers.key_file.as_deref();
        Ok(file.map_or(Ok(Keys::well_known()), Keys::read)?)
    }

    /// The clock source. `huygens` starts to synchronise.
    ///
    /// # Errors
    /// An option does not fit the source, or the synchronisation cannot start.
    pub fn clock_source(&self) -> Result<Source> {
        let lease_ns = self.clock.lease.as_ns();
        if self.clock.source == source::Kind::Local {
            let given = self.clock.fleet.given();
            if !given.is_empty() {
                bail!(
                    "--clock local does not use {}; add --clock huygens, or leave the option out",
                    given.join(", ")
                );
            }
            return Ok(Source::Local {
                lease_ns,
                oscillator: self.clock.fleet.synthetic_clock,
            });
        }
        let (keys, dev) = (
            self.peers.key_file.as_deref(),
            self.dev.first().map(String::as_str),
        );
        let part = Arc::new(self.clock.fleet.join(keys, self.clock.lease, dev)?);
        Ok(Source::Huygens { part, lease_ns })
    }

    /// `--peers`, or the subnets of the devices' addresses and the fleet.
    ///
    /// # Errors
    /// The addresses cannot be read.
    pub fn peers(&self) -> Result<Peers> {
        if !self.peers.prefixes.is_empty() {
            return Ok(Peers::named(self.peers.prefixes.clone()));
        }
        let own = nix::ifaddrs::getifaddrs()?.filter(|a| self.dev.contains(&a.interface_name));
        let subnets = own.filter_map(|a| Prefix::of_interface(&a));
        let has_fleet = self.clock.source == source::Kind::Huygens;
        Ok(Peers::around(subnets.collect(), has_fleet))
    }
}

impl LawArgs {
    fn check(&self) -> Result<()> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            bail!("--gain is {}, outside (0, 1]", self.gain);
        }
        above_0("--headroom", self.headroom)?;
        above_0("--gate-tau", self.gate_tau)?;
        if let Guard(Some(window)) = self.guard {
            above_0("--guard", window)?;
        }
        above_0("--max-pause", self.max_pause)?;
        above_0("--max-owd", self.max_owd)?;
        let (name, least) = match self.threshold {
            Threshold::Fixed(span) => ("--threshold", span),
            Threshold::Auto => ("--headroom", self.headroom),
        };
        above_0(name, least)?;
        if least > self.max_owd {
            bail!(
                "{name} is {least}, above --max-owd {}: longer delays are ignored, so no flow would \
                 ever be held; lower {name} or raise --max-owd",
                self.max_owd
            );
        }
        Ok(())
    }

    /// The configuration of the law.
    fn config(&self, line_rate: Option<Rate>) -> Config {
        let config = match self.threshold {
            Threshold::Fixed(span) => Config::new(self.law, span),
            Threshold::Auto => Config::new(self.law, Span::ZERO).threshold_of_peer(),
        };
        let config = config
            .max_pause(self.max_pause)
            .max_owd(self.max_owd)
            .gate_tau(self.gate_tau)
            .guard(self.guard.0.unwrap_or(Span::ZERO))
            .gain_q16((self.gain * Q16).round() as u32);
        line_rate.map_or(config, |rate| config.line_rate(rate))
    }
}

impl LinkArgs {
    /// Time of `--shape-ahead` on the line.
    fn ahead_ns(&self) -> u32 {
        let ahead = self.shape.map(|rate| rate.time_to_send(self.shape_ahead));
        ahead.map_or(0, |span| u32::try_from(span.as_ns()).unwrap_or(u32::MAX))
    }

    fn check(&self) -> Result<()> {
        match self.gso_max {
            Some(bytes) if !(1_448..=65_536).contains(&bytes.get()) => {
                bail!("--gso-max is {bytes}, outside 1448 B to 65536 B")
            }
            _ => Ok(()),
        }
    }
}

impl PeerArgs {
    fn check(&self) -> Result<()> {
        if !(1..=1_000_000).contains(&self.orack_every.get()) {
            bail!("--orack-every is {}, outside 1 B to 1 MB", self.orack_every);
        }
        Ok(())
    }
}

fn above_0(name: &str, value: Span) -> Result<()> {
    if value <= Span::ZERO {
        bail!("{name} is {value}; it must be above 0");
    }
    Ok(())
}

/// Accepts the names of the registered laws; help shows the meaning of each.
fn law_parser() -> impl TypedValueParser<Value = Law> {
    let value = |law: Law| PossibleValue::new(law.name()).help(law.meaning());
    PossibleValuesParser::new(Law::all().map(value)).try_map(|name| name.parse::<Law>())
}

/// The rate that the driver reports, in Mbit/s; virtual devices often report nothing or -1.
pub(crate) fn driver_rate(dev: &str) -> Option<Rate> {
    let mbit: u64 = attribute(dev, "speed")?;
    Rate::from_bits_per_s(mbit.checked_mul(1_000_000)?)
}

/// Length of the device's link header. The kernel's numbers of device types are ARPHRD_*.
fn link_bytes(dev: &str) -> Result<u8> {
    match attribute::<u32>(dev, "type") {
        Some(1) | None => Ok(ETHERNET_HEADER as u8),
        // IP in IP, IP in IPv6, IPv6 in IPv4, and TUN or WireGuard: IP packets alone.
        Some(768 | 769 | 776 | 65534) => Ok(0),
        Some(other) => bail!(
            "--dev is {dev}, a device of type {other}, whose frames On-Ramp does not know; it knows Ethernet, \
             IP tunnels (ipip, sit, ip6tnl), TUN and WireGuard"
        ),
    }
}

fn mtu(dev: &str) -> u32 {
    attribute(dev, "mtu").unwrap_or(USUAL_MTU)
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
        args(options).device_config("eth0").unwrap()
    }

    fn args(options: &[&str]) -> Args {
        let device = ["--dev", "eth0", "--gso-max", "64kB", "--pace", "off"];
        let usual = ["run"]
            .iter()
            .chain(&device)
            .chain(&["--line-rate", "10Gbit/s"]);
        let command = Command::try_parse_from(usual.chain(options)).unwrap();
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
    fn bytes_ahead_of_the_shaped_line_take_its_time() {
        let ahead = |options: &[&str]| config(options).shape_ahead_ns;
        let shape = ["--shape", "1Gbit/s", "--shape-ahead", "64kB"];
        assert_eq!(ahead(&shape), 512_000);
        assert_eq!(ahead(&shape[..2]), 0);
        assert_eq!(config(&[]).stamps_at_qdisc, 0);
    }

    #[test]
    fn devices_are_given_one_by_one_or_as_a_list() {
        for options in [
            ["--dev", "eth1", "--dev", "eth2"],
            ["--dev", "eth1,eth2", "--law", "off"],
        ] {
            assert_eq!(args(&options).dev, ["eth0", "eth1", "eth2"]);
        }
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
        let error = args(&options)
            .device_config("eth0")
            .unwrap_err()
            .to_string();
        let says = "--threshold is 5 s, above --max-owd 100 ms";
        assert!(error.contains(says), "{error}");
        let fix = "lower --threshold or raise --max-owd";
        assert!(error.contains(fix), "{error}");
        let options = ["--threshold", "auto", "--headroom", "5s"];
        let error = args(&options)
            .device_config("eth0")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("--headroom is 5 s, above --max-owd"),
            "{error}"
        );
        config(&["--threshold", "100ms", "--max-owd", "100ms"]);
    }

    #[test]
    fn an_automatic_threshold_without_a_line_rate_is_large_and_says_so() {
        let unknown = Command::try_parse_from(["run", "--dev", "none", "--gso-max", "16kB"]);
        let unknown = unknown.unwrap().args;
        assert_eq!(unknown.law.threshold, Threshold::Auto);
        assert_eq!(unknown.burst(), "1280us".parse().unwrap());
        let warning = unknown.line_rate_warning("none").unwrap();
        assert!(warning.contains("add --line-rate"), "{warning}");
        for option in [["--shape", "1Gbit/s"], ["--threshold", "50us"]] {
            assert_eq!(args(&option).line_rate_warning("eth0"), None);
        }
        assert_eq!(args(&[]).line_rate_warning("eth0"), None);
        assert_eq!(args(&[]).burst(), "51200ns".parse().unwrap());
    }

    #[test]
    fn options_that_the_local_clock_ignores_are_refused() {
        for option in [
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
}
