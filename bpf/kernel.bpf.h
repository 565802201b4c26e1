/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* kernel.bpf.h: the few kernel types and kfuncs that the BPF programs touch, relocated by CO-RE
 * (BPF_CORE: offsets come from the running kernel's BTF). Instead of vmlinux.h, which is 100,000
 * lines, depends on the kernel it was dumped from and lacks the qdisc kfuncs in old dumps. */
#ifndef ONR_KERNEL_BPF_H
#define ONR_KERNEL_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "../law/types.h"

#define PACKET_HOST 0 /* linux/if_packet.h: addressed to this host */

/* Verdicts of tcx programs; uapi headers before 6.6 do not have them. */
enum { ONR_TCX_NEXT = -1, ONR_TCX_PASS = 0, ONR_TCX_DROP = 2 };

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0) /* of the headers, not of the kernel we run on */
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qdisc_skb_cb {
	unsigned int pkt_len; /* bytes on the wire, headers of every GSO segment included */
	unsigned char data[20];
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level; /* 0: the root */
	struct cgroup *ancestors[]; /* by level, itself included; from 6.1 on */
};

struct sock_cgroup_data {
	struct cgroup *cgroup; /* in which the socket was made; from 5.15 on */
};

struct sock_cgroup_data___before_5_15 {
	u64 val;
};

struct net;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	volatile unsigned char skc_state;
};

struct dst_entry {
	struct net_device *dev;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	unsigned long sk_pacing_rate; /* bytes a second */
	u32 sk_pacing_status;
	u16 sk_protocol;
	struct sock_cgroup_data sk_cgrp_data;
};

/* NEEDED: TCP spaces its segments by itself; of other protocols the qdisc is asked to. FQ: an fq qdisc has
 * served the socket, so TCP writes the time of departure into the packet and leaves the rest to the qdisc. */
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

/* States of sockets (net/tcp_states.h). Those in TIME_WAIT and NEW_SYN_RECV have nothing behind struct sock_common; that
 * of UDP is CLOSE until it is connected. */
enum { STATE_TIME_WAIT = 6, STATE_CLOSE = 7, STATE_LISTEN = 10, STATE_NEW_SYN_RECV = 12 };

struct tcp_sock {
	u32 rcv_nxt;
	u32 rcv_wnd;
	u32 snd_nxt;
};

struct Qdisc;

struct net_device {
	struct Qdisc *qdisc;
	int ifindex;
	possible_net_t nd_net;
};

struct bpf_iter_meta;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	u32 uid;
};

struct sk_buff {
	unsigned long _skb_refdst;
	struct sock *sk;
	struct net_device *dev;
	s64 tstamp;
	unsigned int len;
	__be16 protocol;
	u16 network_header;
	u16 mac_header;
	u32 mark;
	u32 hash;
	char cb[48];
	unsigned char *head;
	unsigned int truesize;
	u8 ip_summed : 2;
	u8 active_extensions; /* a bit for each of enum skb_ext_id */
};

enum skb_ext_id { SKB_EXT_SEC_PATH }; /* IPsec has decrypted the packet; only with CONFIG_XFRM */

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
};

struct dql { /* byte queue limits: what the driver has counted, modulo 2^32 */
	unsigned int num_queued;
	unsigned int num_completed;
};

struct netdev_queue {
	struct dql dql; /* only with CONFIG_BQL */
};

struct Qdisc {
	u32 limit;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

struct nlattr;
struct netlink_ext_ack;

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
	char id[16];
};

#pragma clang attribute pop

u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym __weak;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire_ns, u64 slack_ns) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak; /* from 6.2 on */
void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

#endif
