/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/cc/timely.h: the rate of TIMELY from round-trip times ("TIMELY: RTT-based Congestion Control for the Datacenter",
 * SIGCOMM 2015, algorithm 1 and sections 4.3 and 4.4). Rates are in bytes a second, below 2^40. Where the paper is
 * silent: the first round-trip time only starts the gradient; hyper-active increase counts falling gradients between
 * t_low and t_high or, with hai_low, increases of any kind; of n completions in a minimum round-trip time each has a weight of 1/n. */
#ifndef ONR_TIMELY_H
#define ONR_TIMELY_H

#include "transport.h"

#define ONR_TIMELY_RTT_MOST 1000000000u /* ns; longer round-trip times count as this */
#define ONR_TIMELY_UNIT 256		/* of differences: 1/256 ns */

struct onr_timely_cfg {
	u64 delta;	   /* the step of the rate, bytes a second */
	u64 min_rate;	   /* at least 1 */
	u64 max_rate;
	u32 t_low_ns;
	u32 t_high_ns;	   /* at least 1 */
	u32 min_rtt_ns;	   /* of the idle network, a constant; 1 to 10^9 */
	u32 beta_q16;	   /* at most one */
	u32 alpha_q16;	   /* the weight of a new difference; at most one */
	u32 hai_falls;	   /* N: falling gradients in a row, after which the rate grows by hai_steps */
	u32 hai_steps;
	u32 hai_low;	   /* 1: hyper-active increase counts every increase, also below t_low; else 0 */
	u32 segment_bytes; /* that have one round-trip time */
	u32 cap_packets;   /* that may be in flight: the window, which is the sender's */
};

struct onr_timely {
	u64 rate;	/* 0 before it has one */
	s64 difference; /* rtt_diff, smoothed, in ONR_TIMELY_UNIT */
	u32 prev_rtt_ns; /* 0 before the first */
	u32 falls;	/* gradients below zero in a row; with hai_low, increases in a row */
	u32 acked;	/* bytes of the present segment that are acknowledged */
	u32 least_ns;	/* their least round-trip time, 0 before the first */
};

ONR_FN void onr_timely_bound(const struct onr_timely_cfg *cfg, struct onr_timely *flow)
{
	if (flow->rate > cfg->max_rate)
		flow->rate = cfg->max_rate;
	if (flow->rate < cfg->min_rate)
		flow->rate = cfg->min_rate;
}

/* Begins with a rate. */
ONR_PUBLIC void onr_timely_begin(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u64 rate)
{
	flow->rate = rate;
	onr_timely_bound(cfg, flow);
}

/* The part of an update that a completion of so many bytes has: 1, if there is at most one in a minimum round-trip
 * time. */
ONR_FN u64 onr_timely_weight_q16(const struct onr_timely_cfg *cfg, const struct onr_timely *flow, u64 bytes)
{
	u64 in_flight = flow->rate / 1000000 * cfg->min_rtt_ns / 1000;

	return bytes < in_flight ? (bytes << 16) / in_flight : ONR_ONE_Q16;
}

/* An increase; counts: it is one of those that make the next ones hyper-active. */
ONR_FN void onr_timely_grow(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u32 counts, u64 weight_q16,
			    u32 is_limited)
{
	u32 steps = flow->falls >= cfg->hai_falls && counts ? cfg->hai_steps : 1;

	/* Section 5: a flow that does not use its rate keeps it. */
	if (!is_limited)
		flow->rate += onr_mul_q16(cfg->delta * steps, weight_q16);
}

/* Takes part_q16 * beta of the rate, at most all. */
ONR_FN void onr_timely_shrink(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u64 part_q16, u64 weight_q16)
{
	u64 cut_q16 = onr_mul_q16(onr_mul_q16(part_q16, cfg->beta_q16), weight_q16);

	flow->rate -= onr_mul_q16(flow->rate, cut_q16 < ONR_ONE_Q16 ? cut_q16 : ONR_ONE_Q16);
}

/* The smoothed difference with a new round-trip time. */
ONR_FN void onr_timely_differ(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u32 rtt_ns)
{
	s64 step = ((s64)rtt_ns - flow->prev_rtt_ns) * ONR_TIMELY_UNIT - flow->difference;

	flow->difference += (step * (s64)cfg->alpha_q16 + (s64)(ONR_ONE_Q16 / 2)) >> 16;
	flow->prev_rtt_ns = rtt_ns;
}

/* A completion of so many bytes after rtt_ns. is_limited: the flow has not used its rate. */
ONR_PUBLIC void onr_timely_sample(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u64 bytes, u64 rtt_ns,
				  u32 is_limited)
{
	u32 rtt = rtt_ns < ONR_TIMELY_RTT_MOST ? (u32)rtt_ns : ONR_TIMELY_RTT_MOST;
	u64 weight_q16 = onr_timely_weight_q16(cfg, flow, bytes);
	u32 is_first = !flow->prev_rtt_ns;

	if (!rtt)
		return;
	if (is_first)
		flow->prev_rtt_ns = rtt;
	onr_timely_differ(cfg, flow, rtt);
	if (is_first)
		return;
	if (rtt < cfg->t_low_ns) {
		flow->falls += cfg->hai_low;
		onr_timely_grow(cfg, flow, cfg->hai_low, weight_q16, is_limited);
	} else if (rtt > cfg->t_high_ns) {
		flow->falls = 0;
		onr_timely_shrink(cfg, flow, ((u64)(rtt - cfg->t_high_ns) << 16) / rtt, weight_q16);
	} else if (flow->difference > 0) {
		flow->falls = 0;
		onr_timely_shrink(cfg, flow, ((u64)flow->difference << 8) / onr_not_zero(cfg->min_rtt_ns),
				  weight_q16);
	} else {
		/* A difference of less than a nanosecond is a remainder of the average. */
		flow->falls = cfg->hai_low || flow->difference < -ONR_TIMELY_UNIT ? flow->falls + 1 : 0;
		onr_timely_grow(cfg, flow, 1, weight_q16, is_limited);
	}
	onr_timely_bound(cfg, flow);
}

/* So many bytes of a connection are acknowledged after rtt_ns. An acknowledgement is not a completion: those of one burst
 * come later and later because of the burst itself, which is no gradient of the queue. So a segment has one round-trip
 * time, as in the paper; here the least of its acknowledgements, which contains least of the burst's own time. */
ONR_PUBLIC void onr_timely_acked(const struct onr_timely_cfg *cfg, struct onr_timely *flow, u32 bytes, u64 rtt_ns,
				 u32 is_limited)
{
	u32 rtt = rtt_ns < ONR_TIMELY_RTT_MOST ? (u32)rtt_ns : ONR_TIMELY_RTT_MOST;
	u32 acked = flow->acked + bytes < bytes ? ~0u : flow->acked + bytes;

	if (rtt && (!flow->least_ns || rtt < flow->least_ns))
		flow->least_ns = rtt;
	flow->acked = acked;
	if (acked < cfg->segment_bytes)
		return;
	onr_timely_sample(cfg, flow, acked, flow->least_ns, is_limited);
	flow->acked = 0;
	flow->least_ns = 0;
}

/* A loss, on which the paper is silent (its network loses nothing): half the rate, as TCP. */
ONR_PUBLIC void onr_timely_loss(const struct onr_timely_cfg *cfg, struct onr_timely *flow)
{
	flow->rate /= 2;
	onr_timely_bound(cfg, flow);
}

#endif
