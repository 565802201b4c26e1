/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* tbtcp.bpf.c: Tiny Buffer TCP as a congestion control of Linux ("Tiny Buffer TCP for Data Center Networks", section 4).
 * The arithmetic of the window is law/cc/tbtcp.h, as in the simulator. Slow start, and what a loss takes, are Reno's; slow
 * start ends at the first mark. Without ECN there are no marks: the window grows slowly until a loss. Needs Linux 6.4,
 * whose struct_ops have links. */
#include "tcp.bpf.h"
#include "../../law/cc/tbtcp.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

CONFIG(struct onr_tbtcp_cfg);

/* In the socket. */
struct tbtcp {
	u64 counted;
	struct deliveries seen;
	struct echo echo;
};
_Static_assert(sizeof(struct tbtcp) <= 13 * sizeof(u64), "icsk_ca_priv");

static __always_inline struct tbtcp *state_of(struct tcp_sock *tcp)
{
	return (struct tbtcp *)tcp->inet_conn.icsk_ca_priv;
}

SEC("struct_ops")
void BPF_PROG(tbtcp_init, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct tbtcp *state = state_of(tcp);

	state->counted = 0;
	state->seen.delivered = tcp->delivered;
	state->seen.delivered_ce = tcp->delivered_ce;
	state->echo.prior_rcv_nxt = tcp->rcv_nxt;
	state->echo.marked = 0;
}

SEC("struct_ops")
u32 BPF_PROG(tbtcp_ssthresh, struct sock *sk)
{
	u32 half = tcp_of(sk)->snd_cwnd / 2;

	return half > ONR_TBTCP_FLOOR ? half : ONR_TBTCP_FLOOR;
}

/* A loss halves the window once; the kernel sets it itself after a timeout. */
SEC("struct_ops")
void BPF_PROG(tbtcp_set_state, struct sock *sk, u8 to)
{
	struct tcp_sock *tcp = tcp_of(sk);
	u32 half = tcp->snd_cwnd / 2;

	if (to != TCP_CA_RECOVERY || BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) >= TCP_CA_RECOVERY)
		return;
	tcp->snd_cwnd = half > ONR_TBTCP_FLOOR ? half : ONR_TBTCP_FLOOR;
	tcp->snd_ssthresh = tcp->snd_cwnd;
}

/* An acknowledgement has been processed. */
SEC("struct_ops")
void BPF_PROG(tbtcp_cong_control, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct tbtcp *state = state_of(tcp);
	struct delivered delivered = take_delivered(tcp, &state->seen);
	u32 window = tcp->snd_cwnd;
	u64 counted = state->counted;

	if (delivered.marked) {
		window = onr_tbtcp_cut(&cfg, window, delivered.marked);
		if (window < tcp->snd_ssthresh)
			tcp->snd_ssthresh = window;
	}
	if (BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) != TCP_CA_RECOVERY && may_grow(tcp)) {
		if (window < tcp->snd_ssthresh) {
			window += delivered.packets;
		} else {
			window = onr_tbtcp_grow(&cfg, &counted, window, delivered.packets);
			state->counted = counted;
		}
	}
	set_window(tcp, window);
	pace(sk);
}

SEC("struct_ops")
void BPF_PROG(tbtcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tcp = tcp_of(sk);

	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		echo_mark(tcp, &state_of(tcp)->echo, event == CA_EVENT_ECN_IS_CE);
}

SEC("struct_ops")
u32 BPF_PROG(tbtcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops tbtcp = {
	.init = (void *)tbtcp_init,
	.ssthresh = (void *)tbtcp_ssthresh,
	.cong_control = (void *)tbtcp_cong_control,
	.set_state = (void *)tbtcp_set_state,
	.cwnd_event = (void *)tbtcp_cwnd_event,
	.undo_cwnd = (void *)tbtcp_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "tbtcp",
};
