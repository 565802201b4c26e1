//! Inside the machine: measures every set-up on one bed and leaves a JSON file in /out.

use std::{collections::BTreeMap, mem::MaybeUninit, os::fd::AsFd};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    bed::{Agent, Bed, Setup},
    probes::{Parts, Probes, Unseen},
    stats::{self, Runs},
    transfer::{Connection, Moved},
};

/// Sent before measuring: slow start, buffers and tables find their sizes.
const WARM_UP_BYTES: u64 = 4 << 20;
const MEASURED_BYTES: u64 = 8 << 20;

/// One set-up on one bed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub bed: Bed,
    pub setup: Setup,
    pub moved: Moved,
    pub parts: Parts,
    pub oracks_sent: u64,
    pub oracks_received: u64,
    pub unseen: Unseen,
    pub inside: Inside,
}

/// Inside On-Ramp, during a second transfer: run-time statistics, which cost time themselves
/// (`nothing` says how much a run).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Inside {
    pub programs: BTreeMap<String, Runs>,
    pub oracks: u64,
    pub moved: Moved,
    /// orack_ingress on a data segment that is not sampled and on a pure ACK.
    pub unsampled_ns: Option<f64>,
    pub ack_ns: Option<f64>,
}

/// `guest BED [SETUP...]`: the position of the bed in `Bed::ALL`; set-ups as `Debug` prints them.
pub fn run(arguments: &[String]) -> Result<()> {
    let bed: usize = arguments.first().context("which bed?")?.parse()?;
    let bed = *Bed::ALL.get(bed).context("there is no such bed")?;
    let mut all = vec![];
    let mut object = MaybeUninit::uninit();
    let mut probes = Probes::load(&mut object)?;
    let chosen = |setup: &Setup| arguments.len() < 2 || arguments.contains(&format!("{setup:?}"));
    for setup in Setup::ALL.into_iter().filter(|s| bed.has(*s) && chosen(s)) {
        // A thread a set-up: it moves into the sender's namespace, this one stays.
        bed.build()?;
        let measured = std::thread::scope(|scope| {
            scope
                .spawn(|| measure(bed, setup, &mut probes))
                .join()
                .expect("measuring does not panic")
        })?;
        bed.remove()?;
        println!(
            "{} {:?}: {}",
            bed.name(),
            setup,
            serde_json::to_string(&measured)?
        );
        all.push(measured);
    }
    std::fs::write("/out/measured.json", serde_json::to_vec(&all)?)?;
    Ok(())
}

fn measure(bed: Bed, setup: Setup, probes: &mut Probes<'_>) -> Result<Measured> {
    let agents = setup.start()?;
    let mut connection = Connection::open(bed)?;
    connection.send(WARM_UP_BYTES)?;

    let before = (Moved::read(bed.ip6)?, oracks(&agents)?);
    probes.start();
    connection.send(MEASURED_BYTES)?;
    probes.stop();
    let after = (Moved::read(bed.ip6)?, oracks(&agents)?);
    let parts = probes.parts();
    let inside = look_inside(bed, &mut connection, &agents, probes)?;
    connection.close()?;
    for agent in agents {
        agent.stop()?;
    }
    Ok(Measured {
        bed,
        setup,
        moved: after.0.since(before.0),
        parts,
        oracks_sent: after.1 .0 - before.1 .0,
        oracks_received: after.1 .1 - before.1 .1,
        unseen: probes.unseen,
        inside,
    })
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

fn look_inside(
    bed: Bed,
    connection: &mut Connection,
    agents: &[Agent],
    probes: &Probes<'_>,
) -> Result<Inside> {
    if agents.is_empty() {
        return Ok(Inside::default());
    }
    let (before, programs) = ((Moved::read(bed.ip6)?, oracks(agents)?), stats::read());
    let collecting = stats::collect()?;
    connection.send(MEASURED_BYTES)?;
    probes.run_nothing()?;
    drop(collecting);
    let after = (Moved::read(bed.ip6)?, oracks(agents)?);
    let mut inside = Inside {
        oracks: after.1 .1 - before.1 .1,
        moved: after.0.since(before.0),
        ..Inside::default()
    };
    for (name, (_, runs)) in stats::read() {
        let was = programs
            .get(&name)
            .map_or(Runs::default(), |(_, runs)| *runs);
        inside.programs.insert(
            name,
            Runs {
                runs: runs.runs - was.runs,
                ns: runs.ns - was.ns,
            },
        );
    }
    if let Some((id, _)) = programs.get("a.orack_ingress") {
        let program = stats::program(*id)?;
        let time = |frame: &[u8]| stats::time_tc(program.as_fd(), probes.nothing_tc(), frame);
        inside.unsampled_ns = Some(time(&frame(bed.ip6, 1448))?);
        inside.ack_ns = Some(time(&frame(bed.ip6, 0))?);
    }
    Ok(inside)
}

/// A TCP segment with a time-stamp option from `b` to `a`, not sampled.
fn frame(ip6: bool, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 12];
    let tcp_bytes = (32 + payload) as u16;
    if ip6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(tcp_bytes.to_be_bytes());
        frame.extend([6, 64]);
        for host in [2, 1] {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + tcp_bytes).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    }
    let sequence = 3 * 14_480u32 + 1;
    frame.extend([0x13, 0x89, 0x80, 0x01]);
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x80, 0x10, 0x10, 0, 0, 0, 0, 0]);
    frame.resize(frame.len() + 12 + payload, 1);
    frame
}
