/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* edge.bpf.c: the On-Ramp qdisc. One FIFO a flow, byte-fair round robin (DRR with new and old flows
 * as in sch_fq), and a heap of the flows whose head law/ wants held, or TCP's pace. A segment is stamped
 * and recorded when it is dequeued.
 * Reads cfg, clock; creates and recycles ctls and flow_ids (whose law state orack.bpf.c updates);
 * writes counters and peers. Only TCP segments with data are ever held; what cannot be tracked
 * passes through hashed queues like any other traffic and is counted.
 *
 * All state here is guarded by the root qdisc lock of one device: one loaded instance a device. */
#include "packet.bpf.h"
#include "queues.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_STOLEN 0x10000

#define REFILL_NS 40000000ll /* an idle flow earns new credit after this, as in sch_fq */
#define GC_STEPS 8	     /* queues looked at for ageing when a flow is created */
#define DUE_BATCH 64	     /* held flows released in one dequeue */
#define NS_PER_S 1000000000ull

struct onr_dev_cfg cfg SEC(".data.cfg");

/* Id of a flow by the kernel's hash of its packets, a hint: ctls holds the flow's key. Looking a
 * flow up here and comparing keys takes a third of a look-up in flow_ids. */
#define HINTS 16384u
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HINTS);
	__type(key, u32);
	__type(value, u32);
} hints SEC(".maps");

/* ---- flow table ---- */

static __always_inline struct onr_ctl *ctl_of(u32 q)
{
	u32 i = q - FIRST_FLOW;

	return bpf_map_lookup_elem(&ctls, &i);
}

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

static bool step(s64 now, u32 *out, u32 *out_q);

/* When no packet is left, the queues still listed are those that nobody has found empty yet. */
static void lists_clear(void)
{
	u32 i, s = 0, q = 0;

	bpf_for(i, 0, 2 * (FIRST_FLOW + ONR_MAX_FLOWS)) {
		if (!step(st.last_ns, &s, &q))
			break;
	}
}

/* A queue for a new flow: one never used, else one that has aged; 0 when the table is full. */
static u32 queue_find_free(const struct Qdisc *sch, s64 now)
{
	u32 i;

	if (st.flows_used < cfg.max_flows)
		return FIRST_FLOW + st.flows_used++;
	if (!sch->q.qlen)
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
	u32 q = queue_find_free(sch, now);
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

/* ---- express: a packet that the law does not see and that finds the qdisc empty ----
 *
 * It is the next whatever the order is, so it needs no queue. Most ACKs and OR-ACKs go this way. */

static __always_inline bool express_open(const struct Qdisc *sch)
{
	return !sch->q.qlen && !cfg.shape_ns_per_byte_q16;
}

static __always_inline int express_put(struct sk_buff *skb, struct Qdisc *sch,
				       struct bpf_sk_buff_ptr *to_free)
{
	u32 bytes = qdisc_cb(skb)->pkt_len;
	struct slot *slot = slot_at(0);

	if (slot) {
		skb = bpf_kptr_xchg(&slot->skb, skb);
		st.express = 1;
		sch->q.qlen++;
		sch->qstats.backlog += bytes;
	}
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_SUCCESS;
}

static __always_inline struct sk_buff *express_take(struct Qdisc *sch)
{
	struct slot *slot = slot_at(0);
	struct sk_buff *skb = NULL;

	st.express = 0;
	if (slot)
		skb = bpf_kptr_xchg(&slot->skb, skb);
	sch->q.qlen--;
	if (skb) {
		sch->qstats.backlog -= qdisc_cb(skb)->pkt_len;
		bpf_qdisc_bstats_update(sch, skb);
	}
	return skb;
}

static __always_inline u32 bucket_of(struct sk_buff *skb)
{
	return 1 + bpf_skb_get_hash(skb) % ONR_BUCKETS;
}

/* The queue for a TCP segment. Sets seg->len to 0 when the law does not see it. */
static __always_inline u32 classify(struct sk_buff *skb, struct segment *seg,
				    const struct Qdisc *sch)
{
	u32 q;

	q = flow_find(&seg->key, skb->hash);
	if (q)
		return q;
	if (!seg->len) /* FIN of a flow that is not held here */
		return bucket_of(skb);
	q = flow_create(&seg->key, sch, bpf_ktime_get_ns());
	if (q)
		return q;
	count(ONR_CNT_flow_table_full);
	seg->len = 0;
	return bucket_of(skb);
}

/* ---- enqueue ---- */

/* A used OR-ACK has moved the release time of a held flow forward: look at it in this dequeue. */
static void kick(struct sk_buff *skb)
{
	u32 *cb = (u32 *)qdisc_cb(skb)->data;
	u32 q = FIRST_FLOW + cb[1];
	struct queue *queue = queue_at(q);

	if (cb[0] != ONR_MARK_KICK || !queue || queue->state != QUEUE_HELD)
		return;
	if (heap_push(0, q)) {
		queue->until_ns = 0;
		count(ONR_CNT_kicks);
	}
}

SEC("struct_ops")
int BPF_PROG(edge_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct segment seg = {};
	struct slot *slot, *tail;
	enum onr_counter full = ONR_CNT_limit_drops;
	struct queue *queue;
	u32 s, q, bytes;

	if (skb->mark == ONR_MARK_KICK) {
		kick(skb);
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_SUCCESS | NET_XMIT_STOLEN;
	}
	if (sch->q.qlen >= sch->limit)
		goto drop;
	if (parse_segment(skb, &seg)) {
		q = classify(skb, &seg, sch);
	} else if (express_open(sch)) {
		return express_put(skb, sch, to_free);
	} else {
		seg.len = 0;
		q = bucket_of(skb);
	}
	queue = queue_at(q);
	if (queue && queue->packets >= cfg.flow_limit_packets) {
		full = ONR_CNT_flow_limit_drops;
		goto drop;
	}
	s = slot_alloc();
	slot = slot_at(s);
	if (!queue || !slot || !s)
		goto drop;

	bytes = qdisc_cb(skb)->pkt_len;
	slot->next = 0;
	slot->bytes = bytes;
	slot->seq = seg.seq;
	slot->len = seg.len;
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);

	tail = queue->head ? slot_at(queue->tail) : NULL;
	if (tail)
		tail->next = s;
	else
		queue->head = s;
	queue->tail = s;
	queue->packets++;
	if (queue->state == QUEUE_IDLE) {
		queue->state = QUEUE_LISTED;
		list_append(&st.fresh, q, queue);
	}
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	return NET_XMIT_SUCCESS;

drop:
	sch->qstats.drops++;
	count(full);
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* ---- dequeue ---- */

static void account_hold(struct onr_ctl *ctl, struct queue *queue, s64 now)
{
	s64 held_ns = now - queue->hold_start_ns;
	u32 addr[4];
	struct onr_peer *peer;

	queue->hold_start_ns = 0;
	count(ONR_CNT_holds);
	count_add(ONR_CNT_held_ns, held_ns);
	count_max(ONR_CNT_held_max_ns, held_ns);
	__builtin_memcpy(addr, ctl->key.daddr, sizeof(addr));
	peer = bpf_map_lookup_elem(&peers, addr);
	if (peer) {
		__sync_fetch_and_add(&peer->holds, 1);
		__sync_fetch_and_add(&peer->held_ns, held_ns);
	}
}

static __always_inline s64 lease_end(void)
{
	struct onr_clock_params clk;

	clock_read(&clk);
	return clk.lease_expires_mono_ns;
}

/* The head goes now: under the lock, tells the law and remembers it. */
static __always_inline void record(struct onr_ctl *ctl, const struct slot *slot, s64 now)
{
	onr_records_sent(&cfg.law, &ctl->law, &ctl->records, now, slot->seq, slot->len,
			 cfg.orack_every_bytes);
}

/* Asks the law for the head of a flow's queue. 0: it goes, and is recorded as sent now. Otherwise
 * the time until which to hold it, never beyond the clock's lease. */
static s64 hold_until(struct onr_ctl *ctl, const struct slot *slot, s64 now)
{
	s64 until, lease;

	bpf_spin_lock(&ctl->lock);
	until = onr_may_go(&cfg.law, &ctl->law, now);
	if (!until)
		record(ctl, slot, now);
	bpf_spin_unlock(&ctl->lock);
	if (!until)
		return 0;

	lease = lease_end();
	if (lease > now)
		return onr_min(until, lease);
	count(ONR_CNT_holds_refused_lease);
	bpf_spin_lock(&ctl->lock);
	record(ctl, slot, now);
	bpf_spin_unlock(&ctl->lock);
	return 0;
}

/* Moves a queue from the front of its list into the heap. False: heap full, let it go. */
static bool queue_park(u32 q, struct queue *queue, s64 until)
{
	if (!heap_push(until, q))
		return false;
	queue->state = QUEUE_HELD;
	queue->until_ns = until;
	return true;
}

/* The same because the law holds its head. */
static bool queue_hold(u32 q, struct queue *queue, struct onr_ctl *ctl, s64 until, s64 now)
{
	if (!queue_park(q, queue, until))
		return false;
	if (!queue->hold_start_ns)
		queue->hold_start_ns = now;
	bpf_spin_lock(&ctl->lock);
	ctl->held = 1;
	ctl->held_until_ns = until;
	bpf_spin_unlock(&ctl->lock);
	return true;
}

static void release_due(s64 now)
{
	u32 i;

	bpf_for(i, 0, DUE_BATCH) {
		struct held *top = held_at(0);
		struct queue *queue;
		struct onr_ctl *ctl;
		u32 q;

		if (!st.heap_len || !top || top->until_ns > now)
			break;
		q = top->queue;
		queue = queue_at(q);
		ctl = ctl_of(q);
		if (queue && ctl && queue->state == QUEUE_HELD && queue->until_ns == top->until_ns) {
			queue->state = QUEUE_LISTED;
			ctl->held = 0;
			list_append(&st.old, q, queue);
		}
		heap_pop();
	}
}

/* An empty queue: a fresh one goes behind the old ones once, so that it cannot stay fresh by
 * sending one packet at a time (as sch_fq does); otherwise it goes idle. */
static __always_inline void queue_emptied(u32 q, struct queue *queue, bool fresh, s64 now)
{
	if (fresh && st.old.head) {
		list_append(&st.old, q, queue);
		return;
	}
	queue->state = QUEUE_IDLE;
	queue->idle_since_ns = now;
}

/* One step of the round robin. Sets *out to the slot that goes now, or leaves it 0 and has
 * moved one queue on; false when no listed queue is left. */
static bool step(s64 now, u32 *out, u32 *out_q)
{
	bool fresh = st.fresh.head != 0;
	struct list *l = fresh ? &st.fresh : &st.old;
	u32 q = l->head, s;
	struct queue *queue = queue_at(q);
	struct onr_ctl *ctl;
	struct slot *slot;
	s64 until;
	u32 next;

	if (!q || !queue)
		return false;
	if (queue->idle_since_ns) {
		if (now - queue->idle_since_ns > REFILL_NS && queue->credit < (s32)cfg.quantum_bytes)
			queue->credit = cfg.quantum_bytes;
		queue->idle_since_ns = 0;
	}
	s = queue->head;
	if (queue->credit <= 0 && s) {
		queue->credit += cfg.quantum_bytes;
		l->head = queue->next;
		list_append(&st.old, q, queue);
		return true;
	}
	slot = slot_at(s);
	if (!s || !slot) {
		l->head = queue->next;
		queue_emptied(q, queue, fresh, now);
		return true;
	}
	ctl = q >= FIRST_FLOW && slot->len ? ctl_of(q) : NULL;
	if (ctl) {
		next = queue->next;
		until = queue->paced_until_ns;
		if (until > now && queue_park(q, queue, until)) {
			l->head = next;
			return true;
		}
		until = hold_until(ctl, slot, now);
		if (until && queue_hold(q, queue, ctl, until, now)) {
			l->head = next;
			return true;
		}
		if (queue->hold_start_ns)
			account_hold(ctl, queue, now);
	}
	*out = s;
	*out_q = q;
	return true;
}

/* A flow's segment leaves: when may the next, so that they go at TCP's pace as with sch_fq? What is
 * within the flow's credit is not spaced, nor what TCP spaces by itself (BBR); lateness is made up for. */
static __always_inline s64 next_by_pace(const struct queue *queue, const struct sk_buff *skb,
					u32 bytes, s64 now)
{
	const struct sock *sk = skb->sk;
	s64 ns, late;
	u64 rate;

	if (queue->credit > 0 || !sk || sk->sk_pacing_status == SK_PACING_NEEDED)
		return 0;
	rate = sk->sk_pacing_rate;
	ns = rate ? onr_min(bytes * NS_PER_S / rate, NS_PER_S) : 0;
	late = queue->paced_until_ns ? now - queue->paced_until_ns : 0;
	return now + ns - onr_min(late, ns / 2);
}

/* With shaping, the time when the line is free again; up to two quanta may catch up on lateness. */
static __always_inline void line_take(s64 now, u32 bytes)
{
	s64 slack = ((u64)cfg.quantum_bytes * cfg.shape_ns_per_byte_q16) >> 16;

	if (st.line_free_ns < now - slack)
		st.line_free_ns = now - slack;
	st.line_free_ns += ((u64)bytes * cfg.shape_ns_per_byte_q16) >> 16;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(edge_dequeue, struct Qdisc *sch)
{
	struct sk_buff *skb = NULL;
	u32 i, s = 0, q = 0;
	struct queue *queue;
	struct slot *slot;
	struct held *top;
	s64 now;

	if (!sch->q.qlen)
		return NULL;
	if (st.express)
		return express_take(sch);
	now = bpf_ktime_get_ns();
	if (st.heap_len)
		release_due(now);
	if (st.line_free_ns > now) {
		bpf_qdisc_watchdog_schedule(sch, st.line_free_ns, 0);
		return NULL;
	}
	if (step(now, &s, &q) && !s) { /* mostly the first queue has a head that may go */
		bpf_for(i, 0, 4 * (FIRST_FLOW + ONR_MAX_FLOWS)) {
			if (!step(now, &s, &q) || s)
				break;
		}
	}
	slot = slot_at(s);
	queue = queue_at(q);
	if (!s || !slot || !queue) {
		top = held_at(0);
		if (st.heap_len && top)
			bpf_qdisc_watchdog_schedule(sch, top->until_ns, 0);
		return NULL;
	}

	st.last_ns = now;
	queue->head = slot->next;
	queue->packets--;
	queue->credit -= slot->bytes;
	sch->q.qlen--;
	sch->qstats.backlog -= slot->bytes;
	if (cfg.shape_ns_per_byte_q16)
		line_take(now, slot->bytes);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (cfg.paced && skb && slot->len)
		queue->paced_until_ns = next_by_pace(queue, skb, slot->bytes, now);
	slot_free(s, slot);
	if (skb)
		bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

/* ---- life cycle ---- */

SEC("struct_ops")
int BPF_PROG(edge_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	if (st.owner)
		return -16; /* EBUSY: two devices would share one state */
	st.owner = (u64)sch;
	sch->limit = cfg.limit_packets;
	return 0;
}

static void queue_clear(u32 q, s64 now)
{
	struct queue *queue = queue_at(q);
	struct onr_ctl *ctl = q >= FIRST_FLOW ? ctl_of(q) : NULL;

	if (!queue)
		return;
	queue->head = 0;
	queue->packets = 0;
	queue->state = QUEUE_IDLE;
	queue->hold_start_ns = 0;
	queue->idle_since_ns = now;
	if (ctl)
		ctl->held = 0;
}

SEC("struct_ops")
void BPF_PROG(edge_reset, struct Qdisc *sch)
{
	s64 now = bpf_ktime_get_ns();
	u32 i;

	if (st.owner != (u64)sch)
		return;
	bpf_for(i, 0, st.slots_used + 1) {
		struct slot *slot = slot_at(i);
		struct sk_buff *skb = NULL;

		if (!slot)
			break;
		skb = bpf_kptr_xchg(&slot->skb, skb);
		if (skb)
			bpf_kfree_skb(skb);
	}
	bpf_for(i, 1, FIRST_FLOW + st.flows_used)
		queue_clear(i, now);
	st.fresh.head = 0;
	st.old.head = 0;
	st.free_slot = 0;
	st.slots_used = 0;
	st.heap_len = 0;
	st.express = 0;
	st.line_free_ns = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops")
void BPF_PROG(edge_destroy, struct Qdisc *sch)
{
	if (st.owner == (u64)sch)
		st.owner = 0;
}

/* The daemon gives each device its own id before loading (struct_ops names are global). */
SEC(".struct_ops.link")
struct Qdisc_ops edge = {
	.enqueue = (void *)edge_enqueue,
	.dequeue = (void *)edge_dequeue,
	.init = (void *)edge_init,
	.reset = (void *)edge_reset,
	.destroy = (void *)edge_destroy,
	.id = "onramp",
};
