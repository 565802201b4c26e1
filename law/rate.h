/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/rate.h: the delivery rate of a flow, for the laws that limit what it has in flight:
 * how samples are averaged, and how long the bytes in flight take at it. */
#ifndef ONR_RATE_H
#define ONR_RATE_H

#include "arith.h"
#include "state.h"

#define ONR_RATE_MAX_STEP (1u << 30) /* of tau and dt in ns, of dn in bytes */

/* v taken into [1, 2^30]. Without branches, of which each would be a constant that the verifier follows. */
ONR_FN u64 onr_rate_clamp(s64 v)
{
	u64 most = ONR_RATE_MAX_STEP, positive = onr_choose((u64)v, 0, (u64)(v >> 63));
	u64 step = onr_choose(positive, most, onr_below((s64)most, (s64)positive));

	return step + ((step - 1) >> 63);
}

/* The larger of two of what onr_rate_clamp returns. */
ONR_FN u64 onr_rate_max(u64 a, u64 b)
{
	return onr_choose(a, b, onr_below((s64)a, (s64)b));
}

ONR_FN u64 onr_tau_ns(const struct onr_cfg *cfg)
{
	return onr_rate_clamp(cfg->gate_tau_ns);
}

/* Time that the unacknowledged bytes, less spare_bytes, take at the delivery rate. */
ONR_FN s64 onr_rate_drain_ns(const struct onr_flow *flow, u64 spare_bytes)
{
	u64 in_flight = flow->sent_bytes - flow->acked_bytes;

	if (in_flight <= spare_bytes)
		return 0;
	in_flight -= spare_bytes;
	if (in_flight >> 32)
		in_flight = 0xffffffff;
	return (s64)onr_mul_q16(in_flight, flow->inv_q16);
}

/* Averages the delivery of dn bytes in dt_ns, both in [1, 2^30], over tau <= 2^31. Bytes and
 * ns stay below 2^32 (halving both keeps their ratio), so no product with tau overflows. */
ONR_FN void onr_rate_average(u64 *bytes, u64 *ns, u64 dn, u64 dt_ns, u64 tau)
{
	u32 over;

	*bytes = *bytes * tau / (tau + dt_ns) + dn;
	*ns = *ns * tau / (tau + dt_ns) + dt_ns;
	over = (u32)(*bytes >> 32); /* 0 or 1 */
	*bytes >>= over;
	*ns >>= over;
}

/* ns a byte in Q16, between the line rate and the line rate / slowest. bytes >= 1. */
ONR_FN u64 onr_rate_inverse(const struct onr_cfg *cfg, u64 bytes, u64 ns, u64 slowest)
{
	u64 line = cfg->line_ns_per_byte_q16;
	u64 inv = (ns << 16) / bytes;

	return inv < line ? line : inv > line * slowest ? line * slowest : inv;
}

#endif
