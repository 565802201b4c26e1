/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_common.bpf.h: what both ends of an OR-ACK need: configuration, keys, peers, headers of
 * packets, the tag. */
#ifndef ONR_ORACK_COMMON_BPF_H
#define ONR_ORACK_COMMON_BPF_H

#include "maps.bpf.h"
#include "packet.bpf.h"
#include "siphash.bpf.h"

#define UDP_BYTES (sizeof(struct udphdr) + sizeof(struct onr_orack))

struct onr_dev_cfg cfg SEC(".data.cfg");

struct key {
	u64 k0;
	u64 k1;
	u32 valid;
	u32 reserved;
};

/* By key id modulo ONR_KEYS. Writer: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_KEYS);
	__type(key, u32);
	__type(value, struct key);
} keys SEC(".maps");

/* Senders to whom we send OR-ACKs, and from whom we believe them. Writer: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct onr_prefix);
	__type(value, u32);
} prefixes SEC(".maps");

/* T to a peer, ns, by its address; read if the configuration says that T is the peer's. A peer that is
 * not here is not held for. Writer: daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32[4]);
	__type(value, u32);
} thresholds SEC(".maps");

/* What an OR-ACK is about: the data flow as its sender sees it, and the sample. */
struct sample {
	struct onr_tuple flow;
	u32 seq;
	u32 len;
	u32 dscp; /* of the data, where the type of service has it; the receiver alone knows */
	s64 rx_fleet_ns;
};

/* Where the headers of a TCP or UDP packet are. l4 is inside the linear part. */
struct headers {
	void *l3;
	void *l4;
	u32 ip6;
	u32 l4_bytes; /* from l4 to the end of the IP packet */
};

#define SHORTEST_L4 20

/* Ethernet, then IPv4 without options or IPv6 without extension headers. */
static __always_inline bool parse_headers(struct __sk_buff *ctx, u8 protocol, struct headers *h)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	u32 total;

	if (data + sizeof(*eth) + sizeof(struct iphdr) + SHORTEST_L4 > end)
		return false;
	h->l3 = data + sizeof(*eth);
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = h->l3;

		if (*(u8 *)ip != 0x45 || ip->protocol != protocol ||
		    ip->frag_off & bpf_htons(IP_FRAGMENT))
			return false;
		h->ip6 = 0;
		h->l4 = h->l3 + sizeof(*ip);
		total = bpf_ntohs(ip->tot_len);
		if (!total) /* GRO beyond 64 KB */
			total = ctx->len - sizeof(*eth);
		if (total < sizeof(*ip) || total > ctx->len - sizeof(*eth))
			return false;
		h->l4_bytes = total - sizeof(*ip);
		return true;
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = h->l3;

		if (data + sizeof(*eth) + sizeof(*ip) + SHORTEST_L4 > end || ip->nexthdr != protocol)
			return false;
		h->ip6 = 1;
		h->l4 = h->l3 + sizeof(*ip);
		total = bpf_ntohs(ip->payload_len);
		if (!total)
			total = ctx->len - sizeof(*eth) - sizeof(*ip);
		if (total > ctx->len - sizeof(*eth) - sizeof(*ip))
			return false;
		h->l4_bytes = total;
		return true;
	}
	return false;
}

/* Source address into a, destination into b, IPv4 mapped. */
static __always_inline void addresses(const struct headers *h, u32 *a, u32 *b)
{
	if (h->ip6) {
		const struct ipv6hdr *ip = h->l3;

		__builtin_memcpy(a, &ip->saddr, 16);
		__builtin_memcpy(b, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = h->l3;

		map_ipv4(a, ip->saddr);
		map_ipv4(b, ip->daddr);
	}
}

/* Type of service or traffic class. */
static __always_inline u8 class_of(const struct headers *h)
{
	if (h->ip6)
		return bpf_ntohl(*(const __be32 *)h->l3) >> 20;
	return ((const struct iphdr *)h->l3)->tos;
}

static __always_inline bool known_peer(const u32 *addr)
{
	struct onr_prefix key = { .bits = 128 };

	__builtin_memcpy(key.addr, addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&prefixes, &key) != NULL;
}

/* The tag of an OR-ACK: everything that it says but the checksum's scratch. */
static __always_inline u64 tag_of(const struct sample *s, u32 key_id, const struct key *key)
{
	const struct onr_tuple *f = &s->flow;
	struct siphash h;
	u32 words = 4;

	siphash_init(&h, key->k0, key->k1);
	if (f->saddr[2] == bpf_htonl(0xffff) && !f->saddr[0] && !f->saddr[1]) {
		siphash_word(&h, (u64)f->saddr[3] << 32 | f->daddr[3]);
	} else {
		siphash_word(&h, (u64)f->saddr[0] << 32 | f->saddr[1]);
		siphash_word(&h, (u64)f->saddr[2] << 32 | f->saddr[3]);
		siphash_word(&h, (u64)f->daddr[0] << 32 | f->daddr[1]);
		siphash_word(&h, (u64)f->daddr[2] << 32 | f->daddr[3]);
		words = 7;
	}
	siphash_word(&h, (u64)f->sport << 48 | (u64)f->dport << 32 | s->seq);
	siphash_word(&h, (u64)s->len << 32 | key_id << 16 | ONR_ORACK_VERSION);
	siphash_word(&h, s->rx_fleet_ns);
	return siphash_finish(&h, words);
}

static __always_inline const struct key *key_of(u32 id)
{
	u32 slot = id % ONR_KEYS;
	struct key *key = bpf_map_lookup_elem(&keys, &slot);

	return key && key->valid && id < ONR_KEYS ? key : NULL;
}

#endif
