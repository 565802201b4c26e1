/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_wire.bpf.h: writes an OR-ACK into a clone of a TCP packet: headers and checksums. The clone's link header and
 * VLAN tags stay. */
#ifndef ONR_ORACK_WIRE_BPF_H
#define ONR_ORACK_WIRE_BPF_H

#include "orack_common.bpf.h"

#define CHECKSUM_PARTIAL 3
#define ECN_CE 3

/* An OR-ACK on the wire behind the link's header, built on the stack and stored: a program that
 * writes into packets directly makes the kernel unshare every clone that passes it, all of TCP's data. */
union ip_header {
	struct iphdr v4;
	struct ipv6hdr v6;
};
struct datagram {
	struct udphdr udp;
	struct onr_orack orack;
};
_Static_assert(ETH_HLEN + sizeof(struct iphdr) + sizeof(struct datagram) == 78,
	       "an OR-ACK is 78 B on the wire (On-Ramp section 4.1); over IPv6 20 B more");

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

/* Fills the UDP header and the payload. A clone of a TCP packet may be CHECKSUM_PARTIAL. Who completes it
 * then (a NIC, a hypervisor, the kernel) writes the complement of the sum into the place of a TCP
 * checksum, csum_scratch, or, if it goes by the protocol, into that of UDP's. Both hold the sum of the
 * pseudo header P before, so in both cases the whole adds up: the other P replaces the pseudo header's.
 * Without CHECKSUM_PARTIAL, csum_scratch balances the rest. */
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
	o->version = ONR_ORACK_VERSION;
	o->flags = 0;
	o->key_id = bpf_htons(id);
	o->seq = bpf_htonl(s->seq);
	o->csum_scratch = 0;
	o->reserved = 0;
	o->sport = f->sport;
	o->dport = f->dport;
	o->hint = bpf_htons(s->hint);
	o->len = bpf_htons(s->len);
	o->rx_fleet_hi_ns = bpf_htonl((u64)s->rx_fleet_ns >> 32);
	o->rx_fleet_lo_ns = bpf_htonl((u32)s->rx_fleet_ns);
	o->tag = tag_of(s, id, key);

	/* Mapped IPv4 addresses add 2 * 0xffff, a zero of one's complement. */
	pseudo = csum_add(bpf_htons(UDP_BYTES) + bpf_htons(IPPROTO_UDP), &f->saddr, 32);
	udp->check = csum_fold(pseudo);
	if (partial)
		o->csum_scratch = udp->check;
	else
		o->csum_scratch = ~csum_fold(csum_add(csum_add(pseudo, udp, sizeof(*udp)), o,
						      sizeof(*o)));
	return true;
}

/* Does a TCP packet hold the sum of its pseudo header instead of a checksum? Then it is CHECKSUM_PARTIAL; of
 * 65,536 complete checksums one looks the same. */
static __always_inline bool holds_pseudo_sum(const struct packet *p)
{
	const struct tcphdr *tcp = p->l4;
	struct onr_addr from, to;
	u64 sum = bpf_htons(l4_len(p)) + bpf_htons(IPPROTO_TCP);

	addresses(p, &from, &to);
	sum = csum_add(csum_add(sum, &from, sizeof(from)), &to, sizeof(to));
	return csum_fold(sum) == tcp->check;
}

/* Will a NIC, a hypervisor or the kernel complete the clone's checksum? */
static __always_inline bool clone_is_partial(struct __sk_buff *ctx, const struct packet *p)
{
	struct sk_buff *skb;

	if (!bpf_ksym_exists(bpf_cast_to_kern_ctx))
		return holds_pseudo_sum(p);
	skb = bpf_cast_to_kern_ctx(ctx);
	return BPF_CORE_READ_BITFIELD(skb, ip_summed) == CHECKSUM_PARTIAL;
}

/* Turns the Ethernet header round, if there is one. */
static __always_inline bool turn_round(struct __sk_buff *ctx)
{
	const struct ethhdr *from = ethernet_of(ctx);
	u8 addresses[2 * ETH_ALEN];

	if (!cfg.link_bytes)
		return true;
	if (!from)
		return false;
	__builtin_memcpy(addresses, from->h_source, ETH_ALEN);
	__builtin_memcpy(addresses + ETH_ALEN, from->h_dest, ETH_ALEN);
	return !bpf_skb_store_bytes(ctx, 0, addresses, sizeof(addresses), 0);
}

/* Writes the OR-ACK into the clone, behind what this has before its IP header. */
static __always_inline bool write_orack(struct __sk_buff *ctx, const struct packet *p,
					const struct sample *s, bool is_ack)
{
	u8 class = orack_class(s->dscp, class_of(p));
	u32 l3_at = p->l3_at, header_len;
	struct datagram d = {};
	union ip_header ip;

	if (p->ip6) {
		ip6_header(&ip.v6, *(const __be32 *)p->l3, class, &s->flow.daddr, &s->flow.saddr);
		header_len = sizeof(ip.v6);
	} else {
		ip4_header(&ip.v4, class, s->flow.daddr.word[3], s->flow.saddr.word[3]);
		header_len = sizeof(ip.v4);
	}
	return fill_udp(&d.udp, &d.orack, s, clone_is_partial(ctx, p)) &&
	       !bpf_skb_change_tail(ctx, l3_at + header_len + sizeof(d), 0) &&
	       !bpf_skb_store_bytes(ctx, l3_at, &ip, header_len, 0) &&
	       !bpf_skb_store_bytes(ctx, l3_at + header_len, &d, sizeof(d), 0) &&
	       (is_ack || turn_round(ctx));
}

#endif
