/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/arith.h: sums that saturate and products with Q16 factors that do not
 * overflow. Divisions are left to the laws: unsigned only, BPF before v4 has no
 * other. */
#ifndef ONR_ARITH_H
#define ONR_ARITH_H

#include "types.h"

#define ONR_ONE_Q16 65536u
#define ONR_S64_MAX ((s64)(~0ULL >> 1))
#define ONR_S64_MIN (-ONR_S64_MAX - 1)

ONR_FN s64 onr_min(s64 a, s64 b)
{
	return a < b ? a : b;
}

/* a if mask is 0, b if it is all ones. Without a branch: the compiler must not see what mask is. */
ONR_FN u64 onr_choose(u64 a, u64 b, u64 mask)
{
	ONR_INDEX(mask);
	return (a & ~mask) | (b & mask);
}

/* All ones if a < b, of numbers whose difference is in s64. */
ONR_FN u64 onr_below(s64 a, s64 b)
{
	return (u64)((a - b) >> 63);
}

/* Returns exact or, if the sign bit of overflow is set, the end of s64 that has the sign of a. Without a
 * branch, because the BPF verifier follows both sides of each branch, and the laws add often. */
ONR_FN s64 onr_saturate(u64 exact, s64 a, u64 overflow)
{
	u64 mask = (u64)((s64)overflow >> 63);

	return (s64)((exact & ~mask) | ((u64)((a >> 63) ^ ONR_S64_MAX) & mask));
}

/* a + b, held at the ends of s64. */
ONR_FN s64 onr_add(s64 a, s64 b)
{
	u64 sum = (u64)a + (u64)b;

	return onr_saturate(sum, a, ((u64)a ^ sum) & ((u64)b ^ sum));
}

/* a - b, held at the ends of s64. */
ONR_FN s64 onr_sub(s64 a, s64 b)
{
	u64 difference = (u64)a - (u64)b;

	return onr_saturate(difference, a, (u64)(a ^ b) & ((u64)a ^ difference));
}

/* v * factor_q16 / 2^16, rounded down; exact in 64 bits as long as
 * (v >> 16) * factor_q16 < 2^63: any v >= 0 with a factor of at most 1, any
 * 32-bit v with a factor below 2^46. */
ONR_FN u64 onr_mul_q16(u64 v, u64 factor_q16)
{
	return (v >> 16) * factor_q16 + (((v & 0xffff) * factor_q16) >> 16);
}

#endif
