/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/path.h: what a sender knows of a flow's path besides its samples: the least delay to its
 * peer, the time of the fleet, and what the receiver says about its port (receiver.h). */
#ifndef ONR_PATH_H
#define ONR_PATH_H

#include "least.h"
#include "rate.h"
#include "receiver.h"
#include "state.h"

#define ONR_PATH_FOREIGN 28u /* of 31: more managed bytes than that are everything */

/* A delay as the state has it: no delay that counts is longer than half a second. */
ONR_FN s32 onr_path_short(s64 ns)
{
	u64 most = ONR_RATE_MAX_STEP / 2;
	u64 v = onr_choose((u64)ns, most, (u64)(onr_sub((s64)most, ns) >> 63));

	return (s32)onr_choose(v, 0 - most, (u64)(onr_add((s64)v, (s64)most) >> 63));
}

/* What comes with an OR-ACK besides the sample: the peer's least delay (ONR_NO_OWD: not known), fleet
 * time less mono, and the receiver's bits. The caller has it, and calls this before onr_orack_arrived. */
ONR_FN void onr_path_set(struct onr_flow *flow, s64 least_ns, s64 fleet_ahead_ns, u32 hint)
{
	flow->least_ns = least_ns == ONR_NO_OWD ? 0 : onr_path_short(least_ns);
	flow->fleet_ahead_ns = fleet_ahead_ns;
	flow->hint = (u16)(onr_hint_managed(hint) ? hint : ONR_HINT_UNKNOWN);
}

/* Does the receiver say that nothing but this flow arrives there? */
ONR_FN int onr_path_alone(const struct onr_flow *flow)
{
	return onr_hint_managed(flow->hint) > ONR_PATH_FOREIGN && onr_hint_flows(flow->hint) == 1;
}

#endif
