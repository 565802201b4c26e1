/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* pace.bpf.c: lets TCP space its own segments on devices whose fq, which did that, edge has replaced. A qdisc cannot
 * tell TCP that it spaces segments, as fq does, and CUBIC would take the spacing for the end of the path's capacity and
 * leave slow start.
 *
 * A socket for which a pace is set spaces its segments (SK_PACING_NEEDED), also after the pace is taken away again:
 * from then on at the pace that its congestion control computes. new_socket (sock_ops of the root cgroup) sees each
 * connection when it is established, open_socket (an iterator) those that are there when the daemon starts. */
#include "kernel.bpf.h"

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define NO_PACE (~0u)
#define FASTEST (NO_PACE - 1) /* bytes a second */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of the daemon's network namespace. Writer: the daemon, before it loads the object. */
const volatile u64 netns_cookie = 0;

/* The devices of which the daemon has replaced fq, and those that lie over them (bonds, VLANs), by index. Writer: the
 * daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} devices SEC(".maps");

/* Do the socket's packets leave by such a device, unspaced so far? */
static __always_inline bool is_unspaced(const struct tcp_sock *tcp)
{
	const struct sock *sk = (const void *)tcp;
	u32 ifindex = BPF_CORE_READ(sk, sk_dst_cache, dev, ifindex);

	return BPF_CORE_READ(sk, sk_pacing_status) == SK_PACING_NONE &&
	       bpf_map_lookup_elem(&devices, &ifindex);
}

/* target: the socket, or the context that stands for it. */
#define SPACE(target)                                                                              \
	do {                                                                                       \
		u32 fastest = FASTEST, none = NO_PACE;                                             \
		bpf_setsockopt(target, SOL_SOCKET, SO_MAX_PACING_RATE, &fastest, sizeof(fastest)); \
		bpf_setsockopt(target, SOL_SOCKET, SO_MAX_PACING_RATE, &none, sizeof(none));       \
	} while (0)

SEC("sockops")
int new_socket(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk;
	struct tcp_sock *tcp;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk || bpf_get_netns_cookie(ctx) != netns_cookie)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && is_unspaced(tcp))
		SPACE(ctx);
	return 1;
}

SEC("iter/tcp")
int open_socket(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tcp;

	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && is_unspaced(tcp))
		SPACE(tcp);
	return 0;
}
