// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What etcd stores: keys with their revisions, leases, and the history of changes.

use std::collections::BTreeMap;

use onramp_clock::registration::{Answer, Change, Expected, Key, Request, Text, Trouble};

const S: i64 = 1_000_000_000;
/// etcd looks for ended leases at this interval.
const LOOK_NS: i64 = S / 2;
/// Shortest lease that etcd grants, s.
const SHORTEST_S: i64 = 2;

#[derive(Debug, Clone, Copy)]
struct Lease {
    ttl_s: i64,
    /// It ends without renewal.
    ends: i64,
}

/// The state of etcd.
#[derive(Debug)]
pub struct Store {
    revision: i64,
    keys: BTreeMap<Text, Key>,
    leases: BTreeMap<i64, Lease>,
    /// In the order of their revisions.
    history: Vec<Change>,
    /// The last lease; those of a forgotten time do not come again.
    last_lease: i64,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            revision: 1,
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            history: vec![],
            last_lease: 0,
        }
    }
}

impl Store {
    pub fn serve(&mut self, now: i64, request: &Request) -> Answer {
        match request {
            Request::Grant { ttl_s } => self.grant(now, *ttl_s),
            Request::KeepAlive { lease } => self.keep(now, *lease),
            Request::Claim {
                name,
                value,
                lease,
                expected,
            } => self.claim(name, value, *lease, *expected),
            Request::Delete { name, modified } => {
                if self.keys.get(name).map(|key| key.modified) == Some(*modified) {
                    self.delete(std::slice::from_ref(name));
                }
                Answer::Deleted
            }
            Request::Read => Answer::Read {
                revision: self.revision,
                keys: self.keys.values().cloned().collect(),
            },
            Request::Revoke { lease } if self.leases.contains_key(lease) => {
                self.end(*lease);
                Answer::Revoked
            }
            Request::Revoke { .. } => no_lease(),
            Request::Connect { .. } | Request::Watch { .. } => {
                unreachable!("they concern a connection")
            }
        }
    }

    fn grant(&mut self, now: i64, ttl_s: i64) -> Answer {
        self.last_lease += 1;
        let ttl_s = ttl_s.max(SHORTEST_S);
        let ends = now + ttl_s * S;
        self.leases.insert(self.last_lease, Lease { ttl_s, ends });
        Answer::Granted {
            lease: self.last_lease,
            ttl_s,
        }
    }

    fn keep(&mut self, now: i64, lease: i64) -> Answer {
        match self.leases.get_mut(&lease) {
            Some(found) if now < found.ends => {
                found.ends = now + found.ttl_s * S;
                Answer::Kept
            }
            _ => Answer::Expired,
        }
    }

    fn claim(&mut self, name: &Text, value: &Text, lease: i64, expected: Expected) -> Answer {
        let present = self.keys.get(name);
        let is_expected = match expected {
            Expected::Absent => present.is_none(),
            // A key that does not exist counts as written at revision 0.
            Expected::Modified(revision) => present.map_or(0, |key| key.modified) == revision,
        };
        if !is_expected {
            return Answer::Held(present.cloned());
        }
        if lease != 0 && !self.leases.contains_key(&lease) {
            return no_lease();
        }
        self.revision += 1;
        let key = Key {
            name: name.clone(),
            value: value.clone(),
            created: present.map_or(self.revision, |key| key.created),
            modified: self.revision,
            lease,
        };
        self.history.push(Change::Put(key.clone()));
        self.keys.insert(name.clone(), key);
        Answer::Claimed {
            revision: self.revision,
        }
    }

    /// Deletes these keys at one revision.
    fn delete(&mut self, names: &[Text]) {
        if names.is_empty() {
            return;
        }
        self.revision += 1;
        for name in names {
            self.keys.remove(name);
            self.history.push(Change::Deleted {
                name: name.clone(),
                revision: self.revision,
            });
        }
    }

    /// Ends a lease, which deletes its keys.
    fn end(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let keys = self.keys.values().filter(|key| key.lease == lease);
        let names: Vec<Text> = keys.map(|key| key.name.clone()).collect();
        self.delete(&names);
    }

    /// When the next lease is found to have ended.
    pub fn expires_at(&self) -> Option<i64> {
        let first = self.leases.values().map(|lease| lease.ends).min()?;
        Some((first + LOOK_NS - 1).div_euclid(LOOK_NS) * LOOK_NS)
    }

    /// Ends the leases that were not renewed.
    pub fn expire(&mut self, now: i64) {
        let ended = self.leases.iter().filter(|(_, lease)| lease.ends <= now);
        let ended: Vec<i64> = ended.map(|(id, _)| *id).collect();
        for lease in ended {
            self.end(lease);
        }
    }

    /// All leases last their whole time from now on.
    pub fn renew_all(&mut self, now: i64) {
        for lease in self.leases.values_mut() {
            lease.ends = now + lease.ttl_s * S;
        }
    }

    pub fn wipe(&mut self) {
        *self = Store {
            last_lease: self.last_lease,
            ..Store::default()
        };
    }

    pub fn revision(&self) -> i64 {
        self.revision
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values()
    }

    /// The changes from this revision on.
    pub fn changes(&self, from: i64) -> Vec<Change> {
        let first = self
            .history
            .partition_point(|change| change.revision() < from);
        self.history[first..].to_vec()
    }
}

fn no_lease() -> Answer {
    Answer::Failed(Trouble::Passing("requested lease not found".to_owned()))
}
