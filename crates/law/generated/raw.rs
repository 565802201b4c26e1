// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Written by examples/law-bindings.
pub const ONR_ONE_Q16: u32 = 65536;
pub const ONR_ABI: u32 = 8;
pub const ONR_DEFAULT_GAIN_Q16: u32 = 4096;
pub const ONR_DEFAULT_MAX_PAUSE_NS: u32 = 5000000;
pub const ONR_DEFAULT_MAX_OWD_NS: u32 = 100000000;
pub const ONR_DEFAULT_GATE_TAU_NS: u32 = 1000000;
pub const ONR_DEFAULT_GATE_ALLOWANCE_BYTES: u32 = 1448;
pub const ONR_DEFAULT_GUARD_WINDOW_NS: u32 = 50000000;
pub const ONR_THRESHOLD_OF_PEER: u64 = 9223372036854775807;
pub const ONR_RATE_MAX_STEP: u32 = 1073741824;
pub const ONR_OWD_WINDOW_NS: u64 = 15000000000;
pub const ONR_NO_OWD: u64 = 9223372036854775807;
pub const ONR_HINT_UNKNOWN: u32 = 0;
pub const ONR_HINT_ALL: u32 = 31;
pub const ONR_RECEIVER_FLOW_BITS: u32 = 256;
pub const ONR_RECEIVER_TURN: u32 = 2;
pub const ONR_PATH_FOREIGN: u32 = 28;
pub const ONR_GATE_SLOWEST: u32 = 100;
pub const ONR_GATE_MEMORY: u32 = 10;
pub const ONR_GATE_PATIENCE: u32 = 30;
pub const ONR_GATE_LASTING: u32 = 3;
pub const ONR_GUARD_OFTEN: u32 = 3;
pub const ONR_GUARD_MEMORY: u32 = 7;
pub const ONR_WIRE_NEAR: u32 = 1448;
pub const ONR_WIRE_FAR: u32 = 8192;
pub const ONR_WIRE_ENOUGH: u32 = 64;
pub const ONR_LEVEL_SLOWEST: u32 = 1000;
pub const ONR_LEVEL_ROOM: u32 = 3;
pub const ONR_LEVEL_EXTRA: u32 = 6;
pub const ONR_LEVEL_EMPTY: u32 = 2;
pub const ONR_LEVEL_DOUBLINGS: u32 = 3;
pub const ONR_LEVEL_BURST: u32 = 26;
pub const ONR_LEVEL_BURST_WEIGHT: u32 = 4;
pub const ONR_LEVEL_LATE: u32 = 4;
pub const ONR_LEVEL_YOUNG: u32 = 70;
pub const ONR_LEVEL_PAUSE: u32 = 16;
pub const ONR_LEVEL_FEW: u32 = 8;
pub const ONR_LEVEL_HERE: u32 = 6;
pub const ONR_LEVEL_PATIENCE: u32 = 20;
pub const ONR_LEVEL_LEAST_PATIENCE: u32 = 3;
pub const ONR_LEVEL_TRIES: u32 = 6;
pub const ONR_LEVEL_SETTLED: u32 = 50;
pub const ONR_NIC_LONGEST_NS: u32 = 20000000;
pub const ONR_SAMPLE_BYTES: u32 = 14480;
pub const ONR_RING: u32 = 64;
pub const ONR_THINNEST: u32 = 4;
pub const ONR_HISTOGRAM_SHIFT: u32 = 10;
pub const ONR_HISTOGRAM_BUCKETS: u32 = 22;
pub const ONR_BUCKETS: u32 = 2048;
pub const ONR_FLOWS: u32 = 4096;
pub const ONR_MAX_FLOWS: u32 = 65536;
pub const ONR_MAX_SLOTS: u32 = 16384;
pub const ONR_KEYS: u32 = 4;
pub const ONR_MAX_PEERS: u32 = 4096;
pub const ONR_MAX_QUEUES: u32 = 1024;
pub const ONR_KEY_BYTES: u32 = 16;
pub const ONR_MAX_RULES: u32 = 64;
pub const ONR_CGROUP_LEVELS: u32 = 8;
pub const ONR_NEVER_NS: u32 = 4294967295;
pub const ONR_ORACK_PORT: u32 = 5199;
pub const ONR_ORACK_VERSION: u32 = 1;
pub const ONR_CLOCK_REACH_NS: u64 = 1099511627776;
pub const ONR_CLOCK_STEEPEST_Q32: u32 = 4194304;
pub type __u32 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct bpf_spin_lock {
    pub val: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of bpf_spin_lock"][::std::mem::size_of::<bpf_spin_lock>() - 4usize];
    ["Alignment of bpf_spin_lock"][::std::mem::align_of::<bpf_spin_lock>() - 4usize];
    [
        "Offset of field: bpf_spin_lock::val",
    ][::std::mem::offset_of!(bpf_spin_lock, val) - 0usize];
};
pub type u8_ = ::std::os::raw::c_uchar;
pub type u16_ = ::std::os::raw::c_ushort;
pub type u32_ = ::std::os::raw::c_uint;
pub type s32 = ::std::os::raw::c_int;
pub type u64_ = ::std::os::raw::c_ulonglong;
pub type s64 = ::std::os::raw::c_longlong;
#[repr(u32)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum onr_law {
    Off = 0,
    Strawman = 1,
    Final = 2,
    Gate = 3,
    Level = 4,
}
#[repr(u32)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum onr_verdict {
    Used = 0,
    Reordered = 1,
    Absurd = 2,
    Unknown = 3,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_cfg {
    pub threshold_ns: s64,
    pub max_pause_ns: s64,
    pub max_owd_ns: s64,
    pub gate_tau_ns: s64,
    pub guard_window_ns: s64,
    pub law: u32_,
    pub gain_q16: u32_,
    pub line_ns_per_byte_q16: u32_,
    pub gate_allowance_bytes: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_cfg"][::std::mem::size_of::<onr_cfg>() - 56usize];
    ["Alignment of onr_cfg"][::std::mem::align_of::<onr_cfg>() - 8usize];
    [
        "Offset of field: onr_cfg::threshold_ns",
    ][::std::mem::offset_of!(onr_cfg, threshold_ns) - 0usize];
    [
        "Offset of field: onr_cfg::max_pause_ns",
    ][::std::mem::offset_of!(onr_cfg, max_pause_ns) - 8usize];
    [
        "Offset of field: onr_cfg::max_owd_ns",
    ][::std::mem::offset_of!(onr_cfg, max_owd_ns) - 16usize];
    [
        "Offset of field: onr_cfg::gate_tau_ns",
    ][::std::mem::offset_of!(onr_cfg, gate_tau_ns) - 24usize];
    [
        "Offset of field: onr_cfg::guard_window_ns",
    ][::std::mem::offset_of!(onr_cfg, guard_window_ns) - 32usize];
    ["Offset of field: onr_cfg::law"][::std::mem::offset_of!(onr_cfg, law) - 40usize];
    [
        "Offset of field: onr_cfg::gain_q16",
    ][::std::mem::offset_of!(onr_cfg, gain_q16) - 44usize];
    [
        "Offset of field: onr_cfg::line_ns_per_byte_q16",
    ][::std::mem::offset_of!(onr_cfg, line_ns_per_byte_q16) - 48usize];
    [
        "Offset of field: onr_cfg::gate_allowance_bytes",
    ][::std::mem::offset_of!(onr_cfg, gate_allowance_bytes) - 52usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_flow {
    pub held_since_mono_ns: s64,
    pub sample_sent_mono_ns: s64,
    pub sample_owd_ns: s64,
    pub sent_bytes: u64_,
    pub sample_pause_ns: u64_,
    pub pause_total_ns: u64_,
    pub pause_from_mono_ns: s64,
    pub pause_until_mono_ns: s64,
    pub acked_bytes: u64_,
    pub acked_rx_mono_ns: s64,
    pub acked_mono_ns: s64,
    pub drain_from_mono_ns: s64,
    pub rate_bytes: u64_,
    pub rate_ns: u64_,
    pub inv_q16: u64_,
    pub above_since_mono_ns: s64,
    pub far_since_mono_ns: s64,
    pub left_mono_ns: s64,
    pub mode_mono_ns: s64,
    pub level_ns: s64,
    pub allowed_ns: s64,
    pub fleet_ahead_ns: s64,
    pub back_ns: u32_,
    pub step_bytes: u32_,
    pub doubled_bytes: u32_,
    pub young_bytes: u32_,
    pub owd_avg_ns: s32,
    pub hint: u16_,
    pub doublings: u8_,
    pub tries: u8_,
    pub free: u8_,
    pub young: u8_,
    pub reserved: [u8_; 2usize],
    pub sent_seq: u32_,
    pub guard_from_mono_ns: s64,
    pub guard_held_ns: s64,
    pub guard_lowest_ns: s64,
    pub guard_threshold_ns: s64,
    pub guard_raised_mono_ns: s64,
    pub beta_q16: u32_,
    pub sample_offset: u32_,
    pub threshold_ns: u32_,
    pub sooner_q16: u32_,
    pub least_ns: s32,
    pub sampled: u8_,
    pub held: u8_,
    pub capped: u8_,
    pub gated: u8_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_flow"][::std::mem::size_of::<onr_flow>() - 272usize];
    ["Alignment of onr_flow"][::std::mem::align_of::<onr_flow>() - 8usize];
    [
        "Offset of field: onr_flow::held_since_mono_ns",
    ][::std::mem::offset_of!(onr_flow, held_since_mono_ns) - 0usize];
    [
        "Offset of field: onr_flow::sample_sent_mono_ns",
    ][::std::mem::offset_of!(onr_flow, sample_sent_mono_ns) - 8usize];
    [
        "Offset of field: onr_flow::sample_owd_ns",
    ][::std::mem::offset_of!(onr_flow, sample_owd_ns) - 16usize];
    [
        "Offset of field: onr_flow::sent_bytes",
    ][::std::mem::offset_of!(onr_flow, sent_bytes) - 24usize];
    [
        "Offset of field: onr_flow::sample_pause_ns",
    ][::std::mem::offset_of!(onr_flow, sample_pause_ns) - 32usize];
    [
        "Offset of field: onr_flow::pause_total_ns",
    ][::std::mem::offset_of!(onr_flow, pause_total_ns) - 40usize];
    [
        "Offset of field: onr_flow::pause_from_mono_ns",
    ][::std::mem::offset_of!(onr_flow, pause_from_mono_ns) - 48usize];
    [
        "Offset of field: onr_flow::pause_until_mono_ns",
    ][::std::mem::offset_of!(onr_flow, pause_until_mono_ns) - 56usize];
    [
        "Offset of field: onr_flow::acked_bytes",
    ][::std::mem::offset_of!(onr_flow, acked_bytes) - 64usize];
    [
        "Offset of field: onr_flow::acked_rx_mono_ns",
    ][::std::mem::offset_of!(onr_flow, acked_rx_mono_ns) - 72usize];
    [
        "Offset of field: onr_flow::acked_mono_ns",
    ][::std::mem::offset_of!(onr_flow, acked_mono_ns) - 80usize];
    [
        "Offset of field: onr_flow::drain_from_mono_ns",
    ][::std::mem::offset_of!(onr_flow, drain_from_mono_ns) - 88usize];
    [
        "Offset of field: onr_flow::rate_bytes",
    ][::std::mem::offset_of!(onr_flow, rate_bytes) - 96usize];
    [
        "Offset of field: onr_flow::rate_ns",
    ][::std::mem::offset_of!(onr_flow, rate_ns) - 104usize];
    [
        "Offset of field: onr_flow::inv_q16",
    ][::std::mem::offset_of!(onr_flow, inv_q16) - 112usize];
    [
        "Offset of field: onr_flow::above_since_mono_ns",
    ][::std::mem::offset_of!(onr_flow, above_since_mono_ns) - 120usize];
    [
        "Offset of field: onr_flow::far_since_mono_ns",
    ][::std::mem::offset_of!(onr_flow, far_since_mono_ns) - 128usize];
    [
        "Offset of field: onr_flow::left_mono_ns",
    ][::std::mem::offset_of!(onr_flow, left_mono_ns) - 136usize];
    [
        "Offset of field: onr_flow::mode_mono_ns",
    ][::std::mem::offset_of!(onr_flow, mode_mono_ns) - 144usize];
    [
        "Offset of field: onr_flow::level_ns",
    ][::std::mem::offset_of!(onr_flow, level_ns) - 152usize];
    [
        "Offset of field: onr_flow::allowed_ns",
    ][::std::mem::offset_of!(onr_flow, allowed_ns) - 160usize];
    [
        "Offset of field: onr_flow::fleet_ahead_ns",
    ][::std::mem::offset_of!(onr_flow, fleet_ahead_ns) - 168usize];
    [
        "Offset of field: onr_flow::back_ns",
    ][::std::mem::offset_of!(onr_flow, back_ns) - 176usize];
    [
        "Offset of field: onr_flow::step_bytes",
    ][::std::mem::offset_of!(onr_flow, step_bytes) - 180usize];
    [
        "Offset of field: onr_flow::doubled_bytes",
    ][::std::mem::offset_of!(onr_flow, doubled_bytes) - 184usize];
    [
        "Offset of field: onr_flow::young_bytes",
    ][::std::mem::offset_of!(onr_flow, young_bytes) - 188usize];
    [
        "Offset of field: onr_flow::owd_avg_ns",
    ][::std::mem::offset_of!(onr_flow, owd_avg_ns) - 192usize];
    [
        "Offset of field: onr_flow::hint",
    ][::std::mem::offset_of!(onr_flow, hint) - 196usize];
    [
        "Offset of field: onr_flow::doublings",
    ][::std::mem::offset_of!(onr_flow, doublings) - 198usize];
    [
        "Offset of field: onr_flow::tries",
    ][::std::mem::offset_of!(onr_flow, tries) - 199usize];
    [
        "Offset of field: onr_flow::free",
    ][::std::mem::offset_of!(onr_flow, free) - 200usize];
    [
        "Offset of field: onr_flow::young",
    ][::std::mem::offset_of!(onr_flow, young) - 201usize];
    [
        "Offset of field: onr_flow::reserved",
    ][::std::mem::offset_of!(onr_flow, reserved) - 202usize];
    [
        "Offset of field: onr_flow::sent_seq",
    ][::std::mem::offset_of!(onr_flow, sent_seq) - 204usize];
    [
        "Offset of field: onr_flow::guard_from_mono_ns",
    ][::std::mem::offset_of!(onr_flow, guard_from_mono_ns) - 208usize];
    [
        "Offset of field: onr_flow::guard_held_ns",
    ][::std::mem::offset_of!(onr_flow, guard_held_ns) - 216usize];
    [
        "Offset of field: onr_flow::guard_lowest_ns",
    ][::std::mem::offset_of!(onr_flow, guard_lowest_ns) - 224usize];
    [
        "Offset of field: onr_flow::guard_threshold_ns",
    ][::std::mem::offset_of!(onr_flow, guard_threshold_ns) - 232usize];
    [
        "Offset of field: onr_flow::guard_raised_mono_ns",
    ][::std::mem::offset_of!(onr_flow, guard_raised_mono_ns) - 240usize];
    [
        "Offset of field: onr_flow::beta_q16",
    ][::std::mem::offset_of!(onr_flow, beta_q16) - 248usize];
    [
        "Offset of field: onr_flow::sample_offset",
    ][::std::mem::offset_of!(onr_flow, sample_offset) - 252usize];
    [
        "Offset of field: onr_flow::threshold_ns",
    ][::std::mem::offset_of!(onr_flow, threshold_ns) - 256usize];
    [
        "Offset of field: onr_flow::sooner_q16",
    ][::std::mem::offset_of!(onr_flow, sooner_q16) - 260usize];
    [
        "Offset of field: onr_flow::least_ns",
    ][::std::mem::offset_of!(onr_flow, least_ns) - 264usize];
    [
        "Offset of field: onr_flow::sampled",
    ][::std::mem::offset_of!(onr_flow, sampled) - 268usize];
    [
        "Offset of field: onr_flow::held",
    ][::std::mem::offset_of!(onr_flow, held) - 269usize];
    [
        "Offset of field: onr_flow::capped",
    ][::std::mem::offset_of!(onr_flow, capped) - 270usize];
    [
        "Offset of field: onr_flow::gated",
    ][::std::mem::offset_of!(onr_flow, gated) - 271usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_record {
    pub sent_mono_ns: s64,
    pub mark: u64_,
    pub seq: u32_,
    pub len: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_record"][::std::mem::size_of::<onr_record>() - 24usize];
    ["Alignment of onr_record"][::std::mem::align_of::<onr_record>() - 8usize];
    [
        "Offset of field: onr_record::sent_mono_ns",
    ][::std::mem::offset_of!(onr_record, sent_mono_ns) - 0usize];
    [
        "Offset of field: onr_record::mark",
    ][::std::mem::offset_of!(onr_record, mark) - 8usize];
    [
        "Offset of field: onr_record::seq",
    ][::std::mem::offset_of!(onr_record, seq) - 16usize];
    [
        "Offset of field: onr_record::len",
    ][::std::mem::offset_of!(onr_record, len) - 20usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_least {
    pub window_mono_ns: s64,
    pub owd_min_ns: s64,
    pub owd_min_before_ns: s64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_least"][::std::mem::size_of::<onr_least>() - 24usize];
    ["Alignment of onr_least"][::std::mem::align_of::<onr_least>() - 8usize];
    [
        "Offset of field: onr_least::window_mono_ns",
    ][::std::mem::offset_of!(onr_least, window_mono_ns) - 0usize];
    [
        "Offset of field: onr_least::owd_min_ns",
    ][::std::mem::offset_of!(onr_least, owd_min_ns) - 8usize];
    [
        "Offset of field: onr_least::owd_min_before_ns",
    ][::std::mem::offset_of!(onr_least, owd_min_before_ns) - 16usize];
};
unsafe extern "C" {
    #[link_name = "onr_least_ends__extern"]
    pub fn onr_least_ends(least: *const onr_least, now_ns: s64) -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    #[link_name = "onr_least_roll__extern"]
    pub fn onr_least_roll(least: *mut onr_least, now_ns: s64);
}
unsafe extern "C" {
    #[link_name = "onr_least_sample__extern"]
    pub fn onr_least_sample(least: *mut onr_least, owd_ns: s64);
}
unsafe extern "C" {
    #[link_name = "onr_least_owd__extern"]
    pub fn onr_least_owd(least: *const onr_least) -> s64;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_receiver {
    pub slot: u64_,
    pub all_bytes: u64_,
    pub managed_bytes: u64_,
    pub all_before_bytes: u64_,
    pub managed_before_bytes: u64_,
    pub flows: [u32_; 8usize],
    pub flows_set: u32_,
    pub flows_before: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_receiver"][::std::mem::size_of::<onr_receiver>() - 80usize];
    ["Alignment of onr_receiver"][::std::mem::align_of::<onr_receiver>() - 8usize];
    [
        "Offset of field: onr_receiver::slot",
    ][::std::mem::offset_of!(onr_receiver, slot) - 0usize];
    [
        "Offset of field: onr_receiver::all_bytes",
    ][::std::mem::offset_of!(onr_receiver, all_bytes) - 8usize];
    [
        "Offset of field: onr_receiver::managed_bytes",
    ][::std::mem::offset_of!(onr_receiver, managed_bytes) - 16usize];
    [
        "Offset of field: onr_receiver::all_before_bytes",
    ][::std::mem::offset_of!(onr_receiver, all_before_bytes) - 24usize];
    [
        "Offset of field: onr_receiver::managed_before_bytes",
    ][::std::mem::offset_of!(onr_receiver, managed_before_bytes) - 32usize];
    [
        "Offset of field: onr_receiver::flows",
    ][::std::mem::offset_of!(onr_receiver, flows) - 40usize];
    [
        "Offset of field: onr_receiver::flows_set",
    ][::std::mem::offset_of!(onr_receiver, flows_set) - 72usize];
    [
        "Offset of field: onr_receiver::flows_before",
    ][::std::mem::offset_of!(onr_receiver, flows_before) - 76usize];
};
unsafe extern "C" {
    #[link_name = "onr_receiver_arrived__extern"]
    pub fn onr_receiver_arrived(
        cfg: *const onr_cfg,
        r: *mut onr_receiver,
        now_ns: s64,
        all_bytes: u32_,
        managed_bytes: u32_,
    );
}
unsafe extern "C" {
    #[link_name = "onr_receiver_flow__extern"]
    pub fn onr_receiver_flow(r: *mut onr_receiver, hash: u32_);
}
unsafe extern "C" {
    #[link_name = "onr_receiver_says__extern"]
    pub fn onr_receiver_says(cfg: *const onr_cfg, r: *const onr_receiver) -> u32_;
}
unsafe extern "C" {
    #[link_name = "onr_path_set__extern"]
    pub fn onr_path_set(
        flow: *mut onr_flow,
        least_ns: s64,
        fleet_ahead_ns: s64,
        hint: u32_,
    );
}
unsafe extern "C" {
    #[link_name = "onr_threshold_held__extern"]
    pub fn onr_threshold_held(
        cfg: *const onr_cfg,
        flow: *const onr_flow,
        threshold_ns: s64,
    ) -> s64;
}
unsafe extern "C" {
    #[link_name = "onr_pause_clock__extern"]
    pub fn onr_pause_clock(flow: *const onr_flow, t_mono_ns: s64) -> u64_;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_wire_least {
    pub delay_ns: s64,
    pub offset: u32_,
    pub samples: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_wire_least"][::std::mem::size_of::<onr_wire_least>() - 16usize];
    ["Alignment of onr_wire_least"][::std::mem::align_of::<onr_wire_least>() - 8usize];
    [
        "Offset of field: onr_wire_least::delay_ns",
    ][::std::mem::offset_of!(onr_wire_least, delay_ns) - 0usize];
    [
        "Offset of field: onr_wire_least::offset",
    ][::std::mem::offset_of!(onr_wire_least, offset) - 8usize];
    [
        "Offset of field: onr_wire_least::samples",
    ][::std::mem::offset_of!(onr_wire_least, samples) - 12usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_wire {
    pub near_byte: onr_wire_least,
    pub far_byte: onr_wire_least,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_wire"][::std::mem::size_of::<onr_wire>() - 32usize];
    ["Alignment of onr_wire"][::std::mem::align_of::<onr_wire>() - 8usize];
    [
        "Offset of field: onr_wire::near_byte",
    ][::std::mem::offset_of!(onr_wire, near_byte) - 0usize];
    [
        "Offset of field: onr_wire::far_byte",
    ][::std::mem::offset_of!(onr_wire, far_byte) - 16usize];
};
unsafe extern "C" {
    #[link_name = "onr_wire_sample__extern"]
    pub fn onr_wire_sample(wire: *mut onr_wire, offset: u32_, delay_ns: s64);
}
unsafe extern "C" {
    #[link_name = "onr_wire_has_enough__extern"]
    pub fn onr_wire_has_enough(wire: *const onr_wire) -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    #[link_name = "onr_wire_sooner_q16__extern"]
    pub fn onr_wire_sooner_q16(wire: *const onr_wire, line_q16: u32_) -> u32_;
}
unsafe extern "C" {
    #[link_name = "onr_wire_least_ns__extern"]
    pub fn onr_wire_least_ns(
        wire: *const onr_wire,
        line_q16: u32_,
        sooner_q16: u32_,
    ) -> s64;
}
unsafe extern "C" {
    #[link_name = "onr_segment_sent__extern"]
    pub fn onr_segment_sent(
        cfg: *const onr_cfg,
        flow: *mut onr_flow,
        now_ns: s64,
        seq: u32_,
        len: u32_,
        out: *mut onr_record,
    );
}
unsafe extern "C" {
    #[link_name = "onr_orack_arrived__extern"]
    pub fn onr_orack_arrived(
        cfg: *const onr_cfg,
        flow: *mut onr_flow,
        rec: *const onr_record,
        seq: u32_,
        now_ns: s64,
        rx_mono_ns: s64,
    ) -> onr_verdict;
}
unsafe extern "C" {
    #[link_name = "onr_may_go__extern"]
    pub fn onr_may_go(cfg: *const onr_cfg, flow: *mut onr_flow, now_ns: s64) -> s64;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_nic {
    pub free_mono_ns: s64,
    pub looked_mono_ns: s64,
    pub given_bytes: u32_,
    pub sent_bytes: u32_,
    pub bulk_bytes: u32_,
    pub reserved: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_nic"][::std::mem::size_of::<onr_nic>() - 32usize];
    ["Alignment of onr_nic"][::std::mem::align_of::<onr_nic>() - 8usize];
    [
        "Offset of field: onr_nic::free_mono_ns",
    ][::std::mem::offset_of!(onr_nic, free_mono_ns) - 0usize];
    [
        "Offset of field: onr_nic::looked_mono_ns",
    ][::std::mem::offset_of!(onr_nic, looked_mono_ns) - 8usize];
    [
        "Offset of field: onr_nic::given_bytes",
    ][::std::mem::offset_of!(onr_nic, given_bytes) - 16usize];
    [
        "Offset of field: onr_nic::sent_bytes",
    ][::std::mem::offset_of!(onr_nic, sent_bytes) - 20usize];
    [
        "Offset of field: onr_nic::bulk_bytes",
    ][::std::mem::offset_of!(onr_nic, bulk_bytes) - 24usize];
    [
        "Offset of field: onr_nic::reserved",
    ][::std::mem::offset_of!(onr_nic, reserved) - 28usize];
};
unsafe extern "C" {
    #[link_name = "onr_nic_look__extern"]
    pub fn onr_nic_look(
        cfg: *const onr_cfg,
        nic: *mut onr_nic,
        now_ns: s64,
        given_bytes: u32_,
        sent_bytes: u32_,
    ) -> s64;
}
unsafe extern "C" {
    #[link_name = "onr_nic_gets__extern"]
    pub fn onr_nic_gets(cfg: *const onr_cfg, nic: *mut onr_nic, bytes: u32_);
}
unsafe extern "C" {
    #[link_name = "onr_sampled__extern"]
    pub fn onr_sampled(seq: u32_, len: u32_, every: u32_) -> ::std::os::raw::c_int;
}
unsafe extern "C" {
    #[link_name = "onr_sampled_byte__extern"]
    pub fn onr_sampled_byte(seq: u32_, len: u32_, every: u32_) -> u32_;
}
unsafe extern "C" {
    #[link_name = "onr_sampled_next__extern"]
    pub fn onr_sampled_next(seq: u32_, every: u32_) -> u32_;
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_records {
    pub ring: [onr_record; 64usize],
    pub next: u32_,
    pub count: u32_,
    pub awaited: u32_,
    pub snd_nxt: u32_,
    pub samples: u32_,
    pub begun: u16_,
    pub thin: u16_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_records"][::std::mem::size_of::<onr_records>() - 1560usize];
    ["Alignment of onr_records"][::std::mem::align_of::<onr_records>() - 8usize];
    [
        "Offset of field: onr_records::ring",
    ][::std::mem::offset_of!(onr_records, ring) - 0usize];
    [
        "Offset of field: onr_records::next",
    ][::std::mem::offset_of!(onr_records, next) - 1536usize];
    [
        "Offset of field: onr_records::count",
    ][::std::mem::offset_of!(onr_records, count) - 1540usize];
    [
        "Offset of field: onr_records::awaited",
    ][::std::mem::offset_of!(onr_records, awaited) - 1544usize];
    [
        "Offset of field: onr_records::snd_nxt",
    ][::std::mem::offset_of!(onr_records, snd_nxt) - 1548usize];
    [
        "Offset of field: onr_records::samples",
    ][::std::mem::offset_of!(onr_records, samples) - 1552usize];
    [
        "Offset of field: onr_records::begun",
    ][::std::mem::offset_of!(onr_records, begun) - 1556usize];
    [
        "Offset of field: onr_records::thin",
    ][::std::mem::offset_of!(onr_records, thin) - 1558usize];
};
impl Default for onr_records {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    #[link_name = "onr_records_reset__extern"]
    pub fn onr_records_reset(records: *mut onr_records);
}
unsafe extern "C" {
    #[link_name = "onr_records_sent__extern"]
    pub fn onr_records_sent(
        cfg: *const onr_cfg,
        flow: *mut onr_flow,
        records: *mut onr_records,
        now_ns: s64,
        leaves_ns: s64,
        seq: u32_,
        len: u32_,
        every: u32_,
    );
}
unsafe extern "C" {
    #[link_name = "onr_records_orack__extern"]
    pub fn onr_records_orack(
        cfg: *const onr_cfg,
        flow: *mut onr_flow,
        records: *mut onr_records,
        seq: u32_,
        now_ns: s64,
        rx_mono_ns: s64,
    ) -> onr_verdict;
}
unsafe extern "C" {
    #[link_name = "onr_histogram_bucket__extern"]
    pub fn onr_histogram_bucket(ns: u64_) -> u32_;
}
#[repr(u32)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum onr_at_egress {
    Passes = 0,
    Observes = 1,
    Holds = 2,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_dev_cfg {
    pub law: onr_cfg,
    pub own_secret: u64_,
    pub flow_age_ns: s64,
    pub orack_fresh_ns: s64,
    pub limit_packets: u32_,
    pub max_flows: u32_,
    pub queues: u32_,
    pub queue: u32_,
    pub quantum_bytes: u32_,
    pub shape_ns_per_byte_q16: u32_,
    pub key_id: u32_,
    pub flow_limit_packets: u32_,
    pub orack_every_bytes: u32_,
    pub paced: u16_,
    pub at_egress: u8_,
    pub link_bytes: u8_,
    pub shape_ahead_ns: u32_,
    pub stamps_at_qdisc: u32_,
    pub ifindex: u32_,
    pub bucket_limit_packets: u32_,
    pub codel_target_ns: u32_,
    pub codel_interval_ns: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_dev_cfg"][::std::mem::size_of::<onr_dev_cfg>() - 144usize];
    ["Alignment of onr_dev_cfg"][::std::mem::align_of::<onr_dev_cfg>() - 8usize];
    [
        "Offset of field: onr_dev_cfg::law",
    ][::std::mem::offset_of!(onr_dev_cfg, law) - 0usize];
    [
        "Offset of field: onr_dev_cfg::own_secret",
    ][::std::mem::offset_of!(onr_dev_cfg, own_secret) - 56usize];
    [
        "Offset of field: onr_dev_cfg::flow_age_ns",
    ][::std::mem::offset_of!(onr_dev_cfg, flow_age_ns) - 64usize];
    [
        "Offset of field: onr_dev_cfg::orack_fresh_ns",
    ][::std::mem::offset_of!(onr_dev_cfg, orack_fresh_ns) - 72usize];
    [
        "Offset of field: onr_dev_cfg::limit_packets",
    ][::std::mem::offset_of!(onr_dev_cfg, limit_packets) - 80usize];
    [
        "Offset of field: onr_dev_cfg::max_flows",
    ][::std::mem::offset_of!(onr_dev_cfg, max_flows) - 84usize];
    [
        "Offset of field: onr_dev_cfg::queues",
    ][::std::mem::offset_of!(onr_dev_cfg, queues) - 88usize];
    [
        "Offset of field: onr_dev_cfg::queue",
    ][::std::mem::offset_of!(onr_dev_cfg, queue) - 92usize];
    [
        "Offset of field: onr_dev_cfg::quantum_bytes",
    ][::std::mem::offset_of!(onr_dev_cfg, quantum_bytes) - 96usize];
    [
        "Offset of field: onr_dev_cfg::shape_ns_per_byte_q16",
    ][::std::mem::offset_of!(onr_dev_cfg, shape_ns_per_byte_q16) - 100usize];
    [
        "Offset of field: onr_dev_cfg::key_id",
    ][::std::mem::offset_of!(onr_dev_cfg, key_id) - 104usize];
    [
        "Offset of field: onr_dev_cfg::flow_limit_packets",
    ][::std::mem::offset_of!(onr_dev_cfg, flow_limit_packets) - 108usize];
    [
        "Offset of field: onr_dev_cfg::orack_every_bytes",
    ][::std::mem::offset_of!(onr_dev_cfg, orack_every_bytes) - 112usize];
    [
        "Offset of field: onr_dev_cfg::paced",
    ][::std::mem::offset_of!(onr_dev_cfg, paced) - 116usize];
    [
        "Offset of field: onr_dev_cfg::at_egress",
    ][::std::mem::offset_of!(onr_dev_cfg, at_egress) - 118usize];
    [
        "Offset of field: onr_dev_cfg::link_bytes",
    ][::std::mem::offset_of!(onr_dev_cfg, link_bytes) - 119usize];
    [
        "Offset of field: onr_dev_cfg::shape_ahead_ns",
    ][::std::mem::offset_of!(onr_dev_cfg, shape_ahead_ns) - 120usize];
    [
        "Offset of field: onr_dev_cfg::stamps_at_qdisc",
    ][::std::mem::offset_of!(onr_dev_cfg, stamps_at_qdisc) - 124usize];
    [
        "Offset of field: onr_dev_cfg::ifindex",
    ][::std::mem::offset_of!(onr_dev_cfg, ifindex) - 128usize];
    [
        "Offset of field: onr_dev_cfg::bucket_limit_packets",
    ][::std::mem::offset_of!(onr_dev_cfg, bucket_limit_packets) - 132usize];
    [
        "Offset of field: onr_dev_cfg::codel_target_ns",
    ][::std::mem::offset_of!(onr_dev_cfg, codel_target_ns) - 136usize];
    [
        "Offset of field: onr_dev_cfg::codel_interval_ns",
    ][::std::mem::offset_of!(onr_dev_cfg, codel_interval_ns) - 140usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_clock_params {
    pub offset_ns: s64,
    pub drift_q32: s64,
    pub reference_mono_ns: s64,
    pub sigma_ns: s64,
    pub lease_expires_mono_ns: s64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_clock_params"][::std::mem::size_of::<onr_clock_params>() - 40usize];
    [
        "Alignment of onr_clock_params",
    ][::std::mem::align_of::<onr_clock_params>() - 8usize];
    [
        "Offset of field: onr_clock_params::offset_ns",
    ][::std::mem::offset_of!(onr_clock_params, offset_ns) - 0usize];
    [
        "Offset of field: onr_clock_params::drift_q32",
    ][::std::mem::offset_of!(onr_clock_params, drift_q32) - 8usize];
    [
        "Offset of field: onr_clock_params::reference_mono_ns",
    ][::std::mem::offset_of!(onr_clock_params, reference_mono_ns) - 16usize];
    [
        "Offset of field: onr_clock_params::sigma_ns",
    ][::std::mem::offset_of!(onr_clock_params, sigma_ns) - 24usize];
    [
        "Offset of field: onr_clock_params::lease_expires_mono_ns",
    ][::std::mem::offset_of!(onr_clock_params, lease_expires_mono_ns) - 32usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_clock {
    pub epoch: u64_,
    pub params: onr_clock_params,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_clock"][::std::mem::size_of::<onr_clock>() - 48usize];
    ["Alignment of onr_clock"][::std::mem::align_of::<onr_clock>() - 8usize];
    [
        "Offset of field: onr_clock::epoch",
    ][::std::mem::offset_of!(onr_clock, epoch) - 0usize];
    [
        "Offset of field: onr_clock::params",
    ][::std::mem::offset_of!(onr_clock, params) - 8usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_addr {
    pub word: [u32_; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_addr"][::std::mem::size_of::<onr_addr>() - 16usize];
    ["Alignment of onr_addr"][::std::mem::align_of::<onr_addr>() - 4usize];
    ["Offset of field: onr_addr::word"][::std::mem::offset_of!(onr_addr, word) - 0usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_tuple {
    pub saddr: onr_addr,
    pub daddr: onr_addr,
    pub sport: u16_,
    pub dport: u16_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_tuple"][::std::mem::size_of::<onr_tuple>() - 36usize];
    ["Alignment of onr_tuple"][::std::mem::align_of::<onr_tuple>() - 4usize];
    [
        "Offset of field: onr_tuple::saddr",
    ][::std::mem::offset_of!(onr_tuple, saddr) - 0usize];
    [
        "Offset of field: onr_tuple::daddr",
    ][::std::mem::offset_of!(onr_tuple, daddr) - 16usize];
    [
        "Offset of field: onr_tuple::sport",
    ][::std::mem::offset_of!(onr_tuple, sport) - 32usize];
    [
        "Offset of field: onr_tuple::dport",
    ][::std::mem::offset_of!(onr_tuple, dport) - 34usize];
};
#[repr(u32)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum onr_use {
    Free = 0,
    Taken = 1,
    In_use = 2,
    Ended = 3,
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_ctl {
    pub lock: bpf_spin_lock,
    pub use_: u32_,
    pub last_ns: s64,
    pub held: u32_,
    pub held_in: u32_,
    pub held_until_ns: s64,
    pub key: onr_tuple,
    pub known_peer: u32_,
    pub kicked: u32_,
    pub next_kick: u32_,
    pub ifindex: u32_,
    pub rules_epoch: u32_,
    pub class_threshold_ns: u32_,
    pub reserved: u32_,
    pub cgroups: [u64_; 8usize],
    pub law: onr_flow,
    pub records: onr_records,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_ctl"][::std::mem::size_of::<onr_ctl>() - 1992usize];
    ["Alignment of onr_ctl"][::std::mem::align_of::<onr_ctl>() - 8usize];
    ["Offset of field: onr_ctl::lock"][::std::mem::offset_of!(onr_ctl, lock) - 0usize];
    ["Offset of field: onr_ctl::use_"][::std::mem::offset_of!(onr_ctl, use_) - 4usize];
    [
        "Offset of field: onr_ctl::last_ns",
    ][::std::mem::offset_of!(onr_ctl, last_ns) - 8usize];
    ["Offset of field: onr_ctl::held"][::std::mem::offset_of!(onr_ctl, held) - 16usize];
    [
        "Offset of field: onr_ctl::held_in",
    ][::std::mem::offset_of!(onr_ctl, held_in) - 20usize];
    [
        "Offset of field: onr_ctl::held_until_ns",
    ][::std::mem::offset_of!(onr_ctl, held_until_ns) - 24usize];
    ["Offset of field: onr_ctl::key"][::std::mem::offset_of!(onr_ctl, key) - 32usize];
    [
        "Offset of field: onr_ctl::known_peer",
    ][::std::mem::offset_of!(onr_ctl, known_peer) - 68usize];
    [
        "Offset of field: onr_ctl::kicked",
    ][::std::mem::offset_of!(onr_ctl, kicked) - 72usize];
    [
        "Offset of field: onr_ctl::next_kick",
    ][::std::mem::offset_of!(onr_ctl, next_kick) - 76usize];
    [
        "Offset of field: onr_ctl::ifindex",
    ][::std::mem::offset_of!(onr_ctl, ifindex) - 80usize];
    [
        "Offset of field: onr_ctl::rules_epoch",
    ][::std::mem::offset_of!(onr_ctl, rules_epoch) - 84usize];
    [
        "Offset of field: onr_ctl::class_threshold_ns",
    ][::std::mem::offset_of!(onr_ctl, class_threshold_ns) - 88usize];
    [
        "Offset of field: onr_ctl::reserved",
    ][::std::mem::offset_of!(onr_ctl, reserved) - 92usize];
    [
        "Offset of field: onr_ctl::cgroups",
    ][::std::mem::offset_of!(onr_ctl, cgroups) - 96usize];
    ["Offset of field: onr_ctl::law"][::std::mem::offset_of!(onr_ctl, law) - 160usize];
    [
        "Offset of field: onr_ctl::records",
    ][::std::mem::offset_of!(onr_ctl, records) - 432usize];
};
impl Default for onr_ctl {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_kicks {
    pub lock: bpf_spin_lock,
    pub first: u32_,
    pub ifindex: u32_,
    pub queue: u32_,
    pub reserved: [u32_; 12usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_kicks"][::std::mem::size_of::<onr_kicks>() - 64usize];
    ["Alignment of onr_kicks"][::std::mem::align_of::<onr_kicks>() - 4usize];
    [
        "Offset of field: onr_kicks::lock",
    ][::std::mem::offset_of!(onr_kicks, lock) - 0usize];
    [
        "Offset of field: onr_kicks::first",
    ][::std::mem::offset_of!(onr_kicks, first) - 4usize];
    [
        "Offset of field: onr_kicks::ifindex",
    ][::std::mem::offset_of!(onr_kicks, ifindex) - 8usize];
    [
        "Offset of field: onr_kicks::queue",
    ][::std::mem::offset_of!(onr_kicks, queue) - 12usize];
    [
        "Offset of field: onr_kicks::reserved",
    ][::std::mem::offset_of!(onr_kicks, reserved) - 16usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_prefix {
    pub bits: u32_,
    pub addr: onr_addr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_prefix"][::std::mem::size_of::<onr_prefix>() - 20usize];
    ["Alignment of onr_prefix"][::std::mem::align_of::<onr_prefix>() - 4usize];
    [
        "Offset of field: onr_prefix::bits",
    ][::std::mem::offset_of!(onr_prefix, bits) - 0usize];
    [
        "Offset of field: onr_prefix::addr",
    ][::std::mem::offset_of!(onr_prefix, addr) - 4usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_rule {
    pub addr: onr_addr,
    pub mask: onr_addr,
    pub first_port: u16_,
    pub last_port: u16_,
    pub ifindex: u32_,
    pub ifindex_mask: u32_,
    pub threshold_ns: u32_,
    pub cgroup_level: u32_,
    pub reserved: u32_,
    pub cgroup: u64_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rule"][::std::mem::size_of::<onr_rule>() - 64usize];
    ["Alignment of onr_rule"][::std::mem::align_of::<onr_rule>() - 8usize];
    ["Offset of field: onr_rule::addr"][::std::mem::offset_of!(onr_rule, addr) - 0usize];
    [
        "Offset of field: onr_rule::mask",
    ][::std::mem::offset_of!(onr_rule, mask) - 16usize];
    [
        "Offset of field: onr_rule::first_port",
    ][::std::mem::offset_of!(onr_rule, first_port) - 32usize];
    [
        "Offset of field: onr_rule::last_port",
    ][::std::mem::offset_of!(onr_rule, last_port) - 34usize];
    [
        "Offset of field: onr_rule::ifindex",
    ][::std::mem::offset_of!(onr_rule, ifindex) - 36usize];
    [
        "Offset of field: onr_rule::ifindex_mask",
    ][::std::mem::offset_of!(onr_rule, ifindex_mask) - 40usize];
    [
        "Offset of field: onr_rule::threshold_ns",
    ][::std::mem::offset_of!(onr_rule, threshold_ns) - 44usize];
    [
        "Offset of field: onr_rule::cgroup_level",
    ][::std::mem::offset_of!(onr_rule, cgroup_level) - 48usize];
    [
        "Offset of field: onr_rule::reserved",
    ][::std::mem::offset_of!(onr_rule, reserved) - 52usize];
    [
        "Offset of field: onr_rule::cgroup",
    ][::std::mem::offset_of!(onr_rule, cgroup) - 56usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_rules {
    pub epoch: u32_,
    pub number: u32_,
    pub rule: [onr_rule; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rules"][::std::mem::size_of::<onr_rules>() - 4104usize];
    ["Alignment of onr_rules"][::std::mem::align_of::<onr_rules>() - 8usize];
    [
        "Offset of field: onr_rules::epoch",
    ][::std::mem::offset_of!(onr_rules, epoch) - 0usize];
    [
        "Offset of field: onr_rules::number",
    ][::std::mem::offset_of!(onr_rules, number) - 4usize];
    [
        "Offset of field: onr_rules::rule",
    ][::std::mem::offset_of!(onr_rules, rule) - 8usize];
};
impl Default for onr_rules {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_key {
    pub k0: u64_,
    pub k1: u64_,
    pub valid: u32_,
    pub reserved: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_key"][::std::mem::size_of::<onr_key>() - 24usize];
    ["Alignment of onr_key"][::std::mem::align_of::<onr_key>() - 8usize];
    ["Offset of field: onr_key::k0"][::std::mem::offset_of!(onr_key, k0) - 0usize];
    ["Offset of field: onr_key::k1"][::std::mem::offset_of!(onr_key, k1) - 8usize];
    [
        "Offset of field: onr_key::valid",
    ][::std::mem::offset_of!(onr_key, valid) - 16usize];
    [
        "Offset of field: onr_key::reserved",
    ][::std::mem::offset_of!(onr_key, reserved) - 20usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_peer {
    pub heard_mono_ns: s64,
    pub owd_last_ns: s64,
    pub owd_ewma_ns: s64,
    pub least: onr_least,
    pub oracks: u64_,
    pub holds: u64_,
    pub held_ns: u64_,
    pub wire: onr_wire,
    pub sooner_q16: u32_,
    pub wire_known: u16_,
    pub too_soon: u16_,
    pub below_zero_mono_ns: s64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_peer"][::std::mem::size_of::<onr_peer>() - 120usize];
    ["Alignment of onr_peer"][::std::mem::align_of::<onr_peer>() - 8usize];
    [
        "Offset of field: onr_peer::heard_mono_ns",
    ][::std::mem::offset_of!(onr_peer, heard_mono_ns) - 0usize];
    [
        "Offset of field: onr_peer::owd_last_ns",
    ][::std::mem::offset_of!(onr_peer, owd_last_ns) - 8usize];
    [
        "Offset of field: onr_peer::owd_ewma_ns",
    ][::std::mem::offset_of!(onr_peer, owd_ewma_ns) - 16usize];
    [
        "Offset of field: onr_peer::least",
    ][::std::mem::offset_of!(onr_peer, least) - 24usize];
    [
        "Offset of field: onr_peer::oracks",
    ][::std::mem::offset_of!(onr_peer, oracks) - 48usize];
    [
        "Offset of field: onr_peer::holds",
    ][::std::mem::offset_of!(onr_peer, holds) - 56usize];
    [
        "Offset of field: onr_peer::held_ns",
    ][::std::mem::offset_of!(onr_peer, held_ns) - 64usize];
    [
        "Offset of field: onr_peer::wire",
    ][::std::mem::offset_of!(onr_peer, wire) - 72usize];
    [
        "Offset of field: onr_peer::sooner_q16",
    ][::std::mem::offset_of!(onr_peer, sooner_q16) - 104usize];
    [
        "Offset of field: onr_peer::wire_known",
    ][::std::mem::offset_of!(onr_peer, wire_known) - 108usize];
    [
        "Offset of field: onr_peer::too_soon",
    ][::std::mem::offset_of!(onr_peer, too_soon) - 110usize];
    [
        "Offset of field: onr_peer::below_zero_mono_ns",
    ][::std::mem::offset_of!(onr_peer, below_zero_mono_ns) - 112usize];
};
#[repr(C, packed(4))]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_orack {
    pub version: u8_,
    pub flags: u8_,
    pub key_id: u16_,
    pub seq: u32_,
    pub csum_scratch: u16_,
    pub reserved: u16_,
    pub sport: u16_,
    pub dport: u16_,
    pub hint: u16_,
    pub len: u16_,
    pub rx_fleet_hi_ns: u32_,
    pub rx_fleet_lo_ns: u32_,
    pub tag: u64_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_orack"][::std::mem::size_of::<onr_orack>() - 36usize];
    ["Alignment of onr_orack"][::std::mem::align_of::<onr_orack>() - 4usize];
    [
        "Offset of field: onr_orack::version",
    ][::std::mem::offset_of!(onr_orack, version) - 0usize];
    [
        "Offset of field: onr_orack::flags",
    ][::std::mem::offset_of!(onr_orack, flags) - 1usize];
    [
        "Offset of field: onr_orack::key_id",
    ][::std::mem::offset_of!(onr_orack, key_id) - 2usize];
    ["Offset of field: onr_orack::seq"][::std::mem::offset_of!(onr_orack, seq) - 4usize];
    [
        "Offset of field: onr_orack::csum_scratch",
    ][::std::mem::offset_of!(onr_orack, csum_scratch) - 8usize];
    [
        "Offset of field: onr_orack::reserved",
    ][::std::mem::offset_of!(onr_orack, reserved) - 10usize];
    [
        "Offset of field: onr_orack::sport",
    ][::std::mem::offset_of!(onr_orack, sport) - 12usize];
    [
        "Offset of field: onr_orack::dport",
    ][::std::mem::offset_of!(onr_orack, dport) - 14usize];
    [
        "Offset of field: onr_orack::hint",
    ][::std::mem::offset_of!(onr_orack, hint) - 16usize];
    [
        "Offset of field: onr_orack::len",
    ][::std::mem::offset_of!(onr_orack, len) - 18usize];
    [
        "Offset of field: onr_orack::rx_fleet_hi_ns",
    ][::std::mem::offset_of!(onr_orack, rx_fleet_hi_ns) - 20usize];
    [
        "Offset of field: onr_orack::rx_fleet_lo_ns",
    ][::std::mem::offset_of!(onr_orack, rx_fleet_lo_ns) - 24usize];
    [
        "Offset of field: onr_orack::tag",
    ][::std::mem::offset_of!(onr_orack, tag) - 28usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_rack_port {
    pub line_ifindex: u32_,
    pub up_ifindex: u32_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rack_port"][::std::mem::size_of::<onr_rack_port>() - 8usize];
    ["Alignment of onr_rack_port"][::std::mem::align_of::<onr_rack_port>() - 4usize];
    [
        "Offset of field: onr_rack_port::line_ifindex",
    ][::std::mem::offset_of!(onr_rack_port, line_ifindex) - 0usize];
    [
        "Offset of field: onr_rack_port::up_ifindex",
    ][::std::mem::offset_of!(onr_rack_port, up_ifindex) - 4usize];
};
#[repr(u32)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum onr_probe_kind {
    Arrival = 0,
    Delay = 1,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct onr_probe_event {
    pub mono_ns: s64,
    pub kind: u32_,
    pub bytes: u32_,
    pub value: u64_,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_probe_event"][::std::mem::size_of::<onr_probe_event>() - 24usize];
    ["Alignment of onr_probe_event"][::std::mem::align_of::<onr_probe_event>() - 8usize];
    [
        "Offset of field: onr_probe_event::mono_ns",
    ][::std::mem::offset_of!(onr_probe_event, mono_ns) - 0usize];
    [
        "Offset of field: onr_probe_event::kind",
    ][::std::mem::offset_of!(onr_probe_event, kind) - 8usize];
    [
        "Offset of field: onr_probe_event::bytes",
    ][::std::mem::offset_of!(onr_probe_event, bytes) - 12usize];
    [
        "Offset of field: onr_probe_event::value",
    ][::std::mem::offset_of!(onr_probe_event, value) - 16usize];
};
unsafe extern "C" {
    #[link_name = "onr_clock_offset__extern"]
    pub fn onr_clock_offset(
        mono_ns: s64,
        offset_ns: s64,
        drift_q32: s64,
        reference_mono_ns: s64,
    ) -> s64;
}
