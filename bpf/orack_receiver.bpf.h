/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_receiver.bpf.h: a sampled segment arrives, waits for a pure ACK of its flow, and a clone becomes
 * the OR-ACK (orack.bpf.c says how). */
#ifndef ONR_ORACK_RECEIVER_BPF_H
#define ONR_ORACK_RECEIVER_BPF_H

#include "orack_common.bpf.h"

#define CHECKSUM_PARTIAL 3
#define DSCP_MASK 0xfc
#define ECN_CE 3

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

/* How many pendings are full: egress looks for pure ACKs only while there are some. */
volatile u32 waiting;
#define LONGEST_ACK (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + 60)

/* ---- receiver: a sampled segment has arrived ---- */

/* The clone carries these in cb: mark, whether it is already directed at the sender, the sample. */
enum { CB_MARK, CB_SEQ, CB_LEN, CB_RX_HI, CB_RX_LO };
/* CB_LEN: the length, the DSCP of the data, and whether the clone is a pure ACK, which is directed
 * at the sender already. */
#define LEN_BYTES 0x00ffffffu
#define LEN_DSCP_SHIFT 22
#define LEN_IS_ACK 0x80000000u

/* Sends a clone of ctx out of this device; egress makes it the OR-ACK. */
static __always_inline void send_clone(struct __sk_buff *ctx, const struct sample *s, u32 is_ack)
{
	u32 mark = ctx->mark;

	ctx->cb[CB_MARK] = ONR_MARK_ORACK;
	ctx->cb[CB_SEQ] = s->seq;
	ctx->cb[CB_LEN] = (s->len & LEN_BYTES) | s->dscp << LEN_DSCP_SHIFT | is_ack;
	ctx->cb[CB_RX_HI] = (u64)s->rx_fleet_ns >> 32;
	ctx->cb[CB_RX_LO] = (u32)s->rx_fleet_ns;
	ctx->mark = ONR_MARK_ORACK;
	if (bpf_clone_redirect(ctx, ctx->ifindex, 0))
		count(ONR_CNT_oracks_unsent);
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

	if (!parse_frame(ctx, &packet) || !segment_of(&packet, &segment) || segment.len ||
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

/* An OR-ACK on the wire, built on the stack and stored in one call: a program that writes into
 * packets directly makes the kernel unshare every clone that passes it, all of TCP's data. The
 * padding aligns the words behind the Ethernet header. */
struct wire4 {
	u16 padding;
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct onr_orack orack;
};
struct wire6 {
	u16 padding;
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct udphdr udp;
	struct onr_orack orack;
};
#define WIRE4 (sizeof(struct wire4) - 2)
#define WIRE6 (sizeof(struct wire6) - 2)
_Static_assert(WIRE4 == 78, "an OR-ACK is 78 B on the wire (On-Ramp section 4.1)");
_Static_assert(WIRE6 == 98, "20 B more over IPv6");

/* One's complement sum of words, not folded. */
static __always_inline u64 csum_add(u64 sum, const void *words, u32 bytes)
{
	const u32 *w = words;

	for (u32 i = 0; i < bytes / 4; i++)
		sum += w[i];
	return sum;
}

static __always_inline u16 csum_fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* DSCP of the data, so that the OR-ACK shares its class; ECN as the clone has it, but a CE mark was
 * meant for the clone, not for us. */
static __always_inline u8 orack_class(u8 dscp, u8 clone)
{
	u8 ecn = clone & ECN_CE;

	return dscp | (ecn == ECN_CE ? 2 : ecn);
}

static __always_inline void ip4_header(struct iphdr *ip, u8 tos, __be32 from, __be32 to)
{
	*(u8 *)ip = 0x45;
	ip->tos = tos;
	ip->tot_len = bpf_htons(sizeof(*ip) + UDP_BYTES);
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000); /* DF */
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->check = 0;
	ip->saddr = from;
	ip->daddr = to;
	ip->check = ~csum_fold(csum_add(0, ip, sizeof(*ip)));
}

/* label: the first word of the clone's header, whose flow label stays. */
static __always_inline void ip6_header(struct ipv6hdr *ip, __be32 label, u8 tos,
				       const struct onr_addr *from, const struct onr_addr *to)
{
	*(__be32 *)ip = (label & bpf_htonl(0x000fffff)) | bpf_htonl(6u << 28 | (u32)tos << 20);
	ip->payload_len = bpf_htons(UDP_BYTES);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = 64;
	__builtin_memcpy(&ip->saddr, from, 16);
	__builtin_memcpy(&ip->daddr, to, 16);
}

/* Fills the UDP header and the payload. The UDP checksum is the constant 0xffff (a zero of one's
 * complement that is not "no checksum") and csum_scratch, where a TCP checksum would be, balances
 * it: a clone of a TCP packet may be CHECKSUM_PARTIAL, and then whoever completes it (a NIC, a
 * hypervisor) writes just there. */
static __always_inline bool fill_udp(struct udphdr *udp, struct onr_orack *o, const struct sample *s,
				     bool partial)
{
	u32 id = cfg.key_id;
	const struct onr_key *key = key_of(id);
	const struct onr_tuple *f = &s->flow;
	u64 pseudo;

	if (!key)
		return false;
	udp->source = bpf_htons(ONR_ORACK_PORT);
	udp->dest = bpf_htons(ONR_ORACK_PORT);
	udp->len = bpf_htons(UDP_BYTES);
	udp->check = 0xffff;
	o->version = ONR_ORACK_VERSION;
	o->flags = 0;
	o->key_id = bpf_htons(id);
	o->seq = bpf_htonl(s->seq);
	o->csum_scratch = 0;
	o->reserved = 0;
	o->sport = f->sport;
	o->dport = f->dport;
	o->len = bpf_htonl(s->len);
	o->rx_fleet_hi_ns = bpf_htonl((u64)s->rx_fleet_ns >> 32);
	o->rx_fleet_lo_ns = bpf_htonl((u32)s->rx_fleet_ns);
	o->tag = tag_of(s, id, key);

	/* Mapped IPv4 addresses add 2 * 0xffff, a zero of one's complement. */
	pseudo = csum_add(bpf_htons(UDP_BYTES) + bpf_htons(IPPROTO_UDP), &f->saddr, 32);
	if (partial)
		o->csum_scratch = csum_fold(pseudo);
	else
		o->csum_scratch = ~csum_fold(csum_add(csum_add(pseudo, udp, sizeof(*udp)), o,
						      sizeof(*o)));
	return true;
}

static __always_inline bool clone_is_partial(struct __sk_buff *ctx)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	return BPF_CORE_READ_BITFIELD(skb, ip_summed) == CHECKSUM_PARTIAL;
}

/* The clone's Ethernet header; turned round unless the clone is directed at the sender already. */
static __always_inline void eth_header(struct ethhdr *to, const struct packet *p, bool is_ack)
{
	const struct ethhdr *from = p->l3 - sizeof(*from);

	__builtin_memcpy(to->h_dest, is_ack ? from->h_dest : from->h_source, ETH_ALEN);
	__builtin_memcpy(to->h_source, is_ack ? from->h_source : from->h_dest, ETH_ALEN);
	to->h_proto = from->h_proto;
}

static __always_inline bool write_orack4(struct __sk_buff *ctx, const struct packet *p,
					 const struct sample *s, bool is_ack)
{
	struct wire4 w = {};

	eth_header(&w.eth, p, is_ack);
	ip4_header(&w.ip, orack_class(s->dscp, class_of(p)), s->flow.daddr.word[3],
		   s->flow.saddr.word[3]);
	return fill_udp(&w.udp, &w.orack, s, clone_is_partial(ctx)) &&
	       !bpf_skb_change_tail(ctx, WIRE4, 0) &&
	       !bpf_skb_store_bytes(ctx, 0, &w.eth, WIRE4, 0);
}

static __always_inline bool write_orack6(struct __sk_buff *ctx, const struct packet *p,
					 const struct sample *s, bool is_ack)
{
	struct wire6 w = {};

	eth_header(&w.eth, p, is_ack);
	ip6_header(&w.ip, *(const __be32 *)p->l3, orack_class(s->dscp, class_of(p)),
		   &s->flow.daddr, &s->flow.saddr);
	return fill_udp(&w.udp, &w.orack, s, clone_is_partial(ctx)) &&
	       !bpf_skb_change_tail(ctx, WIRE6, 0) &&
	       !bpf_skb_store_bytes(ctx, 0, &w.eth, WIRE6, 0);
}

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

	if (!parse_frame(ctx, &p) || p.protocol != IPPROTO_TCP)
		goto fail;
	if (is_ack)
		flow_acked(&p, &s.flow);
	else
		flow_of(&p, &s.flow);
	if (!(p.ip6 ? write_orack6(ctx, &p, &s, is_ack) : write_orack4(ctx, &p, &s, is_ack)))
		goto fail;
	ctx->mark = 0;
	count(ONR_CNT_oracks_sent);
	return ONR_TCX_PASS;
fail:
	count(ONR_CNT_oracks_unsent);
	return ONR_TCX_DROP;
}

#endif
