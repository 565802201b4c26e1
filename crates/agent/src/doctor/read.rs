// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Looks at the host. What cannot be read counts as not there.
use std::{
    io::ErrorKind,
    net::{Ipv4Addr, UdpSocket},
    path::Path,
};

use anyhow::{Context, Result};
use nix::net::if_::InterfaceFlags;
use onramp_clock::wire::PORT;
use onramp_law::abi::ONR_ORACK_PORT;
use onramp_status::{clock_socket_path, netns_inode, query, socket_path, Status};
use rustix::thread::capabilities;

use super::{
    built::{self, text, Options, LOADABLE},
    DeviceFacts, HostFacts, Part, Plan, PortUser, Qdisc,
};
use crate::config::BPFFS;
use crate::datapath::pins::bpffs_at;
use crate::datapath::{has_bpf_qdiscs, qdisc_of, tcx_programs, KERNEL_TYPES};
use crate::devices::{self, driver_rate, transmit_queues};
use crate::prefix::Prefix;

/// Start of the names of On-Ramp's tcx programs.
const OWN_PROGRAMS: &str = "orack_";
/// Maps that Cilium pins for its bandwidth manager.
const CILIUM_THROTTLE: &str = "/sys/fs/bpf/tc/globals/cilium_throttle";

/// What the host has, for a daemon with this plan.
///
/// # Errors
/// The kernel does not name its release.
pub fn read_host(plan: Plan) -> Result<HostFacts> {
    let release = nix::sys::utsname::uname()?;
    let release = release.release().to_string_lossy().into_owned();
    let options = Options::read(&release);
    let is_container = is_container();
    let has_types = Path::new(KERNEL_TYPES).exists();
    let hides_types = is_container || !Path::new("/sys/kernel").exists();
    Ok(HostFacts {
        missing_capabilities: missing_capabilities(),
        is_container,
        plan,
        types: built::types(has_types, hides_types, options.as_ref()),
        has_bpf_qdiscs: has_bpf_qdiscs(),
        fq: fq(&release, options.as_ref()),
        bpffs: bpffs_at(Path::new(BPFFS)),
        compiles_bpf: text("/proc/sys/net/core/bpf_jit_enable").map(|value| value != "0"),
        has_bandwidth_manager: Path::new(CILIUM_THROTTLE).exists(),
        clock_port: clock_port()?,
        orack_port: match is_taken(ONR_ORACK_PORT as u16) {
            true => PortUser::Other,
            false => PortUser::Nobody,
        },
        ptp_clocks: ptp_clocks(),
        release,
    })
}

fn missing_capabilities() -> Vec<&'static str> {
    let needed = crate::capabilities::of_data_path();
    let has = capabilities(None).map(|sets| sets.effective).ok();
    let missing = has.map_or(needed, |has| needed - has);
    missing.iter_names().map(|(name, _)| name).collect()
}

/// Files and variables by which container engines and Kubernetes mark a container.
fn is_container() -> bool {
    let files = ["/.dockerenv", "/run/.containerenv"];
    let variables = ["container", "KUBERNETES_SERVICE_HOST"];
    files.iter().any(|file| Path::new(file).exists())
        || variables
            .iter()
            .any(|name| std::env::var_os(name).is_some())
}

fn fq(release: &str, options: Option<&Options>) -> Part {
    let is_default = || text("/proc/sys/net/core/default_qdisc").is_some_and(|kind| kind == "fq");
    if Path::new("/sys/module/sch_fq").exists() || is_default() {
        return Part::Here;
    }
    let list = |list: &str| text(&format!("/lib/modules/{release}/{list}"));
    let lists = [list("modules.builtin"), list(LOADABLE)];
    built::fq(lists.each_ref().map(Option::as_deref), options)
}

fn is_taken(port: u16) -> bool {
    let bound = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port));
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

fn clock_port() -> Result<PortUser> {
    if !is_taken(PORT) {
        return Ok(PortUser::Nobody);
    }
    let socket = clock_socket_path(netns_inode().context("reading the network namespace")?);
    let own = query::<onramp_clock::status::Status>(&socket).is_ok();
    Ok(match own {
        true => PortUser::Own,
        false => PortUser::Other,
    })
}

fn ptp_clocks() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/ptp").into_iter().flatten();
    let clock = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let driver = std::fs::read_to_string(entry.path().join("clock_name")).ok()?;
        let file = entry.file_name();
        Some(format!("/dev/{} ({})", file.display(), driver.trim()))
    };
    let mut clocks: Vec<String> = entries.filter_map(clock).collect();
    clocks.sort();
    clocks
}

/// What a device has.
///
/// # Errors
/// There is no such device, or it is the loopback device.
pub fn read_device(dev: &str) -> Result<DeviceFacts> {
    devices::check(&[dev.to_owned()])?;
    let ifindex = devices::index(dev).with_context(|| format!("{dev} was removed"))?;
    let all: Vec<_> = nix::ifaddrs::getifaddrs()?
        .filter(|address| address.interface_name == dev)
        .collect();
    let netns = netns_inode().context("reading the network namespace")?;
    let daemon = query::<Status>(&socket_path(netns, dev));
    let programs = tcx_programs(ifindex).ok();
    let is_own = |name: &String| name.starts_with(OWN_PROGRAMS);
    let has_own_programs = programs.iter().flatten().any(is_own);
    let others = |names: Vec<String>| names.into_iter().filter(|name| !is_own(name)).collect();
    let limits = format!("/sys/class/net/{dev}/queues/tx-0/byte_queue_limits");
    Ok(DeviceFacts {
        name: dev.to_owned(),
        is_up: all.iter().any(|a| a.flags.contains(InterfaceFlags::IFF_UP)),
        addresses: all.iter().filter_map(Prefix::of_interface).collect(),
        qdisc: match qdisc_of(dev) {
            Ok(None) => Qdisc::Own,
            Ok(Some(kind)) => Qdisc::Replaceable(kind),
            Err(error) => Qdisc::Foreign(format!("{error:#}").replace("DEV", dev)),
        },
        tcx: programs.map(others),
        has_own_programs,
        line_rate: driver_rate(dev),
        counts_bytes: Path::new(&limits).exists(),
        queues: transmit_queues(dev),
        gso_max_bytes: crate::datapath::edge::gso_max(dev).ok().map(|b| b.get()),
        daemon: daemon.ok().map(|status| status.pid),
    })
}
