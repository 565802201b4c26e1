// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! An address as bytes, for messages, tags and hashes.

use std::net::{IpAddr, SocketAddr};

/// An address in 18 bytes; IPv4 as IPv4-mapped.
pub(crate) fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}
