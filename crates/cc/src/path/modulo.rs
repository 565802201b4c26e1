// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Destination-modulo routing (D-mod-k; Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations
//! on real life fat trees", 2010): all flows to a host take the same way at a switch.

use super::{Entry, Fork, PathChoice};

pub(super) static ENTRY: Entry = Entry {
    name: "modulo",
    about: "by the number of the receiving host modulo the number of ways (D-mod-k)",
    parameters: &[],
    choice: |_| Box::new(Modulo),
};

#[derive(Debug)]
struct Modulo;

impl PathChoice for Modulo {
    fn choose(&self, fork: &Fork) -> usize {
        fork.dst as usize % fork.ways
    }
}
