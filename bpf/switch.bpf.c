/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* switch.bpf.c: the virtual rack's switch. Sends each frame from its sender's access line to the
 * port of its receiver, and marks CE where a DCTCP port would.
 * Does not queue, shape or drop: stock netem and tbf do. Part of the experiment, never installed
 * on an operator's host.
 *
 * A frame's way, all in the switch's namespace:
 *   up<i> (veth to host i), tcx ingress   switch_line_in: redirect to line<i>, whose netem is the
 *                                         access line (rate, delay, and the end of TCP's custody)
 *   line<i> (netkit), on transmission     switch_forward: redirect to up<j>, found by address
 *   up<j>, tcx egress                     switch_mark, only where ports mark: CE above a threshold
 *   up<j>, its qdisc                      tbf: the port's line and its byte-limited queue
 *
 * Hosts have the addresses 02:00:00:00:hi:lo, so 16 bits of the destination name the port for
 * IPv4, IPv6 and whatever else a host may send. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define RACK_MAX_HOSTS 256
/* Verdicts younger than Debian 12's headers: enum tcx_action_base, enum netkit_action. */
#define TCX_NEXT -1
#define NETKIT_DROP 2

/* Of host i: written once by the rack before the first frame; read by the programs below. */
struct rack_port {
	__u32 line_ifindex; /* access line of host i */
	__u32 up_ifindex;   /* switch port towards host i */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RACK_MAX_HOSTS);
	__type(key, __u32);
	__type(value, struct rack_port);
} rack_ports SEC(".maps");

/* Frames that named no host of the rack: multicast, mostly. Read by the rack at the end. */
__u64 unknown_frames;

/* CE threshold of a port in bytes, before the arriving frame; set before loading. */
const volatile __u32 mark_above_bytes;

struct Qdisc___rack {
	struct {
		__u32 backlog;
	} qstats;
} __attribute__((preserve_access_index));

struct net_device___rack {
	struct Qdisc___rack *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff___rack {
	struct net_device___rack *dev;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

static struct rack_port *port_of(const struct __sk_buff *skb, __u32 address_offset)
{
	const __u8 *frame = (const __u8 *)(long)skb->data;
	__u32 host;

	if (frame + ETH_HLEN > (const __u8 *)(long)skb->data_end || frame[address_offset] != 0x02)
		return 0;
	host = (__u32)frame[address_offset + 4] << 8 | frame[address_offset + 5];
	return bpf_map_lookup_elem(&rack_ports, &host);
}

SEC("tcx/ingress")
int switch_line_in(struct __sk_buff *skb)
{
	struct rack_port *from = port_of(skb, ETH_ALEN);

	if (!from || !from->line_ifindex) {
		__sync_fetch_and_add(&unknown_frames, 1);
		return TC_ACT_SHOT;
	}
	return bpf_redirect(from->line_ifindex, 0);
}

SEC("netkit/primary")
int switch_forward(struct __sk_buff *skb)
{
	struct rack_port *to = port_of(skb, 0);

	if (!to || !to->up_ifindex) {
		__sync_fetch_and_add(&unknown_frames, 1);
		return NETKIT_DROP;
	}
	return bpf_redirect(to->up_ifindex, 0);
}

/* DCTCP (Alizadeh et al., SIGCOMM 2010, section 3.1): mark every arrival that finds more than K in
 * the instantaneous queue. Stock RED averages and stock CoDel marks by sojourn at departure. */
SEC("tcx/egress")
int switch_mark(struct __sk_buff *skb)
{
	struct sk_buff___rack *k = bpf_cast_to_kern_ctx(skb);

	if (k->dev->qdisc->qstats.backlog > mark_above_bytes)
		bpf_skb_ecn_set_ce(skb);
	return TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
