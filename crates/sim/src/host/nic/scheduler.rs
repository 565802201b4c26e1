// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The scheduler of a NIC: round robin among flows, and the time of the NIC's next wake.

use super::{Nic, Nics, Sender};
use crate::engine::events::Rank;
use crate::engine::rounding::Rounding;
use crate::host::site::Site;
use crate::net::packet::NONE;
use crate::net::what::What;
use onramp_cc::nic::CongestionControl;
use onramp_units::{Sim, Time};

/// A flow in the round robin, or the segments that others read: the state that the scheduler reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduled {
    /// Index of its sender's state; `NONE` for `Turn::Responses`.
    pub sender: u32,
    pub(super) state: State,
    pub(super) turn: Turn,
    /// Earliest time of the next packet by its pacing rate.
    pub next_at: Time<Sim>,
    /// Time at which the control law decides again.
    pub held_until: Time<Sim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// May send at its time.
    Ready,
    /// Has data, but its window is full.
    Blocked,
    /// All data is sent, but not all is acknowledged.
    Sent,
    Finished,
}

/// What leaves when it is an entry's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// A packet of a flow.
    Data,
    /// A request of a read.
    Request,
    /// A packet of what other hosts read here.
    Responses,
}

impl Sender {
    pub(super) fn state(&self) -> State {
        if self.is_over() {
            State::Finished
        } else if self.next >= self.size {
            State::Sent
        } else if self.is_full() && !self.is_in_burst() {
            State::Blocked
        } else {
            State::Ready
        }
    }
}

impl Nic {
    /// The index of the next flow that may send now, and the index of the first finished flow that was
    /// skipped.
    fn choose(
        &self,
        now: Time<Sim>,
        paused: bool,
        rounding: Rounding,
    ) -> (Option<usize>, Option<usize>) {
        let (count, mut finished) = (self.flows.len(), None);
        let mut place = match rounding {
            Rounding::Exact => self.last,
            // ns-3 counts modulo the number of flows, which may have become smaller.
            Rounding::Ns3 => self.last.checked_rem(count).unwrap_or(0),
        };
        for _ in 0..count {
            place = if place + 1 >= count { 0 } else { place + 1 };
            let entry = &self.flows[place];
            match entry.state {
                State::Ready if !paused && entry.due() <= now => return (Some(place), finished),
                State::Finished => {
                    finished = Some(finished.map_or(place, |first: usize| first.min(place)));
                }
                _ => {}
            }
        }
        (None, finished)
    }

    /// The entry at `place` is next.
    pub(super) fn next_is(&mut self, place: usize) {
        self.last = place.checked_sub(1).unwrap_or(self.flows.len());
    }

    /// Earliest send time of the flows.
    fn next_due(&self, rounding: Rounding) -> Option<Time<Sim>> {
        let counts = |entry: &&Scheduled| match entry.state {
            State::Ready => true,
            State::Blocked => rounding == Rounding::Ns3,
            State::Sent | State::Finished => false,
        };
        let due = self.flows.iter().filter(counts).map(Scheduled::due);
        due.min()
    }
}

impl Nics {
    /// Keeps a connection in the round robin while it has or will have data to send. In ns-3 it stays until
    /// the NIC skips it.
    pub(super) fn update_entry(&mut self, site: &mut Site, at: u32) {
        let sender = &mut self.senders[at];
        let state = sender.state();
        let has_data = matches!(state, State::Ready | State::Blocked);
        let stays = has_data || sender.goes_on || site.config.rounding == Rounding::Ns3;
        let nic = &mut self.nics[sender.host as usize];
        match (sender.entry, stays) {
            (NONE, false) => {}
            (NONE, true) => {
                sender.entry = nic.flows.len() as u32;
                nic.flows.push(sender.new_entry(at, site.net.now));
            }
            (place, true) => nic.flows[place as usize].state = state,
            (place, false) => {
                sender.entry = NONE;
                let host = sender.host;
                self.remove_entry(host, place as usize);
            }
        }
    }

    /// Removes the entry at `place` from a host's round robin.
    pub(super) fn remove_entry(&mut self, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        nic.flows.swap_remove(place);
        if let Some(moved) = nic.flows.get(place) {
            if moved.turn != Turn::Responses {
                self.senders[moved.sender].entry = place as u32;
            }
        }
        if nic.last == place {
            // The entry that has moved here is next.
            nic.next_is(place);
        }
    }

    /// The index of the flow that sends next: the first one that the law does not hold.
    pub(super) fn choose(&mut self, site: &mut Site, host: u32, paused: bool) -> Option<usize> {
        if self.common.windows_follow_time && self.own[host].algorithm.window_follows_time() {
            self.update_windows(site.net.now, host);
        }
        loop {
            let nic = &self.nics[host as usize];
            let (chosen, finished) = nic.choose(site.net.now, paused, site.config.rounding);
            let chosen = match finished {
                Some(first) => self.forget_finished(site, host, first, chosen),
                None => chosen,
            };
            if chosen.is_none_or(|place| self.law_lets_go(site, host, place)) {
                return chosen;
            }
        }
    }

    /// Handles timers of a host's flows, which may change their windows.
    fn update_windows(&mut self, now: Time<Sim>, host: u32) {
        for entry in &mut self.nics[host as usize].flows {
            let sender = &mut self.senders[entry.sender];
            sender.cc.advance(now);
            sender.limits = sender.cc.limits();
            entry.state = sender.state();
        }
    }

    /// Removes finished flows from the round robin, from index `first` on, as ns-3 does. Returns the new
    /// index of the chosen one.
    fn forget_finished(
        &mut self,
        site: &mut Site,
        host: u32,
        first: usize,
        chosen: Option<usize>,
    ) -> Option<usize> {
        let flows = &mut self.nics[host as usize].flows;
        let (mut to, mut chosen_to) = (first, chosen);
        for from in first..flows.len() {
            let entry = flows[from];
            let sender = &mut self.senders[entry.sender];
            if entry.state == State::Finished {
                sender.entry = NONE;
                let connection = sender.connection;
                site.network.outcomes.sent(sender.current.flow, sender.sent);
                self.senders.remove(connection);
                continue;
            }
            if chosen == Some(from) {
                chosen_to = Some(to);
            }
            sender.entry = to as u32;
            flows[to] = entry;
            to += 1;
        }
        flows.truncate(to);
        chosen_to
    }

    pub(super) fn sleep(&mut self, site: &mut Site, host: u32) {
        let nic = &self.nics[host as usize];
        let Some(due) = nic.next_due(site.config.rounding) else {
            return;
        };
        let sooner = match nic.wake {
            None => true,
            Some((at, _)) => site.config.rounding == Rounding::Exact && due < at,
        };
        if sooner && due > site.net.now {
            self.wake_at(site, host, due);
        }
    }

    /// Moves a pending wake forward.
    pub(super) fn wake_earlier(&mut self, site: &mut Site, host: u32, due: Time<Sim>) {
        if self.nics[host as usize]
            .wake
            .is_some_and(|(at, _)| due < at)
        {
            self.wake_at(site, host, due.max(site.net.now));
        }
    }

    fn wake_at(&mut self, site: &mut Site, host: u32, at: Time<Sim>) {
        let place = site.net.events.schedule(at, Rank::Own, What::Wake { host });
        self.nics[host as usize].wake = Some((at, place));
    }

    /// Handles a wake, unless another one has replaced it.
    pub(crate) fn woken(&mut self, site: &mut Site, host: u32) {
        let nic = &mut self.nics[host as usize];
        if nic.wake == Some((site.net.now, site.net.place)) {
            nic.wake = None;
            self.send(site, host);
        }
    }
}
