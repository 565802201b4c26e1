// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What `onramp top` shows, as rows and text. Does not: ask the daemon, or know the terminal.
use std::{cmp::Ordering, collections::BTreeMap, net::IpAddr, time::Duration};

use onramp_status::{Peer, RootQdisc, Status};

/// A column, in the order in which they are shown. The first one is the address.
pub struct Column {
    /// As `--sort` takes it.
    pub name: &'static str,
    head: &'static str,
    digits: usize,
}

const fn column(name: &'static str, head: &'static str, digits: usize) -> Column {
    Column { name, head, digits }
}

pub const COLUMNS: &[Column] = &[
    column("peer", "peer", 0),
    column("delay", "delay us", 1),
    column("min", "min us", 1),
    column("wait", "wait us", 1),
    column("T", "T us", 1),
    column("OR-ACKs", "OR-ACKs/s", 0),
    column("pauses", "pauses/s", 0),
    column("paused", "paused", 3),
];
const VALUES: usize = 7;
/// Least width of the first column: of an IPv4 address.
const SHORTEST_PEER: usize = 15;
/// Counters whose growth means that flows are not controlled, or packets lost.
const FAIL_OPEN: &[&str] = &[
    "flow_table_full",
    "holds_refused_lease",
    "departures_ignored",
    "guard_raises",
    "let_go",
];
const DROPS: &[&str] = &["limit_drops", "flow_limit_drops"];

/// How rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub is_reversed: bool,
}

impl Order {
    pub fn by(column: usize) -> Self {
        Self {
            column,
            is_reversed: false,
        }
    }

    /// By the column `by` places to the right, or to the left.
    pub fn moved(self, by: isize) -> Self {
        let last = COLUMNS.len() - 1;
        let column = self.column.saturating_add_signed(by).min(last);
        Self { column, ..self }
    }

    pub fn reversed(self) -> Self {
        let is_reversed = !self.is_reversed;
        Self {
            is_reversed,
            ..self
        }
    }
}

struct Row {
    peer: IpAddr,
    values: [Option<f64>; VALUES],
}

impl Row {
    /// `before`: none if the peer is new.
    fn of(peer: &Peer, before: Option<&Peer>, fixed_ns: Option<i64>, seconds: f64) -> Self {
        let us = |ns: i64| ns as f64 / 1e3;
        // A peer that was forgotten meanwhile counts from 0 again.
        let rate = |of: fn(&Peer) -> u64| {
            let start = before.map_or(0, of);
            let grown = of(peer).checked_sub(start).unwrap_or(of(peer));
            grown as f64 / seconds
        };
        let own_ns = peer.threshold.map(|reasons| reasons.threshold_ns);
        Self {
            peer: peer.addr,
            values: [
                Some(us(peer.owd_ewma_ns)),
                peer.owd_min_ns.map(us),
                peer.owd_min_ns.map(|min_ns| us(peer.owd_ewma_ns - min_ns)),
                own_ns.or(fixed_ns).map(us),
                Some(rate(|peer| peer.oracks)),
                Some(rate(|peer| peer.holds)),
                Some(rate(|peer| peer.held_ns) / 1e9),
            ],
        }
    }

    fn text(&self, width: usize) -> String {
        let mut text = format!("{:<width$}", self.peer.to_string());
        for (column, value) in COLUMNS[1..].iter().zip(self.values) {
            let value = value.map_or("-".to_owned(), |v| format!("{v:.*}", column.digits));
            text += &format!(" {value:>10}");
        }
        text
    }
}

/// One look at a daemon.
pub struct View {
    head: Vec<String>,
    rows: Vec<Row>,
}

impl View {
    pub fn between(before: &Status, now: &Status, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let former: BTreeMap<IpAddr, &Peer> =
            before.peers.iter().map(|peer| (peer.addr, peer)).collect();
        let row = |peer: &Peer| {
            let before = former.get(&peer.addr).copied();
            Row::of(peer, before, now.threshold_ns, seconds)
        };
        Self {
            head: head(before, now, seconds),
            rows: now.peers.iter().map(row).collect(),
        }
    }

    /// The whole text, a line an element.
    pub fn lines(&mut self, order: Order) -> Vec<String> {
        self.rows.sort_by(|a, b| compare(a, b, order));
        let mut lines = self.head.clone();
        let widths = self.rows.iter().map(|row| row.peer.to_string().len());
        let width = widths.max().unwrap_or(0).max(SHORTEST_PEER);
        lines.push(titles(order, width));
        lines.extend(self.rows.iter().map(|row| row.text(width)));
        lines
    }

    /// Lines before the first peer.
    pub fn head_lines(&self) -> usize {
        self.head.len() + 1
    }
}

fn head(before: &Status, now: &Status, seconds: f64) -> Vec<String> {
    let rate = |names: &[&str]| {
        let sum = |status: &Status| -> u64 { names.iter().filter_map(|n| status.counter(n)).sum() };
        sum(now).saturating_sub(sum(before)) as f64 / seconds
    };
    let device = |device: &onramp_status::Device| match &device.root_qdisc {
        RootQdisc::Own => device.name.clone(),
        RootQdisc::NotTaken => format!("{} (observed)", device.name),
        RootQdisc::Default | RootQdisc::Foreign(_) => format!("{} (NOT HELD)", device.name),
    };
    let devices: Vec<String> = now.devices.iter().map(device).collect();
    let lease = match now.clock.lease_left_ns > 0 {
        true => format!("lease {:.1} s", now.clock.lease_left_ns as f64 / 1e9),
        false => "LEASE EXPIRED, nothing is held".to_owned(),
    };
    vec![
        format!(
            "{}: path {}, law {}, clock {} (sigma {:.1} us, {lease})",
            devices.join(", "),
            now.path,
            now.law,
            now.clock.source,
            now.clock.sigma_ns as f64 / 1e3,
        ),
        format!(
            "flows {} of {}, peers {} ({} silent), pauses/s {:.0}, flows paused {:.3}, failed open/s {:.0}, drops/s {:.0}",
            now.flows,
            now.max_flows,
            now.peers.len(),
            now.health.silent_peers.len(),
            rate(&["holds"]),
            rate(&["held_ns"]) / 1e9,
            rate(FAIL_OPEN),
            rate(DROPS),
        ),
        String::new(),
    ]
}

/// The heads of the columns; the one that is sorted by is in brackets.
fn titles(order: Order, width: usize) -> String {
    let title = |(index, column): (usize, &Column)| match index == order.column {
        true => format!("[{}]", column.head),
        false => column.head.to_owned(),
    };
    let mut all = COLUMNS.iter().enumerate().map(title);
    let mut text = format!("{:<width$}", all.next().unwrap_or_default());
    all.for_each(|title| text += &format!(" {title:>10}"));
    text
}

/// Addresses upwards, values downwards, unknown values last; equal ones by address.
fn compare(a: &Row, b: &Row, order: Order) -> Ordering {
    let by_peer = a.peer.cmp(&b.peer);
    let first = match order.column {
        0 => by_peer,
        column => {
            let value = |row: &Row| row.values[column - 1].unwrap_or(f64::NEG_INFINITY);
            value(b).total_cmp(&value(a))
        }
    };
    match order.is_reversed {
        true => first.reverse().then(by_peer),
        false => first.then(by_peer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8, ewma_us: i64, holds: u64) -> Peer {
        Peer {
            addr: [10, 0, 0, last].into(),
            owd_last_ns: 0,
            owd_min_ns: (last != 3).then_some(10_000),
            owd_ewma_ns: ewma_us * 1_000,
            oracks: 100,
            holds,
            held_ns: holds * 500_000_000,
            threshold: None,
            looks_held_ns: None,
        }
    }

    fn status(peers: Vec<Peer>) -> Status {
        let empty = r#"{"version":"","pid":1,"devices":[],"path":"edge","law":"final","threshold_ns":50000,
            "max_pause_ns":1,"authenticated":true,"health":{"peers_without_threshold":0,"silent_peers":[],
            "peers_beyond_threshold":[]},"flows":0,"max_flows":1,"peers":[],"counters":{},"clock":{"source":"local",
            "offset_ns":0,"reference_mono_ns":0,"drift":0,"sigma_ns":0,"lease_left_ns":-1}}"#;
        let empty: Status = serde_json::from_str(empty).unwrap();
        Status { peers, ..empty }
    }

    fn lines(order: Order) -> Vec<String> {
        let before = status(vec![peer(1, 20, 4), peer(2, 30, 10)]);
        let now = status(vec![peer(1, 20, 8), peer(2, 30, 6), peer(3, 40, 2)]);
        View::between(&before, &now, Duration::from_secs(2)).lines(order)
    }

    fn peers(order: Order) -> Vec<String> {
        let of = |line: &String| line.split(' ').next().unwrap().to_owned();
        lines(order)[4..].iter().map(of).collect()
    }

    fn by(name: &str) -> Order {
        let index = COLUMNS.iter().position(|column| column.name == name);
        Order::by(index.unwrap())
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let all = lines(by("peer"));
        let first: Vec<&str> = all[4].split_whitespace().collect();
        let expected = [
            "10.0.0.1", "20.0", "10.0", "10.0", "50.0", "0", "2", "1.000",
        ];
        assert_eq!(first, expected);
        // It was forgotten and heard again: 6 pauses since then.
        assert_eq!(all[5].split_whitespace().nth(6), Some("3"));
        // New, without a minimum.
        let third: Vec<&str> = all[6].split_whitespace().collect();
        assert_eq!(third[2..4], ["-", "-"]);
    }

    #[test]
    fn rows_are_sorted_by_any_column_and_back() {
        assert_eq!(peers(by("delay")), ["10.0.0.3", "10.0.0.2", "10.0.0.1"]);
        assert_eq!(peers(by("pauses")), ["10.0.0.2", "10.0.0.1", "10.0.0.3"]);
        assert_eq!(peers(by("wait")), ["10.0.0.2", "10.0.0.1", "10.0.0.3"]);
        let back = by("delay").reversed();
        assert_eq!(peers(back), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        assert_eq!(by("peer").moved(-1), by("peer"));
        assert_eq!(by("peer").moved(7), by("paused"));
        assert_eq!(by("paused").moved(1), by("paused"));
    }

    #[test]
    fn an_expired_lease_is_in_the_first_line() {
        assert!(lines(by("peer"))[0].contains("LEASE EXPIRED"));
    }
}
