// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Timers of congestion controls as events of their own, in ns-3's order of events only. There, what is due at once comes
//! in the order in which it was scheduled, and a timer may expire before an acknowledgement of the same nanosecond or
//! after it. With exact times a congestion control lets time go by when it is asked.

use super::Nics;
use crate::engine::events::Rank;
use crate::host::site::Site;
use crate::net::what::What;
use onramp_cc::nic::{CongestionControl, Control, PathFacts};
use onramp_units::{Sim, Time};

impl Nics {
    /// The congestion control of a new flow of `host`.
    pub(super) fn start_cc(&self, host: u32, facts: &PathFacts) -> Control {
        let mut cc = self.own[host].algorithm.start(facts);
        if let (true, Some(timers)) = (self.common.timers_are_events, cc.timers()) {
            timers.leave_to_events();
        }
        cc
    }

    /// When the timers of the sender at `at` expire, if events handle them.
    #[inline]
    pub(super) fn timers_due(&mut self, at: u32) -> Option<[Time<Sim>; 3]> {
        match self.common.timers_are_events {
            true => Some(self.senders[at].cc.timers()?.due()),
            false => None,
        }
    }

    /// Schedules the timers of the sender at `at` that have been set since they were `before`.
    pub(super) fn schedule_timers(
        &mut self,
        site: &mut Site,
        at: u32,
        before: Option<[Time<Sim>; 3]>,
    ) {
        let (Some(before), Some(after)) = (before, self.timers_due(at)) else {
            return;
        };
        let connection = self.senders[at].connection;
        for (timer, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
            if before != after {
                let what = What::CcTimer { connection, timer };
                site.net.events.schedule(after, Rank::Own, what);
            }
        }
    }

    /// Handles timer number `timer` of a connection, unless it has been set again or the connection is over.
    pub(super) fn expire(&mut self, site: &mut Site, connection: u32, timer: usize) {
        let Some(at) = self.senders.place(connection) else {
            return;
        };
        let before = self.timers_due(at);
        let sender = &mut self.senders[at];
        let is_over = sender.is_over();
        match sender.cc.timers() {
            Some(timers) if timers.due()[timer] == site.net.now && !is_over => timers.expire(timer),
            _ => return,
        }
        sender.limits = sender.cc.limits();
        self.schedule_timers(site, at, before);
        self.update_entry(site, at);
    }
}
