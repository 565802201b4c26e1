/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Written by examples/law-bindings. */
#include "../bpf/abi.h"
#include "../law/clock.h"
#include "../law/histogram.h"

// Static wrappers

int onr_least_ends__extern(const struct onr_least *least, s64 now_ns) { return onr_least_ends(least, now_ns); }
void onr_least_roll__extern(struct onr_least *least, s64 now_ns) { onr_least_roll(least, now_ns); }
void onr_least_sample__extern(struct onr_least *least, s64 owd_ns) { onr_least_sample(least, owd_ns); }
s64 onr_least_owd__extern(const struct onr_least *least) { return onr_least_owd(least); }
void onr_receiver_arrived__extern(const struct onr_cfg *cfg, struct onr_receiver *r, s64 now_ns, u32 all_bytes, u32 managed_bytes) { onr_receiver_arrived(cfg, r, now_ns, all_bytes, managed_bytes); }
void onr_receiver_flow__extern(struct onr_receiver *r, u32 hash) { onr_receiver_flow(r, hash); }
u32 onr_receiver_says__extern(const struct onr_cfg *cfg, const struct onr_receiver *r) { return onr_receiver_says(cfg, r); }
void onr_path_set__extern(struct onr_flow *flow, s64 least_ns, s64 fleet_ahead_ns, u32 hint) { onr_path_set(flow, least_ns, fleet_ahead_ns, hint); }
s64 onr_threshold_held__extern(const struct onr_cfg *cfg, const struct onr_flow *flow, s64 threshold_ns) { return onr_threshold_held(cfg, flow, threshold_ns); }
u64 onr_pause_clock__extern(const struct onr_flow *flow, s64 t_mono_ns) { return onr_pause_clock(flow, t_mono_ns); }
void onr_wire_sample__extern(struct onr_wire *wire, u32 offset, s64 delay_ns) { onr_wire_sample(wire, offset, delay_ns); }
int onr_wire_has_enough__extern(const struct onr_wire *wire) { return onr_wire_has_enough(wire); }
u32 onr_wire_sooner_q16__extern(const struct onr_wire *wire, u32 line_q16) { return onr_wire_sooner_q16(wire, line_q16); }
s64 onr_wire_least_ns__extern(const struct onr_wire *wire, u32 line_q16, u32 sooner_q16) { return onr_wire_least_ns(wire, line_q16, sooner_q16); }
void onr_segment_sent__extern(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns, u32 seq, u32 len, struct onr_record *out) { onr_segment_sent(cfg, flow, now_ns, seq, len, out); }
enum onr_verdict onr_orack_arrived__extern(const struct onr_cfg *cfg, struct onr_flow *flow, const struct onr_record *rec, u32 seq, s64 now_ns, s64 rx_mono_ns) { return onr_orack_arrived(cfg, flow, rec, seq, now_ns, rx_mono_ns); }
s64 onr_may_go__extern(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns) { return onr_may_go(cfg, flow, now_ns); }
s64 onr_nic_look__extern(const struct onr_cfg *cfg, struct onr_nic *nic, s64 now_ns, u32 given_bytes, u32 sent_bytes) { return onr_nic_look(cfg, nic, now_ns, given_bytes, sent_bytes); }
void onr_nic_gets__extern(const struct onr_cfg *cfg, struct onr_nic *nic, u32 bytes) { onr_nic_gets(cfg, nic, bytes); }
int onr_sampled__extern(u32 seq, u32 len, u32 every) { return onr_sampled(seq, len, every); }
u32 onr_sampled_byte__extern(u32 seq, u32 len, u32 every) { return onr_sampled_byte(seq, len, every); }
u32 onr_sampled_next__extern(u32 seq, u32 every) { return onr_sampled_next(seq, every); }
void onr_records_reset__extern(struct onr_records *records) { onr_records_reset(records); }
void onr_records_sent__extern(const struct onr_cfg *cfg, struct onr_flow *flow, struct onr_records *records, s64 now_ns, s64 leaves_ns, u32 seq, u32 len, u32 every) { onr_records_sent(cfg, flow, records, now_ns, leaves_ns, seq, len, every); }
enum onr_verdict onr_records_orack__extern(const struct onr_cfg *cfg, struct onr_flow *flow, struct onr_records *records, u32 seq, s64 now_ns, s64 rx_mono_ns) { return onr_records_orack(cfg, flow, records, seq, now_ns, rx_mono_ns); }
u32 onr_histogram_bucket__extern(u64 ns) { return onr_histogram_bucket(ns); }
s64 onr_clock_offset__extern(s64 mono_ns, s64 offset_ns, s64 drift_q32, s64 reference_mono_ns) { return onr_clock_offset(mono_ns, offset_ns, drift_q32, reference_mono_ns); }
