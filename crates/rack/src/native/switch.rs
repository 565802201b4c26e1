// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Loads bpf/switch.bpf.c: forwarding between lines and ports, and CE marks.

use super::bpf::{attach, Hook};
use super::sys::{self, NetNs};
use crate::error::{Doing, Result};
use bytemuck::bytes_of;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use onramp_law::abi::onr_rack_port;
use onramp_scenario::{Ecn, Network, Run};
use onramp_units::Rate;
use std::collections::{btree_map::Entry, BTreeMap};
use std::fmt;
use std::mem::MaybeUninit;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/switch.skel.rs"));
}

/// The switch's programs, attached.
pub struct Switch {
    skel: skel::SwitchSkel<'static>,
    /// The same programs with the thresholds of ports of other rates than the first host's.
    _others: BTreeMap<Rate, skel::SwitchSkel<'static>>,
    _links: Vec<Link>,
}

/// Loads the programs for ports of this rate.
fn load(network: &Network, rate: Rate) -> Result<skel::SwitchSkel<'static>> {
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = skel::SwitchSkelBuilder::default()
        .open(object)
        .doing(|| "opening switch.bpf.o".into())?;
    if let Some(ecn) = network.ecn_at(rate) {
        let constants = open.maps.rodata_data.as_deref_mut();
        let constants = constants.expect("switch.bpf.c has constants");
        let (step, parts) = marks(&ecn);
        constants.mark_above_bytes = u32_of(ecn.threshold.get());
        constants.mark_step_bytes = step;
        constants.mark_parts = parts;
    }
    open.load().doing(|| "loading switch.bpf.o".into())
}

impl Switch {
    /// Connects the lines and ports in the switch's `namespace`.
    pub fn attach(run: &Run, namespace: &NetNs) -> Result<Switch> {
        let first = run.network.link_of(0).rate;
        let skel = load(&run.network, first)?;
        let mut others = BTreeMap::new();
        let mut links = Vec::new();
        for host in 0..run.network.topology.hosts() {
            let (up, line) = (format!("up{host}"), format!("line{host}"));
            let find = |name: &str| {
                let index = namespace
                    .within(|| sys::ifindex(name))
                    .and_then(|found| found);
                index.doing(|| format!("finding device {name}"))
            };
            let port = onr_rack_port {
                line_ifindex: find(&line)? as u32,
                up_ifindex: find(&up)? as u32,
            };
            let ports = &skel.maps.rack_ports;
            ports
                .update(&host.to_ne_bytes(), bytes_of(&port), MapFlags::ANY)
                .doing(|| format!("entering port {host}"))?;
            links.push(attach(
                namespace,
                &skel.progs.switch_forward,
                &line,
                Hook::Netkit,
            )?);
            if run.network.ecn.is_some() {
                let rate = run.network.link_of(host).rate;
                let of_rate = match others.entry(rate) {
                    _ if rate == first => &skel,
                    Entry::Occupied(loaded) => &*loaded.into_mut(),
                    Entry::Vacant(place) => &*place.insert(load(&run.network, rate)?),
                };
                let mark = &of_rate.progs.switch_mark;
                links.push(attach(namespace, mark, &up, Hook::Tcx)?);
            }
        }
        Ok(Switch {
            skel,
            _others: others,
            _links: links,
        })
    }

    /// Attaches the program that takes frames of host i into the switch. This is a separate step, because
    /// programs run in the order of attachment, and this program ends the chain.
    pub fn connect(&mut self, namespace: &NetNs, hosts: u32) -> Result<()> {
        for host in 0..hosts {
            let up = format!("up{host}");
            self._links.push(attach(
                namespace,
                &self.skel.progs.switch_line_in,
                &up,
                Hook::Tcx,
            )?);
        }
        Ok(())
    }

    /// Frames without the address of a host.
    pub fn unknown_frames(&self) -> u64 {
        self.skel
            .maps
            .bss_data
            .as_deref()
            .map_or(0, |bss| bss.unknown_frames)
    }
}

/// RACK_MARK_STEPS in switch.bpf.c.
const STEPS: usize = 1024;

fn u32_of(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Bytes of a step of the queue above the threshold, and the part of marked frames in each, in 2^-32. The last step is
/// above the end of the curve.
fn marks(ecn: &Ecn) -> (u32, [u32; STEPS]) {
    let (min, max) = (ecn.threshold.get(), ecn.curve_ends().get());
    let step = (max - min).div_ceil(STEPS as u64 - 1).max(1);
    let part = |n: usize| {
        let queue = min + n as u64 * step + step.div_ceil(2);
        match ecn.curve().between(queue, min, max) {
            Some(part) => part * ecn.max_fraction.get(),
            None => 1.0, // above the threshold all or none is all
        }
    };
    let parts = std::array::from_fn(|n| (part(n) * f64::from(u32::MAX)) as u32);
    (u32_of(step), parts)
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch")
            .field("unknown_frames", &self.unknown_frames())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;

    fn marks_of(ecn: &str) -> (u32, [u32; STEPS]) {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[network]\ntopology = {{ kind = \"star\", hosts = 2 }}\nlink = {{ rate = \"100 Mbit/s\", delay = \"1 us\" }}\nbuffer = \"1 MB\"\n[network.ecn]\n{ecn}[[traffic]]\nkind = \"long\"\nflows = 1\n"
        );
        let scenario = Scenario::parse(&text, "t").unwrap();
        marks(&scenario.runs()[0].network.ecn.unwrap())
    }

    #[test]
    fn above_a_threshold_alone_all_are_marked() {
        let (_, parts) = marks_of("threshold = \"10 kB\"\n");
        assert!(parts.iter().all(|&part| part == u32::MAX));
    }

    #[test]
    fn the_curve_of_tiny_buffer_tcp_ends_at_a_half() {
        let (step, parts) = marks_of("threshold = \"10 kB\"\nbdp = \"102300 B\"\n");
        assert_eq!(step, 100);
        let part = |n: usize| f64::from(parts[n]) / f64::from(u32::MAX);
        assert!((part(341) - 0.25).abs() < 0.001, "{}", part(341));
        assert!((part(STEPS - 1) - 0.5).abs() < 1e-9);
    }
}
