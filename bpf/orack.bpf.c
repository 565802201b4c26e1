/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack.bpf.c: OR-ACKs, made and consumed in the kernel by two tcx programs on one device.
 *
 * Receiver: ingress notes the receive time of each sampled segment (law/sample.h); a clone of a
 * packet goes out of the same device; egress knows the clone (maps.bpf.h, owns) and rewrites it into
 * an OR-ACK. What is cloned: the next pure TCP ACK of the flow, because trimming a clone of data
 * copies it first. Where ACKs are too rare for that, a single frame is cloned itself; where GRO has
 * merged frames, the newest sample waits for the ACK.
 * Sender: ingress authenticates an OR-ACK, turns its time into the local clock, asks law/. Where there is no
 * qdisc of ours, egress records the segments, and holds them with --path edt. Loads from Linux 5.10 on.
 *
 * Reads cfg, clock, keys, prefixes, flow_ids; updates the law state in ctls; writes peers and
 * counters. Does not need BPF qdisc support in the kernel. Never drops a packet that is not an
 * authentic OR-ACK. */
#include "orack_edt.bpf.h"
#include "orack_receiver.bpf.h"
#include "orack_sender.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The sender's side where there is no qdisc of ours. A function, because the stack has no room for this beside
 * make_orack. */
static __noinline void segment_leaves(struct __sk_buff *ctx)
{
	bool holds = cfg.at_egress == ONR_EGRESS_HOLDS;
	s64 now = bpf_ktime_get_ns();
	struct segment segment;
	struct onr_tuple flow;
	struct packet packet;
	struct onr_ctl *ctl;

	if (!parse_headers(ctx, &packet) || !segment_of(&packet, &segment))
		return;
	flow_of(&packet, &flow);
	if (segment.flags & TCP_SYN) /* a new connection on the ports of an old one */
		restart_flow(&flow);
	if (!segment.len && !(segment.flags & TCP_ENDS))
		return;
	ctl = segment.len ? sending_flow(ctx, &flow, now) : known_flow(&flow);
	if (!ctl)
		return;
	if (!holds && segment.len)
		observe(ctl, &segment, now);
	else if (segment.len)
		hold(ctx, ctl, &segment, now);
	if (segment.flags & TCP_ENDS)
		end_flow(ctx, ctl, now);
}

/* True: the packet is a clone, and *verdict says what becomes of it. */
static __always_inline bool orack_leaves(struct __sk_buff *ctx, int *verdict)
{
	if (is_own_clone(ctx)) {
		*verdict = make_orack(ctx);
		return true;
	}
	if (waiting && ctx->len <= LONGEST_HEADERS)
		ack_leaves(ctx);
	return false;
}

/* Where edge records the segments. */
SEC("tcx/egress")
int orack_egress(struct __sk_buff *ctx)
{
	int verdict = ONR_TCX_NEXT;

	orack_leaves(ctx, &verdict);
	return verdict;
}

/* Where there is no edge. */
SEC("tcx/egress")
int orack_records(struct __sk_buff *ctx)
{
	int verdict = ONR_TCX_NEXT;

	if (!orack_leaves(ctx, &verdict))
		segment_leaves(ctx);
	return verdict;
}

/* Drivers that receive into pages may leave the headers there, and pull only what they know behind a tag. */
static __always_inline void pull_headers(struct __sk_buff *ctx)
{
	u32 wanted = cfg.link_bytes + sizeof(struct iphdr) + SHORTEST_L4;
	const void *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *eth = ethernet_of(ctx);

	if (cfg.link_bytes && eth && is_tag(eth->h_proto))
		wanted = LONGEST_HEADERS;
	if (ctx->len < wanted)
		wanted = ctx->len;
	if (data + wanted > end)
		bpf_skb_pull_data(ctx, ctx->len < LONGEST_HEADERS ? ctx->len : LONGEST_HEADERS);
}

SEC("tcx/ingress")
int orack_ingress(struct __sk_buff *ctx)
{
	struct segment segment;
	struct usual_tcp usual;
	struct packet p;

	if (usual_tcp_of(ctx, cfg.link_bytes, &usual)) {
		count_arrival(ctx, usual.from);
		/* Most frames pass here, before they are parsed: the frame is longer than its payload, so no sample is missed. */
		if (!onr_sampled(usual.seq, ctx->len, cfg.orack_every_bytes))
			return ONR_TCX_NEXT;
	} else {
		count_unusual(ctx);
	}
	if (ctx->pkt_type != PACKET_HOST) /* a frame for another host, e.g. behind a bridge */
		return ONR_TCX_NEXT;
	pull_headers(ctx);
	if (!parse_headers(ctx, &p))
		return ONR_TCX_NEXT;
	if (p.protocol == IPPROTO_TCP) {
		if (segment_of(&p, &segment) &&
		    onr_sampled(segment.seq, segment.len, cfg.orack_every_bytes))
			sampled(ctx, &p, &segment);
	} else if (p.protocol == IPPROTO_UDP) {
		const struct udphdr *udp = p.l4;

		if (udp->dest == bpf_htons(ONR_ORACK_PORT) && l4_len(&p))
			return orack_arrives(ctx, &p);
	} else {
		icmp_arrives(ctx);
	}
	return ONR_TCX_NEXT;
}
