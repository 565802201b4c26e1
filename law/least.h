/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/least.h: the least one-way delay to a host, of two windows: a path that has grown, or
 * a clock that was wrong for a moment, is forgotten after half a minute at most. Samples of
 * all flows to the host count. */
#ifndef ONR_LEAST_H
#define ONR_LEAST_H

#include "arith.h"
#include "types.h"

#define ONR_OWD_WINDOW_NS 15000000000ll
#define ONR_NO_OWD 0x7fffffffffffffffll

/* Of one host. It begins with both minima at ONR_NO_OWD. */
struct onr_least {
	s64 window_mono_ns;    /* when the present window began */
	s64 owd_min_ns;        /* of the present window; ONR_NO_OWD before its first sample */
	s64 owd_min_before_ns; /* of the window before it */
};

ONR_FN void onr_least_forget(struct onr_least *least)
{
	least->owd_min_ns = ONR_NO_OWD;
	least->owd_min_before_ns = ONR_NO_OWD;
}

/* Has the present window ended? */
ONR_FN int onr_least_ends(const struct onr_least *least, s64 now_ns)
{
	return onr_sub(now_ns, least->window_mono_ns) >= ONR_OWD_WINDOW_NS;
}

/* Another window begins. One without samples behind it leaves nothing. */
ONR_FN void onr_least_roll(struct onr_least *least, s64 now_ns)
{
	s64 age_ns = onr_sub(now_ns, least->window_mono_ns);

	least->owd_min_before_ns = age_ns < 2 * ONR_OWD_WINDOW_NS ? least->owd_min_ns : ONR_NO_OWD;
	least->owd_min_ns = ONR_NO_OWD;
	least->window_mono_ns = now_ns;
}

ONR_FN void onr_least_sample(struct onr_least *least, s64 owd_ns)
{
	least->owd_min_ns = onr_min(least->owd_min_ns, owd_ns);
}

/* ONR_NO_OWD: not known. */
ONR_FN s64 onr_least_owd(const struct onr_least *least)
{
	return onr_min(least->owd_min_ns, least->owd_min_before_ns);
}

#endif
