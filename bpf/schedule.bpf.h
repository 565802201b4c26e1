/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* schedule.bpf.h: which packet leaves next. Deficit round robin over the queues, with new and old ones as
 * in sch_fq. A queue whose head the law or TCP's pace lets go later waits in the heap. Private to
 * edge.bpf.c, under the lock of one qdisc. */
#ifndef ONR_SCHEDULE_BPF_H
#define ONR_SCHEDULE_BPF_H

#include "queues.bpf.h"

#define REFILL_NS 40000000ll /* an idle flow earns new credit after this, as in sch_fq */
#define DUE_BATCH 64	     /* held flows released in one dequeue */
#define HORIZON_NS (10 * NSEC_PER_SEC) /* a departure time further ahead is no time of our clock, as in sch_fq */
#define NS_PER_S 1000000000ull

/* ---- holding ---- */

static void account_hold(struct onr_ctl *ctl, struct queue *queue, s64 now)
{
	s64 held_ns = now - queue->hold_start_ns;
	struct onr_addr addr = ctl->key.daddr;
	struct onr_peer *peer = bpf_map_lookup_elem(&peers, &addr);

	queue->hold_start_ns = 0;
	queue->released_ns = now;
	queue->was_held = 1;
	count_hold(held_ns);
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

/* The head leaves now: under the lock, the law counts and records it. Its stamp is the time at which the NIC
 * sends it: what waits behind the qdisc is no delay of the network. */
static __always_inline void record(struct onr_ctl *ctl, const struct slot *slot, s64 now)
{
	s64 leaves_ns = cfg.stamps_at_qdisc ? now : st.nic.free_mono_ns;

	onr_records_sent(&cfg.law, &ctl->law, &ctl->records, now, leaves_ns, slot->seq, slot->len,
			 cfg.orack_every_bytes);
	ctl->last_ns = now;
}

static __always_inline void count_nic_wait(s64 now)
{
	s64 wait_ns = st.nic.free_mono_ns - now;

	if (wait_ns <= 0)
		return;
	count(ONR_CNT_nic_waits);
	count_add(ONR_CNT_nic_wait_ns, wait_ns);
	count_max(ONR_CNT_nic_wait_max_ns, wait_ns);
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
	if (!until) {
		count_nic_wait(now);
		return 0;
	}

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
	if (ctl->held_in != cfg.queue)
		ctl->kicked = 0; /* it may be in the list of a queue that does not run again */
	ctl->held = 1;
	ctl->held_in = cfg.queue;
	ctl->held_until_ns = until;
	bpf_spin_unlock(&ctl->lock);
	return true;
}

/* Takes a packet that may leave only later out of its bucket, whose others go on. False: heap full. */
static bool packet_park(u32 q, struct queue *queue, u32 s, struct slot *slot)
{
	u64 order = st.order++ & 0x7fffffff;

	if (!heap_push(slot->send_at_ns, ONE_PACKET | order << 32 | s))
		return false;
	queue->head = slot->next;
	slot->next = q;
	slot->since_ns = slot->send_at_ns;
	slot->send_at_ns = 0;
	return true;
}

static void packet_due(u32 s)
{
	struct slot *slot = slot_at(s);
	struct queue *queue = slot ? queue_at(slot->next) : NULL;

	if (queue)
		queue_put(slot->next, queue, s, slot);
}

static void queue_due(u32 q, s64 until_ns)
{
	struct queue *queue = queue_at(q);
	struct onr_ctl *ctl = ctl_of(q);

	if (!queue || !ctl || queue->state != QUEUE_HELD || queue->until_ns != until_ns)
		return;
	queue->state = QUEUE_LISTED;
	ctl->held = 0;
	list_append(&st.old, q, queue);
}

/* Lists the queues and packets that are due. Global as step() is. */
__noinline int release_due(s64 now)
{
	u32 i;

	bpf_for(i, 0, DUE_BATCH) {
		struct held *top = held_at(0);

		if (!st.heap_len || !top || top->until_ns > now)
			break;
		if (top->what & ONE_PACKET)
			packet_due(top->what);
		else
			queue_due(top->what, top->until_ns);
		heap_pop();
	}
	return 0;
}

/* The time before which the packet's sender does not want it to leave, or 0 if it cannot mean that. */
static __always_inline s64 departure(const struct slot *slot, s64 now)
{
	if (slot->send_at_ns - now <= HORIZON_NS)
		return slot->send_at_ns;
	count(ONR_CNT_departures_ignored);
	return 0;
}

/* ---- round robin ---- */

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

/* Has the head of a queue waited for too long? A wait for a time that its sender wants, for its pace or for the law is
 * none. */
static __always_inline bool is_late(struct queue *queue, const struct slot *head, s64 now)
{
	const struct slot *next = slot_at(head->next);
	bool stands = head->next && next && (next->next || next->bytes > cfg.quantum_bytes / 2);
	s64 since_ns = head->since_ns;

	if (queue->hold_start_ns)
		return false;
	if (since_ns < head->send_at_ns)
		since_ns = head->send_at_ns;
	if (since_ns < queue->paced_until_ns)
		since_ns = queue->paced_until_ns;
	if (since_ns < queue->released_ns)
		since_ns = queue->released_ns;
	return codel_drops(&queue->codel, now - since_ns, stands, now);
}

/* For how many rounds a queue without credit gets it now: where it is the only one listed, for all that it needs. */
static __always_inline u32 rounds_of(const struct list *l, const struct queue *queue)
{
	bool others = queue->next || (l != &st.old && st.old.head) || (l == &st.fresh && st.fresh_unconnected.head);
	u32 owes_bytes = -queue->credit;

	return others ? 1 : 1 + owes_bytes / cfg.quantum_bytes;
}

/* One step of the round robin. Returns the queue whose head goes now; MOVED_ON if one queue has moved on
 * instead; MOVED_ON and the queue whose head is to be dropped (CoDel); 0 when no listed queue is left. Global,
 * because the verifier then checks it once; a static function it checks anew for each state of each caller. It
 * takes no pointer into the caller's stack, because following that took the verifier most of a daemon's start. */
#define MOVED_ON 0x80000000u
__noinline u32 step(s64 now)
{
	struct list *l = st.fresh.head ? &st.fresh : st.fresh_unconnected.head ? &st.fresh_unconnected : &st.old;
	bool fresh = l != &st.old;
	u32 q = l->head;
	struct queue *queue = queue_at(q);
	struct onr_ctl *ctl;
	struct slot *slot;
	s64 until;
	u32 next, s;

	if (!q || !queue)
		return 0;
	if (queue->idle_since_ns) {
		if (now - queue->idle_since_ns > REFILL_NS && queue->credit < (s32)cfg.quantum_bytes)
			queue->credit = cfg.quantum_bytes;
		queue->idle_since_ns = 0;
	}
	s = queue->head;
	if (queue->credit <= 0 && s) {
		queue->credit += cfg.quantum_bytes * rounds_of(l, queue);
		l->head = queue->next;
		list_append(&st.old, q, queue);
		return MOVED_ON;
	}
	slot = slot_at(s);
	if (!s || !slot) {
		l->head = queue->next;
		queue_emptied(q, queue, fresh, now);
		return MOVED_ON;
	}
	until = slot->send_at_ns > now ? departure(slot, now) : 0;
	if (q < FIRST_FLOW && until && packet_park(q, queue, s, slot))
		return MOVED_ON;
	ctl = q >= FIRST_FLOW && slot->len ? ctl_of(q) : NULL;
	if (ctl) {
		next = queue->next;
		if (until < queue->paced_until_ns)
			until = queue->paced_until_ns;
		if (until > now && queue_park(q, queue, until)) {
			l->head = next;
			return MOVED_ON;
		}
	}
	if (cfg.codel_target_ns && is_late(queue, slot, now))
		return MOVED_ON | q;
	if (ctl) {
		until = hold_until(ctl, slot, now);
		if (until && queue_hold(q, queue, ctl, until, now)) {
			l->head = next;
			return MOVED_ON;
		}
		if (queue->hold_start_ns)
			account_hold(ctl, queue, now);
	}
	return q;
}

/* ---- pace and shape ---- */

/* A segment leaves: when may the next, so that what has waited while the law held the flow does not leave as one burst?
 * At TCP's pace, which counts payload. What is within the flow's credit is not spaced, nor what comes after the flow had
 * nothing left: TCP spaces that by itself (pace.bpf.c). Nor what TCP does not space at all: its congestion control would
 * take the spacing for the path's. */
static __always_inline void keep_pace(struct queue *queue, const struct sk_buff *skb, u32 len, s64 now)
{
	const struct sock *sk = skb->sk;
	u64 rate;

	if (!queue->was_held || !sk || sk->sk_pacing_status == SK_PACING_NONE) {
		queue->paced_until_ns = 0;
		queue->unspaced_bytes = 0;
		return;
	}
	queue->unspaced_bytes += len;
	if (!queue->head)
		queue->was_held = 0;
	if (queue->credit > 0)
		return;
	rate = sk->sk_pacing_rate;
	queue->paced_until_ns = now + (rate ? onr_min(queue->unspaced_bytes * NS_PER_S / rate, NS_PER_S) : 0);
	queue->unspaced_bytes = 0;
}

/* When packets of sockets with a pace may leave, of those that do not say so in the packet. Writer and reader:
 * edge. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, s64);
} paces SEC(".maps");

/* Is it more than the stub of a connection that begins or has ended? */
static __always_inline bool is_full(const struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;

	return state != STATE_TIME_WAIT && state != STATE_NEW_SYN_RECV;
}

/* Has the socket asked for a pace that nobody else keeps? TCP that does not say so (NONE) must not be spaced: its
 * congestion control would take the spacing for the path's. */
static __always_inline bool asks_for_pace(const struct sock *sk)
{
	if (!sk || !is_full(sk) || sk->sk_pacing_rate + 1 <= 1) /* 0 and ~0 are none */
		return false;
	switch (sk->sk_pacing_status) {
	case SK_PACING_NONE:
		return false;
	case SK_PACING_NEEDED:
		return sk->sk_protocol != IPPROTO_TCP;
	default:
		return true;
	}
}

/* When a packet that the law does not see may leave: the time in the packet, or the socket's pace. 0: now. */
static __always_inline s64 send_at(const struct sk_buff *skb, u32 bytes)
{
	const struct sock *sk = skb->sk;
	s64 now, at, after, *next;
	u64 id = (u64)sk;

	if (skb->tstamp)
		return skb->tstamp;
	if (!asks_for_pace(sk))
		return 0;
	now = bpf_ktime_get_ns();
	next = bpf_map_lookup_elem(&paces, &id);
	at = next && *next > now ? *next : now;
	after = at + bytes * NS_PER_S / sk->sk_pacing_rate;
	bpf_map_update_elem(&paces, &id, &after, BPF_ANY);
	return at;
}

/* With shaping, the time when the line is free again; up to two quanta may catch up on lateness. */
static __always_inline void line_take(s64 now, u32 bytes)
{
	s64 slack = ((u64)cfg.quantum_bytes * cfg.shape_ns_per_byte_q16) >> 16;

	if (st.line_free_ns < now - slack)
		st.line_free_ns = now - slack;
	st.line_free_ns += ((u64)bytes * cfg.shape_ns_per_byte_q16) >> 16;
}

#endif
