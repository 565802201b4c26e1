/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/gate.h: the in-flight gate. It holds the head of a flow while the bytes in
 * flight, drained at the delivery rate that the flow has measured, would take
 * longer than T to arrive. There is no pause and no beta. Before the first OR-ACK,
 * and where the line rate is unknown, nothing is held. The gate does not split
 * segments: a segment longer than max(1 MSS, 10 us at the flow's rate) blurs it.
 *
 * Beside unmanaged traffic the share of a held flow falls. Then its delivery rate
 * falls, and the gate allows less in flight: a spiral. Therefore a queue that stays
 * far longer than managed flows can make it counts as a foreign queue, and a flow
 * waits about as long as under the final law. The gate cannot distinguish unmanaged
 * traffic from very many managed flows: docs/law.md. */
#ifndef ONR_GATE_H
#define ONR_GATE_H

#include "arith.h"
#include "threshold.h"

#define ONR_GATE_SLOWEST 100u        /* the slowest rate believed: line rate / 100 */
#define ONR_GATE_MAX_STEP (1u << 30) /* of tau and dt in ns, of dn in bytes */
#define ONR_GATE_MEMORY 10           /* tau: a rate is forgotten after idling so long */
#define ONR_GATE_PATIENCE 30         /* tau: a queue that lasts so long is not a burst of managed flows */
#define ONR_GATE_LASTING 3u          /* allowances while the queue stays above T, but not far above */

ONR_FN u64 onr_gate_clamp(s64 v)
{
	if (v < 1)
		return 1;
	return v < ONR_GATE_MAX_STEP ? (u64)v : ONR_GATE_MAX_STEP;
}

ONR_FN s64 onr_gate_taus_ns(const struct onr_cfg *cfg, s64 number)
{
	return (s64)onr_gate_clamp(cfg->gate_tau_ns) * number;
}

/* Has what began at since_mono_ns lasted, up to the newest OR-ACK? */
ONR_FN int onr_gate_lasts(const struct onr_cfg *cfg, const struct onr_flow *flow,
			  s64 since_mono_ns)
{
	return since_mono_ns && onr_sub(flow->acked_mono_ns, since_mono_ns) >
					onr_gate_taus_ns(cfg, ONR_GATE_PATIENCE);
}

/* Time that the unacknowledged bytes, less spare_bytes, take at the delivery rate. */
ONR_FN s64 onr_gate_drain_ns(const struct onr_flow *flow, u64 spare_bytes)
{
	u64 in_flight = flow->sent_bytes - flow->acked_bytes;

	if (in_flight <= spare_bytes)
		return 0;
	in_flight -= spare_bytes;
	if (in_flight >> 32)
		in_flight = 0xffffffff;
	return (s64)onr_mul_q16(in_flight, flow->inv_q16);
}

/* Averages the delivery of dn bytes in dt_ns into the rate. num and den stay
 * below 2^32 (halving both keeps their ratio), so no product with tau overflows. */
ONR_FN void onr_gate_learn(const struct onr_cfg *cfg, struct onr_flow *flow,
			   u64 dn, u64 dt_ns)
{
	u64 tau = onr_gate_clamp(cfg->gate_tau_ns);
	u64 num = flow->rate_bytes * tau / (tau + dt_ns) + dn;
	u64 den = flow->rate_ns * tau / (tau + dt_ns) + dt_ns;
	u64 fastest = cfg->line_ns_per_byte_q16;
	u64 slowest = fastest * ONR_GATE_SLOWEST;
	u64 inv;

	if (num >> 32) {
		num >>= 1;
		den >>= 1;
	}
	inv = (den << 16) / num; /* num >= dn >= 1 */
	flow->inv_q16 = inv < fastest ? fastest : inv > slowest ? slowest : inv;
	flow->rate_bytes = num;
	flow->rate_ns = den;
}

/* Notes since when the queue is above T, and since when it is far above: longer than
 * managed flows can make it. Each held flow adds its allowance to T, and no flow
 * counts as slower than a hundredth of the line rate: a hundred allowances at line
 * rate. Once the queue has been far above for long, only a delay of at most T ends
 * that, because foreign queues vary too. */
ONR_FN void onr_gate_watch(const struct onr_cfg *cfg, struct onr_flow *flow,
			   s64 owd_ns)
{
	u64 slowest = (u64)cfg->line_ns_per_byte_q16 * ONR_GATE_SLOWEST;
	s64 ours_ns = (s64)onr_mul_q16(cfg->gate_allowance_bytes, slowest);
	s64 above_ns = onr_sub(owd_ns, onr_threshold(cfg, flow));

	if (onr_gate_lasts(cfg, flow, flow->far_since_mono_ns))
		ours_ns = 0;
	if (above_ns <= 0)
		flow->above_since_mono_ns = 0;
	else if (!flow->above_since_mono_ns)
		flow->above_since_mono_ns = flow->acked_mono_ns;
	if (above_ns <= ours_ns)
		flow->far_since_mono_ns = 0;
	else if (!flow->far_since_mono_ns)
		flow->far_since_mono_ns = flow->acked_mono_ns;
}

/* An OR-ACK arrived for the byte at offset of rec. The byte left at left_ns and
 * reached the receiver at rx_ns. S_G counts up to that byte, because the rest of a
 * GSO segment had not arrived yet. */
ONR_FN enum onr_verdict onr_gate_orack(const struct onr_cfg *cfg,
				       struct onr_flow *flow,
				       const struct onr_record *rec, u32 offset,
				       s64 now_ns, s64 left_ns, s64 rx_ns)
{
	u64 acked = rec->mark + offset + 1; /* S_G */
	u64 dn = acked - flow->acked_bytes;
	u64 dt_ns = onr_gate_clamp(onr_sub(rx_ns, flow->acked_rx_mono_ns));

	if (acked > flow->sent_bytes)
		return ONR_ABSURD; /* a mark written under another law */
	if (flow->acked_bytes && (s64)dn <= 0)
		return ONR_REORDERED;
	if (!flow->inv_q16) {
		flow->inv_q16 = cfg->line_ns_per_byte_q16;
	} else {
		int waited, fast, busy;

		dn = onr_gate_clamp((s64)dn);
		/* Held for the whole time, not idle first: else dt includes idle time. */
		waited = flow->gated &&
			 flow->drain_from_mono_ns == flow->acked_rx_mono_ns;
		fast = onr_mul_q16(dn, flow->inv_q16) > dt_ns;
		busy = onr_sub(rx_ns, left_ns) > onr_threshold(cfg, flow) &&
		       left_ns < flow->acked_mono_ns;
		if (waited || fast || busy)
			onr_gate_learn(cfg, flow, dn, dt_ns);
	}
	flow->gated = 0;
	flow->acked_bytes = acked;
	flow->acked_rx_mono_ns = rx_ns;
	flow->acked_mono_ns = now_ns;
	flow->drain_from_mono_ns = rx_ns;
	onr_gate_watch(cfg, flow, onr_sub(rx_ns, left_ns));
	return ONR_USED;
}

/* Nothing drains once all sent bytes have arrived. Time that passes then gives no
 * credit: after idling for any time a flow may burst for T. While nothing is held,
 * the queue does not show whether it is foreign. A rate measured long ago is
 * forgotten: the flow begins again at line rate. */
ONR_FN void onr_gate_idle(const struct onr_cfg *cfg, struct onr_flow *flow,
			  s64 now_ns)
{
	s64 empty_ns = onr_add(flow->drain_from_mono_ns, onr_gate_drain_ns(flow, 0));

	if (!flow->inv_q16 || empty_ns >= now_ns)
		return;
	if (onr_sub(now_ns, flow->acked_mono_ns) >
	    onr_gate_taus_ns(cfg, ONR_GATE_MEMORY)) {
		flow->rate_bytes = 0;
		flow->rate_ns = 0;
		flow->inv_q16 = cfg->line_ns_per_byte_q16;
	}
	flow->above_since_mono_ns = 0;
	flow->far_since_mono_ns = 0;
	flow->drain_from_mono_ns = onr_sub(now_ns, onr_gate_drain_ns(flow, 0));
}

/* The head leaves. Returns the record's mark, S before it. */
ONR_FN u64 onr_gate_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			 s64 now_ns)
{
	onr_gate_idle(cfg, flow, now_ns);
	return flow->sent_bytes;
}

/* When the head may go: as soon as it would arrive within T. In a foreign queue the
 * head waits after the newest OR-ACK for at most half of the strawman's pause (eq. 2):
 * that is eq. 4 with this pause in flight and a beta of 1/2. The bytes in flight are
 * then bounded by T + 2 O, so that the held packets at most double the rate in a
 * round trip and do not leave at once. */
ONR_FN s64 onr_gate_opens(const struct onr_cfg *cfg, struct onr_flow *flow,
			  s64 now_ns)
{
	s64 threshold_ns = onr_threshold(cfg, flow);
	u64 spare = cfg->gate_allowance_bytes;
	s64 drain_ns, opens_ns;

	if (!flow->far_since_mono_ns &&
	    onr_gate_lasts(cfg, flow, flow->above_since_mono_ns))
		spare *= ONR_GATE_LASTING;
	drain_ns = onr_gate_drain_ns(flow, spare);
	if (!flow->inv_q16 || !drain_ns)
		return now_ns;
	opens_ns = onr_sub(onr_add(flow->drain_from_mono_ns, drain_ns), threshold_ns);
	if (onr_gate_lasts(cfg, flow, flow->far_since_mono_ns)) {
		s64 pause_ns = onr_sub(flow->sample_owd_ns, threshold_ns) >> 1;
		s64 paused_ns = onr_add(flow->acked_mono_ns, pause_ns);
		s64 doubled_ns = onr_sub(onr_sub(opens_ns, flow->sample_owd_ns),
					 flow->sample_owd_ns);

		opens_ns = onr_min(opens_ns, paused_ns > doubled_ns ? paused_ns : doubled_ns);
	}
	if (opens_ns > now_ns)
		flow->gated = 1;
	return opens_ns;
}

#endif
