/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* rapid_hooks.bpf.c: the tcx programs of TCP RAPID, at both ends of its connections. Sockets do not see them.
 *
 *   sender, egress     gives each data packet of a rapid socket its time of departure, and marks it
 *   receiver, ingress  stamps the arrival of marked data
 *   receiver, egress   writes the stamp of the packet that an ACK reports into its TSval, and marks the ACK
 *   sender, ingress    takes the stamp for the congestion control (rapid.bpf.c), and gives the ACK a TSval that TCP takes
 *
 * A mark is the order of TCP's options: timestamps before the two NOPs of padding, where Linux has them behind. Both
 * orders mean the same to any TCP, and the checksum is the same. The programs put Linux's order back.
 *
 * The stamp is in microseconds, on the clock from which the receiver makes its TSval: TSval is the stamp / 1000. So the
 * sender can compute a TSval from it. All other packets, and what is doubtful, pass unchanged. */
#include "../kernel.bpf.h"
#include "../packet.bpf.h"
#include "config.bpf.h"
#include "rapid.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

CONFIG(struct onr_rapid_cfg);

#define ARRIVALS 32u /* the last of a receiving connection; a power of two */
#define TCP_BYTES 20 /* of a header without options */
#define OPTION_BYTES 12
#define CHECKSUM_AT 16
#define LONGEST_GAP_NS 4000000000ull /* fq drops what it should hold for more than 10 s */
#define NS_PER_US 1000
#define US_PER_MS 1000
#define LISTEN 10

struct tcp_sock___rapid {
	u32 tsoffset;
	u32 app_limited;
	u8 tcp_usec_ts : 1;
	struct {
		u32 ts_recent;
	} rx_opt;
} __attribute__((preserve_access_index));

/* Timestamps as Linux writes them, and as marks do. */
struct usual {
	u8 nop[2], kind, bytes;
	__be32 value, echo;
} __attribute__((packed));

struct marked {
	u8 kind, bytes;
	__be32 value, echo;
	u8 nop[2];
} __attribute__((packed));

_Static_assert(sizeof(struct usual) == OPTION_BYTES && sizeof(struct marked) == OPTION_BYTES, "options");
enum { NOP = 1, SACK = 5, TIMESTAMPS = 8, TIMESTAMPS_BYTES = 10, SACK_LEAST = 10 };

/* A receiving connection. Writer: tcx ingress. Reader: tcx egress. */
struct arrivals {
	u32 count;
	struct stamp last[ARRIVALS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct arrivals);
} rapid_receivers SEC(".maps");

/* A TCP packet with timestamps, or none: at == 0. */
struct tcp_packet {
	struct packet p;
	struct segment segment;
	u32 at; /* offset of the TCP header in the frame */
	u32 header;
};

static __always_inline bool parse(const struct __sk_buff *ctx, struct tcp_packet *tcp)
{
	const struct tcphdr *header;

	if (!parse_frame(ctx, ETH_HLEN, &tcp->p) || !segment_of(&tcp->p, &tcp->segment))
		return false;
	header = tcp->p.l4;
	tcp->header = header->doff * 4;
	tcp->at = tcp->p.l3_at + tcp->p.header_len;
	return tcp->header >= TCP_BYTES + OPTION_BYTES && !(tcp->segment.flags & (TCP_SYN | TCP_FIN | TCP_RST));
}

static __always_inline bool is_usual(const struct usual *o)
{
	return o->nop[0] == NOP && o->nop[1] == NOP && o->kind == TIMESTAMPS && o->bytes == TIMESTAMPS_BYTES;
}

static __always_inline bool is_marked(const struct marked *o)
{
	return o->nop[0] == NOP && o->nop[1] == NOP && o->kind == TIMESTAMPS && o->bytes == TIMESTAMPS_BYTES;
}

static __always_inline bool load_options(struct __sk_buff *ctx, const struct tcp_packet *tcp, void *options)
{
	return !bpf_skb_load_bytes(ctx, tcp->at + TCP_BYTES, options, OPTION_BYTES);
}

static __always_inline void mark(struct __sk_buff *ctx, const struct tcp_packet *tcp, const struct usual *from,
				 __be32 value)
{
	struct marked to = { .kind = TIMESTAMPS, .bytes = TIMESTAMPS_BYTES, .value = value, .echo = from->echo,
			     .nop = { NOP, NOP } };

	bpf_skb_store_bytes(ctx, tcp->at + TCP_BYTES, &to, sizeof(to), 0);
	if (value != from->value)
		bpf_l4_csum_replace(ctx, tcp->at + CHECKSUM_AT, from->value, value, sizeof(value));
}

static __always_inline void unmark(struct __sk_buff *ctx, const struct tcp_packet *tcp, const struct marked *from,
				   __be32 value)
{
	struct usual to = { .nop = { NOP, NOP }, .kind = TIMESTAMPS, .bytes = TIMESTAMPS_BYTES, .value = value,
			    .echo = from->echo };

	bpf_skb_store_bytes(ctx, tcp->at + TCP_BYTES, &to, sizeof(to), 0);
	if (value != from->value)
		bpf_l4_csum_replace(ctx, tcp->at + CHECKSUM_AT, from->value, value, sizeof(value));
}

/* The packet whose arrival led to an ACK: the first block of SACK ends with it, else what is acknowledged does. */
static __always_inline u32 reported_end(struct __sk_buff *ctx, const struct tcp_packet *tcp)
{
	struct {
		u8 nop[2], kind, bytes;
		__be32 begin, end;
	} sack;

	if (tcp->header >= TCP_BYTES + OPTION_BYTES + sizeof(sack) &&
	    !bpf_skb_load_bytes(ctx, tcp->at + TCP_BYTES + OPTION_BYTES, &sack, sizeof(sack)) && sack.nop[0] == NOP &&
	    sack.nop[1] == NOP && sack.kind == SACK && sack.bytes >= SACK_LEAST)
		return bpf_ntohl(sack.end);
	return bpf_ntohl(((const struct tcphdr *)tcp->p.l4)->ack_seq);
}

/* ---- sender ---- */

/* Notes that a packet is sent again, so that its stamp does not count, and lets it take the time of one at the mean
 * rate. */
static __always_inline u64 gap_again(struct rapid *rapid, u32 end)
{
	u32 number = find_record(rapid, end);

	if (number != rapid->next)
		rapid->records[number % RECORDS].sent |= RECORD_AGAIN;
	return onr_rapid_mean_gap_ns(&cfg, &rapid->flow);
}

/* Gives data its time of departure. */
static __always_inline void depart(struct __sk_buff *ctx, struct rapid *rapid, const struct tcp_packet *tcp,
				   u32 is_limited)
{
	u32 end = tcp->segment.seq + tcp->segment.len, number = rapid->next;
	bool is_new = !number || (s32)(tcp->segment.seq - rapid->next_seq) >= 0;
	u64 now = bpf_ktime_get_ns(), gap_ns;

	if (is_new)
		gap_ns = onr_rapid_gap_ns(&cfg, &rapid->flow, number);
	else
		gap_ns = gap_again(rapid, end);
	rapid->departs_ns += gap_ns < LONGEST_GAP_NS ? gap_ns : LONGEST_GAP_NS;
	if (rapid->departs_ns < now)
		rapid->departs_ns = now;
	if (rapid->departs_ns < ctx->tstamp)
		rapid->departs_ns = ctx->tstamp; /* TCP's own pace, or On-Ramp's hold */
	if (is_new) {
		rapid->records[number % RECORDS].end = end;
		rapid->records[number % RECORDS].sent =
			((u32)rapid->departs_ns & ~RECORD_FLAGS) | (is_limited ? RECORD_LIMITED : 0);
		rapid->next = number + 1;
		rapid->next_seq = end;
	}
	bpf_skb_set_tstamp(ctx, rapid->departs_ns, BPF_SKB_TSTAMP_DELIVERY_MONO);
}

/* A stamp has come back. TSval is what the receiver would have written; TCP takes it if it does not go back. */
static __always_inline void take_stamp(struct __sk_buff *ctx, const struct tcp_packet *tcp, struct bpf_sock *sk)
{
	const struct tcp_sock___rapid *socket = (const void *)bpf_skc_to_tcp_sock(sk);
	struct rapid *rapid;
	struct marked options;
	struct stamp *stamp;
	u32 us, recent;
	s32 passed;

	if (!socket || !load_options(ctx, tcp, &options) || !is_marked(&options))
		return;
	us = bpf_ntohl(options.value);
	recent = socket->rx_opt.ts_recent;
	passed = us - (u32)((u64)recent * US_PER_MS);
	if (passed > 0)
		recent = ((u64)recent * US_PER_MS + passed) / US_PER_MS;
	rapid = bpf_sk_storage_get(&rapid_senders, sk, 0, 0);
	if (rapid) {
		stamp = &rapid->stamps[rapid->stamped % STAMPS];
		stamp->end = reported_end(ctx, tcp);
		stamp->us = us;
		__sync_fetch_and_add(&rapid->stamped, 1); /* after the stamp is there */
	}
	unmark(ctx, tcp, &options, bpf_htonl(recent));
}

/* ---- receiver ---- */

/* Marked data has come for this socket. */
static __always_inline void stamp_arrival(struct __sk_buff *ctx, const struct tcp_packet *tcp, struct bpf_sock *sk)
{
	struct arrivals *arrivals;
	struct marked options;
	struct stamp *stamp;

	if (!load_options(ctx, tcp, &options) || !is_marked(&options))
		return;
	arrivals = bpf_sk_storage_get(&rapid_receivers, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (arrivals) {
		stamp = &arrivals->last[arrivals->count % ARRIVALS];
		stamp->end = tcp->segment.seq + tcp->segment.len;
		stamp->us = bpf_ktime_get_ns() / NS_PER_US;
		__sync_fetch_and_add(&arrivals->count, 1); /* after the stamp is there */
	}
	unmark(ctx, tcp, &options, options.value);
}

/* A pure ACK leaves. */
static __always_inline void send_stamp(struct __sk_buff *ctx, const struct tcp_packet *tcp,
				       const struct arrivals *arrivals, u32 tsoffset)
{
	u32 end = reported_end(ctx, tcp), us = 0;
	const struct stamp *stamp;
	struct usual options;
	bool is_found = false;
	int back;

	bpf_for(back, 1, (int)ARRIVALS + 1) {
		stamp = &arrivals->last[(arrivals->count - back) % ARRIVALS];
		us = stamp->us;
		is_found = stamp->end == end;
		if (is_found || back >= (int)arrivals->count)
			break;
	}
	if (is_found && load_options(ctx, tcp, &options) && is_usual(&options))
		mark(ctx, tcp, &options, bpf_htonl(us + tsoffset * US_PER_MS));
}

/* ---- both ---- */

/* Data of a rapid socket leaves, or something else: false. */
static __always_inline bool send_data(struct __sk_buff *ctx, struct rapid *rapid, const struct tcp_sock___rapid *socket)
{
	struct tcp_packet tcp;
	struct usual options;

	if (rapid->is_plain || !parse(ctx, &tcp) || !tcp.segment.len)
		return false;
	if (ctx->gso_segs > 1) {
		rapid->has_burst = 1;
		return true;
	}
	depart(ctx, rapid, &tcp, socket->app_limited);
	if (load_options(ctx, &tcp, &options) && is_usual(&options))
		mark(ctx, &tcp, &options, options.value);
	return true;
}

SEC("tcx/egress")
int rapid_egress(struct __sk_buff *ctx)
{
	const struct tcp_sock___rapid *socket;
	struct arrivals *arrivals;
	struct tcp_packet tcp;
	struct bpf_sock *sk = ctx->sk;
	struct rapid *rapid;

	if (!sk)
		return ONR_TCX_NEXT;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return ONR_TCX_NEXT;
	socket = (const void *)bpf_skc_to_tcp_sock(sk);
	if (!socket)
		return ONR_TCX_NEXT;
	rapid = bpf_sk_storage_get(&rapid_senders, sk, 0, 0);
	if (rapid && send_data(ctx, rapid, socket))
		return ONR_TCX_NEXT;
	arrivals = bpf_sk_storage_get(&rapid_receivers, sk, 0, 0);
	if (arrivals && !BPF_CORE_READ_BITFIELD(socket, tcp_usec_ts) && parse(ctx, &tcp) && !tcp.segment.len)
		send_stamp(ctx, &tcp, arrivals, socket->tsoffset);
	return ONR_TCX_NEXT;
}

/* The socket of this host to which a packet goes; the caller releases it. */
static __always_inline struct bpf_sock *socket_of(struct __sk_buff *ctx, const struct packet *p)
{
	struct bpf_sock_tuple tuple;
	u32 bytes = socket_tuple(p, &tuple);

	return bpf_sk_lookup_tcp(ctx, &tuple, bytes, BPF_F_CURRENT_NETNS, 0);
}

SEC("tcx/ingress")
int rapid_ingress(struct __sk_buff *ctx)
{
	struct tcp_packet tcp;
	struct marked options;
	struct bpf_sock *sk;

	if (ctx->pkt_type != PACKET_HOST || !parse(ctx, &tcp) || !load_options(ctx, &tcp, &options) ||
	    !is_marked(&options))
		return ONR_TCX_NEXT;
	sk = socket_of(ctx, &tcp.p);
	if (!sk)
		return ONR_TCX_NEXT;
	if (sk->state != LISTEN) {
		if (tcp.segment.len)
			stamp_arrival(ctx, &tcp, sk);
		else
			take_stamp(ctx, &tcp, sk);
	}
	bpf_sk_release(sk);
	return ONR_TCX_NEXT;
}
