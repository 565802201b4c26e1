// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The qdiscs and the largest GSO segment of a device, by rtnetlink. Takes only what a dump describes
//! completely, so that it can be restored: a classless qdisc, mq with such, or the kernel's default.
use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use neli::{
    consts::{
        nl::NlmF,
        rtnl::{Ifla, IflaInfo, RtAddrFamily, Rtm, Tca},
        socket::NlFamily,
    },
    nl::NlPayload,
    router::synchronous::NlRouter,
    rtnl::{Ifinfomsg, IfinfomsgBuilder, RtattrBuilder, Tcmsg, TcmsgBuilder},
    types::{Buffer, RtBuffer},
    utils::Groups,
};
use onramp_status::RootQdisc;

use super::found::{Found, Leaf};
use super::netlink::plain;

/// TC_H_ROOT: the parent of a root qdisc.
const ROOT: u32 = 0xffff_ffff;
/// TC_H_INGRESS: the parent of `ingress` and `clsact`, which stay as they are.
const INGRESS: u32 = 0xffff_fff1;
/// Handle of the root qdisc that On-Ramp has installed; by it the next daemon recognises it.
const OWN: u32 = 0x4f52_0000;
/// Start of the names of On-Ramp qdiscs.
pub const PREFIX: &str = "onr";
/// Classless qdiscs that the kernel accepts with the options that it dumped.
const REPLAYABLE: &[&str] = &["fq", "fq_codel", "codel", "pfifo", "bfifo", "sfq", "cake"];

/// IFLA_TSO_MAX_SIZE (linux/if_link.h): the largest segment that the hardware takes.
const TSO_MAX_SIZE: Ifla = Ifla::UnrecognizedConst(59);
/// IFLA_GSO_IPV4_MAX_SIZE (linux/if_link.h).
const GSO_IPV4_MAX_SIZE: Ifla = Ifla::UnrecognizedConst(63);
/// GSO_LEGACY_MAX_SIZE (linux/netdevice.h).
const GSO_DEFAULT_BYTES: u32 = 65_536;

/// A qdisc of the device, as a dump describes it.
struct Dumped {
    kind: String,
    parent: u32,
    handle: u32,
    options: Vec<u8>,
    /// The packets that wait in it.
    waiting: u32,
}

/// The transmit queue whose qdisc a child of an mq is, from 0.
fn queue_of(parent: u32) -> u32 {
    (parent & 0xffff).wrapping_sub(1)
}

impl From<&Dumped> for Leaf {
    fn from(qdisc: &Dumped) -> Self {
        Self {
            kind: qdisc.kind.clone(),
            options: qdisc.options.clone(),
        }
    }
}

impl Dumped {
    /// Has On-Ramp installed it?
    fn is_own(&self) -> bool {
        self.kind.starts_with(PREFIX) || self.parent == ROOT && self.handle == OWN
    }

    /// Has the kernel created it, with its children?
    fn is_by_kernel(&self) -> bool {
        self.handle >> 16 == 0 && !self.is_own()
    }

    fn is_leaf_of(&self, root: u32) -> bool {
        self.parent != ROOT && self.parent >> 16 == root >> 16
    }
}

/// A netlink socket and one device.
pub struct Device {
    ifindex: i32,
    router: NlRouter,
}

impl Device {
    /// Opens a netlink socket in the present network namespace.
    pub fn open(ifindex: i32) -> Result<Self> {
        let (router, _) = NlRouter::connect(NlFamily::Route, None, Groups::empty())
            .context("cannot open a netlink socket")?;
        router
            .enable_ext_ack(true)
            .context("netlink: extended errors")?;
        Ok(Self { ifindex, router })
    }

    /// Its number in the network namespace.
    pub fn ifindex(&self) -> i32 {
        self.ifindex
    }

    /// The kind of the kernel's own qdisc of the device, or of its first transmit queue.
    pub fn kind_by_kernel(&self) -> Result<Option<String>> {
        let all = self.dump_all()?.into_iter();
        let mut by_kernel = all.filter(|qdisc| qdisc.is_by_kernel() && qdisc.kind != "mq");
        Ok(by_kernel.next().map(|qdisc| qdisc.kind))
    }

    /// The qdiscs of the device, none if it has an On-Ramp qdisc; an error if they could not be put back.
    pub fn found(&self) -> Result<Option<Found>> {
        let all = self.dump()?;
        if all.iter().any(Dumped::is_own) {
            return Ok(None);
        }
        let Some(root) = all.iter().find(|qdisc| qdisc.parent == ROOT) else {
            return Ok(Some(Found::Default));
        };
        let is_mq = root.kind == "mq";
        let is_leaf = |q: &Dumped| is_mq && q.is_leaf_of(root.handle);
        for qdisc in &all {
            let is_known = REPLAYABLE.contains(&qdisc.kind.as_str());
            let is_expected = match qdisc.parent {
                ROOT => is_mq || is_known,
                _ => is_leaf(qdisc) && is_known,
            };
            if !is_expected {
                bail!(
                    "it has a {} qdisc, which On-Ramp could not restore when it stops; remove it first: \
                     tc qdisc del dev DEV root",
                    qdisc.kind
                );
            }
        }
        let leaf = |qdisc: &Dumped| (queue_of(qdisc.parent), Leaf::from(qdisc));
        Ok(Some(match is_mq {
            true => Found::PerQueue {
                handle: root.handle,
                leaves: all.iter().filter(|q| is_leaf(q)).map(leaf).collect(),
            },
            false => Found::Configured(Leaf::from(root)),
        }))
    }

    /// Do all packets of the device leave through qdiscs of this kind that On-Ramp has not installed?
    pub fn has_its_own(&self, kind: &str) -> Result<bool> {
        let all = self.dump_all()?;
        let mut leaves = all.iter().filter(|qdisc| qdisc.kind != "mq").peekable();
        let has_leaves = leaves.peek().is_some();
        Ok(has_leaves && leaves.all(|leaf| leaf.kind == kind) && !all.iter().any(Dumped::is_own))
    }

    /// Who has the device now, if these are the kinds of the daemon's qdiscs, one for each transmit queue or one
    /// for all.
    pub fn owner(&self, names: &[String]) -> Result<RootQdisc> {
        let all = self.dump()?;
        let Some(root) = all.iter().find(|qdisc| qdisc.parent == ROOT) else {
            return Ok(RootQdisc::Default);
        };
        let is_expected = match names {
            [name] => root.kind == *name,
            _ => root.kind == "mq",
        };
        if root.handle != OWN || !is_expected {
            return Ok(RootQdisc::Foreign(root.kind.clone()));
        }
        let leaves: Vec<&Dumped> = all.iter().filter(|q| q.is_leaf_of(OWN)).collect();
        let foreign = leaves.iter().find(|leaf| !names.contains(&leaf.kind));
        Ok(match foreign {
            Some(leaf) => RootQdisc::Foreign(leaf.kind.clone()),
            None if names.len() > 1 && leaves.len() < names.len() => RootQdisc::Default,
            None => RootQdisc::Own,
        })
    }

    /// The kinds of the qdiscs that On-Ramp has installed, one for each transmit queue or one for all; none if there
    /// are none.
    pub fn own_kinds(&self) -> Result<Vec<String>> {
        let all = self.dump()?;
        let Some(root) = all.iter().find(|q| q.parent == ROOT && q.is_own()) else {
            return Ok(vec![]);
        };
        if root.kind != "mq" {
            return Ok(vec![root.kind.clone()]);
        }
        let leaves: Vec<&Dumped> = all.iter().filter(|q| q.is_leaf_of(OWN)).collect();
        let has_edge = leaves.iter().any(|leaf| leaf.is_own());
        let own = leaves.iter().filter(|leaf| !has_edge || leaf.is_own()); // edt has plain fq
        Ok(own.map(|leaf| leaf.kind.clone()).collect())
    }

    /// The transmit queues that still have the daemon's qdiscs, of these kinds.
    pub fn queues_with(&self, names: &[String]) -> Result<Vec<u32>> {
        let all = self.dump()?.into_iter();
        let own = all.filter(|qdisc| qdisc.is_leaf_of(OWN) && names.contains(&qdisc.kind));
        Ok(own.map(|qdisc| queue_of(qdisc.parent)).collect())
    }

    /// The qdiscs of the device, without those that the kernel creates and those for ingress.
    fn dump(&self) -> Result<Vec<Dumped>> {
        let mut all = self.dump_all()?;
        all.retain(|qdisc| !qdisc.is_by_kernel());
        Ok(all)
    }

    /// The qdiscs of the device, without those for ingress.
    fn dump_all(&self) -> Result<Vec<Dumped>> {
        let query = self.message(0, 0, RtBuffer::new())?;
        let replies = self
            .router
            .send::<_, _, Rtm, Tcmsg>(Rtm::Getqdisc, NlmF::DUMP, NlPayload::Payload(query))
            .context("netlink: requesting the qdiscs")?;
        let mut all = vec![];
        for reply in replies {
            let reply = reply.map_err(plain).context("netlink: reading qdiscs")?;
            let Some(qdisc) = reply.get_payload() else {
                continue;
            };
            if *qdisc.tcm_ifindex() != self.ifindex || *qdisc.tcm_parent() == INGRESS {
                continue;
            }
            let attributes = qdisc.rtattrs().get_attr_handle();
            let kind: String = attributes.get_attr_payload_as_with_len(Tca::Kind)?;
            let kind = kind.trim_end_matches('\0').to_owned();
            let options = attributes.get_attribute(Tca::Options);
            let mut options = options
                .map(|a| a.rta_payload().as_ref().to_vec())
                .unwrap_or_default();
            round_codel_times_up(&kind, &mut options);
            all.push(Dumped {
                kind,
                parent: *qdisc.tcm_parent(),
                handle: *qdisc.tcm_handle(),
                options,
                waiting: attributes.get_attribute(Tca::Stats).map_or(0, waiting),
            });
        }
        Ok(all)
    }

    /// Does no packet wait in the qdiscs of the device?
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.dump_all()?.iter().all(|qdisc| qdisc.waiting == 0))
    }

    /// Makes a qdisc the root.
    pub fn install(&self, leaf: &Leaf) -> Result<()> {
        self.replace(ROOT, 0, leaf)
            .with_context(|| format!("cannot make {} the root qdisc", leaf.kind))
    }

    /// Makes an mq the root, and these its leaves, by transmit queue. The others are the kernel's default.
    pub fn install_mq(&self, handle: u32, leaves: &BTreeMap<u32, Leaf>) -> Result<()> {
        self.replace(ROOT, handle, &Leaf::plain("mq"))
            .context("cannot make mq the root qdisc")?;
        for (queue, leaf) in leaves {
            self.install_leaf(handle, *queue, leaf)?;
        }
        Ok(())
    }

    /// Makes a qdisc On-Ramp's root; several, those of the transmit queues.
    pub fn install_own(&self, leaves: &[Leaf]) -> Result<()> {
        match leaves {
            [leaf] => self
                .replace(ROOT, OWN, leaf)
                .with_context(|| format!("cannot make {} the root qdisc", leaf.kind)),
            leaves => self.install_mq(OWN, &(0..).zip(leaves.iter().cloned()).collect()),
        }
    }

    /// Makes a qdisc that of one transmit queue under On-Ramp's own mq.
    pub fn install_own_leaf(&self, queue: u32, leaf: &Leaf) -> Result<()> {
        self.install_leaf(OWN, queue, leaf)
    }

    fn install_leaf(&self, handle: u32, queue: u32, leaf: &Leaf) -> Result<()> {
        self.replace(handle | (queue + 1), 0, leaf)
            .with_context(|| format!("cannot give transmit queue {queue} the qdisc {}", leaf.kind))
    }

    fn replace(&self, parent: u32, handle: u32, leaf: &Leaf) -> Result<()> {
        let mut attributes = RtBuffer::new();
        attributes.push(attribute(Tca::Kind, format!("{}\0", leaf.kind).as_bytes())?);
        if !leaf.options.is_empty() {
            attributes.push(attribute(Tca::Options, &leaf.options)?);
        }
        let message = self.message(parent, handle, attributes)?;
        self.order(Rtm::Newqdisc, NlmF::CREATE | NlmF::REPLACE, message)
    }

    /// Removes the root qdisc; the kernel puts its default in its place.
    pub fn delete(&self) -> Result<()> {
        let message = self.message(ROOT, 0, RtBuffer::new())?;
        self.order(Rtm::Delqdisc, NlmF::empty(), message)
            .context("cannot remove the root qdisc")
    }

    /// Largest GSO segment that the device accepts from the stack, bytes.
    pub fn gso_max_size(&self) -> Result<u32> {
        self.link_attribute(Ifla::GsoMaxSize)
    }

    /// The same for IPv4; before Linux 6.3 it is the same value.
    pub fn gso_ipv4_max_size(&self) -> Result<u32> {
        match self.find_link_attribute(GSO_IPV4_MAX_SIZE)? {
            Some(bytes) => Ok(bytes),
            None => self.gso_max_size(),
        }
    }

    /// The same for a device that nobody has configured.
    pub fn gso_default_size(&self) -> Result<u32> {
        let hardware = self.find_link_attribute(TSO_MAX_SIZE)?; // since Linux 5.19
        Ok(hardware.unwrap_or(GSO_DEFAULT_BYTES).min(GSO_DEFAULT_BYTES))
    }

    fn link_attribute(&self, attribute: Ifla) -> Result<u32> {
        let found = self.find_link_attribute(attribute)?;
        found.context("the kernel does not report the largest GSO segment of the device")
    }

    /// None if the kernel does not know the attribute.
    fn find_link_attribute(&self, attribute: Ifla) -> Result<Option<u32>> {
        self.read_link(|link| {
            let attributes = link.rtattrs().get_attr_handle();
            let found = attributes.get_attribute(attribute).is_some();
            Ok(match found {
                true => Some(attributes.get_attr_payload_as(attribute)?),
                false => None,
            })
        })
    }

    /// What `ip link add` calls devices of this type, e.g. "team"; none for a physical device.
    pub fn kind(&self) -> Result<Option<String>> {
        self.read_link(|link| {
            let attributes = link.rtattrs().get_attr_handle();
            if attributes.get_attribute(Ifla::Linkinfo).is_none() {
                return Ok(None);
            }
            let info = attributes.get_nested_attributes::<IflaInfo>(Ifla::Linkinfo)?;
            let kind = info.get_attribute(IflaInfo::Kind).map(|kind| {
                let text = String::from_utf8_lossy(kind.rta_payload().as_ref());
                text.trim_end_matches('\0').to_owned()
            });
            Ok(kind)
        })
    }

    /// What `take` reads in the kernel's description of the device.
    fn read_link<T>(&self, take: impl FnOnce(&Ifinfomsg) -> Result<T>) -> Result<T> {
        let query = self.link(RtBuffer::new())?;
        let replies = self
            .router
            .send::<_, _, Rtm, Ifinfomsg>(Rtm::Getlink, NlmF::empty(), NlPayload::Payload(query))
            .context("netlink: requesting the device")?;
        for reply in replies {
            let reply = reply
                .map_err(plain)
                .context("netlink: reading the device")?;
            if let Some(link) = reply.get_payload() {
                return take(link);
            }
        }
        bail!("the kernel does not report the device")
    }

    /// Sets the largest GSO segment of new connections; below 64 kB that of IPv4 with it. Connections that
    /// are open keep theirs.
    pub fn set_gso_max_size(&self, bytes: u32) -> Result<()> {
        self.set_link_attribute(Ifla::GsoMaxSize, bytes)
    }

    pub fn set_gso_ipv4_max_size(&self, bytes: u32) -> Result<()> {
        self.set_link_attribute(GSO_IPV4_MAX_SIZE, bytes)
    }

    fn set_link_attribute(&self, attribute: Ifla, bytes: u32) -> Result<()> {
        let mut attributes = RtBuffer::new();
        attributes.push(
            RtattrBuilder::default()
                .rta_type(attribute)
                .rta_payload(bytes)
                .build()?,
        );
        self.order(Rtm::Newlink, NlmF::empty(), self.link(attributes)?)
            .with_context(|| format!("cannot limit GSO segments to {bytes} B"))
    }

    fn message(
        &self,
        parent: u32,
        handle: u32,
        attributes: RtBuffer<Tca, Buffer>,
    ) -> Result<Tcmsg> {
        Ok(TcmsgBuilder::default()
            .tcm_family(0)
            .tcm_ifindex(self.ifindex)
            .tcm_handle(handle)
            .tcm_parent(parent)
            .tcm_info(0)
            .rtattrs(attributes)
            .build()?)
    }

    fn link(&self, attributes: RtBuffer<Ifla, Buffer>) -> Result<Ifinfomsg> {
        Ok(IfinfomsgBuilder::default()
            .ifi_family(RtAddrFamily::Unspecified)
            .ifi_index(self.ifindex)
            .rtattrs(attributes)
            .build()?)
    }

    fn order<M>(&self, what: Rtm, flags: NlmF, message: M) -> Result<()>
    where
        M: neli::Size + neli::ToBytes + std::fmt::Debug + Send + Sync + 'static,
    {
        let replies = self.router.send::<_, _, Rtm, Buffer>(
            what,
            flags | NlmF::ACK,
            NlPayload::Payload(message),
        )?;
        for reply in replies {
            reply.map_err(plain)?;
        }
        Ok(())
    }
}

/// Adds 1 us to CoDel's times. The kernel keeps them in units of 1024 ns and dumps them in us, rounded
/// down, so each dump and restore would lose 1 us. With 1 us more, it arrives at the same units.
fn round_codel_times_up(kind: &str, options: &mut [u8]) {
    // TARGET, INTERVAL, CE_THRESHOLD of TCA_CODEL_* and TCA_FQ_CODEL_* (linux/pkt_sched.h).
    let times: &[u16] = match kind {
        "codel" => &[1, 3, 5],
        "fq_codel" => &[1, 3, 7],
        _ => return,
    };
    let mut at = 0;
    while let Some(&[l0, l1, t0, t1, ref value @ ..]) = options.get(at..) {
        let (length, kind) = (u16::from_ne_bytes([l0, l1]), u16::from_ne_bytes([t0, t1]));
        if times.contains(&kind) && length == 8 && value.len() >= 4 {
            let us = u32::from_ne_bytes([value[0], value[1], value[2], value[3]]);
            options[at + 4..at + 8].copy_from_slice(&us.saturating_add(1).to_ne_bytes());
        }
        at += usize::from(length.max(4)).next_multiple_of(4);
    }
}

/// The number of packets in TCA_STATS: struct tc_stats (linux/pkt_sched.h).
fn waiting(stats: &neli::rtnl::Rtattr<Tca, Buffer>) -> u32 {
    const QLEN: usize = 28;
    let field = stats.rta_payload().as_ref().get(QLEN..QLEN + 4);
    field.map_or(0, |bytes| {
        u32::from_ne_bytes(bytes.try_into().expect("4 bytes"))
    })
}

fn attribute(kind: Tca, payload: &[u8]) -> Result<neli::rtnl::Rtattr<Tca, Buffer>> {
    Ok(RtattrBuilder::default()
        .rta_type(kind)
        .rta_payload(Buffer::from(payload))
        .build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fq_codel_change() and fq_codel_dump() of sch_fq_codel.c.
    fn kernel(us: u32) -> u32 {
        (((u64::from(us) * 1000) >> 10 << 10) / 1000) as u32
    }

    #[test]
    fn codel_times_survive_the_kernels_rounding() {
        for us in [1, 124, 125, 126, 5000, 6999, 89_999, 100_000, 1_000_000] {
            let in_kernel = kernel(us);
            let attribute = |kind: u16, value: u32| {
                let head = [8u16.to_ne_bytes(), kind.to_ne_bytes()].concat();
                [head, value.to_ne_bytes().to_vec()].concat()
            };
            let mut options = [attribute(2, 888), attribute(3, in_kernel)].concat();
            round_codel_times_up("fq_codel", &mut options);
            assert_eq!(options[..8], attribute(2, 888));
            let back = u32::from_ne_bytes(options[12..].try_into().unwrap());
            assert_eq!(kernel(back), in_kernel, "{us} us");
        }
    }

    #[test]
    fn options_that_end_early_are_left_as_they_are() {
        for length in 0..8 {
            let mut options = vec![1; length];
            round_codel_times_up("codel", &mut options);
            assert_eq!(options, vec![1; length]);
        }
    }
}
