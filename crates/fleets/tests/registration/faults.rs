// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Random faults: at every message one may happen, and each fault ends.

use std::collections::BTreeMap;

use onramp_fleets::etcd::Delay;
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

use crate::world::{MS, S};

/// What happens at some time.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Reset(usize),
    Cut(usize, bool),
    Pause(usize, i64),
    Kill(usize),
    Leave(usize),
    Start(usize),
    Unfit(usize, bool),
    Refuse(usize, bool),
    Down(bool),
    PauseEtcd(i64),
    Endpoint(usize, bool),
    Wipe,
    /// An operator removes the key of a host,
    Remove(usize),
    /// or writes it.
    Overwrite(usize),
}

/// The faults of a run.
pub struct Faults {
    random: ChaCha8Rng,
    /// The present time, which messages do not carry.
    now: i64,
    /// No faults after this time.
    until: i64,
    /// One message in so many has a fault.
    one_in: u64,
    /// The longest delay of an ordinary message.
    slowest: i64,
    hosts: usize,
    due: BTreeMap<(i64, u64), Fault>,
    count: u64,
}

impl Faults {
    pub fn none() -> Faults {
        Faults::of(0, 0)
    }

    /// The faults of a seed, which are still to begin.
    pub fn of(seed: u64, hosts: usize) -> Faults {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let one_in = 4 << (random.next_u64() % 6);
        let slowest = MS << (random.next_u64() % 7);
        Faults {
            random,
            now: 0,
            until: 0,
            one_in,
            slowest,
            hosts,
            due: BTreeMap::new(),
            count: 0,
        }
    }

    /// Faults happen from now on.
    pub fn begin(&mut self, now: i64, until: i64) {
        (self.now, self.until) = (now, until);
    }

    /// All faults end now.
    pub fn end(&mut self) {
        self.due.clear();
        self.until = 0;
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    pub fn any_host(&mut self) -> usize {
        self.below(self.hosts as u64) as usize
    }

    pub fn wakes_at(&self) -> i64 {
        self.due
            .first_key_value()
            .map_or(i64::MAX, |((at, _), _)| *at)
    }

    /// The faults that happen now.
    pub fn due(&mut self, now: i64) -> Vec<Fault> {
        self.now = now;
        let later = self.due.split_off(&(now + 1, 0));
        std::mem::replace(&mut self.due, later)
            .into_values()
            .collect()
    }

    pub fn plan(&mut self, at: i64, fault: Fault) {
        self.count += 1;
        self.due.insert((at, self.count), fault);
    }

    /// The delay of a message from or to a host.
    pub fn of_message(&mut self, host: usize) -> Delay {
        let usual = 50_000 + self.below(self.slowest.max(1) as u64) as i64;
        if self.now >= self.until {
            return Some(50_000 + usual % (2 * MS));
        }
        if self.below(self.one_in) > 0 {
            return Some(usual);
        }
        match self.below(8) {
            0 | 1 => None,
            2 | 3 => Some(self.below(3 * S as u64) as i64),
            4 => {
                self.plan(self.now, Fault::Reset(host));
                Some(usual)
            }
            _ => {
                self.any();
                Some(usual)
            }
        }
    }

    /// Some fault now, or soon, and its end.
    fn any(&mut self) {
        let at = self.now + self.below(2) as i64 * self.below(50 * MS as u64) as i64;
        let n = self.any_host();
        let end = at + self.below(6 * S as u64) as i64;
        let (fault, ends) = match self.below(16) {
            0 | 1 => (Fault::Cut(n, true), Some(Fault::Cut(n, false))),
            2 | 3 => (Fault::Pause(n, end), None),
            4 | 5 => (Fault::Kill(n), Some(Fault::Start(n))),
            6 | 7 => (Fault::Leave(n), Some(Fault::Start(n))),
            8 | 9 => (Fault::Unfit(n, true), None),
            10 => (Fault::Refuse(n, true), Some(Fault::Refuse(n, false))),
            11 => (Fault::Down(true), Some(Fault::Down(false))),
            12 => (Fault::PauseEtcd(end), None),
            13 => (
                Fault::Endpoint(n % 2, false),
                Some(Fault::Endpoint(n % 2, true)),
            ),
            14 => (Fault::Remove(n), Some(Fault::Unfit(n, false))),
            _ => match self.below(3) {
                0 => (Fault::Wipe, None),
                1 => (Fault::Overwrite(n), None),
                _ => (Fault::Start(n), None),
            },
        };
        self.plan(at, fault);
        if let Some(ends) = ends {
            self.plan(end, ends);
        }
    }
}
