// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What holds flows: the qdisc `edge`, or `edt`: times of departure that fq obeys. Decides which of them a kernel gets.
use std::{mem::MaybeUninit, time::Duration};

use anyhow::{bail, Result};
use libbpf_rs::OpenObject;
use memchr::memmem;
use onramp_law::abi::{onr_at_egress, onr_dev_cfg};
use onramp_status::RootQdisc;
use tracing::info;

use super::{
    edge::{self, Edge, EdgeSkel, NetDevice},
    edt::Edt,
    shared::Shared,
};
use crate::config::Path;

/// Where a kernel describes its types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The name of the type that it has if it takes qdiscs in BPF.
const QDISC_TYPE: &[u8] = b"\0bpf_struct_ops_Qdisc_ops\0";

/// What holds, on its device.
pub enum Holder {
    Edge(Edge),
    Edt(Edt),
}

impl Holder {
    /// Its name.
    pub fn path(&self) -> &'static str {
        match self {
            Holder::Edge(_) => "edge",
            Holder::Edt(_) => "edt",
        }
    }

    /// The number of its qdiscs: 1, or one for each transmit queue.
    pub fn qdiscs(&self) -> usize {
        match self {
            Holder::Edge(edge) => edge.qdiscs(),
            Holder::Edt(edt) => edt.qdiscs(),
        }
    }

    /// Do further transmit queues get a qdisc each?
    pub fn may_grow(&self) -> bool {
        match self {
            Holder::Edge(edge) => edge.may_grow(),
            Holder::Edt(edt) => edt.may_grow(),
        }
    }

    /// Keeps GSO segments at or below `bytes` while installed.
    pub fn limit_gso(&mut self, bytes: u32) -> Result<()> {
        match self {
            Holder::Edge(edge) => edge.limit_gso(bytes),
            Holder::Edt(edt) => edt.limit_gso(bytes),
        }
    }

    /// Who has the root qdisc of the device now.
    pub fn owner(&self) -> Result<RootQdisc> {
        match self {
            Holder::Edge(edge) => edge.owner(),
            Holder::Edt(edt) => edt.owner(),
        }
    }

    /// Restores the former qdisc and GSO limit, except what another program has changed. Of edge, what waits leaves before,
    /// if it does so within the longest pause. Returns who had the root qdisc.
    pub fn remove(self, longest_pause: Duration) -> Result<RootQdisc> {
        match self {
            Holder::Edge(edge) => edge.remove(longest_pause),
            Holder::Edt(edt) => edt.remove(),
        }
    }

    /// The device has gone, and its qdiscs with it.
    pub fn forget(self) {
        match self {
            Holder::Edge(edge) => edge.forget(),
            Holder::Edt(edt) => edt.forget(),
        }
    }
}

/// What the programs at egress do on this path of a daemon that holds.
pub fn at_egress(path: Path) -> onr_at_egress {
    match path {
        Path::Edt => onr_at_egress::Holds,
        Path::Auto if !has_bpf_qdiscs() => {
            info!(
                "the kernel has no qdiscs in BPF (Linux >= 6.16 with CONFIG_NET_SCH_BPF=y has them): --path edt \
                 holds by times of departure, which the fq qdisc obeys"
            );
            onr_at_egress::Holds
        }
        Path::Auto | Path::Edge => onr_at_egress::Passes,
    }
}

/// Loads edge; none if the programs at egress do its work.
pub fn load_edge<'o>(
    room: &'o mut [MaybeUninit<OpenObject>],
    place: NetDevice,
    numbers: &[u32],
    cfg: &onr_dev_cfg,
    shared: &mut Shared,
) -> Result<Option<Vec<EdgeSkel<'o>>>> {
    match cfg.at_egress == onr_at_egress::Passes as u8 {
        true => edge::load(room, place, numbers, cfg, shared).map(Some),
        false => Ok(None),
    }
}

/// Refuses what edt cannot do.
pub fn check_edt(cfg: &onr_dev_cfg) -> Result<()> {
    if cfg.shape_ns_per_byte_q16 != 0 {
        bail!("--shape needs --path edge, and this is edt: leave it out, and limit the rate by other means");
    }
    Ok(())
}

/// Looks for the name alone: parsing all types takes a tenth of a second.
pub fn has_bpf_qdiscs() -> bool {
    std::fs::read(KERNEL_TYPES).is_ok_and(|types| memmem::find(&types, QDISC_TYPE).is_some())
}
