//! Loads the BPF programs and attaches them to one device. Dropping it detaches them.
use std::{collections::BTreeMap, mem::MaybeUninit, net::IpAddr, os::fd::AsFd};

use anyhow::{anyhow, Context, Result};
use bytemuck::{bytes_of, cast, pod_read_unaligned};
use libbpf_rs::{
    skel::{OpenSkel, SkelBuilder},
    ErrorKind, MapCore, MapFlags, MapHandle, OpenObject,
};

use onramp_clock::keys::Keys;
use onramp_law::abi::{
    onr_addr, onr_at_egress, onr_clock_params, onr_ctl, onr_dev_cfg, onr_key, onr_peer, onr_prefix,
    onr_tuple, COUNTERS, ONR_KEYS, ONR_MAX_PEERS,
};

use onramp_status::RootQdisc;

use crate::prefix::Prefix;

mod before;
pub mod clock_map;
pub(crate) mod edge;
mod edt;
mod holder;
mod hooks;
mod object;
mod qdisc;
mod tc;
mod tcx;

use edge::{Edge, Place};
use edt::Edt;
pub use holder::{Holder, Path};
use hooks::Hooks;
use object::{explain_load, set_cfg};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod orack_skel {
    include!(concat!(env!("OUT_DIR"), "/orack.skel.rs"));
}
use orack_skel::OrackSkelBuilder;

/// Value in the map of prefixes, whose keys alone have a meaning.
const PRESENT: [u8; 4] = 1u32.to_ne_bytes();

/// Key of the only element of an array.
const FIRST: [u8; 4] = [0; 4];
/// Most flows whose records are read at a time; each has 6 kB.
const MOST_FLOWS_READ: usize = 1_024;

/// The maps that the daemon writes and reads while it runs.
struct Maps {
    counters: MapHandle,
    peers: MapHandle,
    clock: MapHandle,
    flow_ids: MapHandle,
    thresholds: MapHandle,
    muted: MapHandle,
    ctls: MapHandle,
    prefixes: MapHandle,
    keys: MapHandle,
    orack_cfg: MapHandle,
}

/// A loaded data path on one device.
pub struct Datapath {
    /// None while the daemon only observes.
    holder: Option<Holder>,
    maps: Maps,
    tcx: Hooks,
    cfg: onr_dev_cfg,
}

impl Datapath {
    /// Loads the programs with `cfg`, and attaches them to the device; holds by `path`, unless the configuration
    /// says that the daemon observes.
    pub fn attach(
        ifindex: i32,
        cfg: &onr_dev_cfg,
        path: Path,
        keys: &Keys,
        peers: &[Prefix],
        served: &[Prefix],
        clock: &onr_clock_params,
    ) -> Result<Self> {
        let place = Place::of(ifindex)?;
        let mut cfg = *cfg;
        let mut room = edge::room(&cfg);
        let observes = cfg.at_egress == onr_at_egress::Observes as u8;
        let loaded = match observes {
            true => None,
            false => holder::load_edge(&mut room, path, place, &cfg)?,
        };
        let is_edt = !observes && loaded.is_none();
        if is_edt {
            cfg.at_egress = onr_at_egress::Holds as u8;
            holder::check_edt(&cfg)?;
        }
        let mut orack_object = MaybeUninit::uninit();
        let first = loaded.as_ref().and_then(|all| all.first());
        let shared = first.map(|edge| &edge.maps);
        let orack = load_orack(&mut orack_object, &cfg, shared)?;
        for addresses in served {
            let key = prefix_key(*addresses);
            let map = &orack.maps.served;
            map.update(bytes_of(&key), &PRESENT, MapFlags::ANY)?;
        }
        let maps = Maps::of(&orack.maps)?;
        maps.set_keys(keys, &cfg)?;
        for peer in peers {
            maps.add_peer(*peer)?;
        }
        clock_map::write(&maps.clock, clock)?;

        let holder = match loaded {
            Some(loaded) => Some(Holder::Edge(Edge::install(loaded, place)?)),
            None if is_edt => Some(Holder::Edt(Edt::install(place, &cfg)?)),
            None => None,
        };
        let ingress = orack.progs.orack_ingress.as_fd();
        let egress = match holder {
            Some(Holder::Edge(_)) => orack.progs.orack_egress.as_fd(),
            _ => orack.progs.orack_records.as_fd(),
        };
        match Hooks::attach(ifindex, ingress, egress) {
            Ok(tcx) => Ok(Self {
                holder,
                maps,
                tcx,
                cfg,
            }),
            Err(error) => {
                holder.map_or(Ok(RootQdisc::Own), Holder::remove)?;
                Err(error)
            }
        }
    }

    /// What holds; none while the daemon only observes.
    pub fn holder(&mut self) -> Option<&mut Holder> {
        self.holder.as_mut()
    }

    /// `edge`, `edt` or `observe`.
    pub fn path(&self) -> &'static str {
        self.holder.as_ref().map_or("observe", Holder::path)
    }

    /// Removes everything and restores what was there before, except what another program has changed. Returns
    /// who had the root qdisc; none while the daemon only observes.
    pub fn detach(self) -> Result<Option<RootQdisc>> {
        let Self { holder, tcx, .. } = self;
        drop(tcx);
        holder.map(Holder::remove).transpose()
    }

    /// Gives both programs a new clock, atomically.
    pub fn set_clock(&self, clock: &onr_clock_params) -> Result<()> {
        clock_map::write(&self.maps.clock, clock)
    }

    /// The ids of the tcx programs that run before ours.
    pub fn before_us(&self) -> Result<Vec<u32>> {
        self.tcx.before_us()
    }

    /// True once another program has kept ours from making an OR-ACK: none is sent since.
    pub fn is_muted(&self) -> Result<bool> {
        let muted = self.maps.muted.lookup(&FIRST, MapFlags::ANY)?;
        Ok(muted.is_some_and(|value| value.iter().any(|byte| *byte != 0)))
    }

    /// Puts our tcx programs in front of all others, and lets OR-ACKs be sent again.
    pub fn move_to_front(&mut self) -> Result<()> {
        self.tcx.move_to_front()?;
        Ok(self.maps.muted.update(&FIRST, &[0; 4], MapFlags::ANY)?)
    }

    /// Accepts these keys, and no others, from now on; signs with the first.
    pub fn set_keys(&self, keys: &Keys) -> Result<()> {
        self.maps.set_keys(keys, &self.cfg)
    }

    /// Sets T to a peer, ns. It is used if the configuration says that each peer has its own T.
    pub fn set_threshold(&self, peer: IpAddr, threshold_ns: u32) -> Result<()> {
        let key = onr_addr::of(peer);
        let map = &self.maps.thresholds;
        Ok(map.update(bytes_of(&key), &threshold_ns.to_ne_bytes(), MapFlags::ANY)?)
    }

    /// Removes T to a peer, so that its flows are not held with `--threshold auto`.
    pub fn remove_threshold(&self, peer: IpAddr) -> Result<()> {
        remove(&self.maps.thresholds, &onr_addr::of(peer))
    }

    /// Removes what is known of a peer.
    pub fn forget_peer(&self, peer: IpAddr) -> Result<()> {
        remove(&self.maps.peers, &onr_addr::of(peer))
    }

    /// The counters, in the order of `COUNTERS`, summed over CPUs (a maximum is not summed).
    pub fn counters(&self) -> Result<Vec<u64>> {
        let read = |(index, (name, _)): (usize, &(&str, &str))| {
            let cpus = self
                .maps
                .counters
                .lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY)?
                .ok_or_else(|| anyhow!("the BPF map of counters lacks {name}"))?;
            let values = cpus.iter().map(|v| pod_read_unaligned::<u64>(v));
            Ok(if name.contains("_max_") {
                values.max().unwrap_or(0)
            } else {
                values.sum()
            })
        };
        COUNTERS.iter().enumerate().map(read).collect()
    }

    /// The delays and counters of each peer.
    pub fn peers(&self) -> Result<Vec<(IpAddr, onr_peer)>> {
        // In one batch: libbpf-rs ends at the first one that is not full, and the kernel fills none but by chance.
        let all = &self.maps.peers;
        let all = all.lookup_batch(ONR_MAX_PEERS, MapFlags::ANY, MapFlags::ANY)?;
        let peer = |(key, value): (Vec<u8>, Vec<u8>)| {
            let addr = pod_read_unaligned::<onr_addr>(&key);
            (addr.ip(), pod_read_unaligned(&value))
        };
        let mut peers: Vec<_> = all.map(peer).collect();
        peers.sort_by_key(|(addr, _)| *addr);
        Ok(peers)
    }

    /// Sends OR-ACKs to these hosts too, and believes theirs.
    pub fn add_peer(&self, peer: Prefix) -> Result<()> {
        self.maps.add_peer(peer)
    }

    /// Sends no OR-ACKs to these hosts any more.
    pub fn remove_peer(&self, peer: Prefix) -> Result<()> {
        remove(&self.maps.prefixes, &prefix_key(peer))
    }

    /// Number of sampled segments that were sent since then, CLOCK_MONOTONIC, to each of the `wanted` hosts. Looks at
    /// a limited number of flows.
    pub fn samples_since(
        &self,
        mono_ns: i64,
        wanted: impl Fn(IpAddr) -> bool,
    ) -> Result<BTreeMap<IpAddr, usize>> {
        let mut samples = BTreeMap::new();
        let ids = &self.maps.flow_ids;
        // In one batch, as the peers.
        let ids = ids.lookup_batch(self.cfg.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        let flow = |(key, id): (Vec<u8>, Vec<u8>)| {
            let key = pod_read_unaligned::<onr_tuple>(&key);
            (key.daddr.ip(), id)
        };
        let wanted = ids.map(flow).filter(|(to, _)| wanted(*to));
        for (to, id) in wanted.take(MOST_FLOWS_READ) {
            let Some(ctl) = self.maps.ctls.lookup(&id, MapFlags::ANY)? else {
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
    pub fn flows(&self) -> usize {
        self.maps.flow_ids.keys().count()
    }
}

impl Maps {
    /// Orack has all maps; those that edge uses too are the same.
    fn of(orack: &orack_skel::OrackMaps<'_>) -> Result<Self> {
        Ok(Self {
            counters: MapHandle::try_from(&orack.counters)?,
            peers: MapHandle::try_from(&orack.peers)?,
            clock: MapHandle::try_from(&orack.clock)?,
            flow_ids: MapHandle::try_from(&orack.flow_ids)?,
            thresholds: MapHandle::try_from(&orack.thresholds)?,
            muted: MapHandle::try_from(&orack.data_muted)?,
            ctls: MapHandle::try_from(&orack.ctls)?,
            prefixes: MapHandle::try_from(&orack.prefixes)?,
            keys: MapHandle::try_from(&orack.keys)?,
            orack_cfg: MapHandle::try_from(&orack.data_cfg)?,
        })
    }

    fn add_peer(&self, peer: Prefix) -> Result<()> {
        let key = prefix_key(peer);
        Ok(self
            .prefixes
            .update(bytes_of(&key), &PRESENT, MapFlags::ANY)?)
    }

    fn set_keys(&self, keys: &Keys, cfg: &onr_dev_cfg) -> Result<()> {
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
        for (id, value) in values.iter().enumerate() {
            let id = id as u32;
            self.keys
                .update(&id.to_ne_bytes(), bytes_of(value), MapFlags::ANY)?;
        }
        let cfg = onr_dev_cfg {
            key_id: keys.signing().id,
            ..*cfg
        };
        let first = 0u32.to_ne_bytes();
        Ok(self
            .orack_cfg
            .update(&first, bytes_of(&cfg), MapFlags::ANY)?)
    }
}

/// Removes an entry, if there is one.
fn remove(map: &MapHandle, key: &impl bytemuck::NoUninit) -> Result<()> {
    match map.delete(bytes_of(key)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn load_orack<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    cfg: &onr_dev_cfg,
    shared: Option<&edge::Maps<'_>>,
) -> Result<orack_skel::OrackSkel<'o>> {
    let mut open = OrackSkelBuilder::default()
        .open(object)
        .context("reading orack.bpf.o")?;
    if let Some(edge) = shared {
        open.maps.ctls.reuse_fd(edge.ctls.as_fd())?;
        open.maps.flow_ids.reuse_fd(edge.flow_ids.as_fd())?;
        open.maps.kicks.reuse_fd(edge.kicks.as_fd())?;
        open.maps.peers.reuse_fd(edge.peers.as_fd())?;
        open.maps.prefixes.reuse_fd(edge.prefixes.as_fd())?;
        open.maps.served.reuse_fd(edge.served.as_fd())?;
        open.maps.counters.reuse_fd(edge.counters.as_fd())?;
        open.maps.clock.reuse_fd(edge.clock.as_fd())?;
    } else {
        open.maps.ctls.set_max_entries(cfg.max_flows)?;
        open.maps.flow_ids.set_max_entries(cfg.max_flows)?;
    }
    let records = shared.is_none();
    open.progs.orack_egress.set_autoload(!records);
    open.progs.orack_records.set_autoload(records);
    set_cfg(open.maps.data_cfg.initial_value_mut(), cfg)?;
    open.load().map_err(|error| explain_load(error, "orack"))
}

fn prefix_key(prefix: Prefix) -> onr_prefix {
    onr_prefix {
        bits: u32::from(prefix.bits) + if prefix.addr.is_ipv4() { 96 } else { 0 },
        addr: onr_addr::of(prefix.addr),
    }
}
