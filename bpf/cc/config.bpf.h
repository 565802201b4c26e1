/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* config.bpf.h: the parameters of a congestion control, for all its programs. Includer: include bpf_helpers.h before. */
#ifndef ONR_CONFIG_BPF_H
#define ONR_CONFIG_BPF_H

/* Defines `cfg`, whose bytes onramp-kernel-cc writes before it loads a program. It finds them by the name of the section,
 * which becomes that of a map. They are not constants for the verifier, which proves that programs are safe with any. */
#define CONFIG(type) type cfg SEC(".data.cfg")

#endif
