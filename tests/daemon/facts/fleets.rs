// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A fleet whose hosts are known from etcd and that elects its leader. tests/fleet has more of it, without
//! a data path.
use std::{
    net::SocketAddr,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use onramp_clock::wire::PORT;

use super::huygens::{pause_s, Fleet};
use crate::{
    maps::{now_mono_ns, Counters},
    net::{leave_subnets, Host},
    tcp::{finish_all, transfers, Load},
};

/// An etcd with this host's address.
fn etcd(host: &Host) -> Child {
    let of = |port: u16| format!("http://{}:{port}", host.v4);
    let (clients, peers) = (of(2379), of(2380));
    let cluster = format!("default={peers}");
    let words = [
        "/job/etcd",
        "--data-dir",
        "/tmp/etcd",
        "--listen-client-urls",
        &clients,
        "--advertise-client-urls",
        &clients,
        "--listen-peer-urls",
        &peers,
        "--initial-advertise-peer-urls",
        &peers,
        "--initial-cluster",
        &cluster,
    ];
    let mut command = host.ns.command(&words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("etcd starts")
}

fn await_so(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let since = Instant::now();
    while !is_so() {
        assert!(
            since.elapsed() < Duration::from_secs(8),
            "not in 8 s: {what}"
        );
        pause_s(0.1);
    }
    since.elapsed()
}

/// Its hosts have the addresses of one host, /32, as clouds give them: members are peers though no subnet has them.
pub fn one_outlives_its_leader_and_fails_open_without_etcd() {
    let mut fleet = Fleet::unborn(3);
    for (n, host) in fleet.star.hosts.iter().enumerate() {
        leave_subnets(host, n + 1);
    }
    let server = fleet.star.hosts[2].clone();
    let mut running = etcd(&server);
    fleet.known_by = ["--etcd".into(), format!("http://{}:2379", server.v4)];
    let options = ["--shape", "200Mbit/s"];
    for n in 0..3 {
        fleet.launch(n, &options);
        // The first one that is known leads.
        await_so("it is registered", || {
            let membership = fleet.agent(n).clock_status().membership.fleet;
            membership.is_some_and(|membership| membership.connected)
        });
    }
    fleet.await_synchrony();
    let status = fleet.agent(1).clock_status();
    let host = |n: u8| SocketAddr::from(([10, 0, 0, n], PORT));
    assert_eq!(status.membership.coordinator, Some(host(1)), "{status:#?}");
    let (from, to) = (fleet.star.hosts[1].clone(), fleet.star.hosts[2].clone());
    let counters = Counters::of(fleet.agent(1));
    finish_all(transfers(&from, &to, Load::seconds(0.5), 2));
    let held = counters.get("holds");
    assert!(held > 0, "{status:#?}");
    assert!(fleet.agent(1).peer(&to).oracks > 0);

    let leader = fleet.agents[0].take().expect("it runs");
    leader.stop(Signal::SIGKILL);
    let died_ns = now_mono_ns();
    let took = await_so("another leads", || {
        let status = fleet.agent(2).clock_status();
        let heard_ns = status.clock.map(|clock| clock.heard_mono_ns);
        // A verdict of the dead one may have been under way.
        let is_new = heard_ns.is_some_and(|at| at > died_ns + 500_000_000);
        let leads = status.membership.coordinator == Some(host(2));
        leads && is_new && fleet.is_synchronised()
    });
    println!("taken over in {:.1} s", took.as_secs_f64());
    fleet.assert_right(2.0);
    finish_all(transfers(&from, &to, Load::seconds(0.5), 2));
    let still_held = counters.get("holds");
    assert!(still_held > held, "nothing is held under the new leader");

    // Now etcd dies, and with it whoever could elect another leader.
    running
        .kill()
        .and_then(|()| running.wait())
        .expect("it ran");
    pause_s(7.0);
    assert!(fleet.is_synchronised(), "the leader goes on without etcd");
    fleet.agent(1).signal(Signal::SIGSTOP);
    pause_s(7.0);
    assert!(!fleet.is_synchronised());
    let (from, to) = (fleet.star.hosts[2].clone(), fleet.star.hosts[0].clone());
    let counters = Counters::of(fleet.agent(2));
    let held = counters.get("holds");
    let goodput = finish_all(transfers(&from, &to, Load::seconds(0.5), 2));
    assert_eq!(counters.get("holds"), held, "held without fleet time");
    assert!(goodput > 80.0, "{goodput} Mbit/s");

    fleet.agent(1).signal(Signal::SIGCONT);
    running = etcd(&server);
    fleet.launch(0, &options);
    fleet.await_synchrony();
    fleet.assert_right(2.0);
    finish_all(transfers(&from, &to, Load::seconds(0.5), 2));
    assert!(counters.get("holds") > held, "nothing is held again");
    running
        .kill()
        .and_then(|()| running.wait())
        .expect("it ran");
}
