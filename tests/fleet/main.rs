// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Fleets through etcd: real `onramp clock run` processes on addresses of loopback, and Debian's etcd
//! (`make setup` fetches it). Each process has a clock that is wrong in its own way, and all share the
//! kernel's, so whether their fleet times agree is known at any instant.
//!
//! Does not: hold traffic; that nothing is held without fleet time is a fact of tests/daemon
//! (`fleets::`, with etcd in the virtual machine).
mod discipline;
mod faults;
mod hostile;
mod large;
#[path = "../machine.rs"]
mod machine;
mod membership;
mod model;
mod quota;
mod starved;
mod world;
