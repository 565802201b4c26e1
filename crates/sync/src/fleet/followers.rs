// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who may still follow a fleet time. Hosts that know nothing of it must not begin another one meanwhile.

use onramp_units::Span;

use super::{Clock, Fleet, Host, Report, Window};

impl Fleet {
    /// The same fleet, whose hosts may follow a correction for so long.
    pub fn followed_for(self, time: Span) -> Fleet {
        Fleet {
            followed_s: time.as_s_f64(),
            ..self
        }
    }

    /// So much time has passed since the last window.
    pub fn pass(&mut self, time: Span) {
        let left = |s: f64| f64::max(s - time.as_s_f64(), 0.0);
        for host in &mut self.hosts {
            host.follows_s = left(host.follows_s);
        }
        self.gone_follow_s = left(self.gone_follow_s);
        self.outnumbered_s = self.outnumbered_s.map(|s| s + time.as_s_f64());
    }

    /// Nothing is known of so many hosts: each may follow a fleet time until it says that it does not. For use before the first
    /// window.
    pub fn suspect(&mut self, hosts: usize) {
        let any = Host {
            clock: None,
            follows_s: self.followed_s,
            waited: 0,
        };
        self.hosts = vec![any; hosts];
    }

    /// A host says that it follows nothing. For use before the first window that has told anybody a fleet time.
    pub fn acquit(&mut self, host: usize) {
        if let Some(known) = self
            .hosts
            .get_mut(host)
            .filter(|known| known.clock.is_none())
        {
            known.follows_s = 0.0;
        }
    }

    /// Hosts that are not among `old` leave, and may still follow what they were told.
    pub(super) fn see_off(&mut self, old: &[Option<usize>]) {
        let mut stays = vec![false; self.hosts.len()];
        old.iter().flatten().for_each(|host| {
            if let Some(stays) = stays.get_mut(*host) {
                *stays = true;
            }
        });
        let gone = self.hosts.iter().zip(stays).filter(|(_, stays)| !stays);
        let follow_s = gone.map(|(host, _)| host.follows_s);
        self.gone_follow_s = follow_s.fold(self.gone_follow_s, f64::max);
    }

    /// Who was told something may follow it.
    pub(super) fn note_followers(&mut self, window: &Window) {
        let nobody = window.corrections.iter().all(Result::is_err);
        for (host, published) in self.hosts.iter_mut().zip(&window.corrections) {
            if published.is_ok() {
                host.follows_s = self.followed_s;
            }
            // While nobody is told anything, whoever follows nothing keeps nobody from beginning anew.
            if nobody && host.follows_s == 0.0 {
                host.clock = None;
            }
        }
    }

    /// A few hosts that have the fleet time do not keep most hosts from having one: after a while nobody is told any more, until
    /// nobody follows it.
    pub(super) fn count_waiting(&mut self, reports: &[Report], counts: &[bool], window: &Window) {
        let mut waits = vec![false; self.hosts.len()];
        let waiting = reports.iter().zip(counts).filter(|(_, counts)| !**counts);
        for (report, _) in waiting {
            waits[report.near] = true;
            waits[report.far] = true;
        }
        let waiting = waits.into_iter().filter(|waits| *waits).count();
        let published = window
            .corrections
            .iter()
            .filter(|published| published.is_ok())
            .count();
        let since_s = self.outnumbered_s.unwrap_or(0.0);
        self.outnumbered_s = (waiting > published).then_some(since_s);
    }

    /// The estimate of each host. A new host gets its base from a neighbour that has one. An island of new hosts has none while
    /// anybody may follow a fleet time that it does not know; otherwise its first host has the base 0.
    pub(super) fn bases(&self, reports: &[Report]) -> Vec<Option<Clock>> {
        let hosts = self.hosts.len();
        let is_over = self.outnumbered_s.is_some_and(|s| s > self.followed_s);
        let clock = |host: &Host| host.clock.filter(|_| !is_over);
        let mut clocks: Vec<Option<Clock>> = self.hosts.iter().map(clock).collect();
        let begins = clocks.iter().all(Option::is_none) && !self.is_followed();
        let mut neighbours: Vec<Vec<(usize, i64)>> = vec![vec![]; hosts];
        for report in reports {
            neighbours[report.near].push((report.far, report.line.about_ns));
            neighbours[report.far].push((report.near, -report.line.about_ns));
        }
        let mut open: Vec<usize> = (0..hosts).filter(|host| clocks[*host].is_some()).collect();
        for first in 0..hosts {
            if begins && clocks[first].is_none() && open.is_empty() {
                clocks[first] = Some(Clock::at(0));
                open.push(first);
            }
            while let Some(host) = open.pop() {
                let base_ns = clocks[host].map_or(0, |clock| clock.base_ns);
                for (other, ahead_ns) in &neighbours[host] {
                    if clocks[*other].is_none() {
                        clocks[*other] = Some(Clock::at(base_ns.saturating_add(*ahead_ns)));
                        open.push(*other);
                    }
                }
            }
        }
        clocks
    }

    /// Whether anybody may follow a correction.
    fn is_followed(&self) -> bool {
        self.gone_follow_s > 0.0 || self.hosts.iter().any(|host| host.follows_s > 0.0)
    }
}
