/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* maps.bpf.h: the maps that edge (qdisc) and orack (tcx) share; each says who writes and who reads.
 * The daemon loads edge first and hands its maps to orack. Sizes are set by the daemon. */
#ifndef ONR_MAPS_BPF_H
#define ONR_MAPS_BPF_H

#include "kernel.bpf.h"
#include "abi.h"
#include "../law/clock.h"

#define NSEC_PER_SEC 1000000000ll

/* Each object has its own. Writer: the daemon, before it loads the object. Reader: the object. */
struct onr_dev_cfg cfg SEC(".data.cfg");

/* The flows. Writers: edge, or an observer in its place (creates, recycles, records), orack (law state).
 * Readers: both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_FLOWS);
	__type(key, u32);
	__type(value, struct onr_ctl);
} ctls SEC(".maps");

/* Flow to its index in ctls. Writer: edge, or an observer. Readers: edge, orack, daemon (counts them). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ONR_FLOWS);
	__type(key, struct onr_tuple);
	__type(value, u32);
} flow_ids SEC(".maps");

/* How many entries of ctls were ever used. Writers: edges. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} flows_used SEC(".maps");

/* By transmit queue, of all devices of the daemon. Writers: orack (adds), the queue's edge (takes all), daemon
 * (which device and queue it is). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_MAX_QUEUES);
	__type(key, u32);
	__type(value, struct onr_kicks);
} kicks SEC(".maps");

/* The peers, of --peers or of the device's subnets and the fleet: hosts to which flows are held, to which
 * OR-ACKs are sent and from which they are believed. Writer: daemon. Readers: edge, orack. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * ONR_MAX_PEERS);
	__type(key, struct onr_prefix);
	__type(value, u32);
} prefixes SEC(".maps");

/* The addresses of pods and containers behind this host, whose flows it treats as its own. Other flows that
 * it forwards are left alone. Writer: daemon. Readers: edge, orack. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct onr_prefix);
	__type(value, u32);
} served SEC(".maps");

/* The classes of flows. One element. Writer: daemon. Readers: edge, orack, for a new flow and once after a change. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct onr_rules);
} rules SEC(".maps");

/* What is known of each peer. Writers: orack (delays), edge (holds), daemon (removes the silent). Reader:
 * daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ONR_MAX_PEERS);
	__type(key, struct onr_addr);
	__type(value, struct onr_peer);
} peers SEC(".maps");

/* By enum onr_counter, then the lengths of pauses by bucket. Writers: edge, orack. Reader: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ONR_CNT_ALL);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* Two elements, of which one is valid (struct onr_clock). Writer: the daemon. Readers: edge, orack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct onr_clock);
} clock SEC(".maps");

/* What an OR-ACK is about: the data flow as its sender sees it, and the sample. */
struct sample {
	struct onr_tuple flow;
	u32 seq;
	u16 hint; /* of the receiver (law/receiver.h) */
	u16 len;
	u32 dscp; /* of the data, where the type of service has it; the receiver alone knows */
	s64 rx_fleet_ns;
};

/* ---- packets that the data path sends to itself ----
 *
 * A kick, and the clone of which egress makes an OR-ACK. Other programs of the host may change marks and cb, and the
 * kernel may let another processor put a packet into the qdisc. So egress knows a clone by its processor's record
 * (owns), because egress runs before the helper that sends the clone returns; edge knows both by cfg.own_secret in cb,
 * and a kick also by its bytes. */
enum own_kind { OWN_NONE, OWN_CLONE, OWN_KICK };

/* Words of cb, which lie in qdisc_skb_cb.data. */
enum { CB_SECRET_LOW, CB_SECRET_HIGH, CB_KIND };

/* The clone that orack sends on this processor at this moment. */
struct own_clone {
	u32 ifindex; /* of the device; 0: none, or egress has dealt with it */
	u32 len;     /* of the frame */
	u32 is_ack;  /* it is a pure ACK, which is directed at the data's sender already */
	struct sample sample;
};

/* One element. Writer and reader: orack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct own_clone);
} owns SEC(".maps");

static __always_inline struct own_clone *own_clone_now(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&owns, &zero);
}

static __always_inline bool known_peer(const struct onr_addr *addr)
{
	struct onr_prefix key = { .bits = 128, .addr = *addr };

	return bpf_map_lookup_elem(&prefixes, &key) != NULL;
}

/* Does this host speak for an address that has no sockets here? */
static __always_inline bool is_served(const struct onr_addr *addr)
{
	struct onr_prefix key = { .bits = 128, .addr = *addr };

	return bpf_map_lookup_elem(&served, &key) != NULL;
}

static __always_inline u64 *counter(enum onr_counter id)
{
	u32 key = id;

	return bpf_map_lookup_elem(&counters, &key);
}

/* Functions, because so many places count, and the verifier's time grows with the length of programs; global, so that it
 * checks them once. They return a number because global functions must. */
__noinline int count_add(enum onr_counter id, u64 n)
{
	u64 *value = counter(id);

	if (value)
		*value += n;
	return 0;
}

__noinline int count_max(enum onr_counter id, u64 n)
{
	u64 *value = counter(id);

	if (value && n > *value)
		*value = n;
	return 0;
}

/* A flow was paused, for so long. */
__noinline int count_hold(u64 held_ns)
{
	count_add(ONR_CNT_holds, 1);
	count_add(ONR_CNT_held_ns, held_ns);
	count_max(ONR_CNT_held_max_ns, held_ns);
	return count_add(ONR_CNT_MAX + onr_histogram_bucket(held_ns), 1);
}

static __always_inline void count(enum onr_counter id)
{
	count_add(id, 1);
}

/* The entry is another flow's from now on. */
static __always_inline void ctl_reset(struct onr_ctl *ctl, const struct onr_tuple *key)
{
	struct onr_flow fresh = {};

	bpf_spin_lock(&ctl->lock);
	ctl->held = 0;
	ctl->known_peer = 0;
	ctl->law = fresh;
	onr_records_reset(&ctl->records);
	ctl->key = *key;
	bpf_spin_unlock(&ctl->lock);
}

static __always_inline struct onr_rules *rules_now(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&rules, &zero);
}

/* Gives the flow of an entry its class. Global, so that the verifier checks its loop once; nearly without branches,
 * because it checks each of their ways. */
__noinline int ctl_classify(u32 id)
{
	struct onr_ctl *ctl = bpf_map_lookup_elem(&ctls, &id);
	struct onr_rules *all = rules_now();
	u32 number, threshold_ns = 0, a, b, c, d, ifindex;
	u16 sport, dport;

	if (!ctl || !all)
		return 0;
	number = all->number;
	a = ctl->key.daddr.word[0];
	b = ctl->key.daddr.word[1];
	c = ctl->key.daddr.word[2];
	d = ctl->key.daddr.word[3];
	ifindex = ctl->ifindex;
	sport = bpf_ntohs(ctl->key.sport);
	dport = bpf_ntohs(ctl->key.dport);
	ctl->rules_epoch = all->epoch;
	for (u32 i = 0; i < ONR_MAX_RULES && i < number; i++) {
		const struct onr_rule *rule = &all->rule[i];
		u16 first = rule->first_port, range = rule->last_port - first;
		u32 differ = ((a & rule->mask.word[0]) ^ rule->addr.word[0]) |
			     ((b & rule->mask.word[1]) ^ rule->addr.word[1]) |
			     ((c & rule->mask.word[2]) ^ rule->addr.word[2]) |
			     ((d & rule->mask.word[3]) ^ rule->addr.word[3]) |
			     ((ifindex & rule->ifindex_mask) ^ rule->ifindex);
		u64 cgroup = ctl->cgroups[rule->cgroup_level % ONR_CGROUP_LEVELS];

		if (!differ && cgroup == rule->cgroup && ((u16)(sport - first) <= range || (u16)(dport - first) <= range)) {
			threshold_ns = rule->threshold_ns;
			break;
		}
	}
	ctl->class_threshold_ns = threshold_ns;
	return 0;
}

static __always_inline void clock_read(struct onr_clock_params *out)
{
	u32 first = 0, second = 1;
	const struct onr_clock *a = bpf_map_lookup_elem(&clock, &first);
	const struct onr_clock *b = bpf_map_lookup_elem(&clock, &second);

	if (a && b)
		*out = a->epoch > b->epoch ? a->params : b->params;
	else /* never; without a lease */
		__builtin_memset(out, 0, sizeof(*out));
}

#endif
