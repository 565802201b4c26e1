/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* rapid.bpf.c: TCP RAPID as a congestion control of Linux. The arithmetic of gaps, estimates and rate is law/cc/rapid.h,
 * as in the simulator. The window is a constant; rapid_hooks.bpf.c gives each packet its time of departure, which fq or
 * edge keeps, and brings the receiver's stamps. Until one comes the window is Reno's, and for ever if none come or if TCP
 * sends segments of several packets, which have no gaps: see is_plain. A timeout halves the
 * rate, as in the law. Needs Linux 6.7, where BPF may ask for pacing. */
#include "tcp.bpf.h"
#include "rapid.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

CONFIG(struct onr_rapid_cfg);

/* Packets without a stamp that make a connection plain: before the first one, and after. */
#define SILENT_FIRST 4
#define SILENT_LATER RECORDS
/* Stamps that an acknowledgement uses; the kernel processes one or two. */
#define STAMPS_AT_ONCE 8
/* Records have the last 4.3 s. */
#define LONGEST_RTT_US 4000000u
#define NS_PER_US 1000
#define US_PER_S 1000000
/* TCP's own pace is faster than the fastest packets of a stream, so that the times of departure decide. */
#define PACE_MARGIN 2
#define PACE_MARGIN_START 4

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;

static __always_inline struct rapid *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&rapid_senders, sk, 0, 0);
}

SEC("struct_ops")
void BPF_PROG(rapid_init, struct sock *sk)
{
	struct rapid *rapid = bpf_sk_storage_get(&rapid_senders, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	tcp_of(sk)->inet_conn.icsk_ca_priv[0] = tcp_of(sk)->delivered;
	if (!rapid)
		return; /* no memory: plain */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

SEC("struct_ops")
void BPF_PROG(rapid_release, struct sock *sk)
{
	bpf_sk_storage_delete(&rapid_senders, sk);
}

/* The time of departure, whose upper bits a record does not have. */
static __always_inline u64 sent_ns(u32 sent, u64 now)
{
	return now - (s32)((u32)now - (sent & ~RECORD_FLAGS));
}

/* Gives the law a packet that has arrived. */
static __always_inline void report(struct rapid *rapid, const struct stamp *stamp, u32 unacked, u64 now)
{
	u32 number = find_record(rapid, stamp->end), sent;
	struct onr_rapid_arrival arrival;

	rapid->arrived_us += (s32)(stamp->us - (u32)rapid->arrived_us);
	if (number == rapid->next)
		return;
	sent = rapid->records[number % RECORDS].sent;
	if (sent & RECORD_AGAIN)
		return;
	arrival.number = number;
	arrival.are_all = number == rapid->flow.last + 1 || (s32)(stamp->end - unacked) <= 0;
	arrival.is_limited = sent & RECORD_LIMITED;
	arrival.next = rapid->next;
	arrival.sent_ns = sent_ns(sent, now);
	arrival.arrived_ns = rapid->arrived_us * NS_PER_US;
	arrival.rtt_ns = now > arrival.sent_ns ? now - arrival.sent_ns : 0;
	onr_rapid_arrived(&cfg, &rapid->flow, &rapid->stream, &arrival);
}

/* The first stamp has come. The packets before it left as TCP wanted. */
static __always_inline void begin(struct rapid *rapid, const struct tcp_sock *tcp)
{
	u64 rtt_ns = (u64)(tcp->srtt_us / 8) * NS_PER_US;

	onr_rapid_begin(&cfg, &rapid->flow, &rapid->stream, onr_rapid_first_rate(&cfg, rtt_ns), rapid->next);
}

static __always_inline void take_stamps(struct rapid *rapid, const struct tcp_sock *tcp)
{
	u64 now = bpf_ktime_get_ns();
	struct stamp stamp;
	int i;

	if (rapid->stamped - rapid->taken > STAMPS)
		rapid->taken = rapid->stamped - STAMPS; /* overwritten */
	bpf_for(i, 0, STAMPS_AT_ONCE) {
		if (rapid->taken == rapid->stamped)
			break;
		stamp = rapid->stamps[rapid->taken % STAMPS];
		rapid->taken++;
		rapid->is_heard = 1;
		rapid->silent = 0;
		if (!rapid->flow.rate)
			begin(rapid, tcp);
		if (tcp->srtt_us / 8 < LONGEST_RTT_US)
			report(rapid, &stamp, tcp->snd_una, now);
	}
}

/* Reno goes on from what the rate was, until the connection ends. */
static __always_inline void become_plain(struct rapid *rapid, struct tcp_sock *tcp)
{
	u64 window = rapid->flow.rate * (tcp->srtt_us / 8) / US_PER_S / cfg.packet_bytes;

	rapid->is_plain = 1;
	if (!rapid->is_heard)
		return; /* it was Reno's all the time */
	tcp->snd_cwnd = window < 2 ? 2 : window < RECORDS ? window : RECORDS;
	tcp->snd_ssthresh = tcp->snd_cwnd;
}

static __always_inline void as_reno(struct sock *sk, u32 acked)
{
	struct tcp_sock *tcp = tcp_of(sk);

	if (BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) < TCP_CA_CWR)
		tcp_reno_cong_avoid(sk, tcp->snd_una, acked);
	pace(sk);
}

/* An acknowledgement has been processed. */
SEC("struct_ops")
void BPF_PROG(rapid_cong_control, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct rapid *rapid = state_of(sk);
	u32 acked = tcp->delivered - (u32)tcp->inet_conn.icsk_ca_priv[0];
	u64 rate;

	tcp->inet_conn.icsk_ca_priv[0] = tcp->delivered;
	if (!rapid || rapid->is_plain) {
		as_reno(sk, acked);
		return;
	}
	rapid->silent += acked;
	take_stamps(rapid, tcp);
	if (rapid->has_burst || rapid->silent > (rapid->is_heard ? SILENT_LATER : SILENT_FIRST))
		become_plain(rapid, tcp);
	if (rapid->is_plain || !rapid->is_heard) {
		as_reno(sk, acked);
		return;
	}
	set_window(tcp, cfg.cap_packets < RECORDS ? cfg.cap_packets : RECORDS);
	rate = rapid->flow.rate * (rapid->flow.in_start ? PACE_MARGIN_START : PACE_MARGIN);
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* Reno's window is halved once a loss, at its beginning. */
SEC("struct_ops")
void BPF_PROG(rapid_set_state, struct sock *sk, u8 to)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct rapid *rapid = state_of(sk);
	u32 half = tcp->snd_cwnd / 2;

	if (BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) >= to)
		return;
	if (rapid && rapid->is_heard && !rapid->is_plain) {
		if (to > TCP_CA_RECOVERY)
			onr_rapid_back_off(&cfg, &rapid->flow, &rapid->stream, rapid->next);
	} else if (to == TCP_CA_RECOVERY) {
		tcp->snd_cwnd = half > 2 ? half : 2;
		tcp->snd_ssthresh = tcp->snd_cwnd;
	}
}

SEC("struct_ops")
u32 BPF_PROG(rapid_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(rapid_undo_cwnd, struct sock *sk)
{
	return tcp_of(sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops rapid = {
	.init = (void *)rapid_init,
	.release = (void *)rapid_release,
	.ssthresh = (void *)rapid_ssthresh,
	.cong_control = (void *)rapid_cong_control,
	.set_state = (void *)rapid_set_state,
	.undo_cwnd = (void *)rapid_undo_cwnd,
	.name = "rapid",
};
