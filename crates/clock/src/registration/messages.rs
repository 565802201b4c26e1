// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a registration and its caller say to each other. Plain data, without etcd's own types.

use std::fmt;

use crate::{roster::Roster, status};

/// The name or the value of a key. Usually text, but any client may have written it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub Vec<u8>);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// A key of the fleet, as etcd has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The part after the fleet's prefix. Of a valid key, the name of the node.
    pub name: Text,
    /// A [`crate::registry::Record`] in JSON, if valid.
    pub value: Text,
    /// Revision at which it was created.
    pub created: i64,
    /// Revision at which it was last written.
    pub modified: i64,
    /// Its lease; 0: none.
    pub lease: i64,
}

/// A change of a key of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was created or written.
    Put(Key),
    /// It was deleted.
    Deleted {
        /// The part after the fleet's prefix.
        name: Text,
        /// Revision of the deletion.
        revision: i64,
    },
}

impl Change {
    /// The name of the key.
    pub fn name(&self) -> &Text {
        match self {
            Change::Put(key) => &key.name,
            Change::Deleted { name, .. } => name,
        }
    }

    /// The revision of the change.
    pub fn revision(&self) -> i64 {
        match self {
            Change::Put(key) => key.modified,
            Change::Deleted { revision, .. } => *revision,
        }
    }
}

/// The state of a key on which a claim depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It does not exist.
    Absent,
    /// It was last written at this revision.
    Modified(i64),
}

/// A request to etcd. Each has one answer, or [`Answer::Failed`]; a watch has many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Connect to the endpoint with this index: [`Answer::Connected`].
    Connect {
        /// Index into the configuration's endpoints.
        endpoint: usize,
    },
    /// Grant a lease: [`Answer::Granted`].
    Grant {
        /// How long it lasts without renewal, s.
        ttl_s: i64,
    },
    /// Renew the lease: [`Answer::Kept`] or [`Answer::Expired`].
    KeepAlive {
        /// The lease.
        lease: i64,
    },
    /// In one transaction, write the key if it is as expected ([`Answer::Claimed`]), else read it
    /// ([`Answer::Held`]).
    Claim {
        /// Name of the key.
        name: Text,
        /// Its value.
        value: Text,
        /// Its lease.
        lease: i64,
        /// The condition.
        expected: Expected,
    },
    /// In one transaction, delete the key if it was last written at this revision: [`Answer::Deleted`].
    Delete {
        /// Name of the key.
        name: Text,
        /// The condition.
        modified: i64,
    },
    /// Read the keys of the fleet, at most [`crate::registry::MOST_NODES`]: [`Answer::Read`].
    Read,
    /// Watch the keys of the fleet: [`Answer::Watching`], then [`Answer::Changed`] for each change.
    Watch {
        /// First revision to show.
        from: i64,
    },
    /// End the lease, which deletes its keys: [`Answer::Revoked`].
    Revoke {
        /// The lease.
        lease: i64,
    },
}

/// An answer of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The connection is there.
    Connected,
    /// A lease was granted.
    Granted {
        /// The lease.
        lease: i64,
        /// How long it lasts without renewal, s.
        ttl_s: i64,
    },
    /// The lease was renewed.
    Kept,
    /// The lease had ended before.
    Expired,
    /// The key was written.
    Claimed {
        /// At this revision.
        revision: i64,
    },
    /// The key was not written. It is like this; none: it does not exist.
    Held(Option<Key>),
    /// The key was deleted, or was not as expected.
    Deleted,
    /// The keys of the fleet.
    Read {
        /// etcd's revision at that time.
        revision: i64,
        /// The keys.
        keys: Vec<Key>,
    },
    /// The watch has begun.
    Watching,
    /// Changes of the fleet's keys, in their order.
    Changed(Vec<Change>),
    /// The lease was revoked.
    Revoked,
    /// A request failed, the watch ended, or the connection broke.
    Failed(Trouble),
}

/// An event for a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Time has passed.
    Time {
        /// Whether this host is too starved to lead.
        unfit: bool,
    },
    /// An answer of etcd on the present connection.
    Answer(Answer),
    /// This host shall leave the fleet.
    Leave,
}

/// What a registration wants from its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask etcd on the present connection.
    Ask(Request),
    /// Close the connection. None of its answers may be passed after that.
    Disconnect,
    /// Give this fleet to the synchronisation.
    Publish(Roster),
    /// Show this in the status.
    Show(status::Fleet),
    /// Log this. The first [`News::Joined`] or [`News::Lost`] is the outcome of the first session.
    Say(News),
    /// The registration is over.
    End,
}

/// What an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The server with this URL has registered this host.
    Joined(String),
    /// A session ended. While there is no other, this is said once a minute.
    Lost(Trouble),
    /// This host gave up to lead.
    Resigned,
    /// The lease of this host could not be revoked, so it ends by itself.
    CannotLeave(Trouble),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It can pass without action.
    #[error("{0}")]
    Passing(String),
    /// An operator has to act.
    #[error("{0}")]
    Lasting(String),
}

impl Trouble {
    /// The same, with the URL of the server.
    pub(super) fn at(self, url: &str) -> Trouble {
        match self {
            Trouble::Passing(text) => Trouble::Passing(format!("{url}: {text}")),
            Trouble::Lasting(text) => Trouble::Lasting(format!("{url}: {text}")),
        }
    }
}
