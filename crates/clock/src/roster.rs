//! The fleet as a host knows it at a time: from a list that never changes, or from a registry (etcd) that
//! tells of hosts as they come and go. Hosts may hear of a change some hundred ms apart.

use std::net::SocketAddr;

use crate::members::Members;

/// Who is in the fleet, and who leads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// Everybody.
    pub members: Members,
    /// The member that does the central step, if there is one.
    pub leader: Option<SocketAddr>,
    /// Of this leader: a later leader's is larger. Verdicts of another term are not followed, so a
    /// leader that does not know it has been replaced misleads nobody.
    pub term: u64,
    /// Whether the registry says so now; false while it does not answer.
    pub certain: bool,
}

impl Roster {
    /// A fleet that never changes; the first of the list leads.
    pub fn fixed(members: Members) -> Roster {
        Roster {
            leader: members.all().first().copied(),
            members,
            term: 0,
            certain: true,
        }
    }

    /// Before the registry has said anything.
    pub fn unknown() -> Roster {
        Roster {
            members: Members::registered(vec![]),
            leader: None,
            term: 0,
            certain: false,
        }
    }
}
