/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* siphash.bpf.h: SipHash-2-4 (Aumasson and Bernstein, 2012) of whole 64-bit words. */
#ifndef ONR_SIPHASH_BPF_H
#define ONR_SIPHASH_BPF_H

#include "../law/types.h"

#define ONR_SIPHASH_WORDS 7

struct siphash {
	u64 v0, v1, v2, v3;
};

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

ONR_FN void siphash_round(struct siphash *s)
{
	s->v0 += s->v1;
	s->v1 = ROTL(s->v1, 13) ^ s->v0;
	s->v0 = ROTL(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = ROTL(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = ROTL(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = ROTL(s->v1, 17) ^ s->v2;
	s->v2 = ROTL(s->v2, 32);
}

ONR_FN void siphash_word(struct siphash *s, u64 word)
{
	s->v3 ^= word;
	siphash_round(s);
	siphash_round(s);
	s->v0 ^= word;
}

/* Of the words from `first` on. The loops stay loops: a program of half the length is verified in half the time. */
ONR_FN u64 siphash(u64 k0, u64 k1, const u64 words[ONR_SIPHASH_WORDS], u32 first)
{
	struct siphash s = {
		.v0 = k0 ^ 0x736f6d6570736575ull,
		.v1 = k1 ^ 0x646f72616e646f6dull,
		.v2 = k0 ^ 0x6c7967656e657261ull,
		.v3 = k1 ^ 0x7465646279746573ull,
	};

#pragma clang loop unroll(disable)
	for (u32 i = first; i < ONR_SIPHASH_WORDS; i++)
		siphash_word(&s, words[i]);
	/* The last block of the standard holds the length in bytes. */
	siphash_word(&s, (u64)((ONR_SIPHASH_WORDS - first) * 8) << 56);
	s.v2 ^= 0xff;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < 4; i++)
		siphash_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#undef ROTL

#endif
