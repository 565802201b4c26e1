// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Nonsense in etcd, and from those that it names.
use std::{
    collections::HashMap,
    net::{SocketAddr, UdpSocket},
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;
use onramp_clock::{
    keys::Keys,
    wire::{
        Body, Delays, EdgeReport, Message, Probe, Report, State, Verdict, LONGEST, PORT, VERSION,
    },
};
use onramp_sync::{
    correction::{Correction, Error},
    line::Line,
};
use onramp_units::Time;

use crate::{
    machine::until,
    world::{ip, Fleet},
};

/// The address of a host as its record has it.
fn host(net: u8, host: u8) -> String {
    format!("{}:{PORT}", ip(net, host))
}

fn record(address: &str, protocol: u8) -> String {
    format!(r#"{{"address":"{address}","protocol":{protocol},"version":"9.9"}}"#)
}

/// Members that a test registers and that must not lead. Hosts that are starved do not lead either, and join anew, which may make
/// others the oldest.
struct Registered {
    /// Name and record.
    members: Vec<(String, String)>,
    leases: Vec<i64>,
}

impl Registered {
    fn put(fleet: &Fleet, members: Vec<(String, String)>) -> Registered {
        let mut registered = Registered {
            members,
            leases: vec![],
        };
        registered.join(fleet);
        registered
    }

    fn join(&mut self, fleet: &Fleet) {
        let put = |(name, record): &(String, String)| fleet.etcd.put_member(name, record, true);
        self.leases = self.members.iter().map(put).collect();
    }

    fn leave(&mut self, fleet: &Fleet) {
        let leases = self.leases.drain(..);
        leases.for_each(|lease| fleet.etcd.revoke(lease));
    }

    /// While none of our hosts leads, they join anew.
    fn stand_back(&mut self, fleet: &Fleet) {
        if fleet.leader(1).is_none() {
            self.leave(fleet);
            self.join(fleet);
        }
    }
}

#[test]
fn nonsense_in_etcd_is_refused_by_name_and_harms_nobody() {
    let mut fleet = Fleet::start(41, 3);
    let long = "x".repeat(100_000);
    let nonsense = [
        ("text", "hello", true),
        ("long", &long, true),
        ("bytes\u{1}/../..", "\u{0}\u{7f}", true),
        ("nobody", &record(&host(41, 77), VERSION), false),
        ("port0", &record("127.0.41.77:0", VERSION), true),
        ("v6", &record("[::1]:5198", VERSION), true),
        ("all", &record("255.255.255.255:5198", VERSION), true),
    ];
    for (name, value, is_leased) in nonsense {
        fleet.etcd.put_member(name, value, is_leased);
    }
    // One looks right: a member that does not answer. And a hundred more of its kind, all of one address.
    let silent = |name: String, n: u8| (name, record(&host(41, n), VERSION));
    let alike = (0..100).map(|n| silent(format!("s{n}"), 98));
    let members = [silent("silent".into(), 99)].into_iter().chain(alike);
    let mut silent = Registered::put(&fleet, members.collect());
    fleet.until("they are told of", |f| {
        f.running().all(|agent| {
            let membership = agent.status().membership.fleet.expect("in etcd");
            membership.refused.len() == nonsense.len() && membership.nodes.len() == 104
        })
    });
    fleet.watch(2);
    let status = fleet.agent(1).status();
    let membership = status.membership.fleet.expect("in etcd");
    for (name, why) in &membership.refused {
        println!("{name}: {why}");
    }
    assert_eq!(
        status.membership.members, 5,
        "three of ours and two addresses"
    );
    until("all have fleet time", || {
        silent.stand_back(&fleet);
        fleet.running().all(|agent| agent.status().clock.is_some())
    });
    assert_eq!(fleet.steps(), 0);
}

/// The numbers of reports that three hosts send to the leader at `own` from now on.
fn reports_to(socket: &UdpSocket, own: SocketAddr) -> HashMap<SocketAddr, u64> {
    let mut reports = HashMap::new();
    let mut datagram = [0; LONGEST];
    socket.set_nonblocking(true).expect("a socket");
    while socket.recv_from(&mut datagram).is_ok() {}
    socket.set_nonblocking(false).expect("a socket");
    while reports.len() < 3 {
        let (bytes, from) = socket.recv_from(&mut datagram).expect("hosts report");
        let message = Message::decode(&datagram[..bytes], &Keys::well_known(), from, own);
        let message = message.expect("of the fleet");
        if let Body::Report(_) = message.body {
            reports.insert(from, message.seq);
        }
    }
    reports
}

/// Whoever has the oldest key leads, even if it lies. None of what it says is believed; when it is gone,
/// another leads.
/// Corrections that no host can follow.
fn lies() -> [Correction; 5] {
    let sane = Correction {
        reference: Time::from_ticks(onramp_clock::stamps::now_mono_ns()),
        offset_ns: 0,
        drift: 0.0,
        bend: 0.0,
        error: Error {
            sigma_ns: 100.0,
            drift_sigma: 1e-8,
            wander_per_s: 1e-8,
        },
    };
    [
        Correction { drift: 0.5, ..sane },
        Correction {
            offset_ns: i64::MAX,
            ..sane
        },
        Correction {
            reference: Time::from_ticks(i64::MIN),
            ..sane
        },
        Correction {
            error: Error {
                sigma_ns: -1.0,
                ..sane.error
            },
            ..sane
        },
        Correction {
            error: Error {
                sigma_ns: 1e12,
                ..sane.error
            },
            ..sane
        },
    ]
}

#[test]
fn a_leader_that_talks_nonsense_is_not_followed() {
    let mut fleet = Fleet::empty(42, &[]);
    let own = fleet.address(9);
    let socket = UdpSocket::bind(own).expect("a free address");
    let lease = fleet
        .etcd
        .put_member("liar", &record(&own.to_string(), VERSION), true);
    (1..=3).for_each(|n| fleet.launch(n, &[]));
    fleet.until("they follow it", |f| {
        f.running().all(|agent| {
            agent
                .try_status()
                .is_some_and(|s| s.membership.coordinator == Some(own) && s.membership.members == 4)
        })
    });
    let term = fleet.agent(1).status().membership.term;
    let reports = reports_to(&socket, own);
    let lies = lies();
    for (seq, lie) in (1u64..).zip(lies) {
        for n in 1..=3 {
            let verdict = Verdict {
                answers: reports[&fleet.address(n)],
                state: State::Synchronised(lie),
                wall: None,
                delays: vec![],
            };
            let body = Body::Verdict(verdict);
            let message = Message { seq, term, body };
            let datagram = message.encode(&Keys::well_known(), own, fleet.address(n));
            socket.send_to(&datagram, fleet.address(n)).expect("sent");
        }
    }
    // What nobody can read, and a version that nobody speaks.
    let keys = Keys::well_known();
    for n in 1..=3 {
        let mut text = vec![VERSION + 7, 4, 0, 0];
        text.extend([9; 60]);
        let tag = keys.tag(0, own, fleet.address(n), &text).expect("key 0");
        let datagram = [&text[..], &tag.to_be_bytes()].concat();
        socket.send_to(&datagram, fleet.address(n)).expect("sent");
    }
    fleet.until("all lies are refused", |f| {
        f.running().all(|agent| {
            let other = agent.status().membership.other_versions;
            agent.count("verdicts_refused") == lies.len() as u64 && other == [(own, VERSION + 7)]
        })
    });
    assert!(fleet.is_timeless(&[1, 2, 3]));
    fleet.etcd.revoke(lease);
    fleet.settle();
}

/// A member with the key, which answers no probe and says of its neighbours' clocks what nobody else says.
struct Liar {
    socket: UdpSocket,
    own: SocketAddr,
    registered: Registered,
    seq: u64,
    far_epoch: u32,
    /// Verdicts that it contradicts the others.
    verdicts: u64,
}

impl Liar {
    fn join(fleet: &Fleet) -> Liar {
        let own = fleet.address(9);
        let socket = UdpSocket::bind(own).expect("a free address");
        socket.set_nonblocking(true).expect("it can");
        let member = ("liar".to_owned(), record(&own.to_string(), VERSION));
        Liar {
            socket,
            own,
            registered: Registered::put(fleet, vec![member]),
            seq: 0,
            far_epoch: 0,
            verdicts: 0,
        }
    }

    /// Lies to whoever leads.
    fn lie(&mut self, fleet: &Fleet) {
        self.read();
        match fleet.leader(1) {
            Some((leader, term)) => self.report(fleet, fleet.address(leader), term),
            None => self.registered.stand_back(fleet),
        }
    }

    /// Takes what has come: probes would fill its buffer within seconds.
    fn read(&mut self) {
        let mut datagram = [0; LONGEST];
        while let Ok((bytes, from)) = self.socket.recv_from(&mut datagram) {
            let message = Message::decode(&datagram[..bytes], &Keys::well_known(), from, self.own);
            match message.map(|message| message.body) {
                Ok(Body::Verdict(verdict)) => {
                    self.verdicts += u64::from(verdict.state == State::Contradictory);
                }
                Ok(Body::Probe(probe)) => self.far_epoch = probe.epoch, // all hosts have this kernel's
                _ => {}
            }
        }
    }

    fn report(&mut self, fleet: &Fleet, leader: SocketAddr, term: u64) {
        const STEP_NS: i64 = 3_000_000;
        let at = Time::from_ticks(onramp_clock::stamps::now_mono_ns());
        let edge = |n: i64| EdgeReport {
            far: fleet.address(n as usize),
            far_epoch: self.far_epoch,
            line: Line {
                at,
                about_ns: n * n * STEP_NS,
                ahead_ns: 0.0,
                drift: 0.0,
                delay_ns: 20_000.0,
                points: 60,
                sigma_ns: 50.0,
                drift_sigma: 2e-8,
            },
            delays: Delays::default(),
        };
        let (follows, edges) = (None, (1..=3).map(edge).collect());
        let body = Body::Report(Report {
            epoch: 0,
            follows,
            edges,
        });
        self.seq += 1;
        let message = Message {
            seq: self.seq,
            term,
            body,
        };
        let datagram = message.encode(&Keys::well_known(), self.own, leader);
        self.socket.send_to(&datagram, leader).expect("sent");
    }

    /// Whether the leader names it, and says so to whoever asks there.
    fn is_named(&self, fleet: &Fleet) -> bool {
        let Some((leader, _)) = fleet.leader(1) else {
            return false;
        };
        let line = format!("{} is excluded: its edges contradict", self.own);
        named(fleet) == [self.own] && fleet.agent(leader).shown().contains(&line)
    }
}

/// Whom the leader names.
fn named(fleet: &Fleet) -> Vec<SocketAddr> {
    let status = fleet
        .leader(1)
        .and_then(|(leader, _)| fleet.agent(leader).try_status());
    status.map_or(vec![], |status| status.membership.contradictory)
}

/// It has no fleet time, the leader names it, and it moves nobody.
#[test]
fn a_host_with_false_edges_is_named_and_moves_nobody() {
    let mut fleet = Fleet::start(47, 3);
    let mut liar = Liar::join(&fleet);
    fleet.until("it is a member", |f| {
        f.running()
            .all(|agent| agent.status().membership.members == 4)
    });
    assert!(named(&fleet).is_empty());
    until("it is named", || {
        liar.lie(&fleet);
        fleet.look();
        liar.is_named(&fleet)
    });
    for _ in 0..3 {
        liar.lie(&fleet);
        fleet.watch(1);
    }
    until("it is still named", || {
        liar.lie(&fleet);
        fleet.look();
        liar.is_named(&fleet)
    });
    until("the others have fleet time, and are not excluded", || {
        liar.lie(&fleet);
        fleet.look();
        let Some((leader, _)) = fleet.leader(1) else {
            return false;
        };
        let mut others = (1..=3).filter(|n| *n != leader);
        others.all(|n| {
            let has_time = fleet.agent(n).status().clock.is_some();
            has_time && !fleet.agent(n).shown().contains("is excluded")
        })
    });
    // Fleet time may have stepped: where the others are stopped, the liar may be the only one who speaks to a new leader. Who
    // steps doubts it (`look`).
    assert!(liar.verdicts > 0, "its state is contradictory");
    liar.registered.leave(&fleet);
    fleet.until("who has left is no longer named", |f| named(f).is_empty());
    fleet.settle();
}

/// A fleet that is upgraded host by host has one leader at a time, and says who waits for whom.
#[test]
fn nodes_of_another_protocol_are_named_and_never_followed() {
    let mut fleet = Fleet::start(43, 2);
    let later = record(&host(43, 9), VERSION + 1);
    let mut later = Registered::put(&fleet, vec![("later".to_owned(), later)]);
    fleet.until("it is named", |f| {
        let membership = f.agent(1).status().membership.fleet.expect("in etcd");
        membership
            .nodes
            .iter()
            .any(|node| node.name == "later" && node.protocol == VERSION + 1)
    });
    fleet.watch(2);
    until("it is no member and does no harm", || {
        later.stand_back(&fleet);
        fleet.is_whole()
    });
    // Both of ours begin again: now the other one is the oldest.
    for n in [1, 2] {
        fleet.stop(n, nix::sys::signal::Signal::SIGTERM);
    }
    for n in [1, 2] {
        fleet.launch(n, &[]);
    }
    until("nobody of ours leads", || {
        (1..=2).all(|n| {
            fleet
                .agent(n)
                .try_status()
                .is_some_and(|s| s.state == "without a leader")
        })
    });
    fleet.watch(2);
    assert!(
        fleet.is_timeless(&[1, 2]),
        "two protocols would make two fleet times"
    );
    later.leave(&fleet);
    fleet.settle();
}

/// In the three steps of docs/clock.md: nobody loses the fleet's time, and nobody refuses anybody.
#[test]
fn keys_are_changed_without_a_gap() {
    const OLD: &str = "0 000102030405060708090a0b0c0d0e0f\n";
    const NEW: &str = "1 f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n";
    let mut fleet = Fleet::empty(44, &[]);
    let (url, keys) = (fleet.etcd.url.clone(), fleet.write_keys(OLD));
    for n in 1..=3 {
        fleet.launch(n, &["--etcd", &url, "--key-file", &keys]);
    }
    fleet.settle();
    for text in [[OLD, NEW].concat(), [NEW, OLD].concat(), NEW.to_owned()] {
        fleet.write_keys(&text);
        fleet
            .running()
            .for_each(|agent| agent.signal(Signal::SIGHUP));
        fleet.watch(2);
        // Whoever lacked a processor may have no fleet time for a moment.
        fleet.until(&format!("all agree with the keys {text}"), Fleet::is_whole);
    }
    assert!(fleet.running().all(|agent| agent.count("bad_tag") == 0));
    // Who has the old key alone is refused.
    fleet.write_keys(OLD);
    fleet.agent(1).signal(Signal::SIGHUP);
    until("its messages are refused", || {
        fleet.agent(2).count("bad_tag") > 0
    });
}

/// A host without the key sends forgeries for two windows.
#[test]
fn a_flood_of_forgeries_is_counted_and_gets_no_answer() {
    const KEY: &str = "0 000102030405060708090a0b0c0d0e0f\n";
    let mut fleet = Fleet::empty(45, &[]);
    let (url, keys) = (fleet.etcd.url.clone(), fleet.write_keys(KEY));
    for n in 1..=3 {
        fleet.launch(n, &["--etcd", &url, "--key-file", &keys]);
    }
    fleet.settle();
    let stranger = UdpSocket::bind(fleet.address(9)).expect("a free address");
    let ends = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let (stranger, ends) = (
            stranger.try_clone().expect("a descriptor"),
            Arc::clone(&ends),
        );
        let targets = [1, 2, 3].map(|n| fleet.address(n));
        move || send_forgeries(&stranger, &targets, &ends)
    });
    fleet.watch(2);
    let count = |fleet: &Fleet, name| fleet.running().map(|agent| agent.count(name)).sum::<u64>();
    fleet.until("forgeries are counted", |f| {
        count(f, "bad_tag") > 100 && count(f, "malformed") > 100
    });
    ends.store(true, Ordering::Relaxed);
    flood.join().expect("it sends");
    assert_eq!(fleet.steps(), 0);
    stranger.set_nonblocking(true).expect("it can");
    let answer = stranger.recv_from(&mut [0; 1500]);
    assert!(answer.is_err(), "a stranger is answered: {answer:?}");
    fleet.settle();
}

/// Sends until told to end.
fn send_forgeries(from: &UdpSocket, targets: &[SocketAddr], ends: &AtomicBool) {
    let own = from.local_addr().expect("bound");
    let mut sent = 0;
    while !ends.load(Ordering::Relaxed) {
        for target in targets {
            let body = Body::Probe(Probe::default());
            let message = Message {
                seq: sent,
                term: sent,
                body,
            };
            let wrong = message.encode(&Keys::well_known(), own, *target);
            for datagram in [&wrong[..], &wrong[..20], &[0xff; 1400]] {
                sent += u64::from(from.send_to(datagram, target).is_ok());
            }
        }
        // machine: leaves the daemons some of the processor; how much matters to nobody
        thread::sleep(Duration::from_micros(100));
    }
}
