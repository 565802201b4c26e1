// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The path `edt`: fq behind our program at egress, which names a time of departure in each held segment. Uses the
//! fq that a device has, or makes fq the root qdisc, and restores what was there before. If the process is killed,
//! fq stays and sends packets as they come, once those that were held have left.
use std::path::PathBuf;

use anyhow::{Context, Result};
use onramp_law::abi::onr_dev_cfg;
use onramp_status::RootQdisc;

use super::{before::Before, edge::NetDevice, found::Leaf, qdisc::Device};

/// The qdisc that the path needs.
const FQ: &str = "fq";
/// What an operator does if the kernel has no fq.
const NO_FQ: &str = "--path edt needs the fq qdisc: modprobe sch_fq (onramp doctor says whether this kernel has it), or \
                     use a kernel >= 6.16 and --path edge";

// linux/pkt_sched.h
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_RATE_ENABLE: u16 = 5;

/// fq on its device, and what was there before.
pub struct Edt {
    device: Device,
    before: Before,
    /// Bounds of its qdiscs.
    options: Vec<u8>,
    /// File that keeps `before` for the next daemon, if this one is killed.
    before_file: PathBuf,
    /// The largest GSO segment of the device as this daemon left it.
    gso_limit_bytes: u32,
    /// The device has its own fq: it stays.
    found_fq: bool,
    /// The kinds of its qdiscs: of the device, or of each transmit queue.
    kinds: Vec<String>,
}

impl Edt {
    /// Makes sure that the device has fq. With several transmit queues, each gets one, under mq. `keeps`: the fq of a
    /// former daemon stays, if it is still there.
    pub fn install(place: NetDevice, cfg: &onr_dev_cfg, keeps: bool) -> Result<Self> {
        let device = Device::open(place.ifindex)?;
        let found_fq = device.has_its_own(FQ)?;
        let before_file = place.before_file();
        let before = match found_fq {
            true => Before::keeping(&device, &before_file)?,
            false => Before::of(&device, &before_file)?,
        };
        before.save(&before_file)?;
        let kinds = vec![FQ.to_owned(); cfg.queues as usize];
        let stays = keeps && device.owner(&kinds)? == RootQdisc::Own;
        if !found_fq && !stays {
            if device.found()?.is_none() {
                device.delete()?; // of a daemon that was killed
            }
            let installed = device.install_own(&vec![fq(options(cfg)); cfg.queues as usize]);
            if installed.is_err() {
                before.restore(&device, &kinds, device.gso_max_size()?)?; // half of it may be there
            }
            installed.context(NO_FQ)?;
        }
        Ok(Self {
            kinds,
            options: options(cfg),
            gso_limit_bytes: device.gso_max_size()?,
            device,
            before,
            before_file,
            found_fq,
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

    /// Who has the root qdisc of the device now: `Own` while it is an fq that obeys us.
    pub fn owner(&self) -> Result<RootQdisc> {
        match self.found_fq {
            true if self.device.has_its_own(FQ)? => Ok(RootQdisc::Own),
            true => Ok(match self.device.owner(&self.kinds)? {
                RootQdisc::Own => RootQdisc::Default,
                other => other,
            }),
            false => self.device.owner(&self.kinds),
        }
    }

    /// The number of its qdiscs: 1, or one for each transmit queue.
    pub fn qdiscs(&self) -> usize {
        self.kinds.len()
    }

    /// Is each transmit queue to have an fq of its own, which this daemon installs?
    pub fn may_grow(&self) -> bool {
        !self.found_fq && self.kinds.len() > 1
    }

    /// Gives fq to the transmit queues that have none, up to this number of queues.
    pub fn grow(&mut self, queues: u32) -> Result<()> {
        for queue in self.kinds.len() as u32..queues {
            let leaf = fq(self.options.clone());
            self.device.install_own_leaf(queue, &leaf).context(NO_FQ)?;
            self.kinds.push(FQ.to_owned());
        }
        Ok(())
    }

    /// Restores the former qdisc and GSO limit, except what another program has changed. Returns who had the
    /// root qdisc.
    pub fn remove(self) -> Result<RootQdisc> {
        let owner = self.owner()?;
        if self.found_fq {
            self.before
                .restore_gso(&self.device, self.gso_limit_bytes)?;
        } else {
            self.before
                .restore(&self.device, &self.kinds, self.gso_limit_bytes)?;
        }
        self.forget();
        Ok(owner)
    }

    /// The device has gone, and its qdiscs with it.
    pub fn forget(self) {
        let _ = std::fs::remove_file(&self.before_file);
    }
}

fn fq(options: Vec<u8>) -> Leaf {
    Leaf {
        kind: FQ.to_owned(),
        options,
    }
}

/// Bounds of fq as those of edge, and TCP's pace only if it is wanted.
fn options(cfg: &onr_dev_cfg) -> Vec<u8> {
    let attribute = |kind: u16, value: u32| {
        let head = [8u16.to_ne_bytes(), kind.to_ne_bytes()].concat();
        [head, value.to_ne_bytes().to_vec()].concat()
    };
    [
        attribute(TCA_FQ_PLIMIT, cfg.limit_packets),
        attribute(TCA_FQ_FLOW_PLIMIT, cfg.flow_limit_packets),
        attribute(TCA_FQ_RATE_ENABLE, cfg.paced.into()),
    ]
    .concat()
}
