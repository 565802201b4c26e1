/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* count.c: QEMU plugin that counts the guest's executed instructions by translation block. It runs
 * in the emulator: the guest does not execute one instruction for it.
 *
 * Does: count between two marks, which the guest makes by executing a no-op that no compiler emits
 * (`nopl 0x4f4e5200(%rax)` to begin, 0x4f4e5201 to end), and write a file FILE.0, FILE.1, ... at each
 * end: lines of "address instructions runs", one a block.
 * Argument: out=FILE. The interface is that of plugin API version 1 (QEMU 4.2 and later); Debian
 * ships no header for it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*f)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
					      void *counter, uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*f)(unsigned int cpu, void *data),
					    enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

int qemu_plugin_version = 1;

/* Blocks are translated again and again; each keeps its counter, found by address and length. */
#define BUCKETS (1u << 18)
struct block {
	uint64_t address, instructions, runs;
	struct block *next;
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
	*block = (struct block){ address, instructions, 0, *bucket };
	return *bucket = block;
}

static void for_all(void (*f)(struct block *block, void *data), void *data)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next)
			f(block, data);
}

static void print(struct block *block, void *file)
{
	if (block->runs)
		fprintf(file, "%llx %llu %llu\n", (unsigned long long)block->address,
			(unsigned long long)block->instructions, (unsigned long long)block->runs);
}

static void forget(struct block *block, void *unused)
{
	(void)unused;
	block->runs = 0;
}

static void begin(unsigned int cpu, void *unused)
{
	(void)cpu;
	for_all(forget, unused);
}

static void end(unsigned int cpu, void *unused)
{
	char name[4096];
	FILE *file;

	(void)cpu, (void)unused;
	snprintf(name, sizeof(name), "%s.%u", out, files++);
	file = fopen(name, "w");
	if (!file)
		abort();
	for_all(print, file);
	fclose(file);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const unsigned char mark[] = { 0x0f, 0x1f, 0x80, 0, 0x52, 0x4e, 0x4f };
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *block = block_of(qemu_plugin_tb_vaddr(tb), n);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->runs, 1);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const unsigned char *code = qemu_plugin_insn_data(insn);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) && !memcmp(code, mark, 3) &&
		    !memcmp(code + 4, mark + 4, 3))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, code[3] ? end : begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
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
