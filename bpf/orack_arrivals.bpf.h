/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_arrivals.bpf.h: what arrives on this device, counted for the 16 bits that its OR-ACKs carry (law/receiver.h).
 * Each processor counts by itself, and adds what it has to the device's counts with each sample. Counts only for a law
 * or a guard that uses the bits. */
#ifndef ONR_ORACK_ARRIVALS_BPF_H
#define ONR_ORACK_ARRIVALS_BPF_H

#include "orack_common.bpf.h"

#define ARRIVALS_BYTES 32768u /* a processor that sees no sample adds its bytes after so many */
#define SOURCE_BITS 4096u     /* hosts with On-Ramp, by hash: one of another that falls on the same counts as managed */

/* Bytes that a processor has not added yet. One element. Writer and reader: orack. */
struct arrivals {
	u32 all_bytes;
	u32 managed_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct arrivals);
} arrivals SEC(".maps");

/* The device's counts. One element. Writer and reader: orack. */
struct receiver {
	struct bpf_spin_lock lock;
	u32 sources_age; /* adds since the hosts were forgotten */
	struct onr_receiver counts;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct receiver);
} receivers SEC(".maps");

/* Hosts whose samples have been answered, and that have not refused the answer. A write that another processor
 * overwrites is made again with the next sample; they are forgotten from time to time, because a host may lose its daemon. */
u32 sources[SOURCE_BITS / 32] SEC(".data.sources");
#define SOURCES_AGE 65536u

/* For senders' law level, and for their guards. A fleet has one law and one guard. */
static __always_inline bool counts_arrivals(void)
{
	return cfg.law.guard_window_ns > 0 || cfg.law.law == ONR_LAW_level;
}

/* The last word of an address has a host's number. */
static __always_inline u32 *source_of(u32 word, u32 *bit)
{
	u32 hash = word * 0x9e3779b1u, place = hash >> 20;

	*bit = 1u << (place & 31);
	place = place >> 5 & (SOURCE_BITS / 32 - 1);
	ONR_INDEX(place);
	return &sources[place & (SOURCE_BITS / 32 - 1)];
}

/* Adds what this processor has counted. With a flow's hash, also its sample. Returns what the receiver says; 0 if it does
 * not count. */
__noinline u32 arrivals_add(u32 flow_hash, u32 is_sample, s64 now)
{
	u32 zero = 0, hint;
	struct arrivals *mine = bpf_map_lookup_elem(&arrivals, &zero);
	struct receiver *r = bpf_map_lookup_elem(&receivers, &zero);
	u32 all_bytes, managed_bytes;

	if (!mine || !r)
		return ONR_HINT_UNKNOWN;
	all_bytes = mine->all_bytes;
	managed_bytes = mine->managed_bytes;
	mine->all_bytes = 0;
	mine->managed_bytes = 0;
	if (++r->sources_age >= SOURCES_AGE) {
		r->sources_age = 0;
		__builtin_memset(sources, 0, sizeof(sources));
	}
	bpf_spin_lock(&r->lock);
	onr_receiver_arrived(&cfg.law, &r->counts, now, all_bytes, managed_bytes);
	if (is_sample)
		onr_receiver_flow(&r->counts, flow_hash);
	hint = onr_receiver_says(&cfg.law, &r->counts);
	bpf_spin_unlock(&r->lock);
	return hint;
}

/* A frame arrives from a source whose address ends in this word. */
static __always_inline void count_arrival(const struct __sk_buff *ctx, u32 from)
{
	u32 zero = 0, bytes = ctx->len, bit;
	struct arrivals *mine;

	if (!counts_arrivals())
		return;
	mine = bpf_map_lookup_elem(&arrivals, &zero);
	if (!mine)
		return;
	if (*source_of(from, &bit) & bit)
		mine->managed_bytes += bytes;
	bytes += mine->all_bytes;
	mine->all_bytes = bytes;
	if (bytes > ARRIVALS_BYTES)
		arrivals_add(0, 0, bpf_ktime_get_ns());
}

/* The same of a frame whose headers are not the usual ones. Without an address it counts as nobody's, which is managed
 * only by chance. */
static __noinline void count_unusual(const struct __sk_buff *ctx)
{
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const void *l3 = cfg.link_bytes ? data + sizeof(struct ethhdr) : data;
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	u32 from = 0;

	if (l3 + sizeof(*ip4) <= end && ip4->version == 4)
		from = ip4->saddr;
	else if (l3 + sizeof(*ip6) <= end)
		from = ip6->saddr.in6_u.u6_addr32[3];
	count_arrival(ctx, from);
}

/* A host has refused an OR-ACK: nobody holds its flows. */
static __always_inline void forget_source(const struct onr_addr *addr)
{
	u32 bit, *source = source_of(addr->word[3], &bit);

	*source &= ~bit;
}

/* A sample of a flow arrives. Returns what its OR-ACK says. */
static __always_inline u32 count_sample(const struct onr_tuple *flow, s64 now)
{
	u32 bit, *source;

	if (!counts_arrivals())
		return ONR_HINT_UNKNOWN;
	source = source_of(flow->saddr.word[3], &bit);
	if (!(*source & bit))
		*source |= bit;
	return arrivals_add(flow->saddr.word[3] * 0x9e3779b1u ^ ((u32)flow->sport << 16 | flow->dport), 1, now);
}

#endif
