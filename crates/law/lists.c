/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* lists.c: the lists that C keeps as X-macros, a row an entry, for examples/law-bindings.rs, which has the
 * preprocessor expand this file. Never compiled. */
#include "bpf/abi.h"

#define LAW_ROW(name, rules, meaning) @law name meaning
#define COUNTER_ROW(name, meaning) @counter name meaning

ONR_LAWS(LAW_ROW)
ONR_COUNTERS(COUNTER_ROW)
