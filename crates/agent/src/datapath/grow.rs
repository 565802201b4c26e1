// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Gives qdiscs to transmit queues that a device has got since a daemon attached to it. Queues that a device loses keep
//! theirs, unused, until they are back.
use anyhow::{bail, Result};
use onramp_law::abi::onr_dev_cfg;
use tracing::warn;

use super::{
    device::longest_pause,
    edge::{self, Edge, NetDevice},
    free_numbers, kept, name_queues, Datapath, Holder, OnDevice,
};

/// Most qdiscs that are loaded at a time, which takes a second or two: meanwhile the daemon does not renew the lease.
const MOST_AT_A_TIME: usize = 16;

impl Datapath {
    /// Gives transmit queues of a device that have no qdisc of their own one each, up to a number at a time. Flow table,
    /// counters and tcx programs stay. Returns how many queues have one.
    ///
    /// # Errors
    /// There are too many, or the kernel refuses.
    pub fn grow(&mut self, device: &mut OnDevice, transmit_queues: usize) -> Result<u32> {
        let queues = edge::qdiscs(transmit_queues);
        if queues == 1 {
            bail!("{transmit_queues} transmit queues are more than On-Ramp has qdiscs for; restart the daemon: all get one qdisc");
        }
        let cfg = device.cfg;
        let cfg = match &mut device.holder {
            Some(Holder::Edge(edge)) => {
                let first = edge.grows_from();
                let most = first + MOST_AT_A_TIME;
                if first == 0 && queues as usize > most {
                    bail!("{queues} transmit queues share one qdisc and its lock; restart the daemon: each gets one");
                }
                let queues = queues.min(most as u32);
                let cfg = onr_dev_cfg { queues, ..cfg };
                self.shared.return_to(&device.counters)?;
                self.grow_edge(edge, &cfg)?
            }
            Some(Holder::Edt(edt)) => {
                edt.grow(queues)?;
                onr_dev_cfg { queues, ..cfg }
            }
            None => cfg,
        };
        device.configure(cfg)?;
        if let Some(pins) = &device.pins {
            let pinned = kept::pin_qdiscs(pins, device.holder.as_ref());
            pinned.unwrap_or_else(|error| warn!("{error:#}; the next daemon begins anew"));
        }
        Ok(cfg.queues)
    }

    /// The configuration has the wanted number of qdiscs. Returns it with the number of the first one.
    fn grow_edge(&mut self, edge: &mut Edge, cfg: &onr_dev_cfg) -> Result<onr_dev_cfg> {
        let first = edge.grows_from() as u32;
        let numbers = free_numbers(&self.numbers, cfg.queues - first)?;
        name_queues(&self.shared, &numbers, cfg.ifindex, first)?;
        let mut room = edge::room(numbers.len());
        let place = NetDevice::of(cfg.ifindex as i32)?;
        let loaded = edge::load(&mut room, place, &numbers, cfg, &mut self.shared)?;
        let before = edge.numbers().to_vec();
        edge.grow(loaded, &numbers, longest_pause(cfg))?;
        self.numbers.retain(|number| !before.contains(number));
        self.numbers.extend(edge.numbers());
        Ok(onr_dev_cfg {
            queue: edge.numbers()[0],
            ..*cfg
        })
    }
}
