//! Loads the BPF programs and attaches them to one device. Dropping it detaches them. If the process is
//! killed, the qdisc stays and forwards packets, and holds nothing once the lease has ended.
use std::{
    collections::BTreeSet,
    mem::MaybeUninit,
    net::IpAddr,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, Context, Result};
use bytemuck::{bytes_of, cast, pod_read_unaligned};
use libbpf_rs::{
    skel::{OpenSkel, SkelBuilder},
    ErrorKind, Link, MapCore, MapFlags, MapHandle, OpenObject,
};

use onramp_clock::keys::Keys;
use onramp_law::abi::{
    onr_addr, onr_clock_params, onr_ctl, onr_dev_cfg, onr_key, onr_peer, onr_prefix, onr_tuple,
    COUNTERS, ONR_BUCKETS, ONR_KEYS, ONR_MAX_PEERS,
};

use onramp_status::{netns_inode, RootQdisc, RUN_DIR};
use onramp_units::Bytes;

use crate::{clock_map, prefix::Prefix, qdisc, tcx::Tcx};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod edge_skel {
    include!(concat!(env!("OUT_DIR"), "/edge.skel.rs"));
}
#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod orack_skel {
    include!(concat!(env!("OUT_DIR"), "/orack.skel.rs"));
}
use edge_skel::EdgeSkelBuilder;
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
    id: String,
    device: qdisc::Device,
    before: qdisc::Before,
    /// File that keeps `before` for the next daemon, if this one is killed.
    before_file: PathBuf,
    /// The largest GSO segment of the device as this daemon left it.
    gso_limit_bytes: u32,
    maps: Maps,
    tcx: Tcx,
    cfg: onr_dev_cfg,
    _edge: Link,
}

/// The name under which the qdisc is registered. Names are global in the kernel and have at most 15
/// characters, so it contains the network namespace and the device.
pub fn qdisc_id(netns_inode: u64, ifindex: i32) -> String {
    format!("{}{:05x}_{ifindex}", qdisc::PREFIX, netns_inode & 0xf_ffff)
}

/// Is fq the root qdisc of the device, or was it before a daemon attached, or would the kernel make it so?
pub fn had_fq(dev: &str) -> Result<bool> {
    let ifindex = nix::net::if_::if_nametoindex(dev)? as i32;
    let device = qdisc::Device::open(ifindex)?;
    let id = qdisc_id(netns_inode()?, ifindex);
    Ok(match qdisc::Before::of(&device, &before_file(&id)) {
        Ok(before) => before.qdisc.kind() == "fq",
        Err(_) => false, // attach() says why
    })
}

/// The largest GSO segment of a device as it is, or as it was before a daemon attached.
pub fn gso_max(dev: &str) -> Result<Bytes> {
    let ifindex = nix::net::if_::if_nametoindex(dev)? as i32;
    let device = qdisc::Device::open(ifindex)?;
    Ok(Bytes::new(device.gso_max_size()?.into()))
}

fn before_file(id: &str) -> PathBuf {
    Path::new(RUN_DIR).join(format!("{id}.before"))
}

impl Datapath {
    /// Loads the programs with `cfg`, and attaches them to the device.
    pub fn attach(
        ifindex: i32,
        id: &str,
        cfg: &onr_dev_cfg,
        keys: &Keys,
        peers: &[Prefix],
        served: &[Prefix],
        clock: &onr_clock_params,
    ) -> Result<Self> {
        let device = qdisc::Device::open(ifindex)?;
        let before_file = before_file(id);
        let before = qdisc::Before::of(&device, &before_file)?;
        let gso_limit_bytes = device.gso_max_size()?;

        let mut edge_object = MaybeUninit::uninit();
        let mut edge = open_edge(&mut edge_object, id, cfg)?;
        let mut orack_object = MaybeUninit::uninit();
        let orack = load_orack(&mut orack_object, cfg, &edge.maps)?;
        for addresses in served {
            let key = prefix_key(*addresses);
            let map = &edge.maps.served;
            map.update(bytes_of(&key), &PRESENT, MapFlags::ANY)?;
        }
        let maps = Maps {
            counters: MapHandle::try_from(&edge.maps.counters)?,
            peers: MapHandle::try_from(&edge.maps.peers)?,
            clock: MapHandle::try_from(&edge.maps.clock)?,
            flow_ids: MapHandle::try_from(&edge.maps.flow_ids)?,
            thresholds: MapHandle::try_from(&orack.maps.thresholds)?,
            muted: MapHandle::try_from(&orack.maps.data_muted)?,
            ctls: MapHandle::try_from(&edge.maps.ctls)?,
            prefixes: MapHandle::try_from(&orack.maps.prefixes)?,
            keys: MapHandle::try_from(&orack.maps.keys)?,
            orack_cfg: MapHandle::try_from(&orack.maps.data_cfg)?,
        };
        maps.set_keys(keys, cfg)?;
        for peer in peers {
            maps.add_peer(*peer)?;
        }
        clock_map::write(&maps.clock, clock)?;

        let link = edge.maps.edge.attach_struct_ops().with_context(|| {
            format!(
                "cannot register the qdisc {id}; is another daemon starting on this device? Stop it first"
            )
        })?;
        before.save(&before_file)?;
        if device.root()?.is_none() {
            device.delete()?; // replacing a qdisc by one of the same name would keep the old program
        }
        device.install(id, &[])?;
        let ingress = orack.progs.orack_ingress.as_fd();
        let egress = orack.progs.orack_egress.as_fd();
        let tcx = match Tcx::attach(ifindex, ingress, egress) {
            Ok(tcx) => tcx,
            Err(error) => {
                before.restore(&device, id, gso_limit_bytes)?;
                return Err(error);
            }
        };
        Ok(Self {
            id: id.to_owned(),
            device,
            before,
            before_file,
            gso_limit_bytes,
            maps,
            tcx,
            cfg: *cfg,
            _edge: link,
        })
    }

    /// Keeps GSO segments at or below `bytes` while attached.
    pub fn limit_gso(&mut self, bytes: u32) -> Result<()> {
        let wanted = bytes.min(self.before.gso_max_bytes);
        if self.device.gso_max_size()? != wanted {
            self.device.set_gso_max_size(wanted)?;
        }
        self.gso_limit_bytes = wanted;
        Ok(())
    }

    /// Removes everything and restores the former qdisc and GSO limit, except what another program has
    /// changed. Returns who had the root qdisc.
    pub fn detach(self) -> Result<RootQdisc> {
        let owner = self
            .before
            .restore(&self.device, &self.id, self.gso_limit_bytes)?;
        let _ = std::fs::remove_file(&self.before_file);
        Ok(owner)
    }

    /// Who has the root qdisc of the device now.
    pub fn root_qdisc(&self) -> Result<RootQdisc> {
        self.device.owner(&self.id)
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

    /// Of the `wanted` hosts, those to which a sampled segment was sent since then, CLOCK_MONOTONIC. Looks at a
    /// limited number of flows.
    pub fn sampled_since(
        &self,
        mono_ns: i64,
        wanted: impl Fn(IpAddr) -> bool,
    ) -> Result<BTreeSet<IpAddr>> {
        let mut sampled = BTreeSet::new();
        let ids = &self.maps.flow_ids;
        // In one batch, as the peers.
        let ids = ids.lookup_batch(self.cfg.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        let flow = |(key, id): (Vec<u8>, Vec<u8>)| {
            let key = pod_read_unaligned::<onr_tuple>(&key);
            (key.daddr.ip(), id)
        };
        let wanted = ids.map(flow).filter(|(to, _)| wanted(*to));
        for (to, id) in wanted.take(MOST_FLOWS_READ) {
            if sampled.contains(&to) {
                continue;
            }
            let Some(ctl) = self.maps.ctls.lookup(&id, MapFlags::ANY)? else {
                continue;
            };
            let records = pod_read_unaligned::<onr_ctl>(&ctl).records;
            let newest = records.next.wrapping_sub(1) as usize % records.ring.len();
            if records.count > 0 && records.ring[newest].sent_mono_ns >= mono_ns {
                sampled.insert(to);
            }
        }
        Ok(sampled)
    }

    /// Number of flows in the table.
    pub fn flows(&self) -> usize {
        self.maps.flow_ids.keys().count()
    }
}

impl Maps {
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

fn open_edge<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    id: &str,
    cfg: &onr_dev_cfg,
) -> Result<edge_skel::EdgeSkel<'o>> {
    let mut open = EdgeSkelBuilder::default()
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

fn load_orack<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    cfg: &onr_dev_cfg,
    edge: &edge_skel::EdgeMaps<'_>,
) -> Result<orack_skel::OrackSkel<'o>> {
    let mut open = OrackSkelBuilder::default()
        .open(object)
        .context("reading orack.bpf.o")?;
    open.maps.ctls.reuse_fd(edge.ctls.as_fd())?;
    open.maps.flow_ids.reuse_fd(edge.flow_ids.as_fd())?;
    open.maps.peers.reuse_fd(edge.peers.as_fd())?;
    open.maps.prefixes.reuse_fd(edge.prefixes.as_fd())?;
    open.maps.served.reuse_fd(edge.served.as_fd())?;
    open.maps.counters.reuse_fd(edge.counters.as_fd())?;
    open.maps.clock.reuse_fd(edge.clock.as_fd())?;
    set_cfg(open.maps.data_cfg.initial_value_mut(), cfg)?;
    open.load().map_err(|error| explain_load(error, "orack"))
}

fn set_cfg(value: Option<&mut [u8]>, cfg: &onr_dev_cfg) -> Result<()> {
    let value = value.context("the BPF object has no configuration; build onramp again")?;
    let bytes = bytes_of(cfg);
    if value.len() != bytes.len() {
        bail!(
            "the configuration in the BPF object has {} bytes, not {}; build onramp again",
            value.len(),
            bytes.len()
        );
    }
    value.copy_from_slice(bytes);
    Ok(())
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

fn prefix_key(prefix: Prefix) -> onr_prefix {
    onr_prefix {
        bits: u32::from(prefix.bits) + if prefix.addr.is_ipv4() { 96 } else { 0 },
        addr: onr_addr::of(prefix.addr),
    }
}

fn explain_load(error: libbpf_rs::Error, object: &str) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => {
            "needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run the command with sudo"
        }
        _ if object == "edge" => {
            "needs Linux >= 6.16 with CONFIG_NET_SCH_BPF=y and CONFIG_DEBUG_INFO_BTF=y"
        }
        _ => "needs Linux >= 6.6 with CONFIG_DEBUG_INFO_BTF=y",
    };
    anyhow!(error).context(format!(
        "the kernel does not load {object}.bpf.o; it {hint}"
    ))
}
