// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who is a peer: the hosts of `--peers`, or else those of the device's subnets and the members of the fleet.
use std::{collections::BTreeSet, net::IpAddr};

use crate::prefix::Prefix;

/// The peers of a daemon.
pub struct Peers {
    prefixes: Vec<Prefix>,
    /// Whether an operator named them.
    are_named: bool,
    /// Whether members of a fleet are peers.
    with_members: bool,
    members: BTreeSet<IpAddr>,
}

/// What has changed: new peers, and hosts that are none any more.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub new: Vec<Prefix>,
    pub gone: Vec<Prefix>,
}

impl Peers {
    /// The hosts that an operator named.
    pub fn named(prefixes: Vec<Prefix>) -> Peers {
        Peers {
            prefixes,
            are_named: true,
            with_members: false,
            members: BTreeSet::new(),
        }
    }

    /// Hosts of the subnets of a device, and the members of the fleet if there is one.
    pub fn around(subnets: Vec<Prefix>, has_fleet: bool) -> Peers {
        Peers {
            are_named: false,
            with_members: has_fleet,
            ..Peers::named(subnets)
        }
    }

    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// Takes what another configuration says; the members of the fleet stay, if they are peers with it.
    pub fn replace(&mut self, new: Peers) -> Change {
        let before = self.all();
        let members = std::mem::take(&mut self.members);
        *self = new;
        if self.with_members {
            self.members = members;
        }
        let after = self.all();
        let difference =
            |a: &[Prefix], b: &[Prefix]| a.iter().filter(|p| !b.contains(p)).copied().collect();
        Change {
            new: difference(&after, &before),
            gone: difference(&before, &after),
        }
    }

    fn all(&self) -> Vec<Prefix> {
        let members = self.members.iter().map(|addr| Prefix::host(*addr));
        self.prefixes.iter().copied().chain(members).collect()
    }

    /// Takes the present members of the fleet.
    pub fn change_members(&mut self, members: BTreeSet<IpAddr>) -> Change {
        if !self.with_members || members == self.members {
            return Change::default();
        }
        let difference = |a: &BTreeSet<IpAddr>, b: &BTreeSet<IpAddr>| -> Vec<Prefix> {
            let hosts = a.difference(b).map(|addr| Prefix::host(*addr));
            // A device's own /32 stays what it is.
            let is_no_subnet = |host: &Prefix| !self.prefixes.contains(host);
            hosts.filter(is_no_subnet).collect()
        };
        let change = Change {
            new: difference(&members, &self.members),
            gone: difference(&self.members, &members),
        };
        self.members = members;
        change
    }

    /// Whether a host is a peer.
    pub fn contains(&self, addr: IpAddr) -> bool {
        self.members.contains(&addr) || self.prefixes.iter().any(|prefix| prefix.contains(addr))
    }

    /// Whether no other host can be a peer: there is no fleet, and no subnet in which others are found.
    pub fn are_none(&self) -> bool {
        !self.are_named && !self.with_members && !self.prefixes.iter().any(Prefix::has_others)
    }

    /// For the log.
    pub fn text(&self) -> String {
        let mut all: Vec<String> = self.prefixes.iter().map(Prefix::to_string).collect();
        if self.with_members {
            all.push("members of the fleet".to_owned());
        }
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn hosts(all: &[&str]) -> BTreeSet<IpAddr> {
        all.iter().map(|addr| addr.parse().unwrap()).collect()
    }

    #[test]
    fn another_configuration_keeps_the_members_where_they_are_peers() {
        let mut peers = Peers::around(vec![prefix("10.1.0.0/16")], true);
        peers.change_members(hosts(&["10.2.0.1"]));
        let same = peers.replace(Peers::around(vec![prefix("10.1.0.0/16")], true));
        assert_eq!(same, Change::default());
        let change = peers.replace(Peers::named(vec![prefix("10.3.0.0/16")]));
        assert_eq!(change.new, [prefix("10.3.0.0/16")]);
        assert_eq!(change.gone, [prefix("10.1.0.0/16"), prefix("10.2.0.1/32")]);
        let change = peers.replace(Peers::around(vec![prefix("10.3.0.0/16")], true));
        assert_eq!(change, Change::default());
        assert_eq!(
            peers.change_members(hosts(&["10.2.0.1"])).new,
            [prefix("10.2.0.1/32")]
        );
    }

    #[test]
    fn members_are_peers_unless_an_operator_names_the_peers() {
        let cloud = vec![prefix("10.0.0.1/32"), prefix("fe80::1/64")];
        assert!(Peers::around(cloud.clone(), false).are_none());
        let mut peers = Peers::around(cloud, true);
        assert!(!peers.are_none());
        let change = peers.change_members(hosts(&["10.0.0.1", "10.0.0.2"]));
        assert_eq!(change.new, [prefix("10.0.0.2/32")]);
        assert!(peers.contains("10.0.0.2".parse().unwrap()));
        let change = peers.change_members(hosts(&["10.0.0.3"]));
        let (new, gone) = (vec![prefix("10.0.0.3/32")], vec![prefix("10.0.0.2/32")]);
        assert_eq!(change, Change { new, gone });
        assert!(!peers.contains("10.0.0.2".parse().unwrap()));

        let mut named = Peers::named(vec![prefix("10.9.0.0/16")]);
        let change = named.change_members(hosts(&["10.0.0.2"]));
        assert_eq!(change, Change::default());
        assert!(!named.contains("10.0.0.2".parse().unwrap()));
        assert!(!Peers::named(vec![prefix("10.0.0.2/32")]).are_none());
    }
}
