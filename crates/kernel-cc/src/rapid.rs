// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TCP RAPID: bpf/cc/rapid.bpf.c and its tcx programs, with their parameters.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, Result};

use crate::hooks::{EGRESS, INGRESS};
use crate::Settings;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/rapid.skel.rs"));
}

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod hooks_skel {
    include!(concat!(env!("OUT_DIR"), "/rapid_hooks.skel.rs"));
}

/// Payload of a packet, as in the simulator.
const PACKET_BYTES: u32 = 1448;

/// The same lines for the types that both skeletons have of `struct onr_rapid_cfg`.
macro_rules! configure {
    ($cfg:expr, $settings:expr) => {{
        let (cfg, settings): (_, &Settings) = ($cfg, $settings);
        cfg.min_rate = settings.bytes_per_s("min_rate");
        cfg.max_rate = settings.bytes_per_s("max_rate");
        cfg.tau_ns = settings.span_ns("tau").max(1);
        cfg.fall_q16 = 65_536 / settings.count("eta").max(1);
        cfg.spread_q16 = settings.q16("spread");
        cfg.start_spread_q16 = settings.q16("start_spread");
        cfg.each = settings.count("each");
        cfg.gamma = settings.count("gamma");
        cfg.patience = settings.count("patience");
        cfg.packet_bytes = PACKET_BYTES;
        cfg.least_run = settings.count("least_run");
        cfg.least_rise_ns = settings.ns("least_rise");
        cfg.spike_rise_ns = settings.ns("spike_rise");
        cfg.spike_fall_ns = settings.ns("spike_fall");
        cfg.passes = settings.count("passes");
        cfg.standing_ns = settings.ns("standing");
    }};
}

/// Registers it, and pins the programs that devices need in `programs`.
pub fn register(settings: &Settings, programs: &Path) -> Result<Link> {
    let (mut object, mut hooks_object) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut open = skel::RapidSkelBuilder::default().open(&mut object)?;
    let data = open.maps.data_data.as_deref_mut();
    configure!(&mut data.expect("rapid.bpf.c has data").cfg, settings);
    let constants = open.maps.rodata_data.as_deref_mut();
    let constants = constants.expect("rapid.bpf.c has constants");
    constants.cap_packets = constants.cap_packets.min(settings.count("cap"));
    let mut loaded = open.load()?;

    let mut hooks = hooks_skel::RapidHooksSkelBuilder::default().open(&mut hooks_object)?;
    let data = hooks.maps.data_data.as_deref_mut();
    configure!(&mut data.expect("rapid_hooks.bpf.c has data").cfg, settings);
    let senders = loaded.maps.rapid_senders.as_fd();
    hooks.maps.rapid_senders.reuse_fd(senders)?;
    let mut hooks = hooks.load()?;
    hooks.progs.rapid_ingress.pin(programs.join(INGRESS))?;
    hooks.progs.rapid_egress.pin(programs.join(EGRESS))?;
    loaded.maps.rapid.attach_struct_ops()
}
