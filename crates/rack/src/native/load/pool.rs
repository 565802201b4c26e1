// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Persistent connections by route. The connection that was used last is used next, because its window and
//! round-trip time are the most recent. A route keeps one idle connection in reserve: when a flow uses the
//! last one, another is opened at once, so that a flow waits for a handshake only if two flows start within
//! a round trip. If a route has [`MOST`] connections, flows wait for one, and the wait counts.

use super::connection::Route;
use std::collections::{HashMap, VecDeque};

/// Most connections of one route.
const MOST: usize = 64;

/// Connections of one route.
#[derive(Debug, Default)]
struct Pool {
    idle: Vec<usize>,
    waiting: VecDeque<usize>,
    opened: usize,
    opening: usize,
}

/// Connections of all routes.
#[derive(Debug, Default)]
pub struct Pools(HashMap<Route, Pool>);

/// The actions for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Take {
    /// Connection that carries it; none: it waits.
    pub connection: Option<usize>,
    /// Open another connection of the route.
    pub open: bool,
}

impl Pools {
    /// A connection of `route` is being opened.
    pub fn opening(&mut self, route: Route) {
        let pool = self.0.entry(route).or_default();
        pool.opened += 1;
        pool.opening += 1;
    }

    /// A connection of `route` is up. Returns the flow that was waiting for it.
    pub fn up(&mut self, route: Route, connection: usize) -> Option<usize> {
        let pool = self.0.entry(route).or_default();
        pool.opening -= 1;
        self.free(route, connection)
    }

    /// A connection has carried its flow. Returns the next one, which has been waiting.
    pub fn free(&mut self, route: Route, connection: usize) -> Option<usize> {
        let pool = self.0.entry(route).or_default();
        let next = pool.waiting.pop_front();
        if next.is_none() {
            pool.idle.push(connection);
        }
        next
    }

    /// Finds a connection for `flow`. With `reserve`, keeps an idle one behind it.
    pub fn take(&mut self, route: Route, flow: usize, reserve: bool) -> Take {
        let pool = self.0.entry(route).or_default();
        let connection = pool.idle.pop();
        if connection.is_none() {
            pool.waiting.push_back(flow);
        }
        let wanted = pool.waiting.len() + usize::from(reserve);
        let coming = pool.idle.len() + pool.opening;
        Take {
            connection,
            open: coming < wanted && pool.opened < MOST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: Route = Route {
        traffic: 0,
        src: 1,
        dst: 0,
        slot: 0,
    };

    #[test]
    fn the_last_idle_connection_is_replaced_at_once() {
        let mut pools = Pools::default();
        pools.opening(ROUTE);
        assert_eq!(pools.up(ROUTE, 7), None);
        assert_eq!(
            pools.take(ROUTE, 0, true),
            Take {
                connection: Some(7),
                open: true
            }
        );
    }

    #[test]
    fn a_flow_without_connection_waits_for_the_first_one() {
        let mut pools = Pools::default();
        assert_eq!(
            pools.take(ROUTE, 3, false),
            Take {
                connection: None,
                open: true
            }
        );
        pools.opening(ROUTE);
        assert_eq!(
            pools.take(ROUTE, 4, false),
            Take {
                connection: None,
                open: true
            }
        );
        pools.opening(ROUTE);
        assert_eq!(pools.up(ROUTE, 0), Some(3));
        assert_eq!(pools.free(ROUTE, 0), Some(4));
        assert_eq!(pools.free(ROUTE, 0), None);
    }

    #[test]
    fn a_route_has_a_bound() {
        let mut pools = Pools::default();
        for _ in 0..MOST {
            pools.opening(ROUTE);
        }
        assert!(!pools.take(ROUTE, 0, true).open);
    }

    #[test]
    fn the_connection_used_last_is_used_next() {
        let mut pools = Pools::default();
        for connection in 0..3 {
            pools.opening(ROUTE);
            pools.up(ROUTE, connection);
        }
        assert_eq!(pools.take(ROUTE, 0, true).connection, Some(2));
        pools.free(ROUTE, 2);
        assert_eq!(pools.take(ROUTE, 1, true).connection, Some(2));
    }
}
