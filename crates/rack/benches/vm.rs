// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `cargo bench -p onramp-rack --bench vm`: what the virtual machine costs the host: boot, emulated
//! instructions a second, files handed over. Run it on an idle machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Outcome, Vm};

const REPETITIONS: usize = 3;

/// One TCP connection of 30 MB through a bridge and a port of 100 Mbit/s.
const TRAFFIC: &str = "
    ip netns add sw; ip -n sw link add br0 type bridge; ip -n sw link set br0 up
    for i in 1 2; do
        ip netns add h$i; ip link add eth0 netns h$i type veth peer name p$i netns sw
        ip -n h$i addr add 10.0.0.$i/24 dev eth0; ip -n h$i link set eth0 up
        ip -n sw link set p$i master br0 up; tc -n h$i qdisc add dev eth0 root fq
    done
    tc -n sw qdisc add dev p2 root netem rate 100mbit limit 200
    (sleep 1000 | ip netns exec h2 nc -l -p 5001 >/dev/null) &
    sleep 0.1
    dd if=/dev/zero bs=1448 count=20000 2>/dev/null | ip netns exec h1 nc 10.0.0.2 5001";

const HAND_OVER_MB: usize = 64;

fn main() -> anyhow::Result<()> {
    let boot = measure("boot", "true")?;
    let traffic = measure("20,000 frames", TRAFFIC)?;
    let files = measure(
        "files",
        &format!("head -c {HAND_OVER_MB}000000 /dev/zero >$OUT/zeroes"),
    )?;
    let frames_wall = (traffic.wall_s - boot.wall_s).max(1e-9);
    println!(
        "emulation: {:.0} million instructions/s, {:.0} frames/s",
        (traffic.busy_s - boot.busy_s) * 1e3 / frames_wall,
        20_000.0 / frames_wall
    );
    println!(
        "files: {:.0} MB/s",
        HAND_OVER_MB as f64 / (files.wall_s - boot.wall_s).max(1e-9)
    );
    Ok(())
}

/// Least cost of a few repetitions.
struct Cost {
    wall_s: f64,
    /// Guest time not spent idle; one instruction takes 1 ns.
    busy_s: f64,
}

fn measure(name: &str, script: &str) -> anyhow::Result<Cost> {
    let runs = (0..REPETITIONS)
        .map(|_| run(script))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let walls: Vec<f64> = runs.iter().map(|run| run.wall.as_secs_f64()).collect();
    let wall_s = walls.iter().copied().fold(f64::INFINITY, f64::min);
    let uptime = runs[0]
        .output
        .lines()
        .last()
        .context("the guest printed nothing")?;
    let times: Vec<f64> = uptime
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .context("/proc/uptime")?;
    let same = runs.iter().all(|run| run.output == runs[0].output);
    println!(
        "{name}: wall {walls:.1?} s, guest {} s, idle {} s, same output: {same}",
        times[0], times[1]
    );
    Ok(Cost {
        wall_s,
        busy_s: times[0] - times[1],
    })
}

fn run(script: &str) -> anyhow::Result<Outcome> {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let vm = Vm {
        kernel: Kernel::find(&cache)?,
        cache,
        memory_mib: 512,
        processors: 1,
        seed: 1,
        plugin: None,
        cards: vec![],
        ptp_clock: None,
        modules: &[],
    };
    let out = tempfile::tempdir()?;
    let script = format!("{script}\ncat /proc/uptime");
    let job = Job {
        command: vec!["bash".into(), "script".into()],
        files: vec![GuestFile {
            path: PathBuf::from("/job/script"),
            content: Content::Bytes(script.into()),
        }],
        out: out.path().to_owned(),
        patience: Duration::from_secs(600),
    };
    Ok(vm
        .run(&job, &AtomicBool::new(false), &mut |_| {})?
        .success()?)
}
