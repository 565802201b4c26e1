// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compares the system clock with the leader's after every verdict. With `--discipline` it follows.

use tracing::{info, warn};

use super::Engine;
use crate::{
    status::{FleetClock, Follows},
    system::{follow, Act},
    wall::{Wall, MOST_RATE},
};

impl Engine {
    /// Fleet time, while it is valid.
    pub(super) fn fleet_clock(&self, now: i64) -> Option<FleetClock> {
        self.published
            .course?
            .clock(&self.own.scale, self.published.trust.doubt_ns, now)
    }

    /// This host's system clock, for the hosts that follow it.
    pub(super) fn wall(&mut self, now: i64) -> Option<Wall> {
        let clock = self.fleet_clock(now)?;
        let (wall_ns, fast) = self.system.read(&self.own.scale, now);
        let at = clock.fleet(now);
        Some(Wall {
            at,
            ahead_ns: wall_ns.saturating_sub(at.ticks()),
            drift: fast / (1.0 + clock.drift) - 1.0,
        })
    }

    /// Compares the system clock with the one in a verdict, and steers it with `--discipline`.
    pub(super) fn compare(&mut self, wall: Option<&Wall>, now: i64) {
        let wall = wall.filter(|wall| wall.is_believable());
        let (Some(wall), Some(clock)) = (wall, self.fleet_clock(now)) else {
            self.published.system.ahead_ns = None;
            return;
        };
        let (reads_ns, fast) = self.system.read(&self.own.scale, now);
        let ahead_ns = reads_ns.saturating_sub(wall.read(clock.fleet(now)));
        self.published.system.ahead_ns = Some(ahead_ns);
        if self.central.is_some() {
            return self.hold_over(now);
        }
        if self.published.system.follows != Follows::Leader {
            return;
        }
        if self.system.is_contested() {
            return self.give_up("another program changes its rate; stop it (chronyd, ntpd, systemd-timesyncd) or drop --discipline");
        }
        let rate = self.published.system.rate;
        let should = (1.0 + clock.drift) * (1.0 + wall.drift);
        let needed = should / fast * (1.0 + rate) - 1.0;
        self.needed = needed.clamp(-MOST_RATE, MOST_RATE);
        match follow(ahead_ns, self.needed) {
            Act::Step(by_ns) => self.step_system(by_ns),
            Act::Run(rate) => self.run_system(rate, now),
        }
    }

    /// Without a verdict to follow, the system clock keeps the last correct rate.
    pub(crate) fn hold_over(&mut self, now: i64) {
        if self.published.system.follows == Follows::Leader
            && self.published.system.rate != self.needed
        {
            match self.system.is_contested() {
                true => self.give_up("another program has changed its rate"),
                false => self.run_system(self.needed, now),
            }
            self.needed = self.published.system.rate;
        }
    }

    fn run_system(&mut self, rate: f64, now: i64) {
        match self.system.run(rate, &mut self.own.scale, now) {
            Ok(rate) => self.published.system.rate = rate,
            Err(error) => self.give_up(&format!("the kernel refuses to set it: {error}")),
        }
    }

    fn step_system(&mut self, by_ns: i64) {
        info!(
            "clock: the system clock is stepped by {} ms",
            by_ns / 1_000_000
        );
        self.published.counters.system_steps += 1;
        if let Err(error) = self.system.step(by_ns) {
            self.give_up(&format!("the kernel refuses: {error}"));
        }
    }

    fn give_up(&mut self, why: &str) {
        warn!("clock: the system clock no longer follows the leader's: {why}");
        self.published.system.follows = Follows::GivenUp(why.to_owned());
    }
}
