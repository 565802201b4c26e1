// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the verifier looked at to accept each BPF program, beside docs/results/verifier.md (`tools/record verifier`).
//! The numbers belong to a kernel, a compiler and the programs; they do not vary from run to run.
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use nix::sys::signal::Signal;

use crate::{
    agent::Agent,
    net::{Host, Plan, Star},
};

const RECORDED: &str = include_str!("../../../docs/results/verifier.md");
/// Another clang, or a small change of a program, is within it; a loop that is followed once more is not.
const ALLOWED_GROWTH: f64 = 1.1;

/// A program of ours that is loaded. Sizes are in bytes.
struct Program {
    path: &'static str,
    name: String,
    /// None: the kernel does not report it (before Linux 5.16).
    verified: Option<u32>,
    size: usize,
    machine_code_size: usize,
}

impl Program {
    fn of(path: &'static str, info: ProgramInfo) -> Option<Self> {
        let name = info.name.to_string_lossy().into_owned();
        let is_ours = name.starts_with("edge_") || name.starts_with("orack_");
        is_ours.then_some(Self {
            path,
            name,
            verified: (info.verified_insns > 0).then_some(info.verified_insns),
            size: info.xlated_prog_insns.len(),
            machine_code_size: info.jited_prog_insns.len(),
        })
    }

    /// A row of the table, without the kernel.
    fn row(&self) -> String {
        let verified = self.verified.map_or("-".to_owned(), |n| n.to_string());
        let (size, code) = (self.size, self.machine_code_size);
        format!(
            "{} | {} | {verified} | {size} | {code} |",
            self.path, self.name
        )
    }
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc");
    release.trim().to_owned()
}

/// The programs that a daemon with these options loads, by name.
fn programs_of(host: &Host, path: &'static str) -> Vec<Program> {
    let agent = match path {
        "observe" => Agent::observe(host),
        _ => Agent::start(host, &["--path", path]),
    };
    let options = ProgInfoQueryOptions::default()
        .include_xlated_prog_insns(true)
        .include_jited_prog_insns(true);
    let loaded = ProgInfoIter::with_query_opts(options);
    let mut programs: Vec<Program> = loaded.filter_map(|info| Program::of(path, info)).collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    let ended = agent.stop(Signal::SIGTERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!programs.is_empty(), "{path}: no program is loaded");
    programs
}

/// Does this kernel have BPF qdiscs?
fn has_edge(host: &Host) -> bool {
    let agent = Agent::start(host, &["--path", "auto"]);
    let path = agent.status().path;
    agent.stop(Signal::SIGTERM);
    path == "edge"
}

/// Those of all paths that this kernel has.
fn programs() -> Vec<Program> {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let edge = has_edge(host).then_some("edge");
    let paths = edge.into_iter().chain(["edt", "observe"]);
    paths.flat_map(|path| programs_of(host, path)).collect()
}

/// Verified instructions in the table: of this kernel, or of its first kernel, the newest.
fn recorded(kernel: &str, program: &Program) -> Option<u32> {
    let rows: Vec<Vec<&str>> = RECORDED
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let named = |row: &&Vec<&str>| row[2] == program.path && row[3] == program.name;
    let same_kernel = rows.iter().filter(named).find(|row| row[1] == kernel);
    same_kernel
        .or_else(|| rows.iter().find(named))
        .and_then(|row| row[4].parse().ok())
}

/// Why the verifier's work on a program is not what was recorded, if it is not.
fn complaint(kernel: &str, program: &Program) -> Option<String> {
    let verified = program.verified?;
    let name = format!("{} of {}", program.name, program.path);
    match recorded(kernel, program) {
        None => Some(format!("{name} is not recorded")),
        Some(most) if f64::from(verified) > ALLOWED_GROWTH * f64::from(most) => Some(format!(
            "{name}: {verified} instructions verified, {most} recorded"
        )),
        Some(_) => None,
    }
}

/// A daemon's start is mostly the verifier's work, and a program beyond a million instructions is refused.
pub fn each_is_verified_as_quickly_as_recorded() {
    let kernel = kernel();
    let programs = programs();
    programs
        .iter()
        .for_each(|program| println!("{}", program.row()));
    let complaints: Vec<String> = programs
        .iter()
        .filter_map(|program| complaint(&kernel, program))
        .collect();
    assert!(
        complaints.is_empty(),
        "{}\nIf the change is meant, say why in the commit and run: tools/record verifier",
        complaints.join("\n")
    );
}

/// The rows of docs/results/verifier.md for this kernel.
pub fn print_rows() {
    let kernel = kernel();
    for program in programs() {
        println!("| {kernel} | {}", program.row());
    }
}
