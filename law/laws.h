/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/laws.h: the list of control laws. The enum, the dispatch in law.h, the Rust type `Law`, the values
 * of --law and onramp.law, the test vectors and the documentation follow from it. No code. */
#ifndef ONR_LAWS_H
#define ONR_LAWS_H

/* X(name, rules, meaning). law.h calls onr_<rules>_sent, onr_<rules>_orack and onr_<rules>_opens; laws
 * that share rules read onr_cfg.law. The position in the list is the law's number, which configurations and
 * recorded vectors contain. Add a new law at the end, and its rules in a header that law.h includes. */
#define ONR_LAWS(X)                                                              \
	X(off, pause, "measures and holds nothing")                              \
	X(strawman, pause, "pauses a flow for as long as its delay is above T (eq. 2 of the paper)") \
	X(final, pause, "the strawman less what past pauses have removed (eqs. 3 and 4)") \
	X(gate, gate, "caps what a flow has in flight")                             \
	X(level, level, "caps what a flow has in flight, where its receiver says that holding is of use")

#endif
