/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* halt.c: QEMU plugin that makes the guest's course the same in every run. It runs in the emulator: the guest does not
 * execute one instruction for it.
 *
 * The emulator's main loop skips idle time (-icount sleep=off) once it sees that the guest's processor has halted. The
 * thread that executes the guest sets that mark before it has counted its last instructions. A main loop that is awake at
 * this moment moves the guest's clock to the next timer, and then these instructions are added: the timer is late by
 * them, and from there on everything in the guest is somewhat different. The main loop is often awake then, because it
 * has just woken the guest.
 *
 * Does: before the guest executes `hlt` (x86) or `wfi` (arm64), wait until the main loop sleeps. Nobody wakes it but the thread that waits.
 * Does not: wait where this machine's kernel does not tell whether a thread sleeps. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qemu_plugin.h"

static const unsigned char hlt[] = { 0xf4 };
static const unsigned char wfi[] = { 0x7f, 0x20, 0x03, 0xd5 }; /* on x86 a jump, which has two bytes */
/* A main loop that works for so long without sleeping has something to do that we do not know. Its own time counts, so
 * one that waits for a processor is waited for, however busy this machine. */
#define MOST_WORK_NS 10000000

int qemu_plugin_version = 1;

/* Begins with "running", or with the number of the system call in which the main loop sleeps. */
static int main_loop = -1;
static clockid_t main_loop_work;

static bool main_loop_runs(void)
{
	char state;

	return pread(main_loop, &state, 1, 0) == 1 && state == 'r';
}

static long long worked_ns(void)
{
	struct timespec time;

	return clock_gettime(main_loop_work, &time) ? 0 : time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void halts(unsigned int cpu, void *unused)
{
	long long most_ns;

	(void)cpu, (void)unused;
	if (!main_loop_runs())
		return;
	most_ns = worked_ns() + MOST_WORK_NS;
	while (main_loop_runs() && worked_ns() < most_ns)
		sched_yield();
}

static bool is(const struct qemu_plugin_insn *insn, const unsigned char *code, size_t size)
{
	return qemu_plugin_insn_size(insn) == size && !memcmp(qemu_plugin_insn_data(insn), code, size);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	/* It ends a block. */
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);

	(void)id;
	if (is(last, hlt, sizeof(hlt)) || is(last, wfi, sizeof(wfi)))
		qemu_plugin_register_vcpu_insn_exec_cb(last, halts, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	char name[64];

	(void)info, (void)argc, (void)argv;
	/* The thread that started the emulator, which installs its plugins, becomes the main loop. */
	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", (int)getpid());
	main_loop = open(name, O_RDONLY | O_CLOEXEC);
	pthread_getcpuclockid(pthread_self(), &main_loop_work);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
