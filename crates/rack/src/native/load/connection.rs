// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One TCP connection in the rack. This process holds both ends, which are in two namespaces. It sends bytes
//! without content, and discards them at the other end.

use super::super::links;
use super::super::sys::{self, NetNs};
use onramp_scenario::{Cc, HostId, RACK_ASK_SIZE};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, SocketAddrV4};

/// Port on which every host listens.
const PORT: u16 = 5000;
/// Size of an aggregator's request to a server.
pub const REQUEST_BYTES: u64 = RACK_ASK_SIZE.get();
/// A receiver wakes for this number of bytes and for the end of a flow, instead of every packet.
const SLEEP_BYTES: u64 = 256 << 10;
/// Unsent bytes that an endless flow keeps in its socket.
const ENDLESS_BACKLOG_BYTES: u32 = 256 << 10;
/// Size of an endless flow.
pub const ENDLESS: u64 = u64::MAX;

static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Connections of one route may take each other's flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Entry of the scenario's traffic.
    pub traffic: usize,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Parallel connection within the entry.
    pub slot: u32,
}

/// Counters of a connection's two ends together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Payload that the data receiver's TCP received in order.
    pub received_bytes: u64,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Retransmitted payload.
    pub repeated_bytes: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Counters {
    /// The increase since `before`.
    pub fn since(self, before: Counters) -> Counters {
        Counters {
            received_bytes: self.received_bytes - before.received_bytes,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            repeated_bytes: self.repeated_bytes - before.repeated_bytes,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
        }
    }

    /// Both together.
    pub fn plus(self, other: Counters) -> Counters {
        Counters {
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            repeated_bytes: self.repeated_bytes + other.repeated_bytes,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
        }
    }
}

/// A listening socket in `namespace`; what it accepts has congestion control `cc`.
pub fn listen(namespace: &NetNs, cc: Cc) -> io::Result<Socket> {
    let socket = tcp_socket(namespace, cc)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(SocketAddrV4::new(
        [0, 0, 0, 0].into(),
        PORT,
    )))?;
    socket.listen(4096)?;
    Ok(socket)
}

fn tcp_socket(namespace: &NetNs, cc: Cc) -> io::Result<Socket> {
    // A socket belongs to the namespace in which it was made, for good.
    let socket = namespace.within(|| Socket::new(Domain::IPV4, Type::STREAM, None))??;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    // By socket: only the first namespace may make a restricted one, such as DCTCP, its default.
    socket.set_tcp_congestion(cc.name().as_bytes())?;
    Ok(socket)
}

/// A connection and the one flow it carries at a time.
#[derive(Debug)]
pub struct Connection {
    /// Where it goes.
    pub route: Route,
    /// Whether the receiver requests data.
    pub asked: bool,
    connector: Socket,
    acceptor: Option<Socket>,
    connected: bool,
    /// Flow that it carries.
    pub flow: Option<usize>,
    unasked: u64,
    unanswered: u64,
    unsent: u64,
    unread: u64,
}

impl Connection {
    /// Starts to connect: the side that speaks first does. `connector` is its host's namespace.
    pub fn open(route: Route, asked: bool, namespace: &NetNs, cc: Cc) -> io::Result<Connection> {
        let listener = if asked { route.src } else { route.dst };
        let connector = tcp_socket(namespace, cc)?;
        let address = SocketAddrV4::new(links::ipv4(listener), PORT);
        match connector.connect(&SockAddr::from(address)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        Ok(Connection {
            route,
            asked,
            connector,
            acceptor: None,
            connected: false,
            flow: None,
            unasked: 0,
            unanswered: 0,
            unsent: 0,
            unread: 0,
        })
    }

    /// Listening host and connecting address, which identify an accepted connection.
    pub fn identity(&self) -> io::Result<(HostId, SocketAddr)> {
        let listener = if self.asked {
            self.route.src
        } else {
            self.route.dst
        };
        let address = self.connector.local_addr()?.as_socket();
        Ok((
            listener,
            address.expect("an IPv4 socket has such an address"),
        ))
    }

    /// The end that connects.
    pub fn connector(&self) -> &Socket {
        &self.connector
    }

    /// The listening host has accepted.
    pub fn accepted(&mut self, socket: Socket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        self.acceptor = Some(socket);
        Ok(())
    }

    /// The connecting end has become writable, or failed.
    pub fn check_connected(&mut self) -> io::Result<()> {
        if self.connected {
            return Ok(());
        }
        if let Some(error) = self.connector.take_error()? {
            return Err(error);
        }
        self.connected = self.connector.peer_addr().is_ok();
        Ok(())
    }

    /// Both ends are connected.
    pub fn is_up(&self) -> bool {
        self.connected && self.acceptor.is_some()
    }

    fn sender(&self) -> &Socket {
        let acceptor = || {
            self.acceptor
                .as_ref()
                .expect("only connections that are up are used")
        };
        if self.asked {
            acceptor()
        } else {
            &self.connector
        }
    }

    fn receiver(&self) -> &Socket {
        let acceptor = || {
            self.acceptor
                .as_ref()
                .expect("only connections that are up are used")
        };
        if self.asked {
            &self.connector
        } else {
            acceptor()
        }
    }

    /// Assigns flow number `flow` of `size` bytes; nothing is sent yet.
    pub fn prepare(&mut self, flow: usize, size: u64) -> io::Result<()> {
        self.flow = Some(flow);
        self.unread = size;
        self.unsent = size;
        if self.asked {
            self.unasked = REQUEST_BYTES;
            self.unanswered = REQUEST_BYTES;
        }
        if size == ENDLESS {
            let sender = self.sender();
            sender.set_tcp_notsent_lowat(ENDLESS_BACKLOG_BYTES)?;
        }
        self.sleep_until_worth_reading()
    }

    /// Requests the flow, or sends it at once.
    pub fn start(&mut self) -> io::Result<()> {
        if self.asked {
            send(&self.connector, &mut self.unasked)
        } else {
            send(&self.connector, &mut self.unsent)
        }
    }

    /// Stops an endless flow.
    pub fn stop(&mut self) {
        self.unsent = 0;
    }

    /// Continues after an event at either end. Returns true once, when all of the flow has been read.
    pub fn progress(&mut self) -> io::Result<bool> {
        if !self.is_up() || self.flow.is_none() {
            return Ok(false);
        }
        if self.unasked > 0 {
            send(&self.connector, &mut self.unasked)?;
        }
        if self.unanswered > 0 {
            let got = receive(self.sender(), self.unanswered)?;
            self.unanswered -= got;
        }
        if self.unanswered == 0 && self.unsent > 0 {
            let mut unsent = self.unsent;
            let sent = send(self.sender(), &mut unsent);
            self.unsent = unsent;
            sent?;
        }
        let got = receive(self.receiver(), self.unread)?;
        if self.unread != ENDLESS {
            self.unread -= got;
        }
        if self.unread == 0 {
            self.flow = None;
            return Ok(true);
        }
        if got > 0 && self.unread < SLEEP_BYTES {
            self.sleep_until_worth_reading()?;
        }
        Ok(false)
    }

    fn sleep_until_worth_reading(&self) -> io::Result<()> {
        sys::set_receive_low_water(self.receiver(), self.unread.min(SLEEP_BYTES) as u32)
    }

    /// The kernel's counters, or zeros before it is connected.
    pub fn counters(&self) -> io::Result<Counters> {
        if !self.is_up() {
            return Ok(Counters::default());
        }
        let (data, back) = (
            sys::tcp_info(self.sender())?,
            sys::tcp_info(self.receiver())?,
        );
        Ok(Counters {
            received_bytes: back.tcpi_bytes_received,
            sent_bytes: data.tcpi_bytes_sent + back.tcpi_bytes_sent,
            repeated_bytes: data.tcpi_bytes_retrans + back.tcpi_bytes_retrans,
            retransmissions: u64::from(data.tcpi_total_retrans)
                + u64::from(back.tcpi_total_retrans),
            timeouts: u64::from(data.tcpi_total_rto) + u64::from(back.tcpi_total_rto),
        })
    }
}

/// Sends as much of `rest` bytes as the socket takes.
fn send(socket: &Socket, rest: &mut u64) -> io::Result<()> {
    while *rest > 0 {
        let chunk = (*rest).min(ZEROS.len() as u64) as usize;
        match socket.send_with_flags(&ZEROS[..chunk], libc::MSG_NOSIGNAL) {
            Ok(sent) if *rest != ENDLESS => *rest -= sent as u64,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Discards what has arrived, at most `limit` bytes.
fn receive(socket: &Socket, limit: u64) -> io::Result<u64> {
    let mut total = 0;
    while total < limit {
        let capacity = (limit - total).min(1 << 30) as usize;
        match sys::discard(socket, capacity) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(got) => total += got as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}
