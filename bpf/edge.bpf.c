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

/* ---- buckets: queues of what is never held ----
 *
 * A flow has one of WAYS buckets, chosen by its hash, while packets of it wait. If others have all of them, it shares its
 * first one, until that is empty. Flows of connected sockets have the second half of the buckets, as sch_fq gives them
 * queues apart from the rest, whose sender can have as many flows as there are ports; and new ones of them go first. */
#define WAYS 8
#define SETS_OF_HALF (ONR_BUCKETS / 2 / WAYS)
#define FRESH_QUANTA 5 /* of a new flow: sch_fq's initial quantum is 10 MTU */

static __always_inline bool is_in_use(const struct queue *queue)
{
	return queue->packets || queue->state != QUEUE_IDLE;
}

/* The bucket of a flow among those from `first` on: the one that it has, else the shared one, else one that is free,
 * `home` before others, else `home`. Global as step() is. */
__noinline u32 bucket_among(u32 first, u32 home, u32 owner)
{
	struct queue *queue = queue_at(home);
	bool home_is_shared, home_is_free;
	u32 i, free = 0;

	if (!queue)
		return home;
	home_is_free = !is_in_use(queue);
	home_is_shared = !home_is_free && queue->shared;
	bpf_for(i, 0, WAYS) {
		queue = queue_at(first + i);
		if (!queue)
			break;
		if (!is_in_use(queue))
			free = first + i;
		else if (queue->owner == owner)
			return first + i;
	}
	return home_is_shared || home_is_free || !free ? home : free;
}

static __always_inline bool is_connected(const struct sock *sk)
{
	u8 state = sk ? sk->__sk_common.skc_state : STATE_CLOSE;

	return state != STATE_CLOSE && state != STATE_LISTEN && state != STATE_TIME_WAIT &&
	       state != STATE_NEW_SYN_RECV;
}

/* A flow that has had no packet of late takes a bucket: nothing of the one before stays but what it owes. */
static __always_inline void bucket_begin(struct queue *queue, u32 owner)
{
	struct codel fresh = {};

	if (!queue->owner)
		queue->credit = FRESH_QUANTA * cfg.quantum_bytes;
	queue->owner = owner;
	queue->shared = 0;
	queue->codel = fresh;
}

/* The bucket of a packet's flow. Mostly the flow has, or can have, the one that its hash names. */
static __always_inline u32 bucket_of(struct sk_buff *skb)
{
	u32 hash = bpf_skb_get_hash(skb), spread = hash * 0x9e3779b1u; /* a NIC's hash has chosen the transmit queue, too */
	u32 set = (spread >> 16) % SETS_OF_HALF + (is_connected(skb->sk) ? SETS_OF_HALF : 0);
	u32 first = 1 + set * WAYS, home = first + (spread >> 8) % WAYS, owner = hash | 1, q = home;
	struct queue *queue = queue_at(home);

	if (!queue)
		return home;
	if (!is_in_use(queue) || queue->owner != owner || queue->shared) {
		q = bucket_among(first, home, owner);
		queue = queue_at(q);
		if (queue && !is_in_use(queue))
			bucket_begin(queue, owner);
		else if (queue && queue->owner != owner)
			queue->shared = 1;
	}
	return q;
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

/* Lengths of kicks from the network header on: they were OR-ACKs over IPv4 or IPv6. */
#define OF_OUR_FORM(header) (sizeof(header) + sizeof(struct udphdr) + sizeof(struct onr_orack))

/* Is it a kick whose cb another program has written over? */
static __always_inline bool is_altered_kick(const struct sk_buff *skb)
{
	u32 len = skb->len - cfg.link_bytes;
	const struct iphdr *ip;

	if (len != OF_OUR_FORM(struct iphdr) && len != OF_OUR_FORM(struct ipv6hdr))
		return false;
	ip = bpf_rdonly_cast(skb->head + skb->mac_header + cfg.link_bytes, bpf_core_type_id_kernel(struct iphdr));
	if (ip->saddr != (u32)cfg.own_secret || ip->daddr != (u32)(cfg.own_secret >> 32))
		return false;
	count(ONR_CNT_kicks_altered);
	return true;
}

/* Is it a packet that the data path has sent to itself? It ends here: a kick's work is done, because the dequeue
 * follows; of a clone, a copy of somebody's packet, egress has made no OR-ACK. */
static __always_inline bool is_own(const struct sk_buff *skb)
{
	const u32 *cb = (const u32 *)qdisc_cb(skb)->data;

	if (skb->sk)
		return false;
	if (cb[CB_SECRET_LOW] != (u32)cfg.own_secret || cb[CB_SECRET_HIGH] != (u32)(cfg.own_secret >> 32))
		return is_altered_kick(skb);
	if (cb[CB_KIND] == OWN_CLONE)
		count(ONR_CNT_oracks_strayed);
	return true;
}

/* Most packets of a queue. */
static __always_inline u32 most_packets(u32 q)
{
	return q < FIRST_FLOW ? cfg.bucket_limit_packets : cfg.flow_limit_packets;
}

SEC("struct_ops")
int BPF_PROG(edge_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	struct segment seg = {}; /* without flags: no TCP */
	struct packet packet;
	struct onr_tuple flow;
	bool in_order;
	struct slot *slot;
	enum onr_counter full = ONR_CNT_limit_drops;
	struct queue *queue;
	u32 s, q, bytes;
	s64 at;

	if (is_own(skb)) {
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_SUCCESS | NET_XMIT_STOLEN;
	}
	if (sch->q.qlen >= sch->limit)
		goto drop;
	if (is_pure_ack(skb) && express_open(sch)) /* the usual packet of a receiver is not even parsed */
		return express_put(skb, sch, to_free);
	bytes = qdisc_cb(skb)->pkt_len;
	in_order = parse_skb(skb, &packet) && stays_in_order(&packet, &seg);
	if (seg.flags & TCP_SYN) { /* it may carry data (TCP Fast Open) */
		flow_of(&packet, &flow);
		flow_restart(&flow);
	}
	if (in_order) {
		q = classify(skb, &packet, &seg);
		at = q < FIRST_FLOW ? send_at(skb, bytes) : skb->tstamp;
	} else {
		at = seg.flags ? 0 : send_at(skb, bytes); /* ACKs do not wait for the pace of data */
		if (!at && express_open(sch))
			return express_put(skb, sch, to_free);
		seg.len = 0;
		q = bucket_of(skb);
	}
	queue = queue_at(q);
	if (queue && queue->packets >= most_packets(q)) {
		full = ONR_CNT_flow_limit_drops;
		goto drop;
	}
	if (queue && queue->packets >= sch->limit - sch->q.qlen) /* no more than there is room for besides: new flows find some */
		goto drop;
	s = slot_alloc();
	slot = slot_at(s);
	if (!queue || !slot || !s)
		goto drop;

	slot->bytes = bytes;
	slot->seq = seg.seq;
	slot->len = seg.len;
	slot->ends = seg.flags & TCP_ENDS;
	slot->send_at_ns = at;
	if (cfg.codel_target_ns)
		slot->since_ns = bpf_ktime_get_ns();
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

/* Takes the head out of a queue. */
static __always_inline void take_head(struct Qdisc *sch, struct queue *queue, const struct slot *head)
{
	queue->head = head->next;
	queue->packets--;
	sch->q.qlen--;
	sch->qstats.backlog -= head->bytes;
}

/* Drops the head of a queue. */
static void drop_head(struct Qdisc *sch, u32 q)
{
	struct queue *queue = queue_at(q);
	u32 s = queue ? queue->head : 0;
	struct slot *slot = slot_at(s);
	struct sk_buff *skb = NULL;

	if (!queue || !s || !slot)
		return;
	take_head(sch, queue, slot);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	slot_free(s, slot);
	if (skb)
		bpf_kfree_skb(skb);
	sch->qstats.drops++;
	count(ONR_CNT_codel_drops);
}

/* The queue whose head goes now; 0 if there is none. */
static __always_inline u32 next_queue(struct Qdisc *sch, s64 now)
{
	u32 i, q = step(now);

	if (q < MOVED_ON) /* mostly the first queue has a head that may go */
		return q;
	bpf_for(i, 0, 4 * (FIRST_FLOW + ONR_MAX_FLOWS)) {
		if (q < MOVED_ON)
			break;
		if (q != MOVED_ON)
			drop_head(sch, q & ~MOVED_ON);
		q = step(now);
	}
	return q < MOVED_ON ? q : 0;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(edge_dequeue, struct Qdisc *sch)
{
	struct sk_buff *skb = NULL;
	struct queue *queue;
	struct slot *slot;
	u32 q, s;
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
	q = next_queue(sch, now);
	queue = queue_at(q);
	s = queue ? queue->head : 0;
	slot = slot_at(s);
	if (!q || !queue || !s || !slot) {
		watch_heap(sch, now);
		return NULL;
	}

	st.last_ns = now;
	take_head(sch, queue, slot);
	queue->credit -= slot->bytes;
	given_to_nic(slot->bytes);
	if (cfg.shape_ns_per_byte_q16)
		line_take(now, slot->bytes);
	if (slot->ends && q >= FIRST_FLOW)
		flow_ends(q, queue, now);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (cfg.paced && skb && slot->len)
		keep_pace(queue, skb, slot->len, now);
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
	st.fresh_unconnected.head = 0;
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
