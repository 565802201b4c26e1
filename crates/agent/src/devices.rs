// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The devices that the operator names, and those that they stand for: a bond has no queue of its own, so its slaves
//! get the data path.
use std::str::FromStr;

use anyhow::{bail, Context, Result};
use nix::net::if_::{if_nameindex, if_nametoindex, Interface, InterfaceFlags};
use onramp_units::Rate;

use crate::datapath::kind_of;

mod lock;
mod named;

pub use lock::Lock;
pub use named::{Named, Present};

/// MTU of a device that does not report one.
const USUAL_MTU: u32 = 1500;

/// The devices to attach to, each once; one that was removed may be among them.
pub fn present(named: &[String]) -> Vec<String> {
    let mut all = vec![];
    for dev in named {
        let found = slaves(dev).unwrap_or_else(|| vec![dev.clone()]);
        for dev in found {
            if !all.contains(&dev) {
                all.push(dev);
            }
        }
    }
    all
}

/// The devices to attach to, by index: those that were named and are there, and the slaves of those that are bonds.
pub fn wanted(named: &[Named]) -> Present {
    let there = named.iter().filter(|named| named.ifindex().is_some());
    let names: Vec<String> = there.map(|named| named.name().to_owned()).collect();
    let device = |name: String| Some((index(&name)?, name));
    present(&names).into_iter().filter_map(device).collect()
}

/// What the configuration of a device's data path depends on, and what can change while the device is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes.
    pub mtu: u32,
    /// As the driver reports it.
    pub rate: Option<Rate>,
    pub transmit_queues: usize,
}

impl Link {
    /// As the kernel reports it now.
    pub fn of(dev: &str) -> Link {
        Link {
            mtu: attribute(dev, "mtu").unwrap_or(USUAL_MTU),
            rate: driver_rate(dev),
            transmit_queues: transmit_queues(dev),
        }
    }

    /// What became of it, if the device is there. A link that is down reports no rate, and keeps the former one.
    pub fn now(&self, dev: &str) -> Option<Link> {
        let now = Link::of(dev);
        let is_there = now.transmit_queues > 0;
        is_there.then(|| Link {
            rate: now.rate.or(self.rate),
            ..now
        })
    }

    /// What is different from a former one, in words; none if nothing is.
    pub fn changes(&self, former: &Link) -> Option<String> {
        let rate = |link: &Link| {
            link.rate
                .map_or("unknown".to_owned(), |rate| rate.to_string())
        };
        let mut all = vec![];
        if self.mtu != former.mtu {
            all.push(format!("MTU {} B, was {}", self.mtu, former.mtu));
        }
        if self.rate != former.rate {
            all.push(format!("line rate {}, was {}", rate(self), rate(former)));
        }
        if self.transmit_queues != former.transmit_queues {
            all.push(format!(
                "transmit queues {}, were {}",
                self.transmit_queues, former.transmit_queues
            ));
        }
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The rate that the driver reports, in Mbit/s; virtual devices often report nothing or -1.
pub fn driver_rate(dev: &str) -> Option<Rate> {
    let mbit: u64 = attribute(dev, "speed")?;
    Rate::from_bits_per_s(mbit.checked_mul(1_000_000)?)
}

/// The slaves of a bond; none if the device is no bond.
fn slaves(dev: &str) -> Option<Vec<String>> {
    let names: String = attribute(dev, "bonding/slaves")?;
    Some(names.split_whitespace().map(str::to_owned).collect())
}

/// The devices of this network namespace.
pub fn all() -> Result<Present> {
    let all = if_nameindex().context("listing network devices")?;
    let device = |i: &Interface| (i.index() as i32, i.name().to_string_lossy().into_owned());
    Ok(all.iter().map(device).collect())
}

/// Their names.
pub fn names() -> Result<Vec<String>> {
    Ok(all()?.into_values().collect())
}

/// The kernel's index of a device, if it is there.
pub fn index(dev: &str) -> Option<i32> {
    if_nametoindex(dev).ok().map(|index| index as i32)
}

/// Is there a device with this index?
pub fn is_there(ifindex: i32) -> bool {
    all().is_ok_and(|all| all.contains_key(&ifindex))
}

/// Refuses names that no data path can be attached to.
pub fn check(named: &[String]) -> Result<()> {
    for (position, dev) in named.iter().enumerate() {
        if named[..position].contains(dev) {
            bail!("--dev {dev} is given twice; leave one out");
        }
        check_one(dev)?;
    }
    Ok(())
}

fn check_one(dev: &str) -> Result<()> {
    let names = names()?;
    if !names.iter().any(|name| name == dev) {
        bail!(
            "--dev is {dev}, which is not a network device here; devices: {}",
            names.join(", ")
        );
    }
    let loopback = nix::ifaddrs::getifaddrs()?
        .any(|a| a.interface_name == dev && a.flags.contains(InterfaceFlags::IFF_LOOPBACK));
    if loopback {
        bail!("--dev is {dev}, the loopback device, which leads to no network; use another device");
    }
    if slaves(dev).is_some_and(|slaves| slaves.is_empty()) {
        bail!(
            "--dev is {dev}, a bond without slaves, which sends nothing; add one first: \
             ip link set DEV master {dev}"
        );
    }
    refuse_team(dev)
}

/// A team device has no queue of its own, and the daemon does not follow its ports.
fn refuse_team(dev: &str) -> Result<()> {
    let ifindex = index(dev).with_context(|| format!("{dev} was removed"))?;
    if kind_of(ifindex)?.as_deref() == Some("team") {
        let ports: Vec<String> = ports(dev).iter().map(|p| format!("--dev {p}")).collect();
        let instead = match ports.is_empty() {
            true => "add ports to it and name them".to_owned(),
            false => format!("name its ports: {}", ports.join(" ")),
        };
        bail!("--dev is {dev}, a team device, which has no queue of its own; {instead}");
    }
    Ok(())
}

/// The devices below a device, by name.
fn ports(dev: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/sys/class/net/{dev}"));
    let names = entries.into_iter().flatten().flatten();
    let lower = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.strip_prefix("lower_").map(str::to_owned)
    };
    let mut all: Vec<String> = names.filter_map(lower).collect();
    all.sort();
    all
}

/// What the kernel reports of a device in /sys.
pub fn attribute<T: FromStr>(dev: &str, name: &str) -> Option<T> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{dev}/{name}")).ok()?;
    text.trim().parse().ok()
}

/// The number of the device's transmit queues.
pub fn transmit_queues(dev: &str) -> usize {
    let entries = std::fs::read_dir(format!("/sys/class/net/{dev}/queues"));
    let names = entries.into_iter().flatten().flatten();
    let is_tx = |name: std::fs::DirEntry| name.file_name().to_string_lossy().starts_with("tx-");
    names.map(is_tx).filter(|tx| *tx).count()
}

/// The devices of the default routes, of IPv4 and IPv6.
///
/// # Errors
/// There is none.
pub fn of_default_routes() -> Result<Vec<String>> {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let devices = default_devices(&read("/proc/net/route"), &read("/proc/net/ipv6_route"));
    if devices.is_empty() {
        bail!(
            "this host has no default route, so the device to hold is not known; add --dev DEV, or write \
             devices = [\"DEV\"] into the configuration"
        );
    }
    Ok(devices)
}

/// The devices in the kernel's tables of routes whose destination has a prefix of length 0.
fn default_devices(route: &str, ipv6_route: &str) -> Vec<String> {
    let v4 = route.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (device, to, mask) = (words.first()?, words.get(1)?, words.get(7)?);
        (*to == "00000000" && *mask == "00000000").then(|| (*device).to_owned())
    });
    let v6 = ipv6_route.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (to, bits, device) = (words.first()?, words.get(1)?, words.last()?);
        let is_default = to.bytes().all(|digit| digit == b'0') && *bits == "00" && *device != "lo";
        is_default.then(|| (*device).to_owned())
    });
    let mut all: Vec<String> = v4.chain(v6).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_link_are_listed_with_the_former_values() {
        let former = Link {
            mtu: 1500,
            rate: None,
            transmit_queues: 1,
        };
        assert_eq!(former.changes(&former), None);
        let now = Link {
            mtu: 9000,
            rate: Rate::from_bits_per_s(25_000_000_000),
            transmit_queues: 4,
        };
        assert_eq!(
            now.changes(&former).unwrap(),
            "MTU 9000 B, was 1500; line rate 25 Gbit/s, was unknown; transmit queues 4, were 1"
        );
    }

    #[test]
    fn devices_of_default_routes_are_found_once() {
        let route =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        let none = "0".repeat(32);
        let ipv6 = format!(
            "{none} 00 {none} 00 fe80 00000400 00000001 00000000 00000003 eth0\n\
             {none} 00 {none} 00 {none} ffffffff 00000001 00000000 00200200 lo\n\
             fd00 40 {none} 00 {none} 00000100 00000001 00000000 00000001 eth2\n"
        );
        assert_eq!(default_devices(route, &ipv6), ["eth0"]);
        assert_eq!(default_devices("", &ipv6), ["eth0"]);
        assert!(default_devices("", "").is_empty());
    }
}
