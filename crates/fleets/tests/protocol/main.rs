// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whole fleets: synchronisation, registration and etcd on simulated time. Each fact runs under several seeds, of which each gives
//! another network, other clocks and other delays. A seed that fails is printed; `ONRAMP_FLEET_SEED=N` runs it alone.
mod discipline;
mod election;
mod etcd;
mod fleet;
mod membership;
