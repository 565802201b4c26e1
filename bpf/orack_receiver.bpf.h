/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_receiver.bpf.h: a sampled segment arrives, waits for a pure ACK of its flow, and a clone becomes
 * the OR-ACK (orack.bpf.c says how). */
#ifndef ONR_ORACK_RECEIVER_BPF_H
#define ONR_ORACK_RECEIVER_BPF_H

#include "orack_arrivals.bpf.h"
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
	forget_source(by);
	count(ONR_CNT_oracks_refused);
}

#define ICMP_BYTES 8 /* of an ICMP message before its quote */

/* Does an ICMP message say that a port is unreachable? */
static __always_inline bool is_refusal(const struct packet *p)
{
	const u8 *type_and_code = p->l4;

	if (p->ip6)
		return p->protocol == IPPROTO_ICMPV6 && type_and_code[0] == 1 && type_and_code[1] == 4;
	return p->protocol == IPPROTO_ICMP && type_and_code[0] == 3 && type_and_code[1] == 3;
}

/* What an ICMP message quotes, and the clock. One element. Writer and reader: orack. It has no room on the stack, where
 * the largest program and the tag lie above it. */
struct refusal {
	struct datagram quoted;
	struct sample sample;
	struct onr_clock_params clk;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct refusal);
} refusals SEC(".maps");

/* An ICMP message. Does its sender refuse an OR-ACK of ours, which it quotes whole, as Linux does? Any process of this
 * host can have its own datagrams refused, but none can sign them, and an OR-ACK that somebody has seen is soon too old.
 * The tag tells also from whom it was, and to whom. A function, because of the room on the stack. */
static __noinline void icmp_arrives(struct __sk_buff *ctx)
{
	u32 zero = 0;
	struct refusal *r = bpf_map_lookup_elem(&refusals, &zero);
	s64 now = bpf_ktime_get_ns();
	struct packet p;

	if (!r || !parse_headers(ctx, &p) || !is_refusal(&p) ||
	    bpf_skb_load_bytes(ctx, p.l3_at + 2 * p.header_len + ICMP_BYTES, &r->quoted, sizeof(r->quoted)))
		return;
	addresses(&p, &r->sample.flow.saddr, &r->sample.flow.daddr);
	read_orack(&r->quoted.orack, &r->sample);
	clock_read(&r->clk);
	if (r->quoted.udp.dest == bpf_htons(ONR_ORACK_PORT) && has_our_form(&r->quoted.udp, &r->quoted.orack) &&
	    r->clk.lease_expires_mono_ns > now && is_fresh(now, fleet_ahead(&r->clk, now), r->sample.rx_fleet_ns) &&
	    is_signed(&r->quoted.orack, &r->sample))
		orack_refused(&r->sample.flow.saddr);
}

/* ---- receiver: a sampled segment has arrived ---- */

/* Sends a clone of ctx out of this device; egress makes it the OR-ACK before bpf_clone_redirect returns. If
 * egress has not seen it, a program before ours has ended the chain, and the clone, a stranger's copy of
 * data, is on its way to edge, which drops it. Then no other is sent until the daemon has put ours in front again. */
static __always_inline void send_clone(struct __sk_buff *ctx, const struct sample *s, u32 is_ack)
{
	struct own_clone *own = own_clone_now();
	long error;

	if (muted || !own) {
		count(ONR_CNT_oracks_muted);
		return;
	}
	own->sample = *s;
	own->is_ack = is_ack;
	own->len = ctx->len;
	own->ifindex = ctx->ifindex;
	mark_own(ctx, OWN_CLONE);
	error = bpf_clone_redirect(ctx, ctx->ifindex, 0);
	if (error >= 0 && own->ifindex) {
		muted = 1;
		count(ONR_CNT_oracks_intercepted);
	} else if (error) {
		count(ONR_CNT_oracks_unsent);
	}
	own->ifindex = 0;
	unmark_own(ctx);
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

/* Has IPsec decrypted it on this device? The packet inside a tunnel comes a second time, and an OR-ACK would say in
 * clear what ESP hides. A device of IPsec's own (xfrm, vti) has no link header and would encrypt it. */
static __always_inline bool was_encrypted(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = NULL;

	if (!cfg.link_bytes || !bpf_ksym_exists(bpf_cast_to_kern_ctx) ||
	    !bpf_core_enum_value_exists(enum skb_ext_id, SKB_EXT_SEC_PATH) ||
	    !bpf_core_field_exists(skb->active_extensions))
		return false;
	skb = bpf_cast_to_kern_ctx(ctx);
	return skb->active_extensions & 1u << bpf_core_enum_value(enum skb_ext_id, SKB_EXT_SEC_PATH);
}

static __always_inline void sampled(struct __sk_buff *ctx, const struct packet *packet,
				    const struct segment *segment)
{
	struct onr_clock_params clk;
	struct sample s = {
		.seq = onr_sampled_byte(segment->seq, segment->len, cfg.orack_every_bytes),
		.len = segment->len > 0xffff ? 0xffff : segment->len,
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
	if (was_encrypted(ctx) || is_deaf(&s.flow.saddr, now) || !believed(ctx, packet, segment, &s.flow.daddr))
		return;
	s.rx_fleet_ns = now + fleet_ahead(&clk, now);
	s.hint = count_sample(&s.flow, now);
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
	send_clone(ctx, &s, 1);
}

/* ---- receiver: the clone becomes the OR-ACK ---- */

/* Our own clone, which has no socket as what this host sends has. */
static __always_inline bool is_own_clone(const struct __sk_buff *ctx)
{
	const struct own_clone *own = ctx->sk ? NULL : own_clone_now();

	return own && own->ifindex == ctx->ifindex && own->len == ctx->len;
}

/* ONR_TCX_DROP only our own clone, when it cannot be made into an OR-ACK. */
static __noinline int make_orack(struct __sk_buff *ctx)
{
	struct own_clone *own = own_clone_now();
	struct packet p;

	if (!own)
		return ONR_TCX_NEXT;
	own->ifindex = 0;
	unmark_own(ctx);
	if (!parse_headers(ctx, &p) || p.protocol != IPPROTO_TCP ||
	    !write_orack(ctx, &p, &own->sample, own->is_ack)) {
		count(ONR_CNT_oracks_unsent);
		return ONR_TCX_DROP;
	}
	ctx->mark = 0;
	count(ONR_CNT_oracks_sent);
	return ONR_TCX_PASS;
}

#endif
