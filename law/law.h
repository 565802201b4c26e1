/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/law.h: the interface of every control law. A segment leaves; an OR-ACK
 * arrives; may the head go, and if not, when. Here also what all laws share: the
 * departure of a byte inside a GSO segment, the sanity of a sample, the cap on a
 * hold. No clocks, no I/O; the caller serialises access to a flow. Which laws there
 * are: laws.h. */
#ifndef ONR_LAW_H
#define ONR_LAW_H

#include "alone.h"
#include "guard.h"
#include "level.h"
#include "wire.h"

/* Each law's rules; those of ONR_LAW_off where the number is unknown. */
ONR_FN u64 onr_law_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			s64 now_ns)
{
	switch (cfg->law) {
#define ONR_LAW_SENT(name, rules, meaning)                                       \
	case ONR_LAW_##name:                                                     \
		return onr_##rules##_sent(cfg, flow, now_ns);
	ONR_LAWS(ONR_LAW_SENT)
#undef ONR_LAW_SENT
	}
	return onr_pause_sent(cfg, flow, now_ns);
}

ONR_FN enum onr_verdict onr_law_orack(const struct onr_cfg *cfg,
				      struct onr_flow *flow,
				      const struct onr_record *rec, u32 offset,
				      s64 now_ns, s64 left_ns, s64 rx_ns)
{
	switch (cfg->law) {
#define ONR_LAW_ORACK(name, rules, meaning)                                      \
	case ONR_LAW_##name:                                                     \
		return onr_##rules##_orack(cfg, flow, rec, offset, now_ns, left_ns, rx_ns);
	ONR_LAWS(ONR_LAW_ORACK)
#undef ONR_LAW_ORACK
	}
	return onr_pause_orack(cfg, flow, rec, offset, now_ns, left_ns, rx_ns);
}

ONR_FN s64 onr_law_opens(const struct onr_cfg *cfg, struct onr_flow *flow,
			 s64 now_ns)
{
	if (onr_alone(cfg, flow))
		return onr_gate_opens(cfg, flow, now_ns);
	switch (cfg->law) {
#define ONR_LAW_OPENS(name, rules, meaning)                                      \
	case ONR_LAW_##name:                                                     \
		return onr_##rules##_opens(cfg, flow, now_ns);
	ONR_LAWS(ONR_LAW_OPENS)
#undef ONR_LAW_OPENS
	}
	return onr_pause_opens(cfg, flow, now_ns);
}

/* The head, bytes [seq, seq + len), is handed to the device; out is its
 * record. */
ONR_FN void onr_segment_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			     s64 now_ns, u32 seq, u32 len,
			     struct onr_record *out)
{
	out->sent_mono_ns = now_ns;
	out->seq = seq;
	out->len = len;
	out->mark = onr_law_sent(cfg, flow, now_ns);
	onr_alone_sent(cfg, flow, now_ns, seq, len);
	flow->sent_bytes += len;
	onr_guard_sent(cfg, flow, now_ns);
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
	s64 left_ns = onr_add(rec->sent_mono_ns, onr_wire_ns(cfg, flow, offset));
	s64 owd_ns = onr_sub(rx_mono_ns, left_ns);
	enum onr_verdict verdict;

	if (offset >= rec->len)
		return ONR_UNKNOWN;
	if (owd_ns > cfg->max_owd_ns || owd_ns < onr_sub(0, cfg->max_owd_ns))
		return ONR_ABSURD;

	verdict = onr_law_orack(cfg, flow, rec, offset, now_ns, left_ns, rx_mono_ns);
	if (verdict == ONR_USED) {
		onr_alone_orack(cfg, flow, seq, now_ns, left_ns, rx_mono_ns);
		flow->sampled = 1;
		flow->sample_sent_mono_ns = rec->sent_mono_ns;
		flow->sample_offset = offset;
		flow->sample_owd_ns = owd_ns;
		onr_guard_sample(cfg, flow, now_ns, owd_ns);
	}
	return verdict;
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
