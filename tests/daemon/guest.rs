// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The guest's side: each fact in a process of its own, with a limit in virtual time; what it
//! leaves behind (processes, namespaces) is removed before the next one starts.
//! machine: its time is virtual (main.rs).
use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{kill, killpg, Signal},
    unistd::Pid,
};

use crate::{facts::FACTS, net::shell};

/// First argument of the process that goes through facts, and of the one that runs a fact.
pub const ALL: &str = "--guest";
pub const ONE: &str = "--fact";
/// Lines that host.rs reads.
pub const BEGIN: &str = "@begin ";
pub const END: &str = "@end ";
/// Where facts mount a BPF file system.
pub const BPFFS: &str = "/run/bpf";
/// Where the daemons of facts find cgroups.
pub const CGROUPS: &str = "/tmp/cgroup";
pub const PASSED: &str = "passed";

/// Runs the named facts one after the other; a failed fact does not fail the run.
pub fn run_all(names: &[String]) -> ExitCode {
    let mut kernel = KernelLog::open();
    mount_cgroups();
    for name in names {
        println!("{BEGIN}{name}");
        let started = Instant::now();
        let passed = run_limited(name);
        let complaints = kernel.complaints();
        complaints
            .iter()
            .for_each(|line| println!("kernel: {line}"));
        println!(
            "{name}: {:.1} s of virtual time",
            started.elapsed().as_secs_f64()
        );
        let verdict = if passed && complaints.is_empty() {
            PASSED
        } else {
            "failed"
        };
        println!("{END}{verdict}");
        clean_up();
    }
    ExitCode::SUCCESS
}

/// `ip netns exec` gives the daemons a /sys of their own, without cgroups.
fn mount_cgroups() {
    std::fs::create_dir(CGROUPS).expect("/tmp is writable");
    shell(&format!("mount -t cgroup2 cgroup2 {CGROUPS}"));
}

/// Runs one fact in this process; a panic fails it.
pub fn run_one(name: &str) -> ExitCode {
    let fact = FACTS
        .iter()
        .find(|fact| fact.name == name)
        .expect("a fact of the registry");
    (fact.run)();
    ExitCode::SUCCESS
}

fn run_limited(name: &str) -> bool {
    let limit = limit(name);
    let child = Command::new("/proc/self/exe")
        .args([ONE, name])
        .process_group(0)
        .spawn();
    let mut child = child.expect("this program starts once more");
    match wait_until(&mut child, Instant::now() + limit) {
        Some(status) => status.success(),
        None => {
            println!(
                "{name} still ran after {} s of virtual time",
                limit.as_secs()
            );
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _ = child.wait();
            false
        }
    }
}

/// Virtual time: most facts take less than a minute, the longest 210 s. Studies take as long as they are asked to.
fn limit(name: &str) -> Duration {
    let is_study = FACTS
        .iter()
        .any(|fact| fact.name == name && fact.is_study());
    Duration::from_secs(if is_study { 24 * 3600 } else { 240 })
}

/// The status of a process that ends before `deadline`.
pub fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Ends the daemons of a fact that failed, and removes its namespaces with all they hold.
fn clean_up() {
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let command = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let pid = entry.file_name().to_string_lossy().parse();
        if let ("onramp", Ok(pid)) = (command.trim(), pid) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    let _ = Command::new("ip")
        .args(["-all", "netns", "delete"])
        .status();
    let _ = Command::new("umount")
        .arg(BPFFS)
        .stderr(Stdio::null()) // most facts mount none
        .status();
    let _ = std::fs::remove_dir_all("/run/onramp");
}

/// The kernel's messages; warnings with a stack trace are failures of ours.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Self {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg");
        let mut log = Self(file.expect("/dev/kmsg"));
        log.complaints(); // of the boot
        log
    }

    /// New lines that begin a trace.
    fn complaints(&mut self) -> Vec<String> {
        let mut found = vec![];
        let mut record = [0; 8192]; // one read, one record
        while let Ok(length) = self.0.read(&mut record) {
            let line = String::from_utf8_lossy(&record[..length]).into_owned();
            if ["WARNING:", "BUG:", "Call Trace", "INFO: task"]
                .iter()
                .any(|w| line.contains(w))
            {
                found.push(line.lines().next().unwrap_or_default().to_owned());
            }
        }
        found
    }
}
