/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* edge.bpf.c: the On-Ramp qdisc: enqueue, dequeue and life cycle. A packet waits in the FIFO of its flow
 * (flows.bpf.h); schedule.bpf.h chooses the flow that sends next, by round robin or after a hold. A segment
 * is stamped and recorded when it is dequeued.
 * Reads cfg, clock; creates and recycles ctls and flow_ids (whose law state orack.bpf.c updates);
 * writes counters and peers. Only TCP segments with data are ever held; what cannot be tracked
 * passes through hashed queues like any other traffic and is counted.
 *
 * Its state is guarded by the lock of one qdisc: a device has one loaded instance, or one for each transmit
 * queue. These share the flow table and everything else that maps.bpf.h declares. */
#include "flows.bpf.h"
#include "packet.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_STOLEN 0x10000

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

static __always_inline void given_to_nic(u32 bytes)
{
	onr_nic_gets(&cfg.law, &st.nic, onr_nic_on_wire(bytes));
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
		given_to_nic(qdisc_cb(skb)->pkt_len);
		sch->qstats.backlog -= qdisc_cb(skb)->pkt_len;
		bpf_qdisc_bstats_update(sch, skb);
	}
	return skb;
}

static __always_inline u32 bucket_of(struct sk_buff *skb)
{
	return 1 + bpf_skb_get_hash(skb) % ONR_BUCKETS;
}

/* Is it a TCP segment that stays in order with its flow's others: with payload, or FIN, or RST? A pure ACK
 * leaves early. */
static __always_inline bool stays_in_order(const struct packet *p, struct segment *seg)
{
	return segment_of(p, seg) && (seg->len || seg->flags & TCP_ENDS);
}

/* Is this host the sender, or does it speak for the sender? Else it forwards a stranger's flow. */
static __always_inline bool is_ours(const struct sk_buff *skb, const struct onr_tuple *flow)
{
	return skb->sk || is_served(&flow->saddr);
}

/* The queue for such a segment. Sets seg->len to 0 when the law does not see it. */
static __always_inline u32 classify(struct sk_buff *skb, const struct packet *p,
				    struct segment *seg)
{
	struct onr_tuple flow;
	u32 q;

	flow_of(p, &flow);
	q = flow_find(&flow, skb->hash);
	if (q)
		return q;
	/* The end of a flow that is not held here, or not a flow between this host and a peer. */
	if (!seg->len || !is_ours(skb, &flow) || !is_peer(&flow.daddr))
		goto unseen;
	q = flow_create(skb, &flow, bpf_ktime_get_ns());
	if (q)
		return q;
	count(ONR_CNT_flow_table_full);
unseen:
	seg->len = 0;
	return bucket_of(skb);
}

/* ---- enqueue ---- */

/* Has TCP made it as a pure ACK? It says so by a size that no other packet has (skb_set_tcp_pure_ack). */
static __always_inline bool is_pure_ack(const struct sk_buff *skb)
{
	return skb->truesize == 2;
}

/* Is it a packet that the data path has sent to itself? */
static __always_inline bool is_own(const struct sk_buff *skb)
{
	u32 mark = skb->mark;

	return (mark == ONR_MARK_KICK || mark == ONR_MARK_ORACK) && *(u32 *)qdisc_cb(skb)->data == mark;
}

SEC("struct_ops")
int BPF_PROG(edge_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct segment seg = {}; /* without flags: no TCP */
	struct packet packet;
	struct onr_tuple flow;
	struct slot *slot;
	enum onr_counter full = ONR_CNT_limit_drops;
	struct queue *queue;
	u32 s, q, bytes;
	s64 at;

	if (is_own(skb)) { /* a kick's work is done: the dequeue follows */
		if (skb->mark == ONR_MARK_ORACK) /* egress has not made one of it: it is a copy of somebody's packet */
			count(ONR_CNT_oracks_strayed);
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_SUCCESS | NET_XMIT_STOLEN;
	}
	if (sch->q.qlen >= sch->limit)
		goto drop;
	if (is_pure_ack(skb) && express_open(sch)) /* the usual packet of a receiver is not even parsed */
		return express_put(skb, sch, to_free);
	bytes = qdisc_cb(skb)->pkt_len;
	if (parse_skb(skb, &packet) && stays_in_order(&packet, &seg)) {
		q = classify(skb, &packet, &seg);
		at = q < FIRST_FLOW ? send_at(skb, bytes) : skb->tstamp;
	} else {
		if (seg.flags & TCP_SYN) {
			flow_of(&packet, &flow);
			flow_restart(&flow);
		}
		at = seg.flags ? 0 : send_at(skb, bytes); /* ACKs do not wait for the pace of data */
		if (!at && express_open(sch))
			return express_put(skb, sch, to_free);
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

	slot->bytes = bytes;
	slot->seq = seg.seq;
	slot->len = seg.len;
	slot->ends = seg.flags & TCP_ENDS;
	slot->send_at_ns = at;
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);

	queue->packets++;
	queue_put(q, queue, s, slot);
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

/* A flow that may leave earlier than the heap says is looked at now. */
static void look_again(u32 q)
{
	struct queue *queue = queue_at(q);

	if (!queue || queue->state != QUEUE_HELD)
		return;
	if (heap_push(0, q)) {
		queue->until_ns = 0;
		count(ONR_CNT_kicks);
	}
}

/* Global as step() is. */
__noinline int look_at_kicked(void)
{
	u32 i, queue = cfg.queue, next;
	struct onr_kicks *all = bpf_map_lookup_elem(&kicks, &queue);

	if (!all)
		return 0;
	bpf_spin_lock(&all->lock);
	next = all->first;
	all->first = 0;
	bpf_spin_unlock(&all->lock);
	bpf_for(i, 0, ONR_MAX_FLOWS) {
		u32 id = next - 1;
		struct onr_ctl *ctl = next ? bpf_map_lookup_elem(&ctls, &id) : NULL;

		if (!ctl)
			break;
		next = ctl->next_kick;
		bpf_spin_lock(&ctl->lock);
		ctl->kicked = 0;
		bpf_spin_unlock(&ctl->lock);
		look_again(FIRST_FLOW + id);
	}
	return 0;
}

static __always_inline void take_kicks(void)
{
	u32 queue = cfg.queue;
	const struct onr_kicks *all = bpf_map_lookup_elem(&kicks, &queue);

	if (all && all->first)
		look_at_kicked();
}

/* Returns at the time that the heap says. A kick may run another transmit queue's qdisc instead: the kernel
 * chooses the queue of a packet. So this one looks every KICK_POLL_NS. */
#define KICK_POLL_NS 100000
static __always_inline void watch_heap(struct Qdisc *sch, s64 now)
{
	const struct held *top = held_at(0);
	s64 at;

	if (!st.heap_len || !top)
		return;
	at = top->until_ns;
	if (cfg.queues > 1)
		at = onr_min(at, now + KICK_POLL_NS);
	bpf_qdisc_watchdog_schedule(sch, at, 0);
}

/* What does the driver have of this transmit queue? Without BQL it does not say. */
static __always_inline void look_at_nic(const struct Qdisc *sch, s64 now)
{
	u32 given_bytes = 0, sent_bytes = 0;

	if (bpf_core_field_exists(struct netdev_queue, dql)) {
		given_bytes = sch->dev_queue->dql.num_queued;
		sent_bytes = sch->dev_queue->dql.num_completed;
	}
	onr_nic_look(&cfg.law, &st.nic, now, given_bytes, sent_bytes);
	if (cfg.shape_ahead_ns && st.line_free_ns > st.nic.free_mono_ns)
		st.nic.free_mono_ns = st.line_free_ns; /* the line that we emulate */
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(edge_dequeue, struct Qdisc *sch)
{
	struct sk_buff *skb = NULL;
	struct queue *queue;
	struct slot *slot;
	u32 i, q, s;
	s64 now;

	if (!sch->q.qlen)
		return NULL;
	if (st.express)
		return express_take(sch);
	now = bpf_ktime_get_ns();
	take_kicks(); /* always: what is held from now on must not be in the list */
	if (st.heap_len)
		release_due(now);
	if (st.line_free_ns > now + cfg.shape_ahead_ns) {
		bpf_qdisc_watchdog_schedule(sch, st.line_free_ns - cfg.shape_ahead_ns, 0);
		return NULL;
	}
	look_at_nic(sch, now);
	q = step(now);
	if (q == MOVED_ON) { /* mostly the first queue has a head that may go */
		bpf_for(i, 0, 4 * (FIRST_FLOW + ONR_MAX_FLOWS)) {
			q = step(now);
			if (q != MOVED_ON)
				break;
		}
	}
	queue = queue_at(q);
	s = queue ? queue->head : 0;
	slot = slot_at(s);
	if (!q || !queue || !s || !slot) {
		watch_heap(sch, now);
		return NULL;
	}

	st.last_ns = now;
	queue->head = slot->next;
	queue->packets--;
	queue->credit -= slot->bytes;
	sch->q.qlen--;
	sch->qstats.backlog -= slot->bytes;
	given_to_nic(slot->bytes);
	if (cfg.shape_ns_per_byte_q16)
		line_take(now, slot->bytes);
	if (slot->ends && q >= FIRST_FLOW)
		flow_ends(q, queue, now);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (cfg.paced && skb && slot->len)
		keep_pace(queue, skb, slot->bytes, slot->send_at_ns, now);
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
	if (ctl && ctl->held_in == cfg.queue)
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
	bpf_for(i, 1, FIRST_FLOW + cfg.max_flows)
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
