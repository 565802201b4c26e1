/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* switch.bpf.c: the virtual rack's switch. Sends each frame from its sender's access line to the
 * port of its receiver, and marks CE by the length of the port's queue.
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
#include "packet.bpf.h"

#define RACK_MAX_HOSTS 256
#define NETKIT_DROP 2 /* enum netkit_action, which is younger than Debian 12's headers */

/* By host. Writer: the rack, before the first frame. Readers: the programs below. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RACK_MAX_HOSTS);
	__type(key, u32);
	__type(value, struct onr_rack_port);
} rack_ports SEC(".maps");

/* Frames that named no host of the rack: multicast, mostly. Read by the rack at the end. */
u64 unknown_frames;

#define RACK_MARK_STEPS 1024

/* Marks of a port by its queue in bytes, before the arriving frame; set before loading. Of the frames that find more
 * than the threshold this part is marked, in 2^-32, a number for each step; the last is for all longer queues. */
const volatile u32 mark_above_bytes;
const volatile u32 mark_step_bytes = 1;
const volatile u32 mark_parts[RACK_MARK_STEPS];

/* The port of the host that has this Ethernet address. */
static struct onr_rack_port *port_of(const u8 *address)
{
	u32 host = (u32)address[4] << 8 | address[5];

	return address[0] == 0x02 ? bpf_map_lookup_elem(&rack_ports, &host) : NULL;
}

SEC("tcx/ingress")
int switch_line_in(struct __sk_buff *skb)
{
	const struct ethhdr *eth = ethernet_of(skb);
	struct onr_rack_port *from = eth ? port_of(eth->h_source) : NULL;

	if (!from || !from->line_ifindex) {
		__sync_fetch_and_add(&unknown_frames, 1);
		return ONR_TCX_DROP;
	}
	return bpf_redirect(from->line_ifindex, 0);
}

SEC("netkit/primary")
int switch_forward(struct __sk_buff *skb)
{
	const struct ethhdr *eth = ethernet_of(skb);
	struct onr_rack_port *to = eth ? port_of(eth->h_dest) : NULL;

	if (!to || !to->up_ifindex) {
		__sync_fetch_and_add(&unknown_frames, 1);
		return NETKIT_DROP;
	}
	return bpf_redirect(to->up_ifindex, 0);
}

/* DCTCP (Alizadeh et al., SIGCOMM 2010, section 3.1) marks every arrival that finds more than K in the instantaneous
 * queue, Tiny Buffer TCP (section 4.1) as many as its curve says. Stock RED averages and stock CoDel marks by sojourn at
 * departure. */
SEC("tcx/egress")
int switch_mark(struct __sk_buff *skb)
{
	struct sk_buff *k = bpf_cast_to_kern_ctx(skb);
	u32 queue = k->dev->qdisc->qstats.backlog, step;

	if (queue <= mark_above_bytes)
		return ONR_TCX_NEXT;
	step = (queue - mark_above_bytes) / mark_step_bytes;
	if (step >= RACK_MARK_STEPS)
		step = RACK_MARK_STEPS - 1;
	if (bpf_get_prandom_u32() <= mark_parts[step])
		bpf_skb_ecn_set_ce(skb);
	return ONR_TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
