// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A model of etcd and of the connections to it, on simulated time. The caller chooses the delay of every
//! message, or loses it, and breaks connections.
//!
//! A connection is TCP: in each direction messages arrive in their order, and after a lost one nothing more
//! arrives. A request that was under way when its connection was closed still reaches etcd.

mod store;

use std::collections::{BTreeMap, BTreeSet};

use onramp_clock::registration::{Answer, Key, Request, Trouble};

use store::Store;

/// How long a message takes, ns; none: it is lost.
pub type Delay = Option<i64>;

/// The time of what does not happen by itself.
const NEVER: i64 = i64::MAX;

/// etcd, with a connection to each host at most. Times are in ns.
#[derive(Debug, Default)]
pub struct Etcd {
    store: Store,
    connections: BTreeMap<usize, Connection>,
    /// Messages under way, by time of arrival and number.
    queue: BTreeMap<(i64, u64), Message>,
    number: u64,
    is_down: bool,
    /// etcd does nothing before this time.
    paused_until: i64,
    /// Endpoints at which there is no server.
    absent: BTreeSet<usize>,
    /// Hosts that cannot reach etcd.
    cut: BTreeSet<usize>,
    /// Hosts whose user is refused.
    refused: BTreeSet<usize>,
}

/// A host's present connection.
#[derive(Debug, Default)]
struct Connection {
    number: u64,
    out: Direction,
    back: Direction,
    /// The next revision that its watch shows.
    watch: Option<i64>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// When the last message arrives.
    last: i64,
    is_stuck: bool,
}

#[derive(Debug)]
struct Message {
    host: usize,
    connection: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Request(Request),
    Answer(Answer),
}

impl Direction {
    /// When a message that is sent now arrives.
    fn arrival(&mut self, now: i64, delay: Delay) -> Option<i64> {
        self.is_stuck |= delay.is_none();
        if self.is_stuck {
            return None;
        }
        self.last = self.last.max(now + delay.unwrap_or(0));
        Some(self.last)
    }
}

impl Etcd {
    /// A host sends a request.
    pub fn ask(&mut self, now: i64, host: usize, request: Request, delay: Delay) {
        self.number += 1;
        if matches!(request, Request::Connect { .. }) {
            let new = Connection {
                number: self.number,
                ..Connection::default()
            };
            self.connections.insert(host, new);
        }
        let delay = delay.filter(|_| !self.cut.contains(&host));
        let Some(connection) = self.connections.get_mut(&host) else {
            return;
        };
        let message = Message {
            host,
            connection: connection.number,
            body: Body::Request(request),
        };
        if let Some(at) = connection.out.arrival(now, delay) {
            self.queue.insert((at, self.number), message);
        }
    }

    /// A host closes its connection.
    pub fn disconnect(&mut self, host: usize) {
        self.connections.remove(&host);
    }

    /// When [`Etcd::run`] is due; `i64::MAX`: not before the next request.
    pub fn wakes_at(&self) -> i64 {
        let message = self
            .queue
            .first_key_value()
            .map_or(NEVER, |((at, _), _)| *at);
        message.min(self.expires_at())
    }

    fn expires_at(&self) -> i64 {
        let at = self.store.expires_at().filter(|_| !self.is_down);
        at.map_or(NEVER, |at| at.max(self.paused_until))
    }

    /// Does all that is due. `delay` gives the delay of each answer to a host. Returns the answers that arrive.
    pub fn run(
        &mut self,
        now: i64,
        delay: &mut impl FnMut(usize, &Answer) -> Delay,
    ) -> Vec<(usize, Answer)> {
        let mut arrived = vec![];
        loop {
            let at = self.wakes_at();
            if at > now {
                return arrived;
            }
            if self.expires_at() == at {
                self.store.expire(at);
                self.notify(at, delay);
                continue;
            }
            let Some(((_, number), message)) = self.queue.pop_first() else {
                return arrived;
            };
            let host = message.host;
            match message.body {
                _ if self.cut.contains(&host) => self.stick(&message),
                Body::Answer(answer) if self.is_open(host, message.connection) => {
                    arrived.push((host, answer));
                }
                Body::Answer(_) => {}
                Body::Request(_) if at < self.paused_until => {
                    self.queue.insert((self.paused_until, number), message);
                }
                Body::Request(request) => {
                    self.serve(at, host, message.connection, &request, delay);
                }
            }
        }
    }

    fn is_open(&self, host: usize, number: u64) -> bool {
        let connection = self.connections.get(&host);
        connection.is_some_and(|connection| connection.number == number)
    }

    /// A message did not arrive, so nothing more does in its direction.
    fn stick(&mut self, message: &Message) {
        let connection = self.connections.get_mut(&message.host);
        if let Some(connection) = connection.filter(|c| c.number == message.connection) {
            match message.body {
                Body::Request(_) => connection.out.is_stuck = true,
                Body::Answer(_) => connection.back.is_stuck = true,
            }
        }
    }

    fn serve(
        &mut self,
        now: i64,
        host: usize,
        number: u64,
        request: &Request,
        delay: &mut impl FnMut(usize, &Answer) -> Delay,
    ) {
        let answer = match request {
            Request::Connect { endpoint } => self.let_in(host, *endpoint),
            _ if self.is_down => return,
            Request::Watch { .. } => Answer::Watching,
            request => self.store.serve(now, request),
        };
        if self.is_open(host, number) {
            self.send(now, host, answer, delay);
            if let (Request::Watch { from }, Some(connection)) =
                (request, self.connections.get_mut(&host))
            {
                connection.watch = Some(*from);
            }
        }
        self.notify(now, delay);
    }

    fn let_in(&self, host: usize, endpoint: usize) -> Answer {
        if self.is_down || self.absent.contains(&endpoint) {
            Answer::Failed(Trouble::Passing("connection refused".to_owned()))
        } else if self.refused.contains(&host) {
            Answer::Failed(Trouble::Lasting("wrong user or password".to_owned()))
        } else {
            Answer::Connected
        }
    }

    /// Sends what the watches have not shown yet.
    fn notify(&mut self, now: i64, delay: &mut impl FnMut(usize, &Answer) -> Delay) {
        let next = self.store.revision() + 1;
        let mut news = vec![];
        for (host, connection) in &mut self.connections {
            if let Some(from) = connection.watch.filter(|from| *from < next) {
                connection.watch = Some(next);
                news.push((*host, self.store.changes(from)));
            }
        }
        for (host, changes) in news.into_iter().filter(|(_, changes)| !changes.is_empty()) {
            self.send(now, host, Answer::Changed(changes), delay);
        }
    }

    fn send(
        &mut self,
        now: i64,
        host: usize,
        answer: Answer,
        delay: &mut impl FnMut(usize, &Answer) -> Delay,
    ) {
        let delay = delay(host, &answer).filter(|_| !self.cut.contains(&host));
        let Some(connection) = self.connections.get_mut(&host) else {
            return;
        };
        self.number += 1;
        let message = Message {
            host,
            connection: connection.number,
            body: Body::Answer(answer),
        };
        if let Some(at) = connection.back.arrival(now, delay) {
            self.queue.insert((at, self.number), message);
        }
    }

    // ---- faults ----

    /// Stops etcd, which breaks all connections, or starts it. Leases last their whole time after a start.
    pub fn set_down(&mut self, now: i64, is_down: bool) {
        if is_down && !self.is_down {
            let hosts: Vec<usize> = self.connections.keys().copied().collect();
            hosts.into_iter().for_each(|host| self.reset(now, host));
        }
        if !is_down && self.is_down {
            self.store.renew_all(now);
        }
        self.is_down = is_down;
    }

    /// Stops etcd, which forgets everything and counts its revisions anew, and starts it.
    pub fn wipe(&mut self, now: i64) {
        let was_down = self.is_down;
        self.set_down(now, true);
        self.store.wipe();
        self.set_down(now, was_down);
    }

    /// etcd's process is stopped until then; its connections stay.
    pub fn pause(&mut self, until: i64) {
        self.paused_until = until;
    }

    /// Whether there is a server at an endpoint.
    pub fn set_present(&mut self, endpoint: usize, is_present: bool) {
        if is_present {
            self.absent.remove(&endpoint);
        } else {
            self.absent.insert(endpoint);
        }
    }

    /// Cuts a host off from etcd, or mends it. Messages that would arrive in between are lost.
    pub fn set_cut(&mut self, host: usize, is_cut: bool) {
        if is_cut {
            self.cut.insert(host);
        } else {
            self.cut.remove(&host);
        }
    }

    /// Whether etcd refuses the user of a host.
    pub fn set_refused(&mut self, host: usize, is_refused: bool) {
        if is_refused {
            self.refused.insert(host);
        } else {
            self.refused.remove(&host);
        }
    }

    /// Breaks the connection of a host, which learns it.
    pub fn reset(&mut self, now: i64, host: usize) {
        let broken = Trouble::Passing("connection reset".to_owned());
        self.send(now, host, Answer::Failed(broken), &mut |_, _| Some(0));
        if let Some(connection) = self.connections.get_mut(&host) {
            connection.out.is_stuck = true;
            connection.back.is_stuck = true;
            connection.watch = None;
        }
    }

    /// An operator's request, which takes no time.
    pub fn operate(
        &mut self,
        now: i64,
        request: &Request,
        delay: &mut impl FnMut(usize, &Answer) -> Delay,
    ) -> Answer {
        let answer = self.store.serve(now, request);
        self.notify(now, delay);
        answer
    }

    // ---- what is there ----

    /// The keys, by name.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.store.keys()
    }

    /// The revision of the last change.
    pub fn revision(&self) -> i64 {
        self.store.revision()
    }
}
