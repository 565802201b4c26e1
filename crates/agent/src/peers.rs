//! Who is a peer: the hosts of `--peers`, or else those of the device's subnets and the members of the fleet.
use std::{collections::BTreeSet, net::IpAddr};

use crate::prefix::Prefix;

/// The peers of a daemon.
pub struct Peers {
    prefixes: Vec<Prefix>,
    /// Whether members of the fleet are peers.
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
            with_members: false,
            members: BTreeSet::new(),
        }
    }

    /// Hosts of the subnets of a device with these addresses, and the members of the fleet.
    pub fn around(prefixes: Vec<Prefix>) -> Peers {
        Peers {
            with_members: true,
            ..Peers::named(prefixes)
        }
    }

    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
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

    /// Whether no other host can be a peer, unless a fleet has members: no address of the device has a subnet in
    /// which others are found.
    pub fn are_none(&self) -> bool {
        self.with_members && !self.prefixes.iter().any(Prefix::has_others)
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
    fn members_are_peers_unless_an_operator_names_the_peers() {
        let cloud = vec![prefix("10.0.0.1/32"), prefix("fe80::1/64")];
        let mut peers = Peers::around(cloud);
        assert!(peers.are_none());
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
