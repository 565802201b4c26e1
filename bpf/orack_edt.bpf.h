/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* orack_edt.bpf.h: the sender's side on kernels without BPF qdiscs. The law decides at tcx egress when a segment
 * departs; the time goes into the packet (earliest departure time), and the qdisc behind, fq, obeys it.
 *
 * A departure is decided once, from what the law knows then. An OR-ACK that comes later changes the departures of
 * later segments only. docs/kernels.md says what that costs. */
#ifndef ONR_ORACK_EDT_BPF_H
#define ONR_ORACK_EDT_BPF_H

#include "orack_observer.bpf.h"

/* A segment waits at most for so many times the delay of its flow's newest sample. What can change the law's mind
 * are the OR-ACKs of segments that are under way, and those come within one such delay: a longer hold would be
 * decided without news that arrives meanwhile. The bound is relative, so it fits every line rate. */
#define EDT_HOLD_DELAYS 1
#define EDT_HORIZON_NS (10 * NSEC_PER_SEC) /* a departure time further ahead is no time of our clock, as in sch_fq */

/* The latest departure of a segment that comes now, but for the order of its flow. */
static __always_inline s64 latest_departure(const struct onr_flow *law, s64 now, s64 lease_end)
{
	s64 bound_ns = onr_min(law->sample_owd_ns * EDT_HOLD_DELAYS, cfg.law.max_pause_ns);

	return onr_min(onr_add(now, bound_ns), lease_end);
}

static __always_inline void account_edt(const struct onr_ctl *ctl, s64 held_ns)
{
	struct onr_addr addr = ctl->key.daddr;
	struct onr_peer *peer = bpf_map_lookup_elem(&peers, &addr);

	count_hold(held_ns);
	if (peer) {
		__sync_fetch_and_add(&peer->holds, 1);
		__sync_fetch_and_add(&peer->held_ns, held_ns);
	}
}

/* The departure of a segment whose sender wants it to leave at wanted_ns, or later. As in a queue, the law is
 * asked for it at the time when it is the head: when the flow's segment before it has left. */
static __always_inline s64 departure_of(struct onr_ctl *ctl, const struct segment *segment, s64 now,
					s64 wanted_ns)
{
	struct onr_clock_params clk;
	s64 head_ns, until, at;

	clock_read(&clk);
	bpf_spin_lock(&ctl->lock);
	head_ns = wanted_ns > ctl->last_ns ? wanted_ns : ctl->last_ns;
	at = head_ns;
	until = onr_may_go(&cfg.law, &ctl->law, head_ns);
	if (until) {
		until = onr_min(until, latest_departure(&ctl->law, now,
							clk.lease_expires_mono_ns));
		at = until > head_ns ? until : head_ns;
	}
	onr_records_sent(&cfg.law, &ctl->law, &ctl->records, at, at, segment->seq, segment->len,
			 cfg.orack_every_bytes);
	ctl->last_ns = at;
	bpf_spin_unlock(&ctl->lock);

	if (at > head_ns)
		account_edt(ctl, at - head_ns);
	else if (until && clk.lease_expires_mono_ns <= now)
		count(ONR_CNT_holds_refused_lease);
	return at;
}

/* A segment with payload. */
static __always_inline void hold(struct __sk_buff *ctx, struct onr_ctl *ctl,
				 const struct segment *segment, s64 now)
{
	s64 wanted_ns = ctx->tstamp, at;

	if (wanted_ns - now > EDT_HORIZON_NS) {
		count(ONR_CNT_departures_ignored);
		return;
	}
	if (wanted_ns < now)
		wanted_ns = now;
	at = departure_of(ctl, segment, now, wanted_ns);
	if (at > wanted_ns)
		ctx->tstamp = at;
}

/* A FIN or RST stays behind its flow's data, and gives the entry away. */
static __always_inline void end_flow(struct __sk_buff *ctx, struct onr_ctl *ctl, s64 now)
{
	ctl->use = ONR_ENDED;
	if (ctl->last_ns > now && ctl->last_ns > (s64)ctx->tstamp)
		ctx->tstamp = ctl->last_ns;
}

#endif
