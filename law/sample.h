/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/sample.h: which segments are sampled. Sender and receiver apply the same
 * rule to sequence numbers alone, so they agree without a word, and the overhead
 * per byte is the same at any MTU. */
#ifndef ONR_SAMPLE_H
#define ONR_SAMPLE_H

#include "types.h"

/* Unless set otherwise, a sample is taken every 10 MSS of 1448 B: the rate of
 * OR-ACKs the paper reports (section 4.1). */
#define ONR_SAMPLE_BYTES 14480u

/* Does [seq, seq + len) hold a multiple of every? Sequence numbers are modulo
 * 2^32; 0 is a multiple, so the last interval before it is short. */
ONR_FN int onr_sampled(u32 seq, u32 len, u32 every)
{
	return (seq + len - 1) % every < len;
}

/* The last multiple in [seq, seq + len), given that there is one. */
ONR_FN u32 onr_sampled_byte(u32 seq, u32 len, u32 every)
{
	u32 last = seq + len - 1;

	return last - last % every;
}

/* The first multiple at or after seq. */
ONR_FN u32 onr_sampled_next(u32 seq, u32 every)
{
	u32 past = seq % every;

	return past ? seq + (every - past) : seq;
}

#endif
