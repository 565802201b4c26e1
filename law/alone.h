/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/alone.h: a flow of a pause law (onramp.h) that is alone at its receiver, with a guard. A pause idles
 * a port that one flow has, whatever T is. So such a flow is held by the rules of gate.h, for as long as
 * the receiver says that nothing else arrives. Reasons and numbers: docs/law.md. */
#ifndef ONR_ALONE_H
#define ONR_ALONE_H

#include "gate.h"
#include "onramp.h"

/* Do the rules of the gate hold this flow of a pause law? */
ONR_FN int onr_alone(const struct onr_cfg *cfg, const struct onr_flow *flow)
{
	return onr_pause_acts(cfg) && onr_threshold_is_alone(cfg, flow);
}

/* Bytes [seq, seq + len) leave. */
ONR_FN void onr_alone_sent(const struct onr_cfg *cfg, struct onr_flow *flow, s64 now_ns, u32 seq,
			   u32 len)
{
	if (!flow->sent_bytes || (s32)(seq + len - flow->sent_seq) > 0)
		flow->sent_seq = seq + len;
	if (onr_alone(cfg, flow))
		onr_gate_idle(cfg, flow, now_ns);
}

/* A used OR-ACK of byte seq, which left at left_ns and was at the receiver at rx_ns. The marks of a pause
 * law are not S, so S_G follows from what was sent behind the byte. */
ONR_FN void onr_alone_orack(const struct onr_cfg *cfg, struct onr_flow *flow, u32 seq, s64 now_ns,
			    s64 left_ns, s64 rx_ns)
{
	u32 behind = flow->sent_seq - (seq + 1);

	if (onr_alone(cfg, flow) && behind <= flow->sent_bytes)
		onr_gate_acked(cfg, flow, flow->sent_bytes - behind, now_ns, left_ns, rx_ns);
}

#endif
