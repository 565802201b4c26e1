/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* count.c: QEMU plugin that counts the guest's executed instructions by translation block. It runs
 * in the emulator: the guest does not execute one instruction for it.
 *
 * Does: count between two marks, which the guest makes by executing a no-op that no compiler emits
 * (`nopl 0x4f4e5200(%rax)` to begin, 0x4f4e5201 to end), and write a file FILE.0, FILE.1, ... at each
 * end: lines of "address instructions runs processor", one a block and processor. It also writes FILE.0.locks
 * and so on: lines of "line address runs processors", one a locked instruction and line of 64 B of the
 * kernel's memory that it writes, with the processors as a mask.
 * Argument: out=FILE. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin.h"

int qemu_plugin_version = 1;

/* Blocks are translated again and again; each keeps its counter, found by address and length. */
#define BUCKETS (1u << 18)
#define PROCESSORS 8
struct block {
	uint64_t address, instructions;
	struct block *next;
	uint64_t runs[PROCESSORS];
};
static struct block *blocks[BUCKETS];
static const char *out = "count";
static unsigned int files;

static struct block *block_of(uint64_t address, uint64_t instructions)
{
	struct block **bucket = &blocks[(address ^ address >> 18 ^ instructions << 9) % BUCKETS];
	struct block *block;

	for (block = *bucket; block; block = block->next)
		if (block->address == address && block->instructions == instructions)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->instructions = instructions;
	block->next = *bucket;
	return *bucket = block;
}

/* A locked instruction and a line of memory that it has written. Lines that several processors lock are
 * what they wait for, whichever of them is emulated at the time. */
struct lock {
	uint64_t line, address, runs;
	unsigned int processors;
	struct lock *next;
};
static struct lock *locks[BUCKETS];

static void locked(unsigned int cpu, uint32_t info, uint64_t to, void *address)
{
	uint64_t line = to >> 6, from = (uintptr_t)address;
	struct lock **bucket = &locks[(line ^ line >> 18 ^ from << 5) % BUCKETS], *lock;

	(void)info;
	if (!(to >> 63)) /* of a program */
		return;
	for (lock = *bucket; lock; lock = lock->next)
		if (lock->line == line && lock->address == from)
			break;
	if (!lock) {
		lock = calloc(1, sizeof(*lock));
		if (!lock)
			abort();
		*lock = (struct lock){ line, from, 0, 0, *bucket };
		*bucket = lock;
	}
	lock->runs++;
	lock->processors |= 1u << cpu;
}

/* With a lock prefix; an exchange with memory needs none. */
static bool locks_memory(const unsigned char *code, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (code[i] == 0xf0)
			return true;
		if (!memchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65", code[i], 9) && code[i] >> 4 != 4)
			return code[i] == 0x86 || code[i] == 0x87;
	}
	return false;
}

static void for_all(void (*f)(struct block *block, void *data), void *data)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next)
			f(block, data);
}

static void print(struct block *block, void *file)
{
	for (unsigned int cpu = 0; cpu < PROCESSORS; cpu++)
		if (block->runs[cpu])
			fprintf(file, "%llx %llu %llu %u\n", (unsigned long long)block->address,
				(unsigned long long)block->instructions,
				(unsigned long long)block->runs[cpu], cpu);
}

static void forget(struct block *block, void *unused)
{
	(void)unused;
	memset(block->runs, 0, sizeof(block->runs));
}

static void ran(unsigned int cpu, void *block)
{
	((struct block *)block)->runs[cpu % PROCESSORS]++;
}

static void begin(unsigned int cpu, void *unused)
{
	(void)cpu;
	for_all(forget, unused);
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct lock *lock = locks[i]; lock; lock = lock->next)
			lock->runs = lock->processors = 0;
}

static FILE *open_or_abort(const char *name)
{
	FILE *file = fopen(name, "w");

	if (!file)
		abort();
	return file;
}

static void end(unsigned int cpu, void *unused)
{
	char name[4096];
	FILE *file;

	(void)cpu, (void)unused;
	snprintf(name, sizeof(name), "%s.%u", out, files);
	file = open_or_abort(name);
	for_all(print, file);
	fclose(file);
	snprintf(name, sizeof(name), "%s.%u.locks", out, files++);
	file = open_or_abort(name);
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct lock *lock = locks[i]; lock; lock = lock->next)
			if (lock->runs)
				fprintf(file, "%llx %llx %llu %u\n", (unsigned long long)lock->line,
					(unsigned long long)lock->address,
					(unsigned long long)lock->runs, lock->processors);
	fclose(file);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const unsigned char mark[] = { 0x0f, 0x1f, 0x80, 0, 0x52, 0x4e, 0x4f };
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *block = block_of(qemu_plugin_tb_vaddr(tb), n);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, QEMU_PLUGIN_CB_NO_REGS, block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const unsigned char *code = qemu_plugin_insn_data(insn);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) && !memcmp(code, mark, 3) &&
		    !memcmp(code + 4, mark + 4, 3))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, code[3] ? end : begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (locks_memory(code, qemu_plugin_insn_size(insn)))
			qemu_plugin_register_vcpu_mem_cb(insn, locked, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_W,
							 (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
