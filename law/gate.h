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

#include "rate.h"
#include "threshold.h"

#define ONR_GATE_SLOWEST 100u        /* the slowest rate believed: line rate / 100 */
#define ONR_GATE_MEMORY 10           /* tau: a rate is forgotten after idling so long */
#define ONR_GATE_PATIENCE 30         /* tau: a queue that lasts so long is not a burst of managed flows */
#define ONR_GATE_LASTING 3u          /* allowances while the queue stays above T, but not far above */

ONR_FN s64 onr_gate_taus_ns(const struct onr_cfg *cfg, s64 number)
{
	return (s64)onr_tau_ns(cfg) * number;
}

/* Has what began at since_mono_ns lasted, up to the newest OR-ACK? */
ONR_FN int onr_gate_lasts(const struct onr_cfg *cfg, const struct onr_flow *flow,
			  s64 since_mono_ns)
{
	return since_mono_ns && onr_sub(flow->acked_mono_ns, since_mono_ns) >
					onr_gate_taus_ns(cfg, ONR_GATE_PATIENCE);
}

/* Averages the delivery of dn bytes in dt_ns into the rate. */
ONR_FN void onr_gate_learn(const struct onr_cfg *cfg, struct onr_flow *flow,
			   u64 dn, u64 dt_ns)
{
	u64 bytes = flow->rate_bytes, ns = flow->rate_ns;

	onr_rate_average(&bytes, &ns, dn, dt_ns, onr_tau_ns(cfg));
	flow->inv_q16 = onr_rate_inverse(cfg, bytes, ns, ONR_GATE_SLOWEST);
	flow->rate_bytes = bytes;
	flow->rate_ns = ns;
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
	s64 held_ns = onr_threshold_held(cfg, flow, onr_threshold(cfg, flow));
	s64 above_ns = onr_sub(owd_ns, held_ns);

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

/* Byte S_G = acked left at left_ns and reached the receiver at rx_ns. */
ONR_FN enum onr_verdict onr_gate_acked(const struct onr_cfg *cfg, struct onr_flow *flow, u64 acked,
				       s64 now_ns, s64 left_ns, s64 rx_ns)
{
	u64 dn = acked - flow->acked_bytes;
	u64 dt_ns = onr_rate_clamp(onr_sub(rx_ns, flow->acked_rx_mono_ns));

	if (acked > flow->sent_bytes)
		return ONR_ABSURD; /* a mark written under another law */
	if (flow->acked_bytes && (s64)dn <= 0)
		return ONR_REORDERED;
	if (!flow->inv_q16) {
		flow->inv_q16 = cfg->line_ns_per_byte_q16;
	} else {
		int waited, fast, busy;

		dn = onr_rate_clamp((s64)dn);
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

/* An OR-ACK arrived for the byte at offset of rec. S_G counts up to that byte, because
 * the rest of a GSO segment had not arrived yet. */
ONR_FN enum onr_verdict onr_gate_orack(const struct onr_cfg *cfg,
				       struct onr_flow *flow,
				       const struct onr_record *rec, u32 offset,
				       s64 now_ns, s64 left_ns, s64 rx_ns)
{
	return onr_gate_acked(cfg, flow, rec->mark + offset + 1, now_ns, left_ns, rx_ns);
}

/* Nothing drains once all sent bytes have arrived. Time that passes then gives no
 * credit: after idling for any time a flow may burst for T. While nothing is held,
 * the queue does not show whether it is foreign. A rate measured long ago is
 * forgotten: the flow begins again at line rate. */
ONR_FN void onr_gate_idle(const struct onr_cfg *cfg, struct onr_flow *flow,
			  s64 now_ns)
{
	s64 empty_ns = onr_add(flow->drain_from_mono_ns, onr_rate_drain_ns(flow, 0));

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
	flow->drain_from_mono_ns = onr_sub(now_ns, onr_rate_drain_ns(flow, 0));
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
	s64 threshold_ns = onr_threshold_held(cfg, flow, onr_threshold(cfg, flow));
	u64 spare = cfg->gate_allowance_bytes;
	s64 drain_ns, opens_ns;

	if (!flow->far_since_mono_ns &&
	    onr_gate_lasts(cfg, flow, flow->above_since_mono_ns))
		spare *= ONR_GATE_LASTING;
	drain_ns = onr_rate_drain_ns(flow, spare);
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
