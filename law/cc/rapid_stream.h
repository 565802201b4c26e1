/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/cc/rapid_stream.h: what is known of the packets of a p-stream of TCP RAPID, the denoising of their receive gaps (BASS,
 * section IV-D of the paper that rapid.h names), and the estimate of the available bandwidth (section II).
 *
 * Where the paper is silent or leaves a choice:
 * - A packet queues if its queueing delay is more than least_rise_ns above the least of its stream. This delay is the sum
 *   of receive gaps less send gaps. "Consistently" is up to the end of the stream, for at least `least_run` entries.
 * - The end of a wait of the receiver is known to a packet's gap only: the last packet before an interrupt has waited, too.
 *   So behind such a receiver, the delay at the end of a stream has to be a mean gap higher to show that packets queue.
 * - The last wait of a stream ends in the next one. The stream's estimate waits for this; if the next stream ends before
 *   it, the packets of the last wait do not count.
 * - No queueing: the estimate is the rate of the last entry, as it was sent. Queueing from the first entry on: the rate
 *   of that one. */
#ifndef ONR_RAPID_STREAM_H
#define ONR_RAPID_STREAM_H

#include "transport.h"

#define ONR_RAPID_RATES 4u  /* N_r */
#define ONR_RAPID_EACH_MOST 48u /* packets at each of these rates */
/* Of a stream, and of the next one until the last wait ends. No power of two, because the compiler joins the checks of
 * several indices then, which the verifier does not follow. */
#define ONR_RAPID_ENTRIES 240u

/* The configuration of the whole law. */
struct onr_rapid_cfg {
	u64 min_rate; /* at least 1 */
	u64 max_rate;
	u64 tau_ns;	      /* the rate rises in about this time; at least 1 */
	u32 fall_q16;	      /* 1 / eta, the part of the way down that an update goes */
	u32 spread_q16;	      /* s, the ratio of neighbouring rates; above one */
	u32 start_spread_q16; /* s in the start */
	u32 each;	      /* N_p, packets at each rate; 1 to ONR_RAPID_EACH_MOST */
	u32 gamma;	      /* streams an update; at least 1 */
	u32 patience;	      /* at least 1 */
	u32 packet_bytes;     /* payload of a full packet */
	u32 least_run;	/* entries of an excursion */
	u32 least_rise_ns;
	u32 spike_rise_ns; /* BASS: a spike is so much above the gap before it ... */
	u32 spike_fall_ns; /* ... and so much above the gap after it */
	u32 passes;	   /* of BASS, at most; 0: none */
	u32 standing_ns;   /* a queue from here on is drained */
	u32 cap_packets;   /* that may be in flight: the window, which is the sender's */
};

/* Packets that one acknowledgement reported, with the sum of their gaps. */
struct onr_rapid_entry {
	u32 packets;
	u32 send_ns;
	u32 receive_ns;
};

/* The entries of a stream, in order. Their sums are kept, so that the end of a stream in which the receiver has not waited
 * needs no pass over them. */
struct onr_rapid_stream {
	u32 count;
	u32 ended; /* those of a stream that is over; the others are of the next one */
	struct onr_rapid_entry entries[ONR_RAPID_ENTRIES];
	u64 sent_ns;  /* of the send gaps */
	s64 delay_ns; /* of the receive gaps less the send gaps: the queueing delay, relative to that before the stream */
	s64 least_ns; /* the least delay at an entry, 0 at most */
};

/* Whether an index has an entry, in a form that the verifier follows. A host has no verifier: `count` bounds all indices.
 * ONR_RAPID_APART: what ends a stream, which is rare. On a host it is apart from what each packet needs. */
#ifdef __bpf__
#define ONR_RAPID_INDEX(index) ONR_INDEX(index)
#define ONR_RAPID_HAS(index) ((index) < ONR_RAPID_ENTRIES)
#define ONR_RAPID_APART ONR_PART
#else
#define ONR_RAPID_INDEX(index) ((void)(index))
#define ONR_RAPID_HAS(index) 1
#define ONR_RAPID_APART static __attribute__((noinline, unused))
#endif

ONR_FN void onr_rapid_clear_sums(struct onr_rapid_stream *stream)
{
	stream->sent_ns = 0;
	stream->delay_ns = 0;
	stream->least_ns = 0;
}

/* Forgets the entries of the present stream. */
ONR_FN void onr_rapid_clear(struct onr_rapid_stream *stream)
{
	stream->count = 0;
	onr_rapid_clear_sums(stream);
}

/* Adds the gaps of an entry to the sums. */
ONR_FN void onr_rapid_add(struct onr_rapid_stream *stream, u32 send_ns, u32 receive_ns)
{
	stream->sent_ns += send_ns;
	stream->delay_ns += (s64)receive_ns - send_ns;
	stream->least_ns = onr_min(stream->least_ns, stream->delay_ns);
}

/* Makes the sums those of the first `count` entries. Returns their packets. */
ONR_PART u32 onr_rapid_sum(struct onr_rapid_stream *stream ONR_SOME, u32 count)
{
	u32 i, packets = 0;

	onr_rapid_clear_sums(stream);
	for (i = 0; i < count && i < ONR_RAPID_ENTRIES; i++) {
		onr_rapid_add(stream, stream->entries[i].send_ns, stream->entries[i].receive_ns);
		packets += stream->entries[i].packets;
	}
	return packets;
}

/* Whether receive gap `i` is a spike: the first packet after the receiver has waited. */
ONR_PART u32 onr_rapid_is_spike(const struct onr_rapid_cfg *cfg ONR_SOME, const struct onr_rapid_stream *stream ONR_SOME,
				u32 i)
{
	u32 last = i - 1, next = i + 1;
	u64 before, own, after;

	ONR_RAPID_INDEX(i);
	ONR_RAPID_INDEX(last);
	ONR_RAPID_INDEX(next);
	if (!i || next >= stream->count || !ONR_RAPID_HAS(last) || !ONR_RAPID_HAS(i) || !ONR_RAPID_HAS(next))
		return 0;
	before = stream->entries[last].receive_ns;
	own = stream->entries[i].receive_ns;
	after = stream->entries[next].receive_ns;
	return own > before + cfg->spike_rise_ns && own > after + cfg->spike_fall_ns;
}

/* Shares the gaps of the entries from `from` to `to`, exclusive, among them by their packets. Returns the packets. */
ONR_PART u32 onr_rapid_level(struct onr_rapid_stream *stream ONR_SOME, u32 from, u32 to)
{
	u64 packets = 0, send = 0, receive = 0;
	u32 i;

	for (i = from; i < to; i++) {
		ONR_RAPID_INDEX(i);
		if (i >= ONR_RAPID_ENTRIES)
			break;
		packets += stream->entries[i].packets;
		send += stream->entries[i].send_ns;
		receive += stream->entries[i].receive_ns;
	}
	if (!packets)
		return 0;
	for (i = from; i < to; i++) {
		ONR_RAPID_INDEX(i);
		if (i >= ONR_RAPID_ENTRIES)
			break;
		stream->entries[i].send_ns = (u32)(send * stream->entries[i].packets / packets);
		stream->entries[i].receive_ns = (u32)(receive * stream->entries[i].packets / packets);
	}
	return (u32)packets;
}

/* The spikes that a pass of BASS has found. */
struct onr_rapid_spikes {
	u32 count;
	u32 last;
};

/* A pass of BASS comes to an entry. If that is a spike, the one before it is levelled with the gaps between them. */
ONR_PART u32 onr_rapid_smooth_at(const struct onr_rapid_cfg *cfg ONR_SOME, struct onr_rapid_stream *stream ONR_SOME,
				 struct onr_rapid_spikes *spikes ONR_SOME, u32 i)
{
	if (!onr_rapid_is_spike(cfg, stream, i))
		return 0;
	if (spikes->count)
		onr_rapid_level(stream, spikes->last, i);
	spikes->last = i;
	spikes->count++;
	return 1;
}

/* One pass of BASS: levels each spike with the gaps up to the next one. Returns the number of spikes. */
ONR_PART u32 onr_rapid_smooth(const struct onr_rapid_cfg *cfg ONR_SOME, struct onr_rapid_stream *stream ONR_SOME,
			      struct onr_rapid_spikes *spikes ONR_SOME)
{
	u32 i;

	spikes->count = 0;
	for (i = 0; i < stream->count && i < ONR_RAPID_ENTRIES; i++)
		onr_rapid_smooth_at(cfg, stream, spikes, i);
	return spikes->count;
}

/* BASS (section IV-D): removes what a receiver that waits adds to the gaps. Of a wait that has not ended, the packets
 * leave the stream; of one that began before, nothing has to: its end only lowers the delay from which others are seen.
 * Returns whether the receiver has waited. */
ONR_PART u32 onr_rapid_denoise(const struct onr_rapid_cfg *cfg ONR_SOME, struct onr_rapid_stream *stream ONR_SOME)
{
	struct onr_rapid_spikes first = { 0, 0 }, more = { 0, 0 };
	u32 pass;

	if (!cfg->passes || !onr_rapid_smooth(cfg, stream, &first))
		return 0;
	for (pass = 1; pass < cfg->passes && pass < 8; pass++)
		if (!onr_rapid_smooth(cfg, stream, &more))
			break;
	if (first.last < stream->ended)
		stream->ended = first.last;
	return 1;
}

/* The rate at which an entry's packets were sent. */
ONR_FN u64 onr_rapid_entry_rate(const struct onr_rapid_cfg *cfg, const struct onr_rapid_entry *entry)
{
	u64 bytes = (u64)entry->packets * cfg->packet_bytes;

	return entry->send_ns ? bytes * 1000000000 / entry->send_ns : cfg->max_rate;
}

/* Entries of the stream that is over before it queues consistently. The sums are those of its entries, and the delay at
 * its end is known to unknown_ns. */
ONR_PART u32 onr_rapid_ahead(const struct onr_rapid_cfg *cfg ONR_SOME, const struct onr_rapid_stream *stream ONR_SOME,
			     u64 unknown_ns)
{
	s64 delay = stream->delay_ns, most = stream->least_ns + (s64)cfg->least_rise_ns;
	u32 i, behind;

	if (delay <= most + (s64)unknown_ns)
		return stream->ended;
	/* From the end: most streams queue for a part of their rates only. */
	for (behind = 0; behind < ONR_RAPID_ENTRIES; behind++) {
		i = stream->ended - 1 - behind;
		ONR_RAPID_INDEX(i);
		if (delay <= most || i >= ONR_RAPID_ENTRIES)
			break;
		delay -= (s64)stream->entries[i].receive_ns - stream->entries[i].send_ns;
	}
	return behind < cfg->least_run ? stream->ended : stream->ended - behind;
}

/* The rate of the last entry of the stream that is over; 0 if it has no entries. */
ONR_FN u64 onr_rapid_top_rate(const struct onr_rapid_cfg *cfg, const struct onr_rapid_stream *stream)
{
	u32 last = stream->ended - 1;

	ONR_RAPID_INDEX(last);
	return last < ONR_RAPID_ENTRIES ? onr_rapid_entry_rate(cfg, &stream->entries[last]) : 0;
}

/* ABest of the stream that is over: the rate beyond which its packets consistently queue; 0 if it has no entries.
 * *is_found: there are such packets. */
ONR_FN u64 onr_rapid_estimate(const struct onr_rapid_cfg *cfg, const struct onr_rapid_stream *stream, u64 unknown_ns,
			      u32 *is_found)
{
	u32 ahead = onr_rapid_ahead(cfg, stream, unknown_ns), i = ahead ? ahead - 1 : 0;

	*is_found = ahead < stream->ended;
	return stream->ended && i < ONR_RAPID_ENTRIES ? onr_rapid_entry_rate(cfg, &stream->entries[i]) : 0;
}

/* Removes the entries of the stream that is over, whose own are the first `own`. */
ONR_PART u32 onr_rapid_remove(struct onr_rapid_stream *stream ONR_SOME, u32 own)
{
	u32 i, from;

	for (i = 0; i < ONR_RAPID_ENTRIES; i++) {
		from = own + i;
		ONR_RAPID_INDEX(from);
		if (from >= stream->count || from >= ONR_RAPID_ENTRIES)
			break;
		stream->entries[i] = stream->entries[from];
	}
	stream->count = i;
	stream->ended = 0;
	return i;
}

#endif
