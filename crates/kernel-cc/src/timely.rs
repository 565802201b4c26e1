// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY: bpf/cc/timely.bpf.c with its parameters.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::Link;

use crate::Settings;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/timely.skel.rs"));
}

/// Payload of a packet, of which the parameters count in packets.
const PACKET_BYTES: u32 = 1448;

pub fn register(settings: &Settings) -> libbpf_rs::Result<Link> {
    let mut object = MaybeUninit::uninit();
    let mut open = skel::TimelySkelBuilder::default().open(&mut object)?;
    let constants = open.maps.rodata_data.as_deref_mut();
    let constants = constants.expect("timely.bpf.c has constants");
    constants.cap_packets = settings.count("cap");
    let cfg = &mut constants.cfg;
    cfg.step = settings.bytes_per_s("delta");
    cfg.min_rate = settings.bytes_per_s("min_rate");
    cfg.max_rate = settings.bytes_per_s("max_rate");
    cfg.low_ns = settings.ns("t_low");
    cfg.high_ns = settings.ns("t_high").max(1);
    cfg.min_rtt_ns = settings.ns("min_rtt").max(1);
    cfg.beta_q16 = settings.q16("beta");
    cfg.ewma_q16 = settings.q16("alpha");
    cfg.hyper_after = settings.count("hai_falls");
    cfg.hyper = settings.count("hai_steps");
    cfg.segment_bytes = settings.count("segment") * PACKET_BYTES;
    cfg.hyper_low = settings.flag("hai_low").into();
    let mut loaded = open.load()?;
    loaded.maps.timely.attach_struct_ops()
}
