/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/receiver.h: what a receiver says about its own port in 16 bits of each OR-ACK, and how
 * it counts for that. A sender that sees only delays and its own rate cannot distinguish
 * many managed flows from traffic that nobody holds (docs/law.md); the receiver can.
 *
 *     bits 11 to 15   managed part of the bytes that arrived in the last one to two tau, in
 *                     31sts, at least 1; 0: the receiver does not count, all bits are 0
 *     bits 8 to 10    use of its line in the tau before the present one, in eighths, at most 7
 *     bits 0 to 7     managed flows with samples in the last four to eight tau, at most 255
 *
 * Managed bytes are those of hosts with On-Ramp. */
#ifndef ONR_RECEIVER_H
#define ONR_RECEIVER_H

#include "rate.h"

#define ONR_HINT_UNKNOWN 0u
#define ONR_HINT_ALL 31u         /* managed part: everything */
#define ONR_RECEIVER_FLOW_BITS 256u
#define ONR_RECEIVER_TURN 2      /* shift: flows are counted for four tau */

/* One per device; all zero has counted nothing. */
struct onr_receiver {
	u64 slot;                  /* number of the present tau */
	u64 all_bytes;             /* arrived in it */
	u64 managed_bytes;
	u64 all_before_bytes;      /* in the tau before */
	u64 managed_before_bytes;
	u32 flows[ONR_RECEIVER_FLOW_BITS / 32]; /* flows of the present four tau, by hash */
	u32 flows_set;             /* bits set there */
	u32 flows_before;          /* in the four tau before */
};

/* The bits. Any number is safe; what contradicts itself says what its fields say. */
ONR_FN u32 onr_hint_managed(u32 hint)
{
	return hint >> 11 & 31;
}

ONR_FN u32 onr_hint_use(u32 hint)
{
	return hint >> 8 & 7;
}

ONR_FN u32 onr_hint_flows(u32 hint)
{
	return hint & 255 ? hint & 255 : 1;
}

ONR_FN u32 onr_hint_pack(u32 managed, u32 use, u32 flows)
{
	return (managed & 31) << 11 | (use & 7) << 8 | (flows & 255);
}

/* What is called tau here: at least the wire time of 80 a, so that a slot of a slow line has enough packets. */
ONR_FN u64 onr_receiver_tau_ns(const struct onr_cfg *cfg)
{
	u64 tau_ns = onr_tau_ns(cfg);
	u64 wire_ns = onr_mul_q16(80ull * cfg->gate_allowance_bytes, cfg->line_ns_per_byte_q16);

	return wire_ns > tau_ns ? wire_ns : tau_ns;
}

/* Begins the slot of now_ns, unless it has begun. Another processor may be a little ahead. */
ONR_FN void onr_receiver_turn(const struct onr_cfg *cfg, struct onr_receiver *r, s64 now_ns)
{
	u64 slot = (u64)now_ns / onr_receiver_tau_ns(cfg);
	u64 slots = slot - r->slot;
	u64 turns = (slot >> ONR_RECEIVER_TURN) - (r->slot >> ONR_RECEIVER_TURN);

	if (!slots || slots == ~0ull)
		return;
	r->all_before_bytes = slots == 1 ? r->all_bytes : 0;
	r->managed_before_bytes = slots == 1 ? r->managed_bytes : 0;
	r->all_bytes = 0;
	r->managed_bytes = 0;
	r->slot = slot;
	if (!turns)
		return;
	r->flows_before = turns == 1 ? r->flows_set : 0;
	r->flows_set = 0;
	for (u32 i = 0; i < ONR_RECEIVER_FLOW_BITS / 32; i++)
		r->flows[i] = 0;
}

/* Bytes have arrived since the last call, of them managed_bytes from hosts with On-Ramp. */
ONR_FN void onr_receiver_arrived(const struct onr_cfg *cfg, struct onr_receiver *r, s64 now_ns,
				 u32 all_bytes, u32 managed_bytes)
{
	onr_receiver_turn(cfg, r, now_ns);
	r->all_bytes += all_bytes;
	r->managed_bytes += managed_bytes;
}

/* A sample of a managed flow has arrived in the present slot. */
ONR_FN void onr_receiver_flow(struct onr_receiver *r, u32 hash)
{
	u32 place, bit, *word;

	/* The last steps of MurmurHash3 (Appleby, 2011): numbers that follow each other must fall anywhere. */
	hash = (hash ^ hash >> 16) * 0x85ebca6bu;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
	place = hash >> 29;
	bit = 1u << (hash >> 24 & 31);
	ONR_INDEX(place);
	word = &r->flows[place & (ONR_RECEIVER_FLOW_BITS / 32 - 1)];
	r->flows_set += !(*word & bit);
	*word |= bit;
}

/* How many flows set so many of b = 256 bits: -b ln(1 - set / b), by three terms of its series
 * (linear counting: Whang, Vander-Zanden and Taylor, 1990). */
ONR_FN u32 onr_receiver_flows(u32 set)
{
	u32 b = ONR_RECEIVER_FLOW_BITS, flows = set + set * set / (2 * b) + set * set * set / (3 * b * b);

	return flows < 255 ? flows : 255;
}

ONR_FN u32 onr_receiver_managed(const struct onr_receiver *r)
{
	u64 all = r->all_bytes + r->all_before_bytes;
	u64 managed = r->managed_bytes + r->managed_before_bytes;
	u64 part = all ? managed * ONR_HINT_ALL / all : 0;

	return part > ONR_HINT_ALL ? ONR_HINT_ALL : part ? (u32)part : 1;
}

/* 0 where the line rate is not known. */
ONR_FN u32 onr_receiver_use(const struct onr_cfg *cfg, const struct onr_receiver *r)
{
	u64 bytes = r->all_before_bytes >> 32 ? 0xffffffff : r->all_before_bytes;
	u64 eighths = onr_mul_q16(bytes, cfg->line_ns_per_byte_q16) * 8 /
		      onr_receiver_tau_ns(cfg);

	return eighths < 7 ? (u32)eighths : 7;
}

/* What the receiver says now. */
ONR_FN u32 onr_receiver_says(const struct onr_cfg *cfg, const struct onr_receiver *r)
{
	u32 set = r->flows_set > r->flows_before ? r->flows_set : r->flows_before;

	return onr_hint_pack(onr_receiver_managed(r), onr_receiver_use(cfg, r),
			     onr_receiver_flows(set));
}

#endif
