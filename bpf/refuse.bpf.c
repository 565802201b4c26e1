/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* refuse.bpf.c: keeps data in its sockets while the daemon replaces the qdiscs of a device, because the kernel drops
 * what waits in a former qdisc, and what is sent while it replaces one.
 *
 * refuse (tcx egress) drops a segment only where TCP learns of it: the socket's own call returns NET_XMIT_DROP, and
 * TCP keeps the segment as not sent yet. It may then have nothing under way whose acknowledgement lets it go on, and
 * would wait for its probe timer (200 ms and more). So wake (an iterator over the sockets of the network namespace)
 * lets those send that were refused. What TCP would count as lost passes: ACKs, SYN, RST, what is sent again, and
 * packets that are forwarded, of other protocols, or in a tunnel. */
#include "packet.bpf.h"

#define DST_ADDRESS (~1ul) /* of skb->_skb_refdst: the lowest bit says whether the packet has a reference */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Writer: the daemon. Reader: refuse. */
volatile s64 until_mono_ns SEC(".data.until");

/* The sockets that were refused, by address. Writer: refuse. Reader: wake. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16); /* a socket beyond them is not refused */
	__type(key, u64);
	__type(value, u32);
} refused SEC(".maps");

/* Does the socket's route end at this very device? Then nothing lies between TCP and this program that could lose the
 * verdict, as a bridge or the device of a pod would. */
static __always_inline bool tcp_learns(const struct sk_buff *skb)
{
	const struct dst_entry *dst = bpf_rdonly_cast((void *)(skb->_skb_refdst & DST_ADDRESS),
						      bpf_core_type_id_kernel(struct dst_entry));
	const struct net_device *dev = skb->dev;
	const struct sock *sk = skb->sk;

	return sk && dst->dev == dev && sk->__sk_common.skc_net.net == dev->nd_net.net;
}

/* Is it data, or the end of data, that the socket sends for the first time? */
static __always_inline bool is_new(const struct sk_buff *skb, u32 snd_nxt)
{
	struct packet packet;
	struct segment seg;

	return parse_skb(skb, &packet) && segment_of(&packet, &seg) && seg.seq == snd_nxt &&
	       !(seg.flags & (TCP_SYN | TCP_RST)) && (seg.len || seg.flags & TCP_FIN);
}

SEC("tcx/egress")
int refuse(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	const struct tcp_sock *tcp;
	struct bpf_sock *sk = ctx->sk;
	u32 present = 1;
	u64 id;

	if (bpf_ktime_get_ns() >= (u64)until_mono_ns || !sk || !tcp_learns(skb))
		return ONR_TCX_NEXT;
	tcp = (const void *)bpf_skc_to_tcp_sock(sk);
	if (!tcp || !is_new(skb, tcp->snd_nxt))
		return ONR_TCX_NEXT;
	id = (u64)tcp;
	return bpf_map_update_elem(&refused, &id, &present, BPF_ANY) ? ONR_TCX_NEXT : ONR_TCX_DROP;
}

/* TCP_NODELAY makes TCP send what waits; then the socket has its own setting again. */
SEC("iter/tcp")
int wake(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	int former = 1, on = 1;
	struct tcp_sock *tcp;
	u64 id;

	tcp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	id = (u64)tcp;
	if (!tcp || bpf_map_delete_elem(&refused, &id))
		return 0;
	bpf_getsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &former, sizeof(former));
	bpf_setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!former)
		bpf_setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &former, sizeof(former));
	return 0;
}
