// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Changes of the fleet: how a host's thread takes up other members, another leader and another term.

use std::{collections::BTreeMap, net::SocketAddr};

use tracing::{info, warn};

use super::{central::Central, Engine, Probed, GATHER_NS};
use crate::{
    machine::Machine,
    members::Members,
    roster::Roster,
    wire::{Body, VERSION},
};

/// A member waits this long before it reports to a new leader, which may learn later that it leads,
const HEARD_NS: i64 = 200_000_000;
/// and the leader waits this long for reports before its first central step.
const TAKEOVER_NS: i64 = HEARD_NS + GATHER_NS;
/// Most hosts of another protocol in the status.
const MOST_NAMED: usize = 16;

impl Engine {
    /// Takes up a change of the members or the leader.
    pub(super) fn adopt(&mut self, roster: Roster, now: i64) {
        if roster.members != self.roster.members {
            self.meet(&roster.members);
        }
        let leads = roster.leader == Some(self.config.own);
        match &mut self.central {
            Some(central) if leads => central.renumber(roster.members.clone()),
            none if leads => {
                let members = roster.members.clone();
                *none = Some(Central::new(members, self.steps, self.config.lease, now));
                self.step_mono_ns = Some(now + TAKEOVER_NS);
            }
            some => {
                *some = None;
                self.published.contradictory.clear();
            }
        }
        if (roster.leader, roster.term) != (self.roster.leader, self.roster.term) {
            if let Some(leader) = roster.leader {
                info!("clock: the leader is {leader} (term {})", roster.term);
            }
            // The last leader may have died with this host's report.
            self.tell_mono_ns = Some(now + HEARD_NS);
        }
        self.roster = roster;
        self.publish(now);
    }

    /// Keeps the edges and members that stay, and starts with the new ones.
    fn meet(&mut self, members: &Members) {
        let own = members.number(self.config.own);
        let links = members.mesh(self.config.degree);
        let far = links
            .iter()
            .filter(|link| Some(link.near) == own)
            .map(|link| members.all()[link.far]);
        let mut before: BTreeMap<SocketAddr, Probed> = std::mem::take(&mut self.probed)
            .into_iter()
            .map(|edge| (edge.far, edge))
            .collect();
        let probed = |far: SocketAddr| before.remove(&far).unwrap_or(Probed::to(far));
        self.probed = far.map(probed).collect();
        // Stamps still to come name edges by their former indices.
        self.sent.clear();
        self.members
            .retain(|member, _| members.number(*member).is_some());
        for member in members.all() {
            self.members.entry(*member).or_default();
        }
        self.acks.retain(|to| members.number(*to).is_some());
        self.checks
            .retain(|host, _| members.number(*host).is_some());
        self.last_edges
            .retain(|edge| members.number(edge.far).is_some());
    }

    /// Sends a notice to a host of an older term, as an answer to its message.
    pub(super) fn correct(&mut self, machine: &mut dyn Machine) {
        if let Some((to, answers)) = self.outdated.take() {
            let seq = self.next_seq();
            let datagram = self.encode(to, seq, Body::Notice { answers });
            self.send(machine, &datagram, to);
        }
    }

    /// A host of a newer term was heard while the registry does not answer: the leader may have been
    /// replaced, and there may be another fleet time.
    pub(super) fn step_down(&mut self, term: u64, now: i64) {
        if self.roster.certain || term <= self.roster.term || self.roster.leader.is_none() {
            return;
        }
        warn!("clock: another host was elected leader: no fleet time until etcd answers");
        self.published.counters.deposed += 1;
        self.roster.leader = None;
        self.central = None;
        self.published.contradictory.clear();
        self.published.course = None;
        self.publish(now);
    }

    /// Counts a message of another version, and logs each such host once.
    pub(super) fn speaks_otherwise(&mut self, from: SocketAddr, version: u8) {
        self.published.counters.other_versions += 1;
        let named = &mut self.published.other_versions;
        if named.len() < MOST_NAMED && named.insert(from, version).is_none() {
            warn!("clock: {from} uses version {version} of the protocol, this host uses {VERSION}; upgrade one of them");
        }
    }
}
