// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Huygens: clocks synchronised in software, from probes alone (Geng et al., NSDI 2018; On-Ramp,
//! NSDI 2021, section 3.3). What is known of it and what we choose: `shared/facts/huygens.md`.
//!
//! Does: keep the probe pairs that met no queue ([`probe`]), fit a line between the two clouds of
//! points that an edge's probes make ([`line`]), reconcile all edges of the mesh ([`mesh`]), follow
//! the fleet's hosts from window to window ([`fleet`], a Kalman filter each), and hand a host its
//! correction without a step ([`correction`]).
//! [`synthetic`] has clocks that are wrong in a known way.
//! Does not: open sockets, read clocks, start threads. Time stamps come in, corrections go out.
#![warn(missing_docs)]

pub mod correction;
mod filter;
pub mod fleet;
pub mod line;
pub mod mesh;
pub mod probe;
pub mod synthetic;
