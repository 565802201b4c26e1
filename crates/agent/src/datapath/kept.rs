// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a former daemon left on a device (pins.rs), if this one can go on with it: then qdisc, programs, flow table
//! and counters stay as they are, and no packet is lost.
use std::{os::fd::AsFd, path::Path};

use anyhow::Result;
use libbpf_rs::MapHandle;
use onramp_law::abi::{onr_at_egress, onr_dev_cfg};
use onramp_status::RootQdisc;

use super::{
    edge::{Edge, NetDevice},
    edt::Edt,
    hooks::Hooks,
    object::read_cfg,
    pins::{self, Pins},
    shared::Shared,
    tcx::{self, Tcx},
    Holder,
};

/// Names of pins beside those of the shared maps.
const CFG: &str = "cfg";
const MUTED: &str = "muted";

/// The maps of a device's programs that no other device shares.
pub struct Own {
    pub cfg: MapHandle,
    pub muted: MapHandle,
}

/// A data path without a daemon.
pub struct Kept {
    /// The configuration of its programs.
    pub cfg: onr_dev_cfg,
    pub own: Own,
    pub holder: Option<Holder>,
    pub tcx: Tcx,
    pub pins: Pins,
}

/// Pins what the next daemon needs. The links are the last, and without them it takes nothing over.
pub fn pin(
    pins: &Pins,
    shared: &Shared,
    own: &Own,
    holder: Option<&Holder>,
    hooks: &Hooks,
) -> Result<()> {
    shared.pin(pins)?;
    pins.pin(CFG, own.cfg.as_fd())?;
    pins.pin(MUTED, own.muted.as_fd())?;
    pin_qdiscs(pins, holder)?;
    hooks.pin(pins)
}

/// Pins the configurations of the qdiscs alone.
pub fn pin_qdiscs(pins: &Pins, holder: Option<&Holder>) -> Result<()> {
    if let Some(Holder::Edge(edge)) = holder {
        for (queue, cfg) in edge.cfgs().iter().enumerate() {
            pins.pin(&cfg_of(queue), cfg.as_fd())?;
        }
    }
    Ok(())
}

fn cfg_of(queue: usize) -> String {
    format!("{CFG}_{queue}")
}

/// Removes the pins of devices that have gone. Returns their names.
///
/// # Errors
/// A file cannot be removed.
pub fn sweep(bpffs: &Path) -> Result<Vec<String>> {
    let mut gone = vec![];
    for name in pins::devices(bpffs) {
        let Some(pins) = Pins::of(bpffs, name.clone()) else {
            continue;
        };
        let link = pins.of_any_programs(pins::LAST);
        if link.is_some_and(|link| tcx::device_of(link.as_fd()) == Some(0)) {
            pins.clear()?;
            gone.push(name);
        }
    }
    Ok(gone)
}

impl Kept {
    /// The numbers of its qdiscs.
    pub fn numbers(&self) -> Vec<u32> {
        numbers(self.holder.as_ref(), &self.cfg)
    }

    /// What is there, if its programs were loaded as `wanted` asks, it is still attached, and it has the maps of the
    /// devices before it, if there are some.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn find(
        pins: &Pins,
        place: NetDevice,
        wanted: &onr_dev_cfg,
        shared: &Shared,
    ) -> Result<Option<Self>> {
        let (Some(cfg_map), Some(muted)) = (pins.map(CFG), pins.map(MUTED)) else {
            return Ok(None);
        };
        let cfg = read_cfg(&cfg_map)?;
        if !is_loaded_alike(&cfg, wanted) || !shared.is_of(pins)? {
            return Ok(None);
        }
        let Some(tcx) = Tcx::kept(place.ifindex, pins)? else {
            return Ok(None);
        };
        let holder = match cfg.at_egress {
            at if at == onr_at_egress::Observes as u8 => None,
            at if at == onr_at_egress::Holds as u8 => {
                Some(Holder::Edt(Edt::install(place, &cfg, true)?))
            }
            _ => {
                let cfgs = (0..cfg.queues as usize).map_while(|queue| pins.map(&cfg_of(queue)));
                match Edge::kept(cfgs.collect(), place)? {
                    Some(edge) => Some(Holder::Edge(edge)),
                    None => return Ok(None),
                }
            }
        };
        if let Some(holder) = &holder {
            if holder.owner()? != RootQdisc::Own {
                return Ok(None);
            }
        }
        Ok(Some(Self {
            cfg,
            own: Own {
                cfg: cfg_map,
                muted,
            },
            holder,
            tcx,
            pins: pins.clone(),
        }))
    }
}

/// The numbers of the qdiscs of a device. Without edge nothing asks for them, and the first is that of all.
pub fn numbers(holder: Option<&Holder>, cfg: &onr_dev_cfg) -> Vec<u32> {
    match holder {
        Some(Holder::Edge(edge)) => edge.numbers().to_vec(),
        _ => vec![cfg.queue],
    }
}

/// Whether programs that were loaded for one configuration can have the other: sizes of maps and bounds of fq are
/// fixed. Where each transmit queue has a qdisc, further ones get theirs later.
fn is_loaded_alike(kept: &onr_dev_cfg, wanted: &onr_dev_cfg) -> bool {
    let fixed = |cfg: &onr_dev_cfg| {
        let of_fq = (cfg.flow_limit_packets, cfg.paced);
        let is_edt = cfg.at_egress == onr_at_egress::Holds as u8;
        (
            cfg.max_flows,
            cfg.limit_packets,
            cfg.queues > 1,
            cfg.at_egress,
            is_edt.then_some(of_fq),
        )
    };
    fixed(kept) == fixed(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sizes_need_other_programs_and_another_law_does_not() {
        let kept = onr_dev_cfg {
            max_flows: 256,
            queues: 1,
            ..Default::default()
        };
        let mut wanted = kept;
        wanted.law.threshold_ns += 1000;
        (wanted.queue, wanted.key_id, wanted.paced) = (7, 3, 1);
        assert!(is_loaded_alike(&kept, &wanted));
        let of_several = |queues| onr_dev_cfg { queues, ..kept };
        assert!(is_loaded_alike(&of_several(2), &of_several(4)));
        for other in [
            onr_dev_cfg {
                max_flows: 512,
                ..kept
            },
            onr_dev_cfg { queues: 2, ..kept },
            onr_dev_cfg {
                limit_packets: 9,
                ..kept
            },
            onr_dev_cfg {
                at_egress: onr_at_egress::Observes as u8,
                ..kept
            },
        ] {
            assert!(!is_loaded_alike(&kept, &other), "{other:?}");
        }
    }
}
