/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/cc/rapid.h: TCP RAPID ("Experiences with the Linux implementation of TCP RAPID" and its references; sections II and
 * IV): the gaps of p-streams, and the rate that follows from their estimates (rapid_stream.h). Rates are payload in
 * bytes a second, below 2^40. Packets are numbered in the order of their data and count as full.
 *
 * Where the paper is silent or leaves a choice:
 * - A queue that stands is no part of the paper, whose estimate sees only a queue that grows in a stream: many flows that
 *   share a port would keep it full. It is the least round-trip time of a stream above the least that is remembered. From
 *   standing_ns on, the estimate is at most the present rate, and lower by the part of it that drains the queue in the
 *   duration of an update; by a half at most.
 * - Start: streams of the length that lasts tau_ns, of at least ONR_RAPID_EACH_LEAST and at most `each` packets at a
 *   rate, start_spread_q16 apart. Each has an update, and the next one begins when its packets are known, with the new
 *   length. The first stream that queues ends the start: the rate becomes its estimate.
 * - With gamma streams an update, the duration l is that of all of them. Streams that together last tau_ns have an update
 *   before: 192 packets at 4 Mbit/s take 0.6 s, in which many flows fill a buffer.
 * - A stream with a lost packet, or for which the application had too little data, has no estimate of its gaps. If a
 *   queue stands, the former drains it, and ends the start. After `patience` of the former without an estimate between
 *   them the rate is halved; so it is at a timeout. */
#ifndef ONR_RAPID_H
#define ONR_RAPID_H

#include "rapid_stream.h"

#define ONR_RAPID_EACH_LEAST 4u	       /* packets at a rate in the start: two acknowledgements */
#define ONR_RAPID_FIRST 10u	       /* packets in the first round-trip time (RFC 6928) */
#define ONR_RAPID_FORGET_NS 10000000000ull /* a least round-trip time is remembered for once to twice this time */
#define ONR_RAPID_NO_RTT (~0ull)
#define ONR_RAPID_GAP_MOST 4000000000u /* ns; longer gaps count as this */
#define ONR_RAPID_PACKETS_MOST 65535u  /* of an entry; more count as this */
#define ONR_RAPID_BEHIND 0x80000000u   /* a difference of numbers from here on is negative */

struct onr_rapid {
	u64 rate; /* R_avg; 0 before it begins */
	/* Streams that are sent. */
	u64 sending_rate; /* R_avg of the present stream */
	u64 gap_ns;	  /* of the present rate */
	u32 first;	  /* packet with which the first stream of the present length began */
	u32 in_start;
	u32 each;      /* packets at each rate */
	u32 has_spike; /* the receiver has waited in the present stream */
	/* Since the last update. */
	u64 sum;	/* of the estimates */
	u64 lasted_ns;	/* of their streams */
	u32 estimates;
	u32 absent;	/* streams in a row without one */
	/* Least round-trip times: of the present stream, of the time since window_ns, and of the time before that. */
	u64 stream_rtt_ns;
	u64 window_rtt_ns;
	u64 before_rtt_ns;
	u64 window_ns;
	/* The last packet whose arrival is known. */
	u64 sent_ns;
	u64 arrived_ns;
	u32 last;
	u32 has_last;
	/* Its stream. */
	u32 number;
	u32 is_broken;  /* it has a lost packet */
	u32 is_limited; /* the application had no data in it */
	u32 seen; /* estimates so far, and the last one: for those who watch */
	u64 last_estimate;
};

/* What an arrival led to. */
enum onr_rapid_news {
	ONR_RAPID_NOTHING,
	ONR_RAPID_ESTIMATE, /* last_estimate is new */
	ONR_RAPID_BROKEN,   /* a stream ended without an estimate */
};

ONR_FN void onr_rapid_bound(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow)
{
	if (flow->rate > cfg->max_rate)
		flow->rate = cfg->max_rate;
	if (flow->rate < cfg->min_rate)
		flow->rate = cfg->min_rate;
}

/* Packets of a stream. */
ONR_FN u32 onr_rapid_length(const struct onr_rapid *flow)
{
	return flow->each ? ONR_RAPID_RATES * flow->each : ONR_RAPID_RATES;
}

/* The gap at rate number `i` as a multiple of the mean gap: R_avg / R_i = s^-i N_r / sum of s^-j (section II). */
ONR_FN u32 onr_rapid_gap_q16(u32 spread_q16, u32 i)
{
	u64 part_q16 = ONR_ONE_Q16, sum_q16 = 0, own_q16 = 0;
	u32 j;

	for (j = 0; j < ONR_RAPID_RATES; j++) {
		if (j == i)
			own_q16 = part_q16;
		sum_q16 += part_q16;
		part_q16 = (part_q16 << 16) / onr_not_zero(spread_q16);
	}
	return (u32)(own_q16 * ONR_RAPID_RATES * ONR_ONE_Q16 / sum_q16);
}

/* The mean gap of the present stream, which a packet that is sent again keeps. */
ONR_FN u64 onr_rapid_mean_gap_ns(const struct onr_rapid_cfg *cfg, const struct onr_rapid *flow)
{
	return flow->sending_rate ? (u64)cfg->packet_bytes * 1000000000 / flow->sending_rate : 0;
}

/* The time from the packet before `number` to this one, at its first transmission. */
ONR_PUBLIC u64 onr_rapid_gap_ns(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, u32 number)
{
	u32 each = flow->each ? flow->each : 1, place = number - flow->first, position, spread_q16;

	if (place % each && flow->sending_rate)
		return flow->gap_ns;
	position = place % onr_rapid_length(flow);
	spread_q16 = flow->in_start ? cfg->start_spread_q16 : cfg->spread_q16;
	if (!position || !flow->sending_rate)
		flow->sending_rate = flow->rate;
	flow->gap_ns = onr_mul_q16(onr_rapid_mean_gap_ns(cfg, flow), onr_rapid_gap_q16(spread_q16, position / each));
	return flow->gap_ns;
}

/* A packet that was sent at sent_ns had this round-trip time. */
ONR_FN void onr_rapid_note_rtt(struct onr_rapid *flow, u64 sent_ns, u64 rtt_ns)
{
	if (sent_ns - flow->window_ns > ONR_RAPID_FORGET_NS) {
		flow->before_rtt_ns = flow->window_rtt_ns;
		flow->window_rtt_ns = ONR_RAPID_NO_RTT;
		flow->window_ns = sent_ns;
	}
	if (rtt_ns < flow->window_rtt_ns)
		flow->window_rtt_ns = rtt_ns;
	if (rtt_ns < flow->stream_rtt_ns)
		flow->stream_rtt_ns = rtt_ns;
}

/* The queue, in ns, that stood through the whole stream that is over. */
ONR_FN u64 onr_rapid_standing_ns(const struct onr_rapid *flow)
{
	u64 least = flow->window_rtt_ns < flow->before_rtt_ns ? flow->window_rtt_ns : flow->before_rtt_ns;

	return flow->stream_rtt_ns != ONR_RAPID_NO_RTT ? flow->stream_rtt_ns - least : 0;
}

/* The estimate of a stream that lasted so long, less what drains a queue that stands. */
ONR_FN u64 onr_rapid_drained(const struct onr_rapid_cfg *cfg, const struct onr_rapid *flow, u64 estimate, u64 lasted_ns)
{
	u64 standing_ns = onr_rapid_standing_ns(flow), drain_ns = lasted_ns;

	if (standing_ns < cfg->standing_ns)
		return estimate;
	if (lasted_ns < cfg->tau_ns)
		drain_ns *= cfg->gamma;
	if (estimate > flow->rate)
		estimate = flow->rate;
	if (standing_ns >= drain_ns / 2)
		return estimate / 2;
	return estimate - onr_mul_q16(estimate, (standing_ns << 16) / drain_ns);
}

/* The low-pass filter of the rate adapter (section II) with an estimate over lasted_ns. */
ONR_FN void onr_rapid_adapt(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, u64 estimate, u64 lasted_ns)
{
	u64 part_q16 = ONR_ONE_Q16;

	if (estimate >= flow->rate) {
		if (lasted_ns < cfg->tau_ns)
			part_q16 = (lasted_ns << 16) / cfg->tau_ns;
		flow->rate += onr_mul_q16(estimate - flow->rate, part_q16);
	} else {
		flow->rate -= onr_mul_q16(flow->rate - estimate, cfg->fall_q16);
	}
	onr_rapid_bound(cfg, flow);
}

/* Packets at each rate of the next streams. */
ONR_FN u32 onr_rapid_each(const struct onr_rapid_cfg *cfg, const struct onr_rapid *flow)
{
	u64 gap_ns = flow->rate ? (u64)cfg->packet_bytes * 1000000000 / flow->rate : 0;
	u64 most = cfg->each < ONR_RAPID_EACH_MOST ? cfg->each : ONR_RAPID_EACH_MOST, each = most;

	if (flow->in_start && gap_ns)
		each = cfg->tau_ns / (gap_ns * ONR_RAPID_RATES);
	if (each < ONR_RAPID_EACH_LEAST)
		each = ONR_RAPID_EACH_LEAST;
	return (u32)(each < most ? each : most);
}

/* Streams begin anew with the packet `next`, which is sent next. */
ONR_FN void onr_rapid_restart(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream,
			      u32 next)
{
	flow->each = onr_rapid_each(cfg, flow);
	flow->first = next;
	flow->number = 0;
	flow->is_broken = 0;
	flow->is_limited = 0;
	flow->sum = 0;
	flow->lasted_ns = 0;
	flow->estimates = 0;
	flow->absent = 0;
	flow->sending_rate = 0;
	onr_rapid_clear(stream);
	stream->ended = 0;
	flow->has_spike = 0;
	flow->stream_rtt_ns = ONR_RAPID_NO_RTT;
}

/* A timeout, or too many streams in a row with lost packets. */
ONR_PUBLIC void onr_rapid_back_off(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream,
				   u32 next)
{
	flow->rate /= 2;
	flow->in_start = 0;
	onr_rapid_bound(cfg, flow);
	onr_rapid_restart(cfg, flow, stream, next);
}

/* Begins with a rate. */
ONR_PUBLIC void onr_rapid_begin(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream,
				u64 rate, u32 next)
{
	flow->rate = rate;
	flow->in_start = 1;
	flow->has_last = 0;
	flow->last_estimate = 0;
	flow->seen = 0;
	flow->window_rtt_ns = ONR_RAPID_NO_RTT;
	flow->before_rtt_ns = ONR_RAPID_NO_RTT;
	flow->window_ns = 0;
	onr_rapid_bound(cfg, flow);
	onr_rapid_restart(cfg, flow, stream, next);
}

/* The first rate: an initial window in a round-trip time. */
ONR_PUBLIC u64 onr_rapid_first_rate(const struct onr_rapid_cfg *cfg, u64 rtt_ns)
{
	return (u64)ONR_RAPID_FIRST * cfg->packet_bytes * 1000000000 / (rtt_ns ? rtt_ns : 1);
}

/* An update of the rate, if there are enough estimates, or they are of a time that is long enough. */
ONR_FN void onr_rapid_update(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow)
{
	if (flow->estimates < cfg->gamma && flow->lasted_ns < cfg->tau_ns && !flow->in_start)
		return;
	onr_rapid_adapt(cfg, flow, flow->sum / flow->estimates, flow->lasted_ns);
	flow->sum = 0;
	flow->lasted_ns = 0;
	flow->estimates = 0;
}

/* Takes the estimate of a stream that lasted so long, less what drains a queue that stands. is_full: the path cannot carry
 * more, which ends the start. */
ONR_FN enum onr_rapid_news onr_rapid_take(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow,
					  struct onr_rapid_stream *stream, u64 estimate, u64 lasted_ns, u32 is_full, u32 next)
{
	estimate = onr_rapid_drained(cfg, flow, estimate, lasted_ns);
	flow->stream_rtt_ns = ONR_RAPID_NO_RTT;
	flow->absent = 0;
	flow->last_estimate = estimate;
	flow->seen++;
	flow->sum += estimate;
	flow->lasted_ns += lasted_ns;
	flow->estimates++;
	if (flow->in_start && is_full) {
		flow->in_start = 0;
		flow->rate = estimate;
		onr_rapid_bound(cfg, flow);
		onr_rapid_restart(cfg, flow, stream, next);
		return ONR_RAPID_ESTIMATE;
	}
	onr_rapid_update(cfg, flow);
	if (flow->in_start)
		onr_rapid_restart(cfg, flow, stream, next);
	return ONR_RAPID_ESTIMATE;
}

/* The stream that is over has all that is known of it. `next` is sent next. */
ONR_RAPID_APART enum onr_rapid_news onr_rapid_end(const struct onr_rapid_cfg *cfg ONR_SOME,
						  struct onr_rapid *flow ONR_SOME,
						  struct onr_rapid_stream *stream ONR_SOME, u32 next)
{
	u64 lasted_ns, top = onr_rapid_top_rate(cfg, stream), unknown_ns = 0, estimate;
	u32 is_found, packets = 0, own = stream->ended, is_noisy = flow->has_spike;

	/* Without a spike there is nothing to denoise, and the sums have no entry of the next stream. */
	if (is_noisy)
		packets = onr_rapid_sum(stream, own);
	lasted_ns = stream->sent_ns;
	if (is_noisy && onr_rapid_denoise(cfg, stream)) {
		unknown_ns = packets ? lasted_ns / packets : 0;
		onr_rapid_sum(stream, stream->ended);
	}
	estimate = onr_rapid_estimate(cfg, stream, unknown_ns, &is_found);
	onr_rapid_remove(stream, own);
	onr_rapid_sum(stream, stream->count);
	if (!estimate)
		return ONR_RAPID_BROKEN;
	return onr_rapid_take(cfg, flow, stream, is_found ? estimate : top, lasted_ns, is_found, next);
}

/* A stream has lost packets. Its gaps say nothing, its round-trip times do: a queue that stands is drained all the same. */
ONR_PART enum onr_rapid_news onr_rapid_broken(const struct onr_rapid_cfg *cfg ONR_SOME, struct onr_rapid *flow ONR_SOME,
					      struct onr_rapid_stream *stream ONR_SOME, u32 next)
{
	u64 lasted_ns = stream->sent_ns;

	onr_rapid_clear(stream);
	if (lasted_ns && onr_rapid_standing_ns(flow) >= cfg->standing_ns)
		return onr_rapid_take(cfg, flow, stream, flow->rate, lasted_ns, 1, next);
	flow->stream_rtt_ns = ONR_RAPID_NO_RTT;
	flow->absent++;
	if (flow->absent >= cfg->patience)
		onr_rapid_back_off(cfg, flow, stream, next);
	return ONR_RAPID_BROKEN;
}

/* All packets of the present stream are known. */
ONR_FN enum onr_rapid_news onr_rapid_close(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow,
					   struct onr_rapid_stream *stream, u32 next)
{
	u32 is_broken = flow->is_broken, is_usable = stream->count && !is_broken && !flow->is_limited;

	flow->is_broken = 0;
	flow->is_limited = 0;
	if (is_usable) {
		stream->ended = stream->count;
		return flow->has_spike ? ONR_RAPID_NOTHING : onr_rapid_end(cfg, flow, stream, next);
	}
	flow->has_spike = 0;
	if (is_broken)
		return onr_rapid_broken(cfg, flow, stream, next);
	onr_rapid_clear(stream);
	flow->stream_rtt_ns = ONR_RAPID_NO_RTT;
	return ONR_RAPID_BROKEN;
}

ONR_FN u32 onr_rapid_ns(u64 later, u64 earlier)
{
	u64 gap = later - earlier;

	if (gap < ONR_RAPID_GAP_MOST)
		return (u32)gap;
	return later > earlier ? ONR_RAPID_GAP_MOST : 0;
}

/* Appends what is between the last packet and this one. */
ONR_FN void onr_rapid_append(struct onr_rapid *flow, struct onr_rapid_stream *stream, u32 packets, u64 sent_ns,
			     u64 arrived_ns)
{
	struct onr_rapid_entry *entry;

	if (stream->count >= ONR_RAPID_ENTRIES)
		return;
	entry = &stream->entries[stream->count];
	entry->packets = packets < ONR_RAPID_PACKETS_MOST ? packets : ONR_RAPID_PACKETS_MOST;
	entry->send_ns = onr_rapid_ns(sent_ns, flow->sent_ns);
	entry->receive_ns = onr_rapid_ns(arrived_ns, flow->arrived_ns);
	onr_rapid_add(stream, entry->send_ns, entry->receive_ns);
	stream->count++;
}

/* After an append: whether the last wait of the stream that is over has ended, or there is no room to wait for that. */
ONR_FN u32 onr_rapid_is_known(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow,
			       const struct onr_rapid_stream *stream)
{
	u32 i = stream->count - 2; /* a spike shows when the gap after it is known */

	if (stream->count > 2 && cfg->passes && onr_rapid_is_spike(cfg, stream, i)) {
		flow->has_spike = 1;
		return stream->ended && i >= stream->ended;
	}
	return stream->ended && stream->count >= ONR_RAPID_ENTRIES;
}

/* What is known of a packet that was sent once and has arrived. */
struct onr_rapid_arrival {
	u32 number;
	u32 are_all;	/* so have all between it and the one reported before */
	u32 is_limited; /* the application did not have enough data when it was sent */
	u32 next;	/* the packet that is sent next */
	u64 sent_ns;
	u64 arrived_ns; /* of any clock of the receiver */
	u64 rtt_ns;
};

/* The stream that is sent now has no more packets: those of another one have arrived. */
ONR_FN enum onr_rapid_news onr_rapid_pass(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow,
					  struct onr_rapid_stream *stream, u32 next)
{
	u32 first = flow->first;

	if (stream->ended) {
		onr_rapid_end(cfg, flow, stream, next);
		if (flow->first != first)
			return ONR_RAPID_ESTIMATE; /* streams have begun anew */
	}
	return onr_rapid_close(cfg, flow, stream, next);
}

/* Takes in a packet, whose stream is flow->number unless streams have begun anew behind it. Returns whether the stream
 * that is over is known now. */
ONR_FN u32 onr_rapid_take_in(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow, struct onr_rapid_stream *stream,
			     const struct onr_rapid_arrival *arrival)
{
	u32 is_known = 0;

	if (arrival->number - flow->first < ONR_RAPID_BEHIND) {
		if (!arrival->are_all)
			flow->is_broken = 1;
		if (arrival->is_limited)
			flow->is_limited = 1;
		onr_rapid_note_rtt(flow, arrival->sent_ns, arrival->rtt_ns);
		if (flow->has_last)
			onr_rapid_append(flow, stream, arrival->number - flow->last, arrival->sent_ns, arrival->arrived_ns);
		is_known = onr_rapid_is_known(cfg, flow, stream);
	}
	flow->last = arrival->number;
	flow->sent_ns = arrival->sent_ns;
	flow->arrived_ns = arrival->arrived_ns;
	flow->has_last = 1;
	return is_known;
}

/* The first packet of another stream than flow->number has arrived. */
ONR_RAPID_APART enum onr_rapid_news onr_rapid_arrived_first(const struct onr_rapid_cfg *cfg ONR_SOME,
							    struct onr_rapid *flow ONR_SOME,
							    struct onr_rapid_stream *stream ONR_SOME,
							    const struct onr_rapid_arrival *arrival ONR_SOME)
{
	enum onr_rapid_news news = onr_rapid_pass(cfg, flow, stream, arrival->next);
	u32 place = arrival->number - flow->first;

	if (place < ONR_RAPID_BEHIND) /* streams have not begun anew */
		flow->number = place / onr_rapid_length(flow);
	return onr_rapid_take_in(cfg, flow, stream, arrival) ? onr_rapid_end(cfg, flow, stream, arrival->next) : news;
}

/* A packet has arrived. Those of earlier streams than the first of the present kind only end a gap. */
ONR_PUBLIC enum onr_rapid_news onr_rapid_arrived(const struct onr_rapid_cfg *cfg, struct onr_rapid *flow,
						 struct onr_rapid_stream *stream, const struct onr_rapid_arrival *arrival)
{
	u32 packets = arrival->number - flow->last, place = arrival->number - flow->first;

	if (flow->has_last && (!packets || packets >= ONR_RAPID_BEHIND))
		return ONR_RAPID_NOTHING; /* late, or a copy */
	if (place < ONR_RAPID_BEHIND && place / onr_rapid_length(flow) != flow->number)
		return onr_rapid_arrived_first(cfg, flow, stream, arrival);
	return onr_rapid_take_in(cfg, flow, stream, arrival) ? onr_rapid_end(cfg, flow, stream, arrival->next) :
							       ONR_RAPID_NOTHING;
}

#endif
