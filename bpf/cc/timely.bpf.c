/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* timely.bpf.c: TIMELY as a congestion control of Linux (SIGCOMM 2015). The arithmetic of the rate is law/cc/timely.h, as
 * in the simulator. A segment is a number of acknowledged packets; its round-trip time contains the host's
 * stack, unlike that of the paper's NIC. fq, edge or TCP itself keeps the pace. A loss, on which the paper is silent,
 * halves the rate once. Needs Linux 6.7, where BPF may ask for pacing. */
#include "tcp.bpf.h"
#include "../../law/cc/timely.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

CONFIG(struct onr_timely_cfg);

#define FIRST_PACKETS 10 /* in the first round-trip time, as TCP's initial window */
#define NS_PER_US 1000
#define US_PER_S 1000000

/* In the socket. */
struct timely {
	struct onr_timely flow;
};
_Static_assert(sizeof(struct timely) <= 13 * sizeof(u64), "icsk_ca_priv");

static __always_inline struct timely *state_of(struct tcp_sock *tcp)
{
	return (struct timely *)tcp->inet_conn.icsk_ca_priv;
}

SEC("struct_ops")
void BPF_PROG(timely_init, struct sock *sk)
{
	struct timely *state = state_of(tcp_of(sk));

	state->flow.rate = 0;
	state->flow.difference = 0;
	state->flow.prev_rtt_ns = 0;
	state->flow.falls = 0;
	state->flow.acked = 0;
	state->flow.least_ns = 0;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Section 4.4: does the flow use less than 80 % of its rate, for want of data? */
static __always_inline bool is_limited(const struct tcp_sock *tcp, u64 rate)
{
	u64 sent = (u64)tcp->rate_delivered * tcp->mss_cache * US_PER_S;

	return tcp->app_limited && tcp->rate_interval_us && sent / tcp->rate_interval_us < rate / 5 * 4;
}

SEC("struct_ops")
void BPF_PROG(timely_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct timely *state = state_of(tcp);
	struct onr_timely flow = state->flow;
	s64 rtt_us = sample->rtt_us;
	u32 bytes = sample->pkts_acked * tcp->mss_cache;

	if (rtt_us <= 0)
		return;
	if (flow.rate) {
		onr_timely_acked(&cfg, &flow, bytes, rtt_us * NS_PER_US, is_limited(tcp, flow.rate));
	} else {
		onr_timely_begin(&cfg, &flow, (u64)FIRST_PACKETS * tcp->mss_cache * US_PER_S / (u64)rtt_us);
	}
	state->flow = flow;
}

/* An acknowledgement has been processed. */
SEC("struct_ops")
void BPF_PROG(timely_cong_control, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	u64 rate = state_of(tcp)->flow.rate;

	if (!rate)
		return;
	set_window(tcp, cfg.cap_packets);
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

SEC("struct_ops")
void BPF_PROG(timely_set_state, struct sock *sk, u8 to)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct timely *state = state_of(tcp);
	struct onr_timely flow = state->flow;

	if (to < TCP_CA_RECOVERY || BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) >= TCP_CA_RECOVERY)
		return;
	onr_timely_loss(&cfg, &flow);
	state->flow = flow;
}

SEC("struct_ops")
u32 BPF_PROG(timely_ssthresh, struct sock *sk)
{
	return tcp_of(sk)->snd_ssthresh;
}

SEC("struct_ops")
u32 BPF_PROG(timely_undo_cwnd, struct sock *sk)
{
	return tcp_of(sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops timely = {
	.init = (void *)timely_init,
	.ssthresh = (void *)timely_ssthresh,
	.cong_control = (void *)timely_cong_control,
	.set_state = (void *)timely_set_state,
	.undo_cwnd = (void *)timely_undo_cwnd,
	.pkts_acked = (void *)timely_pkts_acked,
	.name = "timely",
};
