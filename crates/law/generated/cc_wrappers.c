/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Written by examples/law-bindings. */
#include "../law/cc/rapid.h"
#include "../law/cc/rapid_stream.h"
#include "../law/cc/tbtcp.h"
#include "../law/cc/timely.h"
#include "../law/cc/transport.h"

// Static wrappers

u64 onr_rapid_gap_ns__extern(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, u32 number) { return onr_rapid_gap_ns(cfg, flow, number); }
void onr_rapid_back_off__extern(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream, u32 next) { onr_rapid_back_off(cfg, flow, stream, next); }
void onr_rapid_begin__extern(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream, u64 rate, u32 next) { onr_rapid_begin(cfg, flow, stream, rate, next); }
u64 onr_rapid_first_rate__extern(const struct onr_rapid_cfg *cfg, u64 rtt_ns) { return onr_rapid_first_rate(cfg, rtt_ns); }
enum onr_rapid_news onr_rapid_arrived__extern(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream, const struct onr_rapid_arrival *arrival) { return onr_rapid_arrived(cfg, flow, stream, arrival); }
u32 onr_tbtcp_cut__extern(const struct onr_tbtcp_cfg *cfg, u32 window, u32 marks) { return onr_tbtcp_cut(cfg, window, marks); }
u32 onr_tbtcp_grow__extern(const struct onr_tbtcp_cfg *cfg, u64 *counted, u32 window, u32 acked) { return onr_tbtcp_grow(cfg, counted, window, acked); }
u32 onr_tbtcp_marks__extern(u64 *owed_q16, u32 packets, u32 queue_ns, u32 base_ns) { return onr_tbtcp_marks(owed_q16, packets, queue_ns, base_ns); }
void onr_timely_begin__extern(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u64 rate) { onr_timely_begin(cfg, flow, rate); }
void onr_timely_sample__extern(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u64 bytes, u64 rtt_ns, u32 is_limited) { onr_timely_sample(cfg, flow, bytes, rtt_ns, is_limited); }
void onr_timely_acked__extern(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u32 bytes, u64 rtt_ns, u32 is_limited) { onr_timely_acked(cfg, flow, bytes, rtt_ns, is_limited); }
void onr_timely_loss__extern(const struct onr_timely_cfg *cfg, struct onr_timely *flow) { onr_timely_loss(cfg, flow); }
