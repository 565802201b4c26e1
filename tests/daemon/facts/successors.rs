// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A daemon that ends without restoring its device: its data path stays in a BPF file system, the next daemon goes on
//! with it, and `onramp detach` removes it.
use std::{
    collections::BTreeSet,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::query::ProgInfoIter;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{devices::with_two_devices, replacements::pretend_other_programs};
use crate::{
    agent::{onramp, Agent},
    guest::BPFFS,
    net::{shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

pub const OPTIONS: &[&str] = &["--bpffs", BPFFS, "--shape", "200Mbit/s"];
pub const GOES_ON: &str = "goes on with the flow table and the programs of the former daemon";

/// In the first namespace: `ip netns exec` copies its mounts, but none of those below /sys.
pub fn mount_bpffs() {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(BPFFS)
        .expect("/run is writable");
    shell(&format!("mount -t bpf bpf {BPFFS}"));
}

fn mount_bpffs_read_only() {
    mount_bpffs();
    shell(&format!("mount -o remount,ro {BPFFS}"));
}

pub fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// By device: kind and options of its qdisc, and its largest GSO segment. And how many tcx programs of ours run.
type Traces = (Vec<(Option<(Value, Value)>, Value)>, usize);

fn traces(host: &Host) -> Traces {
    let links = host.ns.run("ip -j -d link show");
    let links: Vec<Value> = serde_json::from_str(&links).expect("ip prints JSON");
    let of_link = |link: &Value| {
        let name = link["ifname"].as_str().filter(|name| *name != "lo")?;
        let qdisc = host.ns.qdisc(name);
        let qdisc = qdisc.map(|q| (q["kind"].clone(), q["options"].clone()));
        Some((qdisc, link["gso_max_size"].clone()))
    };
    let ours = ProgInfoIter::default().filter(|p| p.name.to_string_lossy().starts_with("orack_"));
    (links.iter().filter_map(of_link).collect(), ours.count())
}

/// Segments that the host has sent again.
pub fn sent_again(host: &Host) -> u64 {
    host.counted("snmp", "Tcp:", "RetransSegs")
}

/// Those of them that had arrived already, by what the receiver says: an ACK was late, as after a hold.
pub fn sent_in_vain(host: &Host) -> u64 {
    host.counted("netstat", "TcpExt:", "TCPDSACKRecvSegs")
}

fn pins() -> BTreeSet<String> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let programs = entries(&Path::new(BPFFS).join("onramp"));
    let devices = programs.flat_map(|programs| entries(&programs.path()));
    let name = |entry: std::fs::DirEntry| entry.path().display().to_string();
    devices.map(name).collect()
}

/// Programs vanish a little after their last user.
fn await_traces(host: &Host, wanted: &Traces) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while traces(host) != *wanted {
        assert!(
            Instant::now() < deadline,
            "{:?}, not {wanted:?}",
            traces(host)
        );
        pause_s(0.1);
    }
}

/// A daemon that ends under load, and the next one: qdisc with packets, flow table and counters are the former daemon's.
struct Succession<'a> {
    star: &'a Star,
    start: &'a dyn Fn() -> Agent,
    load: &'a dyn Fn() -> Vec<Transfer>,
    /// A counter that grows with what the data path does.
    counts: &'a str,
}

impl Succession<'_> {
    /// The next daemon. Segments are sent again that the network dropped, and no others: a qdisc that is replaced would lose
    /// dozens.
    fn run(&self, signal: Signal, code: Option<i32>) -> Agent {
        let former = (self.start)();
        let devices = former.status().devices.len();
        let flows = (self.load)();
        pause_s(1.0);
        let both = |agent: &Agent| (agent.counter("flows_created"), agent.counter(self.counts));
        let (created, count) = both(&former);
        assert!(created >= 2 && count > 0, "{created} flows, {count}");
        let ended = former.stop(signal);
        assert_eq!(ended.code, code, "{ended:?}");
        pause_s(0.3);
        let successor = (self.start)();
        let text = successor.text();
        assert_eq!(text.matches(GOES_ON).count(), devices, "{text}");
        let (created_now, count_now) = both(&successor);
        pause_s(0.5);
        let count_later = successor.counter(self.counts);
        let mbit_per_s = finish_all(flows);
        let (from, to) = self.star.pair();
        let dropped = self.star.drops_towards(to);
        let (again, in_vain) = (sent_again(from), sent_in_vain(from));
        println!(
            "{mbit_per_s:.1} Mbit/s, {again} segments sent again, {in_vain} of them in vain, {dropped} dropped by the \
             network; {} {count}, {count_now}, {count_later}",
            self.counts
        );
        assert!(again <= in_vain + dropped, "segments were lost");
        assert_eq!(
            created_now, created,
            "flows that the table had are created again"
        );
        assert!(
            count_now > count,
            "without a daemon nothing was done while the lease lasted"
        );
        assert!(count_later > count_now, "the successor does nothing");
        assert!(mbit_per_s > 80.0, "{mbit_per_s} Mbit/s");
        successor
    }

    /// After a kill. Then `check` looks at the next daemon, which is killed, too, and detached.
    fn run_and_detach(&self, check: impl Fn(&Agent)) {
        let (from, to) = self.star.pair();
        let before = traces(from);
        let receiver = Agent::start(to, &[]);
        let successor = self.run(Signal::SIGKILL, None);
        check(&successor);
        receiver.stop(Signal::SIGTERM);
        successor.stop(Signal::SIGKILL);
        assert_ne!(pins(), BTreeSet::new());
        let (code, text, error) = onramp(from, &["detach", "--bpffs", BPFFS]);
        println!("{text}");
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(pins(), BTreeSet::new());
        await_traces(from, &before);
    }
}

/// The root qdisc of a host's device, which must come back with its options.
fn has_its_own_qdisc(host: &Host) {
    host.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 quantum 4000");
}

fn goes_on_after(signal: Signal, code: Option<i32>) {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    has_its_own_qdisc(from);
    let before = traces(from);
    let receiver = Agent::start(to, &[]);
    let succession = Succession {
        star: &star,
        start: &|| Agent::start(from, OPTIONS),
        load: &|| transfers(from, to, Load::seconds(4.0), 2),
        counts: "holds",
    };
    let successor = succession.run(signal, code);
    successor.assert_harmless();
    let ended = successor.stop(Signal::SIGTERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(pins(), BTreeSet::new());
    receiver.stop(Signal::SIGTERM);
    await_traces(from, &before);
}

pub fn after_a_kill_under_load_it_goes_on_without_loss() {
    goes_on_after(Signal::SIGKILL, None);
}

pub fn after_a_handover_under_load_it_goes_on_without_loss() {
    goes_on_after(Signal::SIGUSR2, Some(0));
}

pub fn after_a_kill_it_goes_on_on_each_of_several_devices() {
    mount_bpffs();
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    has_its_own_qdisc(from);
    let load = |to: &Host| transfers(from, to, Load::seconds(4.0), 1);
    let succession = Succession {
        star: &star,
        start: &|| Agent::start(from, &["--dev", "eth0,eth1", "--bpffs", BPFFS]),
        load: &|| load(to).into_iter().chain(load(&second)).collect(),
        counts: "holds",
    };
    succession.run_and_detach(|successor| {
        let devices = successor.status().devices;
        let held: Vec<u64> = devices.iter().map(|of| of.counters["holds"]).collect();
        println!("holds {held:?}");
        assert!(held.len() == 2 && !held.contains(&0), "{held:?}");
        successor.assert_harmless();
    });
}

/// The fq that the former daemon gave to the device stays, with the packets that it holds.
pub fn after_a_kill_it_goes_on_with_edt() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let succession = Succession {
        star: &star,
        start: &|| Agent::start(from, &["--path", "edt", "--bpffs", BPFFS]),
        load: &|| transfers(from, to, Load::seconds(4.0), 2),
        counts: "holds",
    };
    succession.run_and_detach(|successor| assert_eq!(successor.status().path, "edt"));
}

/// Its successor goes on with the flow table and what would have been held. The device is as it was all the time.
pub fn after_a_kill_it_goes_on_observing() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    has_its_own_qdisc(from);
    let devices = traces(from).0;
    let succession = Succession {
        star: &star,
        start: &|| Agent::observe_with(from, &["--bpffs", BPFFS]),
        load: &|| transfers(from, to, Load::seconds(4.0), 2),
        counts: "would_hold_ns",
    };
    succession.run_and_detach(|successor| {
        assert_eq!(successor.status().path, "observe");
        assert_eq!(successor.counter("holds"), 0);
        assert_eq!(traces(from).0, devices, "the device was changed");
    });
}

/// Another law and other peers need no other programs; another size of the flow table does.
pub fn it_has_its_own_configuration_and_replaces_what_does_not_fit() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let before = traces(from);
    let start = |more: &[&str]| Agent::start(from, &[OPTIONS, more].concat());
    let first = start(&["--peers", "10.0.0.0/24"]);
    let _receiver = Agent::start(to, &[]);
    first.stop(Signal::SIGKILL);
    let second = start(&["--peers", "10.9.9.0/24"]);
    assert!(second.text().contains(GOES_ON), "{}", second.text());
    finish_all(transfers(from, to, Load::seconds(0.5), 2));
    assert_eq!(
        second.counter("holds"),
        0,
        "a peer of the former daemon is held"
    );
    second.stop(Signal::SIGKILL);
    let directories = pins();
    let third = start(&["--flows", "512"]);
    assert!(!third.text().contains(GOES_ON), "{}", third.text());
    assert_eq!(third.status().max_flows, 512);
    pause_s(1.0); // for a second the receiver sends no OR-ACKs to a host that has refused one
    finish_all(transfers(from, to, Load::seconds(0.5), 2));
    assert!(third.counter("holds") > 0, "the third does not hold");
    assert_eq!(pins(), directories, "the same programs and device");
    third.stop(Signal::SIGTERM);
    assert_eq!(pins(), BTreeSet::new());
    drop(_receiver);
    await_traces(from, &before);
}

pub fn detach_leaves_no_trace_of_a_killed_one() {
    leaves_no_trace("edge");
}

pub fn detach_leaves_no_trace_of_a_killed_one_with_edt() {
    leaves_no_trace("edt");
}

fn leaves_no_trace(path: &str) {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let detach = || onramp(host, &["detach", "--bpffs", BPFFS]);
    host.ns
        .run("tc qdisc replace dev eth0 root fq_codel limit 888 flows 64");
    let before = traces(host);
    let agent = Agent::start(host, &["--bpffs", BPFFS, "--path", path]);
    let (code, _, error) = detach();
    let says = format!("On-Ramp runs on eth0 (pid {})", agent.pid());
    assert!(code == Some(1) && error.contains(&says), "{error}");
    agent.stop(Signal::SIGKILL);
    assert_ne!(traces(host), before);
    assert_eq!(pins().len(), 1);
    let (code, text, error) = detach();
    println!("{text}");
    assert_eq!(code, Some(0), "{error}");
    for part in [
        "eth0",
        "tcx programs and maps",
        "fq_codel is again",
        "socket",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    await_traces(host, &before);
    assert!(!Path::new(BPFFS).join("onramp").exists());
    assert!(!Path::new("/run/onramp").exists());
    let (code, text, _) = detach();
    assert_eq!(
        (code, text.trim()),
        (Some(0), "nothing of On-Ramp was left")
    );
}

pub fn pins_of_a_device_that_has_gone_are_removed() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (gone, other) = star.pair();
    Agent::start(gone, OPTIONS).stop(Signal::SIGKILL);
    assert_eq!(pins().len(), 1);
    shell(&format!("ip -n {} link del eth0", gone.ns.0));
    let agent = Agent::start(other, OPTIONS);
    let says = "removed the pins of devices that have gone";
    assert!(agent.text().contains(says), "{}", agent.text());
    assert_eq!(pins().len(), 1);
    agent.stop(Signal::SIGTERM);
    assert_eq!(pins(), BTreeSet::new());
}

/// Other programs or sizes: the qdisc is replaced, and with it what waits in it. No transfer ends, and none waits long.
pub fn a_replacement_under_load_loses_no_transfer() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, OPTIONS);
    let _receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(4.0), 2);
    pause_s(1.0);
    let lost = sent_again(from);
    sender.stop(Signal::SIGUSR2);
    let successor = Agent::start(from, &[OPTIONS, &["--flows", "512"]].concat());
    assert!(!successor.text().contains(GOES_ON), "{}", successor.text());
    pause_s(0.5);
    let (lost, held) = (sent_again(from) - lost, successor.counter("holds"));
    let mbit_per_s = finish_all(flows);
    let held_later = successor.counter("holds");
    println!("{mbit_per_s:.1} Mbit/s, {lost} segments sent again; holds {held}, {held_later}");
    assert!(held_later > held, "the successor does not hold");
    assert!(mbit_per_s > 75.0, "{mbit_per_s} Mbit/s");
    successor.assert_harmless();
}

/// An upgrade: what is pinned belongs to other programs.
pub fn one_with_other_programs_replaces_them_and_their_pins() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let before = traces(from);
    let former = Agent::start(from, OPTIONS);
    former.stop(Signal::SIGUSR2);
    let own = pins();
    pretend_other_programs();
    let successor = Agent::start(from, OPTIONS);
    let _receiver = Agent::start(to, &[]);
    assert!(!successor.text().contains(GOES_ON), "{}", successor.text());
    assert_eq!(pins(), own, "pins of the former programs are left");
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(1.0), 2));
    assert!(mbit_per_s > 75.0, "{mbit_per_s} Mbit/s");
    assert!(
        successor.counter("holds") > 0,
        "the successor does not hold"
    );
    successor.stop(Signal::SIGTERM);
    drop(_receiver);
    await_traces(from, &before);
}

/// The commands of docs/operate.md, without apt and systemd: the shipped file with one change observes, another change
/// enforces, and the first one is the way back.
pub fn the_shipped_file_observes_after_one_command_and_enforces_after_another() {
    const FILE: &str = "/etc/onramp/onramp.toml";
    const MANUAL: &str = include_str!("../../../docs/operate.md");
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    std::fs::create_dir_all("/etc/onramp").expect("/etc is writable");
    std::fs::write(FILE, include_str!("../../../deploy/onramp.toml")).expect("/etc is writable");
    let commands: Vec<&str> = MANUAL
        .lines()
        .filter_map(|line| line.trim().strip_prefix("# "))
        .filter(|line| line.starts_with("sed -i "))
        .map(|line| line.split(" && ").next().expect("a command"))
        .collect();
    let [names_the_fleet, enforces, observes] = commands.as_slice() else {
        panic!("docs/operate.md has three changes of the file: {commands:?}");
    };
    let change = |command: &str| {
        let done = std::process::Command::new("sh")
            .args(["-c", command])
            .status();
        assert!(done.expect("sh starts").success(), "{command}");
    };
    for (host, other) in [(from, to), (to, from)] {
        host.ns
            .run(&format!("ip route add default via {}", other.v4));
    }
    let start = || [from, to].map(|host| Agent::start_exactly(host, &["--config", FILE]));
    let shows_a_delay = |daemon: &Agent| {
        let delays = daemon.clock_status().ways;
        delays.iter().any(|way| way.min_ns != 0)
    };
    change(names_the_fleet);
    for (command, path) in [
        (None, "observe"),
        (Some(enforces), "edge"),
        (Some(observes), "observe"),
    ] {
        command.into_iter().for_each(|command| change(command));
        let daemons = start();
        assert_eq!(daemons[0].status().path, path, "{command:?}");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !daemons.iter().any(shows_a_delay) {
            assert!(Instant::now() < deadline, "{}", daemons[0].text());
            pause_s(0.5);
        }
        for daemon in daemons {
            daemon.stop(Signal::SIGTERM);
        }
    }
    std::fs::remove_dir_all("/etc/onramp").expect("it is there");
}

/// The daemon holds without its pins, says so, and restores the device when it stops.
pub fn without_write_access_to_the_bpf_file_system_the_next_one_begins_anew() {
    mount_bpffs_read_only();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let before = traces(from);
    let [former, _receiver] = [from, to].map(|host| Agent::start(host, OPTIONS));
    println!("{}", former.text());
    let says = [
        "cannot pin",
        BPFFS,
        "Read-only",
        "the next daemon begins anew",
        "mount -o remount,rw",
    ];
    assert!(says.iter().all(|part| former.text().contains(part)));
    finish_all(transfers(from, to, Load::seconds(1.0), 1));
    assert!(former.counter("oracks_used") > 0, "{}", former.text());
    drop(former); // SIGKILL
    let next = Agent::start(from, OPTIONS);
    assert!(!next.text().contains(GOES_ON), "{}", next.text());
    assert_eq!(next.stop(Signal::SIGTERM).code, Some(0));
    assert_eq!(traces(from).0, before.0);
}
