/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* rapid.bpf.h: what RAPID's congestion control (rapid.bpf.c) and its tcx programs (rapid_hooks.bpf.c) share: the state
 * of a sending connection, in its socket's storage. Includer: include one of tcp.bpf.h and kernel.bpf.h before. */
#ifndef ONR_RAPID_BPF_H
#define ONR_RAPID_BPF_H

#include "../../law/cc/rapid.h"

#define RECORDS 512u /* packets of a connection that may be in flight; a power of two. The kernel allocates it with the
		      * rest of struct rapid as one block, of which 8 kB are the most */
#define STAMPS 64u   /* stamps that wait for TCP to process their ACKs; a power of two */

/* A packet that was sent. */
struct record {
	u32 end;  /* sequence number behind its data */
	u32 sent; /* its time of departure in nanoseconds, modulo 2^32, with flags in place of the last two bits */
};
enum { RECORD_LIMITED = 1, RECORD_AGAIN = 2, RECORD_FLAGS = 3 };

/* The receiver's stamp of a packet. */
struct stamp {
	u32 end; /* sequence number behind its data */
	u32 us;  /* its arrival, modulo 2^32 */
};

/* A sending connection. Writer: the congestion control, and tcx egress for the packets it sends; TCP's lock of the
 * socket guards both. Tcx ingress writes `stamps` and `stamped` without it. */
struct rapid {
	struct onr_rapid flow;
	struct onr_rapid_stream stream;
	u64 departs_ns; /* departure of the last packet */
	u64 arrived_us; /* the last stamp, extended to 64 bits */
	u32 next;	/* packets sent, copies not counted */
	u32 next_seq;
	u32 silent;   /* packets acknowledged since the last stamp */
	u32 is_heard;  /* a stamp has come: the peer has our tcx programs */
	u32 has_burst; /* TCP has sent a segment of several packets */
	u32 is_plain;  /* therefore, or without stamps, the window is Reno's, and packets leave as TCP wants */
	u32 taken;    /* stamps that were used */
	u32 stamped;  /* stamps that have come */
	struct stamp stamps[STAMPS];
	struct record records[RECORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rapid);
} rapid_senders SEC(".maps");

/* The number of the first-sent packet that ends at `end`, or that of the next one: it is none of the last RECORDS. */
static __always_inline u32 find_record(const struct rapid *rapid, u32 end)
{
	u32 before = rapid->next < RECORDS ? 0 : rapid->next - RECORDS, behind = rapid->next, middle;

	/* Ends rise with numbers, so each step halves what is between. */
	for (u32 step = RECORDS; step; step /= 2) {
		if (before == behind)
			break;
		middle = before + (behind - before) / 2;
		if ((s32)(rapid->records[middle % RECORDS].end - end) < 0)
			before = middle + 1;
		else
			behind = middle;
	}
	return before != rapid->next && rapid->records[before % RECORDS].end == end ? before : rapid->next;
}

#endif
