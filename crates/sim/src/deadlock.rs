// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Deadlocks of priority flow control: ports that wait for each other in a circle, so that their packets never leave.
//!
//! A port may wait for ever if the switch at the other end would keep it paused although everything left that switch
//! except what waits in ports that wait for ever. That needs a cyclic buffer dependency (Hu et al., HotNets 2016), and more:
//! buffers so full that none of its ports resumes.

use crate::net::fabric::memory::{Ingress, Memory};
use crate::simulation::Simulation;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A paused port, and what waits at the switch that has paused it.
struct Wait {
    /// The switch that has paused it.
    switch: u32,
    /// The memory of that switch.
    memory: Memory,
    /// Its bytes that came from this port.
    ingress: Ingress,
    /// These bytes by the paused ports of the switch in whose queues they are.
    behind: BTreeMap<u32, u64>,
}

/// Ports that wait for each other in a circle, each for the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Names of the ports.
    pub ports: Vec<String>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.ports.first().map_or("", String::as_str);
        let ports = self.ports.join(" waits for ");
        write!(
            f,
            "priority flow control is in a deadlock: {ports} waits for {first}. What is queued there never leaves"
        )
    }
}

impl Simulation {
    /// A circle of paused ports that never send again, if there is one now; ports are called `names`. What has left a port
    /// and has not arrived counts as gone.
    pub fn deadlock(&self, names: &[String]) -> Option<Deadlock> {
        let ports = self.circle_of_waits()?;
        let names = ports.iter().map(|port| names[*port as usize].clone());
        Some(Deadlock {
            ports: names.collect(),
        })
    }

    fn circle_of_waits(&self) -> Option<Vec<u32>> {
        let mut waits = self.waits();
        loop {
            let waiting: BTreeSet<u32> = waits.keys().copied().collect();
            let of_waiting = |wait: &mut Wait| wait.behind.retain(|port, _| waiting.contains(port));
            waits.values_mut().for_each(of_waiting);
            let used = used(&waits);
            let resumes = |wait: &Wait| {
                let memory = Memory {
                    used: used[&wait.switch],
                    ..wait.memory
                };
                wait.left().may_resume(&memory)
            };
            waits.retain(|_, wait| !resumes(wait));
            if waits.len() == waiting.len() {
                return circle(&waits);
            }
        }
    }

    /// Ports that switches have paused.
    fn waits(&self) -> BTreeMap<u32, Wait> {
        // Each domain has all ports, and uses its own.
        let count = self
            .each()
            .next()
            .map_or(0, |domain| domain.site.net.ports.len());
        let is_paused = |port: &u32| self.domain_of(*port).site.net.ports[*port as usize].paused;
        let paused: Vec<u32> = (0..count as u32).filter(is_paused).collect();
        let wait = |port: &u32| Some((*port, self.wait(*port, &paused)?));
        paused.iter().filter_map(wait).collect()
    }

    /// `None`: the other end has let the port go on, and the frame is on its way.
    fn wait(&self, port: u32, paused: &[u32]) -> Option<Wait> {
        let domain = self.domain_of(port ^ 1);
        let net = &domain.site.net;
        let other = &net.ports[(port ^ 1) as usize];
        let queues = paused
            .iter()
            .filter(|queue| net.ports[**queue as usize].node == other.node);
        let bytes = |queue: &u32| {
            let waiting = net.ports[*queue as usize].data.each(&net.packets);
            let of_port = waiting.filter(|packet| u32::from(packet.at_port) == port ^ 1);
            of_port.map(|packet| u64::from(packet.wire_bytes)).sum()
        };
        let behind = queues
            .map(|queue| (*queue, bytes(queue)))
            .filter(|(_, bytes)| *bytes > 0);
        other.ingress.is_pausing().then(|| Wait {
            switch: other.node,
            memory: net.memories[other.node as usize],
            ingress: other.ingress,
            behind: behind.collect(),
        })
    }
}

impl Wait {
    /// The bytes of this port that wait for ever, if all of `behind` do.
    fn left(&self) -> Ingress {
        self.ingress.with_only(self.behind.values().sum())
    }
}

/// Bytes of the shared memory of each switch that wait for ever.
fn used(waits: &BTreeMap<u32, Wait>) -> BTreeMap<u32, u64> {
    let mut used = BTreeMap::new();
    for wait in waits.values() {
        *used.entry(wait.switch).or_default() += wait.left().shared_used();
    }
    used
}

/// Follows the waits until a port comes again. What a port waits for waits, too.
fn circle(waits: &BTreeMap<u32, Wait>) -> Option<Vec<u32>> {
    let mut passed = vec![*waits.keys().next()?];
    loop {
        let next = *waits[passed.last()?].behind.keys().next()?;
        if let Some(first) = passed.iter().position(|port| *port == next) {
            return Some(passed.split_off(first));
        }
        passed.push(next);
    }
}
