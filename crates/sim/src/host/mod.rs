// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts: RDMA-like NICs ([`nic`]) or Linux TCP ([`kernel`]), never both in a simulation; On-Ramp at both,
//! and their clocks.

pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod delays;
pub(crate) mod edge;
pub(crate) mod kernel;
pub(crate) mod nic;
pub(crate) mod per_host;
pub(crate) mod rtts;
pub(crate) mod site;
