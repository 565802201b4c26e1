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
#include "packet.bpf.h"

const volatile u32 sample_bytes = ONR_SAMPLE_BYTES;

/* Struct onr_probe_event. Writers: the probes. Reader: the rack, a few times a second, without wake-ups. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} probe_events SEC(".maps");

/* Events that found the ring full. The rack reports the count in its results. */
u64 lost_events;

struct segment_key {
	u32 source, destination; /* IPv4 address, or the last 32 bits of an IPv6 address */
	u32 ports;
	u32 sampled_seq; /* the multiple, not the segment's start: receivers merge segments */
};

/* Departures of sampled segments under way; lost ones age out. Writer: probe_sent. Reader:
 * probe_received, which removes them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct segment_key);
	__type(value, u64);
} probe_departures SEC(".maps");

static void emit(enum onr_probe_kind kind, u64 now, u32 bytes, u64 value)
{
	struct onr_probe_event *event = bpf_ringbuf_reserve(&probe_events, sizeof(*event), 0);

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
				    u32 *payload)
{
	struct segment segment;
	struct onr_tuple flow;
	struct packet p;

	if (!parse_frame(skb, ETH_HLEN, &p) || !segment_of(&p, &segment) ||
	    !onr_sampled(segment.seq, segment.len, sample_bytes))
		return false;
	flow_of(&p, &flow);
	key->source = flow.saddr.word[3];
	key->destination = flow.daddr.word[3];
	key->ports = (u32)flow.sport << 16 | flow.dport;
	key->sampled_seq = onr_sampled_next(segment.seq, sample_bytes);
	*payload = segment.len;
	return true;
}

SEC("tcx/ingress")
int probe_sent(struct __sk_buff *skb)
{
	struct segment_key key;
	u32 payload;
	u64 now;

	if (sampled(skb, &key, &payload)) {
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&probe_departures, &key, &now, BPF_ANY);
	}
	return ONR_TCX_NEXT;
}

SEC("tcx/ingress")
int probe_received(struct __sk_buff *skb)
{
	struct segment_key key;
	u32 payload;
	u64 *sent, now;

	if (!sampled(skb, &key, &payload))
		return ONR_TCX_NEXT;
	sent = bpf_map_lookup_elem(&probe_departures, &key);
	if (!sent)
		return ONR_TCX_NEXT;
	now = bpf_ktime_get_ns();
	emit(ONR_PROBE_DELAY, now, payload, now - *sent);
	bpf_map_delete_elem(&probe_departures, &key);
	return ONR_TCX_NEXT;
}

SEC("tcx/egress")
int probe_port(struct __sk_buff *skb)
{
	struct sk_buff *k = bpf_cast_to_kern_ctx(skb);

	emit(ONR_PROBE_ARRIVAL, bpf_ktime_get_ns(), skb->len, k->dev->qdisc->qstats.backlog);
	return ONR_TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
