// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The state that both kinds of hosts use: the fabric, the plan, the clocks, and On-Ramp's law of each host.

pub(crate) mod hints;
pub(crate) mod huygens;

use self::hints::Hints;
use self::huygens::Prober;
use crate::flows::network::Network;
use crate::flows::starts::Starts;
use crate::host::clock::Clocks;
use crate::host::config::Config;
use crate::host::edge::HostLaw;
use crate::host::per_host::PerHost;
use crate::host::rtts::{RttSample, Rtts};
use crate::net::fabric::Fabric;
use onramp_units::{Sim, Span, Time};
use std::collections::HashMap;
use std::sync::Arc;

/// State that the hosts of a domain share.
pub(crate) struct Site {
    pub net: Fabric,
    pub network: Arc<Network>,
    pub starts: Starts,
    pub config: Config,
    pub clocks: Clocks,
    /// The probes of hosts that synchronise their clocks.
    pub prober: Option<Prober>,
    /// By node: the control law for its line; `None`: it has no law. Empty: no node has one.
    pub laws: Arc<[Option<HostLaw>]>,
    /// A new flow uses the last delay to its receiver, unless that is older than this.
    pub reuse: PerHost<Option<Span>>,
    /// By local sender and receiver: the last delay, and the time of its measurement; if delays are reused.
    pub last_delays: HashMap<(u32, u32), (Span, Time<Sim>)>,
    /// What receivers count and senders know, if the law uses it.
    pub hints: Option<Hints>,
    /// Round-trip times, if they are recorded.
    pub rtts: Option<Rtts>,
}

impl Site {
    /// The last delay from `src` to `dst`, if new flows reuse it.
    pub(crate) fn delay_to_reuse(&self, src: u32, dst: u32) -> Option<Span> {
        let &(owd, learned) = self.last_delays.get(&(src, dst))?;
        (self.net.now - learned <= self.reuse[src]?).then_some(owd)
    }

    /// Records a delay of flow `plan`, which the next flow of its hosts may reuse.
    pub(crate) fn keep_delay(&mut self, plan: u32, owd: Option<Span>) {
        let flow = &self.network.flows[plan as usize];
        if let (Some(_), Some(owd)) = (self.reuse[flow.src], owd) {
            self.last_delays
                .insert((flow.src, flow.dst), (owd, self.net.now));
        }
    }

    /// Records a round-trip time of flow `plan`, if they are recorded.
    #[inline]
    pub(crate) fn note_rtt(&mut self, plan: u32, rtt: Span) {
        if let Some(rtts) = &mut self.rtts {
            let at = self.net.now;
            rtts.note(RttSample { at, plan, rtt });
        }
    }

    /// Flow `plan` has arrived completely at its local receiver.
    pub(crate) fn flow_arrived(&mut self, plan: u32) {
        let after = self.network.age(plan, self.net.now);
        self.network.outcomes.arrived(plan, after);
        self.starts.flow_arrived(&mut self.net, plan);
    }
}
