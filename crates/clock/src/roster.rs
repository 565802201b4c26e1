// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet as a host knows it: from a fixed list, or from a registry (etcd) whose hosts come and go.
//! Hosts may learn of a change some hundred ms apart.

use std::net::SocketAddr;

use crate::members::Members;

/// The members of the fleet and its leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// All members.
    pub members: Members,
    /// The member that does the central step, if there is one.
    pub leader: Option<SocketAddr>,
    /// Term of the leader; that of a later leader is larger. Hosts refuse verdicts of another term, so a
    /// leader that was replaced without knowing it cannot mislead them.
    pub term: u64,
    /// Whether the registry confirms this now; false while it does not answer.
    pub certain: bool,
}

impl Roster {
    /// A fixed fleet; the first of the list leads.
    pub fn fixed(members: Members) -> Roster {
        Roster {
            leader: members.all().first().copied(),
            members,
            term: 0,
            certain: true,
        }
    }

    /// The roster before the registry has answered.
    pub fn unknown() -> Roster {
        Roster {
            members: Members::registered(vec![]),
            leader: None,
            term: 0,
            certain: false,
        }
    }
}
