// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TCP as Linux has it, without sockets, clocks and packets: what to send, and what arrives means.
//!
//! Sequence numbers count packets: every packet but a flow's last is full, so the n-th has a fixed
//! place. Connections exist from the start: no handshakes. Does not: know queues or the network.

pub mod receiver;
mod rtt;
pub mod sender;

pub(crate) use crate::net::carried::Acknowledgement;
