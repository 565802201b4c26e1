/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* probe.bpf.c: the virtual rack's instruments: the queue of a switch port as each arrival finds
 * it, and true one-way delays of sampled TCP segments. Changes nothing, decides nothing.
 *
 *   up<i>, tcx ingress     probe_sent: a sampled segment has just left host i's network card
 *   eth0 of j, tcx ingress probe_received: it has arrived at host j, above its switch port's line
 *   up<j>, tcx egress      probe_port: a frame arrives at the queue of port j
 *
 * Sampled: TCP segments whose payload crosses a multiple of sample_bytes of sequence space, so the
 * two ends choose the same ones without a word, and the cost is one map operation in
 * sample_bytes / MSS frames, equal in every case that is compared. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Verdict younger than Debian 12's headers: enum tcx_action_base. */
#define TCX_NEXT -1

const volatile __u32 sample_bytes = 14480;

/* Read by the rack in crates/rack/src/probe.rs. */
struct probe_event {
	__u64 mono_ns;
	__u32 kind;          /* enum probe_kind */
	__u32 bytes;         /* arrival: length of the frame; delay: payload */
	__u64 value;         /* arrival: bytes queued before it; delay: one-way delay, ns */
};

enum probe_kind {
	PROBE_ARRIVAL = 0,
	PROBE_DELAY = 1,
};

/* Written by the probes; drained by the rack a few times a second, without wake-ups. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} probe_events SEC(".maps");

/* Events that found the ring full: the rack says so in its results. */
__u64 lost_events;

struct segment_key {
	__u32 source, destination; /* IPv4 address, or the last 32 bits of an IPv6 address */
	__u32 ports;
	__u32 sampled_seq; /* the multiple, not the segment's start: receivers merge segments */
};

/* Departure of sampled segments on their way; lost ones age out. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct segment_key);
	__type(value, __u64);
} probe_departures SEC(".maps");

struct Qdisc___probe {
	struct {
		__u32 backlog;
	} qstats;
} __attribute__((preserve_access_index));

struct net_device___probe {
	struct Qdisc___probe *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff___probe {
	struct net_device___probe *dev;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

static void emit(__u32 kind, __u64 now, __u32 bytes, __u64 value)
{
	struct probe_event *event = bpf_ringbuf_reserve(&probe_events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	event->mono_ns = now;
	event->kind = kind;
	event->bytes = bytes;
	event->value = value;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Fills key and payload of a sampled TCP segment. Headers are in the linear part: the stack put
 * them there, and segmentation copied them. */
static __always_inline bool sampled(const struct __sk_buff *skb, struct segment_key *key,
				    __u32 *payload)
{
	const void *end = (const void *)(long)skb->data_end;
	const struct ethhdr *eth = (const void *)(long)skb->data;
	const struct tcphdr *tcp;
	__u32 seq, distance, total;

	if ((const void *)(eth + 1) > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = (const void *)(eth + 1);

		if ((const void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP || ip->ihl != 5)
			return false;
		tcp = (const void *)(ip + 1);
		total = bpf_ntohs(ip->tot_len) - sizeof(*ip);
		key->source = ip->saddr;
		key->destination = ip->daddr;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip6 = (const void *)(eth + 1);

		if ((const void *)(ip6 + 1) > end || ip6->nexthdr != IPPROTO_TCP)
			return false;
		tcp = (const void *)(ip6 + 1);
		total = bpf_ntohs(ip6->payload_len);
		key->source = ip6->saddr.s6_addr32[3];
		key->destination = ip6->daddr.s6_addr32[3];
	} else {
		return false;
	}
	if ((const void *)(tcp + 1) > end)
		return false;
	*payload = total - tcp->doff * 4;
	if ((__s32)*payload <= 0)
		return false;
	seq = bpf_ntohl(tcp->seq);
	/* A multiple lies in [seq, seq + payload) when the distance to the next one is short. */
	distance = (sample_bytes - seq % sample_bytes) % sample_bytes;
	if (distance >= *payload)
		return false;
	key->ports = (__u32)tcp->source << 16 | tcp->dest;
	key->sampled_seq = seq + distance;
	return true;
}

SEC("tcx/ingress")
int probe_sent(struct __sk_buff *skb)
{
	struct segment_key key;
	__u32 payload;
	__u64 now;

	if (sampled(skb, &key, &payload)) {
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&probe_departures, &key, &now, BPF_ANY);
	}
	return TCX_NEXT;
}

SEC("tcx/ingress")
int probe_received(struct __sk_buff *skb)
{
	struct segment_key key;
	__u32 payload;
	__u64 *sent, now;

	if (!sampled(skb, &key, &payload))
		return TCX_NEXT;
	sent = bpf_map_lookup_elem(&probe_departures, &key);
	if (!sent)
		return TCX_NEXT;
	now = bpf_ktime_get_ns();
	emit(PROBE_DELAY, now, payload, now - *sent);
	bpf_map_delete_elem(&probe_departures, &key);
	return TCX_NEXT;
}

SEC("tcx/egress")
int probe_port(struct __sk_buff *skb)
{
	struct sk_buff___probe *k = bpf_cast_to_kern_ctx(skb);

	emit(PROBE_ARRIVAL, bpf_ktime_get_ns(), skb->len, k->dev->qdisc->qstats.backlog);
	return TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
