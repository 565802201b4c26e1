/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/level.h: a full port, a short tail and a fair share at once, where the receiver says
 * what its port carries (receiver.h). Seven rules; equations and what each is for: docs/law.md.
 *
 *     1 the in-flight limit of gate.h           5 the clock stops while an OR-ACK is overdue
 *     2 half of a segment counts as arrived     6 young flows are hardly held
 *     3 slower flows may have more in flight    7 flows are let go where holding is of no use
 *     4 the rate doubles without a queue
 *
 * Without the receiver's bits, or without a line rate, nothing is held. Sizes are multiples of
 * a (1 MSS) or of its wire time w, times are multiples of tau or of the round trip. */
#ifndef ONR_LEVEL_H
#define ONR_LEVEL_H

#include "threshold.h"
#include "wire.h"

#define ONR_LEVEL_SLOWEST 1000u   /* the slowest rate believed: line rate / 1000 */
#define ONR_LEVEL_ROOM 3          /* shift: T leaves an eighth of a round trip of room */
#define ONR_LEVEL_EXTRA 6u        /* w: what each halving of the rate adds to T */
#define ONR_LEVEL_EMPTY 2         /* shift: a quarter of the way from the least delay to T is no queue */
#define ONR_LEVEL_DOUBLINGS 3     /* of the rate, while there is no queue */
#define ONR_LEVEL_BURST 26u       /* w: a delay so far above its average is an incast's */
#define ONR_LEVEL_BURST_WEIGHT 4  /* shift: of samples in it, where T is short */
#define ONR_LEVEL_LATE 4u         /* w: an OR-ACK so late is overdue */
#define ONR_LEVEL_YOUNG 70u       /* a: 100 kB */
#define ONR_LEVEL_PAUSE 16u       /* w, and two round trips: a flow that idles for longer is young again */
#define ONR_LEVEL_FEW 8u          /* of 31: so few managed bytes that the decision is quick */
#define ONR_LEVEL_HERE 6u         /* of 8: a line used less is not the bottleneck */
#define ONR_LEVEL_PATIENCE 20u    /* tau / 2: held in vain for so long, a flow is let go */
#define ONR_LEVEL_LEAST_PATIENCE 3u /* tau / 2: after however many trials */
#define ONR_LEVEL_TRIES 6         /* most doublings of the time between two trials */
#define ONR_LEVEL_SETTLED 50      /* tau: held so long, the trials begin anew */

/* n w. */
ONR_FN s64 onr_level_wire_ns(const struct onr_cfg *cfg, u64 n)
{
	return (s64)onr_mul_q16(n * cfg->gate_allowance_bytes, cfg->line_ns_per_byte_q16);
}

/* n tau. */
ONR_FN s64 onr_level_taus_ns(const struct onr_cfg *cfg, u64 n)
{
	return (s64)(onr_tau_ns(cfg) * n);
}

/* The idle path there and back, whatever the clocks say: what they err cancels. */
ONR_FN s64 onr_level_rtt_ns(const struct onr_flow *flow)
{
	return (s64)onr_rate_clamp((s64)flow->least_ns + flow->back_ns);
}

/* Rule 3. T_p: T, and at least the least delay and a part of a round trip. A shorter queue
 * cannot be steered from here, and T below the idle path holds nothing for ever. */
ONR_FN s64 onr_level_threshold(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	s64 threshold_ns = onr_threshold(cfg, flow);
	s64 room_ns = flow->least_ns + (onr_level_rtt_ns(flow) >> ONR_LEVEL_ROOM);

	return threshold_ns > room_ns ? threshold_ns : room_ns;
}

/* Binary digits of v < 2^16. Without branches, which the BPF verifier would follow each. */
ONR_FN u32 onr_level_bits(u32 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v -= v >> 1 & 0x5555;
	v = (v & 0x3333) + (v >> 2 & 0x3333);
	v = (v + (v >> 4)) & 0x0f0f;
	return (v + (v >> 8)) & 31;
}

/* Rule 3. 6 w log2(line rate / rate): slower flows get more, so that rates converge by a force
 * that does not depend on how many flows there are. A straight line between powers of two. */
ONR_FN s64 onr_level_extra_ns(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	u32 line = cfg->line_ns_per_byte_q16;
	u64 ratio_q4 = line ? flow->inv_q16 * 16 / line : 16; /* 16 to 16,000 */
	u64 halvings = onr_level_bits((u32)ratio_q4) - 5;

	return onr_level_wire_ns(cfg, ONR_LEVEL_EXTRA) *
		       (s64)(halvings * 16 + (ratio_q4 >> halvings) - 16) >> 4;
}

/* Rule 1, as in gate.h: nothing drains once all has arrived, and time that passes then gives no credit. */
ONR_FN void onr_level_idle(struct onr_flow *flow, s64 now_ns)
{
	s64 drain_ns = onr_rate_drain_ns(flow, 0);

	if (flow->inv_q16 && onr_add(flow->drain_from_mono_ns, drain_ns) < now_ns)
		flow->drain_from_mono_ns = onr_sub(now_ns, drain_ns);
}

/* Rule 6. A flow that was idle for two round trips, and not because it was held, is young again,
 * until it has sent 100 kB. */
ONR_FN void onr_level_age(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	s64 rtt_ns = onr_add(flow->sample_owd_ns, flow->back_ns);
	s64 pause_ns = onr_add(onr_level_wire_ns(cfg, ONR_LEVEL_PAUSE), onr_add(rtt_ns, rtt_ns));
	u32 sent_bytes = (u32)flow->sent_bytes;

	if (!flow->left_mono_ns ||
	    (!flow->held && onr_sub(now_ns, flow->left_mono_ns) > pause_ns)) {
		flow->young = 1;
		flow->young_bytes = sent_bytes;
		if (!flow->free)
			flow->above_since_mono_ns = 0;
	} else if (sent_bytes - flow->young_bytes >=
		   (u64)ONR_LEVEL_YOUNG * cfg->gate_allowance_bytes) {
		flow->young = 0;
	}
	flow->left_mono_ns = now_ns;
}

/* The head leaves. Returns the record's mark, S before it. */
ONR_FN u64 onr_level_sent(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	onr_level_age(cfg, flow, now_ns);
	onr_level_idle(flow, now_ns);
	return flow->sent_bytes;
}

/* Rule 4. Is a delay above_ns above T_p an incast's, on a path where T is short? Its share does not predict what comes
 * after it. Returns 0 or 1, without branches. */
ONR_FN u32 onr_level_burst(const struct onr_cfg *cfg, const struct onr_flow *flow, s64 above_ns,
			   s64 owd_ns)
{
	s64 burst_ns = onr_add(flow->owd_avg_ns, onr_level_wire_ns(cfg, ONR_LEVEL_BURST));
	u64 is_short = (u64)onr_sub(onr_sub(owd_ns, above_ns), 2ll * flow->least_ns) >> 63;

	return (u32)(is_short & (u64)onr_sub(burst_ns, owd_ns) >> 63);
}

/* Rule 4. Averages a sample into the rate: over two tau, or two round trips if these are longer. */
ONR_FN void onr_level_learn(const struct onr_cfg *cfg, struct onr_flow *flow, u32 is_burst, u64 dn,
			    u64 dt_ns)
{
	u64 tau_ns = onr_tau_ns(cfg), rtt_ns = (u64)onr_level_rtt_ns(flow);
	u32 shift = is_burst * ONR_LEVEL_BURST_WEIGHT;

	onr_rate_average(&flow->rate_bytes, &flow->rate_ns, (dn >> shift) + is_burst,
			 (dt_ns >> shift) + is_burst, 2 * onr_rate_max(rtt_ns, tau_ns));
}

/* Rule 4. Without a queue the rate of a flow that was held doubles once a round trip. */
ONR_FN void onr_level_double(struct onr_flow *flow, s64 owd_ns, u64 mark)
{
	s64 room_ns = onr_sub(flow->level_ns, flow->least_ns) >> ONR_LEVEL_EMPTY;

	if (owd_ns > onr_add(flow->least_ns, room_ns)) {
		flow->doublings = 0;
	} else if (flow->gated && (s32)((u32)mark - flow->doubled_bytes) >= 0) {
		if (flow->doublings < ONR_LEVEL_DOUBLINGS)
			flow->doublings++;
		flow->doubled_bytes = (u32)flow->sent_bytes;
	}
}

/* Rule 4. The rate in use. */
ONR_FN u64 onr_level_rate(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	u64 line = cfg->line_ns_per_byte_q16, inv = line;

	if (flow->rate_bytes)
		inv = onr_rate_inverse(cfg, flow->rate_bytes, flow->rate_ns, ONR_LEVEL_SLOWEST);
	inv >>= flow->doublings;
	return inv < line ? line : inv;
}

/* Rule 7. The flow is held, or let go, from now on. */
ONR_FN void onr_level_set_free(struct onr_flow *flow, int free, s64 now_ns)
{
	flow->free = (u8)free;
	flow->mode_mono_ns = now_ns;
	flow->above_since_mono_ns = 0;
}

/* Rule 7. A flow that was let go is held again when the queue has gone, or at the next common trial: when
 * fleet time passes a multiple of 4 tau 2^tries. */
ONR_FN void onr_level_judge_free(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	u64 period_ns = onr_tau_ns(cfg) << (2 + (flow->tries & 7));
	u64 now = (u64)onr_add(now_ns, flow->fleet_ahead_ns);
	u64 then = (u64)onr_add(flow->mode_mono_ns, flow->fleet_ahead_ns);

	if (flow->owd_avg_ns <= onr_sub(flow->level_ns, onr_level_wire_ns(cfg, 4)) ||
	    now / period_ns != then / period_ns)
		onr_level_set_free(flow, 0, now_ns);
}

/* Rule 7. How long a flow is held in vain. What fills the port after a trial or two is no burst: each further
 * trial that ends so is half as long. */
ONR_FN s64 onr_level_patience_ns(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	u32 halves = onr_hint_managed(flow->hint) <= ONR_LEVEL_FEW ? 0 : ONR_LEVEL_PATIENCE >> (flow->tries & 7);

	if (halves < ONR_LEVEL_LEAST_PATIENCE)
		halves = ONR_LEVEL_LEAST_PATIENCE;
	return onr_level_taus_ns(cfg, halves) >> 1;
}

/* Rule 7. A held flow is let go if the delay stays above what managed flows cause, and its receiver
 * says that others fill the port, or that the port is not full. */
ONR_FN void onr_level_judge_held(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	u32 managed = onr_hint_managed(flow->hint);
	int here = onr_hint_use(flow->hint) >= ONR_LEVEL_HERE, foreign = managed <= ONR_PATH_FOREIGN;
	u64 ours = 4 + 4 * onr_hint_flows(flow->hint) + (foreign ? 0 : 20);

	if (flow->owd_avg_ns <= onr_add(flow->level_ns, onr_level_wire_ns(cfg, ours)) ||
	    (here && !foreign)) {
		flow->above_since_mono_ns = 0;
		if (onr_sub(now_ns, flow->mode_mono_ns) > onr_level_taus_ns(cfg, ONR_LEVEL_SETTLED))
			flow->tries = 0;
	} else if (!flow->above_since_mono_ns) {
		flow->above_since_mono_ns = now_ns;
	} else if (onr_sub(now_ns, flow->above_since_mono_ns) > onr_level_patience_ns(cfg, flow)) {
		if (flow->tries < ONR_LEVEL_TRIES)
			flow->tries++;
		onr_level_set_free(flow, 1, now_ns);
	}
}

/* Rule 7. Is holding of use? */
ONR_FN void onr_level_judge(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	if (flow->free)
		onr_level_judge_free(cfg, flow, now_ns);
	else
		onr_level_judge_held(cfg, flow, now_ns);
}

/* The average of the delay, over 8 samples. */
ONR_FN void onr_level_average(struct onr_flow *flow, s64 owd_ns)
{
	s32 now_owd_ns = onr_path_short(owd_ns);

	flow->owd_avg_ns = flow->sampled ? flow->owd_avg_ns + ((now_owd_ns - flow->owd_avg_ns) >> 3)
					 : now_owd_ns;
}

/* A peak that is forgotten by 1 / 2^shift a sample. */
ONR_FN u32 onr_level_peak(u32 peak, u64 v, u32 shift)
{
	u64 less = peak - onr_choose(((u64)peak - v) >> shift, 0, onr_below(peak, (s64)v));

	return (u32)onr_choose(less, v, onr_below(peak, (s64)v));
}

/* Rule 4. Does a sample show the rate of the path, and not of the application? As in gate.h. */
ONR_FN int onr_level_shows(const struct onr_flow *flow, s64 above_ns, s64 left_ns, u64 dn, u64 dt_ns)
{
	if (flow->gated && flow->drain_from_mono_ns == flow->acked_rx_mono_ns)
		return 1;
	if (onr_mul_q16(dn, flow->inv_q16) > dt_ns)
		return 1;
	return above_ns > 0 && left_ns < flow->acked_mono_ns;
}

/* Rules 3 and 7: the T of a flow that is not young. One that was let go may have in flight what is there and a quarter
 * more, so that its rate at most doubles in a round trip. */
ONR_FN s64 onr_level_allowed_ns(const struct onr_cfg *cfg, const struct onr_flow *flow, s64 owd_ns)
{
	s64 most_ns = owd_ns > flow->owd_avg_ns ? owd_ns : flow->owd_avg_ns;

	if (flow->free)
		return onr_add(flow->level_ns, onr_add(most_ns, most_ns >> 2));
	return onr_add(onr_threshold_held(cfg, flow, flow->level_ns), onr_level_extra_ns(cfg, flow));
}

/* Rules 2 and 4. S_G and when the receiver had it; the rate that they show. */
ONR_FN void onr_level_acked(const struct onr_cfg *cfg, struct onr_flow *flow, u64 acked, s64 left_ns,
			    s64 owd_ns, s64 acked_rx_ns)
{
	s64 above_ns = onr_sub(owd_ns, flow->level_ns);
	u64 dn = onr_rate_clamp((s64)(acked - flow->acked_bytes));
	u64 dt_ns = onr_rate_clamp(onr_sub(acked_rx_ns, flow->acked_rx_mono_ns));

	flow->step_bytes = onr_level_peak(flow->step_bytes, dn, 3);
	if (flow->inv_q16 && onr_level_shows(flow, above_ns, left_ns, dn, dt_ns))
		onr_level_learn(cfg, flow, onr_level_burst(cfg, flow, above_ns, owd_ns), dn, dt_ns);
	flow->acked_bytes = acked;
	flow->acked_rx_mono_ns = acked_rx_ns;
	flow->drain_from_mono_ns = acked_rx_ns;
}

/* An OR-ACK arrived for the byte at offset of rec. The byte left at left_ns and reached the
 * receiver at rx_ns. Rule 2: S_G counts to the middle of the acknowledged part of the segment,
 * which the receiver had half of the part's wire time before. */
ONR_FN enum onr_verdict onr_level_orack(const struct onr_cfg *cfg, struct onr_flow *flow,
					const struct onr_record *rec, u32 offset, s64 now_ns,
					s64 left_ns, s64 rx_ns)
{
	u64 acked = rec->mark + (offset + 1) / 2; /* S_G */
	s64 owd_ns = onr_sub(rx_ns, left_ns);

	if (rec->mark + offset + 1 > flow->sent_bytes)
		return ONR_ABSURD; /* a mark written under another law */
	if (flow->sampled && (s64)(acked - flow->acked_bytes) <= 0)
		return ONR_REORDERED;
	flow->back_ns = onr_level_peak(flow->back_ns, onr_rate_clamp(onr_sub(now_ns, rx_ns)), 4);
	flow->level_ns = onr_level_threshold(cfg, flow);
	onr_level_acked(cfg, flow, acked, left_ns, owd_ns,
			onr_sub(rx_ns, onr_wire_ns(cfg, flow, offset / 2)));
	flow->acked_mono_ns = now_ns;
	onr_level_average(flow, owd_ns);
	onr_level_double(flow, owd_ns, rec->mark);
	flow->gated = 0;
	flow->inv_q16 = onr_level_rate(cfg, flow);
	onr_level_judge(cfg, flow, now_ns);
	flow->allowed_ns = onr_level_allowed_ns(cfg, flow, owd_ns);
	return ONR_USED;
}

/* Rule 5. While an OR-ACK is overdue the queue grows, and what is in flight does not drain as it did. The
 * head waits for the OR-ACK, for tau at most; each 0.4 tau a head goes as a probe, in case it was lost. */
ONR_FN s64 onr_level_overdue_ns(const struct onr_cfg *cfg, const struct onr_flow *flow, s64 opens_ns)
{
	s64 tau_ns = (s64)onr_tau_ns(cfg);
	s64 step_ns = (s64)onr_mul_q16(flow->step_bytes, flow->inv_q16);
	s64 late_ns = onr_add(flow->back_ns, onr_level_wire_ns(cfg, ONR_LEVEL_LATE));
	s64 due_ns = onr_add(flow->acked_rx_mono_ns, onr_add(late_ns, step_ns));
	s64 probe_ns = flow->left_mono_ns > due_ns ? flow->left_mono_ns : due_ns;
	s64 until_ns = onr_min(onr_add(due_ns, tau_ns), onr_add(probe_ns, (s64)((u64)tau_ns * 2 / 5)));

	return opens_ns > due_ns && opens_ns < until_ns ? until_ns : opens_ns;
}

/* When the head may go. Rule 1: as soon as what is in flight would arrive within T. */
ONR_FN s64 onr_level_opens(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	s64 drain_ns = onr_rate_drain_ns(flow, cfg->gate_allowance_bytes);
	s64 opens_ns = onr_add(flow->drain_from_mono_ns, drain_ns);

	if (!flow->inv_q16 || !drain_ns || !cfg->line_ns_per_byte_q16 || flow->hint == ONR_HINT_UNKNOWN)
		return now_ns;
	if (flow->free) {
		opens_ns = onr_sub(opens_ns, flow->allowed_ns);
	} else if (flow->young) { /* rule 6 */
		opens_ns = onr_sub(opens_ns, onr_add(flow->level_ns, (s64)onr_tau_ns(cfg)));
	} else {
		opens_ns = onr_sub(opens_ns, flow->allowed_ns);
		if (flow->drain_from_mono_ns == flow->acked_rx_mono_ns &&
		    !onr_threshold_is_alone(cfg, flow))
			opens_ns = onr_level_overdue_ns(cfg, flow, opens_ns);
	}
	if (opens_ns > now_ns)
		flow->gated = 1;
	return opens_ns;
}

#endif
