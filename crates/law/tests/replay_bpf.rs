// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The vector files on the same headers as a loaded BPF program (bpf/lawtest.bpf.c): the host's
//! results, line for line. Needs root and a kernel that lets it load BPF; says so if not.

#[path = "../../../bpf/build.rs"]
mod bpf;
mod vectors;

use bytemuck::{bytes_of, pod_read_unaligned, Zeroable};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use onramp_law::abi::{onr_cfg, onr_ctl, onr_flow, onr_records};
use std::{io::Write as _, path::Path};
use vectors::{Machine, Op};

const VECTORS: [(&str, &str); 2] = [
    ("hand", include_str!("../../../tests/law-vectors.hand.txt")),
    (
        "random",
        include_str!("../../../tests/law-vectors.random.txt"),
    ),
];
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/lawtest.bpf.c");
const ZERO: [u8; 4] = [0; 4];

/// The laws inside this machine's kernel.
struct Kernel(Object);

impl Kernel {
    /// Compiles and loads the program. The error says what is missing.
    fn load() -> Result<Kernel, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let object = dir.path().join("lawtest.bpf.o");
        bpf::builder(Path::new(SOURCE))
            .obj(&object)
            .build()
            .unwrap_or_else(|e| panic!("bpf/lawtest.bpf.c: {e:?}"));
        let open = ObjectBuilder::default()
            .open_file(&object)
            .map_err(|e| e.to_string())?;
        Ok(Kernel(open.load().map_err(|e| e.to_string())?))
    }

    /// What the verifier looked at to accept the program: its limit is a million.
    fn verified_instructions(&self) -> u32 {
        let mut programs = ProgInfoIter::default();
        programs
            .find(|p| p.name == "lawtest_step")
            .map_or(0, |p| p.verified_insns)
    }

    fn map(&self, name: &str) -> impl MapCore + '_ {
        self.0
            .maps()
            .find(|m| m.name() == name)
            .expect("a map of lawtest.bpf.c")
    }

    fn write(&self, map: &str, value: &[u8]) {
        self.map(map)
            .update(&ZERO, value, MapFlags::ANY)
            .expect("an array element");
    }
}

/// The words of an operation, as lawtest.bpf.c lists them.
fn words(op: &Op) -> [i64; 10] {
    match *op {
        Op::Sent { now, seq, len } => [0, now, seq.into(), len.into(), 0, 0, 0, 0, 0, 0],
        Op::Orack { now, seq, rx } => [1, now, seq.into(), 0, rx, 0, 0, 0, 0, 0],
        Op::Arrived {
            now,
            seq,
            rx,
            record: r,
        } => [
            2,
            now,
            seq.into(),
            0,
            rx,
            r.sent_mono_ns,
            r.mark as i64,
            r.seq.into(),
            r.len.into(),
            0,
        ],
        Op::MayGo { now } => [3, now, 0, 0, 0, 0, 0, 0, 0, 0],
        Op::Path { least, ahead, hint } => [4, 0, 0, 0, 0, least, ahead, hint.into(), 0, 0],
    }
}

impl Machine for Kernel {
    fn configure(&mut self, cfg: &onr_cfg) {
        self.write("configs", bytes_of(cfg));
    }

    fn begin(&mut self) {
        self.write("flows", bytes_of(&onr_ctl::zeroed()));
    }

    fn run(&mut self, op: &Op) -> i64 {
        let mut context: Vec<u8> = words(op).iter().flat_map(|w| w.to_ne_bytes()).collect();
        let program = self.0.progs_mut().next().expect("lawtest_step");
        let output = program
            .test_run(ProgramInput {
                context_in: Some(&mut context),
                ..Default::default()
            })
            .unwrap_or_else(|e| panic!("{op}: {e}"));
        assert_eq!(output.return_value, 0, "{op}: a map is missing");
        i64::from_ne_bytes(*context.last_chunk().expect("ten words"))
    }

    fn state(&self) -> (onr_flow, onr_records) {
        let value = self
            .map("flows")
            .lookup(&ZERO, MapFlags::ANY)
            .unwrap()
            .expect("an element");
        let ctl: onr_ctl = pod_read_unaligned(&value);
        (ctl.law, ctl.records)
    }
}

#[test]
fn the_kernel_computes_what_the_host_computes() {
    let mut kernel = match Kernel::load() {
        Ok(kernel) => kernel,
        Err(why) => {
            // Past the harness, which would show it only for a test that fails.
            let skipped = "SKIPPED the replay inside the kernel, which loads a BPF program";
            writeln!(std::io::stderr(), "{skipped}: {why}").expect("stderr");
            return;
        }
    };
    println!(
        "lawtest_step: {} instructions verified",
        kernel.verified_instructions()
    );
    for (name, text) in VECTORS {
        let replayed = vectors::replay(text, &mut kernel);
        for (number, (expected, got)) in text.lines().zip(replayed.lines()).enumerate() {
            assert_eq!(
                expected,
                got,
                "tests/law-vectors.{name}.txt:{}: the file, the kernel",
                number + 1
            );
        }
        println!(
            "law-vectors.{name}.txt: {} lines the same in the kernel",
            text.lines().count()
        );
    }
}
