/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/guard.h: the guard, which ends holding that changes nothing. It raises T of a
 * flow that was held often in a window of time, if its delay was never down at T, or if
 * pausing it emptied the queue and idled the port. A lower delay lowers T again, and
 * after a while the flow tries its own T. The same under every law; it decides when an
 * OR-ACK ends a window. A flow that is alone at its receiver has a higher T at once:
 * threshold.h. Reasons, limits and costs: docs/law.md. */
#ifndef ONR_GUARD_H
#define ONR_GUARD_H

#include "onramp.h"

#define ONR_GUARD_OFTEN 3  /* shift: a flow held for more than an eighth of a window is held often */
#define ONR_GUARD_MEMORY 7 /* shift: after 128 windows the flow tries its own T */

/* v plus v / 2^shift. */
ONR_FN s64 onr_guard_more(s64 v, u32 shift)
{
	return onr_add(v, v >> shift);
}

/* A head leaves. */
ONR_FN void onr_guard_sent(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns)
{
	if (flow->held && cfg->guard_window_ns > 0)
		flow->guard_held_ns = onr_add(flow->guard_held_ns,
					      onr_sub(now_ns, flow->held_since_mono_ns));
}

/* The guard's T after a window of elapsed_ns. A raised flow must be further above T to be
 * raised again: managed flows keep some delay above T themselves, and each would raise
 * the others. */
ONR_FN s64 onr_guard_judge(const struct onr_cfg *cfg, const struct onr_flow *flow,
			   s64 now_ns, s64 elapsed_ns)
{
	s64 threshold_ns = onr_threshold_held(cfg, flow, onr_threshold(cfg, flow));
	s64 raised_ns = flow->guard_threshold_ns;
	s64 lowest_ns = flow->guard_lowest_ns;
	s64 room_ns = onr_threshold_room(lowest_ns);

	if (flow->guard_held_ns > elapsed_ns >> ONR_GUARD_OFTEN) {
		if (lowest_ns > (raised_ns ? onr_guard_more(threshold_ns, 2) : threshold_ns))
			return onr_guard_more(lowest_ns, 2);
		if (onr_pause_acts(cfg) && !onr_threshold_is_alone(cfg, flow) &&
		    lowest_ns <= threshold_ns && room_ns > threshold_ns)
			return room_ns;
	}
	if (onr_sub(now_ns, flow->guard_raised_mono_ns) >> ONR_GUARD_MEMORY > cfg->guard_window_ns)
		return 0;
	return onr_min(raised_ns, room_ns);
}

/* A used sample showed owd_ns. */
ONR_FN void onr_guard_sample(const struct onr_cfg *cfg, struct onr_flow *flow,
			     s64 now_ns, s64 owd_ns)
{
	s64 elapsed_ns = onr_sub(now_ns, flow->guard_from_mono_ns);
	s64 threshold_ns;

	if (cfg->guard_window_ns <= 0)
		return;
	flow->guard_lowest_ns = onr_min(flow->guard_lowest_ns, owd_ns);
	if (elapsed_ns < cfg->guard_window_ns)
		return;
	threshold_ns = onr_guard_judge(cfg, flow, now_ns, elapsed_ns);
	if (!flow->guard_threshold_ns)
		flow->guard_raised_mono_ns = now_ns;
	flow->guard_threshold_ns = threshold_ns;
	flow->guard_from_mono_ns = now_ns;
	flow->guard_held_ns = 0;
	flow->guard_lowest_ns = owd_ns;
}

#endif
