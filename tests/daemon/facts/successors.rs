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

use crate::{
    agent::{onramp, Agent},
    guest::BPFFS,
    net::{shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load},
};

const OPTIONS: &[&str] = &["--bpffs", BPFFS, "--shape", "200Mbit/s"];
const GOES_ON: &str = "goes on with the flow table and the programs of the former daemon";

/// In the first namespace: `ip netns exec` copies its mounts, but none of those below /sys.
fn mount_bpffs() {
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

fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// What tc and ip say of eth0, its largest GSO segment included, and how many tcx programs of ours run.
fn traces(host: &Host) -> (Option<(Value, Value)>, Value, usize) {
    let qdisc = host.ns.qdisc("eth0");
    let links = host.ns.run("ip -j -d link show dev eth0");
    let links: Value = serde_json::from_str(&links).expect("ip prints JSON");
    let ours = ProgInfoIter::default().filter(|p| p.name.to_string_lossy().starts_with("orack_"));
    let qdisc = qdisc.map(|q| (q["kind"].clone(), q["options"].clone()));
    (qdisc, links[0]["gso_max_size"].clone(), ours.count())
}

/// Segments that the host has sent again.
fn sent_again(host: &Host) -> u64 {
    let text = host.ns.run("cat /proc/net/snmp");
    let mut tcp = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (tcp.next().expect("names"), tcp.next().expect("values"));
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    let found = both.find(|(name, _)| *name == "RetransSegs");
    found.expect("a counter").1.parse().expect("a number")
}

fn pins() -> BTreeSet<String> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let programs = entries(&Path::new(BPFFS).join("onramp"));
    let devices = programs.flat_map(|programs| entries(&programs.path()));
    let name = |entry: std::fs::DirEntry| entry.path().display().to_string();
    devices.map(name).collect()
}

/// Programs vanish a little after their last user.
fn await_traces(host: &Host, wanted: &(Option<(Value, Value)>, Value, usize)) {
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

/// Under load, the qdisc with its packets, the flow table and the counters are the former daemon's.
fn goes_on_after(signal: Signal, code: Option<i32>) {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 quantum 4000");
    let before = traces(from);
    let sender = Agent::start(from, OPTIONS);
    let receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(4.0), 2);
    pause_s(1.0);
    let (created, held) = (sender.counter("flows_created"), sender.counter("holds"));
    assert!(created >= 2 && held > 0, "{created} flows, {held} holds");
    let lost = sent_again(from);
    let ended = sender.stop(signal);
    assert_eq!(ended.code, code, "{ended:?}");
    pause_s(0.3);
    let successor = Agent::start(from, OPTIONS);
    assert!(successor.text().contains(GOES_ON), "{}", successor.text());
    let (created_now, held_now) = (
        successor.counter("flows_created"),
        successor.counter("holds"),
    );
    pause_s(0.5);
    let (lost, held_later) = (sent_again(from) - lost, successor.counter("holds"));
    let mbit_per_s = finish_all(flows);
    println!(
        "{mbit_per_s:.1} Mbit/s, {lost} segments sent again; holds {held}, {held_now}, {held_later}"
    );
    assert_eq!(
        created_now, created,
        "flows that the table had are created again"
    );
    assert!(held_now > held, "without a daemon, the lease still holds");
    assert!(held_later > held_now, "the successor holds");
    assert_eq!(lost, 0, "segments were lost");
    assert!(mbit_per_s > 80.0, "{mbit_per_s} Mbit/s");
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

/// An upgrade: what is pinned belongs to other programs, by the name of their directory.
pub fn one_with_other_programs_replaces_them_and_their_pins() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let before = traces(from);
    let former = Agent::start(from, OPTIONS);
    former.stop(Signal::SIGUSR2);
    let own = pins();
    let root = Path::new(BPFFS).join("onramp");
    let mut programs = std::fs::read_dir(&root).expect("pins").flatten();
    let programs = programs.next().expect("a directory of programs").path();
    std::fs::rename(programs, root.join("0123456789abcdef")).expect("the same file system");
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
