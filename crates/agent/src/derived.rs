// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What follows from the configuration: that of the BPF programs, the keys, the clock source, peers and capabilities.
use std::sync::Arc;

use anyhow::{bail, Context, Result};
use onramp_clock::keys::Keys;
use onramp_law::{
    abi::{onr_at_egress, onr_dev_cfg},
    ns_per_byte_q16, Law,
};
use onramp_units::{Bytes, Rate, Span};
use rustix::thread::CapabilitySet;

use crate::config::{ClockSource, Config, LawKeys, LinkKeys, Pace, Stamp, Threshold};
use crate::datapath::edge;
use crate::peers::Peers;
use crate::prefix::Prefix;
use crate::source::{Phc, PhcDevice, Source, System};
use crate::{
    capabilities,
    devices::{attribute, Link},
    fleet,
};

/// 1 in units of 2^-16.
const Q16: f64 = 65536.0;
/// IPv4 and TCP headers with a time stamp: an MTU less its largest payload.
const HEADERS: u32 = 52;
const ETHERNET_HEADER: u32 = 14;
/// The longest GSO segment of a device that does not report one.
const USUAL_GSO_MAX: Bytes = Bytes::new(65_536);
/// The rate of a line whose rate is not known. It makes the thresholds of --threshold auto too large rather than
/// too small: a threshold that is too small costs throughput.
const SLOWEST_LINE: Rate = Rate::from_bits_per_s(100_000_000).expect("it is above 0");

impl Config {
    /// The configuration of the BPF programs of one device.
    ///
    /// # Errors
    /// An option is out of bounds, or the line rate is needed and not known.
    pub fn device_config(&self, dev: &str, link: &Link) -> Result<onr_dev_cfg> {
        let line_rate = self.line_rate(link);
        if self.law.name == Law::Gate && line_rate.is_none() {
            bail!(
                "--law gate needs the line rate, and the driver of {} does not report it; add \
                 --line-rate, e.g. --line-rate 10Gbit/s",
                dev
            );
        }
        let former = edge::former(dev)?;
        let queues = match former.per_queue && self.link.shape.is_none() && !self.observe {
            true => edge::qdiscs(link.transmit_queues),
            false => 1,
        };
        let segment = Bytes::new(link.mtu.saturating_sub(HEADERS).into());
        let config = self.law.config(line_rate).gate_allowance(segment);
        Ok(onr_dev_cfg {
            law: *config.abi(),
            own_secret: 0, // the data path sets it
            flow_age_ns: self.limits.flow_age.as_ns(),
            orack_fresh_ns: self.law.max_owd.as_ns(),
            limit_packets: self.limits.packets,
            max_flows: self.limits.flows,
            queues,
            queue: 0,
            quantum_bytes: 2 * (link.mtu + ETHERNET_HEADER),
            shape_ns_per_byte_q16: self.link.shape.map_or(0, ns_per_byte_q16),
            key_id: 0, // the data path sets it
            flow_limit_packets: self.limits.flow_packets,
            orack_every_bytes: self.peers.orack_every.get() as u32,
            paced: self.paces(former.had_fq).into(),
            at_egress: match self.observe {
                true => onr_at_egress::Observes,
                false => onr_at_egress::Passes,
            } as u8,
            link_bytes: link_bytes(dev)?,
            shape_ahead_ns: self.link.ahead_ns(),
            stamps_at_qdisc: (self.link.stamp == Stamp::Qdisc).into(),
            ifindex: 0, // the data path sets it
            bucket_limit_packets: former.flow_limit.unwrap_or(self.limits.flow_packets),
            codel_target_ns: former.codel.map_or(0, |codel| u32_ns(codel.target)),
            codel_interval_ns: former.codel.map_or(0, |codel| u32_ns(codel.interval)),
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
            ClockSource::Local | ClockSource::System | ClockSource::Phc => CapabilitySet::empty(),
            ClockSource::Huygens => capabilities::of_clock(self.fleet.discipline),
        };
        capabilities::of_data_path() | of_clock
    }

    pub fn line_rate(&self, link: &Link) -> Option<Rate> {
        self.link.line_rate.or(link.rate)
    }

    /// The time to send the longest segment at the line rate, by the device that takes longest: a peer's threshold
    /// is the same on all.
    pub fn burst<'a>(&self, devices: impl Iterator<Item = (&'a str, &'a Link)>) -> Span {
        let of_device = |(dev, link): (&str, &Link)| {
            let rate = self.link.shape.or_else(|| self.line_rate(link));
            rate.unwrap_or(SLOWEST_LINE)
                .time_to_send(self.longest_segment(dev))
        };
        devices.map(of_device).max().unwrap_or(Span::ZERO)
    }

    /// What to tell an operator whose device needs --line-rate.
    pub fn line_rate_warning(&self, dev: &str, link: &Link) -> Option<String> {
        let is_needed = self.law.threshold == Threshold::Auto && self.link.shape.is_none();
        (is_needed && self.line_rate(link).is_none()).then(|| {
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
        let lease = self.clock.lease;
        let lease_ns = lease.as_ns();
        let oscillator = self.fleet.synthetic_clock.0;
        let bound = || self.clock.bound.context("clock.bound is not set");
        Ok(match self.clock.source {
            ClockSource::Local => Source::Local {
                lease_ns,
                oscillator,
            },
            ClockSource::System => Source::System(System::new(lease, bound()?, oscillator)),
            ClockSource::Phc => Source::Phc(
                Phc::open(self.phc()?, lease, bound()?, oscillator)
                    .context("clock.source is phc")?,
            ),
            ClockSource::Huygens => {
                let dev = self.devices.first().map(String::as_str);
                let part = Arc::new(fleet::join(self, dev)?);
                Source::Huygens { part, lease_ns }
            }
        })
    }

    /// Where the PTP hardware clock is.
    fn phc(&self) -> Result<PhcDevice> {
        match (&self.clock.device, self.devices.first()) {
            (Some(path), _) => Ok(PhcDevice::File(path.clone())),
            (None, Some(dev)) => Ok(PhcDevice::NetDevice(dev.clone())),
            (None, None) => bail!("clock.source is phc, and there is no device; set clock.device"),
        }
    }

    /// `--peers`, or the subnets of the devices' addresses and the fleet.
    ///
    /// # Errors
    /// The addresses cannot be read.
    pub fn peers(&self) -> Result<Peers> {
        if !self.peers.prefixes.is_empty() {
            return Ok(Peers::named(self.peers.prefixes.clone()));
        }
        let own = nix::ifaddrs::getifaddrs()?.filter(|a| self.devices.contains(&a.interface_name));
        let subnets = own.filter_map(|a| Prefix::of_interface(&a));
        let has_fleet = self.clock.source == ClockSource::Huygens;
        Ok(Peers::around(subnets.collect(), has_fleet))
    }
}

impl LawKeys {
    /// The configuration of the law.
    fn config(&self, line_rate: Option<Rate>) -> onramp_law::Config {
        let config = match self.threshold {
            Threshold::Fixed(span) => onramp_law::Config::new(self.name, span),
            Threshold::Auto => onramp_law::Config::new(self.name, Span::ZERO).threshold_of_peer(),
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

impl LinkKeys {
    /// Time of `--shape-ahead` on the line.
    fn ahead_ns(&self) -> u32 {
        let ahead = self.shape.map(|rate| rate.time_to_send(self.shape_ahead));
        ahead.map_or(0, u32_ns)
    }
}

/// As the BPF programs have it: 4 s at most.
fn u32_ns(span: Span) -> u32 {
    u32::try_from(span.as_ns()).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AgentOptions, Configuration, Daemon};
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        options: AgentOptions,
    }

    const UNKNOWN: Link = Link {
        mtu: 1500,
        rate: None,
        transmit_queues: 1,
    };

    /// What the data path gets from these options on a line of 10 Gbit/s.
    fn config(options: &[&str]) -> onr_dev_cfg {
        configuration(options)
            .device_config("eth0", &UNKNOWN)
            .unwrap()
    }

    fn configuration(options: &[&str]) -> Configuration {
        let device = ["--dev", "eth0", "--gso-max", "64kB", "--pace", "off"];
        let usual = device.iter().chain(&["--line-rate", "10Gbit/s"]);
        exactly(&usual.chain(options).copied().collect::<Vec<_>>())
    }

    fn exactly(options: &[&str]) -> Configuration {
        let words = ["run", "--config", "/dev/null"].iter().chain(options);
        let command = Command::try_parse_from(words).unwrap();
        let loaded = Configuration::load(&command.options.0, Daemon::Agent);
        loaded.unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn a_byte_takes_the_same_time_as_in_the_simulator() {
        let rate = "10 Gbit/s".parse().unwrap();
        let simulated = onramp_law::Config::new(Law::Off, Span::ZERO).line_rate(rate);
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
            assert_eq!(configuration(&options).devices, ["eth0", "eth1", "eth2"]);
        }
    }

    #[test]
    fn every_registered_law_is_an_option() {
        for law in Law::all() {
            assert_eq!(config(&["--law", law.name()]).law.law, law as u32);
        }
    }

    #[test]
    fn an_automatic_threshold_without_a_line_rate_is_large_and_says_so() {
        let unknown = exactly(&["--dev", "none", "--gso-max", "16kB"]);
        assert_eq!(unknown.law.threshold, Threshold::Auto);
        let burst = |config: &Config| config.burst([("none", &UNKNOWN)].into_iter());
        assert_eq!(burst(&unknown), "1280us".parse().unwrap());
        let warning = unknown.line_rate_warning("none", &UNKNOWN).unwrap();
        assert!(warning.contains("add --line-rate"), "{warning}");
        for option in [["--shape", "1Gbit/s"], ["--threshold", "50us"]] {
            assert_eq!(
                configuration(&option).line_rate_warning("eth0", &UNKNOWN),
                None
            );
        }
        assert_eq!(configuration(&[]).line_rate_warning("eth0", &UNKNOWN), None);
        assert_eq!(burst(&configuration(&[])), "51200ns".parse().unwrap());
    }

    #[test]
    fn a_changed_link_changes_quantum_and_law_unless_an_option_fixes_the_rate() {
        let [slow, fast] = [1, 2].map(|gbit| Link {
            mtu: 9000,
            rate: Rate::from_bits_per_s(gbit * 1_000_000_000),
            ..UNKNOWN
        });
        let free = exactly(&["--dev", "none", "--gso-max", "64kB", "--pace", "off"]);
        let of = |config: &Config, link: &Link| config.device_config("eth0", link).unwrap();
        assert_eq!(of(&free, &UNKNOWN).quantum_bytes, 2 * 1514);
        assert_eq!(of(&free, &slow).quantum_bytes, 2 * 9014);
        let byte = |config: &Config, link: &Link| of(config, link).law.line_ns_per_byte_q16;
        assert_eq!(byte(&free, &slow), 2 * byte(&free, &fast));
        let fixed = configuration(&[]);
        assert_eq!(byte(&fixed, &slow), byte(&fixed, &fast));
    }
}
