// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The same traffic three times: without On-Ramp, with daemons that hold nothing, and with daemons that hold.
use std::collections::BTreeMap;

use nix::sys::signal::Signal;

use crate::{
    agent::Agent,
    net::Host,
    tcp::{finish_all, transfers, Load},
};

/// What daemons keep that hold nothing, and those that hold. Goodputs of 1.5 s vary by 5 %; held flows have had 80 of
/// 94 Mbit/s in one fact, and over 91 in the others.
const OFF_KEEPS: f64 = 0.93;
const HELD_KEEPS: f64 = 0.75;

/// Where the daemons run, and with which options.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    pub sender: &'a Host,
    pub receiver: &'a Host,
    pub at_sender: &'a [&'a str],
    pub at_receiver: &'a [&'a str],
}

impl<'a> Ends<'a> {
    pub fn of(sender: &'a Host, receiver: &'a Host) -> Self {
        Self {
            sender,
            receiver,
            at_sender: &[],
            at_receiver: &[],
        }
    }

    fn start(&self, more: &[&str]) -> [Agent; 2] {
        [
            (self.sender, self.at_sender),
            (self.receiver, self.at_receiver),
        ]
        .map(|(host, options)| Agent::start(host, &[options, more].concat()))
    }
}

/// The counters of a daemon.
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    pub fn of(agent: &Agent) -> Self {
        Self(agent.status().counters)
    }

    pub fn get(&self, name: &str) -> u64 {
        *self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("no counter {name}"))
    }
}

/// Goodputs, Mbit/s, and the counters of the daemons that held.
pub struct Compared {
    pub without: f64,
    pub off: f64,
    pub held: f64,
    pub sender: Counters,
    pub receiver: Counters,
}

impl Compared {
    pub fn assert_kept(&self) {
        assert!(self.off > OFF_KEEPS * self.without, "holding nothing");
        assert!(self.held > HELD_KEEPS * self.without, "holding");
    }

    /// Flows were held, by OR-ACKs as usual.
    pub fn assert_held(&self) {
        self.assert_kept();
        assert!(self.sender.get("oracks_used") > 50, "OR-ACKs are used");
        assert!(self.sender.get("holds") > 0, "nothing was held");
    }

    /// Flows passed as if nothing were there.
    pub fn assert_unheld(&self) {
        self.assert_kept();
        assert_eq!(self.sender.get("holds"), 0, "holds");
        assert_eq!(self.sender.get("oracks_used"), 0, "OR-ACKs used");
    }
}

/// Two flows for 1.5 s; their goodput together.
pub fn two_flows(from: &Host, to: &Host) -> f64 {
    finish_all(transfers(from, to, Load::seconds(1.5), 2))
}

/// Runs the traffic three times, and looks at the daemons afterwards each time.
pub fn compare(ends: Ends, traffic: impl Fn() -> f64) -> Compared {
    let without = traffic();
    let with = |more: &[&str]| {
        let [sender, receiver] = ends.start(more);
        let goodput = traffic();
        sender.assert_harmless();
        receiver.assert_harmless();
        let counters = [&sender, &receiver].map(Counters::of);
        for agent in [sender, receiver] {
            let ended = agent.stop(Signal::SIGTERM);
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        (goodput, counters)
    };
    let (off, _) = with(&["--law", "off"]);
    let (held, [sender, receiver]) = with(&[]);
    let text = |counters: &Counters| {
        let counters = counters.0.iter().filter(|(_, count)| **count > 0);
        let words: Vec<String> = counters.map(|(name, n)| format!("{name} {n}")).collect();
        words.join(", ")
    };
    println!("without {without:.1} Mbit/s, law off {off:.1}, with the law {held:.1}");
    println!("sender: {}", text(&sender));
    println!("receiver: {}", text(&receiver));
    Compared {
        without,
        off,
        held,
        sender,
        receiver,
    }
}
