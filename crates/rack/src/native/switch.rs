//! Loads bpf/switch.bpf.c: forwarding between lines and ports, and CE marks.

use super::bpf::{attach, Hook};
use super::sys::{self, NetNs};
use crate::error::{Doing, Result};
use bytemuck::bytes_of;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use onramp_law::abi::onr_rack_port;
use onramp_scenario::Run;
use std::fmt;
use std::mem::MaybeUninit;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/switch.skel.rs"));
}

/// The switch's programs, attached.
pub struct Switch {
    skel: skel::SwitchSkel<'static>,
    _links: Vec<Link>,
}

impl Switch {
    /// Connects the lines and ports in the switch's `namespace`.
    pub fn attach(run: &Run, namespace: &NetNs) -> Result<Switch> {
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skel::SwitchSkelBuilder::default()
            .open(object)
            .doing(|| "opening switch.bpf.o".into())?;
        if let Some(ecn) = run.network.ecn {
            let threshold = u32::try_from(ecn.threshold.get()).unwrap_or(u32::MAX);
            open.maps
                .rodata_data
                .as_deref_mut()
                .expect("switch.bpf.c has constants")
                .mark_above_bytes = threshold;
        }
        let skel = open.load().doing(|| "loading switch.bpf.o".into())?;
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
                links.push(attach(namespace, &skel.progs.switch_mark, &up, Hook::Tcx)?);
            }
        }
        Ok(Switch {
            skel,
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

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch")
            .field("unknown_frames", &self.unknown_frames())
            .finish_non_exhaustive()
    }
}
