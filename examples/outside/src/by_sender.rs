// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A choice of paths: all flows of a host take the same way at a switch (S-mod-k).

use onramp_cc::path::{Entry, Fork, PathChoice};

pub static ENTRY: Entry = Entry::new(
    "by_sender",
    "by the number of the sending host modulo the number of ways",
    |_| Box::new(BySender),
);

#[derive(Debug)]
struct BySender;

impl PathChoice for BySender {
    fn choose(&self, fork: &Fork) -> usize {
        fork.src as usize % fork.ways
    }
}
