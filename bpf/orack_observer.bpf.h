/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_observer.bpf.h: the sender's side without the qdisc, at tcx egress. Finds or makes the entry of a segment's
 * flow, for this header and for orack_edt.bpf.h. With --observe data is recorded as it passes, and leaves at once;
 * the law says for how long it would have held it. */
#ifndef ONR_ORACK_OBSERVER_BPF_H
#define ONR_ORACK_OBSERVER_BPF_H

#include "orack_common.bpf.h"

#define ENTRIES_TRIED 8		      /* for a new flow, before it passes without an entry */
#define ENTRY_ENDED_NS NSEC_PER_SEC /* an ended connection is remembered so long, for what it sends again */

/* The entry that the next new flow tries first. Processors may race for it: an entry knows its flow. */
static u32 next_entry;

/* May another flow have this entry? An observer holds nothing, so there the oldest flow makes room. Who holds takes
 * it only from a flow of which nothing waits: a flow that lost its entry could overtake its own held segments. */
static __always_inline bool entry_is_free(const struct onr_ctl *ctl, s64 now)
{
	s64 age_ns = ctl->use == ONR_ENDED ? ENTRY_ENDED_NS : cfg.flow_age_ns;

	return cfg.at_egress == ONR_EGRESS_OBSERVES || ctl->use == ONR_FREE ||
	       now - ctl->last_ns >= age_ns;
}

/* Does this kernel know the cgroups of sockets? */
#define SOCKETS_HAVE_CGROUPS                                                \
	(bpf_core_field_exists(((struct sock_cgroup_data *)0)->cgroup) ||   \
	 bpf_core_field_exists(((struct sock_cgroup_data___before_5_15 *)0)->val))

static __always_inline struct onr_ctl *entry_take(struct __sk_buff *ctx, const struct onr_tuple *flow,
						  u32 entry, struct onr_ctl *ctl)
{
	struct onr_tuple before = ctl->key;

	bpf_map_delete_elem(&flow_ids, &before);
	if (ctl->use != ONR_FREE)
		count(ctl->use == ONR_ENDED ? ONR_CNT_flows_ended : ONR_CNT_flows_aged);
	ctl_reset(ctl, flow);
	ctl->ifindex = cfg.ifindex;
	if (SOCKETS_HAVE_CGROUPS)
		for (u32 level = 1; level < ONR_CGROUP_LEVELS; level++)
			ctl->cgroups[level] = bpf_skb_ancestor_cgroup_id(ctx, level);
	ctl_classify(entry);
	ctl->use = ONR_IN_USE;
	ctl->last_ns = 0;
	if (bpf_map_update_elem(&flow_ids, flow, &entry, BPF_ANY)) {
		count(ONR_CNT_flow_table_full);
		return NULL;
	}
	count(ONR_CNT_flows_created);
	return ctl;
}

static __always_inline struct onr_ctl *known_flow(const struct onr_tuple *flow)
{
	u32 *id = bpf_map_lookup_elem(&flow_ids, flow);
	struct onr_ctl *ctl = id ? bpf_map_lookup_elem(&ctls, id) : NULL;

	return ctl && same_flow(&ctl->key, flow) ? ctl : NULL;
}

/* A SYN leaves: the entry's state is of a connection before. What of that still waits stays in front. */
static __always_inline void restart_flow(const struct onr_tuple *flow)
{
	struct onr_ctl *ctl = known_flow(flow);

	if (!ctl)
		return;
	ctl_reset(ctl, flow);
	ctl->use = ONR_IN_USE;
}

/* The entry of a flow that sends data; none if it is a stranger's, or the table is full. */
static __always_inline struct onr_ctl *sending_flow(struct __sk_buff *ctx,
						    const struct onr_tuple *flow, s64 now)
{
	struct onr_ctl *ctl = known_flow(flow);
	u32 i, entry;

	if (ctl)
		return ctl;
	if (!(ctx->sk || is_served(&flow->saddr)) || !known_peer(&flow->daddr))
		return NULL;
	for (i = 0; i < ENTRIES_TRIED; i++) {
		entry = next_entry++ % cfg.max_flows;
		ctl = bpf_map_lookup_elem(&ctls, &entry);
		if (ctl && entry_is_free(ctl, now))
			return entry_take(ctx, flow, entry, ctl);
	}
	count(ONR_CNT_flow_table_full);
	return NULL;
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

static __always_inline void observe(struct onr_ctl *ctl, const struct segment *segment, s64 now)
{
	struct onr_clock_params clk;
	s64 until;

	bpf_spin_lock(&ctl->lock);
	until = onr_may_go(&cfg.law, &ctl->law, now);
	onr_records_sent(&cfg.law, &ctl->law, &ctl->records, now, now, segment->seq, segment->len,
			 cfg.orack_every_bytes);
	ctl->last_ns = now;
	bpf_spin_unlock(&ctl->lock);
	clock_read(&clk);
	until = onr_min(until, clk.lease_expires_mono_ns);
	if (until > now)
		note_pause(ctl, now, until);
}

#endif
