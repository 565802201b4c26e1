// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Ports of flows, by which switches choose among equal-cost paths.

/// Source port of the n-th flow of a pair of hosts, and the destination port, as in the HPCC authors' simulator.
pub fn flow_ports(n: u32) -> (u16, u16) {
    (10_000u16.wrapping_add(n as u16), 100)
}
