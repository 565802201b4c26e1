// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What operators see: metrics, `onramp top`, `onramp doctor` and `onramp connectivity`, beside a data path that holds.
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{kill, Signal},
    unistd::Pid,
};
use onramp_status::{Flow, Verdict};

use super::successors::mount_bpffs;
use crate::{
    agent::{onramp, Agent, PROGRAM},
    guest::BPFFS,
    net::{shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

/// The metrics of a daemon at 10.0.0.1:9464, as another host reads them.
pub fn scrape(from: &Host, daemon: &Host) -> String {
    from.ns.enter(|| {
        let mut stream = TcpStream::connect((daemon.v4, 9464)).expect("the port is open");
        let request = b"GET /metrics HTTP/1.0\r\n\r\n";
        stream.write_all(request).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        assert!(text.starts_with("HTTP/1.0 200"), "{text}");
        text
    })
}

fn value(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = line.unwrap_or_else(|| panic!("no {series} in {text}"));
    value.parse().expect("a number")
}

/// Under the local clock, on both paths: each pause is in the histogram, and what the daemon counts is served.
pub fn metrics_are_those_of_the_data_path() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let _receiver = Agent::start(to, &[]);
    for path in ["edge", "edt"] {
        let sender = Agent::start(from, &["--path", path, "--metrics", "10.0.0.1:9464"]);
        finish_all(transfers(from, to, Load::seconds(1.0), 2));
        let counted = || ["holds", "oracks_used"].map(|name| sender.counter(name) as f64);
        let before = counted();
        let text = scrape(to, from);
        let after = counted(); // the scrape is traffic too
        let series =
            |name: &str, labels: &str| value(&text, &format!("{name}{{device=\"eth0\"{labels}}}"));
        let count = series("onramp_pause_seconds_count", "");
        let sum = series("onramp_pause_seconds_sum", "");
        let longest = series("onramp_pause_max_seconds", "");
        println!("{path}: {count} pauses, {sum} s, longest {longest} s");
        assert!(count > 0.0, "{text}");
        assert_eq!(count, series("onramp_pause_seconds_bucket", ",le=\"+Inf\""));
        assert!(sum / count <= longest && longest < 0.11, "{text}");
        let below_1_us = series("onramp_pause_seconds_bucket", ",le=\"0.000001024\"");
        let up_to_67_ms = series("onramp_pause_seconds_bucket", ",le=\"0.067108864\"");
        assert!(below_1_us < up_to_67_ms, "{text}");
        assert_eq!(up_to_67_ms == count, longest <= 0.067_108_864, "{text}");
        let used = series("onramp_oracks_received_total", ",outcome=\"used\"");
        for (served, (least, most)) in [count, used].iter().zip(before.iter().zip(after)) {
            assert!(
                (*least..=most).contains(served),
                "{served}: {before:?}, {after:?}"
            );
        }
        assert_eq!(series("onramp_device_holds", ""), 1.0);
        assert!(value(&text, "onramp_peer_paused_seconds_total{peer=\"10.0.0.2\"}") > 0.0);
        assert!(
            !text.contains("onramp_clock_"),
            "the local clock has none: {text}"
        );
    }
}

/// Each tool beside two daemons, as an operator runs it.
pub fn top_doctor_and_connectivity_agree_with_the_daemon() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let before = from
        .ns
        .command(&[PROGRAM, "doctor", "--dev", "eth0"])
        .output();
    let before = String::from_utf8(before.expect("it runs").stdout).expect("text");
    println!("{before}");
    assert!(before.contains("path          ok       edge"), "{before}");
    let sender = Agent::start(from, &[]);
    let receiver = Agent::start(to, &[]);
    let doctor = from.ns.run(&format!("{PROGRAM} doctor --dev eth0"));
    let pid = format!("pid {}", sender.status().pid);
    assert!(
        doctor.contains("On-Ramp's") && doctor.contains(&pid),
        "{doctor}"
    );

    let mut server = to
        .ns
        .command(&[PROGRAM, "connectivity", "serve"])
        .stdout(Stdio::null())
        .spawn()
        .expect("ip starts");
    let test = [PROGRAM, "connectivity", "test", "10.0.0.2"];
    let deadline = Instant::now() + Duration::from_secs(20);
    let output = loop {
        let output = from.ns.command(&test).output().expect("ip starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            break text;
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(Instant::now() < deadline, "{text}{errors}");
        thread::sleep(Duration::from_millis(200));
    };
    println!("{output}");
    assert!(output.starts_with("2000000 B there and back"), "{output}");
    assert_eq!(output.matches(" ok ").count(), 5, "{output}");

    drop(receiver);
    let output = from.ns.command(&test).output().expect("ip starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED"), "{text}");
    let _ = server.kill();
    let _ = server.wait();

    let top = from
        .ns
        .run(&format!("{PROGRAM} top --once --interval 200ms"));
    println!("{top}");
    assert!(top.starts_with("eth0: path edge"), "{top}");
    assert!(
        top.lines().any(|line| line.starts_with("10.0.0.2 ")),
        "{top}"
    );
}

/// The devices are those of the default routes. What a killed daemon left is said until `onramp detach` has removed it.
pub fn doctor_names_what_a_killed_daemon_left() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns.run(&format!("ip route add default via {}", to.v4));
    mount_bpffs();
    let killed = Agent::start(from, &["--bpffs", BPFFS]);
    assert_eq!(killed.stop(Signal::SIGKILL).code, None);
    let doctor = || {
        let (code, output, errors) = onramp(from, &["doctor", "--config", "/dev/null"]);
        println!("{output}");
        assert_eq!(code, Some(0), "{output}{errors}");
        output
    };
    let left = "limited  On-Ramp's, of a daemon that was killed";
    let output = doctor();
    assert!(output.contains("\neth0\n"), "{output}");
    for feature in ["qdisc", "tcx programs"] {
        assert!(
            output.contains(&format!("  {feature:<13} {left}")),
            "{output}"
        );
    }
    assert!(output.contains("onramp detach --dev eth0"), "{output}");
    from.ns
        .run(&format!("{PROGRAM} detach --bpffs {BPFFS} --dev eth0"));
    assert!(!doctor().contains("killed"));
}

/// Flows on connections of their own are in the trace of a daemon that observes, each with its size and delays, and cost
/// it little. A pause of 100 ms ends a flow: TCP alone makes pauses of 10 ms here.
pub fn an_observer_writes_a_trace_of_flows() {
    const PATH: &str = "/tmp/flows.trace";
    const BYTES: u64 = 200_000;
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::observe_with(
        from,
        &[
            "--trace",
            PATH,
            "--trace-look",
            "10ms",
            "--trace-gap",
            "100ms",
        ],
    );
    let _receiver = Agent::observe(to);
    let began = (Instant::now(), sender.cpu_ns());
    for _ in 0..5 {
        finish_all(transfers(from, to, Load::bytes(BYTES), 4));
        thread::sleep(Duration::from_millis(200));
    }
    let cpu = 100.0 * (sender.cpu_ns() - began.1) as f64 / began.0.elapsed().as_nanos() as f64;
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
    let text = std::fs::read_to_string(PATH).expect("it was written");
    let records = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let flows: Vec<serde_json::Value> = records
        .filter(|r: &serde_json::Value| r["kind"] == "flow")
        .collect();
    println!(
        "{} flows, {cpu:.2} % of a core with 100 looks a second",
        flows.len()
    );
    assert_eq!(flows.len(), 20, "{text}");
    for flow in &flows {
        let size = flow["size_bytes"].as_u64().expect("a size");
        assert!(size.abs_diff(BYTES) <= 14_480, "{flow}");
        assert!(flow["delays"]["samples"].as_u64() > Some(0), "{flow}");
        assert_eq!(flow["to"], to.v4.to_string());
    }
}

/// `onramp trace` beside two flows that share a link: what it prints agrees with the traffic, Ctrl-C ends it, and the name
/// of a flow that does not exist leads to those that do.
pub fn a_traced_flow_is_as_the_daemon_sees_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(4.0), 2);
    thread::sleep(Duration::from_millis(500));
    let ends = |flow: &Transfer| {
        (
            format!("{}:{}", from.v4, flow.from_port),
            format!("{}:{}", to.v4, flow.to_port),
        )
    };
    let (near, far) = ends(&flows[0]);
    let seen = trace_for(from, &near, &far, Duration::from_millis(1500));
    let (first, last) = (&seen[0], &seen[seen.len() - 1]);
    let sent = last.sent_bytes - first.sent_bytes;
    let mbit_per_s = 8e3 * sent as f64 / (last.mono_ns - first.mono_ns) as f64;
    let count = |verdict| seen.iter().filter(|flow| flow.verdict == verdict).count();
    println!(
        "{} looks, {mbit_per_s:.1} Mbit/s, held in {}, free in {}",
        seen.len(),
        count(Verdict::Held),
        count(Verdict::Free)
    );
    assert!((5.0..95.0).contains(&mbit_per_s), "{mbit_per_s} Mbit/s");
    assert!(count(Verdict::Held) > 0, "{seen:?}");
    assert_eq!(last.threshold_ns, Some(5_000_000));
    assert!(last.paused_ns > first.paused_ns, "{first:?} {last:?}");
    assert!(last.peer_oracks > first.peer_oracks, "{first:?} {last:?}");
    let largest_ns = seen.iter().filter_map(|flow| flow.owd_ns).max();
    assert!(largest_ns > Some(5_000_000), "{largest_ns:?}");

    let (code, _, errors) = onramp(from, &["trace", "10.0.0.1:1", &far]);
    println!("{errors}");
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains(&format!("onramp trace {near} {far}")),
        "{errors}"
    );
    finish_all(flows);
    sender.assert_harmless();
}

/// What `onramp trace` prints until Ctrl-C, which must end it well.
fn trace_for(host: &Host, near: &str, far: &str, time: Duration) -> Vec<Flow> {
    let words = [PROGRAM, "trace", near, far, "--json", "--interval", "10ms"];
    let mut command = host.ns.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("ip starts");
    thread::sleep(time);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    let text = String::from_utf8(output.stdout).expect("text");
    let flows: Vec<Flow> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a flow"))
        .collect();
    assert!(flows.len() > 10, "{text}");
    flows
}

/// An observer that traces flows to `path`; a pause of 100 ms ends a flow.
fn tracing(host: &Host, path: &str) -> Agent {
    let options = [
        "--trace",
        path,
        "--trace-look",
        "10ms",
        "--trace-gap",
        "100ms",
    ];
    Agent::observe_with(host, &options)
}

fn trace_of(agent: &Agent) -> onramp_status::Trace {
    agent.status().trace.expect("it traces")
}

/// The full disk is on the sender, the one without write access on the receiver.
pub fn a_trace_on_a_full_or_read_only_file_system_is_lost_and_the_daemon_stays() {
    shell("mkdir /run/full /run/fixed");
    shell("mount -t tmpfs -o size=64k full /run/full");
    shell("mount -t tmpfs -o ro fixed /run/fixed");
    std::fs::write("/run/full/others", vec![0; 65536]).expect("it has just this room");
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let [full, fixed] = [(from, "/run/full/t"), (to, "/run/fixed/t")].map(|(h, p)| tracing(h, p));
    let send = || {
        finish_all(transfers(from, to, Load::bytes(200_000), 4));
        thread::sleep(Duration::from_millis(500));
    };
    send();
    let (lost, refused) = (trace_of(&full), trace_of(&fixed));
    println!("{lost:?}\n{refused:?}");
    assert!(lost.written == 0 && lost.lost >= 4, "{lost:?}");
    let says =
        |trace: &onramp_status::Trace, part| trace.error.as_ref().is_some_and(|e| e.contains(part));
    assert!(says(&lost, "No space left") && says(&lost, "free some space"));
    assert!(says(&refused, "Read-only") && says(&refused, "set trace.path"));
    std::fs::remove_file("/run/full/others").expect("it is there");
    send();
    let found = trace_of(&full);
    assert!(found.written >= 4 && found.error.is_none(), "{found:?}");
    for agent in [full, fixed] {
        assert_eq!(agent.stop(Signal::SIGTERM).code, Some(0));
    }
    shell("umount /run/full /run/fixed");
}
