// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads the flow table: for the trace what each flow has sent by now, and the newest of its samples; and single flows.
use anyhow::Result;
use bytemuck::{bytes_of, pod_read_unaligned};
use libbpf_rs::{MapCore, MapFlags};
use onramp_law::abi::{onr_addr, onr_ctl, onr_tuple};
use onramp_status::Ends;

use super::Datapath;

/// A segment with a sampled byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub mono_ns: i64,
    pub seq: u32,
    pub len_bytes: u32,
}

/// A flow as a look finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub ends: Ends,
    /// When its last segment left.
    pub last_mono_ns: i64,
    /// Payload, retransmissions included.
    pub sent_bytes: u64,
    /// The byte after the highest sent.
    pub next_seq: u32,
    /// The newest sampled segments, oldest first.
    pub sent: Vec<Sent>,
    /// The newest OR-ACK: when its segment left, and its one-way delay.
    pub sample: Option<(i64, i64)>,
    /// Until when it is held, or would be.
    pub held_until_mono_ns: i64,
}

impl Datapath {
    /// Up to `most` flows, beginning with the entry after `from`, and where the next look begins; and the number of all.
    pub fn look(&self, from: u32, most: usize) -> Result<(Vec<Seen>, u32, usize)> {
        let ctls = self.shared.get("ctls")?;
        let ids = self.shared.get("flow_ids")?;
        // In one batch, as the peers.
        let ids = ids.lookup_batch(self.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        let id = |(_, id): (Vec<u8>, Vec<u8>)| pod_read_unaligned::<u32>(&id);
        let mut ids: Vec<u32> = ids.map(id).collect();
        ids.sort_unstable();
        let all = ids.len();
        let first = ids.partition_point(|id| *id < from);
        ids.rotate_left(first);
        let next = ids.get(most).copied().unwrap_or(from);
        let mut flows = vec![];
        for id in ids.into_iter().take(most) {
            if let Some(ctl) = ctls.lookup(&id.to_ne_bytes(), MapFlags::ANY)? {
                flows.push(seen(&pod_read_unaligned(&ctl)));
            }
        }
        Ok((flows, next, all))
    }

    /// The entry of a flow, if it is in the table.
    pub fn flow(&self, ends: Ends) -> Result<Option<onr_ctl>> {
        let key = tuple(ends);
        let ids = self.shared.get("flow_ids")?;
        let Some(id) = ids.lookup(bytes_of(&key), MapFlags::ANY)? else {
            return Ok(None);
        };
        let ctl = self.shared.get("ctls")?.lookup(&id, MapFlags::ANY)?;
        let ctl = ctl.map(|ctl| pod_read_unaligned::<onr_ctl>(&ctl));
        // Another flow may have got the entry meanwhile.
        Ok(ctl.filter(|ctl| self::ends(&ctl.key) == ends))
    }

    /// All flows of the table, by name.
    pub fn names(&self) -> Result<Vec<Ends>> {
        let ids = self.shared.get("flow_ids")?;
        // In one batch, as the peers.
        let all = ids.lookup_batch(self.max_flows, MapFlags::ANY, MapFlags::ANY)?;
        Ok(all
            .map(|(key, _)| ends(&pod_read_unaligned(&key)))
            .collect())
    }
}

/// The daemon reads without the lock of the flow, so an entry may change under it: the trace takes no index from it.
fn seen(ctl: &onr_ctl) -> Seen {
    let records = &ctl.records;
    let ring = records.ring.len() as u32;
    let oldest_first = (1..=records.count.min(ring)).rev().map(|age| {
        let record = records.ring[(records.next.wrapping_sub(age) % ring) as usize];
        Sent {
            mono_ns: record.sent_mono_ns,
            seq: record.seq,
            len_bytes: record.len,
        }
    });
    let law = &ctl.law;
    Seen {
        ends: ends(&ctl.key),
        last_mono_ns: ctl.last_ns,
        sent_bytes: law.sent_bytes,
        next_seq: records.snd_nxt,
        sent: oldest_first.filter(|sent| sent.len_bytes > 0).collect(),
        sample: (law.sampled != 0).then_some((law.sample_sent_mono_ns, law.sample_owd_ns)),
        held_until_mono_ns: ctl.held_until_ns,
    }
}

fn tuple(ends: Ends) -> onr_tuple {
    onr_tuple {
        saddr: onr_addr::of(ends.from.ip()),
        daddr: onr_addr::of(ends.to.ip()),
        sport: ends.from.port().to_be(),
        dport: ends.to.port().to_be(),
    }
}

fn ends(key: &onr_tuple) -> Ends {
    Ends {
        from: (key.saddr.ip(), u16::from_be(key.sport)).into(),
        to: (key.daddr.ip(), u16::from_be(key.dport)).into(),
    }
}
