// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration file: classes of flows, and what a reload changes while flows go on.
use std::{os::unix::process::ExitStatusExt, thread, time::Duration};

use bytemuck::pod_read_unaligned;
use libbpf_rs::{MapCore, MapFlags};
use nix::sys::signal::Signal;
use onramp_law::abi::{onr_ctl, ONR_NEVER_NS};

use crate::{
    agent::{Agent, PROGRAM, USUAL},
    guest::CGROUPS,
    maps::map,
    net::{Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const FILE: &str = "/tmp/onramp.toml";
fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

fn write(text: &str) {
    std::fs::write(FILE, text).expect("/tmp is writable");
}

/// The usual options but those that the file has.
fn start(host: &Host, options: &[&str]) -> Agent {
    let of_file = |option: &[&str]| option[0] == "--threshold";
    let usual: Vec<&str> = USUAL
        .chunks(2)
        .filter(|o| !of_file(o))
        .flatten()
        .copied()
        .collect();
    Agent::start_exactly(
        host,
        &[usual.as_slice(), &["--config", FILE], options].concat(),
    )
}

/// A daemon on each of both hosts, with this path.
fn start_both(star: &Star, path: &str) -> (Agent, Agent) {
    let options: &[&str] = match path {
        "edge" => &["--shape", "200Mbit/s"],
        _ => &["--path", path],
    };
    let (from, to) = star.pair();
    (start(from, options), start(to, options))
}

/// Two flows for a while to ports of this range at the receiver.
fn flows_to(star: &Star, ports: &str, seconds: f64) -> Vec<Transfer> {
    let (from, to) = star.pair();
    to.ns.sysctl("net.ipv4.ip_local_port_range", ports);
    transfers(from, to, Load::seconds(seconds), 2)
}

/// T of its class of each flow to this port, and the T that the law uses.
fn thresholds_ns(agent: &Agent, port: u16) -> Vec<(u32, u32)> {
    let ctls = map(agent, "ctls");
    let entry = |key: Vec<u8>| ctls.lookup(&key, MapFlags::ANY).expect("a map of ours");
    let all = ctls.keys().filter_map(entry);
    let all = all.map(|value| pod_read_unaligned::<onr_ctl>(&value));
    let is_to = |ctl: &onr_ctl| u16::from_be(ctl.key.dport) == port;
    all.filter(is_to)
        .map(|ctl| (ctl.class_threshold_ns, ctl.law.threshold_ns))
        .collect()
}

const CLASSES: &str = "\
devices = [\"eth0\"]
[law]
threshold = \"5 ms\"
[[class]]
name = \"excluded\"
ports = [\"7000-7009\"]
hold = false
[[class]]
name = \"patient\"
prefixes = [\"10.0.0.0/24\"]
ports = [\"8000-8009\"]
devices = [\"eth0\"]
threshold = \"20 ms\"
[[class]]
name = \"elsewhere\"
devices = [\"eth7\"]
hold = false
";

fn classes_with(path: &str) {
    write(CLASSES);
    let star = Star::build(&Plan::USUAL);
    let (_, to) = star.pair();
    let (sender, _receiver) = start_both(&star, path);
    // Holds and mean delay of two flows, and T of their class as the law uses it.
    let outcome = |first_port: u16| {
        let before = sender.counter("holds");
        let flows = flows_to(&star, &format!("{first_port} {}", first_port + 9), 3.0);
        pause_s(0.5);
        let sample = |_| {
            pause_s(0.05);
            sender.owd_ms(to)
        };
        let owd_ms = (0..40).map(sample).sum::<f64>() / 40.0;
        let thresholds: Vec<_> = flows
            .iter()
            .flat_map(|flow| thresholds_ns(&sender, flow.to_port))
            .collect();
        finish_all(flows);
        let holds = sender.counter("holds") - before;
        println!(
            "{path}, port {first_port}: {holds} holds, delay {owd_ms:.1} ms, T {thresholds:?}"
        );
        (holds, owd_ms, thresholds)
    };
    let (holds, usual_ms, thresholds) = outcome(9000);
    assert!(holds > 0 && thresholds == [(0, 0); 2]);
    let (holds, _, thresholds) = outcome(7000);
    assert_eq!(holds, 0, "an excluded port is held");
    assert_eq!(thresholds, [(ONR_NEVER_NS, ONR_NEVER_NS); 2]);
    let (holds, patient_ms, thresholds) = outcome(8000);
    assert!(holds > 0 && thresholds == [(20_000_000, 20_000_000); 2]);
    // What edt has decided once it does not change, so its delays are far above T.
    if path == "edge" {
        assert!(
            patient_ms > 1.5 * usual_ms,
            "{patient_ms} ms with T = 20 ms, {usual_ms} ms with 5 ms"
        );
    }
    sender.assert_harmless();
}

pub fn an_excluded_port_is_not_held_and_a_class_has_its_threshold() {
    classes_with("edge");
}

pub fn with_edt_classes_are_the_same() {
    classes_with("edt");
}

const OF_CGROUPS: &str = "\
devices = [\"eth0\"]
[law]
threshold = \"5 ms\"
[[class]]
name = \"excluded\"
cgroups = [\"/backup\", \"/later.slice/mirror.service\"]
hold = false
";
/// Makes this process a member of a cgroup; \"\" is the root.
fn join(cgroup: &str) {
    std::fs::create_dir_all(format!("{CGROUPS}{cgroup}")).expect("a cgroup of version 2");
    let members = format!("{CGROUPS}{cgroup}/cgroup.procs");
    std::fs::write(members, std::process::id().to_string()).expect("this process may move");
}

fn cgroups_with(path: &str) {
    write(OF_CGROUPS);
    std::fs::create_dir_all(format!("{CGROUPS}/backup")).expect("a cgroup of version 2");
    let star = Star::build(&Plan::USUAL);
    let (sender, _receiver) = start_both(&star, path);
    // T of the class of a flow whose socket is made in this cgroup.
    let of_flow = |cgroup: &str, port: u16| {
        join(cgroup);
        let flows = flows_to(&star, &format!("{port} {}", port + 9), 1.0);
        join("");
        pause_s(0.5);
        let first = flows[0].to_port;
        let all = thresholds_ns(&sender, first);
        finish_all(flows);
        println!("{path}, cgroup {cgroup:?}: {all:?}");
        all[0].0
    };
    assert_eq!(of_flow("", 7000), 0);
    assert_eq!(of_flow("/backup", 7010), ONR_NEVER_NS);
    assert_eq!(of_flow("/backup/below/it", 7020), ONR_NEVER_NS);
    assert_eq!(of_flow("/backup-of-another", 7030), 0);
    let missing = "class excluded: there is no cgroup /later.slice/mirror.service";
    assert!(sender.text().contains(missing), "{}", sender.text());

    // A service that starts after the daemon, and one that starts again, whose cgroup has another number.
    const SERVICE: &str = "/later.slice/mirror.service";
    for port in [7040, 7050] {
        join(SERVICE);
        join("");
        pause_s(2.5);
        assert_eq!(of_flow(SERVICE, port), ONR_NEVER_NS);
        std::fs::remove_dir(format!("{CGROUPS}{SERVICE}")).expect("it is empty");
    }
    sender.assert_harmless();
}

pub fn a_class_of_cgroups_has_what_their_sockets_send() {
    cgroups_with("edge");
}

pub fn with_edt_classes_of_cgroups_are_the_same() {
    cgroups_with("edt");
}

/// What `onramp reload` answers in a host: whether it succeeds, and all of its text.
fn reload(host: &Host) -> (bool, String) {
    let output = host
        .ns
        .command(&[PROGRAM, "reload"])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.signal(), None);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    println!("{text}");
    (output.status.success(), text)
}

pub fn a_reload_changes_what_can_change_and_keeps_flows() {
    const LAZY: &str = "devices = [\"eth0\"]\n[law]\nthreshold = \"900 ms\"\n";
    let eager = LAZY.replace("900 ms", "5 ms");
    write(LAZY);
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let (sender, _receiver) = (start(from, &[]), start(to, &[]));
    let flows = flows_to(&star, "7000 7009", 7.0);
    let holds_in_a_second = || {
        let before = sender.counter("holds");
        pause_s(1.0);
        sender.counter("holds") - before
    };
    pause_s(0.5);
    let created = sender.counter("flows_created");
    assert_eq!(holds_in_a_second(), 0);

    write(&eager);
    let (done, text) = reload(from);
    assert!(
        done && text.contains("law.threshold: 5 ms, was 900 ms"),
        "{text}"
    );
    assert_eq!(sender.status().threshold_ns, Some(5_000_000));
    assert!(holds_in_a_second() > 0, "the new threshold holds nothing");

    // What is refused changes nothing, not even what could change.
    write("devices = [\"eth1\"]\npath = \"edt\"\n[law]\nthreshold = \"900 ms\"\n");
    let (done, text) = reload(from);
    let says = [
        "/tmp/onramp.toml:1: devices is [eth1]",
        "/tmp/onramp.toml:2: path is edt",
        "1 of 1 daemons keep",
    ];
    assert!(
        !done && says.iter().all(|part| text.contains(part)),
        "{text}"
    );
    write("devices = [\"eth0\"]\n[law]\nthreshold = \"50\"\ngian = 1\n");
    let (done, text) = reload(from);
    let says = [
        "/tmp/onramp.toml:3: law.threshold is \"50\"",
        "law.gian is no key; do you mean law.gain?",
    ];
    assert!(
        !done && says.iter().all(|part| text.contains(part)),
        "{text}"
    );
    assert_eq!(sender.status().threshold_ns, Some(5_000_000));

    // A class for flows that are under way, by SIGHUP.
    write(&format!(
        "{eager}[[class]]\nname = \"all\"\nports = [\"7000-7009\"]\nhold = false\n"
    ));
    sender.signal(Signal::SIGHUP);
    pause_s(0.5);
    assert!(
        sender.text().contains("reloaded: [[class]]: 1, was 0"),
        "{}",
        sender.text()
    );
    assert_eq!(holds_in_a_second(), 0, "flows keep their former class");

    finish_all(flows);
    assert_eq!(
        sender.counter("flows_created"),
        created,
        "the flows lost their state"
    );
    sender.assert_harmless();
}

/// An operator who installs the package writes the usual file and gives no option.
pub fn without_options_the_usual_file_and_the_default_route_are_taken() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let run = |file: &str| {
        if !file.is_empty() {
            std::fs::create_dir_all("/etc/onramp").expect("/etc is writable");
            std::fs::write("/etc/onramp/onramp.toml", file).expect("/etc is writable");
        }
        let mut command = host.ns.command(&["timeout", "5", PROGRAM, "agent", "run"]);
        let output = command.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{text}");
        text
    };
    let message = run("");
    assert!(
        message.contains("this host has no default route") && message.contains("add --dev DEV"),
        "{message}"
    );
    host.ns.run("ip route add default via 10.0.0.2");
    let message = run("observe = true\n[link]\nline_rate = \"100 Mbit/s\"\n");
    assert!(
        message.contains("the devices of the default routes are eth0"),
        "{message}"
    );
    assert!(message.contains("observing eth0"), "{message}");
    let message = run("observe = 1\ndevice = [\"eth0\"]\n");
    let says = [
        "/etc/onramp/onramp.toml:1: observe is 1",
        "/etc/onramp/onramp.toml:2: device is no key; do you mean devices?",
    ];
    assert!(says.iter().all(|part| message.contains(part)), "{message}");
    std::fs::remove_dir_all("/etc/onramp").expect("it is there");
}
