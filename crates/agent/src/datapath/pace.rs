// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Lets TCP space its own segments where edge has replaced fq (bpf/pace.bpf.c). Nothing of it is pinned: without the
//! daemon new connections are not spaced, as behind most qdiscs.
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    mem::MaybeUninit,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
};

use anyhow::{bail, Context, Result};
use libbpf_rs::{
    skel::{OpenSkel, SkelBuilder},
    Iter, Link, MapCore, MapFlags, MapHandle,
};
use nix::libc;

use super::{object::explain_load, remove};
use crate::cgroup;

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod pace_skel {
    include!(concat!(env!("OUT_DIR"), "/pace.skel.rs"));
}
use pace_skel::PaceSkelBuilder;

/// Inode of the root cgroup, whose programs see the sockets of the whole host.
const ROOT: u64 = 1;

/// The loaded programs, and the devices whose connections they pace. Dropping it detaches them.
pub struct Pacing {
    devices: MapHandle,
    paced: BTreeSet<u32>,
    open_sockets: Link,
    _new_sockets: Link,
}

impl Pacing {
    /// Loads and attaches the programs. No device is paced yet.
    ///
    /// # Errors
    /// The root cgroup is not to be seen, or the kernel refuses.
    pub fn attach() -> Result<Self> {
        let root = cgroup::mounted().context("no cgroup file system of version 2 is mounted")?;
        let root = File::open(&root).with_context(|| root)?;
        if root.metadata()?.ino() != ROOT {
            bail!("the root cgroup of this host is not to be seen");
        }
        let mut object = MaybeUninit::uninit();
        let mut open = PaceSkelBuilder::default()
            .open(&mut object)
            .context("reading pace.bpf.o")?;
        let data = open.maps.rodata_data.as_mut().context("pace.bpf.o")?;
        data.netns_cookie = netns_cookie().context("reading the network namespace's cookie")?;
        let programs = open.load().map_err(|error| explain_load(error, "pace"))?;
        Ok(Self {
            devices: MapHandle::try_from(&programs.maps.devices)?,
            paced: BTreeSet::new(),
            open_sockets: programs.progs.open_socket.attach()?,
            _new_sockets: programs.progs.new_socket.attach_cgroup(root.as_raw_fd())?,
        })
    }

    /// Paces the connections of these devices, and of those that lie over them, and of no others.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn follow(&mut self, devices: impl Iterator<Item = String>) -> Result<()> {
        let mut wanted = BTreeSet::new();
        devices.for_each(|name| with_uppers(&name, &mut wanted));
        if wanted == self.paced {
            return Ok(());
        }
        for gone in self.paced.difference(&wanted) {
            remove(&self.devices, gone)?;
        }
        for new in wanted.difference(&self.paced) {
            let present = 1u32.to_ne_bytes();
            self.devices
                .update(&new.to_ne_bytes(), &present, MapFlags::ANY)?;
        }
        let mut nothing = vec![];
        let looked = Iter::new(&self.open_sockets)?.read_to_end(&mut nothing);
        looked.context("iterating over TCP sockets")?;
        self.paced = wanted;
        Ok(())
    }
}

/// The indices of a device and of all that lie over it.
fn with_uppers(name: &str, found: &mut BTreeSet<u32>) {
    let Ok(ifindex) = nix::net::if_::if_nametoindex(name) else {
        return; // it has gone
    };
    if !found.insert(ifindex) {
        return;
    }
    let links = fs::read_dir(format!("/sys/class/net/{name}"));
    for link in links.into_iter().flatten().flatten() {
        let link = link.file_name();
        if let Some(upper) = link.to_str().and_then(|link| link.strip_prefix("upper_")) {
            with_uppers(upper, found);
        }
    }
}

/// The number by which programs know the network namespace of a socket.
fn netns_cookie() -> nix::Result<u64> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0));
    let socket = socket.map_err(|_| nix::Error::last())?;
    let (mut cookie, mut bytes) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `bytes` bytes to `cookie`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut bytes,
        )
    };
    nix::errno::Errno::result(outcome).map(|_| cookie)
}

/// include/uapi/asm-generic/socket.h
const SO_NETNS_COOKIE: libc::c_int = 71;
