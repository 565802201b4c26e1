// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The UDP port of OR-ACKs. The data path takes OR-ACKs off the wire before a socket could get them; the port is bound so
//! that no user of this host has it.
use std::{
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{
        bind, setsockopt, socket, sockopt, AddressFamily, SockFlag, SockProtocol, SockType,
        SockaddrIn, SockaddrIn6, SockaddrLike,
    },
};
use onramp_law::abi::ONR_ORACK_PORT;
use tracing::warn;

const PORT: u16 = ONR_ORACK_PORT as u16;
/// Nothing is read, so nothing needs room; the kernel raises it to its least.
const RECEIVE_BYTES: usize = 0;

/// The port, for both versions of IP that this host has. Free again when it is dropped.
pub struct OrackPort(#[allow(dead_code)] Vec<OwnedFd>);

impl OrackPort {
    /// Binds the port. Says so where another program has it, which harms nothing: datagrams that are not signed with a
    /// key of the fleet are not believed.
    pub fn bind() -> OrackPort {
        let v4 = SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT));
        let v6 = SockaddrIn6::from(std::net::SocketAddrV6::new(
            Ipv6Addr::UNSPECIFIED,
            PORT,
            0,
            0,
        ));
        let bound = [
            taken(AddressFamily::Inet, &v4),
            taken(AddressFamily::Inet6, &v6),
        ];
        let note = |socket: nix::Result<OwnedFd>| match socket {
            Ok(socket) => Some(socket),
            Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => None,
            Err(error) => {
                warn!("UDP {PORT}, the port of OR-ACKs, is not bound: {error}; find who has it: ss -ulpn sport = {PORT}");
                None
            }
        };
        OrackPort(bound.into_iter().filter_map(note).collect())
    }
}

/// A socket with that address. Daemons of one host share the port, and nobody of another user id can.
fn taken(family: AddressFamily, address: &dyn SockaddrLike) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, SockType::Datagram, flags, SockProtocol::Udp)?;
    if family == AddressFamily::Inet6 {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
    bind(socket.as_raw_fd(), address)?;
    Ok(socket)
}
