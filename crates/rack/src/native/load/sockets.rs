// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! All sockets of all hosts: listeners, connections, and the connection of each accepted socket. Does not
//! know flows.

use super::connection::{self, Connection, Route};
use super::events::{Events, Source};
use crate::error::{Doing, Result};
use crate::native::sys::NetNs;
use onramp_scenario::{HostId, Run};
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

/// The sockets, and the events that they cause.
#[derive(Debug)]
pub struct Sockets<'a> {
    hosts: &'a [NetNs],
    run: &'a Run,
    listeners: Vec<Socket>,
    connections: Vec<Connection>,
    /// Connections whose other end has not been accepted, by listening host and own address.
    connecting: HashMap<(HostId, SocketAddr), usize>,
    /// Events of all sockets.
    pub events: Events,
}

impl<'a> Sockets<'a> {
    /// Has every host of `run` listen. Each end of a connection has the congestion control of its host.
    pub fn new(run: &'a Run, hosts: &'a [NetNs]) -> Result<Sockets<'a>> {
        let events = Events::new()?;
        let listeners = (0..)
            .zip(hosts)
            .map(|(host, namespace)| connection::listen(namespace, run.settings_of(host).host.cc))
            .collect::<io::Result<Vec<_>>>()
            .doing(|| "listening in the hosts".into())?;
        for (host, listener) in (0..).zip(&listeners) {
            events.watch(listener, Source::Listener(host))?;
        }
        Ok(Sockets {
            hosts,
            run,
            listeners,
            connections: Vec::new(),
            connecting: HashMap::new(),
            events,
        })
    }

    /// All connections ever opened.
    pub fn all(&self) -> &[Connection] {
        &self.connections
    }

    /// Connection number `index`.
    pub fn get(&mut self, index: usize) -> &mut Connection {
        &mut self.connections[index]
    }

    /// Starts to connect a route; `asked` as in [`Connection`].
    pub fn open(&mut self, route: Route, asked: bool) -> Result<()> {
        let from = if asked { route.dst } else { route.src };
        let doing = || format!("connecting {route:?}");
        let host = &self.hosts[from as usize];
        let cc = self.run.settings_of(from).host.cc;
        let connection = Connection::open(route, asked, host, cc).doing(doing)?;
        let index = self.connections.len();
        let identity = connection.identity().doing(doing)?;
        self.connecting.insert(identity, index);
        self.events
            .watch(connection.connector(), Source::Connection(index))?;
        self.connections.push(connection);
        Ok(())
    }

    /// Accepts pending connections at a host, and returns them.
    pub fn accept(&mut self, host: HostId) -> Result<Vec<usize>> {
        let doing = || format!("accepting at host {host}");
        let mut accepted = Vec::new();
        loop {
            let (socket, address) = match self.listeners[host as usize].accept() {
                Ok(pair) => pair,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(accepted),
                Err(error) => return Err(error).doing(doing),
            };
            let address = address.as_socket().expect("an IPv4 listener accepts IPv4");
            let Some(index) = self.connecting.remove(&(host, address)) else {
                continue; // nobody of ours
            };
            self.events.watch(&socket, Source::Connection(index))?;
            self.connections[index].accepted(socket).doing(doing)?;
            accepted.push(index);
        }
    }
}
