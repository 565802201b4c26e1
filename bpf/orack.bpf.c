/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack.bpf.c: OR-ACKs, made and consumed in the kernel by two tcx programs on one device.
 *
 * Receiver: ingress notes the receive time of each sampled segment (law/sample.h); a clone of a
 * packet goes out of the same device; egress recognises the clone by its mark and rewrites it into
 * an OR-ACK. What is cloned: the next pure TCP ACK of the flow, because trimming a clone of data
 * copies it first. Where ACKs are too rare for that, a single frame is cloned itself; where GRO has
 * merged frames, the newest sample waits for the ACK.
 * Sender: ingress authenticates an OR-ACK, turns its time into the local clock, asks law/.
 *
 * Reads cfg, clock, keys, prefixes, flow_ids; updates the law state in ctls; writes peers and
 * counters. Does not need BPF qdisc support in the kernel. Never drops a packet that is not an
 * authentic OR-ACK. */
#include "orack_receiver.bpf.h"
#include "orack_sender.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tcx/egress")
int orack_egress(struct __sk_buff *ctx)
{
	if (ctx->mark == ONR_MARK_ORACK && ctx->cb[CB_MARK] == ONR_MARK_ORACK)
		return make_orack(ctx);
	if (waiting && ctx->len <= LONGEST_ACK)
		ack_leaves(ctx);
	return ONR_TCX_NEXT;
}

/* Whether this is a TCP segment that is not sampled: what most frames are, found without looking at
 * all of their headers. The frame's length is more than the payload's, which only errs to false. */
static __always_inline bool is_passed_over(struct __sk_buff *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);
	struct tcphdr *tcp;

	if ((void *)(ip + 1) + SHORTEST_L4 > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (*(u8 *)ip != 0x45 || ip->protocol != IPPROTO_TCP)
			return false;
		tcp = (void *)(ip + 1);
	} else {
		if (eth->h_proto != bpf_htons(ETH_P_IPV6) || ip6->nexthdr != IPPROTO_TCP ||
		    (void *)(ip6 + 1) + SHORTEST_L4 > end)
			return false;
		tcp = (void *)(ip6 + 1);
	}
	return !onr_sampled(bpf_ntohl(tcp->seq), ctx->len, cfg.orack_every_bytes);
}

SEC("tcx/ingress")
int orack_ingress(struct __sk_buff *ctx)
{
	const u32 tcp_needs = sizeof(struct ethhdr) + sizeof(struct iphdr) + SHORTEST_L4;
	struct headers h;

	if (is_passed_over(ctx))
		return ONR_TCX_NEXT;
	/* Drivers that receive into pages may leave the headers there. */
	if (ctx->data + tcp_needs > ctx->data_end && ctx->len >= tcp_needs)
		bpf_skb_pull_data(ctx, ctx->len < WIRE6 ? ctx->len : WIRE6);

	if (parse_headers(ctx, IPPROTO_TCP, &h)) {
		const struct tcphdr *tcp = h.l4;
		u32 header = tcp->doff * 4, seq = bpf_ntohl(tcp->seq);
		u32 len = h.l4_bytes - header;

		if (h.l4_bytes > header && onr_sampled(seq, len, cfg.orack_every_bytes))
			sampled(ctx, &h, seq, len);
	} else if (parse_headers(ctx, IPPROTO_UDP, &h)) {
		const struct udphdr *udp = h.l4;

		if (udp->dest == bpf_htons(ONR_ORACK_PORT))
			return orack_arrives(ctx, &h);
	}
	return ONR_TCX_NEXT;
}
