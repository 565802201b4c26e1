// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fabric: ports, switches' memories and packets, at one instant of simulated time.
//!
//! A fabric has the ports and memories of all nodes, so that numbers are the same in every domain; only
//! those of its own domain change. It moves packets from port to port, and does not know what hosts do with
//! them.

pub(crate) mod mail;
pub(crate) mod memory;
pub(crate) mod port;
pub(crate) mod switch;

use self::mail::Mail;
use self::memory::Memory;
use self::port::Port;
use crate::engine::events::{Event, Events};
use crate::engine::random::Random;
use crate::engine::rounding::{Rounding, WireTimes};
use crate::engine::slab::Slab;
use crate::net::carried::{Acknowledgement, Carried, Carries, Stamp};
use crate::net::config::Switch;
use crate::net::counters::Counters;
use crate::net::packet::{Packet, Packets};
use crate::net::what::What;
use onramp_cc::int::{IntFormat, IntStack};
use onramp_cc::switch::{AtPort, Lines};
use onramp_units::{Rate, Sim, Time};
use std::sync::Arc;

/// Ports, memories, packets, and the events to come.
pub(crate) struct Fabric {
    /// Number of the domain.
    me: usize,
    pub(super) rounding: Rounding,
    pub(super) switch: Switches,
    pub int: IntFormat,
    /// Time and place of the current event, or of the last one.
    pub now: Time<Sim>,
    pub place: u64,
    pub events: Events<What>,
    pub packets: Packets,
    pub carried: Carried,
    pub ports: Vec<Port>,
    /// By node; hosts' are empty.
    pub memories: Vec<Memory>,
    /// By rate.
    pub(super) wire_times: Arc<[WireTimes]>,
    pub(super) random: Random,
    pub counters: Counters,
    /// By domain: packets for it.
    pub outgoing: Vec<Mail>,
    /// Packets that captured ports have begun to send.
    pub captured: Vec<Sent>,
}

/// How switches work.
pub(super) struct Switches {
    pub config: Switch,
    /// By port, if there is a rule.
    pub rules: Vec<AtPort>,
}

/// The initial state that all fabrics of a simulation share.
pub(crate) struct InitialState {
    pub rounding: Rounding,
    pub seed: u64,
    pub domains: usize,
    pub switch: Switch,
    /// Rate of the fastest host.
    pub host_rate: Rate,
    pub int: IntFormat,
    pub wire_times: Arc<[WireTimes]>,
    pub carries: Carries,
    pub ports: Vec<Port>,
    pub memories: Vec<Memory>,
}

impl InitialState {
    /// The rule of each port in its initial state.
    fn rules(&self) -> Vec<AtPort> {
        let hosts = self.host_rate;
        let lines = |port: &Port| Lines {
            port: port.rate,
            hosts,
        };
        let rule = self.switch.rule.iter();
        rule.flat_map(|rule| self.ports.iter().map(move |port| rule.at(lines(port))))
            .collect()
    }
}

/// A packet that a captured port begins to send.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub at: Time<Sim>,
    pub port: u32,
    pub packet: Packet,
    pub stack: IntStack,
    pub stamp: Stamp,
    pub acknowledgement: Acknowledgement,
}

impl Fabric {
    /// The fabric of domain `me` at time zero.
    pub fn new(initial: &InitialState, me: usize) -> Fabric {
        let InitialState { rounding, seed, .. } = *initial;
        Fabric {
            me,
            rounding,
            switch: Switches {
                config: initial.switch.clone(),
                rules: initial.rules(),
            },
            int: initial.int.clone(),
            now: Time::ZERO,
            place: 0,
            events: Events::new(rounding),
            packets: Slab::new(),
            carried: Carried::new(initial.carries),
            ports: initial.ports.clone(),
            memories: initial.memories.clone(),
            wire_times: initial.wire_times.clone(),
            random: Random::new(rounding, seed, initial.memories.len()),
            counters: Counters::default(),
            outgoing: (0..initial.domains).map(|_| Mail::default()).collect(),
            captured: Vec::new(),
        }
    }

    /// A random number in [0, 1) of a node.
    pub fn uniform(&mut self, node: u32) -> f64 {
        self.random.uniform(node)
    }

    pub fn me(&self) -> usize {
        self.me
    }

    /// Sets the current event.
    #[inline]
    pub fn begin(&mut self, event: &Event<What>) {
        self.now = event.at;
        self.place = event.place;
        self.counters.events += 1;
    }

    #[cold]
    pub(super) fn note_sent(&mut self, port: u32, id: u32) {
        self.captured.push(Sent {
            at: self.now,
            port,
            packet: self.packets[id],
            stack: *self.carried.stacks.of(id),
            stamp: *self.carried.stamps.of(id),
            acknowledgement: *self.carried.acknowledgements.of(id),
        });
    }
}
