// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The plan of flows: which flows there are, which wait for others, which share a connection, and what
//! became of each.

pub(crate) mod chains;
pub(crate) mod flow;
pub(crate) mod list;
pub(crate) mod network;
pub(crate) mod outcomes;
pub(crate) mod starts;
pub(crate) mod streams;
pub(crate) mod table;
