/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_sender.bpf.h: an OR-ACK arrives: authenticated, turned into the local clock, fed to law/. */
#ifndef ONR_ORACK_SENDER_BPF_H
#define ONR_ORACK_SENDER_BPF_H

#include "orack_common.bpf.h"

#define EWMA_SHIFT 4
#define PLAUSIBLE_SIGMAS 4 /* a delay further below 0 shows that a clock is wrong */

/* ---- sender: an OR-ACK arrives ---- */

/* A sample: its delay, the byte's offset in its segment, and its delay since the segment's stamp. */
struct peer_sample {
	s64 owd_ns;
	s64 since_stamp_ns;
	u32 offset;
};

/* The window of the minima has ended. */
static __always_inline void peer_window(struct onr_peer *p, s64 now)
{
	onr_least_roll(&p->least, now);
	__builtin_memset(&p->wire, 0, sizeof(p->wire));
}

/* It is known by how much a byte follows sooner. Minima that were taken otherwise are forgotten; the present window has
 * the samples for its own. */
static __always_inline void peer_knows(struct onr_peer *p, u32 sooner_q16, s64 least_ns)
{
	s64 min_ns = onr_wire_least_ns(&p->wire, cfg.law.line_ns_per_byte_q16, sooner_q16);

	p->wire_known = 1;
	if (sooner_q16 == p->sooner_q16)
		return;
	p->sooner_q16 = sooner_q16;
	onr_least_forget(&p->least);
	if (min_ns >= least_ns)
		onr_least_sample(&p->least, min_ns);
}

/* Learns how long a byte takes: at the end of each window, and as soon as there is enough while nothing is known. */
static __always_inline void peer_wire(struct onr_peer *p, const struct peer_sample *s, bool ends, s64 least_ns)
{
	onr_wire_sample(&p->wire, s->offset, s->since_stamp_ns);
	if ((!p->wire_known || ends) && onr_wire_has_enough(&p->wire))
		peer_knows(p, onr_wire_sooner_q16(&p->wire, cfg.law.line_ns_per_byte_q16), least_ns);
}

/* No sample can have a lower delay. Besides the clocks errs the wait in the own NIC (nic.h), by less than half of the
 * time that the segment takes on the wire: 0.1 ms of 0.7 was seen on a card of 100 Mbit/s. */
static __always_inline s64 peer_least_ns(const struct peer_sample *s, s64 sigma_ns)
{
	return -PLAUSIBLE_SIGMAS * sigma_ns - ((s->since_stamp_ns - s->owd_ns) >> 1);
}

/* The delay of a sample, of which nothing below least_ns can be. While it is not known how long a byte takes, a lower one
 * shows a segment that arrived whole, or nearly so. */
static __always_inline s64 peer_delay(struct onr_peer *p, const struct peer_sample *s, s64 least_ns)
{
	if (p->wire_known || s->owd_ns >= least_ns)
		return s->owd_ns;
	if (++p->too_soon >= ONR_WIRE_ENOUGH)
		peer_knows(p, cfg.law.line_ns_per_byte_q16, least_ns);
	return s->since_stamp_ns;
}

/* A peer of which nothing is known. Here, because a program's stack has no room for it. */
static const struct onr_peer unknown_peer = {
	.least.owd_min_ns = ONR_NO_OWD,
	.least.owd_min_before_ns = ONR_NO_OWD,
};

static __always_inline struct onr_peer *peer_begin(const struct onr_addr *addr, s64 owd_ns, s64 now)
{
	struct onr_peer *p;

	bpf_map_update_elem(&peers, addr, &unknown_peer, BPF_NOEXIST);
	p = bpf_map_lookup_elem(&peers, addr);
	if (!p)
		return NULL;
	p->owd_ewma_ns = owd_ns;
	p->least.window_mono_ns = now;
	return p;
}

/* A flow to the peer was sampled. Global, so that the verifier checks it once, and that its stack is its own. Returns 0. */
__noinline int peer_sampled(struct onr_peer *p, const struct peer_sample *s, s64 now, s64 sigma_ns)
{
	s64 least_ns, owd_ns;
	bool ends;

	if (!p || !s)
		return 0;
	ends = onr_least_ends(&p->least, now);
	least_ns = peer_least_ns(s, sigma_ns);
	peer_wire(p, s, ends, least_ns);
	if (ends)
		peer_window(p, now);
	owd_ns = peer_delay(p, s, least_ns);
	p->heard_mono_ns = now;
	p->owd_last_ns = owd_ns;
	p->owd_ewma_ns += (owd_ns - p->owd_ewma_ns) >> EWMA_SHIFT;
	p->oracks++;
	if (owd_ns < least_ns) {
		p->below_zero_mono_ns = now;
		count(ONR_CNT_oracks_below_zero);
	} else {
		onr_least_sample(&p->least, owd_ns);
	}
	return 0;
}

static __always_inline void count_verdict(enum onr_verdict v)
{
	switch (v) {
	case ONR_USED:
		count(ONR_CNT_oracks_used);
		break;
	case ONR_REORDERED:
		count(ONR_CNT_oracks_reordered);
		break;
	case ONR_ABSURD:
		count(ONR_CNT_oracks_absurd);
		break;
	default:
		count(ONR_CNT_oracks_unmatched);
		break;
	}
}

/* T of this flow: that of its class, or of its peer. 0: the configuration's. */
static __always_inline u32 threshold_of(u32 id, const struct onr_ctl *ctl, const struct onr_addr *addr)
{
	const struct onr_rules *all = rules_now();
	const u32 *threshold_ns;

	if (all && all->epoch != ctl->rules_epoch)
		ctl_classify(id);
	if (ctl->class_threshold_ns)
		return ctl->class_threshold_ns;
	if (cfg.law.threshold_ns != ONR_THRESHOLD_OF_PEER)
		return 0;
	threshold_ns = bpf_map_lookup_elem(&thresholds, addr);
	return threshold_ns ? *threshold_ns : 0;
}

/* An authentic sample of a known peer's flow. Returns whether the qdisc should look at the flow again:
 * it is held, and may go earlier than the qdisc thinks. */
static __always_inline bool feed_law(const struct sample *s, u32 id, struct onr_ctl *ctl, s64 now,
				     s64 fleet_ahead_ns, s64 sigma_ns)
{
	s64 rx_mono_ns = s->rx_fleet_ns - fleet_ahead_ns;
	enum onr_verdict verdict = ONR_UNKNOWN;
	bool kick = false, raised = false;
	s64 opens, guard_ns;
	u32 threshold_ns = threshold_of(id, ctl, &s->flow.daddr);
	struct onr_peer *peer = bpf_map_lookup_elem(&peers, &s->flow.daddr);
	u32 sooner_q16 = peer ? peer->sooner_q16 : 0;
	s64 least_ns = peer ? onr_least_owd(&peer->least) : ONR_NO_OWD;
	u32 was_free = 0, is_free = 0;
	struct peer_sample sample = {};

	bpf_spin_lock(&ctl->lock);
	if (same_flow(&ctl->key, &s->flow)) {
		ctl->known_peer = 1;
		ctl->law.threshold_ns = threshold_ns;
		ctl->law.sooner_q16 = sooner_q16;
		guard_ns = ctl->law.guard_threshold_ns;
		onr_path_set(&ctl->law, least_ns, fleet_ahead_ns, s->hint);
		was_free = ctl->law.free;
		verdict = onr_records_orack(&cfg.law, &ctl->law, &ctl->records, s->seq, now,
					    rx_mono_ns);
		raised = ctl->law.guard_threshold_ns > guard_ns;
		is_free = ctl->law.free;
	}
	if (verdict == ONR_USED) {
		sample.owd_ns = ctl->law.sample_owd_ns;
		sample.offset = ctl->law.sample_offset;
		sample.since_stamp_ns = sample.owd_ns + onr_wire_ns(&cfg.law, &ctl->law, sample.offset);
		if (ctl->held) {
			opens = onr_may_go(&cfg.law, &ctl->law, now);
			kick = opens < ctl->held_until_ns && !ctl->kicked;
			ctl->kicked |= kick;
		}
	}
	bpf_spin_unlock(&ctl->lock);

	count_verdict(verdict);
	if (raised)
		count(ONR_CNT_guard_raises);
	if (is_free > was_free)
		count(ONR_CNT_let_go);
	if (cfg.law.law == ONR_LAW_level && !onr_hint_managed(s->hint))
		count(ONR_CNT_oracks_without_hint);
	if (verdict != ONR_USED)
		return false;
	if (!peer)
		peer = peer_begin(&s->flow.daddr, sample.since_stamp_ns, now);
	if (peer)
		peer_sampled(peer, &sample, now, sigma_ns);
	return kick;
}

/* Makes a used OR-ACK a kick: a frame from this device to itself with our secret where IPv4 addresses are, of a type that
 * no host takes (EtherType 0x88b5, for local experiments), should it ever leave. */
static __always_inline void write_kick(struct __sk_buff *ctx)
{
	const struct ethhdr *eth = ethernet_of(ctx);
	u64 secret = cfg.own_secret;
	struct ethhdr to_itself;

	if (cfg.link_bytes && eth) {
		__builtin_memcpy(to_itself.h_dest, eth->h_dest, ETH_ALEN);
		__builtin_memcpy(to_itself.h_source, eth->h_dest, ETH_ALEN);
		to_itself.h_proto = bpf_htons(ETH_P_802_EX1);
		bpf_skb_store_bytes(ctx, 0, &to_itself, sizeof(to_itself), 0);
	}
	bpf_skb_store_bytes(ctx, cfg.link_bytes + offsetof(struct iphdr, saddr), &secret, sizeof(secret), 0);
	mark_own(ctx, OWN_KICK);
}

/* Lets the qdisc that holds a flow run and look at it: the OR-ACK itself is sent into it, and dropped there. The
 * transmit queue is a wish, which the kernel grants unless the device chooses by processor (XPS). */
static __always_inline int kick_qdisc(struct __sk_buff *ctx, u32 id, struct onr_ctl *ctl)
{
	u32 queue = ctl->held_in;
	struct onr_kicks *of = bpf_map_lookup_elem(&kicks, &queue);

	if (!of)
		return ONR_TCX_DROP;
	bpf_spin_lock(&of->lock);
	ctl->next_kick = of->first;
	of->first = id + 1;
	bpf_spin_unlock(&of->lock);
	write_kick(ctx);
	ctx->queue_mapping = 1 + of->queue;
	return bpf_redirect(of->ifindex, 0); /* the OR-ACK may have come back on another device */
}

/* Would this host forward the packet? Then it is none of ours, unless the flow is in our table. */
static __always_inline bool passes_through(struct __sk_buff *ctx, const struct packet *p)
{
	struct bpf_fib_lookup path = { .l4_protocol = IPPROTO_UDP, .ifindex = ctx->ifindex };
	long answer;

	if (p->ip6) {
		const struct ipv6hdr *ip = p->l3;

		path.family = 10; /* AF_INET6 */
		__builtin_memcpy(path.ipv6_src, &ip->saddr, 16);
		__builtin_memcpy(path.ipv6_dst, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = p->l3;

		path.family = 2; /* AF_INET */
		path.ipv4_src = ip->saddr;
		path.ipv4_dst = ip->daddr;
	}
	answer = bpf_fib_lookup(ctx, &path, sizeof(path), 0);
	return answer != BPF_FIB_LKUP_RET_NOT_FWDED && answer != BPF_FIB_LKUP_RET_FWD_DISABLED;
}

static __always_inline int orack_arrives(struct __sk_buff *ctx, const struct packet *p)
{
	const struct udphdr *udp = p->l4;
	const struct onr_orack *o = (void *)(udp + 1);
	struct onr_clock_params clk;
	struct sample s;
	s64 now, ahead_ns;
	struct onr_ctl *ctl;
	u32 *id;

	if ((void *)(o + 1) > (void *)(long)ctx->data_end || !has_our_form(udp, o)) {
		count(ONR_CNT_oracks_malformed);
		return ONR_TCX_NEXT;
	}
	addresses(p, &s.flow.daddr, &s.flow.saddr); /* the OR-ACK runs against the data */
	read_orack(o, &s);
	id = bpf_map_lookup_elem(&flow_ids, &s.flow);
	ctl = id ? bpf_map_lookup_elem(&ctls, id) : NULL;
	if (!ctl && passes_through(ctx, p))
		return ONR_TCX_NEXT;
	/* A recycled entry speaks for another flow; feed_law finds that out. */
	if (!((ctl && ctl->known_peer) || known_peer(&s.flow.daddr)) || !is_signed(o, &s)) {
		count(ONR_CNT_oracks_bad_tag);
		return ONR_TCX_NEXT;
	}

	count(ONR_CNT_oracks_received);
	now = bpf_ktime_get_ns();
	clock_read(&clk);
	if (clk.lease_expires_mono_ns <= now) {
		count(ONR_CNT_oracks_no_lease);
		return ONR_TCX_DROP;
	}
	ahead_ns = fleet_ahead(&clk, now);
	if (!is_fresh(now, ahead_ns, s.rx_fleet_ns)) {
		count(ONR_CNT_oracks_stale);
		return ONR_TCX_DROP;
	}
	if (!id || !ctl) {
		count(ONR_CNT_oracks_unknown_flow);
		return ONR_TCX_DROP;
	}
	if (feed_law(&s, *id, ctl, now, ahead_ns, clk.sigma_ns))
		return kick_qdisc(ctx, *id, ctl);
	return ONR_TCX_DROP;
}

#endif
