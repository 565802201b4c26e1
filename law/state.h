/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/state.h: the configuration of a law (onr_cfg), its state of a flow (onr_flow)
 * and its record of a transmission (onr_record). No code. Symbols: docs/law.md.
 * "mono" is the sender's CLOCK_MONOTONIC, in which every time here is. */
#ifndef ONR_STATE_H
#define ONR_STATE_H

#include "laws.h"
#include "types.h"

/* Counts changes of the layouts below; a pinned map of another ABI is not read. */
#define ONR_ABI 8

enum onr_law {
#define ONR_LAW_ID(name, rules, meaning) ONR_LAW_##name,
	ONR_LAWS(ONR_LAW_ID)
#undef ONR_LAW_ID
};

/* What became of an OR-ACK. Only ONR_USED changes the flow. */
enum onr_verdict {
	ONR_USED = 0,
	ONR_REORDERED = 1, /* a duplicate, or overtaken by a later transmission's */
	ONR_ABSURD = 2,    /* |OWD| above max_owd_ns, or bytes that were never sent */
	ONR_UNKNOWN = 3,   /* no record of the byte: too old, or retransmitted (Karn) */
};

/* Defaults of the daemon and of scenarios. Reasons: docs/law.md. */
#define ONR_DEFAULT_GAIN_Q16 4096u             /* 1/16, the paper's */
#define ONR_DEFAULT_MAX_PAUSE_NS 5000000ll     /* 5 ms */
#define ONR_DEFAULT_MAX_OWD_NS 100000000ll     /* 100 ms */
#define ONR_DEFAULT_GATE_TAU_NS 1000000ll      /* 1 ms */
#define ONR_DEFAULT_GATE_ALLOWANCE_BYTES 1448u /* 1 MSS */
#define ONR_DEFAULT_GUARD_WINDOW_NS 50000000ll /* 50 ms */

/* Above any delay: a flow whose peer has no T of its own is not held. */
#define ONR_THRESHOLD_OF_PEER 0x7fffffffffffffffll

/* One per device; the laws only read it. */
struct onr_cfg {
	s64 threshold_ns;          /* T; ONR_THRESHOLD_OF_PEER: only what onr_flow has */
	s64 max_pause_ns;          /* no head is held longer, whatever arrives; <= 0: none is held */
	s64 max_owd_ns;            /* a sample with a larger |OWD| is absurd */
	s64 gate_tau_ns;           /* averaging time of the delivery rate, taken into [1 ns, 2^30 ns] */
	s64 guard_window_ns;       /* the guard judges holding after this time; <= 0: no guard */
	u32 law;                   /* enum onr_law; an unknown value is ONR_LAW_off */
	u32 gain_q16;              /* g of eq. 3, at most 1 */
	u32 line_ns_per_byte_q16;  /* wire time of a byte at line rate; 0 = unknown */
	u32 gate_allowance_bytes;  /* a of the gate, 1 MSS */
};
_Static_assert(sizeof(struct onr_cfg) == 56, "bump ONR_ABI");

/* One per flow; all zero is a new flow. Each law has fields of its own, so that
 * a change of law at run time starts the new one from a state it knows. */
struct onr_flow {
	/* Every law. */
	s64 held_since_mono_ns;    /* first refusal of the head, valid while held */
	s64 sample_sent_mono_ns;   /* stamp of the last used sample's segment: tx_B */
	s64 sample_owd_ns;         /* its one-way delay: O_B */
	u64 sent_bytes;            /* S: payload handed to the device, retransmissions included */
	/* onramp.h */
	u64 sample_pause_ns;       /* A(tx_B) */
	u64 pause_total_ns;        /* A(pause_from) */
	s64 pause_from_mono_ns;    /* when the pause was last set */
	s64 pause_until_mono_ns;   /* tNextPkt */
	/* gate.h */
	u64 acked_bytes;           /* Sg: S up to the newest acknowledged byte */
	s64 acked_rx_mono_ns;      /* rxg: when the receiver had it */
	s64 acked_mono_ns;         /* ackg: when its OR-ACK came */
	s64 drain_from_mono_ns;    /* when draining S - Sg began: rxg, or later after idling */
	u64 rate_bytes;            /* num: bytes delivered, averaged over gate_tau_ns */
	u64 rate_ns;               /* den: the time they took */
	u64 inv_q16;               /* ns per byte of the delivery rate; 0 = no sample yet */
	s64 above_since_mono_ns;   /* since when each OR-ACK showed more than T; 0 = the last did not */
	s64 far_since_mono_ns;     /* the same for more than managed flows can cause */
	/* level.h, which has acked_bytes to inv_q16 of gate.h too, in the same meaning, and
	 * above_since_mono_ns: since when the queue is longer than managed flows make it */
	s64 left_mono_ns;          /* when the last head left; 0: none has */
	s64 mode_mono_ns;          /* when the flow was let go, or held again */
	s64 level_ns;              /* T_p, from the last OR-ACK */
	s64 allowed_ns;            /* T_now of a flow that is not young, from the last OR-ACK */
	s64 fleet_ahead_ns;        /* fleet time less mono at the last OR-ACK */
	u32 back_ns;               /* peak of the time that OR-ACKs take to come back */
	u32 step_bytes;            /* peak of the bytes between two OR-ACKs */
	u32 doubled_bytes;         /* S at the last doubling of the rate, modulo 2^32 */
	u32 young_bytes;           /* S when the flow was last idle, modulo 2^32 */
	s32 owd_avg_ns;            /* average of the delay over 8 samples */
	u16 hint;                  /* what the receiver says (receiver.h), for the guard too. 0: unknown */
	u8 doublings;              /* of the rate since the last queue */
	u8 tries;                  /* the time between two trials of holding has doubled so often */
	u8 free;                   /* let go: holding was of no use */
	u8 young;                  /* has sent little since it was idle */
	u8 reserved[2];
	u32 sent_seq;              /* alone.h: end of the newest bytes sent */
	/* guard.h */
	s64 guard_from_mono_ns;    /* when the window began */
	s64 guard_held_ns;         /* for how long heads were held in it */
	s64 guard_lowest_ns;       /* its lowest delay */
	s64 guard_threshold_ns;    /* T is at least this; 0: the guard has not raised T */
	s64 guard_raised_mono_ns;  /* when it raised T, or judged last without raising it */
	/* Every law but beta. */
	u32 beta_q16;              /* beta of eq. 3, in [0, 1] */
	u32 sample_offset;         /* of the last used sample's byte in its segment */
	u32 threshold_ns;          /* T of this flow's peer; 0: the configuration's */
	u32 sooner_q16;            /* a byte follows the one before by so much less than line_ns_per_byte_q16 */
	s32 least_ns;              /* least delay to this flow's peer, in +-2^30 ns; 0 also if it is not known */
	u8 sampled;                /* sample_* are valid */
	u8 held;                   /* the head has been refused and has not left */
	u8 capped;                 /* the head may go because max_pause_ns is over */
	u8 gated;                  /* gate or level refused a head since the last sample */
};
_Static_assert(sizeof(struct onr_flow) == 272, "bump ONR_ABI");

/* One transmission of bytes [seq, seq + len), sequence numbers modulo 2^32. */
struct onr_record {
	s64 sent_mono_ns;
	u64 mark;                  /* A(sent) in ns, or under the gate S before it in bytes */
	u32 seq;
	u32 len;                   /* 0 = no transmission */
};
_Static_assert(sizeof(struct onr_record) == 24, "bump ONR_ABI");

#endif
