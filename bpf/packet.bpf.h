/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* packet.bpf.h: the only parser of packet headers. Finds the IP header and TCP's or UDP's behind it
 * (struct packet), and reads their fields (struct segment, flow_of, class_of). Decides nothing.
 *
 * A view defines how a program reads a packet's bytes and where the network header begins: a tcx program has
 * the frame (frame_view), a qdisc the sk_buff (skb_view). skip_tags moves the view behind VLAN tags in the
 * frame; a tag in metadata changes nothing. Devices without a link header (IP in IP, WireGuard) begin with the
 * network header. What the parser does not know (IPv6 extension headers, fragments, tunnels: their own
 * devices show the packets inside) passes as other traffic does. */
#ifndef ONR_PACKET_BPF_H
#define ONR_PACKET_BPF_H

#include "kernel.bpf.h"
#include "abi.h"

#define IP_FRAGMENT 0x3fff /* more-fragments flag and fragment offset */
#define SHORTEST_L4 20	   /* a TCP header; an OR-ACK is longer */
#define MOST_TAGS 2
#define TAG_BYTES 4

enum { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_ENDS = TCP_FIN | TCP_RST, TCP_ACK = 0x10 };

struct view {
	const void *bytes;
	const void *end; /* of what may be read; unused in an sk_buff */
	bool in_skb;	 /* a constant, so that each program has the code for its own view only */
	__be16 protocol; /* EtherType of the network header */
	u32 l3;		 /* offset of the network header in bytes */
	u32 l3_len;	 /* from there to the end of the packet */
};

/* Where the headers are. */
struct packet {
	const void *l3; /* struct ipv6hdr if ip6, else struct iphdr */
	const void *l4; /* its first SHORTEST_L4 bytes may be read */
	bool ip6;
	u8 protocol;	/* IPPROTO_TCP or another; IPv6 extension headers are not skipped */
	u32 header_len; /* from l3 to l4 */
	u32 len;	/* from l3 to the end of the packet, padding of short frames included */
	u32 l3_at;	/* offset of l3 in the frame (sk_buff: from head) */
};

/* The fields of a TCP header. */
struct segment {
	u32 seq;
	u32 len; /* bytes of payload */
	u8 flags;
};

/* A header at an offset of a view, or NULL. In an sk_buff loads that fault yield 0, so a lying offset is
 * harmless. */
#define HEADER(view, offset, len, type)                                                            \
	((const struct type *)header_at(view, offset, len, bpf_core_type_id_kernel(struct type)))

static __always_inline const void *header_at(const struct view *v, u32 offset, u32 len, u32 btf_id)
{
	const void *header = v->bytes + offset;

	if (v->in_skb)
		return bpf_rdonly_cast(header, btf_id);
	return header + len > v->end ? NULL : header;
}

static __always_inline bool is_tag(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* The last two bytes of a tag are an EtherType, as those of an Ethernet header are. */
static __always_inline bool skip_tags(struct view *v)
{
	for (int i = 0; i < MOST_TAGS && is_tag(v->protocol); i++) {
		const struct ethhdr *eth =
			HEADER(v, v->l3 + TAG_BYTES - sizeof(*eth), sizeof(*eth), ethhdr);

		if (!eth)
			return false;
		v->protocol = eth->h_proto;
		v->l3 += TAG_BYTES;
		v->l3_len -= TAG_BYTES;
	}
	return true;
}

static __always_inline const struct ethhdr *ethernet_of(const struct __sk_buff *ctx)
{
	const struct ethhdr *eth = (const void *)(long)ctx->data;

	return (const void *)(eth + 1) > (const void *)(long)ctx->data_end ? NULL : eth;
}

/* link_bytes: length of the device's link header, ETH_HLEN or 0. */
static __always_inline bool frame_view(const struct __sk_buff *ctx, u32 link_bytes, struct view *v)
{
	const struct ethhdr *eth;

	v->bytes = (const void *)(long)ctx->data;
	v->end = (const void *)(long)ctx->data_end;
	v->in_skb = false;
	if (!link_bytes) {
		v->protocol = ctx->protocol;
		v->l3 = 0;
		v->l3_len = ctx->len;
		return true;
	}
	eth = ethernet_of(ctx);
	if (!eth)
		return false;
	v->protocol = eth->h_proto;
	v->l3 = sizeof(*eth);
	v->l3_len = ctx->len - sizeof(*eth);
	return skip_tags(v);
}

static __always_inline void skb_view(const struct sk_buff *skb, struct view *v)
{
	v->bytes = skb->head;
	v->end = NULL;
	v->in_skb = true;
	v->protocol = skb->protocol;
	/* Before a tag in the frame the kernel's network header is that of the tag or of IP, by its origin. */
	v->l3 = is_tag(v->protocol) ? skb->mac_header + ETH_HLEN : skb->network_header;
	v->l3_len = skb->len - (v->l3 - skb->mac_header);
	skip_tags(v);
}

/* Finds the headers behind v->l3. Does not check lengths: segment_of and l4_len do. */
static __always_inline bool find_headers(const struct view *v, struct packet *p)
{
	if (v->protocol == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = HEADER(v, v->l3, sizeof(*ip), iphdr);

		if (!ip)
			return false;
		p->l3 = ip;
		p->ip6 = false;
		p->protocol = ip->protocol;
		p->header_len = ip->ihl * 4;
	} else if (v->protocol == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = HEADER(v, v->l3, sizeof(*ip), ipv6hdr);

		if (!ip)
			return false;
		p->l3 = ip;
		p->ip6 = true;
		p->protocol = ip->nexthdr;
		p->header_len = sizeof(*ip);
	} else {
		return false;
	}
	p->len = v->l3_len;
	p->l3_at = v->l3;
	p->l4 = HEADER(v, v->l3 + p->header_len, SHORTEST_L4, tcphdr);
	return p->l4 != NULL;
}

static __always_inline bool parse_frame(const struct __sk_buff *ctx, u32 link_bytes, struct packet *p)
{
	struct view v;

	return frame_view(ctx, link_bytes, &v) && find_headers(&v, p);
}

static __always_inline bool parse_skb(const struct sk_buff *skb, struct packet *p)
{
	struct view v;

	skb_view(skb, &v);
	return find_headers(&v, p);
}

/* Bytes from l4 to the end of the IP packet. 0: a fragment, or a length that cannot be. */
static __always_inline u32 l4_len(const struct packet *p)
{
	u32 total;

	if (p->ip6) {
		total = bpf_ntohs(((const struct ipv6hdr *)p->l3)->payload_len);
		if (total)
			total += p->header_len;
	} else {
		const struct iphdr *ip = p->l3;

		if (ip->frag_off & bpf_htons(IP_FRAGMENT))
			return 0;
		total = bpf_ntohs(ip->tot_len);
	}
	if (!total) /* GSO and GRO beyond 64 KB */
		total = p->len;
	return total > p->len || total < p->header_len ? 0 : total - p->header_len;
}

/* A TCP packet whose headers are the usual ones: no tag in the frame, no options of IPv4. */
struct usual_tcp {
	u32 seq;
	u32 from; /* the last word of the source's address, as it is in the packet */
};

/* False: another packet, or its headers do not lie together; parse_frame finds what it is. */
static __always_inline bool usual_tcp_of(const struct __sk_buff *ctx, u32 link_bytes, struct usual_tcp *u)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const void *l3 = link_bytes ? data + sizeof(struct ethhdr) : data;
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	const struct tcphdr *tcp;
	__be16 protocol;

	if (l3 + sizeof(*ip4) + SHORTEST_L4 > end)
		return false;
	protocol = link_bytes ? ((const struct ethhdr *)data)->h_proto : ctx->protocol;
	if (protocol == bpf_htons(ETH_P_IP) && ip4->ihl * 4 == sizeof(*ip4) && ip4->protocol == IPPROTO_TCP) {
		tcp = l3 + sizeof(*ip4);
		u->from = ip4->saddr;
	} else if (protocol == bpf_htons(ETH_P_IPV6) && ip6->nexthdr == IPPROTO_TCP) {
		tcp = l3 + sizeof(*ip6);
		if ((const void *)tcp + SHORTEST_L4 > end)
			return false;
		u->from = ip6->saddr.in6_u.u6_addr32[3];
	} else {
		return false;
	}
	u->seq = bpf_ntohl(tcp->seq);
	return true;
}

/* False: not a whole TCP segment. */
static __always_inline bool segment_of(const struct packet *p, struct segment *s)
{
	const struct tcphdr *tcp = p->l4;
	u32 len = l4_len(p), header = tcp->doff * 4;

	if (p->protocol != IPPROTO_TCP || !len || len < header)
		return false;
	s->seq = bpf_ntohl(tcp->seq);
	s->len = len - header;
	s->flags = ((const u8 *)tcp)[13];
	return true;
}

static __always_inline void map_ipv4(struct onr_addr *to, __be32 addr)
{
	to->word[0] = 0;
	to->word[1] = 0;
	to->word[2] = bpf_htonl(0xffff);
	to->word[3] = addr;
}

/* Source and destination, IPv4 mapped. */
static __always_inline void addresses(const struct packet *p, struct onr_addr *from,
				      struct onr_addr *to)
{
	if (p->ip6) {
		const struct ipv6hdr *ip = p->l3;

		for (int i = 0; i < 4; i++) {
			from->word[i] = ip->saddr.in6_u.u6_addr32[i];
			to->word[i] = ip->daddr.in6_u.u6_addr32[i];
		}
	} else {
		const struct iphdr *ip = p->l3;

		map_ipv4(from, ip->saddr);
		map_ipv4(to, ip->daddr);
	}
}

/* The flow of a TCP segment, as its sender sees it. */
static __always_inline void flow_of(const struct packet *p, struct onr_tuple *flow)
{
	const struct tcphdr *tcp = p->l4;

	addresses(p, &flow->saddr, &flow->daddr);
	flow->sport = tcp->source;
	flow->dport = tcp->dest;
}

/* The flow that a TCP segment acknowledges: it runs the other way. */
static __always_inline void flow_acked(const struct packet *p, struct onr_tuple *flow)
{
	const struct tcphdr *tcp = p->l4;

	addresses(p, &flow->daddr, &flow->saddr);
	flow->sport = tcp->dest;
	flow->dport = tcp->source;
}

/* What a lookup of the socket that receives a TCP packet needs. The result is the length of the tuple in bytes. */
static __always_inline u32 socket_tuple(const struct packet *p, struct bpf_sock_tuple *tuple)
{
	const struct tcphdr *tcp = p->l4;

	if (p->ip6) {
		const struct ipv6hdr *ip = p->l3;

		__builtin_memcpy(tuple->ipv6.saddr, &ip->saddr, sizeof(ip->saddr));
		__builtin_memcpy(tuple->ipv6.daddr, &ip->daddr, sizeof(ip->daddr));
		tuple->ipv6.sport = tcp->source;
		tuple->ipv6.dport = tcp->dest;
		return sizeof(tuple->ipv6);
	} else {
		const struct iphdr *ip = p->l3;

		tuple->ipv4.saddr = ip->saddr;
		tuple->ipv4.daddr = ip->daddr;
		tuple->ipv4.sport = tcp->source;
		tuple->ipv4.dport = tcp->dest;
		return sizeof(tuple->ipv4);
	}
}

/* Type of service or traffic class. */
static __always_inline u8 class_of(const struct packet *p)
{
	if (p->ip6)
		return bpf_ntohl(*(const __be32 *)p->l3) >> 20;
	return ((const struct iphdr *)p->l3)->tos;
}

static __always_inline bool same_flow(const struct onr_tuple *a, const struct onr_tuple *b)
{
	const u32 *x = (const u32 *)a, *y = (const u32 *)b;
	u32 differ = 0;

	for (int i = 0; i < (int)(sizeof(*a) / 4); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

#endif
