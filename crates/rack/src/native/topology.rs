// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Builds the rack: a namespace for each host and one for the switch, wired as links.rs says, with
//! the switch's and the probes' BPF programs attached. Carries no traffic itself.
//!
//! The rack has no names outside of the process: namespaces are descriptors, programs are links. When the
//! process ends for any reason, the kernel removes all of it, so a crash leaves nothing to clean up.

use super::links;
use super::probe::Probe;
use super::switch::Switch;
use super::sys::{self, NetNs, Offload};
use super::tools::{self, QdiscStats, Reading};
use crate::error::{Doing, Error, Result};
use onramp_scenario::{HostId, Run};
use std::fs;
use std::io;

/// An idle network.
#[derive(Debug)]
pub struct Rack {
    hosts: Vec<NetNs>,
    switch: NetNs,
    programs: Switch,
    probe: Probe,
    _tcp: CubicSettings,
}

impl Rack {
    /// Builds the network of `run`; `measured` is the host whose switch port is observed.
    ///
    /// # Errors
    /// Errors of the kernel, `ip`, `tc` or the BPF verifier.
    pub fn build(run: &Run, measured: HostId) -> Result<Rack> {
        let count = run.network.topology.hosts();
        let new = || NetNs::create().doing(|| "creating a network namespace".into());
        let switch = new()?;
        let hosts = (0..count).map(|_| new()).collect::<Result<Vec<_>>>()?;

        // A switch only forwards frames: it has no addresses and requests none.
        sysctl(&switch, "net/ipv6/conf/default/disable_ipv6", "1")?;
        let paths: Vec<_> = hosts.iter().map(NetNs::path).collect();
        tools::batch(&switch, "ip", &links::switch_links(&paths))?;
        tools::batch(&switch, "tc", &links::switch_queues(run))?;
        for (host, namespace) in (0..).zip(&hosts) {
            configure_host(run, host, namespace)?;
        }
        let mut programs = Switch::attach(run, &switch)?;
        let probe = Probe::attach(&switch, &hosts, measured)?;
        programs.connect(&switch, count)?;
        let tcp = CubicSettings::apply(run)?;
        Ok(Rack {
            hosts,
            switch,
            programs,
            probe,
            _tcp: tcp,
        })
    }

    /// Namespaces of the hosts.
    pub fn hosts(&self) -> &[NetNs] {
        &self.hosts
    }

    /// The hosts, and the counters that can be read while traffic runs.
    pub fn split(&mut self) -> (&[NetNs], Instruments<'_>) {
        let Rack {
            hosts,
            switch,
            programs,
            probe,
            ..
        } = self;
        (
            hosts,
            Instruments {
                probe,
                switch,
                programs,
                hosts,
            },
        )
    }
}

/// The counters of a rack's switch and probes.
#[derive(Debug)]
pub struct Instruments<'a> {
    /// The probes.
    pub probe: &'a mut Probe,
    switch: &'a NetNs,
    programs: &'a Switch,
    hosts: &'a [NetNs],
}

impl Instruments<'_> {
    /// Frames without a receiving host, so far.
    pub fn unknown_frames(&self) -> u64 {
        self.programs.unknown_frames()
    }

    /// Packets that the hosts' own qdiscs have dropped.
    pub fn host_drops(&self) -> Result<u64> {
        let mut drops = 0;
        for host in self.hosts {
            // The root counts what its children drop.
            let root = Reading::start(host)?
                .finish()?
                .into_iter()
                .find(|q| q.dev == "eth0");
            drops += root.map_or(0, |root| root.drops);
        }
        Ok(drops)
    }

    /// Starts to read the counters of the switch.
    pub fn read_ports(&self) -> Result<Reading> {
        Reading::start(self.switch)
    }

    /// Counters of the switch ports, in the order of hosts.
    pub fn ports(&self, reading: Reading) -> Result<Vec<QdiscStats>> {
        let all = reading.finish()?;
        let port = |host: usize| {
            let name = format!("up{host}");
            all.iter()
                .find(|q| q.dev == name && q.kind == "tbf")
                .cloned()
                .ok_or_else(|| Error::Tool {
                    command: "tc -s -j qdisc show".into(),
                    message: format!("no tbf on {name}"),
                })
        };
        (0..self.hosts.len()).map(port).collect()
    }
}

fn configure_host(run: &Run, host: u32, namespace: &NetNs) -> Result<()> {
    for (path, value) in links::host_sysctls(run) {
        sysctl(namespace, path, &value)?;
    }
    let offloads = || -> io::Result<()> {
        sys::set_offload("eth0", Offload::Tso, false)?;
        sys::set_offload("eth0", Offload::Gro, run.settings_of(host).host.gro)
    };
    let doing = || format!("setting offloads of host {host}");
    namespace
        .within(offloads)
        .and_then(|done| done)
        .doing(doing)?;
    tools::batch(namespace, "ip", &links::host_links(run, host))?;
    tools::batch(namespace, "tc", &links::host_queues(run, host))
}

fn sysctl(namespace: &NetNs, path: &str, value: &str) -> Result<()> {
    // /proc/sys/net shows the namespace of whoever reads it.
    let write = || fs::write(format!("/proc/sys/{path}"), value);
    namespace
        .within(write)
        .and_then(|done| done)
        .doing(|| format!("setting {path} = {value}"))
}

/// CUBIC's module parameters, which all namespaces share; restored when dropped. They are the only state
/// that remains after SIGKILL, and only a dilated rack changes them.
#[derive(Debug)]
struct CubicSettings(Vec<(&'static str, String)>);

impl CubicSettings {
    const DIRECTORY: &'static str = "/sys/module/tcp_cubic/parameters";

    /// Dilates HyStart; dilation.rs explains why its delay test is off.
    fn apply(run: &Run) -> Result<CubicSettings> {
        let times = run.time_dilation.get();
        let mut before = CubicSettings(Vec::new());
        if times > 1 {
            before.set("hystart_detect", "1")?;
            before.set("hystart_ack_delta_us", &(2000 * times).to_string())?;
        }
        Ok(before)
    }

    fn set(&mut self, name: &'static str, value: &str) -> Result<()> {
        let path = format!("{}/{name}", Self::DIRECTORY);
        let doing = || format!("setting {path} = {value}");
        let old = fs::read_to_string(&path).doing(doing)?;
        fs::write(&path, value).doing(doing)?;
        self.0.push((name, old));
        Ok(())
    }
}

impl Drop for CubicSettings {
    fn drop(&mut self) {
        for (name, value) in &self.0 {
            let path = format!("{}/{name}", Self::DIRECTORY);
            if let Err(error) = fs::write(&path, value) {
                tracing::warn!(path, value, %error, "could not put a parameter of CUBIC back");
            }
        }
    }
}
