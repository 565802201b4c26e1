/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/histogram.h: the bucket of a histogram that a duration belongs to. The upper bound of bucket b is 2^(10 + b) ns,
 * from 1.024 us on, and belongs to it; the last bucket has no bound. No decision depends on it. */
#ifndef ONR_HISTOGRAM_H
#define ONR_HISTOGRAM_H

#include "types.h"

#define ONR_HISTOGRAM_SHIFT 10u
#define ONR_HISTOGRAM_BUCKETS 22u

ONR_FN u32 onr_histogram_bucket(u64 ns)
{
	u64 rest = ns ? (ns - 1) >> ONR_HISTOGRAM_SHIFT : 0;
	u32 bits = 0;

	for (u32 half = 32; half; half /= 2) {
		if (rest >> half) {
			rest >>= half;
			bits += half;
		}
	}
	bits += (u32)rest;
	return bits < ONR_HISTOGRAM_BUCKETS ? bits : ONR_HISTOGRAM_BUCKETS - 1;
}

#endif
