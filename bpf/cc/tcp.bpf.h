/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* tcp.bpf.h: the few types and functions of the kernel's TCP that congestion controls touch, relocated by CO-RE
 * (BPF_CORE), and what all of ours share: counting deliveries and echoing marks. */
#ifndef ONR_TCP_BPF_H
#define ONR_TCP_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/version.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../../law/types.h"
#include "config.bpf.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0) /* of the headers, not of the kernel we run on */
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate; /* bytes a second */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 delivered;	  /* packets acknowledged so far */
	u32 delivered_ce; /* those whose acknowledgement echoed a mark */
	u32 packets_out;
	u32 max_packets_out;
	u32 mss_cache;
	u32 srtt_us; /* times 8 */
	u8 is_cwnd_limited : 1;
	u32 app_limited;      /* the application has too little data until so many packets are delivered; or 0 */
	u32 rate_delivered;   /* packets in rate_interval_us, of the last sample of the rate of delivery */
	u32 rate_interval_us;
	u8 ecn_flags;
	u32 rcv_nxt;
	u32 snd_una;
};

/* Of an acknowledgement. */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* negative: none */
	u32 in_flight;
};

enum tcp_ca_event {
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_control)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 flags;
	char name[16];
};

#pragma clang attribute pop

enum { TCP_CA_CWR = 2, TCP_CA_RECOVERY = 3 };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { TCP_CONG_NEEDS_ECN = 2 };
enum { TCP_ECN_OK = 1, TCP_ECN_DEMAND_CWR = 4 };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };

extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* The kernel's TCP socket of a congestion control's argument. */
static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The congestion control bounds the window, and TCP's clamp does. */
static __always_inline void set_window(struct tcp_sock *tcp, u32 window)
{
	tcp->snd_cwnd = window < tcp->snd_cwnd_clamp ? window : tcp->snd_cwnd_clamp;
}

/* ---- sender: what an acknowledgement has delivered ---- */

/* Seen so far; the kernel's counts wrap. */
struct deliveries {
	u32 delivered;
	u32 delivered_ce;
};

struct delivered {
	u32 packets;
	u32 marked; /* of them */
};

static __always_inline struct delivered take_delivered(const struct tcp_sock *tcp,
						       struct deliveries *seen)
{
	struct delivered now = {
		.packets = tcp->delivered - seen->delivered,
		.marked = tcp->delivered_ce - seen->delivered_ce,
	};

	seen->delivered = tcp->delivered;
	seen->delivered_ce = tcp->delivered_ce;
	return now;
}

/* Did the window limit the sender? An application that sends less does not make it grow (RFC 7661, as in Linux). */
static __always_inline bool may_grow(const struct tcp_sock *tcp)
{
	if (tcp->snd_cwnd < tcp->snd_ssthresh)
		return tcp->snd_cwnd < 2 * tcp->max_packets_out;
	return BPF_CORE_READ_BITFIELD(tcp, is_cwnd_limited);
}

/* Space for the window's packets over a round trip, as the kernel does for its own (tcp_update_pacing_rate): a fifth more,
 * and twice as much while the window doubles. For fq and edge, and for the size of segments. */
static __always_inline void pace(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	u32 window = tcp->snd_cwnd > tcp->packets_out ? tcp->snd_cwnd : tcp->packets_out;
	u32 per_cent = tcp->snd_cwnd < tcp->snd_ssthresh / 2 ? 200 : 120;
	u64 rate = (u64)tcp->mss_cache * window * per_cent * (8 * 1000000 / 100);

	if (!tcp->srtt_us)
		return;
	rate /= tcp->srtt_us;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* ---- receiver: each marked packet is echoed (RFC 8257, section 3.2) ---- */

struct echo {
	u32 prior_rcv_nxt;
	u32 marked; /* was the last packet? */
};

static __always_inline void demand_cwr(struct tcp_sock *tcp, bool marked)
{
	if (marked)
		tcp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tcp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* A packet arrives. An ACK that waits is about packets that differ: it goes first. */
static __always_inline void echo_mark(struct tcp_sock *tcp, struct echo *echo, bool marked)
{
	if (echo->marked != marked) {
		if (tcp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			demand_cwr(tcp, echo->marked);
			bpf_tcp_send_ack(tcp, echo->prior_rcv_nxt);
		}
		tcp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	echo->prior_rcv_nxt = tcp->rcv_nxt;
	echo->marked = marked;
	demand_cwr(tcp, marked);
}

#endif
