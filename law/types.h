/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/types.h: integer names and ONR_FN, the same for clang -target bpf and for
 * a host compiler; nothing else. Repeats the typedefs of a vmlinux.h, which C11
 * allows as long as they agree. */
#ifndef ONR_TYPES_H
#define ONR_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

/* Inlined everywhere: the kernel runs these inside a bpf_spin_lock region,
 * where a global function or a helper may not be called. */
#define ONR_FN static inline __attribute__((always_inline, unused))

/* Parts that loop so often that the verifier has to check them once, by themselves: global functions of a BPF program,
 * whose pointers, marked ONR_SOME, are not null. They do not run in a bpf_spin_lock region. */
#ifdef __bpf__
#define ONR_PART __attribute__((noinline))
#define ONR_SOME __attribute__((btf_decl_tag("arg:nonnull")))
#else
#define ONR_PART ONR_FN
#define ONR_SOME
#endif

/* Keeps the compiler from replacing a check of `index` by one of another variable, which the verifier does not follow. */
#define ONR_INDEX(index) __asm__("" : "+r"(index))

#endif
