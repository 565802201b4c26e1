// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Equal-cost multipath (ECMP): MurmurHash3 (32 bits, A. Appleby) of a flow's addresses and ports, seeded with the
//! switch's number, as in the HPCC authors' simulator.

use super::{Entry, Fork, PathChoice};
use crate::{parameters, Bounds, ParameterValue, Parameters};

parameters! { in "network.": "hash", {
    "seed" seed: u32 = 0, Bounds::Count(0, u32::MAX), "Added to the seed of each switch, which is its number: other flows share paths.";
} }

pub(super) static ENTRY: Entry = Entry {
    name: "hash",
    about: "by a hash of addresses and ports (ECMP), as the HPCC authors' simulator does",
    parameters: PARAMETERS,
    choice: |given| {
        let mut params = Params::default();
        params.tune(given);
        Box::new(params)
    },
};

impl PathChoice for Params {
    fn choose(&self, fork: &Fork) -> usize {
        let words = [
            address(fork.src),
            address(fork.dst),
            u32::from(fork.ports.0) | u32::from(fork.ports.1) << 16,
        ];
        murmur3(&words, fork.switch.wrapping_add(self.seed)) as usize % fork.ways
    }

    fn get(&self, name: &str) -> Option<ParameterValue> {
        Parameters::get(self, name)
    }
}

/// IPv4 address of a host: 11.x.y.1, as the HPCC authors' simulator numbers them.
pub fn address(host: u32) -> u32 {
    0x0b00_0001 + ((host / 256) << 16) + ((host % 256) << 8)
}

fn murmur3(words: &[u32], seed: u32) -> u32 {
    let mixed = words.iter().fold(seed, |hash, word| {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15);
        let hash = hash ^ word.wrapping_mul(0x1b87_3593);
        hash.rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64)
    });
    let mut hash = mixed ^ (words.len() as u32 * 4);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_murmur3() {
        // Published vectors of MurmurHash3_x86_32.
        assert_eq!(murmur3(&[], 1), 0x514E_28B7);
        assert_eq!(murmur3(&[0xFFFF_FFFF], 0), 0x7629_3B50);
        assert_eq!(murmur3(&[0x8765_4321], 0), 0xF55B_516B);
    }

    #[test]
    fn addresses_are_the_references() {
        assert_eq!(address(0), 0x0b00_0001);
        assert_eq!(address(319), 0x0b01_3f01);
    }
}
