/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_common.bpf.h: what both ends of an OR-ACK need: keys, peers, the tag. */
#ifndef ONR_ORACK_COMMON_BPF_H
#define ONR_ORACK_COMMON_BPF_H

#include "maps.bpf.h"
#include "packet.bpf.h"
#include "siphash.bpf.h"

/* Where the network header of a frame is: its offset, its EtherType from bit 32 on; all ones: not found. Global, so
 * that the verifier follows each number of VLAN tags here and nowhere else. */
__noinline u64 network_header(struct __sk_buff *ctx)
{
	struct view v;

	if (!frame_view(ctx, cfg.link_bytes, &v))
		return ~0ull;
	return (u64)v.protocol << 32 | v.l3;
}

static __always_inline bool parse_headers(struct __sk_buff *ctx, struct packet *p)
{
	u64 where = network_header(ctx);
	struct view v = {
		.bytes = (const void *)(long)ctx->data,
		.end = (const void *)(long)ctx->data_end,
		.protocol = where >> 32,
		.l3 = where & 0x1f,
	};

	v.l3_len = ctx->len - v.l3;
	return where != ~0ull && find_headers(&v, p);
}

static __always_inline void mark_own(struct __sk_buff *ctx, enum own_kind kind)
{
	ctx->cb[CB_SECRET_LOW] = cfg.own_secret;
	ctx->cb[CB_SECRET_HIGH] = cfg.own_secret >> 32;
	ctx->cb[CB_KIND] = kind;
}

static __always_inline void unmark_own(struct __sk_buff *ctx)
{
	ctx->cb[CB_SECRET_LOW] = 0;
	ctx->cb[CB_SECRET_HIGH] = 0;
}

#define UDP_BYTES (sizeof(struct udphdr) + sizeof(struct onr_orack))

/* By key id. Writer: daemon. Reader: orack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ONR_KEYS);
	__type(key, u32);
	__type(value, struct onr_key);
} keys SEC(".maps");

/* T to a peer, ns, by its address; used if the configuration says that T is the peer's. Flows to a peer
 * without an entry are not held. Writer: daemon. Reader: orack. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ONR_MAX_PEERS);
	__type(key, struct onr_addr);
	__type(value, u32);
} thresholds SEC(".maps");

/* The tag of an OR-ACK covers all of its fields except the scratch of the checksum. */
static __noinline u64 tag_of(const struct sample *s, u32 key_id, const struct onr_key *key)
{
	const u32 *from = s->flow.saddr.word, *to = s->flow.daddr.word;
	bool ip4 = from[2] == bpf_htonl(0xffff) && !from[0] && !from[1];
	u64 words[ONR_SIPHASH_WORDS] = {
		(u64)from[0] << 32 | from[1],
		(u64)from[2] << 32 | from[3],
		(u64)to[0] << 32 | to[1],
		(u64)(ip4 ? from[3] : to[2]) << 32 | to[3],
		(u64)s->flow.sport << 48 | (u64)s->flow.dport << 32 | s->seq,
		(u64)s->hint << 48 | (u64)s->len << 32 | key_id << 16 | ONR_ORACK_VERSION,
		s->rx_fleet_ns,
	};

	return siphash(key->k0, key->k1, words, ip4 ? 3 : 0); /* IPv4 addresses are one word */
}

static __always_inline const struct onr_key *key_of(u32 id)
{
	u32 slot = id % ONR_KEYS;
	struct onr_key *key = bpf_map_lookup_elem(&keys, &slot);

	return key && key->valid && id < ONR_KEYS ? key : NULL;
}

/* Fleet time less mono. */
static __always_inline s64 fleet_ahead(const struct onr_clock_params *clk, s64 now)
{
	return onr_clock_offset(now, clk->offset_ns, clk->drift_q32, clk->reference_mono_ns);
}

/* Is an arrival time of the fleet near our own time, ahead_ns before it? */
static __always_inline bool is_fresh(s64 now, s64 ahead_ns, s64 rx_fleet_ns)
{
	s64 age = onr_sub(onr_add(now, ahead_ns), rx_fleet_ns);

	return age <= cfg.orack_fresh_ns && age >= -cfg.orack_fresh_ns;
}

/* What an OR-ACK says. The addresses of s->flow are those of its packet. */
static __always_inline void read_orack(const struct onr_orack *o, struct sample *s)
{
	s->flow.sport = o->sport;
	s->flow.dport = o->dport;
	s->seq = bpf_ntohl(o->seq);
	s->hint = bpf_ntohs(o->hint);
	s->len = bpf_ntohs(o->len);
	s->rx_fleet_ns = (u64)bpf_ntohl(o->rx_fleet_hi_ns) << 32 | bpf_ntohl(o->rx_fleet_lo_ns);
}

static __always_inline bool has_our_form(const struct udphdr *udp, const struct onr_orack *o)
{
	return udp->len == bpf_htons(UDP_BYTES) && o->version == ONR_ORACK_VERSION && !o->flags;
}

/* Does a key of the fleet say that it was made by one of us? */
static __always_inline bool is_signed(const struct onr_orack *o, const struct sample *s)
{
	u32 id = bpf_ntohs(o->key_id);
	const struct onr_key *key = key_of(id);

	return key && tag_of(s, id, key) == o->tag;
}

#endif
