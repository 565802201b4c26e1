// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Replaces the qdiscs of a device while this host's TCP keeps its data (bpf/refuse.bpf.c): the kernel drops what waits in
//! a former qdisc. Nothing of it is pinned, so it ends with the process.
use std::{
    io::Read,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use libbpf_rs::{
    skel::{OpenSkel, SkelBuilder},
    Iter, MapCore, MapFlags, OpenObject,
};
use onramp_clock::stamps::now_mono_ns;
use tracing::warn;

use super::{object::explain_load, qdisc::Device, tcx};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod refuse_skel {
    include!(concat!(env!("OUT_DIR"), "/refuse.skel.rs"));
}
use refuse_skel::{RefuseSkel, RefuseSkelBuilder};

/// Between two looks at what waits.
const LOOK: Duration = Duration::from_micros(100);
/// Most time until the former qdiscs are empty, and for the replacement. TCP needs 200 ms and more for a packet that is
/// lost at the end of what it has sent, so a longer refusal would cost more than it saves.
const MOST_TO_DRAIN: Duration = Duration::from_millis(100);
const MOST_TO_REPLACE: Duration = Duration::from_millis(50);

/// Replaces the qdiscs of a device when nothing waits in them. They hold a packet for `longest_pause` at most, and are
/// replaced after it, or MOST_TO_DRAIN, in any case. An error of the refusal costs packets, and not the replacement; if
/// both fail, that of the replacement counts.
///
/// # Errors
/// `replace` fails.
pub fn while_refusing<T>(
    device: &Device,
    longest_pause: Duration,
    replace: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut object = MaybeUninit::uninit();
    let refusal = Refusal::attach(&mut object, device.ifindex());
    let most = longest_pause.min(MOST_TO_DRAIN);
    let refusal = refusal.map(|refusal| (refusal.drain(device, most), refusal));
    let replaced = replace();
    let kept = refusal.and_then(|(drained, refusal)| drained.and(refusal.end()));
    if let (Ok(_), Err(error)) = (&replaced, kept) {
        warn!("flows may have lost what waited in the former qdisc, or wait for 200 ms: {error:#}");
    }
    replaced
}

/// The programs on their device. Dropping it detaches them.
struct Refusal<'o> {
    programs: RefuseSkel<'o>,
    link: OwnedFd,
}

impl<'o> Refusal<'o> {
    /// Attaches the program that refuses. It does not do so yet: the kernel takes a while to attach.
    fn attach(object: &'o mut MaybeUninit<OpenObject>, ifindex: i32) -> Result<Self> {
        let open = RefuseSkelBuilder::default()
            .open(object)
            .context("reading refuse.bpf.o")?;
        let programs = open.load().map_err(|error| explain_load(error, "refuse"))?;
        let refuse = programs.progs.refuse.as_fd();
        let link = tcx::attach_first(ifindex, refuse, libbpf_sys::BPF_TCX_EGRESS)?;
        Ok(Self { programs, link })
    }

    /// Refuses from now on, and waits until the qdiscs are empty, but not for longer than `most`.
    fn drain(&self, device: &Device, most: Duration) -> Result<()> {
        let started = Instant::now();
        let all = (most + MOST_TO_REPLACE).as_nanos() as i64;
        refuse_until(&self.programs, now_mono_ns() + all)?;
        while !device.is_empty()? && started.elapsed() < most {
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Lets all sockets send, also one that a processor has refused while the others were woken: when the program is
    /// detached, nobody runs it any more.
    fn end(self) -> Result<()> {
        let Self { programs, link } = self;
        let ended = refuse_until(&programs, 0).and_then(|()| wake(&programs));
        drop(link);
        wake(&programs).and(ended)
    }
}

/// The program has the time itself, so a daemon that hangs meanwhile does not stop its host's traffic.
fn refuse_until(programs: &RefuseSkel, mono_ns: i64) -> Result<()> {
    let until = &programs.maps.data_until;
    Ok(until.update(&[0; 4], &mono_ns.to_ne_bytes(), MapFlags::ANY)?)
}

/// Lets the sockets send that were refused.
fn wake(programs: &RefuseSkel) -> Result<()> {
    let link = programs.progs.wake.attach();
    let mut sockets = Iter::new(&link.context("cannot iterate over TCP sockets")?)?;
    let mut nothing = vec![];
    let woken = sockets.read_to_end(&mut nothing);
    woken.map(drop).context("iterating over TCP sockets")
}
