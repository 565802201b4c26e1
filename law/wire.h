/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/wire.h: how long each byte of a segment arrives after the one before. A wire sends
 * the bytes one after the other, at the line rate or faster than the configuration says.
 * Between containers or virtual machines of one host the segment arrives whole. Learned
 * from the least delays of bytes at the beginning of segments and of bytes far behind
 * it; without enough of them, the line rate counts. */
#ifndef ONR_WIRE_H
#define ONR_WIRE_H

#include "arith.h"
#include "least.h"
#include "state.h"

#define ONR_WIRE_NEAR 1448u /* offsets below it are near: the first packet has them all */
#define ONR_WIRE_FAR 8192u  /* those from here on are far */
#define ONR_WIRE_ENOUGH 64u /* samples of each, so that some of them met no queue */

/* The sample with the least delay of some. All zero: none. */
struct onr_wire_least {
	s64 delay_ns; /* since the stamp of the segment */
	u32 offset;   /* of the byte in its segment */
	u32 samples;  /* how many there were, up to ONR_WIRE_ENOUGH */
};

/* What the samples to one host have shown. */
struct onr_wire {
	struct onr_wire_least near_byte;
	struct onr_wire_least far_byte;
};

ONR_FN void onr_wire_take(struct onr_wire_least *least, u32 offset, s64 delay_ns)
{
	if (!least->samples || delay_ns < least->delay_ns) {
		least->delay_ns = delay_ns;
		least->offset = offset;
	}
	least->samples += least->samples < ONR_WIRE_ENOUGH;
}

/* The byte at offset arrived delay_ns after the stamp of its segment. */
ONR_FN void onr_wire_sample(struct onr_wire *wire, u32 offset, s64 delay_ns)
{
	if (offset < ONR_WIRE_NEAR)
		onr_wire_take(&wire->near_byte, offset, delay_ns);
	else if (offset >= ONR_WIRE_FAR)
		onr_wire_take(&wire->far_byte, offset, delay_ns);
}

ONR_FN int onr_wire_has_enough(const struct onr_wire *wire)
{
	return wire->near_byte.samples >= ONR_WIRE_ENOUGH &&
	       wire->far_byte.samples >= ONR_WIRE_ENOUGH;
}

/* By how much a byte follows sooner than at the line rate: sooner_q16 of onr_flow. 0 if
 * it takes at least half of that time, which noise can explain. Needs enough. */
ONR_FN u32 onr_wire_sooner_q16(const struct onr_wire *wire, u32 line_q16)
{
	u32 bytes = wire->far_byte.offset - wire->near_byte.offset;
	s64 later_ns = onr_sub(wire->far_byte.delay_ns, wire->near_byte.delay_ns);
	s64 line_ns = (s64)onr_mul_q16(bytes, line_q16);

	if (later_ns <= 0 || !bytes)
		return line_q16;
	if (later_ns >= line_ns >> 1)
		return 0;
	return line_q16 - (u32)(((u64)later_ns << 16) / bytes);
}

/* The least delay of such samples, if each byte takes byte_q16. ONR_NO_OWD if there is none. */
ONR_FN s64 onr_wire_delay_ns(const struct onr_wire_least *least, u32 byte_q16)
{
	if (!least->samples)
		return ONR_NO_OWD;
	return onr_sub(least->delay_ns, (s64)onr_mul_q16(least->offset, byte_q16));
}

/* The least delay of all, if a byte follows sooner by sooner_q16. */
ONR_FN s64 onr_wire_least_ns(const struct onr_wire *wire, u32 line_q16, u32 sooner_q16)
{
	u32 byte_q16 = line_q16 - sooner_q16;

	return onr_min(onr_wire_delay_ns(&wire->near_byte, byte_q16),
		       onr_wire_delay_ns(&wire->far_byte, byte_q16));
}

/* Time from the stamp of a flow's segment until its byte at offset leaves. */
ONR_FN s64 onr_wire_ns(const struct onr_cfg *cfg, const struct onr_flow *flow, u32 offset)
{
	u32 line_q16 = cfg->line_ns_per_byte_q16;
	u32 sooner_q16 = flow->sooner_q16 < line_q16 ? flow->sooner_q16 : line_q16;

	return (s64)onr_mul_q16(offset, line_q16 - sooner_q16);
}

#endif
