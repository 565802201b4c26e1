// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Inside the machine: moves bytes through every set-up on one bed and leaves JSON files in /out.
//! It does so either watched by the plugin, which counts (`count`), or by the probes, which split
//! the baseline's time between the two ends (`split`).

use std::mem::MaybeUninit;

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    bed::{Agent, Bed, Setup},
    congestion, laws,
    probes::{Parts, Probes},
    several,
    transfer::{Connection, Moved, Route},
};

/// Sent before measuring: slow start, buffers and tables find their sizes.
const WARM_UP_BYTES: u64 = 4 << 20;
pub const MEASURED_BYTES: u64 = 8 << 20;
/// The kernel's own work after boot and after loading programs is over by then.
pub const SETTLE: std::time::Duration = std::time::Duration::from_secs(5);

/// A transfer that the plugin has counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    pub setup: Setup,
    pub moved: Moved,
    pub oracks_sent: u64,
    pub oracks_received: u64,
}

/// A transfer with fq that the probes have split.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Split {
    pub moved: Moved,
    pub parts: Parts,
}

/// `guest congestion`, `guest laws`, `guest several KIND PROCESSORS`, or `guest count|split BED [SETUP...]`: the position of the bed in `Bed::ALL`; set-ups as `Debug`
/// prints them.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments[0].as_str() {
        "several" => return several::guest(&arguments[1..]),
        "congestion" => return congestion::guest(),
        "laws" => return laws::guest(),
        _ => {}
    }
    let bed: usize = arguments.get(1).context("which bed?")?.parse()?;
    let bed = *Bed::ALL.get(bed).context("there is no such bed")?;
    match arguments[0].as_str() {
        "count" => count(bed, &arguments[2..]),
        "split" => split(bed),
        other => bail!("neither count nor split: {other}"),
    }
}

fn count(bed: Bed, setups: &[String]) -> Result<()> {
    std::fs::write("/proc/sys/net/core/bpf_jit_kallsyms", "1")?;
    let mut all = vec![];
    let chosen = |setup: &Setup| setups.is_empty() || setups.contains(&format!("{setup:?}"));
    for setup in Setup::ALL.into_iter().filter(|s| bed.has(*s) && chosen(s)) {
        let counted = on(bed, setup, |connection, agents| {
            let before = oracks(agents)?;
            let moved = transfer(connection, all.len(), bed.ip6)?;
            let after = oracks(agents)?;
            Ok(Counted {
                setup,
                moved,
                oracks_sent: after.0 - before.0,
                oracks_received: after.1 - before.1,
            })
        })?;
        println!("{} {setup:?}: {:?}", bed.name(), counted.moved);
        all.push(counted);
    }
    Ok(std::fs::write(
        "/out/counted.json",
        serde_json::to_vec(&all)?,
    )?)
}

fn split(bed: Bed) -> Result<()> {
    let mut object = MaybeUninit::uninit();
    let mut probes = Probes::load(&mut object)?;
    let split = on(bed, Setup::Fq, |connection, _| {
        let before = Moved::read(bed.ip6)?;
        std::thread::sleep(SETTLE);
        probes.start();
        connection.send(MEASURED_BYTES)?;
        probes.stop();
        Ok(Split {
            moved: Moved::read(bed.ip6)?.since(before),
            parts: probes.parts(),
        })
    })?;
    println!("{} split: {:?}", bed.name(), split.parts);
    Ok(std::fs::write(
        "/out/split.json",
        serde_json::to_vec(&split)?,
    )?)
}

/// Builds a bed with its daemons and a connection that is in full flow, and takes it down again.
pub fn on<T: Send>(
    bed: Bed,
    setup: Setup,
    measure: impl FnOnce(&mut Connection, &[Agent]) -> Result<T> + Send,
) -> Result<T> {
    on_prepared(bed, setup, || Ok(()), measure)
}

/// The same; `prepare` changes the hosts before there is a connection.
pub fn on_prepared<T: Send>(
    bed: Bed,
    setup: Setup,
    prepare: impl FnOnce() -> Result<()>,
    measure: impl FnOnce(&mut Connection, &[Agent]) -> Result<T> + Send,
) -> Result<T> {
    bed.build(setup)?;
    prepare()?;
    // A thread of its own: it moves into the sender's namespace, this one stays.
    let measured = std::thread::scope(|scope| {
        let work = || {
            let agents = setup.start()?;
            let mut connection = Connection::open(Route::of(bed))?;
            connection.send(WARM_UP_BYTES)?;
            let measured = measure(&mut connection, &agents)?;
            connection.close()?;
            agents.into_iter().try_for_each(Agent::stop)?;
            Ok(measured)
        };
        scope.spawn(work).join().expect("measuring does not panic")
    });
    bed.remove()?;
    measured
}

/// A transfer that the plugin counts, the `number`-th of this machine. The host reads it with [`crate::host::transfers`].
pub fn transfer(connection: &mut Connection, number: usize, ip6: bool) -> Result<Moved> {
    let before = Moved::read(ip6)?;
    std::thread::sleep(SETTLE);
    mark_begin();
    connection.send(MEASURED_BYTES)?;
    mark_end();
    let moved = Moved::read(ip6)?.since(before);
    std::fs::copy("/proc/kallsyms", format!("/out/symbols.{number}")).context("/proc/kallsyms")?;
    Ok(moved)
}

/// OR-ACKs sent by the receiver and received by the sender so far.
fn oracks(agents: &[Agent]) -> Result<(u64, u64)> {
    let counter =
        |agent: Option<&Agent>, name: &str| agent.map_or(Ok(0), |agent| agent.counter(name));
    Ok((
        counter(agents.get(1), "oracks_sent")?,
        counter(agents.first(), "oracks_received")?,
    ))
}

/// The marks of plugin/count.c: no-ops with an operand that no compiler emits.
pub fn mark_begin() {
    // SAFETY: nopl 0x4f4e5200(%rax) does nothing.
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x52, 0x4e, 0x4f") };
}

pub fn mark_end() {
    // SAFETY: nopl 0x4f4e5201(%rax) does nothing.
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80, 0x01, 0x52, 0x4e, 0x4f") };
}
