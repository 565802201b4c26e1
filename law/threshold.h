/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/threshold.h: T of a flow: the T of its peer if that is known, else the
 * configuration's, and at least the guard's. The daemon chooses T (docs/law.md). */
#ifndef ONR_THRESHOLD_H
#define ONR_THRESHOLD_H

#include "state.h"

ONR_FN s64 onr_threshold(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	s64 threshold_ns = flow->threshold_ns ? flow->threshold_ns : cfg->threshold_ns;

	return threshold_ns < flow->guard_threshold_ns ? flow->guard_threshold_ns : threshold_ns;
}

#endif
