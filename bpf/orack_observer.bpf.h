/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_observer.bpf.h: the sender's side without the qdisc. Data is recorded as it passes egress, and leaves at
 * once; the law says for how long it would have held it. */
#ifndef ONR_ORACK_OBSERVER_BPF_H
#define ONR_ORACK_OBSERVER_BPF_H

#include "orack_common.bpf.h"

/* The entry of the next new flow. Entries are taken in turn, so the oldest flow makes room. */
static u32 next_entry;

static __always_inline struct onr_ctl *observe_flow(struct __sk_buff *ctx,
						    const struct onr_tuple *flow)
{
	u32 *id = bpf_map_lookup_elem(&flow_ids, flow), entry;
	struct onr_ctl *ctl = id ? bpf_map_lookup_elem(&ctls, id) : NULL;
	struct onr_tuple before;

	if (ctl && same_flow(&ctl->key, flow))
		return ctl;
	if (!(ctx->sk || is_served(&flow->saddr)) || !known_peer(&flow->daddr))
		return NULL;
	entry = __sync_fetch_and_add(&next_entry, 1) % cfg.max_flows;
	ctl = bpf_map_lookup_elem(&ctls, &entry);
	if (!ctl)
		return NULL;
	before = ctl->key;
	bpf_map_delete_elem(&flow_ids, &before);
	ctl_reset(ctl, flow);
	if (bpf_map_update_elem(&flow_ids, flow, &entry, BPF_ANY))
		return NULL;
	count(ONR_CNT_flows_created);
	return ctl;
}

/* Notes a pause until then, less what of it a pause before has noted. */
static __always_inline void note_pause(struct onr_ctl *ctl, s64 now, s64 until)
{
	s64 noted = ctl->held_until_ns > now ? ctl->held_until_ns : now;

	if (until <= noted)
		return;
	if (noted == now)
		count(ONR_CNT_would_hold);
	count_add(ONR_CNT_would_hold_ns, until - noted);
	ctl->held_until_ns = until;
}

static __always_inline void observe(struct __sk_buff *ctx)
{
	struct onr_clock_params clk;
	struct segment segment;
	struct onr_tuple flow;
	struct packet packet;
	struct onr_ctl *ctl;
	s64 now, until;

	if (!parse_innermost(ctx, &packet) || !segment_of(&packet, &segment))
		return;
	flow_of(&packet, &flow);
	if (segment.flags & TCP_SYN) /* a new connection on the ports of an old one */
		bpf_map_delete_elem(&flow_ids, &flow);
	if (!segment.len)
		return;
	ctl = observe_flow(ctx, &flow);
	if (!ctl)
		return;
	now = bpf_ktime_get_ns();
	bpf_spin_lock(&ctl->lock);
	until = onr_may_go(&cfg.law, &ctl->law, now);
	onr_records_sent(&cfg.law, &ctl->law, &ctl->records, now, segment.seq, segment.len,
			 cfg.orack_every_bytes);
	bpf_spin_unlock(&ctl->lock);
	clock_read(&clk);
	until = onr_min(until, clk.lease_expires_mono_ns);
	if (until > now)
		note_pause(ctl, now, until);
}

#endif
