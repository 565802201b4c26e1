// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tiny Buffer TCP: bpf/cc/tbtcp.bpf.c with its parameters.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::Link;

use crate::Settings;

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/tbtcp.skel.rs"));
}

pub fn register(settings: &Settings) -> libbpf_rs::Result<Link> {
    let mut object = MaybeUninit::uninit();
    let mut open = skel::TbtcpSkelBuilder::default().open(&mut object)?;
    let constants = open.maps.rodata_data.as_deref_mut();
    let cfg = &mut constants.expect("tbtcp.bpf.c has constants").cfg;
    cfg.eta_per_mille = (1000.0 * settings.fraction("eta")).round() as u32;
    cfg.most_cut = settings.count("k");
    let mut loaded = open.load()?;
    loaded.maps.tbtcp.attach_struct_ops()
}
