// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A device that changes under a daemon: its name, MTU, line rate and number of transmit queues. It goes and comes back.
//! The machine of these facts has as many processors as the hosts have transmit queues.
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};
use onramp_status::{query, socket_path, RootQdisc, Status};

use super::{
    sight::scrape,
    successors::{sent_again, sent_in_vain},
};
use crate::{
    agent::{onramp, Agent, USUAL},
    maps,
    net::{shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load},
};

const PLAN: Plan = Plan {
    queues: 4,
    ..Plan::USUAL
};

fn wait_for_text(agent: &Agent, text: &str) {
    agent.wait_for(text, || agent.text().contains(text));
}

/// The status from the socket of a device.
fn status_of(host: &Host, dev: &str) -> Option<Status> {
    query(&socket_path(host.ns.inode(), dev)).ok()
}

fn devices(status: Option<Status>) -> Vec<String> {
    let devices = status.map_or(vec![], |status| status.devices);
    devices.into_iter().map(|device| device.name).collect()
}

/// What an operator has to read, without what each daemon of these facts says at its start.
fn complaints(text: &str) -> Vec<String> {
    let starts = ["are not authenticated", "is no BPF file system"];
    let is_one = |line: &&str| {
        let is_complaint = ["WARN", "ERROR", "onramp:"]
            .iter()
            .any(|word| line.contains(word));
        is_complaint && !starts.iter().any(|start| line.contains(start))
    };
    text.lines().filter(is_one).map(str::to_owned).collect()
}

fn warnings(agent: &Agent) -> Vec<String> {
    complaints(&agent.text())
}

/// The kinds of the qdiscs of the transmit queues that are in use.
fn kinds(host: &Host, queues: usize) -> Vec<String> {
    let all = host.ns.qdiscs("eth0").into_iter();
    let of_queue = |q: serde_json::Value| {
        let parent = q["parent"].as_str()?.to_owned();
        let queue = usize::from_str_radix(parent.split(':').nth(1)?, 16).ok()?;
        (queue <= queues).then(|| (queue, q["kind"].as_str().expect("a kind").to_owned()))
    };
    let mut all: Vec<(usize, String)> = all.filter_map(of_queue).collect();
    all.sort();
    all.into_iter().map(|(_, kind)| kind).collect()
}

fn use_queues(host: &Host, queues: usize) {
    host.ns.run(&format!("ethtool -L eth0 tx {queues}"));
}

/// Sends all of a host's packets on one transmit queue.
fn send_on(host: &Host, queue: usize, queues: usize) {
    for other in 0..queues {
        let mask = if other == queue { "f" } else { "0" };
        let file = format!("/sys/class/net/eth0/queues/tx-{other}/xps_cpus");
        let line = format!("echo {mask} > {file}");
        let status = host.ns.command(&["sh", "-c", &line]).status();
        assert!(status.is_ok_and(|status| status.success()), "{line}");
    }
}

/// Without following them, the new queues have the kernel's qdisc: their flows pass unheld, and the status says `own`.
pub fn new_transmit_queues_get_a_qdisc_that_holds() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    use_queues(from, 2);
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    assert_eq!(kinds(from, 4).len(), 2);
    let first = kinds(from, 4);
    use_queues(from, 4);
    wait_for_text(&sender, "4 of 4 transmit queues have a qdisc");
    let now = kinds(from, 4);
    assert_eq!(now[..2], first[..], "the others stay");
    assert!(
        now.len() == 4 && now.iter().all(|kind| kind.starts_with("onr")),
        "{now:?}"
    );
    assert_eq!(sender.status().devices[0].root_qdisc, RootQdisc::Own);
    send_on(from, 3, 4);
    let (mbit_per_s, holds) = sender.traffic(to);
    assert!(holds > 0 && sender.counter("kicks") > 0, "{holds} holds");
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
    assert_eq!(warnings(&sender), [""; 0]);
    let ended = sender.stop(Signal::SIGTERM);
    assert!(
        ended.text.contains("eth0 has its former qdisc again"),
        "{ended:?}"
    );
    assert!(from.ns.qdisc("eth0").is_none());
}

/// One qdisc served all queues, of which there was one.
pub fn a_device_that_gets_its_second_queue_gets_a_qdisc_for_each() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    use_queues(from, 1);
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let root = from.ns.qdisc("eth0").expect("a qdisc");
    assert!(
        root["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("onr")),
        "{root}"
    );
    let before = sender.traffic(to).1;
    assert!(before > 0);
    use_queues(from, 4);
    wait_for_text(&sender, "4 of 4 transmit queues have a qdisc");
    let now = kinds(from, 4);
    assert!(
        now.len() == 4 && now.iter().all(|kind| kind.starts_with("onr")),
        "{now:?}"
    );
    assert!(sender.counter("holds") >= before, "the counters stay");
    for queue in [0, 3] {
        send_on(from, queue, 4);
        let (mbit_per_s, holds) = sender.traffic(to);
        assert!(
            holds > 0 && mbit_per_s > 70.0,
            "{holds} holds, {mbit_per_s} Mbit/s"
        );
    }
    assert_eq!(warnings(&sender), [""; 0]);
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
    assert!(from.ns.qdisc("eth0").is_none());
}

/// Queues that go keep their qdiscs for when they are back.
pub fn fewer_transmit_queues_hold_and_those_that_come_back_too() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(4.0), 4);
    for queues in [2, 4, 1, 3] {
        let text = format!("transmit queues {queues}, were");
        use_queues(from, queues);
        wait_for_text(&sender, &text);
        assert_eq!(sender.status().devices[0].root_qdisc, RootQdisc::Own);
    }
    assert!(finish_all(flows) > 30.0);
    let (mbit_per_s, holds) = sender.traffic(to);
    assert!(
        holds > 0 && mbit_per_s > 70.0,
        "{holds} holds, {mbit_per_s} Mbit/s"
    );
    assert_eq!(warnings(&sender), [""; 0]);
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
    assert!(from.ns.qdisc("eth0").is_none());
}

/// With edt each new queue gets an fq like the others.
pub fn with_edt_new_transmit_queues_get_fq() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    use_queues(from, 2);
    let sender = Agent::start(from, &["--path", "edt"]);
    let _receiver = Agent::start(to, &[]);
    use_queues(from, 4);
    wait_for_text(&sender, "4 of 4 transmit queues have a qdisc");
    assert_eq!(kinds(from, 4), ["fq"; 4]);
    send_on(from, 3, 4);
    let (mbit_per_s, holds) = sender.traffic(to);
    assert!(
        holds > 0 && mbit_per_s > 70.0,
        "{holds} holds, {mbit_per_s} Mbit/s"
    );
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
    assert!(from.ns.qdisc("eth0").is_none());
}

/// What a running data path has: the quantum of the copies of its configuration, and the time of a byte on the line.
pub fn copies(agent: &Agent) -> Vec<(u32, u32)> {
    let all = maps::configurations(agent).into_iter();
    let of = |cfg: onramp_law::abi::onr_dev_cfg| (cfg.quantum_bytes, cfg.law.line_ns_per_byte_q16);
    let mut all: Vec<(u32, u32)> = all.map(of).collect();
    all.dedup();
    all
}

/// The quantum changes in place: the qdisc stays, and no packet is lost.
pub fn a_changed_mtu_changes_the_quantum_of_each_qdisc() {
    let star = Star::build(&PLAN);
    star.receive_in_order();
    let (from, to) = star.pair();
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let before = (copies(&sender), kinds(from, 4));
    let (quantum, byte_ns_q16) = before.0[0];
    assert_eq!(quantum, 2 * 1514);
    let flows = transfers(from, to, Load::seconds(2.0), 2);
    from.ns.run("ip link set eth0 mtu 9000");
    wait_for_text(&sender, "MTU 9000 B, was 1500");
    assert_eq!(copies(&sender), [(2 * 9014, byte_ns_q16)]);
    finish_all(flows);
    assert_eq!(kinds(from, 4), before.1);
    let (in_vain, dropped) = (sent_in_vain(from), star.drops_towards(to));
    let again = sent_again(from);
    assert!(
        again <= in_vain + dropped,
        "{again} sent again, {in_vain} in vain, {dropped} dropped"
    );
    sender.assert_harmless();
    assert_eq!(warnings(&sender), [""; 0]);
}

/// udev renames virtual functions under a daemon that runs.
pub fn a_renamed_device_is_held_on_under_its_new_name() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let mut sender = Agent::start(from, &["--metrics", "10.0.0.1:9464"]);
    let _receiver = Agent::start(to, &[]);
    from.ns.run("ip link set eth0 down");
    from.ns.run("ip link set eth0 name eth7");
    from.ns.run("ip link set eth7 up");
    sender.wait_for("renamed", || devices(status_of(from, "eth7")) == ["eth7"]);
    assert!(status_of(from, "eth0").is_none(), "there is no such device");
    let holds = || status_of(from, "eth7").and_then(|status| status.counter("holds"));
    let before = holds();
    finish_all(transfers(from, to, Load::seconds(0.5), 2));
    assert!(holds() > before, "{:?}", holds());
    let metrics = scrape(to, from);
    let holds_now = r#"onramp_device_holds{device="eth7"} 1"#;
    assert!(metrics.contains(holds_now), "{metrics}");
    let only = warnings(&sender);
    assert!(
        only.len() == 1 && only[0].contains("eth0 is called eth7 now"),
        "{only:?}"
    );
    assert!(sender.ended_by(Instant::now()).is_none(), "it goes on");

    // Another device takes the name: the daemon says so once, and stays.
    from.ns.run("ip link add eth0 type veth peer name other");
    wait_for_text(&sender, "another device is called eth0 now");
    assert_eq!(devices(status_of(from, "eth7")), ["eth7"]);
    // When the device goes, that of the name is the one of the configuration.
    from.ns.run("ip link del eth7");
    sender.wait_for("the other", || devices(status_of(from, "eth0")) == ["eth0"]);
    let ended = sender.stop(Signal::SIGTERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.text.contains("eth0 has its former qdisc again"),
        "{ended:?}"
    );
}

/// One message; the single device of a daemon is waited for, as one of several is.
pub fn a_single_device_that_is_removed_is_waited_for() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for options in [&["--path", "edge"][..], &["--observe"]] {
        let sender = match options {
            ["--observe"] => Agent::observe(from),
            _ => Agent::start(from, options),
        };
        let before = warnings(&sender);
        shell("ip -n h1 link del eth0");
        sender.wait_for("gone", || sender.status().devices.is_empty());
        assert_eq!(sender.status().health.missing_devices, ["eth0"]);
        let new = warnings(&sender).split_off(before.len());
        assert!(
            new.len() == 1 && new[0].contains("device eth0 was removed; the daemon waits"),
            "{new:?}"
        );
        let (_, table, _) = onramp(from, &["status"]);
        assert!(table.contains("NO DEVICE eth0"), "{table}");
        for line in [
            "ip link add eth0 netns h1 address 02:00:00:00:00:01 type veth peer name p1 netns switch",
            "ip -n switch link set p1 master sw up",
            "ip netns exec switch tc qdisc add dev p1 root netem rate 100mbit limit 400",
            "ip netns exec h1 ethtool -K eth0 tso off gro off",
            "ip -n h1 link set eth0 up",
            "ip -n h1 addr add 10.0.0.1/24 dev eth0",
        ] {
            shell(line);
        }
        sender.wait_for("back", || sender.status().devices.len() == 1);
        let receiver = Agent::start(to, &[]);
        finish_all(transfers(from, to, Load::seconds(0.5), 2));
        assert!(sender.counter("oracks_used") > 0, "{}", sender.text());
        assert!(options == ["--observe"] || sender.counter("holds") > 0);
        assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
        drop(receiver);
    }
}

/// Stopped while the device is away: nothing is left, and nothing fails.
pub fn a_daemon_that_waits_for_its_device_stops_cleanly() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let agent = Agent::start(host, &[]);
    let (before, socket) = (before_file(host), socket_path(host.ns.inode(), "eth0"));
    let lock = before.with_extension("lock");
    assert!(before.exists() && lock.exists() && socket.exists());
    shell("ip -n h1 link del eth0");
    agent.wait_for("gone", || agent.status().devices.is_empty());
    assert!(!before.exists() && !lock.exists());
    let ended = agent.stop(Signal::SIGTERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!socket.exists());
}

/// Where the daemon on a host's eth0 writes what the device had.
fn before_file(host: &Host) -> PathBuf {
    let ifindex = host.ns.enter(|| nix::net::if_::if_nametoindex("eth0"));
    let netns = host.ns.inode() & 0xf_ffff;
    let name = format!("onr_{netns:05x}_{}.before", ifindex.expect("it is there"));
    Path::new("/run/onramp").join(name)
}

/// The daemon has registered its qdisc and is about to install it: it writes a file that is a pipe, and waits for a reader.
pub fn one_that_goes_in_the_middle_of_an_attach_is_named() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    std::fs::create_dir_all("/run/onramp").expect("/run is writable");
    let file = before_file(host);
    let _ = std::fs::remove_file(&file); // of a daemon that another fact killed
    mkfifo(&file, Mode::S_IRWXU).expect("/run is writable");
    let ended = thread::scope(|scope| {
        let refused = scope.spawn(|| Agent::refuse(host, USUAL));
        let mut pipe = File::open(&file).expect("it is there");
        shell("ip -n h1 link del eth0");
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("the daemon writes");
        refused.join().expect("it is refused")
    });
    let says = "device eth0 was removed while the daemon attached to it; start the daemon again when it is back";
    assert!(ended.text.contains(says), "{ended:?}");
    assert_eq!(complaints(&ended.text).len(), 1, "{ended:?}");
    assert!(!file.exists());
}

/// Whatever socket the second has, and whether it would replace anything.
pub fn two_daemons_for_one_device_are_refused_by_name() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    for options in [&["--path", "edge"][..], &["--path", "edt"], &["--observe"]] {
        let first = match options {
            ["--observe"] => Agent::observe(host),
            _ => Agent::start(host, options),
        };
        let usual: Vec<&str> = USUAL.iter().copied().take(2).collect();
        let second = [&usual, options, &["--socket", "/tmp/second.sock"]].concat();
        let ended = Agent::refuse(host, &second);
        let kill = format!("kill {}", first.pid());
        for part in ["cannot attach to eth0", "another daemon has it", &kill] {
            assert!(ended.text.contains(part), "{part}: {}", ended.text);
        }
        assert_eq!(ended.text.matches("cannot attach").count(), 1, "{ended:?}");
        assert_eq!(warnings(&first), [""; 0]);
        assert_eq!(first.stop(Signal::SIGTERM).code, Some(0));
    }
}
