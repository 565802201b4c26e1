/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/records.h: the transmissions a flow remembers until their OR-ACKs come: a
 * ring of the newest sampled ones. Retransmitted bytes are never matched (Karn's
 * rule: their OR-ACK does not say which transmission it answers). */
#ifndef ONR_RECORDS_H
#define ONR_RECORDS_H

#include "law.h"
#include "nic.h"
#include "sample.h"

/* Records of a flow: 64 sampled transmissions are at least 0.93 MB in flight. With more in flight, one of 2, 4,
 * 8 or 16 is recorded (onr_records_turn), at least 14.8 MB. */
#define ONR_RING 64u
#define ONR_THINNEST 4u

/* All zero is empty. A new connection on the same ports starts from a reset. */
struct onr_records {
	struct onr_record ring[ONR_RING];
	u32 next;    /* the next record goes to next % ONR_RING */
	u32 count;   /* of valid entries, the newest */
	u32 awaited; /* the record behind the last used one: mostly the next OR-ACK names it */
	u32 snd_nxt; /* the byte after the highest sent, valid once begun */
	u32 samples; /* sampled transmissions of new bytes so far */
	u16 begun;
	u16 thin;    /* one of 2^thin of them is recorded */
};
_Static_assert(sizeof(struct onr_records) == 1560, "bump ONR_ABI");

/* a before b in sequence space (RFC 9293, section 3.4). */
ONR_FN int onr_seq_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Forgets everything, without touching the ring. */
ONR_FN void onr_records_reset(struct onr_records *records)
{
	records->next = 0;
	records->count = 0;
	records->awaited = 0;
	records->snd_nxt = 0;
	records->samples = 0;
	records->begun = 0;
	records->thin = 0;
}

/* The age-th newest record, 0 the newest; valid if age < count. */
ONR_FN struct onr_record *onr_records_at(struct onr_records *records, u32 age)
{
	return &records->ring[(records->next - 1 - age) & (ONR_RING - 1)];
}

/* Forgets the age-th newest record if it shares a byte with [seq, seq + len). Returns
 * whether no older one does. */
ONR_FN int onr_record_forget(struct onr_records *records, u32 age, u32 seq, u32 len)
{
	struct onr_record *rec = onr_records_at(records, age);

	if (age >= records->count)
		return 1;
	if (!rec->len)
		return 0;
	if (!onr_seq_before(seq, rec->seq + rec->len))
		return 1;
	if (onr_seq_before(rec->seq, seq + len))
		rec->len = 0;
	return 0;
}

/* Forgets every record that shares a byte with [seq, seq + len). Records were
 * written in sequence order: older ones than the first that ends before seq do. */
ONR_FN void onr_records_forget(struct onr_records *records, u32 seq, u32 len)
{
	for (u32 age = 0; age < ONR_RING; age++)
		if (onr_record_forget(records, age, seq, len))
			break;
}

/* Has an OR-ACK come of the age-th newest record, or of a later one? */
ONR_FN int onr_record_answered(const struct onr_flow *flow, struct onr_records *records,
			       u32 age)
{
	return onr_records_at(records, age)->sent_mono_ns <= flow->sample_sent_mono_ns;
}

/* The ring is full, and has turned round once more. If its oldest record is still under way, the ring is too
 * short, and half as many transmissions are recorded from now on; twice as many if at most a quarter of it is
 * under way, so that both do not alternate. */
ONR_FN void onr_records_turn(const struct onr_flow *flow, struct onr_records *records)
{
	if (!flow->sampled) /* there may be nobody who answers */
		return;
	if (!onr_record_answered(flow, records, ONR_RING - 1))
		records->thin = (u16)(records->thin + (records->thin < ONR_THINNEST));
	else if (onr_record_answered(flow, records, ONR_RING / 4))
		records->thin = (u16)(records->thin - (records->thin > 0));
}

/* The head leaves the qdisc now and the NIC at leaves_ns (nic.h), the stamp of its first
 * byte. The law counts it, and a record is kept if it is sampled and new; of a
 * flow that thins its samples, if it is one of 2^thin such. every: as for onr_sampled. */
ONR_FN void onr_records_sent(const struct onr_cfg *cfg, struct onr_flow *flow,
			     struct onr_records *records, s64 now_ns, s64 leaves_ns,
			     u32 seq, u32 len, u32 every)
{
	struct onr_record rec;
	int again = records->begun && onr_seq_before(seq, records->snd_nxt);

	onr_segment_sent(cfg, flow, now_ns, seq, len, &rec);
	rec.sent_mono_ns = leaves_ns;
	if (again)
		onr_records_forget(records, seq, len);
	if (!records->begun || onr_seq_before(records->snd_nxt, seq + len)) {
		records->begun = 1;
		records->snd_nxt = seq + len;
	}
	if (again || !onr_sampled(seq, len, every))
		return;
	if (records->samples++ & ((1u << records->thin) - 1))
		return;
	if (records->count == ONR_RING && !(records->next & (ONR_RING - 1)))
		onr_records_turn(flow, records);
	records->ring[records->next & (ONR_RING - 1)] = rec;
	records->next++;
	if (records->count < ONR_RING)
		records->count++;
}

/* Copies the age-th newest record if it holds byte seq. Returns whether the search is
 * over: records were written in sequence order. */
ONR_FN int onr_record_find(struct onr_records *records, u32 age, u32 seq,
			   struct onr_record *out)
{
	const struct onr_record *rec = onr_records_at(records, age);

	if (age >= records->count)
		return 1;
	if (onr_seq_before(seq, rec->seq))
		return 0;
	if (seq - rec->seq < rec->len)
		*out = *rec;
	return 1;
}

/* An OR-ACK names byte seq: the record that holds it goes to the law. */
ONR_FN enum onr_verdict onr_records_orack(const struct onr_cfg *cfg,
					  struct onr_flow *flow,
					  struct onr_records *records, u32 seq,
					  s64 now_ns, s64 rx_mono_ns)
{
	struct onr_record rec = { 0, 0, 0, 0 };
	u32 age = records->next - 1 - records->awaited;
	enum onr_verdict verdict;

	if (!onr_record_find(records, age, seq, &rec) || !rec.len)
		for (age = 0; age < ONR_RING; age++)
			if (onr_record_find(records, age, seq, &rec))
				break;
	verdict = onr_orack_arrived(cfg, flow, &rec, seq, now_ns, rx_mono_ns);
	if (verdict == ONR_USED)
		records->awaited = records->next - age;
	return verdict;
}

#endif
