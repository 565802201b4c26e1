/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/onramp.h: the pause laws of On-Ramp (Liu et al., NSDI 2021, section 3):
 * strawman (eq. 2) and final (eqs. 3 and 4). The strawman is the final law with
 * compensation off. Decides how long a flow is paused; the cap on what one head
 * waits is law.h's. [C] marks a choice where the paper is silent: docs/law.md. */
#ifndef ONR_ONRAMP_H
#define ONR_ONRAMP_H

#include "arith.h"
#include "threshold.h"

/* A(t): for how long pause has been asserted up to t, in ns. [C] It counts
 * whether or not data waits. t is not before the pause was last set. */
ONR_FN u64 onr_pause_clock(const struct onr_flow *flow, s64 t_mono_ns)
{
	s64 end = onr_min(t_mono_ns, flow->pause_until_mono_ns);
	s64 open_ns = onr_sub(end, flow->pause_from_mono_ns);

	return flow->pause_total_ns + (open_ns > 0 ? (u64)open_ns : 0);
}

/* tNextPkt := now + pause. What ran until now enters the total, the rest of an
 * older pause is forgotten: eq. 4 may shorten it. */
ONR_FN void onr_pause_set(struct onr_flow *flow, s64 now_ns, s64 pause_ns)
{
	flow->pause_total_ns = onr_pause_clock(flow, now_ns);
	flow->pause_from_mono_ns = now_ns;
	flow->pause_until_mono_ns = onr_add(now_ns, pause_ns);
}

/* beta_m of eq. 3 in Q16: how much of a pause the delay fell by, clamped to
 * [0, 1]. pause_ns > 0. */
ONR_FN u32 onr_pause_effect(s64 fall_ns, u64 pause_ns)
{
	u64 fall = (u64)fall_ns;

	if (fall_ns <= 0)
		return 0;
	if (fall >= pause_ns)
		return ONR_ONE_Q16;
	if (pause_ns >> 47) { /* a pause of days: keep fall << 16 inside 64 bits */
		fall >>= 16;
		pause_ns >>= 16;
	}
	return (u32)((fall << 16) / pause_ns);
}

/* Eq. 3, rounded to nearest: beta := (1 - g) beta + g beta_m. */
ONR_FN u32 onr_pause_average(u32 beta_q16, u32 effect_q16, u32 gain_q16)
{
	u64 g = gain_q16 < ONR_ONE_Q16 ? gain_q16 : ONR_ONE_Q16;

	return (u32)((beta_q16 * (ONR_ONE_Q16 - g) + effect_q16 * g +
		      ONR_ONE_Q16 / 2) >> 16);
}

/* The pause asserted while the sample was in flight: P_LastPktRTT of eq. 4. It
 * cannot exceed that time; a mark written under another law might say so. */
ONR_FN u64 onr_pause_in_flight(const struct onr_flow *flow,
			       const struct onr_record *rec, s64 now_ns)
{
	s64 pause_ns = (s64)(onr_pause_clock(flow, now_ns) - rec->mark);
	s64 flight_ns = onr_sub(now_ns, rec->sent_mono_ns);

	pause_ns = onr_min(pause_ns, flight_ns);
	return pause_ns > 0 ? (u64)pause_ns : 0;
}

/* Learns beta from the pause between the departures of the previous sample, B,
 * and this one, G. [C] beta begins at 0: the first pauses are the strawman's. */
ONR_FN void onr_pause_learn(const struct onr_cfg *cfg, struct onr_flow *flow,
			    const struct onr_record *rec, s64 owd_ns)
{
	s64 between_ns = (s64)(rec->mark - flow->sample_pause_ns); /* P_BG */
	s64 fall_ns = onr_sub(flow->sample_owd_ns, owd_ns);

	if (!flow->sampled || between_ns <= 0)
		return;
	flow->beta_q16 = onr_pause_average(
		flow->beta_q16, onr_pause_effect(fall_ns, (u64)between_ns),
		cfg->gain_q16);
}

/* Was the byte at offset of rec handed to the device after the last used sample's?
 * By stamp, then by position in the segment: a NIC's queue lets the next segment be
 * stamped before the last byte of this one is on the wire. */
ONR_FN int onr_pause_newer(const struct onr_flow *flow,
			   const struct onr_record *rec, u32 offset)
{
	if (!flow->sampled || rec->sent_mono_ns > flow->sample_sent_mono_ns)
		return 1;
	return rec->sent_mono_ns == flow->sample_sent_mono_ns &&
	       offset > flow->sample_offset;
}

/* The head leaves. Returns the record's mark, A(now). */
ONR_FN u64 onr_pause_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			  s64 now_ns)
{
	(void)cfg;
	return onr_pause_clock(flow, now_ns);
}

/* An OR-ACK of the byte at offset of rec arrived, which left at left_ns and was at
 * the receiver at rx_ns. [C] Ignored unless that byte was sent after the last one
 * used. */
ONR_FN enum onr_verdict onr_pause_orack(const struct onr_cfg *cfg,
					struct onr_flow *flow,
					const struct onr_record *rec,
					u32 offset, s64 now_ns, s64 left_ns,
					s64 rx_ns)
{
	s64 owd_ns = onr_sub(rx_ns, left_ns);
	s64 pause_ns = onr_sub(owd_ns, onr_threshold(cfg, flow));

	if (!onr_pause_newer(flow, rec, offset))
		return ONR_REORDERED;

	if (cfg->law == ONR_LAW_final) {
		onr_pause_learn(cfg, flow, rec, owd_ns);
		pause_ns = onr_sub(pause_ns, (s64)onr_mul_q16(
			onr_pause_in_flight(flow, rec, now_ns), flow->beta_q16));
	}
	pause_ns = onr_min(pause_ns, cfg->max_pause_ns);
	/* Else a pause runs out as it is. */
	if (onr_pause_acts(cfg) && pause_ns > 0 && !onr_threshold_is_alone(cfg, flow))
		onr_pause_set(flow, now_ns, pause_ns);

	flow->sample_pause_ns = rec->mark;
	return ONR_USED;
}

/* When the head may go. */
ONR_FN s64 onr_pause_opens(const struct onr_cfg *cfg, struct onr_flow *flow,
			   s64 now_ns)
{
	return onr_pause_acts(cfg) ? flow->pause_until_mono_ns : now_ns;
}

#endif
