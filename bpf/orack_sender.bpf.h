/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_sender.bpf.h: an OR-ACK arrives: authenticated, turned into the local clock, fed to law/. */
#ifndef ONR_ORACK_SENDER_BPF_H
#define ONR_ORACK_SENDER_BPF_H

#include "orack_common.bpf.h"

#define EWMA_SHIFT 4
#define PLAUSIBLE_SIGMAS 4 /* a delay further below 0 shows that a clock is wrong */

/* ---- sender: an OR-ACK arrives ---- */

static __always_inline void peer_min(struct onr_peer *p, s64 owd_ns, s64 now, s64 sigma_ns)
{
	s64 age = now - p->window_mono_ns;

	if (age >= ONR_OWD_WINDOW_NS) {
		p->owd_min_before_ns = age < 2 * ONR_OWD_WINDOW_NS ? p->owd_min_ns : ONR_NO_OWD;
		p->owd_min_ns = ONR_NO_OWD;
		p->window_mono_ns = now;
	}
	if (owd_ns < p->owd_min_ns && owd_ns >= -PLAUSIBLE_SIGMAS * sigma_ns)
		p->owd_min_ns = owd_ns;
}

static __always_inline void peer_owd(const struct onr_addr *addr, s64 owd_ns, s64 now,
				     s64 sigma_ns)
{
	struct onr_peer *p = bpf_map_lookup_elem(&peers, addr);

	if (!p) {
		struct onr_peer fresh = {
			.owd_ewma_ns = owd_ns,
			.window_mono_ns = now,
			.owd_min_ns = ONR_NO_OWD,
			.owd_min_before_ns = ONR_NO_OWD,
		};

		bpf_map_update_elem(&peers, addr, &fresh, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&peers, addr);
		if (!p)
			return;
	}
	p->heard_mono_ns = now;
	p->owd_last_ns = owd_ns;
	p->owd_ewma_ns += (owd_ns - p->owd_ewma_ns) >> EWMA_SHIFT;
	peer_min(p, owd_ns, now, sigma_ns);
	p->oracks++;
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
				     s64 rx_mono_ns, s64 sigma_ns)
{
	enum onr_verdict verdict = ONR_UNKNOWN;
	bool kick = false, raised = false;
	s64 owd_ns = 0, opens, guard_ns;
	u32 threshold_ns = threshold_of(id, ctl, &s->flow.daddr);

	bpf_spin_lock(&ctl->lock);
	if (same_flow(&ctl->key, &s->flow)) {
		ctl->known_peer = 1;
		ctl->law.threshold_ns = threshold_ns;
		guard_ns = ctl->law.guard_threshold_ns;
		verdict = onr_records_orack(&cfg.law, &ctl->law, &ctl->records, s->seq, now,
					    rx_mono_ns);
		raised = ctl->law.guard_threshold_ns > guard_ns;
	}
	if (verdict == ONR_USED) {
		owd_ns = ctl->law.sample_owd_ns;
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
	if (verdict == ONR_USED)
		peer_owd(&s->flow.daddr, owd_ns, now, sigma_ns);
	return kick;
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
	ctx->mark = ONR_MARK_KICK;
	ctx->cb[0] = ONR_MARK_KICK;
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
	const struct onr_key *key;
	struct sample s;
	s64 now, offset, age;
	struct onr_ctl *ctl;
	u32 key_id, *id;

	if ((void *)(o + 1) > (void *)(long)ctx->data_end || udp->len != bpf_htons(UDP_BYTES) ||
	    o->version != ONR_ORACK_VERSION || o->flags) {
		count(ONR_CNT_oracks_malformed);
		return ONR_TCX_NEXT;
	}
	addresses(p, &s.flow.daddr, &s.flow.saddr); /* the OR-ACK runs against the data */
	s.flow.sport = o->sport;
	s.flow.dport = o->dport;
	s.seq = bpf_ntohl(o->seq);
	s.len = bpf_ntohl(o->len);
	s.rx_fleet_ns = (u64)bpf_ntohl(o->rx_fleet_hi_ns) << 32 | bpf_ntohl(o->rx_fleet_lo_ns);
	id = bpf_map_lookup_elem(&flow_ids, &s.flow);
	ctl = id ? bpf_map_lookup_elem(&ctls, id) : NULL;
	if (!ctl && passes_through(ctx, p))
		return ONR_TCX_NEXT;
	key_id = bpf_ntohs(o->key_id);
	key = key_of(key_id);
	/* A recycled entry speaks for another flow; feed_law finds that out. */
	if (!key || !((ctl && ctl->known_peer) || known_peer(&s.flow.daddr)) ||
	    tag_of(&s, key_id, key) != o->tag) {
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
	offset = onr_clock_offset(now, clk.offset_ns, clk.drift_q32, clk.reference_mono_ns);
	age = onr_sub(onr_add(now, offset), s.rx_fleet_ns);
	if (age > cfg.orack_fresh_ns || age < -cfg.orack_fresh_ns) {
		count(ONR_CNT_oracks_stale);
		return ONR_TCX_DROP;
	}
	if (!id || !ctl) {
		count(ONR_CNT_oracks_unknown_flow);
		return ONR_TCX_DROP;
	}
	if (feed_law(&s, *id, ctl, now, s.rx_fleet_ns - offset, clk.sigma_ns))
		return kick_qdisc(ctx, *id, ctl);
	return ONR_TCX_DROP;
}

#endif
