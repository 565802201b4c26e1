/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* packet.bpf.h: what the qdisc reads of a packet: is it a TCP segment with data, of which flow.
 * Headers are read in place (bpf_rdonly_cast: faulting loads yield 0), so a lying offset is harmless. */
#ifndef ONR_PACKET_BPF_H
#define ONR_PACKET_BPF_H

#include "kernel.bpf.h"
#include "abi.h"

#define IP_FRAGMENT 0x3fff /* more-fragments flag and fragment offset */

/* skb->mark of packets that the data path sends to itself, and the first word of their cb. An
 * application needs CAP_NET_ADMIN to set a mark; both words must match. */
#define ONR_MARK_ORACK 0x4f524143u /* a clone that egress turns into an OR-ACK */
#define ONR_MARK_KICK 0x4f524b49u  /* a used OR-ACK that asks the qdisc to look at a flow again */

struct segment {
	struct onr_tuple key;
	u32 seq;
	u32 len; /* bytes of payload */
	bool fin;
};

#define HEADER(skb, offset, type)                                                                  \
	((struct type *)bpf_rdonly_cast((skb)->head + (offset), bpf_core_type_id_kernel(struct type)))

static __always_inline void map_ipv4(u32 *to, __be32 addr)
{
	to[0] = 0;
	to[1] = 0;
	to[2] = bpf_htonl(0xffff);
	to[3] = addr;
}

static __always_inline struct qdisc_skb_cb *qdisc_cb(const struct sk_buff *skb)
{
	return (struct qdisc_skb_cb *)skb->cb;
}

static __always_inline bool same_flow(const struct onr_tuple *a, const struct onr_tuple *b)
{
	const u32 *x = (const u32 *)a, *y = (const u32 *)b;
	u32 differ = 0;

	for (int i = 0; i < (int)(sizeof(*a) / 4); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* True for a TCP segment with payload or FIN: what On-Ramp may hold. A pure ACK leaves early. */
static __always_inline bool parse_segment(struct sk_buff *skb, struct segment *seg)
{
	u32 l3 = skb->network_header, l4 = l3, headers;
	bool ip6 = skb->protocol == bpf_htons(ETH_P_IPV6);
	struct ipv6hdr *v6 = HEADER(skb, l3, ipv6hdr);
	struct iphdr *v4 = HEADER(skb, l3, iphdr);
	struct tcphdr *tcp;

	if (ip6) {
		if (v6->nexthdr != IPPROTO_TCP)
			return false;
		l4 += sizeof(*v6);
	} else {
		if (skb->protocol != bpf_htons(ETH_P_IP) || v4->protocol != IPPROTO_TCP ||
		    v4->frag_off & bpf_htons(IP_FRAGMENT))
			return false;
		l4 += v4->ihl * 4;
	}

	tcp = HEADER(skb, l4, tcphdr);
	headers = l4 - skb->mac_header + tcp->doff * 4;
	seg->len = skb->len > headers ? skb->len - headers : 0;
	seg->fin = tcp->fin;
	if (!seg->len && !seg->fin)
		return false;

	seg->seq = bpf_ntohl(tcp->seq);
	seg->key.sport = tcp->source;
	seg->key.dport = tcp->dest;
	if (ip6) {
		for (int i = 0; i < 4; i++) {
			seg->key.saddr[i] = v6->saddr.in6_u.u6_addr32[i];
			seg->key.daddr[i] = v6->daddr.in6_u.u6_addr32[i];
		}
	} else {
		map_ipv4(seg->key.saddr, v4->saddr);
		map_ipv4(seg->key.daddr, v4->daddr);
	}
	return true;
}

#endif
