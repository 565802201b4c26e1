/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* flows.bpf.h: the flow table. Finds the queue of a flow, makes one for a new flow, takes it away from a
 * flow that has been idle for long. Private to edge.bpf.c, under the root qdisc lock of one device. */
#ifndef ONR_FLOWS_BPF_H
#define ONR_FLOWS_BPF_H

#include "packet.bpf.h"
#include "schedule.bpf.h"

#define GC_STEPS 8 /* queues looked at for ageing when a flow is created */

/* Id of a flow by the kernel's hash of its packets, a hint: ctls holds the flow's key. Looking a flow up
 * here and comparing keys takes a third of a look-up in flow_ids. Writer and reader: edge. */
#define HINTS 16384u
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HINTS);
	__type(key, u32);
	__type(value, u32);
} hints SEC(".maps");

static void ctl_reset(struct onr_ctl *ctl, const struct onr_tuple *key)
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

/* Takes an idle queue away from its flow if it has been idle for long; returns whether it is free. */
static bool queue_reclaim(u32 q, struct queue *queue, s64 now)
{
	struct onr_tuple key, none = {};
	struct onr_ctl *ctl = ctl_of(q);

	if (!ctl || queue->state != QUEUE_IDLE)
		return false;
	if (!queue->in_use)
		return true;
	if (now - queue->idle_since_ns < cfg.flow_age_ns)
		return false;
	key = ctl->key;
	bpf_map_delete_elem(&flow_ids, &key);
	ctl_reset(ctl, &none);
	queue->in_use = 0;
	count(ONR_CNT_flows_aged);
	return true;
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

/* A queue for a new flow: one never used, else one that has aged; 0 when the table is full. Global,
 * as step() is. */
__noinline u32 queue_find_free(u32 packets, s64 now)
{
	u32 i;

	if (st.flows_used < cfg.max_flows)
		return FIRST_FLOW + st.flows_used++;
	if (!packets)
		lists_clear();
	bpf_for(i, 0, GC_STEPS) {
		u32 q = FIRST_FLOW + st.gc_hand;
		struct queue *queue = queue_at(q);

		if (++st.gc_hand >= cfg.max_flows)
			st.gc_hand = 0;
		if (queue && queue_reclaim(q, queue, now))
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
	queue->credit = 5 * cfg.quantum_bytes; /* sch_fq's initial quantum is 10 MTU */
	queue->idle_since_ns = now;
	queue->paced_until_ns = 0;
	count(ONR_CNT_flows_created);
	return q;
}

/* The queue of a known flow, or 0. A flow's key changes only here, under the qdisc lock. */
static __always_inline u32 flow_find(const struct onr_tuple *key, u32 hash)
{
	u32 slot = hash % HINTS, *hint = bpf_map_lookup_elem(&hints, &slot), *id;
	struct onr_ctl *ctl = hint ? bpf_map_lookup_elem(&ctls, hint) : NULL;

	if (ctl && same_flow(&ctl->key, key))
		return FIRST_FLOW + *hint;
	id = bpf_map_lookup_elem(&flow_ids, key);
	if (!id)
		return 0;
	if (hint)
		*hint = *id;
	return FIRST_FLOW + *id;
}

#endif
