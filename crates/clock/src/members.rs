// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The members of a fleet and the mesh of probes. Every host computes the same mesh from the same list.
//!
//! The mesh of degree d is the union of d/2 rings, each of which orders the hosts by a hash of their
//! addresses. The order is random, so any cut has many edges. One ring connects all hosts. A host that
//! comes or goes changes only its neighbours. In each ring a host probes the next one, so it reports half
//! of its edges. A fleet no larger than the degree has all edges.

use std::{
    collections::{HashMap, HashSet},
    hash::Hasher,
    net::SocketAddr,
    sync::Arc,
};

use siphasher::sip::SipHasher24;

/// The degree of the paper's mesh.
pub const USUAL_DEGREE: usize = 10;
/// The largest degree: a verdict has room for this many neighbours.
pub const MOST_DEGREE: usize = crate::wire::MOST_NEIGHBOURS;

/// Why a list of members is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MembersError {
    /// An address is in the list twice.
    #[error("the list of members has {0} twice; remove one")]
    Twice(SocketAddr),
    /// This host is not in the list.
    #[error(
        "no address of this host ({own}) is in the list of members ({list}); add this host to the list on all hosts"
    )]
    Stranger {
        /// The addresses of this host.
        own: String,
        /// The members.
        list: String,
    },
    /// There is no other clock to compare with.
    #[error(
        "the list of members has {0}, below 2; list all hosts of the fleet, this one included"
    )]
    TooFew(usize),
}

/// The hosts of a fleet, in the same order on all of them. A copy costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(Arc<Numbered>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Numbered {
    all: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, usize>,
}

/// An edge of the mesh: `near` probes `far` and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Number of a member.
    pub near: usize,
    /// Another.
    pub far: usize,
}

impl Members {
    /// A fleet from a list.
    ///
    /// # Errors
    /// The list has fewer than two members, or one twice.
    pub fn new(list: Vec<SocketAddr>) -> Result<Members, MembersError> {
        if list.len() < 2 {
            return Err(MembersError::TooFew(list.len()));
        }
        let mut before = HashSet::new();
        if let Some(twice) = list.iter().find(|member| !before.insert(**member)) {
            return Err(MembersError::Twice(*twice));
        }
        Ok(Members::of(list))
    }

    /// The members in a registry, possibly none; duplicates count once.
    pub fn registered(mut list: Vec<SocketAddr>) -> Members {
        list.sort();
        list.dedup();
        Members::of(list)
    }

    fn of(all: Vec<SocketAddr>) -> Members {
        let numbers = all.iter().enumerate().map(|(n, member)| (*member, n));
        let numbers = numbers.collect();
        Members(Arc::new(Numbered { all, numbers }))
    }

    /// All members, in the order of the list.
    pub fn all(&self) -> &[SocketAddr] {
        &self.0.all
    }

    /// Number of a member.
    pub fn number(&self, member: SocketAddr) -> Option<usize> {
        self.0.numbers.get(&member).copied()
    }

    /// The member that has one of these addresses.
    ///
    /// # Errors
    /// No member has.
    pub fn own(&self, addresses: &[std::net::IpAddr]) -> Result<SocketAddr, MembersError> {
        let own = self.all().iter().find(|m| addresses.contains(&m.ip()));
        own.copied().ok_or_else(|| {
            let text = |all: Vec<String>| all.join(", ");
            MembersError::Stranger {
                own: text(addresses.iter().map(ToString::to_string).collect()),
                list: text(self.all().iter().map(ToString::to_string).collect()),
            }
        })
    }

    /// The edges of the mesh of this degree.
    pub fn mesh(&self, degree: usize) -> Vec<Link> {
        let hosts = self.all().len();
        if hosts <= degree + 1 {
            return complete(hosts);
        }
        let mut links: Vec<Link> = vec![];
        let mut linked = HashSet::new();
        for ring in 0..degree.div_ceil(2) as u64 {
            let mut order: Vec<usize> = (0..hosts).collect();
            order.sort_by_cached_key(|host| (place(ring, self.all()[*host]), *host));
            for (n, near) in order.iter().enumerate() {
                let (near, far) = (*near, order[(n + 1) % hosts]);
                if linked.insert((near.min(far), near.max(far))) {
                    links.push(Link { near, far });
                }
            }
        }
        links
    }
}

/// All pairs. The reporting end alternates, so that all hosts have the same load.
fn complete(hosts: usize) -> Vec<Link> {
    let pairs = (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| (a, b)));
    let link = |(a, b): (usize, usize)| match (b - a) % 2 {
        1 => Link { near: a, far: b },
        _ => Link { near: b, far: a },
    };
    pairs.map(link).collect()
}

fn place(ring: u64, member: SocketAddr) -> u64 {
    let mut hash = SipHasher24::new_with_keys(ring, 0);
    hash.write(&crate::address::address_bytes(member));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(hosts: usize) -> Members {
        let address = |n: usize| SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 5198));
        Members::new((0..hosts).map(address).collect()).expect("a fleet")
    }

    fn degrees(hosts: usize, links: &[Link]) -> Vec<usize> {
        let mut degrees = vec![0; hosts];
        for link in links {
            degrees[link.near] += 1;
            degrees[link.far] += 1;
        }
        degrees
    }

    #[test]
    fn a_small_fleet_has_all_edges() {
        let links = fleet(5).mesh(10);
        assert_eq!(degrees(5, &links), [4; 5]);
        assert_eq!(links.len(), 10);
    }

    #[test]
    fn a_large_fleet_has_the_degree_and_is_connected() {
        let links = fleet(300).mesh(10);
        let degrees = degrees(300, &links);
        assert!(degrees.iter().all(|d| (7..=10).contains(d)), "{degrees:?}");
        assert!(links.len() > 1450, "{}", links.len());
        let mut reached = vec![false; 300];
        let mut open = vec![0];
        while let Some(host) = open.pop() {
            if !std::mem::replace(&mut reached[host], true) {
                let next = links.iter().filter(|l| l.near == host || l.far == host);
                open.extend(next.map(|l| l.near + l.far - host));
            }
        }
        assert!(reached.iter().all(|r| *r));
    }

    /// By the definition, and as earlier versions chose them: pairs that follow each other in a ring, each
    /// pair once.
    #[test]
    fn its_links_are_the_neighbours_of_each_ring() {
        let members = fleet(60);
        let mut expected: Vec<Link> = vec![];
        for ring in 0..5 {
            let mut order: Vec<usize> = (0..60).collect();
            order.sort_by_key(|host| (place(ring, members.all()[*host]), *host));
            for n in 0..60 {
                let (near, far) = (order[n], order[(n + 1) % 60]);
                let same = |l: &Link| [(near, far), (far, near)].contains(&(l.near, l.far));
                if !expected.iter().any(same) {
                    expected.push(Link { near, far });
                }
            }
        }
        assert!(expected.len() < 300, "no pair is in two rings");
        assert_eq!(members.mesh(10), expected);
    }

    /// The mesh does not depend on the order of the list, and a newcomer changes little of it.
    #[test]
    fn a_newcomer_moves_its_neighbours_only() {
        let named = |members: &Members| {
            let name = |l: &Link| (members.all()[l.near], members.all()[l.far]);
            let mut names: Vec<_> = members.mesh(10).iter().map(name).collect();
            names.sort();
            names
        };
        let reversed = fleet(100).all().iter().rev().copied().collect();
        let reversed = Members::new(reversed).expect("a fleet");
        assert_eq!(named(&fleet(100)), named(&reversed));
        let (before, after) = (named(&fleet(100)), named(&fleet(101)));
        let kept = before.iter().filter(|link| after.contains(link)).count();
        assert!(before.len() - kept <= 5, "{} of {}", kept, before.len());
    }

    #[test]
    fn duplicates_strangers_and_hermits_are_refused() {
        let one = fleet(2).all().to_vec();
        assert_eq!(Members::new(vec![one[0]]), Err(MembersError::TooFew(1)));
        let twice = vec![one[0], one[1], one[0]];
        assert_eq!(Members::new(twice), Err(MembersError::Twice(one[0])));
        assert!(fleet(2).own(&["10.9.9.9".parse().unwrap()]).is_err());
        assert_eq!(fleet(2).own(&[one[1].ip()]), Ok(one[1]));
    }
}
