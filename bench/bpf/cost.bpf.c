/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* cost.bpf.c: splits the time of one processor between a TCP sender's transmit path, a receiver's
 * receive path and everything else. Under QEMU's -icount shift=0 a nanosecond is an instruction.
 *
 * Each probed function pushes what it is part of on a stack when it is entered and pops it when it
 * is left; time goes to the top of the stack. Interrupts and softirqs nest on whatever they
 * interrupt, and every task has a stack of its own, so that no instruction is counted twice and
 * none is lost. The probes' own time is kept apart; what they cannot see of it (trampolines) is
 * calibrated on an empty function of the kernel and subtracted by the reader.
 *
 * One processor only. Measures, changes nothing, and ships with nothing. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What time is spent on; bench/src/probes.rs names them in this order. */
enum part {
	PART_OTHER,   /* tasks outside the paths below: system calls, scheduler, the benchmark */
	PART_IDLE,    /* the idle task */
	PART_TX,      /* the sender's transmit path */
	PART_RX,      /* the receiver's receive path */
	PART_SOFTIRQ, /* softirqs: their dispatch, the backlog both ends share, the line between them */
	PART_TIMER,   /* the timer interrupt */
	PART_EMPTY,   /* calibration */
	PART_PROBE,   /* the probes, as far as they can see themselves */
	PARTS
};

/* What was entered. On the stack a byte is hook << 4 | part; 0 is the stack's bottom. */
enum hook { HOOK_SEND = 1, HOOK_RECV, HOOK_SKB, HOOK_NAPI, HOOK_QDISC, HOOK_SOFTIRQ, HOOK_TIMER,
	    HOOK_TSQ, HOOK_DELACK, HOOK_RETRANSMIT, HOOK_EMPTY };

/* Devices of the two ends. */
const volatile int sender_ifindex, receiver_ifindex;

/* Writer: user space, between two transfers. */
bool measuring;

/* Writer: the probes. Reader: user space. */
struct account {
	__u64 ns[PARTS];
	__u64 entered[PARTS]; /* pushes of this part */
	__u64 left[PARTS];    /* pushes on top of this part */
	__u64 first_ns;
	__u64 last_ns;
	__u64 unmatched; /* pops that did not find their push on top */
	__u64 switches;
};
struct account account;

static __u64 stack;
static bool idle;

/* Stack of a task that does not run now. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} stacks SEC(".maps");

struct net_device___cost {
	int ifindex;
} __attribute__((preserve_access_index));

struct sk_buff___cost {
	struct net_device___cost *dev;
} __attribute__((preserve_access_index));

struct napi_struct___cost {
	struct net_device___cost *dev;
} __attribute__((preserve_access_index));

struct netdev_queue___cost {
	struct net_device___cost *dev;
} __attribute__((preserve_access_index));

struct Qdisc___cost {
	struct netdev_queue___cost *dev_queue;
} __attribute__((preserve_access_index));

struct task_struct___cost {
	int pid;
} __attribute__((preserve_access_index));

struct task_struct;

static __always_inline __u32 top(void)
{
	return (stack ? stack : idle ? PART_IDLE : PART_OTHER) & 0xf & (2 * PARTS - 1);
}

/* Gives the time until now to the top of the stack. */
static __always_inline void settle(__u64 now)
{
	__u32 part = top();

	if (!account.last_ns)
		account.first_ns = account.last_ns = now;
	if (part < PARTS)
		account.ns[part] += now - account.last_ns;
}

/* The probe is over: what it took is its own. */
static __always_inline void resume(__u64 begun)
{
	__u64 now = bpf_ktime_get_ns();

	account.ns[PART_PROBE] += now - begun;
	account.last_ns = now;
}

static __always_inline int push(enum hook hook, enum part part)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 below = top();

	if (measuring)
		settle(now);
	stack = stack << 8 | hook << 4 | part;
	if (measuring) {
		account.entered[part]++;
		if (below < PARTS)
			account.left[below]++;
		resume(now);
	}
	return 0;
}

/* A probe that interrupts itself is skipped by the kernel, so a push or a pop may be missing. */
static __always_inline int pop(enum hook hook)
{
	__u64 now = bpf_ktime_get_ns();

	if (measuring)
		settle(now);
	if ((stack >> 4 & 0xf) == hook) {
		stack >>= 8;
	} else {
		account.unmatched++;
		if ((stack >> 12 & 0xf) == hook)
			stack >>= 16;
	}
	if (measuring)
		resume(now);
	return 0;
}

static __always_inline enum part part_of(const struct net_device___cost *dev)
{
	int ifindex = dev ? dev->ifindex : 0;

	return ifindex == sender_ifindex     ? PART_TX :
	       ifindex == receiver_ifindex ? PART_RX :
						     PART_SOFTIRQ;
}

#define ENTER(function, hook, part)                                                                \
	SEC("fentry/" #function) int BPF_PROG(function##_in) { return push(hook, part); }          \
	SEC("fexit/" #function) int BPF_PROG(function##_out) { return pop(hook); }

ENTER(tcp_sendmsg, HOOK_SEND, PART_TX)
ENTER(tcp_recvmsg, HOOK_RECV, PART_RX)
ENTER(tcp_tsq_workfn, HOOK_TSQ, PART_TX)
ENTER(tcp_delack_timer, HOOK_DELACK, PART_RX)
ENTER(tcp_write_timer, HOOK_RETRANSMIT, PART_TX)
ENTER(hrtimer_interrupt, HOOK_TIMER, PART_TIMER)
ENTER(bpf_fentry_test1, HOOK_EMPTY, PART_EMPTY)

SEC("fentry/__netif_receive_skb")
int BPF_PROG(skb_in, struct sk_buff___cost *skb)
{
	return push(HOOK_SKB, part_of(skb->dev));
}

SEC("fexit/__netif_receive_skb")
int BPF_PROG(skb_out)
{
	return pop(HOOK_SKB);
}

SEC("fentry/__napi_poll")
int BPF_PROG(napi_in, struct napi_struct___cost *napi)
{
	return push(HOOK_NAPI, part_of(napi->dev));
}

SEC("fexit/__napi_poll")
int BPF_PROG(napi_out)
{
	return pop(HOOK_NAPI);
}

/* From the sender's stack, or in a softirq when a watchdog has fired. */
SEC("fentry/__qdisc_run")
int BPF_PROG(qdisc_in, struct Qdisc___cost *qdisc)
{
	return push(HOOK_QDISC, part_of(qdisc->dev_queue->dev));
}

SEC("fexit/__qdisc_run")
int BPF_PROG(qdisc_out)
{
	return pop(HOOK_QDISC);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_in)
{
	return push(HOOK_SOFTIRQ, PART_SOFTIRQ);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_out)
{
	return pop(HOOK_SOFTIRQ);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 *of_prev = bpf_task_storage_get(&stacks, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 *of_next = bpf_task_storage_get(&stacks, next, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (measuring)
		settle(now);
	if (of_prev)
		*of_prev = stack;
	stack = of_next ? *of_next : 0;
	idle = ((struct task_struct___cost *)next)->pid == 0;
	if (measuring) {
		account.switches++;
		resume(now);
	}
	return 0;
}

/* Runs the kernel's empty functions, the probed one among them. */
SEC("fentry/bpf_fentry_test2")
int BPF_PROG(nothing)
{
	return 0;
}
