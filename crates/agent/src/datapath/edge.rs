// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The qdiscs of a device, one for each transmit queue or one for all: installs them, and restores what was there
//! before. If the process is killed, they stay and forward packets, and hold nothing once the lease has ended.
use std::{
    mem::MaybeUninit,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{bail, Context, Result};
use bytemuck::bytes_of;
use libbpf_rs::{
    skel::{OpenSkel, Skel, SkelBuilder},
    Link, MapCore, MapFlags, MapHandle, OpenObject,
};

use onramp_law::abi::{onr_dev_cfg, ONR_BUCKETS, ONR_MAX_SLOTS};
use onramp_status::{netns_inode, RootQdisc, RUN_DIR};
use onramp_units::Bytes;

use super::{
    before::Before,
    found::{Codel, Found, Leaf},
    object::{explain_load, read_cfg, set_cfg},
    qdisc::{self, Device},
    refuse,
    shared::Shared,
};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod edge_skel {
    include!(concat!(env!("OUT_DIR"), "/edge.skel.rs"));
}
pub use edge_skel::EdgeSkel;

/// Most transmit queues that have a qdisc each. The name of a qdisc has two digits for them.
const MOST_QUEUES: usize = 256;

/// The qdiscs on their device, and what was there before.
pub struct Edge {
    place: NetDevice,
    names: Vec<String>,
    device: Device,
    before: Before,
    /// The largest GSO segment of the device as this daemon left it.
    gso_limit_bytes: u32,
    programs: Programs,
}

/// The registered programs of several qdiscs.
#[derive(Default)]
struct Programs {
    /// The number of each among those of all devices.
    numbers: Vec<u32>,
    /// The configuration of each.
    cfgs: Vec<MapHandle>,
    /// Those that this daemon registered. The qdiscs need none once they are installed.
    links: Vec<Link>,
}

/// A device of a network namespace. Its qdiscs are registered under names that contain both, because names
/// are global in the kernel; they have at most 15 characters.
#[derive(Clone, Copy, Debug)]
pub struct NetDevice {
    pub ifindex: i32,
    netns: u64,
}

impl NetDevice {
    /// The device in the present network namespace.
    pub fn of(ifindex: i32) -> Result<Self> {
        let inode = netns_inode().context("reading the network namespace")?;
        Ok(Self {
            ifindex,
            netns: inode & 0xf_ffff,
        })
    }

    /// The names of this number of qdiscs.
    fn names(&self, qdiscs: u32) -> Vec<String> {
        let Self { ifindex, netns } = self;
        let of_queue = |queue| format!("{}{netns:05x}{ifindex:x}.{queue:x}", qdisc::PREFIX);
        match qdiscs {
            1 => vec![self.name()],
            _ => (0..qdiscs).map(of_queue).collect(),
        }
    }

    /// The name of its only qdisc, and of its pins.
    pub fn name(&self) -> String {
        format!("{}_{:05x}_{}", qdisc::PREFIX, self.netns, self.ifindex)
    }

    /// The file that the daemon on the device has locked.
    pub fn lock_file(&self) -> PathBuf {
        Path::new(RUN_DIR).join(format!("{}.lock", self.name()))
    }

    /// Nothing is to be restored: the device has gone.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(self.before_file());
    }

    /// The file that keeps what the device had before.
    pub fn before_file(&self) -> PathBuf {
        Path::new(RUN_DIR).join(format!("{}.before", self.name()))
    }
}

/// What a device had before a daemon attached, as far as its configuration depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Former {
    /// Is fq the qdisc of the device, or would the kernel make it so?
    pub had_fq: bool,
    /// Most packets that a flow had, where it had a limit.
    pub flow_limit: Option<u32>,
    /// How packets were dropped that had waited for too long, if they were.
    pub codel: Option<Codel>,
    /// Had each transmit queue a qdisc of its own?
    pub per_queue: bool,
}

/// What a device has, or had before a daemon attached. Nothing if it cannot be read: `install` says why.
pub fn former(dev: &str) -> Result<Former> {
    let (ifindex, device) = open(dev)?;
    let before = Before::of(&device, &NetDevice::of(ifindex)?.before_file()).ok();
    let first = before.as_ref().map(Before::first);
    let qdisc = before.map(|before| before.qdisc);
    Ok(Former {
        had_fq: first.as_ref().is_some_and(|first| first.kind == "fq"),
        flow_limit: first.as_ref().and_then(Leaf::flow_limit),
        codel: first.as_ref().and_then(Leaf::codel),
        per_queue: !matches!(qdisc, Some(Found::Configured(_)) | None),
    })
}

/// The kind of qdisc of the first transmit queue; none if it is On-Ramp's.
///
/// # Errors
/// On-Ramp could not restore the qdiscs of the device, or they cannot be read.
pub fn qdisc_of(dev: &str) -> Result<Option<String>> {
    let (_, device) = open(dev)?;
    Ok(device.found()?.map(|found| found.kind()))
}

/// How many qdiscs a device with this number of transmit queues gets, if these had one each.
pub fn qdiscs(transmit_queues: usize) -> u32 {
    match transmit_queues {
        queues @ 1..=MOST_QUEUES => queues as u32,
        _ => 1,
    }
}

/// The largest GSO segment of a device as it is, or as it was before a daemon attached.
pub fn gso_max(dev: &str) -> Result<Bytes> {
    let (_, device) = open(dev)?;
    Ok(Bytes::new(device.gso_max_size()?.into()))
}

/// Restores what a device had before a daemon that ended without doing so. Returns what was removed.
pub fn restore_left(place: NetDevice) -> Result<Vec<String>> {
    let device = Device::open(place.ifindex)?;
    let file = place.before_file();
    let (saved, kinds) = (Before::saved(&file), device.own_kinds()?);
    let mut removed = vec![];
    if let Some(first) = kinds.first() {
        let before = saved.map_or_else(|| Before::of(&device, &file), Ok)?;
        before.restore(&device, &kinds, device.gso_max_size()?)?;
        let former = before.qdisc.kind();
        removed.push(format!("qdisc {first}, in whose place {former} is again"));
    } else if let Some(before) = saved {
        before.restore_gso(&device, device.gso_max_size()?)?;
        removed.push("limit of GSO segments".to_owned());
    }
    let _ = std::fs::remove_file(file);
    Ok(removed)
}

fn open(dev: &str) -> Result<(i32, qdisc::Device)> {
    let ifindex = nix::net::if_::if_nametoindex(dev)? as i32;
    Ok((ifindex, Device::open(ifindex)?))
}

/// Room for this number of objects.
pub fn room(objects: usize) -> Vec<MaybeUninit<OpenObject>> {
    let room = || MaybeUninit::uninit();
    std::iter::repeat_with(room).take(objects).collect()
}

/// Loads the programs of the last qdiscs of a device, which have these numbers. They share maps.
pub fn load<'o>(
    room: &'o mut [MaybeUninit<OpenObject>],
    place: NetDevice,
    numbers: &[u32],
    cfg: &onr_dev_cfg,
    shared: &mut Shared,
) -> Result<Vec<EdgeSkel<'o>>> {
    let names = place.names(cfg.queues);
    let names = &names[names.len() - numbers.len()..];
    let mut loaded: Vec<EdgeSkel<'o>> = vec![];
    for (object, (name, queue)) in room.iter_mut().zip(names.iter().zip(numbers)) {
        let queue = *queue;
        let cfg = onr_dev_cfg { queue, ..*cfg };
        loaded.push(load_one(object, name, &cfg, shared)?);
        shared.keep(loaded[loaded.len() - 1].object())?;
    }
    Ok(loaded)
}

fn load_one<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    name: &str,
    cfg: &onr_dev_cfg,
    shared: &Shared,
) -> Result<EdgeSkel<'o>> {
    let mut open = edge_skel::EdgeSkelBuilder::default()
        .open(object)
        .context("reading edge.bpf.o")?;
    open.maps.ctls.set_max_entries(cfg.max_flows)?;
    open.maps.flow_ids.set_max_entries(cfg.max_flows)?;
    shared.lend(open.open_object_mut())?;
    let queues = 1 + ONR_BUCKETS + cfg.max_flows;
    open.maps.queues.set_max_entries(queues)?;
    open.maps.heap.set_max_entries(2 * cfg.max_flows)?;
    let slots = ONR_MAX_SLOTS.min(cfg.limit_packets) + 1;
    open.maps.slots.set_max_entries(slots)?;
    set_cfg(open.maps.data_cfg.initial_value_mut(), cfg)?;
    open.struct_ops.edge_mut().id = qdisc_name(name)?;
    open.load().map_err(|error| explain_load(error, "edge"))
}

/// As BPF's `char`, which has a sign; this machine's may have none.
fn qdisc_name(name: &str) -> Result<[i8; 16]> {
    if name.len() > 15 {
        bail!("qdisc {name} has {} characters, above 15", name.len());
    }
    let mut array = [0; 16];
    for (to, from) in array.iter_mut().zip(name.bytes()) {
        *to = from as i8;
    }
    Ok(array)
}

impl Programs {
    /// Makes the qdiscs known to the kernel.
    fn register(loaded: Vec<EdgeSkel<'_>>, names: &[String], numbers: &[u32]) -> Result<Self> {
        let cfgs = loaded
            .iter()
            .map(|one| MapHandle::try_from(&one.maps.data_cfg));
        let cfgs = cfgs.collect::<std::result::Result<_, _>>()?;
        let register = |mut one: EdgeSkel<'_>| one.maps.edge.attach_struct_ops();
        let links: std::result::Result<Vec<Link>, _> = loaded.into_iter().map(register).collect();
        let links = links.with_context(|| {
            format!(
                "cannot register the qdisc {}; is another daemon starting on this device? Stop it first",
                names[0]
            )
        })?;
        Ok(Self {
            numbers: numbers.to_vec(),
            cfgs,
            links,
        })
    }

    /// Those that a former daemon registered.
    fn kept(cfgs: Vec<MapHandle>) -> Result<Self> {
        let number = |map: &MapHandle| read_cfg(map).map(|cfg| cfg.queue);
        Ok(Self {
            numbers: cfgs.iter().map(number).collect::<Result<_>>()?,
            cfgs,
            links: vec![],
        })
    }

    fn extend(&mut self, more: Self) {
        self.numbers.extend(more.numbers);
        self.cfgs.extend(more.cfgs);
        self.links.extend(more.links);
    }
}

impl Edge {
    /// Makes `loaded` the root qdisc of the device, or the qdiscs of its transmit queues. What waits in the former ones
    /// leaves before, if it does so within the longest pause.
    pub fn install(
        loaded: Vec<EdgeSkel<'_>>,
        place: NetDevice,
        numbers: &[u32],
        longest_pause: Duration,
    ) -> Result<Self> {
        let device = Device::open(place.ifindex)?;
        let before = Before::of(&device, &place.before_file())?;
        let names = place.names(loaded.len() as u32);
        let programs = Programs::register(loaded, &names, numbers)?;
        before.save(&place.before_file())?;
        let leaves = leaves(&names);
        let is_former = device.found()?.is_none();
        refuse::while_refusing(&device, longest_pause, || {
            if is_former {
                device.delete()?; // replacing a qdisc by one of the same name would keep the old program
            }
            device.install_own(&leaves)
        })?;
        Self::on(device, place, before, programs)
    }

    /// The qdiscs that a former daemon left, if the device still has them; these are the configurations of their
    /// programs.
    pub fn kept(cfgs: Vec<MapHandle>, place: NetDevice) -> Result<Option<Self>> {
        let device = Device::open(place.ifindex)?;
        let names = place.names(cfgs.len() as u32);
        if cfgs.is_empty() || device.owner(&names)? != RootQdisc::Own {
            return Ok(None);
        }
        let before = Before::of(&device, &place.before_file())?;
        before.restore_gso(&device, device.gso_max_size()?)?; // this daemon may have another limit, or none
        Self::on(device, place, before, Programs::kept(cfgs)?).map(Some)
    }

    /// The qdiscs that are on the device.
    fn on(device: Device, place: NetDevice, before: Before, programs: Programs) -> Result<Self> {
        Ok(Self {
            place,
            names: place.names(programs.cfgs.len() as u32),
            gso_limit_bytes: device.gso_max_size()?,
            device,
            before,
            programs,
        })
    }

    /// Could each of several transmit queues have a qdisc of its own? Not if one was configured for all.
    pub fn may_grow(&self) -> bool {
        self.names.len() > 1 || !matches!(self.before.qdisc, Found::Configured(_))
    }

    /// The first transmit queue that gets a qdisc when there are more of them. If one qdisc served all, each gets one.
    pub fn grows_from(&self) -> usize {
        match self.names.len() {
            1 => 0,
            several => several,
        }
    }

    /// Gives `loaded` to the transmit queues from `grows_from` on. What waits in the present qdiscs leaves before, if it
    /// does so within the longest pause: the kernel empties all of them.
    pub fn grow(
        &mut self,
        loaded: Vec<EdgeSkel<'_>>,
        numbers: &[u32],
        longest_pause: Duration,
    ) -> Result<()> {
        let first = self.grows_from();
        let names = self.place.names((first + loaded.len()) as u32);
        let programs = Programs::register(loaded, &names[first..], numbers)?;
        let new = leaves(&names[first..]);
        refuse::while_refusing(&self.device, longest_pause, || {
            if first == 0 {
                self.device.delete()?;
                return self.device.install_own(&new);
            }
            let mut queues = (first as u32..).zip(&new);
            queues.try_for_each(|(queue, leaf)| self.device.install_own_leaf(queue, leaf))
        })?;
        if first == 0 {
            self.programs = Programs::default();
        }
        self.programs.extend(programs);
        self.names = names;
        Ok(())
    }

    /// The configuration of each qdisc's programs.
    pub fn cfgs(&self) -> &[MapHandle] {
        &self.programs.cfgs
    }

    /// The number of each qdisc among those of all devices.
    pub fn numbers(&self) -> &[u32] {
        &self.programs.numbers
    }

    /// Gives the programs of all qdiscs another configuration; each keeps its number.
    pub fn configure(&self, cfg: &onr_dev_cfg) -> Result<()> {
        let Programs { numbers, cfgs, .. } = &self.programs;
        for (queue, map) in numbers.iter().zip(cfgs) {
            let queue = *queue;
            let cfg = onr_dev_cfg { queue, ..*cfg };
            map.update(&[0; 4], bytes_of(&cfg), MapFlags::ANY)?;
        }
        Ok(())
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

    /// The number of qdiscs: 1, or one for each transmit queue.
    pub fn qdiscs(&self) -> usize {
        self.names.len()
    }

    /// Who has the root qdisc of the device now.
    pub fn owner(&self) -> Result<RootQdisc> {
        self.device.owner(&self.names)
    }

    /// Restores the former qdisc and GSO limit, except what another program has changed. What waits leaves before, if
    /// it does so within the longest pause. Returns who had the root qdisc.
    pub fn remove(self, longest_pause: Duration) -> Result<RootQdisc> {
        let owner = refuse::while_refusing(&self.device, longest_pause, || {
            self.before
                .restore(&self.device, &self.names, self.gso_limit_bytes)
        })?;
        self.forget();
        Ok(owner)
    }

    /// The device has gone, and its qdiscs with it.
    pub fn forget(self) {
        self.place.forget();
    }
}

fn leaves(names: &[String]) -> Vec<Leaf> {
    names.iter().map(|name| Leaf::plain(name)).collect()
}
