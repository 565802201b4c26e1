/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* flows.bpf.h: the flow table. Finds the queue of a flow, makes one for a new flow, takes it away from a
 * flow that has been idle for long. Private to edge.bpf.c, under the lock of one qdisc. */
#ifndef ONR_FLOWS_BPF_H
#define ONR_FLOWS_BPF_H

#include "packet.bpf.h"
#include "schedule.bpf.h"

#define GC_STEPS 8 /* queues looked at for ageing when a flow is created */
#define ENDED_NS NSEC_PER_SEC /* an ended connection is remembered so long, for what it sends again */

/* Id of a flow by the kernel's hash of its packets, a hint: ctls holds the flow's key. Looking a flow up
 * here and comparing keys takes a third of a look-up in flow_ids. Writer and reader: edge. */
#define HINTS 16384u
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HINTS);
	__type(key, u32);
	__type(value, u32);
} hints SEC(".maps");

/* Takes an entry away from its flow if no segment has left for that long. Of several qdiscs that try, one
 * succeeds. */
static bool flow_reclaim(struct onr_ctl *ctl, s64 now, s64 age_ns)
{
	struct onr_tuple key, none = {};
	u32 use = ctl->use;

	if (use == ONR_TAKEN || (use != ONR_FREE && now - ctl->last_ns < age_ns))
		return false;
	if (__sync_val_compare_and_swap(&ctl->use, use, ONR_TAKEN) != use)
		return false;
	if (use == ONR_FREE)
		return true;
	key = ctl->key;
	bpf_map_delete_elem(&flow_ids, &key);
	ctl_reset(ctl, &none);
	count(use == ONR_ENDED ? ONR_CNT_flows_ended : ONR_CNT_flows_aged);
	return true;
}

/* The same if none of its packets waits in this qdisc. Packets that wait in another leave as those of the next
 * flow: unheld, or held once with it. */
static bool queue_reclaim(u32 q, const struct queue *queue, s64 now, s64 age_ns)
{
	struct onr_ctl *ctl = ctl_of(q);

	return ctl && !queue->packets && flow_reclaim(ctl, now, age_ns);
}

/* A FIN or RST has left. The entry goes to the next flow that needs one, not before ENDED_NS while others
 * are free. */
static __always_inline void flow_ends(u32 q, struct queue *queue, s64 now)
{
	struct queue *tail = st.ended.head ? queue_at(st.ended.tail) : NULL;
	struct onr_ctl *ctl = ctl_of(q);

	if (!ctl)
		return;
	ctl->last_ns = now;
	__sync_val_compare_and_swap(&ctl->use, ONR_IN_USE, ONR_ENDED);
	if (queue->in_ended)
		return;
	queue->in_ended = 1;
	queue->next_ended = 0;
	if (tail)
		tail->next_ended = q;
	else
		st.ended.head = q;
	st.ended.tail = q;
}

/* The queue of the connection that ended first, or 0. One that has begun again is left to ageing. */
static u32 ended_take(s64 now, s64 age_ns)
{
	u32 q = st.ended.head;
	struct queue *queue = queue_at(q);
	struct onr_ctl *ctl = ctl_of(q);
	bool ended;

	if (!q || !queue || !ctl)
		return 0;
	ended = ctl->use == ONR_ENDED;
	if (ended && (queue->packets || now - ctl->last_ns < age_ns))
		return 0;
	st.ended.head = queue->next_ended;
	queue->in_ended = 0;
	return ended && flow_reclaim(ctl, now, age_ns) ? q : 0;
}

/* A queue whose entry was never used, or 0. */
static u32 unused_take(void)
{
	u32 zero = 0, id, *used = bpf_map_lookup_elem(&flows_used, &zero);
	struct onr_ctl *ctl;

	if (!used || *used >= cfg.max_flows)
		return 0;
	id = __sync_fetch_and_add(used, 1);
	ctl = id < cfg.max_flows ? bpf_map_lookup_elem(&ctls, &id) : NULL;
	if (!ctl || __sync_val_compare_and_swap(&ctl->use, ONR_FREE, ONR_TAKEN) != ONR_FREE)
		return 0;
	return FIRST_FLOW + id;
}

/* A queue for a new flow: of a connection that has ended, else one never used, else one that has aged; 0
 * when the table is full. Global, as step() is. */
__noinline u32 queue_find_free(s64 now)
{
	u32 i, free = ended_take(now, ENDED_NS);

	if (!free)
		free = unused_take();
	if (!free)
		free = ended_take(now, 0);
	if (free)
		return free;
	bpf_for(i, 0, GC_STEPS) {
		u32 q = FIRST_FLOW + st.gc_hand;
		struct queue *queue = queue_at(q);

		if (++st.gc_hand >= cfg.max_flows)
			st.gc_hand = 0;
		if (queue && queue_reclaim(q, queue, now, cfg.flow_age_ns))
			return q;
	}
	return 0;
}

/* The cgroups of the socket that sends a packet; zeros for a forwarded one. */
static __always_inline void cgroups_of(const struct sk_buff *skb, u64 *cgroups)
{
	struct sock *sk = skb->sk;
	struct cgroup *own = NULL, *at;

	if (sk && bpf_core_field_exists(own->ancestors) &&
	    bpf_core_field_exists(((struct sock_cgroup_data *)0)->cgroup))
		own = sk->sk_cgrp_data.cgroup;
	for (int level = 1; level < (int)ONR_CGROUP_LEVELS; level++) {
		cgroups[level] = 0;
		/* The verifier does not follow an array of pointers without a length. */
		if (own && level <= own->level && !bpf_core_read(&at, sizeof(at), &own->ancestors[level]))
			cgroups[level] = BPF_CORE_READ(at, kn, id);
	}
}

static u32 flow_create(const struct sk_buff *skb, const struct onr_tuple *key, s64 now)
{
	u32 q = queue_find_free(now);
	struct queue *queue = q ? queue_at(q) : NULL;
	struct onr_ctl *ctl = q ? ctl_of(q) : NULL;
	u32 id = q - FIRST_FLOW;
	struct codel no_waits = {};
	struct onr_tuple none = {};

	if (!queue || !ctl)
		return 0;
	ctl_reset(ctl, key);
	ctl->ifindex = cfg.ifindex;
	cgroups_of(skb, ctl->cgroups);
	ctl_classify(id);
	ctl->last_ns = now;
	if (bpf_map_update_elem(&flow_ids, key, &id, BPF_NOEXIST)) { /* another qdisc was faster */
		ctl_reset(ctl, &none);
		ctl->use = ONR_FREE;
		return 0;
	}
	ctl->use = ONR_IN_USE;
	queue->credit = 5 * cfg.quantum_bytes; /* sch_fq's initial quantum is 10 MTU */
	queue->idle_since_ns = now;
	queue->paced_until_ns = 0;
	queue->unspaced_bytes = 0;
	queue->was_held = 0;
	queue->codel = no_waits;
	count(ONR_CNT_flows_created);
	return q;
}

/* Hosts that are no peers, so that a packet to one costs a single look-up; by a hash of the address. Writer
 * and reader: edge. */
#define STRANGERS 4096u
#define STRANGER_NS NSEC_PER_SEC /* then the peers are looked up again: they change */
struct stranger {
	struct onr_addr addr;
	s64 until_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STRANGERS);
	__type(key, u32);
	__type(value, struct stranger);
} strangers SEC(".maps");

static __always_inline struct stranger *stranger_at(const struct onr_addr *addr)
{
	u32 hash = (addr->word[3] ^ addr->word[1]) * 0x9e3779b1u, slot = hash >> 20;

	return bpf_map_lookup_elem(&strangers, &slot);
}

/* Is it known that this host is no peer? */
static __always_inline bool known_stranger(const struct onr_addr *addr)
{
	const struct stranger *s = stranger_at(addr);

	return s && st.last_ns < s->until_ns && s->addr.word[3] == addr->word[3] &&
	       s->addr.word[2] == addr->word[2] && s->addr.word[1] == addr->word[1] &&
	       s->addr.word[0] == addr->word[0];
}

/* May flows to this host be held? If not, that is noted for a while. */
static __always_inline bool is_peer(const struct onr_addr *addr)
{
	struct stranger *s;

	if (known_peer(addr))
		return true;
	s = stranger_at(addr);
	if (s) {
		s->addr = *addr;
		s->until_ns = st.last_ns + STRANGER_NS;
	}
	return false;
}

/* A SYN leaves: the flow's state is of a connection before. */
static __always_inline void flow_restart(const struct onr_tuple *key)
{
	u32 *id = bpf_map_lookup_elem(&flow_ids, key);
	struct onr_ctl *ctl = id ? bpf_map_lookup_elem(&ctls, id) : NULL;

	if (!ctl || !same_flow(&ctl->key, key))
		return;
	ctl_reset(ctl, key);
	__sync_val_compare_and_swap(&ctl->use, ONR_ENDED, ONR_IN_USE);
}

/* The queue of a known flow, or 0. */
static __always_inline u32 flow_find(const struct onr_tuple *key, u32 hash)
{
	u32 slot = hash % HINTS, *hint = bpf_map_lookup_elem(&hints, &slot), *id;
	struct onr_ctl *ctl = hint ? bpf_map_lookup_elem(&ctls, hint) : NULL;

	if (ctl && same_flow(&ctl->key, key))
		return FIRST_FLOW + *hint;
	if (known_stranger(&key->daddr))
		return 0;
	id = bpf_map_lookup_elem(&flow_ids, key);
	if (!id)
		return 0;
	ctl = bpf_map_lookup_elem(&ctls, id);
	if (!ctl || !same_flow(&ctl->key, key)) { /* another qdisc has just given the entry away */
		bpf_map_delete_elem(&flow_ids, key);
		return 0;
	}
	if (hint)
		*hint = *id;
	return FIRST_FLOW + *id;
}

#endif
