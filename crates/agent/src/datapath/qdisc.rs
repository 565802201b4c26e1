//! The root qdisc and the largest GSO segment of a device, by rtnetlink: reads, replaces and restores them.
//! Restores only what a dump describes completely: a classless qdisc, or the kernel's default. Restores
//! nothing that another program has changed since.
use std::path::Path;

use anyhow::{bail, Context, Result};
use neli::{
    consts::{
        nl::NlmF,
        rtnl::{Ifla, RtAddrFamily, Rtm, Tca},
        socket::NlFamily,
    },
    nl::NlPayload,
    router::synchronous::NlRouter,
    rtnl::{Ifinfomsg, IfinfomsgBuilder, RtattrBuilder, Tcmsg, TcmsgBuilder},
    types::{Buffer, RtBuffer},
    utils::Groups,
};
use onramp_status::RootQdisc;
use serde::{Deserialize, Serialize};

/// TC_H_ROOT: the parent of a root qdisc.
const ROOT: u32 = 0xffff_ffff;
/// TC_H_INGRESS: the parent of `ingress` and `clsact`, which stay as they are.
const INGRESS: u32 = 0xffff_fff1;
/// Handle of a qdisc of the kernel that On-Ramp has installed; by it the next daemon recognises it.
const OWN_HANDLE: u32 = 0x0e57_0000;
/// Qdiscs that only lead to others.
const BRANCHES: &[&str] = &["mq"];
/// Start of the ids of On-Ramp qdiscs.
pub const PREFIX: &str = "onr_";
/// Classless qdiscs that the kernel accepts with the options that it dumped.
const REPLAYABLE: &[&str] = &["fq", "fq_codel", "codel", "pfifo", "bfifo", "sfq", "cake"];

/// IFLA_TSO_MAX_SIZE (linux/if_link.h): the largest segment that the hardware takes.
const TSO_MAX_SIZE: Ifla = Ifla::UnrecognizedConst(59);
/// IFLA_GSO_IPV4_MAX_SIZE (linux/if_link.h).
const GSO_IPV4_MAX_SIZE: Ifla = Ifla::UnrecognizedConst(63);
/// GSO_LEGACY_MAX_SIZE (linux/netdevice.h).
const GSO_DEFAULT_BYTES: u32 = 65_536;

/// A root qdisc that can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The kernel's default: the kernel restores it when the On-Ramp qdisc is deleted.
    Default,
    /// A configured qdisc: its kind and raw TCA_OPTIONS.
    Configured { kind: String, options: Vec<u8> },
}

impl Found {
    /// The kind of qdisc.
    pub fn kind(&self) -> String {
        match self {
            Found::Default => default_kind(),
            Found::Configured { kind, .. } => kind.clone(),
        }
    }
}

/// The state of a device before a daemon attached. It is in a file while the daemon is attached, so that
/// the next daemon can restore it if this one is killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub qdisc: Found,
    pub gso_max_bytes: u32,
    /// The same for IPv4, which differs where the other is above 64 kB (BIG TCP).
    pub gso_ipv4_max_bytes: u32,
}

impl Before {
    /// Of a device whose qdiscs stay as they are, whatever they are.
    pub fn keeping(device: &Device) -> Result<Self> {
        Ok(Self {
            qdisc: Found::Default,
            gso_max_bytes: device.gso_max_size()?,
            gso_ipv4_max_bytes: device.gso_ipv4_max_size()?,
        })
    }

    /// Reads `device`, or `file` where the device still has the qdisc of a daemon that was killed.
    /// Without that file, what the kernel gives a device that nobody has configured.
    pub fn of(device: &Device, file: &Path) -> Result<Self> {
        if let Some(qdisc) = device.root()? {
            return Ok(Self {
                qdisc,
                gso_max_bytes: device.gso_max_size()?,
                gso_ipv4_max_bytes: device.gso_ipv4_max_size()?,
            });
        }
        let saved = std::fs::read(file).ok();
        match saved.and_then(|json| serde_json::from_slice(&json).ok()) {
            Some(before) => Ok(before),
            None => Ok(Self {
                qdisc: Found::Default,
                gso_max_bytes: device.gso_default_size()?,
                gso_ipv4_max_bytes: device.gso_default_size()?,
            }),
        }
    }

    /// Writes `file`, which may be in a directory that does not exist yet.
    pub fn save(&self, file: &Path) -> Result<()> {
        file.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(file, serde_json::to_vec(self)?))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Restores what is still as On-Ramp left it: a GSO limit of `gso_limit_bytes`, and a root qdisc that is
    /// `id` or was removed. Returns the owner of the root qdisc that it found.
    pub fn restore(&self, device: &Device, id: &str, gso_limit_bytes: u32) -> Result<RootQdisc> {
        self.restore_gso(device, gso_limit_bytes)?;
        let owner = device.owner(id)?;
        if owner == RootQdisc::Own {
            device.delete()?;
        }
        match (&owner, &self.qdisc) {
            (RootQdisc::Foreign(_), _) | (_, Found::Default) => {}
            (_, Found::Configured { kind, options }) => device.install(kind, options)?,
        }
        Ok(owner)
    }

    /// Restores the GSO limit, if it is still `gso_limit_bytes`.
    pub fn restore_gso(&self, device: &Device, gso_limit_bytes: u32) -> Result<()> {
        if device.gso_max_size()? == gso_limit_bytes && gso_limit_bytes != self.gso_max_bytes {
            device.set_gso_max_size(self.gso_max_bytes)?;
            if device.gso_ipv4_max_size()? != self.gso_ipv4_max_bytes {
                device.set_gso_ipv4_max_size(self.gso_ipv4_max_bytes)?;
            }
        }
        Ok(())
    }
}

/// The qdisc that the kernel gives a device that nobody has configured (net.core.default_qdisc); empty in a
/// network namespace other than the first, where it cannot be read.
fn default_kind() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/core/default_qdisc");
    text.unwrap_or_default().trim().to_owned()
}

/// A qdisc of the device, as a dump describes it.
struct Dumped {
    kind: String,
    handle: u32,
    parent: u32,
    options: Vec<u8>,
}

impl Dumped {
    /// Has On-Ramp installed it?
    fn is_own(&self) -> bool {
        self.kind.starts_with(PREFIX) || self.handle == OWN_HANDLE
    }

    /// Has the kernel created it, with its children?
    fn is_by_kernel(&self) -> bool {
        self.handle >> 16 == 0 && !self.kind.starts_with(PREFIX)
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

    /// The root qdisc, none if it is an On-Ramp qdisc; an error if it could not be put back.
    pub fn root(&self) -> Result<Option<Found>> {
        let mut found = Some(Found::Default);
        let all = self.dump()?;
        let root_is_own = all
            .iter()
            .any(|qdisc| qdisc.parent == ROOT && qdisc.is_own());
        for dumped in all {
            let is_own = root_is_own || dumped.is_own();
            let Dumped {
                kind,
                parent,
                mut options,
                ..
            } = dumped;
            if is_own {
                found = None;
            } else if parent != ROOT || !REPLAYABLE.contains(&kind.as_str()) {
                bail!(
                    "it has a {kind} qdisc, which On-Ramp could not restore when it stops; \
                     remove it first: tc qdisc del dev DEV root"
                );
            } else {
                round_codel_times_up(&kind, &mut options);
                found = Some(Found::Configured { kind, options });
            }
        }
        Ok(found)
    }

    /// Do all packets of the device leave through qdiscs of this kind that On-Ramp has not installed?
    pub fn has_its_own(&self, kind: &str) -> Result<bool> {
        let all = self.dump_all()?;
        let mut leaves = all
            .iter()
            .filter(|qdisc| !BRANCHES.contains(&qdisc.kind.as_str()))
            .peekable();
        let has_leaves = leaves.peek().is_some();
        Ok(has_leaves && leaves.all(|leaf| leaf.kind == kind) && !all.iter().any(Dumped::is_own))
    }

    /// Who has the root qdisc now, if `id`, or one that `install_own` has installed, is the daemon's own.
    pub fn owner(&self, id: &str) -> Result<RootQdisc> {
        let root = self.dump()?.into_iter().find(|qdisc| qdisc.parent == ROOT);
        Ok(match root {
            None => RootQdisc::Default,
            Some(root) if root.kind == id || root.handle == OWN_HANDLE => RootQdisc::Own,
            Some(root) => RootQdisc::Foreign(root.kind),
        })
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
            let reply = reply.context("netlink: reading qdiscs")?;
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
            all.push(Dumped {
                kind,
                handle: *qdisc.tcm_handle(),
                parent: *qdisc.tcm_parent(),
                options: options
                    .map(|a| a.rta_payload().as_ref().to_vec())
                    .unwrap_or_default(),
            });
        }
        Ok(all)
    }

    /// Makes `kind` the root qdisc, with raw options.
    pub fn install(&self, kind: &str, options: &[u8]) -> Result<()> {
        self.install_as(ROOT, 0, kind, options)
            .with_context(|| format!("cannot make {kind} the root qdisc"))
    }

    /// The same for all transmit queues of the device, so that the next daemon recognises it as On-Ramp's.
    pub fn install_own(&self, kind: &str, options: &[u8], queues: u32) -> Result<()> {
        if queues <= 1 {
            return self
                .install_as(ROOT, OWN_HANDLE, kind, options)
                .with_context(|| format!("cannot make {kind} the root qdisc"));
        }
        self.install_as(ROOT, OWN_HANDLE, "mq", &[])
            .context("cannot make mq the root qdisc")?;
        for queue in 1..=queues {
            self.install_as(OWN_HANDLE | queue, 0, kind, options)
                .with_context(|| format!("cannot give transmit queue {queue} a {kind} qdisc"))?;
        }
        Ok(())
    }

    fn install_as(&self, parent: u32, handle: u32, kind: &str, options: &[u8]) -> Result<()> {
        let mut attributes = RtBuffer::new();
        attributes.push(attribute(Tca::Kind, format!("{kind}\0").as_bytes())?);
        if !options.is_empty() {
            attributes.push(attribute(Tca::Options, options)?);
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
        let query = self.link(RtBuffer::new())?;
        let replies = self
            .router
            .send::<_, _, Rtm, Ifinfomsg>(Rtm::Getlink, NlmF::empty(), NlPayload::Payload(query))
            .context("netlink: requesting the device")?;
        for reply in replies {
            if let Some(link) = reply.context("netlink: reading the device")?.get_payload() {
                let attributes = link.rtattrs().get_attr_handle();
                let found = attributes.get_attribute(attribute).is_some();
                return Ok(match found {
                    true => Some(attributes.get_attr_payload_as(attribute)?),
                    false => None,
                });
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
            reply?;
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
            let told = kernel(us);
            let attribute = |kind: u16, value: u32| {
                let head = [8u16.to_ne_bytes(), kind.to_ne_bytes()].concat();
                [head, value.to_ne_bytes().to_vec()].concat()
            };
            let mut options = [attribute(2, 888), attribute(3, told)].concat();
            round_codel_times_up("fq_codel", &mut options);
            assert_eq!(options[..8], attribute(2, 888));
            let back = u32::from_ne_bytes(options[12..].try_into().unwrap());
            assert_eq!(kernel(back), told, "{us} us");
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
