// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a device had before a daemon attached, and how it gets it back. Restores nothing that another program
//! has changed since.
use std::path::Path;

use anyhow::{Context, Result};
use onramp_status::RootQdisc;
use serde::{Deserialize, Serialize};

use super::found::{Found, Leaf};
use super::qdisc::Device;

/// The state of a device before a daemon attached. It is in a file while the daemon is attached, so that
/// the next daemon can restore it if this one is killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub qdisc: Found,
    pub gso_max_bytes: u32,
    /// The same for IPv4, which differs where the other is above 64 kB (BIG TCP).
    pub gso_ipv4_max_bytes: u32,
    /// The kind that the kernel has given the device, or its first transmit queue, where nobody has configured it.
    #[serde(default)]
    pub by_kernel: Option<String>,
}

impl Before {
    /// The qdisc of the first transmit queue, of which the others are taken to be, too.
    pub fn first(&self) -> Leaf {
        match (&self.qdisc, &self.by_kernel) {
            (Found::Default, Some(kind)) => Leaf::plain(kind),
            (found, _) => found.of_queue(0),
        }
    }

    /// Reads a device whose qdiscs stay as they are, whatever they are; or `file`, which a daemon that was killed left.
    pub fn keeping(device: &Device, file: &Path) -> Result<Self> {
        if let Some(before) = Self::saved(file) {
            return Ok(before);
        }
        Ok(Self {
            qdisc: Found::Default,
            gso_max_bytes: device.gso_max_size()?,
            gso_ipv4_max_bytes: device.gso_ipv4_max_size()?,
            by_kernel: device.kind_by_kernel()?,
        })
    }

    /// Reads `device`, or `file` where the device still has the qdisc of a daemon that was killed.
    /// Without that file, what the kernel gives a device that nobody has configured.
    pub fn of(device: &Device, file: &Path) -> Result<Self> {
        if let Some(qdisc) = device.found()? {
            return Ok(Self {
                qdisc,
                gso_max_bytes: device.gso_max_size()?,
                gso_ipv4_max_bytes: device.gso_ipv4_max_size()?,
                by_kernel: device.kind_by_kernel()?,
            });
        }
        match Self::saved(file) {
            Some(before) => Ok(before),
            None => Ok(Self {
                qdisc: Found::Default,
                gso_max_bytes: device.gso_default_size()?,
                gso_ipv4_max_bytes: device.gso_default_size()?,
                by_kernel: None,
            }),
        }
    }

    /// What a daemon that was killed had found.
    pub fn saved(file: &Path) -> Option<Self> {
        let json = std::fs::read(file).ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Writes `file`, which may be in a directory that does not exist yet.
    pub fn save(&self, file: &Path) -> Result<()> {
        file.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(file, serde_json::to_vec(self)?))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Restores what is still as On-Ramp left it: a GSO limit of `gso_limit_bytes`, and qdiscs that are of these
    /// kinds or were removed. Returns the owner of the device that it found.
    pub fn restore(
        &self,
        device: &Device,
        names: &[String],
        gso_limit_bytes: u32,
    ) -> Result<RootQdisc> {
        self.restore_gso(device, gso_limit_bytes)?;
        let owner = device.owner(names)?;
        let left = device.queues_with(names)?;
        match owner {
            RootQdisc::Own => device.delete()?,
            // Another program has the qdiscs of other transmit queues, so the root must stay.
            _ => {
                for queue in &left {
                    device.install_own_leaf(*queue, &self.qdisc.of_queue(*queue))?;
                }
            }
        }
        if left.is_empty() || owner == RootQdisc::Own {
            self.restore_root(device, &owner)?;
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

    fn restore_root(&self, device: &Device, owner: &RootQdisc) -> Result<()> {
        match (owner, &self.qdisc) {
            (RootQdisc::Foreign(_), _) | (_, Found::Default) => Ok(()),
            (_, Found::Configured(leaf)) => device.install(leaf),
            (_, Found::PerQueue { handle, leaves }) => device.install_mq(*handle, leaves),
        }
    }
}
