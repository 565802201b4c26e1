/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* maps.bpf.h: the maps that edge (qdisc) and orack (tcx) share; each says who writes and who reads.
 * The daemon loads edge first and hands its maps to orack. Sizes are set by the daemon. */
#ifndef ONR_MAPS_BPF_H
#define ONR_MAPS_BPF_H

#include "kernel.bpf.h"
#include "abi.h"
#include "../law/clock.h"

#define NSEC_PER_SEC 1000000000ll

/* skb->mark of packets that the data path sends to itself, and the first word of their cb. An
 * application needs CAP_NET_ADMIN to set a mark; both words must match. */
#define ONR_MARK_ORACK 0x4f524143u /* a clone that egress turns into an OR-ACK */
#define ONR_MARK_KICK 0x4f524b49u  /* a used OR-ACK that asks the qdisc to look at a flow again */

/* Each object has its own. Writer: the daemon, before it loads the object. Reader: the object. */
struct onr_dev_cfg cfg SEC(".data.cfg");

/* The flows. Writers: edge (creates, recycles, records), orack (law state). Readers: both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_MAX_FLOWS);
	__type(key, u32);
	__type(value, struct onr_ctl);
} ctls SEC(".maps");

/* Flow to its index in ctls. Writer: edge. Readers: edge, orack, daemon (counts them). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ONR_MAX_FLOWS);
	__type(key, struct onr_tuple);
	__type(value, u32);
} flow_ids SEC(".maps");

/* What is known of each peer. Writers: orack (delays), edge (holds), daemon (removes the silent). Reader:
 * daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ONR_MAX_PEERS);
	__type(key, struct onr_addr);
	__type(value, struct onr_peer);
} peers SEC(".maps");

/* By enum onr_counter. Writers: edge, orack. Reader: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ONR_CNT_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* One element. Writer: the daemon's clock source (BPF_F_LOCK). Readers: edge, orack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct onr_clock);
} clock SEC(".maps");

static __always_inline void count_add(enum onr_counter id, u64 n)
{
	u32 key = id;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += n;
}

static __always_inline void count(enum onr_counter id)
{
	count_add(id, 1);
}

static __always_inline void count_max(enum onr_counter id, u64 n)
{
	u32 key = id;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value && n > *value)
		*value = n;
}

static __always_inline void clock_read(struct onr_clock_params *out)
{
	u32 key = 0;
	struct onr_clock *c = bpf_map_lookup_elem(&clock, &key);

	if (!c) {
		out->lease_expires_mono_ns = 0;
		return;
	}
	bpf_spin_lock(&c->lock);
	*out = c->params;
	bpf_spin_unlock(&c->lock);
}

#endif
