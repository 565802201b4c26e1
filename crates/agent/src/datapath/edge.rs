//! The qdisc of a device: installs it, and restores what was there before. If the process is killed, the qdisc stays
//! and forwards packets, and holds nothing once the lease has ended.
use std::{
    mem::MaybeUninit,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};
use libbpf_rs::{
    skel::{OpenSkel, SkelBuilder},
    Link, OpenObject,
};

use onramp_law::abi::{onr_dev_cfg, ONR_BUCKETS};
use onramp_status::{netns_inode, RootQdisc, RUN_DIR};
use onramp_units::Bytes;

use super::{
    object::{explain_load, set_cfg},
    qdisc,
};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod edge_skel {
    include!(concat!(env!("OUT_DIR"), "/edge.skel.rs"));
}
pub use edge_skel::{EdgeMaps as Maps, EdgeSkel};

/// The qdisc on its device, and what was there before.
pub struct Edge {
    id: String,
    device: qdisc::Device,
    before: qdisc::Before,
    /// File that keeps `before` for the next daemon, if this one is killed.
    before_file: PathBuf,
    /// The largest GSO segment of the device as this daemon left it.
    gso_limit_bytes: u32,
    _link: Link,
}

/// The name under which the qdisc is registered. Names are global in the kernel and have at most 15
/// characters, so it contains the network namespace and the device.
pub fn qdisc_id(netns_inode: u64, ifindex: i32) -> String {
    format!("{}{:05x}_{ifindex}", qdisc::PREFIX, netns_inode & 0xf_ffff)
}

/// Is fq the root qdisc of the device, or was it before a daemon attached, or would the kernel make it so?
pub fn had_fq(dev: &str) -> Result<bool> {
    let (ifindex, device) = open(dev)?;
    let id = qdisc_id(netns_inode()?, ifindex);
    Ok(match qdisc::Before::of(&device, &before_file(&id)) {
        Ok(before) => before.qdisc.kind() == "fq",
        Err(_) => false, // attach() says why
    })
}

/// The largest GSO segment of a device as it is, or as it was before a daemon attached.
pub fn gso_max(dev: &str) -> Result<Bytes> {
    let (_, device) = open(dev)?;
    Ok(Bytes::new(device.gso_max_size()?.into()))
}

fn open(dev: &str) -> Result<(i32, qdisc::Device)> {
    let ifindex = nix::net::if_::if_nametoindex(dev)? as i32;
    Ok((ifindex, qdisc::Device::open(ifindex)?))
}

pub(super) fn before_file(id: &str) -> PathBuf {
    Path::new(RUN_DIR).join(format!("{id}.before"))
}

/// Loads the programs of the qdisc `id`.
pub fn load<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    id: &str,
    cfg: &onr_dev_cfg,
) -> Result<EdgeSkel<'o>> {
    let mut open = edge_skel::EdgeSkelBuilder::default()
        .open(object)
        .context("reading edge.bpf.o")?;
    open.maps.ctls.set_max_entries(cfg.max_flows)?;
    open.maps.flow_ids.set_max_entries(cfg.max_flows)?;
    open.maps
        .queues
        .set_max_entries(1 + ONR_BUCKETS + cfg.max_flows)?;
    open.maps.heap.set_max_entries(2 * cfg.max_flows)?;
    set_cfg(open.maps.data_cfg.initial_value_mut(), cfg)?;
    let name: [std::ffi::c_char; 16] = qdisc_name(id)?;
    open.struct_ops.edge_mut().id = name;
    open.load().map_err(|error| explain_load(error, "edge"))
}

fn qdisc_name(id: &str) -> Result<[std::ffi::c_char; 16]> {
    if id.len() > 15 {
        bail!("qdisc id {id} has {} characters, above 15", id.len());
    }
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(id.bytes()) {
        *to = from as std::ffi::c_char;
    }
    Ok(name)
}

impl Edge {
    /// Makes `loaded` the root qdisc of the device, with the name `id`.
    pub fn install(mut loaded: EdgeSkel<'_>, ifindex: i32, id: &str) -> Result<Self> {
        let device = qdisc::Device::open(ifindex)?;
        let before_file = before_file(id);
        let before = qdisc::Before::of(&device, &before_file)?;
        let link = loaded.maps.edge.attach_struct_ops().with_context(|| {
            format!(
                "cannot register the qdisc {id}; is another daemon starting on this device? Stop it first"
            )
        })?;
        before.save(&before_file)?;
        if device.root()?.is_none() {
            device.delete()?; // replacing a qdisc by one of the same name would keep the old program
        }
        device.install(id, &[])?;
        Ok(Self {
            id: id.to_owned(),
            gso_limit_bytes: device.gso_max_size()?,
            device,
            before,
            before_file,
            _link: link,
        })
    }

    /// Keeps GSO segments at or below `bytes` while installed.
    pub fn limit_gso(&mut self, bytes: u32) -> Result<()> {
        let wanted = bytes.min(self.before.gso_max_bytes);
        if self.device.gso_max_size()? != wanted {
            self.device.set_gso_max_size(wanted)?;
        }
        self.gso_limit_bytes = wanted;
        Ok(())
    }

    /// Who has the root qdisc of the device now.
    pub fn owner(&self) -> Result<RootQdisc> {
        self.device.owner(&self.id)
    }

    /// Restores the former qdisc and GSO limit, except what another program has changed. Returns who had the
    /// root qdisc.
    pub fn remove(self) -> Result<RootQdisc> {
        let owner = self
            .before
            .restore(&self.device, &self.id, self.gso_limit_bytes)?;
        let _ = std::fs::remove_file(&self.before_file);
        Ok(owner)
    }
}
