// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that go in order over one connection: chunks of a ring, which wait for those before them in two
//! ways. Each starts when its host has what it passes on, and goes behind what its host had to send
//! earlier.

use crate::net::packet::NONE;
use onramp_scenario::Arrival;
use std::collections::HashMap;

/// Which flows of a plan share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Streams {
    /// By flow: the first one of its connection; the one before it and the next one, or `NONE`. Empty: none
    /// shares any.
    openers: Vec<u32>,
    before: Vec<u32>,
    next: Vec<u32>,
}

impl Streams {
    pub fn of(arrivals: &[Arrival]) -> Streams {
        if !arrivals.iter().any(|arrival| arrival.in_order) {
            return Streams::default();
        }
        let mut streams = Streams {
            openers: (0..arrivals.len() as u32).collect(),
            before: vec![NONE; arrivals.len()],
            next: vec![NONE; arrivals.len()],
        };
        let mut last = HashMap::new();
        for (flow, arrival) in (0..).zip(arrivals).filter(|(_, arrival)| arrival.in_order) {
            let stream = (arrival.traffic, arrival.src, arrival.dst);
            if let Some(before) = last.insert(stream, flow) {
                streams.before[flow as usize] = before;
                streams.next[before as usize] = flow;
                streams.openers[flow as usize] = streams.openers[before as usize];
            }
        }
        streams
    }

    /// The flow that opens the connection of `flow`.
    pub fn opener(&self, flow: u32) -> u32 {
        let opener = self.openers.get(flow as usize);
        opener.copied().unwrap_or(flow)
    }

    /// The flow before `flow` on its connection.
    pub fn before(&self, flow: u32) -> Option<u32> {
        of(&self.before, flow)
    }

    /// The flow behind `flow` on its connection.
    pub fn next(&self, flow: u32) -> Option<u32> {
        of(&self.next, flow)
    }
}

fn of(others: &[u32], flow: u32) -> Option<u32> {
    let other = others.get(flow as usize).copied();
    other.filter(|&other| other != NONE)
}

/// The bytes of a flow in its connection's sequence: from `first` on, up to `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub flow: u32,
    pub first: u64,
    pub end: u64,
}
