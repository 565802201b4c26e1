/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* queues.bpf.h: what the qdisc keeps packets in: slots, one FIFO of them a flow, the lists of the round
 * robin and a heap of the queues that wait for a time. Decides nothing. Private to edge.bpf.c, all of it
 * under the lock of one qdisc. */
#ifndef ONR_QUEUES_BPF_H
#define ONR_QUEUES_BPF_H

#include "codel.bpf.h"

#define HEAP_DEPTH 17 /* levels of a heap of 2 * ONR_MAX_FLOWS entries */

struct slot {
	struct sk_buff __kptr *skb;
	u32 next;
	u32 bytes; /* on the wire */
	u32 seq;
	u32 len; /* of payload; 0: not tracked by the law */
	u32 ends; /* a FIN or RST: the connection's last, but for retransmissions */
	s64 send_at_ns; /* not before */
	s64 since_ns; /* in the queue; only with CoDel */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_MAX_SLOTS + 1); /* 0 = none in lists; its skb is the express packet */
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

enum queue_state { QUEUE_IDLE, QUEUE_LISTED, QUEUE_HELD };

struct queue {
	u32 head; /* slots */
	u32 tail;
	u32 next; /* queue behind this one in its list */
	s32 credit;
	u32 state;
	u32 packets;
	u32 in_ended;	    /* is in the list of ended connections */
	u32 next_ended;
	s64 until_ns;	    /* while held: key of the valid heap entry */
	s64 hold_start_ns;  /* first refusal of the present head, 0 = none */
	s64 idle_since_ns;  /* 0 once dequeue has seen that it is no longer idle */
	s64 paced_until_ns; /* when TCP's pace lets the next segment go */
	u32 was_held;	    /* by the law, and what waited meanwhile has not all left */
	u32 owner;	    /* of a bucket: hash of the flow that has it while it is in use; 0: never used */
	u32 shared;	    /* a bucket: with flows that have found no other */
	u32 unspaced_bytes; /* of payload that has left within the credit */
	s64 released_ns;    /* when the law last let a segment go that it had held */
	struct codel codel;
};

/* Index 0 = none, 1..ONR_BUCKETS: buckets for what is never held; then one a flow, like ctls. */
#define FIRST_FLOW (1 + ONR_BUCKETS)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FIRST_FLOW + ONR_FLOWS);
	__type(key, u32);
	__type(value, struct queue);
} queues SEC(".maps");

/* Binary min-heap, by until_ns, of what waits for a time: queues and, out of the buckets, single packets. A
 * queue's entry is void when the queue is not held until exactly that time: waking a queue early just adds
 * a second entry. Packets with equal times stay in order. */
struct held {
	s64 until_ns;
	u64 what; /* a queue, or ONE_PACKET | order << 32 | slot */
};
#define ONE_PACKET (1ull << 63)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * ONR_FLOWS);
	__type(key, u32);
	__type(value, struct held);
} heap SEC(".maps");

struct list {
	u32 head;
	u32 tail;
};

static struct {
	u64 owner; /* the qdisc we serve */
	struct list fresh;
	struct list fresh_unconnected; /* those of what no socket of this host has connected, whose sender can have any number */
	struct list old;
	struct list ended; /* queues of ended connections, by next_ended */
	u32 free_slot;
	u32 slots_used; /* slots above were never used */
	u32 gc_hand;
	u32 heap_len;
	u32 order; /* of the packets that wait for a time */
	u32 express; /* slot 0 has a packet */
	s64 last_ns; /* of the last packet that left a queue */
	s64 line_free_ns;
	struct onr_nic nic; /* what is behind the qdisc */
} st;

static __always_inline struct qdisc_skb_cb *qdisc_cb(const struct sk_buff *skb)
{
	return (struct qdisc_skb_cb *)skb->cb;
}

static __always_inline struct queue *queue_at(u32 q)
{
	return bpf_map_lookup_elem(&queues, &q);
}

static __always_inline struct slot *slot_at(u32 s)
{
	return bpf_map_lookup_elem(&slots, &s);
}

static __always_inline struct held *held_at(u32 i)
{
	return bpf_map_lookup_elem(&heap, &i);
}

static __always_inline struct onr_ctl *ctl_of(u32 q)
{
	u32 i = q - FIRST_FLOW;

	return bpf_map_lookup_elem(&ctls, &i);
}

/* Is it a bucket of what no socket of this host has connected? */
static __always_inline bool is_unconnected(u32 q)
{
	return q <= ONR_BUCKETS / 2;
}

/* ---- lists of queues ---- */

static __always_inline void list_append(struct list *l, u32 q, struct queue *queue)
{
	struct queue *tail = l->head ? queue_at(l->tail) : NULL;

	queue->next = 0;
	if (tail)
		tail->next = q;
	else
		l->head = q;
	l->tail = q;
}

/* Puts a packet behind the others of its queue. */
static __always_inline void queue_put(u32 q, struct queue *queue, u32 s, struct slot *slot)
{
	struct slot *tail = queue->head ? slot_at(queue->tail) : NULL;

	slot->next = 0;
	if (tail)
		tail->next = s;
	else
		queue->head = s;
	queue->tail = s;
	if (queue->state == QUEUE_IDLE) {
		queue->state = QUEUE_LISTED;
		list_append(is_unconnected(q) ? &st.fresh_unconnected : &st.fresh, q, queue);
	}
}

/* ---- heap of held queues. Global functions, which the verifier checks once, and which return a number ---- */

static __always_inline bool sooner(s64 until_ns, u64 what, const struct held *than)
{
	return until_ns < than->until_ns || (until_ns == than->until_ns && what < than->what);
}

__noinline bool heap_push(s64 until_ns, u64 what)
{
	u32 i = st.heap_len, level;
	struct held *to = held_at(i);

	if (!to)
		return false;
	st.heap_len = i + 1;
	bpf_for(level, 0, HEAP_DEPTH) {
		struct held *parent;

		if (!i)
			break;
		parent = held_at((i - 1) / 2);
		if (!parent || !sooner(until_ns, what, parent))
			break;
		*to = *parent;
		to = parent;
		i = (i - 1) / 2;
	}
	to->until_ns = until_ns;
	to->what = what;
	return true;
}

__noinline int heap_pop(void)
{
	u32 i = 0, level, len = st.heap_len - 1;
	struct held *to = held_at(0), *last = held_at(len), *child, *right;

	st.heap_len = len;
	if (!to || !last)
		return 0;
	bpf_for(level, 0, HEAP_DEPTH) {
		u32 c = 2 * i + 1;

		if (c >= len)
			break;
		child = held_at(c);
		right = c + 1 < len ? held_at(c + 1) : NULL;
		if (child && right && sooner(right->until_ns, right->what, child)) {
			child = right;
			c++;
		}
		if (!child || !sooner(child->until_ns, child->what, last))
			break;
		*to = *child;
		to = child;
		i = c;
	}
	*to = *last;
	return 0;
}

/* ---- slots ---- */

static __always_inline u32 slot_alloc(void)
{
	u32 s = st.free_slot;
	struct slot *slot;

	if (!s)
		return st.slots_used < ONR_MAX_SLOTS ? ++st.slots_used : 0;
	slot = slot_at(s);
	if (!slot)
		return 0;
	st.free_slot = slot->next;
	return s;
}

static __always_inline void slot_free(u32 s, struct slot *slot)
{
	slot->next = st.free_slot;
	st.free_slot = s;
}

#endif
