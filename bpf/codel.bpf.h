/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* codel.bpf.h: drops packets that have waited in a queue for too long (CoDel, RFC 8289 section 5), where the host's
 * qdisc did so before. Drops also what could carry a mark: a BPF qdisc cannot write into packets. The simulator has its
 * own, in its units of time (crates/sim/src/host/kernel/codel.rs). */
#ifndef ONR_CODEL_BPF_H
#define ONR_CODEL_BPF_H

#include "maps.bpf.h"

#define CODEL_SOON 16 /* intervals in which a new phase of drops goes on at the rate of the last (section 5.5) */
#define CODEL_MOST_DROPS 65535u

/* Of one queue. All zero is one that has never waited. */
struct codel {
	s64 above_at_ns; /* when the wait will have been above the target for an interval; 0: it is not above */
	s64 next_drop_ns;
	u32 dropping;
	u32 dropped; /* and the next head has not been looked at since */
	u32 count; /* drops of this phase */
	u32 count_before; /* its value at the beginning of this phase */
};

/* Rounded down. */
static __always_inline u32 square_root(u32 of)
{
	u32 root = 0;

	for (u32 bit = 1u << 15; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= of)
			root |= bit;
	return root;
}

/* Time to the next drop: interval / sqrt(count) (section 5.3). */
static __always_inline s64 codel_gap_ns(u32 count)
{
	count = count < CODEL_MOST_DROPS ? count : CODEL_MOST_DROPS;
	return ((u64)cfg.codel_interval_ns << 8) / square_root(count << 16);
}

/* Has the wait been above the target for an interval? What stands is more than a full packet behind the head. */
static __always_inline bool codel_stands(struct codel *c, s64 waited_ns, bool stands, s64 now)
{
	if (waited_ns < cfg.codel_target_ns || !stands) {
		c->above_at_ns = 0;
		return false;
	}
	if (!c->above_at_ns)
		c->above_at_ns = now + cfg.codel_interval_ns;
	return now >= c->above_at_ns;
}

/* A phase of drops begins. One that begins soon after another goes on at its rate. */
static __always_inline void codel_begin(struct codel *c, s64 now)
{
	u32 drops = c->count - c->count_before;
	bool soon = now - c->next_drop_ns < CODEL_SOON * (s64)cfg.codel_interval_ns;

	c->dropping = 1;
	c->count = drops > 1 && soon ? drops : 1;
	c->count_before = c->count;
	c->next_drop_ns = now + codel_gap_ns(c->count);
}

/* Is the head of a queue, which has waited so long, dropped now? To be asked for each head (section 5.5, dodequeue). Global,
 * so that the verifier checks it once. */
__noinline bool codel_drops(struct codel *c, s64 waited_ns, bool stands, s64 now)
{
	if (!c)
		return false;
	if (!codel_stands(c, waited_ns, stands, now)) {
		c->dropping = 0;
		return false;
	}
	if (!c->dropping) {
		codel_begin(c, now);
		c->dropped = 0;
		return true;
	}
	if (c->dropped)
		c->next_drop_ns += codel_gap_ns(c->count);
	c->dropped = now >= c->next_drop_ns;
	c->count += c->dropped;
	return c->dropped;
}

#endif
