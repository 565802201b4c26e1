// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the synchronisation needs of the machine on which it runs: packets with time stamps, clocks, and how long it had
//! to wait for a processor. [`crate::stamps::Socket`] is the real one; a simulation has its own.

use std::{collections::BTreeSet, net::SocketAddr};

/// A packet's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// CLOCK_MONOTONIC when the kernel stamped it, ns.
    pub at_mono_ns: i64,
    /// CLOCK_MONOTONIC when this process had it, ns.
    pub read_mono_ns: i64,
}

/// CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW at one instant, ns. No program changes the rate of the latter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// CLOCK_MONOTONIC.
    pub mono_ns: i64,
    /// CLOCK_MONOTONIC_RAW.
    pub raw_ns: i64,
}

/// Takes a datagram: its sender, its bytes, and its stamp, if the kernel stamped it.
pub type Received<'a> = &'a mut dyn FnMut(SocketAddr, &[u8], Option<Stamped>);

/// Takes a transmit stamp: id and index of a probe or an ack, and when it left.
pub type Transmitted<'a> = &'a mut dyn FnMut(u32, u8, Stamped);

/// How long this thread has lacked a processor since it began, ns. None: the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacked {
    /// Time for which it could run, and others ran (`/proc/thread-self/schedstat`).
    pub waited_ns: Option<i64>,
    /// Time that the hypervisor took from the machine, the mean of its processors (`/proc/stat`, steal).
    pub stolen_ns: Option<i64>,
}

/// A machine on which a host's synchronisation runs.
pub trait Machine {
    /// CLOCK_MONOTONIC, ns.
    fn now_mono_ns(&mut self) -> i64;

    /// Both clocks, read beside each other; none if that took too long to be exact.
    fn beside(&mut self) -> Option<Beside>;

    /// Sends a datagram; a network that refuses it has lost it. Says whether it left.
    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> bool;

    /// Hands over every datagram that waits. True: the wall clock was stepped, so stamps of what is under way mean
    /// nothing.
    fn receive(&mut self, each: Received<'_>) -> bool;

    /// Hands over the transmit stamps of our probes and acks. True: as for [`Machine::receive`].
    fn transmitted(&mut self, each: Transmitted<'_>) -> bool;

    /// Hears only datagrams from these ports from now on, where the machine can tell before they take room in a queue.
    fn hear(&mut self, _ports: &BTreeSet<u16>) {}

    /// Datagrams that the machine has dropped before they could be received.
    fn dropped(&self) -> u64 {
        0
    }

    /// Whether it was suspended since the last call.
    fn was_suspended(&mut self) -> bool;

    /// How long the thread has lacked a processor.
    fn lacked(&mut self) -> Lacked;

    /// Processor time of the thread, ns.
    fn cpu_ns(&mut self) -> i64;
}
