// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet: its members, from a fixed list or from etcd, and how this host takes part.

mod etcd;

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket},
    path::Path,
    sync::{atomic::AtomicBool, mpsc, Arc},
};

use anyhow::{anyhow, bail, Context, Result};
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use nix::net::if_::InterfaceFlags;
use onramp_clock::{
    host::Host,
    keys::Keys,
    members::Members,
    registration,
    registry::{check_address, check_name},
    roster::Roster,
    stamps::Socket,
    status::{FleetClock, OneWayDelays, Status},
    wire::PORT,
};
use onramp_sync::synthetic::Synthetic;
use tracing::{info, warn};

use crate::config::{Config, EtcdKeys, FleetKeys};
use etcd::Etcd;

/// This host's participation in a fleet. When dropped, it leaves the fleet and stops.
pub struct Part {
    etcd: Option<Etcd>,
    host: Host,
    /// What a fixed list of members needs.
    fixed: Option<Fixed>,
}

/// A fleet whose members are a list.
struct Fixed {
    own: SocketAddr,
    sender: mpsc::Sender<Roster>,
}

impl Part {
    /// Fleet time now, while its lease lasts.
    pub fn clock(&self) -> Option<FleetClock> {
        self.host.clock()
    }

    /// Minimum one-way delays to the neighbours.
    pub fn delays(&self) -> Vec<OneWayDelays> {
        self.host.delays()
    }

    /// Signs and checks messages with these keys from now on.
    pub fn set_keys(&self, keys: Keys) {
        self.host.set_keys(keys);
    }

    /// Takes the list of members as it is now. A fleet in etcd changes by itself.
    ///
    /// # Errors
    /// The list is malformed, or this host is not in it.
    pub fn set_members(&self, fleet: &FleetKeys) -> Result<()> {
        let Some(fixed) = &self.fixed else {
            return Ok(());
        };
        let members = members(fleet)?;
        let own = members.own(&[fixed.own.ip()])?;
        if own != fixed.own {
            bail!(
                "the members have this host as {own}, and it takes part as {}; write the former port, or restart the \
                 daemon",
                fixed.own
            );
        }
        Ok(fixed.sender.send(Roster::fixed(members))?)
    }

    /// The addresses of the members, this host's included.
    pub fn members(&self) -> BTreeSet<IpAddr> {
        let members = self.host.members();
        members.all().iter().map(SocketAddr::ip).collect()
    }

    /// The status of the clock and of the fleet.
    pub fn status(&self) -> Status {
        let mut status = self.host.status();
        status.membership.fleet = self.etcd.as_ref().map(Etcd::shown);
        status
    }
}

/// Joins the fleet. `dev`: the device whose traffic is held, if there is one.
///
/// # Errors
/// An option is refused, or the host's address cannot be bound, or etcd refuses the host.
pub fn join(config: &Config, dev: Option<&str>) -> Result<Part> {
    let (fleet, key_file) = (&config.fleet, config.peers.key_file.as_deref());
    let (sender, rosters) = mpsc::channel();
    let is_fixed = config.etcd.servers.is_empty();
    let (own, etcd) = if is_fixed {
        let members = members(fleet)?;
        let own = match &fleet.own {
            Some(text) => members.own(&[address(text)?.ip()])?,
            None => members.own(&own_addresses(None)?)?,
        };
        sender.send(Roster::fixed(members))?;
        (own, None)
    } else {
        let own = etcd_address(config, dev)?;
        (own, Some(config.etcd.config(own)?))
    };
    let fixed = is_fixed.then(|| Fixed {
        own,
        sender: sender.clone(),
    });
    let keys = key_file.map_or(Ok(Keys::well_known()), Keys::read)?;
    if key_file.is_none() {
        warn!(
            "clock messages are not authenticated: anyone who can send packets to this host can \
             set its fleet time; add --key-file"
        );
    }
    let unfit = Arc::new(AtomicBool::new(false));
    let config = onramp_clock::config::Config {
        own,
        keys,
        authenticated: key_file.is_some(),
        degree: fleet.degree as usize,
        interval: fleet.probe_interval,
        lease: config.clock.lease,
        discipline: fleet.discipline,
        unfit: Arc::clone(&unfit),
        synthetic: Synthetic {
            oscillator: fleet.synthetic_clock.0,
            noise: fleet.synthetic_noise,
        },
    };
    // The bound address proves that no other process of this host takes part under this name.
    let socket = Socket::bind(own).with_context(|| {
        format!("cannot bind UDP {own}; --own must be an address of this host with a free port")
    })?;
    info!("clock: the address of this host is {own}");
    let register = |config| Etcd::start(config, sender, unfit);
    let etcd = etcd.map(register).transpose()?;
    let host = Host::start(config, socket, rosters)?;
    Ok(Part { etcd, host, fixed })
}

fn members(fleet: &FleetKeys) -> Result<Members> {
    let mut list = fleet.members.clone();
    if let Some(path) = &fleet.members_file {
        let text = read(path).context("--members-file")?;
        let lines = text.lines().map(str::trim);
        list.extend(
            lines
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .map(str::to_owned),
        );
    }
    if list.is_empty() {
        bail!("the fleet has no members; add --member, --members-file or --etcd");
    }
    let list = list.iter().map(|text| address(text));
    Ok(Members::new(list.collect::<Result<_>>()?)?)
}

/// The address at which the other members reach this host.
fn etcd_address(config: &Config, dev: Option<&str>) -> Result<SocketAddr> {
    if let Some(text) = &config.fleet.own {
        return address(text);
    }
    if let Some(dev) = dev {
        let all = own_addresses(Some(dev))?;
        let first = all.iter().find(|ip| ip.is_ipv4()).or(all.first());
        let ip = first.with_context(|| format!("{dev} has no IP address; add --own ADDRESS"))?;
        return Ok(SocketAddr::new(*ip, PORT));
    }
    let reaches = |url: &String| -> Result<IpAddr> {
        let (host, port) = host_and_port(url)?;
        let mut all = (host.as_str(), port).to_socket_addrs()?;
        let to = all.next().context("its name has no address")?;
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        Ok(socket.local_addr()?.ip())
    };
    let found = config.etcd.servers.iter().map(reaches).find_map(Result::ok);
    match found {
        Some(ip) if !ip.is_loopback() => Ok(SocketAddr::new(ip, PORT)),
        Some(_) => bail!("etcd runs on this host, so it does not show at which address others reach this host; add --own ADDRESS"),
        None => bail!("--etcd {}: no route to any of these servers, so this host's address is not known; correct the URLs or add --own ADDRESS", config.etcd.servers.join(",")),
    }
}

impl EtcdKeys {
    fn config(&self, own: SocketAddr) -> Result<etcd::Config> {
        for url in &self.servers {
            host_and_port(url)?;
            if url.starts_with("https:") != self.ca.is_some() {
                bail!("--etcd {url}: https:// needs --etcd-ca FILE, and --etcd-ca needs https://");
            }
        }
        check_address(own, own)
            .map_err(|why| anyhow!("this host cannot join the fleet: {why}; add --own ADDRESS"))?;
        let node = match &self.node {
            Some(node) => node.clone(),
            None => nix::unistd::gethostname()?.to_string_lossy().into_owned(),
        };
        check_name(&node).map_err(|why| anyhow!("--node is {node:?}: {why}"))?;
        check_name(&self.fleet).map_err(|why| anyhow!("--fleet is {:?}: {why}", self.fleet))?;
        let mut options = ConnectOptions::new().with_require_leader(true);
        if let (Some(user), Some(path)) = (&self.user, &self.password_file) {
            let text = read(path)?;
            options = options.with_user(user, text.lines().next().unwrap_or(""));
        }
        if let Some(ca) = &self.ca {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca)?));
            if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
                tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
            }
            options = options.with_tls(tls);
        }
        let registration = registration::Config {
            endpoints: self.servers.clone(),
            fleet: self.fleet.clone(),
            node,
            own,
        };
        Ok(etcd::Config {
            registration,
            options,
        })
    }
}

/// Host and port in the URL of an etcd server.
///
/// # Errors
/// The URL is malformed.
fn host_and_port(url: &str) -> Result<(String, u16)> {
    let refused =
        |why: &str| anyhow!("--etcd {url}: {why}; write http://HOST:2379 or https://HOST:2379");
    let uri: http::Uri = url.parse().map_err(|error| refused(&format!("{error}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(refused("the URL begins with neither http:// nor https://"));
    }
    let host = uri.host().ok_or_else(|| refused("the URL has no host"))?;
    let port = uri
        .port_u16()
        .ok_or_else(|| refused("the URL has no port"))?;
    if uri.path() != "/" && !uri.path().is_empty() {
        return Err(refused("the URL has a path after the port"));
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), port))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read {}; it must belong to the user that runs the daemon, or be readable by all",
            path.display()
        )
    })
}

fn address(text: &str) -> Result<SocketAddr> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    bare.or_else(|_| text.parse()).with_context(|| {
        format!("{text} is not an IP address; write ADDRESS or ADDRESS:PORT, e.g. 10.0.0.1:5198")
    })
}

/// The addresses of this host, or those of `dev` that other hosts can reach.
fn own_addresses(dev: Option<&str>) -> Result<Vec<IpAddr>> {
    let ip = |a: &nix::ifaddrs::InterfaceAddress| {
        let address = a.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
    };
    let is_reached = |ip: &IpAddr| !matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let all = nix::ifaddrs::getifaddrs()?;
    Ok(match dev {
        None => all.filter_map(|a| ip(&a)).collect(),
        Some(dev) => all
            .filter(|a| a.interface_name == dev && a.flags.contains(InterfaceFlags::IFF_UP))
            .filter_map(|a| ip(&a))
            .filter(is_reached)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_addresses_with_or_without_port() {
        assert_eq!(address("10.0.0.1").unwrap().port(), PORT);
        assert_eq!(address("fd00::1").unwrap().port(), PORT);
        assert_eq!(address("[fd00::1]:99").unwrap().port(), 99);
        assert!(address("host").is_err());
    }

    #[test]
    fn urls_are_checked() {
        let is = |url: &str| host_and_port(url).map_err(|error| error.to_string());
        assert_eq!(is("http://10.0.0.9:2379"), Ok(("10.0.0.9".into(), 2379)));
        assert_eq!(is("https://[fd00::1]:1/"), Ok(("fd00::1".into(), 1)));
        for (url, why) in [
            ("10.0.0.9:2379", "begins with neither"),
            ("ftp://a:1", "begins with neither"),
            ("http://10.0.0.9", "has no port"),
            ("http://a:1/x", "path after the port"),
            ("http://a:99999", ""),
            ("http://", ""),
            ("", ""),
        ] {
            let message = is(url).expect_err(url);
            assert!(
                message.contains(why) && message.contains(&format!("--etcd {url}")),
                "{message}"
            );
        }
    }
}
