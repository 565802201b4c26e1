/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* abi.h: what crosses between the BPF programs and Rust: configuration, clock, counters, and the keys and
 * values of every map that Rust reads or writes. Rust's types are generated from this file (crates/law). */
#ifndef ONR_ABI_H
#define ONR_ABI_H

#include <linux/bpf.h> /* struct bpf_spin_lock */
#include "../law/records.h"
#include "../law/histogram.h"
#include "../law/least.h"
#include "../law/receiver.h"
#include "../law/wire.h"

#define ONR_BUCKETS 2048u    /* queues for what is never held, each of one flow while it has packets */
#define ONR_FLOWS 4096u	     /* default of agent --flows */
#define ONR_MAX_FLOWS 65536u /* its bound */
#define ONR_MAX_SLOTS 16384u /* most packets that the qdisc can hold; limit may be lower */
#define ONR_KEYS 4u	     /* keys valid at a time, for rotation */
#define ONR_MAX_PEERS 4096u  /* most peers whose delays and thresholds are known */
#define ONR_MAX_QUEUES 1024u /* most transmit queues with a qdisc, of all devices of a daemon */
#define ONR_KEY_BYTES 16u
#define ONR_MAX_RULES 64u    /* most rules of classes; a new flow is compared with each until one matches */
#define ONR_CGROUP_LEVELS 8u  /* a class can name a cgroup at level 1 (/a) to 7 */
#define ONR_NEVER_NS 0xffffffffu /* T of flows that are never held: above max_owd_ns */

/* What tcx egress does with the segments of this host. */
enum onr_at_egress {
	ONR_EGRESS_PASSES = 0,	 /* nothing: the qdisc, edge, records and holds them */
	ONR_EGRESS_OBSERVES = 1, /* records them; nothing is held */
	ONR_EGRESS_HOLDS = 2,	 /* records them, and holds them by a time of departure, which fq obeys */
};

/* Configuration of one device, written by the daemon. All BPF objects hold a copy; `queue` alone differs. */
struct onr_dev_cfg {
	struct onr_cfg law;
	u64 own_secret;		   /* in what the data path sends to itself (maps.bpf.h) */
	s64 flow_age_ns;	   /* an idle flow is forgotten after this */
	s64 orack_fresh_ns;	   /* an OR-ACK whose receive time is further from now is stale */
	u32 limit_packets;	   /* qdisc limit; a GSO segment counts as one packet */
	u32 max_flows;		   /* size of the flow table */
	u32 queues;		   /* transmit queues with a qdisc each; 1: one qdisc for the device */
	u32 queue;		   /* the one whose qdisc has this copy: index in kicks, of all devices */
	u32 quantum_bytes;	   /* round-robin quantum: 2 MTU, as fq */
	u32 shape_ns_per_byte_q16; /* egress rate to keep, 0 = no shaping */
	u32 key_id;		   /* key that signs the OR-ACKs we send */
	u32 flow_limit_packets;	   /* most packets of one flow */
	u32 orack_every_bytes;	   /* of a flow between its samples, the same on all hosts (sample.h) */
	u16 paced;		   /* segments leave at TCP's pace (pace.bpf.c) */
	u8 at_egress;		   /* enum onr_at_egress */
	u8 link_bytes;		   /* of the device's link header: 14 of Ethernet, 0 of IP tunnels */
	u32 shape_ahead_ns;	   /* so much may leave ahead of the shaped line: a NIC's queue, for the virtual rack */
	u32 stamps_at_qdisc;	   /* the NIC's queue counts as delay, for comparison */
	u32 ifindex;		   /* of the device */
	u32 bucket_limit_packets;  /* most packets of a flow that is never held */
	u32 codel_target_ns;	   /* drop what has waited longer for an interval; 0: do not */
	u32 codel_interval_ns;
};
_Static_assert(sizeof(struct onr_dev_cfg) == sizeof(struct onr_cfg) + 88, "daemon and BPF disagree");

/* Fleet time = mono + offset + (mono - reference) * drift. Beyond the lease nothing is held. */
struct onr_clock_params {
	s64 offset_ns;
	s64 drift_q32; /* dimensionless * 2^32 */
	s64 reference_mono_ns;
	s64 sigma_ns;
	s64 lease_expires_mono_ns;
};

/* Value of the map clock, which has two: the one with the larger epoch is valid. The daemon writes the other
 * one, its epoch last, so no reader waits and none reads half of an update. */
struct onr_clock {
	u64 epoch;
	struct onr_clock_params params;
};

struct onr_addr { /* IPv6, or IPv4 mapped (::ffff:a.b.c.d), in network order */
	u32 word[4];
};

/* A data flow as its sender sees it. Network order. */
struct onr_tuple {
	struct onr_addr saddr;
	struct onr_addr daddr;
	u16 sport;
	u16 dport;
};
_Static_assert(sizeof(struct onr_tuple) == 36, "hash key without padding");

/* What an entry of the flow table is. Whoever takes an entry for a flow sets TAKEN, atomically. */
enum onr_use { ONR_FREE, ONR_TAKEN, ONR_IN_USE, ONR_ENDED };

/* One sender-side flow: edge creates, recycles and records; orack feeds OR-ACKs to the law. The kernel moves
 * a connection between transmit queues while its packets are under way, so all of them share the entry. */
struct onr_ctl {
	struct bpf_spin_lock lock;
	u32 use; /* enum onr_use */
	s64 last_ns; /* when its last segment left; with edt, leaves */
	u32 held; /* in the heap of held queues; edge writes, orack reads */
	u32 held_in; /* the transmit queue that holds it */
	s64 held_until_ns;
	struct onr_tuple key; /* checked under the lock: the entry may have been recycled */
	u32 known_peer; /* its destination has been looked up; orack writes and reads */
	u32 kicked;	/* is in the list of struct onr_kicks */
	u32 next_kick; /* the entry behind it there, plus 1 */
	u32 ifindex; /* the device by which its first segment left */
	u32 rules_epoch; /* of the rules that gave it its class */
	u32 class_threshold_ns; /* T of its class; 0: that of its peer or of the configuration */
	u32 reserved;
	u64 cgroups[ONR_CGROUP_LEVELS]; /* of its socket, by level; 0: none. The first is 0, as that of a rule for all */
	struct onr_flow law;
	struct onr_records records;
};

/* Flows of one transmit queue that may leave earlier than its qdisc thinks: a list through struct onr_ctl. */
struct onr_kicks {
	struct bpf_spin_lock lock; /* no atomic exchange, which kernels before 5.12 do not have */
	u32 first; /* index in ctls, plus 1 */
	u32 ifindex; /* its device, and which of the device's transmit queues it is. The daemon writes them */
	u32 queue;
	u32 reserved[12]; /* one cache line: other processors write the next */
};

struct onr_prefix { /* key of the longest-prefix map of peers */
	u32 bits;
	struct onr_addr addr;
};

/* Flows that match it have a T of their own. The first rule that matches decides. */
struct onr_rule {
	struct onr_addr addr; /* of the flow's destination, under the mask */
	struct onr_addr mask;
	u16 first_port; /* of one end, host order */
	u16 last_port;
	u32 ifindex;	  /* of the device, under the mask */
	u32 ifindex_mask; /* 0: any device */
	u32 threshold_ns; /* 0: as without a class; ONR_NEVER_NS: never held */
	u32 cgroup_level;
	u32 reserved;
	u64 cgroup; /* the flow's at this level. Any: 0 at level 0 */
};

struct onr_rules {
	u32 epoch; /* another number when the rules have changed */
	u32 number;
	struct onr_rule rule[ONR_MAX_RULES];
};

struct onr_key { /* a fleet's key, as SipHash takes it */
	u64 k0;
	u64 k1;
	u32 valid;
	u32 reserved;
};
_Static_assert(sizeof(struct onr_key) == ONR_KEY_BYTES + 8, "two halves of a key");

/* What is known of one peer, by its address. Written at the sender; the daemon removes a peer that was not
 * heard for a minute. */
struct onr_peer {
	s64 heard_mono_ns; /* the last OR-ACK that gave the law a sample */
	s64 owd_last_ns;
	s64 owd_ewma_ns; /* gain 1/16 */
	struct onr_least least;
	u64 oracks;
	u64 holds;   /* times a flow to this peer was paused */
	u64 held_ns; /* total, over all flows to this peer */
	struct onr_wire wire; /* of the present window */
	u32 sooner_q16; /* what the windows have shown (wire.h), if one has: */
	u16 wire_known;
	u16 too_soon; /* before: samples that arrived sooner than the line rate lets them */
	s64 below_zero_mono_ns; /* the last delay below zero that the error of the clocks does not explain; 0: none */
};

/* The OR-ACK's UDP payload (36 B: 78 B on the wire over IPv4 and Ethernet). Network order, but the
 * tag: SipHash of the words as little-endian hosts have them, in the same order.
 * csum_scratch stays outside the tag: it keeps the UDP checksum right, see orack.bpf.c.
 * hint and len were one number, len, which no sender uses: daemons that do not know hint take both for it, and send 0
 * to 7 there (segments of up to 512 kB), which means unknown. */
#define ONR_ORACK_PORT 5199
#define ONR_ORACK_VERSION 1
struct onr_orack {
	u8 version;
	u8 flags; /* 0 */
	u16 key_id;
	u32 seq; /* sampled byte of the flow (sample.h) */
	u16 csum_scratch;
	u16 reserved; /* 0 */
	u16 sport;    /* of the data */
	u16 dport;
	u16 hint; /* what the receiver says about its port (law/receiver.h) */
	u16 len;  /* of the acknowledged segment, bytes of payload, at most 65,535 */
	u32 rx_fleet_hi_ns;
	u32 rx_fleet_lo_ns;
	u64 tag;
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct onr_orack) == 36, "78 B on the wire");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the tag would differ between hosts");

/* One list of counters: the enum, the names in `onramp status` and the metrics follow from it. The
 * meaning is one string literal. */
#define ONR_COUNTERS(X)                                                                            \
	X(flows_created, "flows entered into the flow table")                                      \
	X(flows_aged, "idle flows removed from the flow table")                                    \
	X(flows_ended, "flows removed from the flow table after their connection ended")           \
	X(flow_table_full, "segments passed unheld because the flow table was full")               \
	X(limit_drops, "packets dropped because the qdisc was at its limit")                       \
	X(flow_limit_drops, "packets dropped because their flow was at its limit")                 \
	X(codel_drops, "packets dropped because they had waited for too long, as the former qdisc did (CoDel)") \
	X(departures_ignored, "departure times more than 10 s ahead, ignored")                     \
	X(holds, "times a flow was paused")                                                        \
	X(held_ns, "total time that flows were paused, ns")                                        \
	X(held_max_ns, "longest time a flow was paused, ns")                                       \
	X(holds_refused_lease, "pauses not made because the clock lease had expired")              \
	X(guard_raises, "times the guard raised T of a flow that was held in vain")                \
	X(nic_waits, "segments that found bytes in the NIC's own queue, a wait that their stamps leave out")  \
	X(nic_wait_ns, "total time that they waited there, ns, estimated from BQL and the line rate") \
	X(nic_wait_max_ns, "longest such wait, ns")                                                \
	X(would_hold, "with --observe: pauses that On-Ramp would have made")                       \
	X(would_hold_ns, "their total time, ns")                                                   \
	X(kicks, "paused flows released early by a new OR-ACK")                                    \
	X(kicks_altered, "kicks that another program has changed, known by their bytes")           \
	X(oracks_sent, "OR-ACKs sent")                                                             \
	X(oracks_unsent, "OR-ACKs not sent: no room, or the ACK to follow came too late")          \
	X(oracks_intercepted, "OR-ACKs that another tcx program kept from being made")             \
	X(oracks_muted, "OR-ACKs not sent until On-Ramp's tcx program is the first again")         \
	X(oracks_strayed, "clones for OR-ACKs that reached the device unchanged, dropped")         \
	X(oracks_refused, "OR-ACKs answered with port unreachable")                                \
	X(oracks_unwanted, "OR-ACKs not sent to a host that refused one in the last second")       \
	X(oracks_received, "authentic OR-ACKs received")                                           \
	X(oracks_used, "OR-ACKs that gave the law a sample")                                       \
	X(oracks_malformed, "packets to the OR-ACK port that are not OR-ACKs, passed on")          \
	X(oracks_bad_tag, "OR-ACKs with a wrong tag or unknown key, passed on")                    \
	X(oracks_stale, "OR-ACKs too old or from the future, ignored")                             \
	X(oracks_unknown_flow, "OR-ACKs for flows not in the table, ignored")                      \
	X(oracks_unmatched, "OR-ACKs for segments not in the record, ignored")                     \
	X(oracks_reordered, "OR-ACKs reordered, duplicated or replayed, ignored")                  \
	X(oracks_absurd, "OR-ACKs with an absurd one-way delay, ignored")                          \
	X(oracks_below_zero, "OR-ACKs with a one-way delay below zero that the error of the clocks does not explain") \
	X(oracks_no_lease, "OR-ACKs not used because the clock lease had expired")                 \
	X(oracks_without_hint, "with law level: OR-ACKs whose receiver does not say what its port carries, so that nothing is held") \
	X(let_go, "with law level: times a flow was let go, because holding it was of no use")

/* Behind the counters, in the same map: how many pauses had which length, by bucket of law/histogram.h. */
enum onr_counter {
#define ONR_COUNTER_ID(name, help) ONR_CNT_##name,
	ONR_COUNTERS(ONR_COUNTER_ID)
#undef ONR_COUNTER_ID
	ONR_CNT_MAX,
	ONR_CNT_ALL = ONR_CNT_MAX + ONR_HISTOGRAM_BUCKETS
};

/* ---- the virtual rack ---- */

struct onr_rack_port { /* of one host */
	u32 line_ifindex; /* its access line */
	u32 up_ifindex;	  /* the switch port towards it */
};

enum onr_probe_kind {
	ONR_PROBE_ARRIVAL, /* a frame arrived at the measured port's queue */
	ONR_PROBE_DELAY,   /* a sampled segment arrived at its host */
};

struct onr_probe_event {
	s64 mono_ns;
	u32 kind;  /* enum onr_probe_kind */
	u32 bytes; /* arrival: length of the frame; delay: payload */
	u64 value; /* arrival: bytes queued before it; delay: one-way delay, ns */
};

#endif
