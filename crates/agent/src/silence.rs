// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Peers that get data and send no OR-ACK: nothing else shows that a firewall drops them, or that On-Ramp does not
//! run there. Pure; the daemon says who was sent to and who was heard.
use std::{collections::BTreeSet, net::IpAddr};

/// Most peers that are remembered as silent.
const MOST: usize = 256;

/// Who is silent.
#[derive(Default)]
pub struct Silence {
    /// Peers that did not answer since the last check.
    suspects: BTreeSet<IpAddr>,
    silent: BTreeSet<IpAddr>,
}

impl Silence {
    /// Takes who was heard since the last check, and who was sent samples since then and was not heard. Returns
    /// those that are silent from now on: they have not answered in two checks that follow each other, so that an
    /// answer had time to come.
    pub fn check(&mut self, heard: &BTreeSet<IpAddr>, unanswered: BTreeSet<IpAddr>) -> Vec<IpAddr> {
        self.silent.retain(|peer| !heard.contains(peer));
        let room = MOST.saturating_sub(self.silent.len());
        let again = unanswered.intersection(&self.suspects);
        let is_new = |peer: &&IpAddr| !self.silent.contains(*peer);
        let new: Vec<IpAddr> = again.filter(is_new).take(room).copied().collect();
        self.silent.extend(&new);
        self.suspects = unanswered;
        new
    }

    /// All that are silent.
    pub fn peers(&self) -> Vec<IpAddr> {
        self.silent.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_answer_twice_is_silent_until_it_is_heard() {
        let (a, b): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let (both, none) = (BTreeSet::from([a, b]), BTreeSet::new());
        let mut silence = Silence::default();
        assert!(silence.check(&none, both.clone()).is_empty());
        assert_eq!(silence.check(&BTreeSet::from([b]), [a].into()), [a]);
        assert!(silence.check(&none, [a].into()).is_empty(), "it is known");
        // It is not sent anything.
        assert!(silence.check(&none, none.clone()).is_empty());
        assert_eq!(silence.peers(), [a]);
        silence.check(&BTreeSet::from([a]), none.clone());
        assert!(silence.peers().is_empty());
    }

    #[test]
    fn it_has_a_bound() {
        let many: BTreeSet<IpAddr> = (0..1_000u32).map(|n| IpAddr::V4(n.into())).collect();
        let mut silence = Silence::default();
        silence.check(&BTreeSet::new(), many.clone());
        assert_eq!(silence.check(&BTreeSet::new(), many).len(), MOST);
    }
}
