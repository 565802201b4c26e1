/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* maps.bpf.h: the maps that edge (qdisc) and orack (tcx) share; each says who writes and who reads.
 * The daemon loads edge first and hands its maps to orack. Sizes are set by the daemon. */
#ifndef ONR_MAPS_BPF_H
#define ONR_MAPS_BPF_H

#include "kernel.bpf.h"
#include "abi.h"
#include "../law/clock.h"
#include "../law/records.h"

#define NSEC_PER_SEC 1000000000ll

/* One sender-side flow. edge creates, recycles and records; orack feeds OR-ACKs to the law. */
struct onr_ctl {
	struct bpf_spin_lock lock;
	u32 held; /* in the heap of held queues; edge writes, orack reads */
	s64 held_until_ns;
	struct onr_tuple key; /* checked under the lock: the entry may have been recycled */
	u32 known_peer; /* its destination has been looked up; orack writes and reads */
	struct onr_flow law;
	struct onr_records records;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_MAX_FLOWS);
	__type(key, u32);
	__type(value, struct onr_ctl);
} ctls SEC(".maps");

/* Flow to its index in ctls. Writer: edge. Reader: orack. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ONR_MAX_FLOWS);
	__type(key, struct onr_tuple);
	__type(value, u32);
} flow_ids SEC(".maps");

/* Writers: orack (delays), edge (holds). Reader: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32[4]);
	__type(value, struct onr_peer);
} peers SEC(".maps");

/* Writer: both. Reader: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ONR_CNT_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* Writer: the daemon's clock source (BPF_F_LOCK). Readers: both. */
struct onr_clock {
	struct bpf_spin_lock lock;
	u32 reserved;
	struct onr_clock_params params;
};

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
