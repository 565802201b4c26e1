// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet as a registration sees it, and when a change is published.

use std::net::SocketAddr;

use super::{Change, Key, MS};
use crate::{
    registry::{Found, Node, Registry},
    roster::Roster,
    status,
    wire::VERSION,
};

/// A change is published when nothing has changed for this time, so that a host which resigns, and whose key
/// is deleted and created again, stays a member,
const QUIET_NS: i64 = 100 * MS;
/// and at the latest after this time.
const LATEST_NS: i64 = 500 * MS;

/// The keys, and the roster that was published last.
#[derive(Debug)]
pub struct View {
    own: SocketAddr,
    registry: Registry,
    /// Times of the first and of the last change that is not published.
    changed: Option<(i64, i64)>,
    published: Option<Roster>,
}

impl View {
    pub fn new(own: SocketAddr) -> View {
        View {
            own,
            registry: Registry::new(own),
            changed: None,
            published: None,
        }
    }

    /// Takes these keys for all that was known.
    pub fn read(&mut self, now: i64, keys: &[Key]) {
        self.registry = Registry::new(self.own);
        self.changed = Some((now, now));
        for key in keys {
            self.put(key);
        }
    }

    pub fn change(&mut self, now: i64, change: &Change) {
        let since = self.changed.map_or(now, |(since, _)| since);
        self.changed = Some((since, now));
        match change {
            Change::Put(key) => self.put(key),
            Change::Deleted { name, .. } => self.registry.remove(&name.0),
        }
    }

    fn put(&mut self, key: &Key) {
        let found = Found {
            value: &key.value.0,
            created: key.created,
            lease: key.lease,
        };
        self.registry.put(&key.name.0, found);
    }

    /// When to publish, if there is news.
    pub fn due(&self) -> Option<i64> {
        let (first, last) = self.changed?;
        Some((last + QUIET_NS).min(first + LATEST_NS))
    }

    /// The roster, if it differs from the published one.
    pub fn publish(&mut self) -> Option<Roster> {
        self.changed = None;
        let roster = self.registry.roster();
        if self.published.as_ref() == Some(&roster) {
            return None;
        }
        self.published = Some(roster.clone());
        Some(roster)
    }

    /// The published roster as etcd no longer confirms it. Once: the synchronisation may have learned since
    /// then that the leader was replaced.
    pub fn doubt(&mut self) -> Option<Roster> {
        let roster = self.published.as_mut().filter(|roster| roster.certain)?;
        roster.certain = false;
        Some(roster.clone())
    }

    /// Whether the host of this name and lease has the oldest key, and another host could lead.
    pub fn is_led_by(&self, name: &str, lease: Option<i64>) -> bool {
        let is_oldest =
            |(oldest, node): (&String, &Node)| oldest == name && Some(node.lease) == lease;
        let of_ours = |node: &&Node| node.record.protocol == VERSION;
        self.registry.oldest().is_some_and(is_oldest)
            && self.registry.nodes().values().filter(of_ours).count() > 1
    }

    /// The valid nodes, the oldest first.
    pub fn nodes(&self) -> Vec<status::Node> {
        let mut nodes: Vec<_> = self.registry.nodes().iter().collect();
        nodes.sort_by_key(|(_, node)| node.created);
        let node = |(name, node): (&String, &Node)| status::Node {
            name: name.clone(),
            address: node.record.address,
            protocol: node.record.protocol,
            version: node.record.version.clone(),
        };
        nodes.into_iter().map(node).collect()
    }

    /// Keys that are not valid nodes.
    pub fn refused(&self) -> Vec<(String, String)> {
        self.registry.refused().cloned().collect()
    }
}
