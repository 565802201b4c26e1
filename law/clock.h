/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/clock.h: between a host's monotonic clock and fleet time. The parameters come from the clock
 * source (crates/sync, or `local`: all zero). The caller checks that their lease has not expired. */
#ifndef ONR_CLOCK_H
#define ONR_CLOCK_H

#include "arith.h"

/* Extrapolating a drift further than this (18 minutes) is meaningless, and bounds the product. */
#define ONR_CLOCK_REACH_NS (1ll << 40)

/* No clock drifts faster than this: 2^-10, about 1 ms in a second. */
#define ONR_CLOCK_STEEPEST_Q32 (1ll << 22)

/* Fleet time minus monotonic time, ns, at monotonic time mono_ns. |drift_q32| is at most
 * ONR_CLOCK_STEEPEST_Q32: whoever writes it sees to that. */
ONR_FN s64 onr_clock_offset(s64 mono_ns, s64 offset_ns, s64 drift_q32, s64 reference_mono_ns)
{
	s64 elapsed = onr_sub(mono_ns, reference_mono_ns);

	if (elapsed > ONR_CLOCK_REACH_NS)
		elapsed = ONR_CLOCK_REACH_NS;
	if (elapsed < -ONR_CLOCK_REACH_NS)
		elapsed = -ONR_CLOCK_REACH_NS;
	return onr_add(offset_ns, (elapsed * drift_q32) >> 32);
}

#endif
