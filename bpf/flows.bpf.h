/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* flows.bpf.h: the flow table. Finds the queue of a flow, makes one for a new flow, takes it away from a
 * flow that has been idle for long. Private to edge.bpf.c, under the root qdisc lock of one device. */
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

/* Takes an idle queue away from its flow if it has been idle for that long; returns whether it is free. */
static bool queue_reclaim(u32 q, struct queue *queue, s64 now, s64 age_ns)
{
	struct onr_tuple key, none = {};
	struct onr_ctl *ctl = ctl_of(q);

	if (!ctl || queue->state != QUEUE_IDLE)
		return false;
	if (!queue->in_use)
		return true;
	if (now - queue->idle_since_ns < age_ns)
		return false;
	key = ctl->key;
	bpf_map_delete_elem(&flow_ids, &key);
	ctl_reset(ctl, &none);
	count(queue->ended ? ONR_CNT_flows_ended : ONR_CNT_flows_aged);
	queue->in_use = 0;
	queue->ended = 0;
	return true;
}

/* A FIN or RST has left. The queue goes to the next flow that needs one, not before ENDED_NS while others
 * are free. */
static __always_inline void queue_ends(u32 q, struct queue *queue)
{
	struct queue *tail = st.ended.head ? queue_at(st.ended.tail) : NULL;

	queue->ended = 1;
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

/* The queue of the connection that ended first, or 0. One that has begun again, or has not become idle, is
 * left to ageing. */
static u32 ended_take(s64 now, s64 age_ns)
{
	u32 q = st.ended.head;
	struct queue *queue = queue_at(q);
	bool idle;

	if (!q || !queue)
		return 0;
	idle = queue->ended && queue->state == QUEUE_IDLE;
	if (idle && now - queue->idle_since_ns < age_ns)
		return 0;
	st.ended.head = queue->next_ended;
	queue->in_ended = 0;
	return idle && queue_reclaim(q, queue, now, age_ns) ? q : 0;
}

/* When no packet is left, the queues still listed are those that nobody has found empty yet. */
static void lists_clear(void)
{
	u32 i;

	bpf_for(i, 0, FIRST_FLOW + ONR_MAX_FLOWS) {
		struct list *l = st.fresh.head ? &st.fresh : &st.old;
		struct queue *queue = queue_at(l->head);

		if (!l->head || !queue)
			break;
		l->head = queue->next;
		queue->state = QUEUE_IDLE;
		queue->idle_since_ns = st.last_ns;
	}
}

/* A queue for a new flow: of a connection that has ended, else one never used, else one that has aged; 0
 * when the table is full. Global, as step() is. */
__noinline u32 queue_find_free(u32 packets, s64 now)
{
	bool room = st.flows_used < cfg.max_flows;
	u32 i, free;

	if (!packets && !room)
		lists_clear();
	free = ended_take(now, room ? ENDED_NS : 0);
	if (free)
		return free;
	if (room)
		return FIRST_FLOW + st.flows_used++;
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

static u32 flow_create(const struct onr_tuple *key, const struct Qdisc *sch, s64 now)
{
	u32 q = queue_find_free(sch->q.qlen, now);
	struct queue *queue = q ? queue_at(q) : NULL;
	struct onr_ctl *ctl = q ? ctl_of(q) : NULL;
	u32 id = q - FIRST_FLOW;

	if (!queue || !ctl)
		return 0;
	if (bpf_map_update_elem(&flow_ids, key, &id, BPF_ANY))
		return 0; /* the queue stays free: gc finds it */
	ctl_reset(ctl, key);
	queue->in_use = 1;
	queue->ended = 0;
	queue->credit = 5 * cfg.quantum_bytes; /* sch_fq's initial quantum is 10 MTU */
	queue->idle_since_ns = now;
	queue->paced_until_ns = 0;
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
	struct queue *queue = id ? queue_at(FIRST_FLOW + *id) : NULL;

	if (!ctl || !queue)
		return;
	ctl_reset(ctl, key);
	queue->ended = 0;
}

/* The queue of a known flow, or 0. A flow's key changes only here, under the qdisc lock. */
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
	if (hint)
		*hint = *id;
	return FIRST_FLOW + *id;
}

#endif
