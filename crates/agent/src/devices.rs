//! The devices that the operator names, and those that they stand for: a bond has no queue of its own, so its slaves
//! get the data path.
use std::str::FromStr;

use anyhow::{bail, Context, Result};
use nix::net::if_::{if_nameindex, if_nametoindex, Interface, InterfaceFlags};

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

/// The slaves of a bond; none if the device is no bond.
fn slaves(dev: &str) -> Option<Vec<String>> {
    let names: String = attribute(dev, "bonding/slaves")?;
    Some(names.split_whitespace().map(str::to_owned).collect())
}

/// The kernel's index of a device, if it is there.
pub fn index(dev: &str) -> Option<i32> {
    if_nametoindex(dev).ok().map(|index| index as i32)
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
    let all = if_nameindex().context("listing network devices")?;
    let name = |i: &Interface| i.name().to_string_lossy().into_owned();
    let names: Vec<String> = all.iter().map(name).collect();
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
    Ok(())
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
