// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The virtual machine as its users see it. Each fact boots a guest, about 5 s.
//! machine: guests sleep in virtual time, and the one fact that sleeps itself does so between two looks.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Outcome, Vm, VmError};

fn machine(seed: u64) -> Vm {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let kernel = Kernel::find(&cache).unwrap_or_else(|error| panic!("{error}"));
    Vm {
        kernel,
        cache,
        memory_mib: 512,
        processors: 1,
        seed,
        plugin: None,
        cards: vec![],
        ptp_clock: None,
        modules: &[],
    }
}

/// A job that runs `script` in bash and leaves its files in `out`.
fn job(script: &str, out: &Path) -> Job {
    let script = GuestFile {
        path: "/job/script".into(),
        content: Content::Bytes(script.into()),
    };
    Job {
        command: vec!["bash".into(), "script".into()],
        files: vec![script],
        out: out.to_owned(),
        patience: Duration::from_secs(300),
    }
}

/// What `script` printed on a machine with `seed`, and its files.
fn run(seed: u64, script: &str) -> (Outcome, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let outcome = machine(seed).run(
        &job(script, out.path()),
        &AtomicBool::new(false),
        &mut |_| {},
    );
    (outcome.unwrap_or_else(|error| panic!("{error}")), out)
}

#[test]
fn a_command_gets_its_files_and_hands_over_its_lines_files_and_exit_code() {
    let out = tempfile::tempdir().unwrap();
    let mut job = job("", out.path());
    job.command = [
        "bash",
        "-c",
        "cat given; echo \"it's $1\" >&2; mkdir $OUT/a; seq 100000 >$OUT/a/numbers; exit 3",
        "-",
        "two words",
    ]
    .map(String::from)
    .to_vec();
    job.files = vec![GuestFile {
        path: "/job/given".into(),
        content: Content::Bytes(b"content\n".to_vec()),
    }];
    let mut lines = Vec::new();
    let outcome = machine(1)
        .run(&job, &AtomicBool::new(false), &mut |line| {
            lines.push(line.to_owned())
        })
        .unwrap();
    assert_eq!(outcome.exit_code, 3);
    assert_eq!(lines, ["content", "it's two words"]);
    assert_eq!(outcome.output, "content\nit's two words\n");
    let numbers = std::fs::read_to_string(out.path().join("a/numbers")).unwrap();
    assert_eq!(numbers.lines().count(), 100_000);
    let error = outcome.success().unwrap_err().to_string();
    assert!(
        error.contains("exit code 3") && error.ends_with("it's two words"),
        "{error}"
    );
}

#[test]
fn a_guest_has_what_the_rack_needs() {
    let script = "set -e
        ip link add left type veth peer name right; ip link add switch type bridge
        tc qdisc add dev left root fq; tc qdisc add dev right root netem rate 100mbit limit 100
        tc qdisc add dev switch clsact; tc filter add dev switch ingress matchall action ok
        sysctl -n net.ipv4.tcp_available_congestion_control
        ls -d /sys/fs/bpf /sys/kernel/btf/vmlinux /sys/kernel/tracing/events /sys/fs/cgroup/cgroup.procs";
    let (outcome, _out) = run(1, script);
    let output = outcome
        .success()
        .unwrap_or_else(|error| panic!("{error}"))
        .output;
    for congestion_control in ["cubic", "bbr", "dctcp"] {
        assert!(output.contains(congestion_control), "{output}");
    }
}

/// Two TCP flows through a bridge into a shallow port; prints times, drops, counters, randomness.
const TRAFFIC: &str = "
    ip netns add sw; ip -n sw link add br0 type bridge; ip -n sw link set br0 up
    for i in 1 2 3; do
        ip netns add h$i; ip link add eth0 netns h$i type veth peer name p$i netns sw
        ip -n h$i addr add 10.0.0.$i/24 dev eth0; ip -n h$i link set eth0 up
        ip -n sw link set p$i master br0 up; tc -n h$i qdisc add dev eth0 root fq
    done
    tc -n sw qdisc add dev p3 root netem rate 100mbit limit 10
    for i in 1 2; do (sleep 1000 | ip netns exec h3 nc -l -p 500$i >/dev/null) & done
    sleep 0.1
    for i in 1 2; do
        (dd if=/dev/zero bs=1448 count=3000 2>/dev/null | ip netns exec h$i nc 10.0.0.3 500$i; echo $i $EPOCHREALTIME) &
        pids=\"$pids $!\"
    done
    for step in 1 2 3 4 5; do sleep 0.1; tc -n sw -s qdisc show dev p3; done
    wait $pids
    ip netns exec h1 cat /proc/net/snmp /proc/net/netstat; cat /proc/uptime
    head -c 16 /dev/urandom | xxd";

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (first, _out) = run(7, TRAFFIC);
    let busy = Arc::new(AtomicBool::new(true));
    let still_busy = Arc::clone(&busy);
    let neighbour = thread::spawn(move || while still_busy.load(Ordering::Relaxed) {});
    let (second, _out) = run(7, TRAFFIC);
    busy.store(false, Ordering::Relaxed);
    neighbour.join().unwrap();
    assert_eq!(first.output, second.output);
    let drops = first
        .output
        .lines()
        .filter(|line| line.contains("dropped") && !line.contains("dropped 0,"));
    assert!(
        drops.count() > 0,
        "the port must overflow:\n{}",
        first.output
    );
    let (third, _out) = run(8, TRAFFIC);
    assert_ne!(first.output.lines().last(), third.output.lines().last());
}

/// Halts some thousand times for a short while; prints the time.
const NAPS: &str = "mkfifo /tmp/nothing
    for n in $(seq 3000); do read -r -t 0.0002 _ <>/tmp/nothing; done
    grep -m1 now /proc/timer_list";

/// An emulator whose main loop always has something to do: somebody asks its monitor again and again. See
/// plugin/halt.c; without that the times differ by some ns.
#[test]
#[ignore = "QEMU 7.2 may hang when it ends while its monitor is asked, as once in nine runs"]
fn a_guest_does_not_notice_when_the_emulators_main_loop_is_busy() {
    let bin = tempfile::tempdir().unwrap();
    let monitor = bin.path().join("monitor");
    let emulator = bin.path().join("qemu-system-x86_64");
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}} exec qemu-system-x86_64 \"$@\" -qmp unix:{},server=on,wait=off\n",
        monitor.display()
    );
    std::fs::write(&emulator, script).unwrap();
    std::fs::set_permissions(&emulator, Permissions::from_mode(0o755)).unwrap();
    let usual = std::env::var("PATH").unwrap();
    let with_monitor = format!("{}:{usual}", bin.path().display());
    let guest = |path: &str| {
        let out = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp-vm"));
        command.env("PATH", path).arg("--cache");
        command.arg(machine(1).cache).arg("--out").arg(out.path());
        let output = command.args(["bash", "-c", NAPS]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let quiet = guest(&usual);
    for _ in 0..2 {
        let (asked, busy) = thread::scope(|scope| {
            let busy = scope.spawn(|| guest(&with_monitor));
            let asked = ask_until(&monitor, &|| busy.is_finished());
            (asked, busy.join().unwrap())
        });
        assert!(asked > 1_000, "{asked} questions");
        assert_eq!(busy, quiet);
    }
}

/// Asks the monitor of an emulator until it `is_over`. Returns how often it has answered.
fn ask_until(monitor: &Path, is_over: &dyn Fn() -> bool) -> usize {
    let mut answers = 0;
    while !is_over() {
        let Ok(stream) = UnixStream::connect(monitor) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let mut answer = BufReader::new(&stream).lines();
        let mut question = r#"{"execute":"qmp_capabilities"}"#;
        while matches!(answer.next(), Some(Ok(_))) && writeln!(&stream, "{question}").is_ok() {
            question = r#"{"execute":"query-status"}"#;
            answers += 1;
            thread::sleep(Duration::from_micros(50));
        }
    }
    answers
}

#[test]
fn a_panic_is_reported_with_what_the_kernel_said() {
    let out = tempfile::tempdir().unwrap();
    let job = job("echo almost; echo c >/proc/sysrq-trigger", out.path());
    let error = machine(1)
        .run(&job, &AtomicBool::new(false), &mut |_| {})
        .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, VmError::GuestDied { .. })
            && text.contains("sysrq")
            && text.ends_with("almost"),
        "{text}"
    );
}

/// A guest that sleeps takes none of our time.
#[test]
fn a_guest_that_tells_nothing_for_long_is_given_up() {
    let out = tempfile::tempdir().unwrap();
    let mut job = job("echo almost; sleep 100000", out.path());
    job.patience = Duration::from_secs(60);
    let error = machine(1)
        .run(&job, &AtomicBool::new(false), &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the guest is stuck: its command printed nothing for")
            && error.ends_with("almost"),
        "{error}"
    );
    assert_eq!(emulators_of_this_process(), Vec::<PathBuf>::new());
}

/// For ten times as long as one may be silent.
#[test]
fn a_guest_that_takes_long_and_gets_on_is_not_given_up() {
    let out = tempfile::tempdir().unwrap();
    let steps = "for step in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 50; echo $step; done";
    let mut job = job(steps, out.path());
    job.patience = Duration::from_secs(60);
    let outcome = machine(1).run(&job, &AtomicBool::new(false), &mut |_| {});
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.output.ends_with("12\n"), "{}", outcome.output);
}

#[test]
fn a_cancelled_guest_ends_and_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let job = job("echo started; while :; do :; done", out.path());
    let cancel = AtomicBool::new(false);
    let error = machine(1).run(&job, &cancel, &mut |_| {
        cancel.store(true, Ordering::Relaxed);
    });
    assert!(matches!(error, Err(VmError::Cancelled)), "{error:?}");
    assert_eq!(emulators_of_this_process(), Vec::<PathBuf>::new());
}

/// Children of this thread that are emulators.
fn emulators_of_this_process() -> Vec<PathBuf> {
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    children
        .split_whitespace()
        .map(|pid| Path::new("/proc").join(pid))
        .filter(|process| process.exists())
        .collect()
}

#[test]
fn an_emulator_that_cannot_start_says_why() {
    let out = tempfile::tempdir().unwrap();
    let mut vm = machine(1);
    vm.memory_mib = 1 << 30;
    let error = vm
        .run(
            &job("true", out.path()),
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, VmError::GuestDied { .. }) && text.contains("qemu"),
        "{text}"
    );
}
