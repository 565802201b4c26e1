// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The daemon looks at one flow for `onramp trace`.
use std::cmp::Reverse;

use anyhow::Result;
use onramp_clock::stamps::now_mono_ns;
use onramp_law::abi::{onr_ctl, ONR_NEVER_NS};
use onramp_status::{Ends, Flow, Found, Verdict};

use super::Daemon;
use crate::config::Threshold;
use crate::rules::BELOW_ERROR_NS;

/// Most flows that are named in place of one that does not exist.
const MOST_CANDIDATES: usize = 8;

impl Daemon {
    /// A flow, or the names of flows that are like it.
    pub(super) fn find_flow(&self, ends: Ends) -> Result<Found> {
        let flow = match self.datapath.flow(ends)? {
            Some(ctl) => Some(self.flow(ends, &ctl)?),
            None => None,
        };
        let candidates = match flow {
            Some(_) => vec![],
            None => most_alike(ends, self.datapath.names()?),
        };
        Ok(Found { flow, candidates })
    }

    fn flow(&self, ends: Ends, ctl: &onr_ctl) -> Result<Flow> {
        let mono_ns = now_mono_ns();
        let law = &ctl.law;
        let threshold_ns = self.threshold_of(ctl);
        let held_left_ns = self.held_left_ns(ctl, mono_ns);
        let peer = self.datapath.peer(ends.to.ip())?;
        let sampled = law.sampled != 0;
        Ok(Flow {
            ends,
            mono_ns,
            sent_bytes: law.sent_bytes,
            idle_ns: mono_ns - ctl.last_ns,
            owd_ns: sampled.then_some(law.sample_owd_ns),
            sample_age_ns: sampled.then_some(mono_ns - law.sample_sent_mono_ns),
            threshold_ns,
            is_raised: threshold_ns > self.own_threshold_of(ctl),
            paused_ns: law.pause_total_ns,
            held_left_ns,
            peer_oracks: peer.map_or(0, |peer| peer.oracks),
            peer_holds: peer.map_or(0, |peer| peer.holds),
            verdict: self.verdict(ends, ctl, threshold_ns, held_left_ns > 0),
        })
    }

    /// T above which a flow is held: its own, and at least the guard's.
    fn threshold_of(&self, ctl: &onr_ctl) -> Option<i64> {
        let has_guard = self.config.law.guard.0.is_some();
        let own_ns = self.own_threshold_of(ctl)?;
        let guarded_ns = own_ns.max(ctl.law.guard_threshold_ns);
        Some(ctl.law.held_above_ns(guarded_ns, has_guard))
    }

    /// T of a flow: that of its class or peer, else the configuration's.
    fn own_threshold_of(&self, ctl: &onr_ctl) -> Option<i64> {
        match (ctl.class_threshold_ns, ctl.law.threshold_ns) {
            (ONR_NEVER_NS | BELOW_ERROR_NS, _) => None,
            (0, 0) => match self.config.law.threshold {
                Threshold::Fixed(span) => Some(span.as_ns()),
                Threshold::Auto => None,
            },
            (0, of_peer) => Some(i64::from(of_peer)),
            (of_class, _) => Some(i64::from(of_class)),
        }
    }

    /// Time until the packet of a flow that waits may leave. Each path notes elsewhere that one waits.
    fn held_left_ns(&self, ctl: &onr_ctl, mono_ns: i64) -> i64 {
        let until_ns = match self.path() {
            "edge" if ctl.held == 0 => return 0,
            "edt" => ctl.last_ns,
            _ => ctl.held_until_ns,
        };
        (until_ns - mono_ns).max(0)
    }

    fn verdict(
        &self,
        ends: Ends,
        ctl: &onr_ctl,
        threshold_ns: Option<i64>,
        is_held: bool,
    ) -> Verdict {
        match () {
            () if ctl.class_threshold_ns == ONR_NEVER_NS => Verdict::Excluded,
            () if self.params.lease_expires_mono_ns <= now_mono_ns() => Verdict::NoLease,
            () if ctl.class_threshold_ns == BELOW_ERROR_NS => Verdict::BelowError,
            () if self.health.silent_peers.contains(&ends.to.ip()) => Verdict::SilentPeer,
            () if ctl.law.sampled == 0 => Verdict::NoSample,
            () if threshold_ns.is_none() => Verdict::NoThreshold,
            () if !is_held => Verdict::Free,
            () if self.config.observe => Verdict::WouldBeHeld,
            () => Verdict::Held,
        }
    }
}

/// The flows that share most with the wanted one, in a fixed order.
fn most_alike(wanted: Ends, mut all: Vec<Ends>) -> Vec<Ends> {
    all.sort_by_key(|ends| (Reverse(wanted.likeness(ends)), *ends));
    all.truncate(MOST_CANDIDATES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_with_one_other_port_is_the_first_candidate() {
        let ends = |text: &str| text.parse::<Ends>().unwrap();
        let wanted = ends("10.0.0.1:4000 10.0.0.2:80");
        let near = ends("10.0.0.1:4001 10.0.0.2:80");
        let mut all: Vec<Ends> = (1..20)
            .map(|port| ends(&format!("10.0.0.1:{port} 10.0.0.3:80")))
            .collect();
        all.push(near);
        let found = most_alike(wanted, all);
        assert_eq!((found.len(), found[0]), (MOST_CANDIDATES, near));
    }
}
