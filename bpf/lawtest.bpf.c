/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* lawtest.bpf.c: one operation of a law vector (tests/law-vectors.*) inside the kernel, under a spin
 * lock as in the data path. crates/law/tests/replay_bpf.rs loads it and runs it by
 * BPF_PROG_TEST_RUN. It is never attached and ships with nothing. */
#include "kernel.bpf.h"
#include "abi.h"

/* An operation is 64-bit words: what, then its arguments; RESULT is written back. */
enum { SENT = 0, ORACK = 1, ARRIVED = 2, MAY_GO = 3, PATH = 4 };
enum { WHAT, NOW_NS, SEQ, LEN, RX_NS, REC_SENT_NS, REC_MARK, REC_SEQ, REC_LEN, RESULT, WORDS };
enum { LEAST_NS = REC_SENT_NS, AHEAD_NS = REC_MARK, HINT = REC_SEQ }; /* of PATH */

/* Writer: this program, and the test when a flow begins. Reader: the test. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct onr_ctl);
} flows SEC(".maps");

/* Writer: the test. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct onr_cfg);
} configs SEC(".maps");

SEC("syscall")
int lawtest_step(s64 *op)
{
	struct onr_record rec = { op[REC_SENT_NS], op[REC_MARK], op[REC_SEQ], op[REC_LEN] };
	s64 what = op[WHAT], now_ns = op[NOW_NS], rx_ns = op[RX_NS], result = 0;
	u32 seq = op[SEQ], len = op[LEN], zero = 0;
	struct onr_ctl *ctl = bpf_map_lookup_elem(&flows, &zero);
	struct onr_cfg *cfg = bpf_map_lookup_elem(&configs, &zero);

	if (!ctl || !cfg)
		return 1;
	bpf_spin_lock(&ctl->lock);
	switch (what) {
	case SENT:
		onr_records_sent(cfg, &ctl->law, &ctl->records, now_ns, now_ns, seq, len,
				 ONR_SAMPLE_BYTES);
		break;
	case ORACK:
		result = onr_records_orack(cfg, &ctl->law, &ctl->records, seq, now_ns, rx_ns);
		break;
	case ARRIVED:
		result = onr_orack_arrived(cfg, &ctl->law, &rec, seq, now_ns, rx_ns);
		break;
	case MAY_GO:
		result = onr_may_go(cfg, &ctl->law, now_ns);
		break;
	case PATH:
		onr_path_set(&ctl->law, op[LEAST_NS], op[AHEAD_NS], op[HINT]);
		break;
	}
	bpf_spin_unlock(&ctl->lock);
	op[RESULT] = result;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
