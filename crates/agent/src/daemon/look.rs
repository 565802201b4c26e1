// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a daemon does once a second: it looks at its devices, at the members of the fleet and at the peers.
use std::{collections::BTreeSet, net::IpAddr};

use anyhow::Result;
use onramp_clock::{stamps::now_mono_ns, status::OneWayDelays};
use onramp_law::abi::{onr_peer, ONR_ORACK_PORT};
use onramp_law::Law;
use onramp_units::Span;
use tracing::warn;

use super::{min_owd_ns, Daemon};
use crate::config::Threshold;
use crate::peers::Change;
use crate::threshold::{thresholds, Margin};

/// A peer that was not heard for this time is forgotten.
const FORGOTTEN_NS: i64 = 60_000_000_000;
/// Time between two checks whether peers answer.
const CHECK_NS: i64 = 5_000_000_000;
/// Samples without an answer between two checks that make a peer suspect. Of fewer, each may have been the last
/// of its flow, and have waited for an ACK that came late.
const UNANSWERED: usize = 8;
/// Most silent peers, and most of those beyond the threshold, that the log names; the status lists all.
const MOST_NAMED: usize = 16;

/// Time between two requests to the kernel for the longest segments of devices.
const BURST_NS: i64 = 10_000_000_000;

/// What the longest segment takes on its device's line. The kernel's answer, about all of a device, takes as long as many
/// packets, and changes only when an operator changes the device.
#[derive(Default)]
pub(super) struct Burst {
    span: Span,
    /// The devices that were asked about, and when to ask again.
    devices: String,
    due_mono_ns: i64,
}

impl Daemon {
    /// What is done once a second.
    pub(super) fn look(&mut self) -> Result<()> {
        self.follow();
        self.watch();
        self.pace();
        let (members, peers) = (self.keep_members(), self.keep_peers());
        let checked = self.check_silence().and(self.check_refusals());
        let compared = self.compare_clock();
        let outcome = members.and(peers).and(checked).and(compared);
        self.peer_trouble.note(outcome);
        Ok(())
    }

    /// Compares the bound of a clock that another program keeps right with the delays.
    fn compare_clock(&mut self) -> Result<()> {
        if let Some(trust) = self.clock.trust_mut() {
            trust.compare(&self.datapath.peers()?, now_mono_ns());
        }
        Ok(())
    }

    /// Makes the members of the fleet peers.
    fn keep_members(&mut self) -> Result<()> {
        let Some(part) = self.clock.part() else {
            return Ok(());
        };
        let change = self.peers.change_members(part.members());
        self.apply(change)
    }

    /// Gives the data path other peers.
    pub(super) fn apply(&self, change: Change) -> Result<()> {
        for peer in change.new {
            self.datapath.add_peer(peer)?;
        }
        for peer in change.gone {
            self.datapath.remove_peer(peer)?;
        }
        Ok(())
    }

    /// Logs and keeps which peers get data and do not answer. Without a lease nobody's OR-ACKs are used.
    fn check_silence(&mut self) -> Result<()> {
        let now = now_mono_ns();
        let since = self.checked_mono_ns;
        if now - since < CHECK_NS || self.params.lease_expires_mono_ns <= now {
            return Ok(());
        }
        self.checked_mono_ns = now;
        let peers = self.datapath.peers()?.into_iter();
        let heard = peers.filter(|(_, peer)| peer.heard_mono_ns >= since);
        let heard: BTreeSet<IpAddr> = heard.map(|(addr, _)| addr).collect();
        let wanted = |addr| !heard.contains(&addr) && self.peers.contains(addr);
        let sampled = self.datapath.samples_since(since, wanted)?.into_iter();
        let unanswered = sampled.filter(|(_, samples)| *samples >= UNANSWERED);
        let unanswered = unanswered.map(|(addr, _)| addr).collect();
        let named = self.health.silent_peers.len();
        let new = self.silence.check(&heard, unanswered);
        for peer in new.iter().take(MOST_NAMED.saturating_sub(named)) {
            warn!(
                "{peer} gets data and sends no usable OR-ACK, so flows to it are not held: does On-Ramp run \
                 there with the same keys and clock, and does the network pass UDP {ONR_ORACK_PORT}?"
            );
        }
        self.health.silent_peers = self.silence.peers();
        Ok(())
    }

    /// Logs and keeps which hosts have refused OR-ACKs in the last minute.
    fn check_refusals(&mut self) -> Result<()> {
        let refusing = self.datapath.refusing(now_mono_ns() - FORGOTTEN_NS)?;
        for peer in new_of(&refusing, &self.health.refusing_peers) {
            warn!(
                "{peer} refuses OR-ACKs (port unreachable), so On-Ramp does not run there; it is sent one a second"
            );
        }
        self.health.refusing_peers = refusing;
        Ok(())
    }

    /// Forgets silent peers. With `--threshold auto`, sets the thresholds of the others.
    fn keep_peers(&mut self) -> Result<()> {
        let now = now_mono_ns();
        let is_heard = |(_, peer): &(_, onr_peer)| now - peer.heard_mono_ns < FORGOTTEN_NS;
        let (heard, silent): (Vec<_>, Vec<_>) =
            self.datapath.peers()?.into_iter().partition(is_heard);
        for (peer, _) in silent {
            self.datapath.forget_peer(peer)?;
        }
        self.check_delays(now, &heard);
        match self.config.law.threshold {
            Threshold::Fixed(_) if self.config.law.name == Law::Off => Ok(()),
            Threshold::Fixed(t) => {
                self.check_threshold(t.as_ns(), &heard);
                Ok(())
            }
            Threshold::Auto => self.set_thresholds(&heard),
        }
    }

    /// Logs and keeps the peers to which a delay was below zero in the last minute, by more than the error of the clocks.
    fn check_delays(&mut self, now: i64, heard: &[(IpAddr, onr_peer)]) {
        let is_below = |(_, peer): &&(_, onr_peer)| {
            peer.below_zero_mono_ns > 0 && now - peer.below_zero_mono_ns < FORGOTTEN_NS
        };
        let below: Vec<IpAddr> = heard
            .iter()
            .filter(is_below)
            .map(|(addr, _)| *addr)
            .collect();
        for peer in new_of(&below, &self.health.peers_below_zero) {
            warn!(
                "delays to {peer} are below zero by more than the error of the clocks: its clock or this host's is wrong by \
                 more than it says (onramp clock status)"
            );
        }
        self.health.peers_below_zero = below;
    }

    /// Logs and keeps the peers whose minimum delay is above T: holding cannot bring the delay down to T. Without
    /// a law T means nothing.
    fn check_threshold(&mut self, t_ns: i64, heard: &[(IpAddr, onr_peer)]) {
        let is_beyond = |(_, peer): &&(_, onr_peer)| min_owd_ns(peer).is_some_and(|min| min > t_ns);
        let beyond: Vec<IpAddr> = heard
            .iter()
            .filter(is_beyond)
            .map(|(addr, _)| *addr)
            .collect();
        for peer in new_of(&beyond, &self.health.peers_beyond_threshold) {
            warn!(
                "the delay of the path to {peer} is above --threshold, so its flows are held in vain; use \
                 --threshold auto, or a larger one"
            );
        }
        self.health.peers_beyond_threshold = beyond;
    }

    /// Writes changed thresholds into the data path. Those that do not fit are counted: flows to these peers
    /// are not held.
    fn set_thresholds(&mut self, heard: &[(IpAddr, onr_peer)]) -> Result<()> {
        let way = |way: OneWayDelays| (way.to.ip(), way.min_ns);
        let probed = self.clock.part().map_or(vec![], |part| part.delays());
        let probed: Vec<_> = probed.into_iter().map(way).collect();
        let acked = |(addr, peer): &(_, onr_peer)| Some((*addr, min_owd_ns(peer)?));
        let acked: Vec<_> = heard.iter().filter_map(acked).collect();
        let margin = Margin {
            headroom_ns: self.config.law.headroom.as_ns(),
            clock_error_ns: self.clock.delay_error_ns(self.params.sigma_ns),
            burst_ns: self.burst().as_ns(),
        };
        let wanted = thresholds(&probed, &acked, margin);
        let is_gone = |peer: &&IpAddr| !wanted.contains_key(*peer);
        let gone: Vec<IpAddr> = self.thresholds.keys().filter(is_gone).copied().collect();
        for peer in gone {
            self.datapath.remove_threshold(peer)?;
            self.thresholds.remove(&peer);
        }
        self.health.peers_without_threshold = 0;
        let mut outcome = Ok(());
        for (peer, reasons) in wanted {
            let t_ns = reasons.threshold_ns;
            let is = self.thresholds.get(&peer).map(|is| is.threshold_ns);
            if is != Some(t_ns) {
                if let Err(error) = self.datapath.set_threshold(peer, t_ns as u32) {
                    let what = format!("cannot set the threshold of {peer}");
                    outcome = Err(error.context(what));
                    self.health.peers_without_threshold += 1;
                    continue;
                }
            }
            self.thresholds.insert(peer, reasons);
        }
        outcome
    }
}

impl Daemon {
    /// What the longest segment takes, as it was at most `BURST_NS` ago.
    fn burst(&mut self) -> Span {
        let (now, devices) = (now_mono_ns(), self.names());
        if now >= self.burst.due_mono_ns || devices != self.burst.devices {
            self.burst = Burst {
                span: self.config.burst(self.links()),
                devices,
                due_mono_ns: now + BURST_NS,
            };
        }
        self.burst.span
    }
}

/// The peers that are not known yet, of which the log names the first ones.
fn new_of<'a>(peers: &'a [IpAddr], known: &'a [IpAddr]) -> impl Iterator<Item = &'a IpAddr> {
    let room = MOST_NAMED.saturating_sub(known.len());
    let is_new = |peer: &&IpAddr| !known.contains(peer);
    peers.iter().filter(is_new).take(room)
}
