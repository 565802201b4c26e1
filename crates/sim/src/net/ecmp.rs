// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The hash by which a switch chooses among equal-cost paths: MurmurHash3 (32 bits, A. Appleby) of a flow's
//! addresses and ports, seeded with the switch's number, as in the HPCC authors' simulator.

/// IPv4 address of a host: 11.x.y.1, as the HPCC authors' simulator numbers them.
pub fn address(host: u32) -> u32 {
    0x0b00_0001 + ((host / 256) << 16) + ((host % 256) << 8)
}

/// Source port of the n-th flow of a pair of hosts, and the destination port, as in that simulator.
pub fn flow_ports(n: u32) -> (u16, u16) {
    (10_000u16.wrapping_add(n as u16), 100)
}

/// Hash of packets from `src` to `dst` with these source and destination ports.
pub(crate) fn hash(src: u32, dst: u32, ports: (u16, u16), switch: u32) -> u32 {
    let words = [
        address(src),
        address(dst),
        u32::from(ports.0) | u32::from(ports.1) << 16,
    ];
    murmur3(&words, switch)
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
