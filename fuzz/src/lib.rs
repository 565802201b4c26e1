// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parsers of what others write, as functions of bytes. `tests/corpus.rs` runs them on the corpus with stable Rust;
//! `libfuzzer/` runs them under cargo-fuzz (`make fuzz`). The parser of OR-ACKs is a kernel program; the fact
//! `faults::forged_oracks_change_nothing` feeds it.

use std::net::SocketAddr;
use std::path::Path;

use onramp_agent::config::{Configuration, Daemon};
use onramp_clock::keys::Keys;
use onramp_clock::registry::{Found, Registry};
use onramp_clock::wire::{sent_probe, Message};
use onramp_logs::Logs;
use onramp_scenario::{read_flow_list, Graph, Scenario};
use onramp_trace::{merge, Merged, Record};
use onramp_units::Span;

/// A parser and the name of its corpus.
pub struct Target {
    /// Folder of the corpus, and binary of cargo-fuzz.
    pub name: &'static str,
    /// Parses the bytes. Returns whether they are valid; panics if a promise of the parser is broken.
    pub run: fn(&[u8]) -> bool,
}

/// All parsers.
pub const TARGETS: [Target; 9] = [
    Target {
        name: "message",
        run: message,
    },
    Target {
        name: "member",
        run: member,
    },
    Target {
        name: "keys",
        run: keys,
    },
    Target {
        name: "scenario",
        run: scenario,
    },
    Target {
        name: "network",
        run: network,
    },
    Target {
        name: "flow_list",
        run: flow_list,
    },
    Target {
        name: "config",
        run: config,
    },
    Target {
        name: "trace",
        run: trace,
    },
    Target {
        name: "log",
        run: log,
    },
];

/// Runs the target of this name.
///
/// # Panics
/// There is none.
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(bytes)
}

fn ends() -> (SocketAddr, SocketAddr) {
    let end = |last| SocketAddr::from(([10, 0, 0, last], onramp_clock::wire::PORT));
    (end(1), end(2))
}

/// The text of a clock message. It gets the right tag, so that the parser behind the tag is reached.
fn message(text: &[u8]) -> bool {
    let (keys, (from, to)) = (Keys::well_known(), ends());
    let _ = sent_probe(text);
    let _ = Message::decode(text, &keys, from, to);
    let tag = keys
        .tag(0, from, to, text)
        .expect("the well-known key is 0");
    let datagram = [text, &tag.to_be_bytes()].concat();
    let Ok(message) = Message::decode(&datagram, &keys, from, to) else {
        return false;
    };
    let again = Message::decode(&message.encode(&keys, from, to), &keys, from, to);
    assert_eq!(again, Ok(message));
    true
}

/// A key of etcd: the name, a line feed, the value.
fn member(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (name, value) = bytes.split_at(end.unwrap_or(bytes.len()));
    let mut registry = Registry::new(ends().0);
    let found = Found {
        value: value.get(1..).unwrap_or_default(),
        created: 7,
        lease: 1,
    };
    registry.put(name, found);
    let (nodes, refused) = (registry.nodes().len(), registry.refused().len());
    assert_eq!(nodes + refused, 1, "a key is a node, or is refused by name");
    registry.remove(name);
    assert_eq!(registry.nodes().len() + registry.refused().len(), 0);
    nodes == 1
}

fn keys(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    Keys::parse("keys", &text).is_ok_and(|keys| keys.all().contains(&keys.signing()))
}

fn scenario(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(scenario) = Scenario::parse(&text, "fuzz.toml") else {
        return false;
    };
    let written = Scenario::parse(&scenario.to_toml(), "fuzz.toml");
    assert_eq!(written.map_err(|errors| errors.to_string()), Ok(scenario));
    true
}

fn network(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let graphs = [Graph::parse_toml(&text).ok(), Graph::parse(&text).ok()];
    let valid = graphs.into_iter().flatten();
    valid
        .filter(|graph| graph.longest_delay() >= Span::ZERO)
        .count()
        > 0
}

fn flow_list(bytes: &[u8]) -> bool {
    let names = ["flows.csv", "flows.parquet", "flows.txt"];
    let lists = names.map(|name| read_flow_list(name, bytes));
    lists.iter().any(Result::is_ok)
}

/// The configuration file, as the agent and as a clock alone read it. The reload of a valid one changes nothing.
fn config(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let read = |daemon| Configuration::parse(&text, Path::new("fuzz.toml"), daemon);
    for errors in [Daemon::Agent, Daemon::Clock]
        .map(read)
        .into_iter()
        .filter_map(Result::err)
    {
        assert!(
            errors.to_string().contains("fuzz.toml"),
            "mistakes have a place"
        );
    }
    let Ok(configuration) = read(Daemon::Agent) else {
        return false;
    };
    let changes = configuration.changes(&configuration);
    assert_eq!(changes.map_err(|errors| errors.to_string()), Ok(vec![]));
    true
}

/// A trace. What is read can be written and read again, and merged with another one.
fn trace(bytes: &[u8]) -> bool {
    let Ok(trace) = onramp_trace::read(&String::from_utf8_lossy(bytes)) else {
        return false;
    };
    let mut written = trace.clone();
    written.is_cut = false;
    let head = std::iter::once(Record::Head(trace.head.clone()));
    let flows = trace.flows.iter().cloned().map(Record::Flow);
    let hours = trace.hours.iter().cloned().map(Record::Hour);
    let line = |record| serde_json::to_string(&record).expect("a record is JSON") + "\n";
    let text: String = head.chain(flows).chain(hours).map(line).collect();
    assert_eq!(onramp_trace::read(&text), Ok(written));
    check_merged(&merge(&[trace.clone(), trace]));
    true
}

fn check_merged(merged: &Merged) {
    let hosts = merged.hosts.len() as u32;
    for flow in &merged.flows {
        assert!(flow.src < hosts && flow.dst < hosts && flow.src != flow.dst);
        assert!(Span::ZERO <= flow.start && flow.start <= merged.span);
    }
}

/// A log of flows, or a capture.
fn log(bytes: &[u8]) -> bool {
    let mut logs = Logs::default();
    let added = logs.add("log", bytes);
    // What came before a mistake of a log is still a list of flows.
    let finished = logs.finish(true);
    if let Ok(log) = &finished {
        check_merged(&log.flows);
    }
    added.is_ok() && finished.is_ok()
}
