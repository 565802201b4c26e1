/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/law.h: the interface of every control law. A segment leaves; an OR-ACK
 * arrives; may the head go, and if not, when. Here also what all laws share: the
 * departure of a byte inside a GSO segment, the sanity of a sample, the cap on a
 * hold. No clocks, no I/O; the caller serialises access to a flow. A further law
 * is a header and a case in each switch below. */
#ifndef ONR_LAW_H
#define ONR_LAW_H

#include "gate.h"
#include "onramp.h"

/* The head, bytes [seq, seq + len), is handed to the device; out is what to
 * remember of it. */
ONR_FN void onr_segment_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			     s64 now_ns, u32 seq, u32 len,
			     struct onr_record *out)
{
	out->sent_mono_ns = now_ns;
	out->seq = seq;
	out->len = len;
	switch (cfg->law) {
	case ONR_LAW_GATE:
		onr_gate_sent(cfg, flow, now_ns);
		out->mark = flow->sent_bytes;
		break;
	default:
		out->mark = onr_pause_clock(flow, now_ns);
		break;
	}
	flow->sent_bytes += len;
	flow->held = 0;
	flow->capped = 0;
}

/* An OR-ACK arrived: byte seq of rec was at the receiver at rx_mono_ns, a time of
 * the sender's clock. Any value of seq and rx_mono_ns is safe. */
ONR_FN enum onr_verdict onr_orack_arrived(const struct onr_cfg *cfg,
					  struct onr_flow *flow,
					  const struct onr_record *rec, u32 seq,
					  s64 now_ns, s64 rx_mono_ns)
{
	u32 offset = seq - rec->seq;
	/* The segment's stamp is its first byte's; the wire then takes its time. */
	s64 left_ns = onr_add(rec->sent_mono_ns,
			      (s64)onr_mul_q16(offset, cfg->line_ns_per_byte_q16));
	s64 owd_ns = onr_sub(rx_mono_ns, left_ns);
	enum onr_verdict verdict;

	if (offset >= rec->len)
		return ONR_UNKNOWN;
	if (owd_ns > cfg->max_owd_ns || owd_ns < onr_sub(0, cfg->max_owd_ns))
		return ONR_ABSURD;

	switch (cfg->law) {
	case ONR_LAW_GATE:
		verdict = onr_gate_orack(cfg, flow, rec, offset, now_ns, left_ns,
					 rx_mono_ns);
		break;
	default:
		verdict = onr_pause_orack(cfg, flow, rec, offset, now_ns, owd_ns);
		break;
	}
	if (verdict == ONR_USED) {
		flow->sampled = 1;
		flow->sample_sent_mono_ns = rec->sent_mono_ns;
		flow->sample_offset = offset;
		flow->sample_owd_ns = owd_ns;
	}
	return verdict;
}

/* When the law alone would let the head go. */
ONR_FN s64 onr_law_opens(const struct onr_cfg *cfg, struct onr_flow *flow,
			 s64 now_ns)
{
	switch (cfg->law) {
	case ONR_LAW_STRAWMAN:
	case ONR_LAW_FINAL:
		return flow->pause_until_mono_ns;
	case ONR_LAW_GATE:
		return onr_gate_opens(cfg, flow, now_ns);
	default:
		return now_ns;
	}
}

/* 0: the head may go, and stays free to until it is sent. Else the time (later
 * than now, at most max_pause_ns after the head was first refused) to ask again;
 * asking sooner, after an OR-ACK, does no harm. now_ns >= 0. */
ONR_FN s64 onr_may_go(const struct onr_cfg *cfg, struct onr_flow *flow,
		      s64 now_ns)
{
	s64 opens_ns = onr_law_opens(cfg, flow, now_ns);
	s64 limit_ns;

	if (opens_ns <= now_ns)
		return 0;
	if (!flow->held || now_ns < flow->held_since_mono_ns) {
		flow->held = 1;
		flow->held_since_mono_ns = now_ns;
	}
	limit_ns = onr_add(flow->held_since_mono_ns, cfg->max_pause_ns);
	if (limit_ns <= now_ns) {
		flow->capped = 1;
		return 0;
	}
	return onr_min(opens_ns, limit_ns);
}

#endif
