// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The network: topologies, routes, packets, ports, switches.
//!
//! Does not know what hosts do with packets.

pub(crate) mod carried;
pub(crate) mod config;
pub(crate) mod counters;
pub(crate) mod ecmp;
pub(crate) mod fabric;
pub(crate) mod idle_path;
pub(crate) mod packet;
pub(crate) mod partition;
pub(crate) mod port_name;
pub(crate) mod topology;
pub(crate) mod what;
