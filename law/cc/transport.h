/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/cc/transport.h: what all transports share. */
#ifndef ONR_TRANSPORT_H
#define ONR_TRANSPORT_H

#include "../arith.h"

/* A function that Rust calls, as a safe one (crates/law/examples/law-bindings): whatever its arguments contain, it stays
 * in the memory that they point to, and divides by nothing that is zero. Outside the ranges that its header names the
 * numbers are useless. */
#define ONR_PUBLIC ONR_FN

/* A divisor. */
ONR_FN u64 onr_not_zero(u64 v)
{
	return v ? v : 1;
}

#endif
