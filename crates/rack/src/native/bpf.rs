// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Attaching BPF programs to network devices: the links that libbpf-rs does not wrap.

use super::sys::{self, NetNs};
use crate::error::{Doing, Result};
use libbpf_rs::{AsRawLibbpf, Link, ProgramMut};
use std::ptr::{null, NonNull};

/// The hook of a device at which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// tcx, in the direction of the program's section.
    Tcx,
    /// netkit, on transmission by the primary device.
    Netkit,
}

/// Attaches `program` behind those already on the device `name` of `namespace`. Dropping the link
/// detaches it.
pub fn attach(namespace: &NetNs, program: &ProgramMut<'_>, name: &str, hook: Hook) -> Result<Link> {
    let attach = || {
        let ifindex = sys::ifindex(name).doing(|| format!("finding device {name}"))?;
        let program_name = program.name().to_string_lossy().into_owned();
        link(program, ifindex, hook).doing(|| format!("attaching {program_name} to {name}"))
    };
    namespace
        .within(attach)
        .doing(|| "entering a namespace".into())?
}

fn link(program: &ProgramMut<'_>, ifindex: i32, hook: Hook) -> Result<Link, libbpf_rs::Error> {
    let raw = program.as_libbpf_object().as_ptr();
    // SAFETY: `raw` is a loaded program for the time of the calls; no options.
    let link = unsafe {
        match hook {
            Hook::Tcx => libbpf_rs::libbpf_sys::bpf_program__attach_tcx(raw, ifindex, null()),
            Hook::Netkit => libbpf_rs::libbpf_sys::bpf_program__attach_netkit(raw, ifindex, null()),
        }
    };
    match NonNull::new(link) {
        // SAFETY: a link that has no other owner.
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => Err(std::io::Error::last_os_error().into()),
    }
}
