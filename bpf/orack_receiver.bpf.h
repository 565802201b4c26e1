/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_receiver.bpf.h: a sampled segment arrives, waits for a pure ACK of its flow, and a clone becomes
 * the OR-ACK (orack.bpf.c says how). */
#ifndef ONR_ORACK_RECEIVER_BPF_H
#define ONR_ORACK_RECEIVER_BPF_H

#include "orack_wire.bpf.h"

#define DSCP_MASK 0xfc

/* Samples that wait for the next pure ACK of their flow; by a hash of the flow, the newest wins.
 * Writer: ingress. Reader: egress. */
#define PENDING 1024
#define RARE_ACKS 16 /* samples that go without, once one has found its predecessor still waiting */
struct pending {
	struct bpf_spin_lock lock;
	u16 full;
	u16 rare; /* so many samples do not wait */
	s64 since_mono_ns;
	struct sample sample;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PENDING);
	__type(key, u32);
	__type(value, struct pending);
} pendings SEC(".maps");

/* How many pendings are full: egress looks for pure ACKs only while there are some. Devices share it, as they
 * share pendings: ACKs may leave by another than the data came in. */
volatile u32 waiting SEC(".data.shared");
#define LONGEST_HEADERS                                                                            \
	(sizeof(struct ethhdr) + MOST_TAGS * TAG_BYTES + sizeof(struct ipv6hdr) + 60)

/* Set when another program keeps ours from making OR-ACKs. Writers: send_clone, daemon (back to 0). */
volatile u32 muted SEC(".data.muted");

/* ---- receiver: hosts that refuse OR-ACKs ---- */

#define DEAF_NS NSEC_PER_SEC /* one OR-ACK a second finds out when it has an agent */

/* Until when a host is sent no OR-ACKs, because it has answered one with "port unreachable": it runs no
 * agent. Writer and reader: orack. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct onr_addr);
	__type(value, s64);
} deaf SEC(".maps");

s64 deaf_until_ns SEC(".data.shared"); /* the latest of them */

static __always_inline bool is_deaf(const struct onr_addr *addr, s64 now)
{
	const s64 *until;

	if (now >= deaf_until_ns)
		return false;
	until = bpf_map_lookup_elem(&deaf, addr);
	if (!until || now >= *until)
		return false;
	count(ONR_CNT_oracks_unwanted);
	return true;
}

static __always_inline void orack_refused(const struct onr_addr *by)
{
	s64 until = (s64)bpf_ktime_get_ns() + DEAF_NS;

	bpf_map_update_elem(&deaf, by, &until, BPF_ANY);
	deaf_until_ns = until;
	count(ONR_CNT_oracks_refused);
}

struct icmp_start {
	u8 type;
	u8 code;
	u8 rest[6];
};
struct refused4 {
	struct icmp_start icmp;
	struct iphdr ip;
	struct udphdr udp;
};
struct refused6 {
	struct icmp_start icmp;
	struct ipv6hdr ip;
	struct udphdr udp;
};

static __always_inline bool is_orack_port(const struct udphdr *udp)
{
	return udp->source == bpf_htons(ONR_ORACK_PORT) && udp->dest == bpf_htons(ONR_ORACK_PORT);
}

/* An ICMP message. Does its sender say that nobody listens there for the OR-ACK of ours that it quotes? */
static __always_inline void icmp_arrives(struct __sk_buff *ctx, const struct packet *p)
{
	const void *end = (const void *)(long)ctx->data_end;
	struct onr_addr by, own;

	addresses(p, &by, &own);
	if (p->ip6) {
		const struct refused6 *m = p->l4;

		if (p->protocol == IPPROTO_ICMPV6 && (const void *)(m + 1) <= end &&
		    m->icmp.type == 1 && m->icmp.code == 4 && m->ip.nexthdr == IPPROTO_UDP &&
		    is_orack_port(&m->udp) &&
		    m->ip.daddr.in6_u.u6_addr32[3] == by.word[3] &&
		    m->ip.saddr.in6_u.u6_addr32[3] == own.word[3])
			orack_refused(&by);
	} else {
		const struct refused4 *m = p->l4;

		if (p->protocol == IPPROTO_ICMP && (const void *)(m + 1) <= end &&
		    m->icmp.type == 3 && m->icmp.code == 3 && m->ip.protocol == IPPROTO_UDP &&
		    m->ip.ihl == 5 && is_orack_port(&m->udp) && m->ip.daddr == by.word[3] &&
		    m->ip.saddr == own.word[3])
			orack_refused(&by);
	}
}

/* ---- receiver: a sampled segment has arrived ---- */

/* The clone carries these in cb: mark, the sample, whether it is already directed at the sender. */
enum { CB_MARK, CB_SEQ, CB_LEN, CB_RX_HI, CB_RX_LO };
/* CB_LEN: the length, the DSCP of the data, and whether the clone is a pure ACK, which is directed
 * at the sender already. */
#define LEN_BYTES 0x00ffffffu
#define LEN_DSCP_SHIFT 22
#define LEN_IS_ACK 0x80000000u

/* Clones that our egress program has seen on this processor: it counts each as sent or unsent. */
static __always_inline u64 clones_seen(void)
{
	const u64 *sent = counter(ONR_CNT_oracks_sent), *unsent = counter(ONR_CNT_oracks_unsent);

	return sent && unsent ? *sent + *unsent : 0;
}

/* Sends a clone of ctx out of this device; egress makes it the OR-ACK before bpf_clone_redirect returns. If
 * egress has not seen it, a program before ours has ended the chain, and the clone, a stranger's copy of
 * data, is on its way. Then no other is sent until the daemon has put ours in front again. */
static __always_inline void send_clone(struct __sk_buff *ctx, const struct sample *s, u32 is_ack)
{
	u32 mark = ctx->mark;
	u64 seen = clones_seen();
	long error;

	if (muted) {
		count(ONR_CNT_oracks_muted);
		return;
	}
	ctx->cb[CB_MARK] = ONR_MARK_ORACK;
	ctx->cb[CB_SEQ] = s->seq;
	ctx->cb[CB_LEN] = (s->len & LEN_BYTES) | s->dscp << LEN_DSCP_SHIFT | is_ack;
	ctx->cb[CB_RX_HI] = (u64)s->rx_fleet_ns >> 32;
	ctx->cb[CB_RX_LO] = (u32)s->rx_fleet_ns;
	ctx->mark = ONR_MARK_ORACK;
	error = bpf_clone_redirect(ctx, ctx->ifindex, 0);
	if (error >= 0 && clones_seen() == seen) {
		muted = 1;
		count(ONR_CNT_oracks_intercepted);
	} else if (error) {
		count(ONR_CNT_oracks_unsent);
	}
	ctx->mark = mark;
	ctx->cb[CB_MARK] = 0;
}

static __always_inline struct pending *pending_of(const struct onr_tuple *f)
{
	u32 h = f->saddr.word[3] * 0x9e3779b1u ^ f->daddr.word[3] * 0x85ebca6bu ^
		((u32)f->sport << 16 | f->dport) * 0xc2b2ae35u;
	u32 slot = (h >> 20 ^ h) % PENDING;

	return bpf_map_lookup_elem(&pendings, &slot);
}

/* Will TCP take this segment to an address? Its connection ends in this host and has room for the segment. So
 * a router makes no OR-ACKs for others, and who guesses addresses and ports obtains none. Of connections
 * that end in pods behind this host only the address is known. */
static __always_inline bool believed(struct __sk_buff *ctx, const struct packet *p,
				     const struct segment *segment, const struct onr_addr *to)
{
	struct bpf_sock_tuple tuple;
	const struct tcp_sock *receiver;
	struct bpf_sock *sk;
	bool believed = false;
	u32 room, bytes;

	bytes = socket_tuple(p, &tuple);
	sk = bpf_skc_lookup_tcp(ctx, &tuple, bytes, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return is_served(to);
	receiver = (const struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (receiver) {
		room = receiver->rcv_nxt + receiver->rcv_wnd;
		believed = onr_seq_before(segment->seq, room) &&
			   onr_seq_before(receiver->rcv_nxt, segment->seq + segment->len);
	}
	bpf_sk_release(sk);
	return believed;
}

static __always_inline void sampled(struct __sk_buff *ctx, const struct packet *packet,
				    const struct segment *segment)
{
	struct onr_clock_params clk;
	struct sample s = {
		.seq = onr_sampled_byte(segment->seq, segment->len, cfg.orack_every_bytes),
		.len = segment->len,
		.dscp = class_of(packet) & DSCP_MASK,
	};
	struct pending *p;
	bool waited, waits;
	s64 now;

	flow_of(packet, &s.flow);
	p = pending_of(&s.flow);
	/* Where the flow's last sample lies, its sender has been looked up. */
	if (!p || !(same_flow(&p->sample.flow, &s.flow) || known_peer(&s.flow.saddr)))
		return;
	now = bpf_ktime_get_ns();
	clock_read(&clk);
	if (clk.lease_expires_mono_ns <= now)
		return; /* an untrusted time is not sent */
	if (is_deaf(&s.flow.saddr, now) || !believed(ctx, packet, segment, &s.flow.daddr))
		return;
	s.rx_fleet_ns = now + onr_clock_offset(now, clk.offset_ns, clk.drift_q32,
					       clk.reference_mono_ns);
	bpf_spin_lock(&p->lock);
	waited = p->full;
	if (waited)
		p->rare = RARE_ACKS;
	waits = ctx->gso_segs > 1 || !p->rare;
	if (!waits)
		p->rare--;
	p->full = waits;
	p->since_mono_ns = now;
	p->sample = s;
	bpf_spin_unlock(&p->lock);
	if (waits != waited)
		__sync_fetch_and_add(&waiting, waits - waited);
	if (!waits)
		send_clone(ctx, &s, 0);
}

/* ---- receiver: a pure ACK of a flow with a pending sample leaves ---- */

static __always_inline void ack_leaves(struct __sk_buff *ctx)
{
	struct onr_tuple flow;
	struct packet packet;
	struct segment segment;
	struct pending *p;
	struct sample s;
	s64 since_ns;
	bool full;

	if (!parse_headers(ctx, &packet) || !segment_of(&packet, &segment) || segment.len ||
	    (segment.flags & (TCP_ACK | TCP_SYN | TCP_FIN | TCP_RST)) != TCP_ACK)
		return;
	flow_acked(&packet, &flow);
	p = pending_of(&flow);
	if (!p || !p->full)
		return;
	bpf_spin_lock(&p->lock);
	full = p->full && same_flow(&p->sample.flow, &flow);
	if (full) {
		s = p->sample;
		since_ns = p->since_mono_ns;
		p->full = 0;
	}
	bpf_spin_unlock(&p->lock);
	if (!full)
		return;
	__sync_fetch_and_add(&waiting, -1);
	/* After a delayed ACK the queue is another: the sender would pause for one that has gone. */
	if ((s64)bpf_ktime_get_ns() - since_ns > cfg.law.max_pause_ns) {
		count(ONR_CNT_oracks_unsent);
		return;
	}
	send_clone(ctx, &s, LEN_IS_ACK);
}

/* ---- receiver: the clone becomes the OR-ACK ---- */

/* ONR_TCX_DROP only our own clone, when it cannot be made into an OR-ACK. */
static __noinline int make_orack(struct __sk_buff *ctx)
{
	u32 len = ctx->cb[CB_LEN];
	struct sample s = {
		.seq = ctx->cb[CB_SEQ],
		.len = len & LEN_BYTES,
		.dscp = len >> LEN_DSCP_SHIFT & DSCP_MASK,
		.rx_fleet_ns = (u64)ctx->cb[CB_RX_HI] << 32 | ctx->cb[CB_RX_LO],
	};
	bool is_ack = len & LEN_IS_ACK;
	struct packet p;

	if (!parse_headers(ctx, &p) || p.protocol != IPPROTO_TCP)
		goto fail;
	if (is_ack)
		flow_acked(&p, &s.flow);
	else
		flow_of(&p, &s.flow);
	if (!write_orack(ctx, &p, &s, is_ack))
		goto fail;
	ctx->mark = 0;
	count(ONR_CNT_oracks_sent);
	return ONR_TCX_PASS;
fail:
	count(ONR_CNT_oracks_unsent);
	return ONR_TCX_DROP;
}

#endif
