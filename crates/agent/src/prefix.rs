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
}
