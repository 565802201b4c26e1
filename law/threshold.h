/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/threshold.h: T of a flow: the T of its peer if that is known, else the
 * configuration's, and at least the guard's. The daemon chooses T (docs/law.md). */
#ifndef ONR_THRESHOLD_H
#define ONR_THRESHOLD_H

#include "path.h"

/* Is the law one that pauses? ONR_LAW_off, which has the same rules, only measures. */
ONR_FN int onr_pause_acts(const struct onr_cfg *cfg)
{
	return cfg->law == ONR_LAW_strawman || cfg->law == ONR_LAW_final;
}

/* Four times the path's own delay: a flow that is held above that keeps the port busy. */
ONR_FN s64 onr_threshold_room(s64 owd_ns)
{
	s64 twice_ns = onr_add(owd_ns, owd_ns);

	return owd_ns > 0 ? onr_add(twice_ns, twice_ns) : 0;
}

/* Has the guard to look after this flow, because it is alone at its receiver? */
ONR_FN int onr_threshold_is_alone(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	return cfg->guard_window_ns > 0 && onr_path_alone(flow);
}

/* T of a flow, which the guard may have raised. Laws learn with it what they learn. */
ONR_FN s64 onr_threshold(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	s64 threshold_ns = flow->threshold_ns ? flow->threshold_ns : cfg->threshold_ns;

	return threshold_ns < flow->guard_threshold_ns ? flow->guard_threshold_ns : threshold_ns;
}

/* The T above which a flow is held, where threshold_ns is that of its law: a flow that is alone has room,
 * which it needs on a long path. */
ONR_FN s64 onr_threshold_held(const struct onr_cfg *cfg, const struct onr_flow *flow,
			      s64 threshold_ns)
{
	s64 room_ns = onr_threshold_is_alone(cfg, flow) ? onr_threshold_room(flow->least_ns) : 0;

	return threshold_ns < room_ns ? room_ns : threshold_ns;
}

#endif
