/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/cc/tbtcp.h: the window of Tiny Buffer TCP after slow start ("Tiny Buffer TCP for Data Center Networks", section
 * 4.3). Queue Cancelling Decrease takes k packets for each mark, Reduced Additive Increase adds
 * eta packets a round trip. The switch marks as many packets a round trip as its queue has, so N flows keep
 * eta * N packets there (equation 8). Windows are in packets. */
#ifndef ONR_TBTCP_H
#define ONR_TBTCP_H

#include "transport.h"

#define ONR_TBTCP_FLOOR 2u	/* packets; marks take nothing from a window of so many */
#define ONR_TBTCP_MARKS 64u	/* counted of one acknowledgement; GRO merges fewer packets */
#define ONR_TBTCP_ETA_ONE 1000u /* the unit of eta_per_mille */

struct onr_tbtcp_cfg {
	u32 eta_per_mille; /* growth in a round trip, thousandths of a packet; 1 to 1000 */
	u32 k;		   /* packets that a mark takes, the divisor of the switch's curve (section 6.2); at least 1 */
};

/* The window after an acknowledgement that echoes so many marks. */
ONR_PUBLIC u32 onr_tbtcp_cut(const struct onr_tbtcp_cfg *cfg, u32 window, u32 marks)
{
	u32 i, half;

	for (i = 0; i < ONR_TBTCP_MARKS && i < marks && window > ONR_TBTCP_FLOOR; i++) {
		half = window / 2;
		window -= cfg->k < half ? cfg->k : half;
	}
	return window;
}

/* The window after so many packets have been acknowledged. *counted holds what has not yet made a packet, in
 * thousandths of an acknowledged packet times eta; it begins at 0. */
ONR_PUBLIC u32 onr_tbtcp_grow(const struct onr_tbtcp_cfg *cfg, u64 *counted, u32 window, u32 acked)
{
	u64 needed = (u64)(window ? window : 1) * ONR_TBTCP_ETA_ONE;
	u64 sum = *counted + (u64)acked * cfg->eta_per_mille;

	*counted = sum % needed;
	return window + (u32)(sum / needed);
}

/* Marks of equation 6 without a switch: of so many packets that met a queue of queue_ns on a path whose round trip takes
 * base_ns without queues. p = q/(q + B) is queue_ns/(queue_ns + base_ns) at any rate. *owed_q16 holds what has not
 * yet made a mark, in units of 2^-16; it begins at 0. */
ONR_PUBLIC u32 onr_tbtcp_marks(u64 *owed_q16, u32 packets, u32 queue_ns, u32 base_ns)
{
	u64 path_ns = (u64)queue_ns + base_ns;
	u64 p_q16 = path_ns ? ((u64)queue_ns << 16) / path_ns : 0;
	u64 sum = (*owed_q16 & 0xffff) + packets * p_q16;

	*owed_q16 = sum & 0xffff;
	return (u32)(sum >> 16);
}

#endif
