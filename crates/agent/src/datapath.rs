// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the loaded programs of all devices share: flows, peers, keys, thresholds, the clock. `device` is what each
//! device has of its own.
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, Hasher, RandomState},
    net::IpAddr,
    path::{Path as FilePath, PathBuf},
};

use anyhow::{bail, Context, Result};
use bytemuck::{bytes_of, cast, pod_read_unaligned, Zeroable};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use onramp_clock::keys::Keys;
use onramp_law::abi::{
    onr_addr, onr_at_egress, onr_clock_params, onr_ctl, onr_dev_cfg, onr_key, onr_kicks, onr_peer,
    onr_prefix, onr_rule, onr_rules, onr_tuple, ONR_KEYS, ONR_MAX_PEERS, ONR_MAX_QUEUES,
};

use onramp_status::RootQdisc;
use tracing::{info, warn};

use crate::config::Path;
use crate::prefix::Prefix;

mod before;
pub mod clock_map;
mod device;
pub(crate) mod edge;
mod edt;
mod flows;
mod found;
mod grow;
mod holder;
mod hooks;
pub mod kept;
pub(crate) mod netlink;
mod object;
pub mod pace;
pub mod pins;
mod qdisc;
mod refuse;
mod shared;
mod tc;
mod tcx;

use edge::NetDevice;
use kept::Kept;
use pins::Pins;

use device::Attachment;
pub use device::{join, OnDevice};
pub(crate) use edge::qdisc_of;
pub use flows::Seen;
#[cfg(test)]
pub use flows::Sent;
pub use holder::Holder;
pub(crate) use holder::{has_bpf_qdiscs, KERNEL_TYPES};
use shared::Shared;
pub(crate) use tc::remove_left as remove_filters;
pub(crate) use tcx::names as tcx_programs;

/// Value in the map of prefixes, whose keys alone have a meaning.
const PRESENT: [u8; 4] = 1u32.to_ne_bytes();

/// Most flows whose records are read at a time; each has 6 kB.
const MOST_FLOWS_READ: usize = 1_024;

/// The data path of a daemon, on as many devices as it is attached to.
pub struct Datapath {
    path: Path,
    /// Where BPF objects stay for the next daemon.
    bpffs: PathBuf,
    shared: Shared,
    setting: InitialMaps,
    max_flows: u32,
    /// The numbers of the qdiscs of all devices.
    numbers: BTreeSet<u32>,
    /// Number of the present rules.
    epoch: u32,
    /// In what the data path sends to itself.
    own_secret: u64,
}

/// What the maps get when the first device is attached.
pub struct InitialMaps {
    pub keys: Keys,
    pub peers: Vec<Prefix>,
    pub served: Vec<Prefix>,
    pub rules: Vec<onr_rule>,
    pub clock: onr_clock_params,
}

/// What `ip link add` calls devices of this type; none for a physical device.
///
/// # Errors
/// The kernel does not report the device.
pub fn kind_of(ifindex: i32) -> Result<Option<String>> {
    qdisc::Device::open(ifindex)?.kind()
}

impl Datapath {
    /// On no device yet. Holds by `path`, on devices whose configuration does not say that the daemon observes.
    pub fn new(path: Path, bpffs: &FilePath, max_flows: u32, setting: InitialMaps) -> Self {
        Self {
            path,
            bpffs: bpffs.to_owned(),
            shared: Shared::default(),
            setting,
            max_flows,
            numbers: BTreeSet::new(),
            epoch: 0,
            own_secret: RandomState::new().build_hasher().finish(),
        }
    }

    /// Goes on with what a former daemon left on a device; else loads the programs with `cfg`, and attaches them.
    ///
    /// # Errors
    /// The device is as it was before.
    pub fn attach(&mut self, ifindex: i32, cfg: &onr_dev_cfg) -> Result<OnDevice> {
        let place = NetDevice::of(ifindex)?;
        let pins = Pins::of(&self.bpffs, place.name());
        let mut cfg = onr_dev_cfg {
            own_secret: self.own_secret,
            ..*cfg
        };
        if cfg.at_egress != onr_at_egress::Observes as u8 {
            cfg.at_egress = holder::at_egress(self.path) as u8;
        }
        if let Some(kept) = pins.as_ref().and_then(|pins| self.kept(pins, place, &cfg)) {
            return self.go_on(kept, &cfg);
        }
        self.attach_anew(place, pins.as_ref(), &cfg)
    }

    /// What a former daemon left on a device, if this one can go on with it.
    fn kept(&mut self, pins: &Pins, place: NetDevice, cfg: &onr_dev_cfg) -> Option<Kept> {
        self.shared.leave_device();
        let kept = Kept::find(pins, place, cfg, &self.shared);
        let kept = kept.unwrap_or_else(|error| {
            warn!("what the former daemon left is replaced: {error:#}");
            None
        })?;
        let mut numbers = kept.numbers().into_iter();
        (!numbers.any(|number| self.numbers.contains(&number))).then_some(kept)
    }

    fn go_on(&mut self, kept: Kept, cfg: &onr_dev_cfg) -> Result<OnDevice> {
        let is_first = self.shared.get("keys").is_err();
        let cfg = onr_dev_cfg {
            key_id: self.setting.keys.signing().id,
            ifindex: kept.cfg.ifindex,
            ..*cfg
        };
        let numbers = kept.numbers();
        let device = OnDevice::go_on(kept, &mut self.shared, &cfg)?;
        if is_first {
            self.epoch = self.setting.renew(&self.shared)?;
        }
        self.numbers.extend(numbers);
        info!("goes on with the flow table and the programs of the former daemon");
        Ok(device)
    }

    fn attach_anew(
        &mut self,
        place: NetDevice,
        pins: Option<&Pins>,
        cfg: &onr_dev_cfg,
    ) -> Result<OnDevice> {
        let ifindex = place.ifindex;
        let has_edge = cfg.at_egress == onr_at_egress::Passes as u8;
        let numbers = free_numbers(&self.numbers, if has_edge { cfg.queues } else { 1 })?;
        let cfg = onr_dev_cfg {
            queue: numbers[0],
            key_id: self.setting.keys.signing().id,
            ifindex: ifindex as u32,
            ..*cfg
        };
        let attachment = Attachment {
            place,
            cfg,
            numbers: &numbers,
            pins,
        };
        let setting = &self.setting;
        let attached = attachment.attach(&mut self.shared, |shared, is_first| {
            if is_first {
                setting.fill(shared)?;
            }
            name_queues(shared, &numbers, ifindex as u32, 0)
        })?;
        self.numbers.extend(numbers);
        Ok(attached)
    }

    /// Detaches a device, as [`OnDevice::detach`].
    pub fn detach(&mut self, device: OnDevice) -> Result<Option<RootQdisc>> {
        self.free(&device);
        device.detach()
    }

    /// Leaves a device that has gone, as [`OnDevice::forget`].
    pub fn forget(&mut self, device: OnDevice) -> Result<()> {
        self.free(&device);
        device.forget()
    }

    fn free(&mut self, device: &OnDevice) {
        let of_device = device.numbers();
        self.numbers.retain(|number| !of_device.contains(number));
    }

    /// Gives all programs a new clock, atomically.
    pub fn set_clock(&self, clock: &onr_clock_params) -> Result<()> {
        clock_map::write(self.shared.get("clock")?, clock)
    }

    /// Accepts these keys, and no others, from now on; signs with the first.
    pub fn set_keys<'a>(
        &mut self,
        keys: &Keys,
        devices: impl Iterator<Item = &'a mut OnDevice>,
    ) -> Result<()> {
        write_keys(&self.shared, keys)?;
        for device in devices {
            device.sign_with(keys.signing().id)?;
        }
        self.setting.keys = keys.clone();
        Ok(())
    }

    /// Gives flows their classes by these rules: new flows at once, others with their next OR-ACK.
    pub fn set_rules(&mut self, rules: Vec<onr_rule>) -> Result<()> {
        if self.setting.rules == rules {
            return Ok(());
        }
        // A program that reads between the two writes gives the flow its class again.
        write_rules(&self.shared, &rules, self.epoch)?;
        self.epoch = self.epoch.wrapping_add(1);
        write_rules(&self.shared, &rules, self.epoch)?;
        self.setting.rules = rules;
        Ok(())
    }

    /// Serves these addresses, and no others, from now on.
    pub fn set_served(&mut self, served: &[Prefix]) -> Result<()> {
        let map = self.shared.get("served")?;
        for gone in self
            .setting
            .served
            .iter()
            .filter(|prefix| !served.contains(prefix))
        {
            remove(map, &prefix_key(*gone))?;
        }
        for prefix in served {
            map.update(bytes_of(&prefix_key(*prefix)), &PRESENT, MapFlags::ANY)?;
        }
        self.setting.served = served.to_vec();
        Ok(())
    }

    /// Sets T to a peer, ns. It is used if the configuration says that each peer has its own T.
    pub fn set_threshold(&self, peer: IpAddr, threshold_ns: u32) -> Result<()> {
        let key = onr_addr::of(peer);
        let map = self.shared.get("thresholds")?;
        Ok(map.update(bytes_of(&key), &threshold_ns.to_ne_bytes(), MapFlags::ANY)?)
    }

    /// Removes T to a peer, so that its flows are not held with `--threshold auto`.
    pub fn remove_threshold(&self, peer: IpAddr) -> Result<()> {
        remove(self.shared.get("thresholds")?, &onr_addr::of(peer))
    }

    /// Removes what is known of a peer.
    pub fn forget_peer(&self, peer: IpAddr) -> Result<()> {
        remove(self.shared.get("peers")?, &onr_addr::of(peer))
    }

    /// The delays and counters of each peer.
    pub fn peers(&self) -> Result<Vec<(IpAddr, onr_peer)>> {
        // In one batch: libbpf-rs ends at the first one that is not full, and the kernel fills none but by chance.
        let all = self.shared.get("peers")?;
        let all = all.lookup_batch(ONR_MAX_PEERS, MapFlags::ANY, MapFlags::ANY)?;
        let peer = |(key, value): (Vec<u8>, Vec<u8>)| {
            let addr = pod_read_unaligned::<onr_addr>(&key);
            (addr.ip(), pod_read_unaligned(&value))
        };
        let mut peers: Vec<_> = all.map(peer).collect();
        peers.sort_by_key(|(addr, _)| *addr);
        Ok(peers)
    }

    /// The hosts that have answered an OR-ACK with "port unreachable" since then, CLOCK_MONOTONIC.
    pub fn refusing(&self, since_mono_ns: i64) -> Result<Vec<IpAddr>> {
        let all = self.shared.get("deaf")?;
        let mut refusing = vec![];
        for key in all.keys() {
            let until = all.lookup(&key, MapFlags::ANY)?;
            let until = until.map(|until| pod_read_unaligned::<i64>(&until));
            if until.is_some_and(|until| until >= since_mono_ns) {
                refusing.push(pod_read_unaligned::<onr_addr>(&key).ip());
            }
        }
        refusing.sort();
        Ok(refusing)
    }

    /// The delays and counters of one peer.
    pub fn peer(&self, addr: IpAddr) -> Result<Option<onr_peer>> {
        let key = onr_addr::of(addr);
        let value = self
            .shared
            .get("peers")?
            .lookup(bytes_of(&key), MapFlags::ANY)?;
        Ok(value.map(|value| pod_read_unaligned(&value)))
    }

    /// Sends OR-ACKs to these hosts too, and believes theirs.
    pub fn add_peer(&self, peer: Prefix) -> Result<()> {
        let key = prefix_key(peer);
        let map = self.shared.get("prefixes")?;
        Ok(map.update(bytes_of(&key), &PRESENT, MapFlags::ANY)?)
    }

    /// Sends no OR-ACKs to these hosts any more.
    pub fn remove_peer(&self, peer: Prefix) -> Result<()> {
        remove(self.shared.get("prefixes")?, &prefix_key(peer))
    }

    /// Number of sampled segments that were sent since then, CLOCK_MONOTONIC, to each of the `wanted` hosts. Looks at
    /// a limited number of flows.
    pub fn samples_since(
        &self,
        mono_ns: i64,
        wanted: impl Fn(IpAddr) -> bool,
    ) -> Result<BTreeMap<IpAddr, usize>> {
        let mut samples = BTreeMap::new();
        let ctls = self.shared.get("ctls")?;
        let ids = self.shared.get("flow_ids")?;
        // In one batch, as the peers.
        let ids = ids.lookup_batch(self.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        let flow = |(key, id): (Vec<u8>, Vec<u8>)| {
            let key = pod_read_unaligned::<onr_tuple>(&key);
            (key.daddr.ip(), id)
        };
        let wanted = ids.map(flow).filter(|(to, _)| wanted(*to));
        for (to, id) in wanted.take(MOST_FLOWS_READ) {
            let Some(ctl) = ctls.lookup(&id, MapFlags::ANY)? else {
                continue;
            };
            let records = pod_read_unaligned::<onr_ctl>(&ctl).records;
            let newest_first = (1..=records.count).map(|age| {
                let slot = records.next.wrapping_sub(age) as usize % records.ring.len();
                records.ring[slot]
            });
            let since = newest_first.take_while(|record| record.sent_mono_ns >= mono_ns);
            *samples.entry(to).or_default() += since.count();
        }
        Ok(samples)
    }

    /// Number of flows in the table.
    pub fn flows(&self) -> Result<usize> {
        let ids = self.shared.get("flow_ids")?;
        // In one batch, as the peers.
        let ids = ids.lookup_batch(self.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        Ok(ids.count())
    }
}

/// Numbers for this many qdiscs beside those that are taken.
fn free_numbers(taken: &BTreeSet<u32>, number: u32) -> Result<Vec<u32>> {
    let free = (0..ONR_MAX_QUEUES).filter(|one| !taken.contains(one));
    let free: Vec<u32> = free.take(number as usize).collect();
    if free.len() < number as usize {
        bail!(
            "its {number} transmit queues and those of the other devices are more than {ONR_MAX_QUEUES}; run a \
             daemon of its own for some of the devices, or reduce their queues: ethtool -L DEV combined N"
        );
    }
    Ok(free)
}

impl InitialMaps {
    /// Fills the maps when they are new.
    fn fill(&self, shared: &Shared) -> Result<()> {
        for (name, prefixes) in [("served", &self.served), ("prefixes", &self.peers)] {
            for prefix in prefixes {
                let key = prefix_key(*prefix);
                shared
                    .get(name)?
                    .update(bytes_of(&key), &PRESENT, MapFlags::ANY)?;
            }
        }
        write_keys(shared, &self.keys)?;
        write_rules(shared, &self.rules, 0)?;
        clock_map::write(shared.get("clock")?, &self.clock)
    }

    /// Fills the maps of a former daemon, and removes what it knew from its configuration. Returns the number of the
    /// rules.
    fn renew(&self, shared: &Shared) -> Result<u32> {
        for (name, prefixes) in [("served", &self.served), ("prefixes", &self.peers)] {
            let wanted = prefixes.iter().map(|p| bytes_of(&prefix_key(*p)).to_vec());
            keep_only(shared.get(name)?, &wanted.collect::<Vec<_>>())?;
        }
        keep_only(shared.get("thresholds")?, &[])?;
        let rules = shared.get("rules")?.lookup(&[0; 4], MapFlags::ANY)?;
        let former: onr_rules = pod_read_unaligned(&rules.context("the map of rules is empty")?);
        let epoch = former.epoch.wrapping_add(1);
        self.fill(shared)?;
        write_rules(shared, &self.rules, epoch)?;
        Ok(epoch)
    }
}

/// Removes all entries of a map but these.
fn keep_only(map: &MapHandle, wanted: &[Vec<u8>]) -> Result<()> {
    let all: Vec<Vec<u8>> = map.keys().collect();
    for key in all.iter().filter(|key| !wanted.contains(key)) {
        map.delete(key)?;
    }
    Ok(())
}

/// Writes which transmit queues of which device have these numbers, for kicks: `first` and those behind it.
fn name_queues(shared: &Shared, numbers: &[u32], ifindex: u32, first: u32) -> Result<()> {
    let kicks = shared.get("kicks")?;
    for (queue, number) in (first..).zip(numbers) {
        let value = onr_kicks {
            ifindex,
            queue,
            ..Default::default()
        };
        kicks.update(&number.to_ne_bytes(), bytes_of(&value), MapFlags::ANY)?;
    }
    Ok(())
}

fn write_keys(shared: &Shared, keys: &Keys) -> Result<()> {
    let mut values = [onr_key::default(); ONR_KEYS as usize];
    for key in keys.all() {
        let [k0, k1] = cast(key.bytes);
        values[key.id as usize] = onr_key {
            k0,
            k1,
            valid: 1,
            ..Default::default()
        };
    }
    let map = shared.get("keys")?;
    for (id, value) in (0u32..).zip(&values) {
        map.update(&id.to_ne_bytes(), bytes_of(value), MapFlags::ANY)?;
    }
    Ok(())
}

fn write_rules(shared: &Shared, rules: &[onr_rule], epoch: u32) -> Result<()> {
    let mut value = onr_rules::zeroed();
    (value.epoch, value.number) = (epoch, rules.len() as u32);
    value.rule[..rules.len()].copy_from_slice(rules);
    let map = shared.get("rules")?;
    Ok(map.update(&0u32.to_ne_bytes(), bytes_of(&value), MapFlags::ANY)?)
}

/// Removes an entry, if there is one.
fn remove(map: &MapHandle, key: &impl bytemuck::NoUninit) -> Result<()> {
    match map.delete(bytes_of(key)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The key of a prefix in the maps of prefixes.
pub fn prefix_key(prefix: Prefix) -> onr_prefix {
    onr_prefix {
        bits: u32::from(prefix.bits) + if prefix.addr.is_ipv4() { 96 } else { 0 },
        addr: onr_addr::of(prefix.addr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_devices_have_different_numbers_and_gaps_are_used_again() {
        let numbers = |taken: &[u32], number| {
            let taken = taken.iter().copied().collect();
            free_numbers(&taken, number).unwrap()
        };
        assert_eq!(numbers(&[], 4), [0, 1, 2, 3]);
        assert_eq!(numbers(&[5, 0, 1, 2, 3], 1), [4]);
        assert_eq!(numbers(&[5, 0, 1, 2, 3], 2), [4, 6]);
        let taken: BTreeSet<u32> = (0..1000).collect();
        let error = free_numbers(&taken, 256).unwrap_err().to_string();
        assert!(error.contains("256 transmit queues"), "{error}");
    }
}
