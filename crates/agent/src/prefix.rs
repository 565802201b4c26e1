// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A set of peers: an IP prefix, as `--peers` takes it.
use std::{net::IpAddr, str::FromStr};

use anyhow::{bail, Context, Result};

/// A prefix of IPv4 or IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub addr: IpAddr,
    /// Length of the prefix.
    pub bits: u8,
}

impl Prefix {
    /// One host.
    pub fn host(addr: IpAddr) -> Prefix {
        let bits = if addr.is_ipv4() { 32 } else { 128 };
        Prefix { addr, bits }
    }

    /// Whether an address has the prefix.
    pub fn contains(&self, addr: IpAddr) -> bool {
        let differ = match (self.addr, addr) {
            (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
            (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
            _ => return false,
        };
        u32::from(self.bits) <= differ.leading_zeros()
    }

    /// Whether it is a subnet in which other hosts are found: not one address, and not link-local.
    pub fn has_others(&self) -> bool {
        let is_link_local = match self.addr {
            IpAddr::V4(addr) => addr.is_link_local(),
            IpAddr::V6(addr) => addr.is_unicast_link_local(),
        };
        !is_link_local && *self != Prefix::host(self.addr)
    }

    /// The subnet of an interface's address; none if it has no netmask.
    pub fn of_interface(a: &nix::ifaddrs::InterfaceAddress) -> Option<Prefix> {
        let (addr, mask) = (a.address.as_ref()?, a.netmask.as_ref()?);
        if let (Some(addr), Some(mask)) = (addr.as_sockaddr_in(), mask.as_sockaddr_in()) {
            let bits = u32::from(mask.ip()).count_ones() as u8;
            return Some(Prefix {
                addr: addr.ip().into(),
                bits,
            });
        }
        let (addr, mask) = (addr.as_sockaddr_in6()?, mask.as_sockaddr_in6()?);
        let bits = u128::from(mask.ip()).count_ones() as u8;
        Some(Prefix {
            addr: addr.ip().into(),
            bits,
        })
    }
}

impl FromStr for Prefix {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (addr, bits) = text.split_once('/').unwrap_or((text, ""));
        let addr: IpAddr = addr
            .parse()
            .with_context(|| format!("{addr} is not an IP address; write e.g. 10.0.0.0/8"))?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            "" => most,
            _ => bits.parse().with_context(|| {
                format!("the prefix length {bits} is not a number from 0 to {most}")
            })?,
        };
        if bits > most {
            bail!("the prefix length of {text} is {bits}, above {most}");
        }
        Ok(Prefix { addr, bits })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_bounds() {
        assert_eq!("10.0.0.0/8".parse::<Prefix>().unwrap().bits, 8);
        assert_eq!("fd00::1".parse::<Prefix>().unwrap().bits, 128);
        assert!("10.0.0.0/33".parse::<Prefix>().is_err());
    }

    #[test]
    fn a_prefix_contains_the_addresses_that_begin_with_it() {
        for (prefix, addr, is_in) in [
            ("10.0.0.1/24", "10.0.0.255", true),
            ("10.0.0.1/24", "10.0.1.0", false),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.0", false),
            ("0.0.0.0/0", "255.0.0.1", true),
            ("fd00::1/64", "fd00::ffff", true),
            ("fd00::1/64", "fd00:0:0:1::", false),
            ("::/0", "10.0.0.1", false),
        ] {
            let parsed: Prefix = prefix.parse().unwrap();
            assert_eq!(
                parsed.contains(addr.parse().unwrap()),
                is_in,
                "{prefix} {addr}"
            );
        }
    }
}
