// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet: its members, from a fixed list or from etcd, and how this host takes part.

mod etcd;

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket},
    path::{Path, PathBuf},
    sync::{atomic::AtomicBool, mpsc, Arc},
};

use anyhow::{anyhow, bail, Context, Result};
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use nix::net::if_::InterfaceFlags;
use onramp_clock::{
    config::Config,
    host::Host,
    keys::Keys,
    members::Members,
    registration,
    registry::{check_address, check_name},
    roster::Roster,
    stamps::Socket,
    status::{FleetClock, Status, Way},
    wire::PORT,
};
use onramp_sync::synthetic::{Oscillator, Synthetic};
use onramp_units::Span;
use tracing::{info, warn};

use crate::config::Configuration;
use etcd::Etcd;

/// The fleet and how this host takes part. The keys (config/keys.rs) say what each value means.
#[derive(Clone, Debug)]
pub struct FleetArgs {
    pub member: Vec<String>,
    pub members_file: Option<PathBuf>,
    pub etcd: EtcdArgs,
    pub own: Option<String>,
    pub degree: u32,
    pub probe_interval: Span,
    pub discipline: bool,
    pub metrics: Option<SocketAddr>,
    /// For tests.
    pub synthetic_clock: Oscillator,
    pub synthetic_noise: f64,
}

/// A fleet whose hosts come and go, and which elects its leader.
#[derive(Clone, Debug)]
pub struct EtcdArgs {
    pub etcd: Vec<String>,
    pub fleet: String,
    pub node: Option<String>,
    pub etcd_user: Option<String>,
    pub etcd_password_file: Option<PathBuf>,
    pub etcd_ca: Option<PathBuf>,
    pub etcd_cert: Option<PathBuf>,
    pub etcd_key: Option<PathBuf>,
}

/// This host's participation in a fleet. When dropped, it leaves the fleet and stops.
pub struct Part {
    etcd: Option<Etcd>,
    host: Host,
    /// Of a fixed list of members.
    fixed: Option<Fixed>,
}

/// A fleet whose members are a list.
struct Fixed {
    own: SocketAddr,
    tell: mpsc::Sender<Roster>,
}

impl Part {
    /// Fleet time now, while its lease lasts.
    pub fn clock(&self) -> Option<FleetClock> {
        self.host.clock()
    }

    /// Minimum one-way delays to the neighbours.
    pub fn delays(&self) -> Vec<Way> {
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
    pub fn set_members(&self, fleet: &FleetArgs) -> Result<()> {
        let Some(fixed) = &self.fixed else {
            return Ok(());
        };
        let members = fleet.members()?;
        let own = members.own(&[fixed.own.ip()])?;
        if own != fixed.own {
            bail!(
                "the members have this host as {own}, and it takes part as {}; write the former port, or restart the \
                 daemon",
                fixed.own
            );
        }
        Ok(fixed.tell.send(Roster::fixed(members))?)
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

impl FleetArgs {
    /// The values of a valid configuration.
    pub fn of(from: &Configuration) -> FleetArgs {
        FleetArgs {
            member: from.get("fleet.members").unwrap_or_default(),
            members_file: from.get("fleet.members_file"),
            etcd: EtcdArgs {
                etcd: from.get("etcd.servers").unwrap_or_default(),
                fleet: from.of("etcd.fleet"),
                node: from.get("etcd.node"),
                etcd_user: from.get("etcd.user"),
                etcd_password_file: from.get("etcd.password_file"),
                etcd_ca: from.get("etcd.ca"),
                etcd_cert: from.get("etcd.cert"),
                etcd_key: from.get("etcd.key"),
            },
            own: from.get("fleet.own"),
            degree: from.of("fleet.degree"),
            probe_interval: from.of("fleet.probe_interval"),
            discipline: from.of("fleet.discipline"),
            metrics: from.get("metrics"),
            synthetic_clock: from.of("fleet.synthetic_clock"),
            synthetic_noise: from.of("fleet.synthetic_noise"),
        }
    }

    /// Joins the fleet. `key_file`: none for the well-known key. `lease`: how long fleet time is valid after
    /// the leader's last verdict. `dev`: the device whose traffic is held, if there is one.
    ///
    /// # Errors
    /// An option is refused, or the host's address cannot be bound, or etcd refuses the host.
    pub fn join(&self, key_file: Option<&Path>, lease: Span, dev: Option<&str>) -> Result<Part> {
        let (tell, rosters) = mpsc::channel();
        let is_fixed = self.etcd.etcd.is_empty();
        let (own, etcd) = if is_fixed {
            let members = self.members()?;
            let own = match &self.own {
                Some(text) => members.own(&[address(text)?.ip()])?,
                None => members.own(&own_addresses(None)?)?,
            };
            tell.send(Roster::fixed(members))?;
            (own, None)
        } else {
            let own = self.etcd_address(dev)?;
            (own, Some(self.etcd.config(own)?))
        };
        let fixed = is_fixed.then(|| Fixed {
            own,
            tell: tell.clone(),
        });
        let keys = key_file.map_or(Ok(Keys::well_known()), Keys::read)?;
        if key_file.is_none() {
            warn!(
                "clock messages are not authenticated: anyone who can send packets to this host can \
                 set its fleet time; add --key-file"
            );
        }
        let unfit = Arc::new(AtomicBool::new(false));
        let config = Config {
            own,
            keys,
            authenticated: key_file.is_some(),
            degree: self.degree as usize,
            interval: self.probe_interval,
            lease,
            discipline: self.discipline,
            unfit: Arc::clone(&unfit),
            synthetic: Synthetic {
                oscillator: self.synthetic_clock,
                noise: self.synthetic_noise,
            },
        };
        // The bound address proves that no other process of this host takes part under this name.
        let socket = Socket::bind(own).with_context(|| {
            format!("cannot bind UDP {own}; --own must be an address of this host with a free port")
        })?;
        info!("clock: the address of this host is {own}");
        let register = |config| Etcd::start(config, tell, unfit);
        let etcd = etcd.map(register).transpose()?;
        let host = Host::start(config, socket, rosters)?;
        Ok(Part { etcd, host, fixed })
    }

    fn members(&self) -> Result<Members> {
        let mut list = self.member.clone();
        if let Some(path) = &self.members_file {
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
    fn etcd_address(&self, dev: Option<&str>) -> Result<SocketAddr> {
        if let Some(text) = &self.own {
            return address(text);
        }
        if let Some(dev) = dev {
            let all = own_addresses(Some(dev))?;
            let first = all.iter().find(|ip| ip.is_ipv4()).or(all.first());
            let ip =
                first.with_context(|| format!("{dev} has no IP address; add --own ADDRESS"))?;
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
        let found = self.etcd.etcd.iter().map(reaches).find_map(Result::ok);
        match found {
            Some(ip) if !ip.is_loopback() => Ok(SocketAddr::new(ip, PORT)),
            Some(_) => bail!("etcd runs on this host, so it does not show at which address others reach this host; add --own ADDRESS"),
            None => bail!("--etcd {}: no route to any of these servers, so this host's address is not known; correct the URLs or add --own ADDRESS", self.etcd.etcd.join(",")),
        }
    }
}

impl EtcdArgs {
    fn config(&self, own: SocketAddr) -> Result<etcd::Config> {
        for url in &self.etcd {
            host_and_port(url)?;
            if url.starts_with("https:") != self.etcd_ca.is_some() {
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
        if let (Some(user), Some(path)) = (&self.etcd_user, &self.etcd_password_file) {
            let text = read(path)?;
            options = options.with_user(user, text.lines().next().unwrap_or(""));
        }
        if let Some(ca) = &self.etcd_ca {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca)?));
            if let (Some(cert), Some(key)) = (&self.etcd_cert, &self.etcd_key) {
                tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
            }
            options = options.with_tls(tls);
        }
        let registration = registration::Config {
            endpoints: self.etcd.clone(),
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
            let told = is(url).expect_err(url);
            assert!(
                told.contains(why) && told.contains(&format!("--etcd {url}")),
                "{told}"
            );
        }
    }
}
