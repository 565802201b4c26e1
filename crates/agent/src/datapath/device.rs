// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The loaded programs of one device, attached. Dropping it detaches them.
use std::{mem::MaybeUninit, os::fd::AsFd, time::Duration};

use anyhow::{anyhow, Context, Result};
use bytemuck::{bytes_of, pod_read_unaligned};
use libbpf_rs::{
    skel::{OpenSkel, Skel, SkelBuilder},
    MapCore, MapFlags, MapHandle, OpenObject,
};
use onramp_law::{
    abi::{onr_at_egress, onr_dev_cfg, COUNTERS},
    HISTOGRAM_BUCKETS,
};
use onramp_status::RootQdisc;
use tracing::warn;

use super::{
    edge::{self, Edge, NetDevice},
    edt::Edt,
    holder,
    hooks::Hooks,
    kept::{self, Kept, Own},
    object::{explain_load, set_cfg},
    pins::Pins,
    shared::Shared,
    Holder,
};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod orack_skel {
    include!(concat!(env!("OUT_DIR"), "/orack.skel.rs"));
}
use orack_skel::{OrackSkel, OrackSkelBuilder};

/// Key of the only element of an array.
pub const FIRST: [u8; 4] = [0; 4];

/// What is attached to which device.
pub struct Attachment<'p> {
    pub place: NetDevice,
    pub cfg: onr_dev_cfg,
    /// The numbers of its qdiscs.
    pub numbers: &'p [u32],
    /// Where it stays for the next daemon.
    pub pins: Option<&'p Pins>,
}

/// A device with the data path on it.
pub struct OnDevice {
    /// None while the daemon only observes.
    pub(super) holder: Option<Holder>,
    pub(super) counters: MapHandle,
    pub(super) own: Own,
    pub(super) hooks: Hooks,
    pub(super) cfg: onr_dev_cfg,
    pub(super) pins: Option<Pins>,
}

impl Attachment<'_> {
    /// Loads the programs, and attaches them after `prepare` has filled the maps; it learns whether they are new.
    pub fn attach(
        self,
        shared: &mut Shared,
        prepare: impl FnOnce(&Shared, bool) -> Result<()>,
    ) -> Result<OnDevice> {
        let Self {
            place,
            cfg,
            numbers,
            pins,
        } = self;
        let mut room = edge::room(numbers.len());
        shared.leave_device();
        let is_first = shared.get("keys").is_err();
        let loaded = holder::load_edge(&mut room, place, numbers, &cfg, shared)?;
        let is_edt = cfg.at_egress == onr_at_egress::Holds as u8;
        if is_edt {
            holder::check_edt(&cfg)?;
        }
        let mut object = MaybeUninit::uninit();
        let orack = load_orack(&mut object, &cfg, loaded.is_none(), shared)?;
        prepare(shared, is_first)?;

        let holder = match loaded {
            Some(loaded) => {
                let edge = Edge::install(loaded, place, numbers, longest_pause(&cfg))?;
                Some(Holder::Edge(edge))
            }
            None if is_edt => Some(Holder::Edt(Edt::install(place, &cfg, false)?)),
            None => None,
        };
        let ingress = orack.progs.orack_ingress.as_fd();
        let egress = match holder {
            Some(Holder::Edge(_)) => orack.progs.orack_egress.as_fd(),
            _ => orack.progs.orack_records.as_fd(),
        };
        match Hooks::attach(place.ifindex, ingress, egress, pins) {
            Ok(hooks) => {
                let own = Own {
                    cfg: MapHandle::try_from(&orack.maps.data_cfg)?,
                    muted: MapHandle::try_from(&orack.maps.data_muted)?,
                };
                let pins = pins.filter(|pins| {
                    let kept = pins
                        .clear()
                        .and_then(|_| kept::pin(pins, shared, &own, holder.as_ref(), &hooks));
                    kept.map_err(|error| warn!("{error:#}; the next daemon begins anew"))
                        .is_ok()
                });
                Ok(OnDevice {
                    holder,
                    counters: MapHandle::try_from(&orack.maps.counters)?,
                    own,
                    hooks,
                    cfg,
                    pins: pins.cloned(),
                })
            }
            Err(error) => {
                let remove = |holder: Holder| holder.remove(longest_pause(&cfg));
                holder.map(remove).transpose()?;
                Err(error)
            }
        }
    }
}

impl OnDevice {
    /// What a former daemon left, with this daemon and its configuration, except its qdiscs and their numbers.
    pub fn go_on(kept: Kept, shared: &mut Shared, cfg: &onr_dev_cfg) -> Result<Self> {
        shared.take(&kept.pins);
        let mut device = Self {
            holder: kept.holder,
            counters: shared.counters()?,
            own: kept.own,
            hooks: Hooks::Tcx(kept.tcx),
            cfg: *cfg,
            pins: Some(kept.pins),
        };
        device.configure(onr_dev_cfg {
            queue: kept.cfg.queue,
            queues: kept.cfg.queues,
            at_egress: kept.cfg.at_egress,
            ..*cfg
        })?;
        Ok(device)
    }

    /// What holds; none while the daemon only observes.
    pub fn holder(&mut self) -> Option<&mut Holder> {
        self.holder.as_mut()
    }

    /// Is TCP to pace what leaves by the device? fq does it by itself.
    pub fn is_paced(&self) -> bool {
        matches!(self.holder, Some(Holder::Edge(_))) && self.cfg.paced != 0
    }

    /// `edge`, `edt` or `observe`.
    pub fn path(&self) -> &'static str {
        self.holder.as_ref().map_or("observe", Holder::path)
    }

    /// The numbers of its qdiscs among those of all devices.
    pub fn numbers(&self) -> Vec<u32> {
        kept::numbers(self.holder.as_ref(), &self.cfg)
    }

    /// Has one of this number of transmit queues no qdisc of its own, and could have one?
    pub fn could_grow(&self, transmit_queues: usize) -> bool {
        let is_shaped = self.cfg.shape_ns_per_byte_q16 != 0;
        let holder = self.holder.as_ref().filter(|_| !is_shaped);
        holder.is_some_and(|holder| transmit_queues > holder.qdiscs() && holder.may_grow())
    }

    /// Has each transmit queue a qdisc of its own?
    pub fn has_several(&self) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.qdiscs() > 1)
    }

    /// False once the device has gone, even if another one has its index by now.
    pub fn is_attached(&self) -> bool {
        self.hooks.are_attached()
    }

    /// Leaves a device that has gone, and all that was on it.
    pub fn forget(self) -> Result<()> {
        let Self {
            holder,
            hooks,
            pins,
            ..
        } = self;
        drop(hooks);
        if let Some(holder) = holder {
            holder.forget();
        }
        pins.map_or(Ok(()), |pins| pins.clear().map(drop))
    }

    /// Removes everything and restores what was there before, except what another program has changed. Returns
    /// who had the root qdisc; none while the daemon only observes.
    pub fn detach(self) -> Result<Option<RootQdisc>> {
        let Self {
            holder,
            hooks,
            pins,
            cfg,
            ..
        } = self;
        let cleared = pins.map_or(Ok(false), |pins| pins.clear());
        drop(hooks);
        let remove = |holder: Holder| holder.remove(longest_pause(&cfg));
        let owner = holder.map(remove).transpose()?;
        cleared.map(|_| owner)
    }

    /// The ids of the tcx programs that run before ours.
    pub fn before_us(&self) -> Result<Vec<u32>> {
        self.hooks.before_us()
    }

    /// True once another program has kept ours from making an OR-ACK: none is sent since.
    pub fn is_muted(&self) -> Result<bool> {
        let muted = self.own.muted.lookup(&FIRST, MapFlags::ANY)?;
        Ok(muted.is_some_and(|value| value.iter().any(|byte| *byte != 0)))
    }

    /// Puts our tcx programs in front of all others, and lets OR-ACKs be sent again.
    pub fn move_to_front(&mut self) -> Result<()> {
        self.hooks.move_to_front()?;
        if let Some(pins) = &self.pins {
            self.hooks.pin(pins)?;
        }
        Ok(self.own.muted.update(&FIRST, &[0; 4], MapFlags::ANY)?)
    }

    /// Signs the OR-ACKs that leave by this device with this key from now on.
    pub fn sign_with(&mut self, key_id: u32) -> Result<()> {
        self.configure(onr_dev_cfg { key_id, ..self.cfg })
    }

    /// Takes what can change while it runs from another configuration: the law, and what depends on rate and MTU of the
    /// device. What else is in it stays.
    pub fn renew(&mut self, from: &onr_dev_cfg) -> Result<()> {
        self.configure(onr_dev_cfg {
            law: from.law,
            orack_fresh_ns: from.orack_fresh_ns,
            quantum_bytes: from.quantum_bytes,
            ..self.cfg
        })
    }

    pub(super) fn configure(&mut self, cfg: onr_dev_cfg) -> Result<()> {
        if let Some(Holder::Edge(edge)) = &self.holder {
            edge.configure(&cfg)?;
        }
        self.own.cfg.update(&FIRST, bytes_of(&cfg), MapFlags::ANY)?;
        self.cfg = cfg;
        Ok(())
    }

    /// The counters, in the order of `COUNTERS`, summed over CPUs (a maximum is not summed).
    pub fn counters(&self) -> Result<Vec<u64>> {
        let read = |(index, (name, _)): (usize, &(&str, &str))| {
            let cpus = self.counter_of_cpus(index)?;
            Ok(join(name, cpus.into_iter()))
        };
        COUNTERS.iter().enumerate().map(read).collect()
    }

    /// How many pauses had which length, by bucket of law/histogram.h.
    pub fn pauses(&self) -> Result<Vec<u64>> {
        let buckets = COUNTERS.len()..COUNTERS.len() + HISTOGRAM_BUCKETS;
        buckets
            .map(|index| Ok(self.counter_of_cpus(index)?.iter().sum()))
            .collect()
    }

    fn counter_of_cpus(&self, index: usize) -> Result<Vec<u64>> {
        let cpus = self
            .counters
            .lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY)?
            .ok_or_else(|| anyhow!("the BPF map of counters has no element {index}"))?;
        Ok(cpus.iter().map(|v| pod_read_unaligned(v)).collect())
    }
}

/// The longest time that a head is held.
pub(super) fn longest_pause(cfg: &onr_dev_cfg) -> Duration {
    Duration::from_nanos(cfg.law.max_pause_ns.max(0) as u64)
}

/// One number out of those of several processors or devices.
pub fn join(name: &str, values: impl Iterator<Item = u64>) -> u64 {
    match name.contains("_max_") {
        true => values.max().unwrap_or(0),
        false => values.sum(),
    }
}

/// `records`: there is no edge that records the segments.
fn load_orack<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    cfg: &onr_dev_cfg,
    records: bool,
    shared: &mut Shared,
) -> Result<OrackSkel<'o>> {
    let mut open = OrackSkelBuilder::default()
        .open(object)
        .context("reading orack.bpf.o")?;
    open.maps.ctls.set_max_entries(cfg.max_flows)?;
    open.maps.flow_ids.set_max_entries(cfg.max_flows)?;
    open.progs.orack_egress.set_autoload(!records);
    open.progs.orack_records.set_autoload(records);
    set_cfg(open.maps.data_cfg.initial_value_mut(), cfg)?;
    shared.lend(open.open_object_mut())?;
    let loaded = open.load().map_err(|error| explain_load(error, "orack"))?;
    shared.keep(loaded.object())?;
    Ok(loaded)
}
