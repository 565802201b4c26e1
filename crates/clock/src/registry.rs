// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The keys of a fleet in a registry (etcd), and the roster that they give. Any client may have written
//! them, so they are bounded and checked; refused keys are listed with the reason. No I/O.
//!
//! A node has one key, `/onramp/FLEET/members/NODE`, with a lease that it keeps alive. The value is a small
//! JSON object. The node with the oldest key leads, and the revision of that key is the term. Hosts that
//! see the same keys see the same leader, and the term of a later leader is larger.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

use crate::{members::Members, roster::Roster, wire::VERSION};

/// Longest name of a node and of a fleet.
pub const LONGEST_NAME: usize = 63;
/// Longest value.
pub const LONGEST_RECORD: usize = 512;
/// Most keys of a fleet; further ones are ignored.
pub const MOST_NODES: usize = 4096;

/// The value of a node's key. Fields that a later version adds are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The address for probes.
    pub address: SocketAddr,
    /// Version of its messages.
    pub protocol: u8,
    /// Version of its program, for the status.
    #[serde(default)]
    pub version: String,
}

impl Record {
    /// The record of this program.
    pub fn own(address: SocketAddr) -> Record {
        Record {
            address,
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// A key's value, as it was found.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// A [`Record`] in JSON, if valid.
    pub value: &'a [u8],
    /// Revision at which the key was made.
    pub created: i64,
    /// The lease of the key; 0: none.
    pub lease: i64,
}

/// A valid node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its record.
    pub record: Record,
    /// Revision at which its key was made; the oldest leads.
    pub created: u64,
    /// The lease that it keeps alive.
    pub lease: i64,
}

/// A fleet's keys.
#[derive(Debug, Clone)]
pub struct Registry {
    own: SocketAddr,
    nodes: BTreeMap<String, Node>,
    /// Name and reason, by the bytes of the key.
    refused: BTreeMap<Vec<u8>, (String, String)>,
}

/// Checks the name of a node or a fleet.
///
/// # Errors
/// Why the name is refused.
pub fn check_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match name.len() {
        0 => Err("the name is empty".to_owned()),
        n if n > LONGEST_NAME => Err(format!("the name has {n} characters, above {LONGEST_NAME}")),
        _ => match name.chars().find(|c| !fine(*c)) {
            Some(c) => Err(format!("{c:?} is not allowed; use A-Z a-z 0-9 . _ -")),
            None => Ok(()),
        },
    }
}

impl Registry {
    /// An empty registry, for a host at this address.
    pub fn new(own: SocketAddr) -> Registry {
        Registry {
            own,
            nodes: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Adds or changes a key; `key` is the part after the prefix.
    pub fn put(&mut self, key: &[u8], found: Found<'_>) {
        let name = readable(key);
        self.remove(key);
        if self.nodes.len() + self.refused.len() >= MOST_NODES {
            return;
        }
        match self.node(&name, key, found) {
            Ok(node) => drop(self.nodes.insert(name, node)),
            Err(why) => drop(self.refused.insert(clipped(key), (name, why))),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &[u8]) {
        if let Ok(name) = std::str::from_utf8(key) {
            self.nodes.remove(name);
        }
        self.refused.remove(&clipped(key));
    }

    fn node(&self, name: &str, key: &[u8], found: Found<'_>) -> Result<Node, String> {
        if name.as_bytes() != key {
            return Err("its name is too long or not plain text".to_owned());
        }
        check_name(name)?;
        if found.lease == 0 {
            return Err("it has no lease, so no node keeps it alive".to_owned());
        }
        let created = u64::try_from(found.created).map_err(|_| "its revision is below 0")?;
        let record = self.record(found.value)?;
        Ok(Node {
            record,
            created,
            lease: found.lease,
        })
    }

    fn record(&self, value: &[u8]) -> Result<Record, String> {
        if value.len() > LONGEST_RECORD {
            return Err(format!(
                "its value has {} B, above {LONGEST_RECORD}",
                value.len()
            ));
        }
        let record: Record = serde_json::from_slice(value)
            .map_err(|error| format!("its value is not a valid record: {error}"))?;
        check_address(record.address, self.own)?;
        Ok(Record {
            version: readable(record.version.as_bytes()),
            ..record
        })
    }

    /// The valid nodes, by name.
    pub fn nodes(&self) -> &BTreeMap<String, Node> {
        &self.nodes
    }

    /// The refused keys, with the reason.
    pub fn refused(&self) -> impl ExactSizeIterator<Item = &(String, String)> {
        self.refused.values()
    }

    /// The oldest node.
    pub fn oldest(&self) -> Option<(&String, &Node)> {
        self.nodes.iter().min_by_key(|(_, node)| node.created)
    }

    /// The fleet. Nodes of another protocol are not members. If the oldest node is one of them, no host leads
    /// until it is gone: two leaders, one per protocol, would make two fleet times.
    pub fn roster(&self) -> Roster {
        let of_ours = |node: &&Node| node.record.protocol == VERSION;
        let address = |node: &Node| node.record.address;
        let members = self.nodes.values().filter(of_ours).map(address).collect();
        let oldest = self.oldest().map(|(_, node)| node);
        Roster {
            members: Members::registered(members),
            leader: oldest.filter(of_ours).map(address),
            term: oldest.map_or(0, |node| node.created),
            certain: true,
        }
    }
}

/// Checks that a host at `own` can exchange probes with one at `address`.
///
/// # Errors
/// Why they cannot.
pub fn check_address(address: SocketAddr, own: SocketAddr) -> Result<(), String> {
    let refused = |what: &str| Err(format!("its address {address} {what}"));
    let is_broadcast = matches!(address.ip(), IpAddr::V4(ip) if ip.is_broadcast());
    match address.ip() {
        ip if ip.is_unspecified() || ip.is_multicast() || is_broadcast => {
            refused("is not the address of one host")
        }
        _ if address.port() == 0 => refused("has port 0"),
        ip if ip.is_ipv4() != own.is_ipv4() => refused("has another IP version than this host's"),
        ip if ip.is_loopback() != own.ip().is_loopback() => {
            refused("can be reached from one host only")
        }
        _ => Ok(()),
    }
}

/// The start of a refused key: enough to recognise it.
fn clipped(key: &[u8]) -> Vec<u8> {
    key[..key.len().min(256)].to_vec()
}

/// Untrusted bytes as text without control characters, no longer than a name.
fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_NAME)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> SocketAddr {
        "10.0.0.1:5198".parse().expect("an address")
    }

    fn json(address: &str, protocol: u8) -> String {
        format!(r#"{{"address":"{address}","protocol":{protocol},"later":[1]}}"#)
    }

    fn put(registry: &mut Registry, name: &str, value: &str, created: i64) {
        let value = value.as_bytes();
        let found = Found {
            value,
            created,
            lease: 7,
        };
        registry.put(name.as_bytes(), found);
    }

    fn two() -> Registry {
        let mut registry = Registry::new(own());
        put(&mut registry, "b", &json("10.0.0.2:5198", VERSION), 11);
        put(&mut registry, "a", &json("10.0.0.1:5198", VERSION), 12);
        registry
    }

    #[test]
    fn the_oldest_leads_and_a_later_leader_has_a_larger_term() {
        let mut registry = two();
        let first = registry.roster();
        assert_eq!(first.leader, Some("10.0.0.2:5198".parse().unwrap()));
        assert_eq!((first.term, first.members.all().len()), (11, 2));
        registry.remove(b"b");
        put(&mut registry, "b", &json("10.0.0.2:5198", VERSION), 13);
        let next = registry.roster();
        assert_eq!((next.leader, next.term), (Some(own()), 12));
    }

    #[test]
    fn two_protocols_have_one_leader() {
        let mut registry = two();
        put(&mut registry, "c", &json("10.0.0.3:5198", VERSION + 1), 10);
        let roster = registry.roster();
        assert_eq!((roster.leader, roster.members.all().len()), (None, 2));
        put(&mut registry, "c", &json("10.0.0.3:5198", VERSION + 1), 14);
        assert_eq!(registry.roster().leader, two().roster().leader);
    }

    #[test]
    fn what_is_no_node_is_refused_by_name_and_reason() {
        let mut registry = two();
        let good = json("10.0.0.9:5198", VERSION);
        let long = "x".repeat(LONGEST_NAME + 1);
        let bad = [
            ("json", "{", "not a valid record"),
            ("long", &"x".repeat(LONGEST_RECORD + 1), "513 B, above 512"),
            (
                "port",
                &json("10.0.0.9:0", VERSION),
                "10.0.0.9:0 has port 0",
            ),
            (
                "all",
                &json("0.0.0.0:1", VERSION),
                "not the address of one host",
            ),
            (
                "many",
                &json("224.0.0.1:1", VERSION),
                "not the address of one host",
            ),
            (
                "cast",
                &json("255.255.255.255:1", VERSION),
                "not the address of one host",
            ),
            ("v6", &json("[fd00::1]:1", VERSION), "another IP version"),
            ("home", &json("127.0.0.1:1", VERSION), "from one host only"),
            (
                "proto",
                r#"{"address":"10.0.0.9:1","protocol":300}"#,
                "not a valid record",
            ),
            ("a/b", &good, "'/' is not allowed"),
            ("", &good, "empty"),
            (&long, &good, "too long"),
        ];
        for (name, value, why) in bad {
            put(&mut registry, name, value, 1);
            let reason = &registry.refused().next().expect("one is refused").1;
            assert!(reason.contains(why), "{name}: {reason}");
            assert_eq!(registry.roster(), two().roster(), "{name}");
            registry.remove(name.as_bytes());
            assert_eq!(registry.refused().len(), 0);
        }
        let without_lease = Found {
            value: good.as_bytes(),
            created: 1,
            lease: 0,
        };
        registry.put(b"c", without_lease);
        assert!(registry
            .refused()
            .any(|(name, why)| name == "c" && why.contains("no lease")));
        // Looks like node a to people, and is none.
        registry.put(b"a\x01", without_lease);
        registry.remove(b"a\x01");
        assert_eq!(registry.roster(), two().roster());
    }

    #[test]
    fn a_flood_of_keys_is_bounded() {
        let mut registry = two();
        for n in 0..2 * MOST_NODES {
            put(&mut registry, &format!("flood{n}"), "", 1);
        }
        assert_eq!(registry.refused().len(), MOST_NODES - 2);
        assert_eq!(registry.roster(), two().roster());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            puts in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..80), prop::collection::vec(any::<u8>(), 0..600),
                 any::<i64>(), any::<i64>()), 0..20),
        ) {
            let mut registry = two();
            for (key, value, created, lease) in &puts {
                registry.put(key, Found { value, created: *created, lease: *lease });
                prop_assert!(registry.roster().leader.is_some());
            }
            for (key, ..) in &puts {
                registry.remove(key);
            }
            prop_assert_eq!(registry.refused().len(), 0);
        }
    }
}
