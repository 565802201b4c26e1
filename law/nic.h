/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* law/nic.h: when the sender's own NIC sends a segment. What has left the qdisc waits in
 * the NIC behind bytes that are not on the wire yet. This wait is no delay of the network,
 * so a segment's stamp is the end of it. Drivers report what they have sent late and in
 * batches; between two reports the line rate says what the NIC has sent since. Reasons and
 * errors: docs/law.md. */
#ifndef ONR_NIC_H
#define ONR_NIC_H

#include "arith.h"
#include "state.h"

/* No longer wait is believed. BQL lets a driver queue about twice what its line sends
 * between two reports: 145 kB were seen on a card of 100 Mbit/s, 12 ms. */
#define ONR_NIC_LONGEST_NS 20000000ll

/* One per transmit queue; all zero is a NIC that was given nothing. The driver's counts are
 * of bytes, modulo 2^32, as at the last look; both stay 0 if it does not count (no BQL). */
struct onr_nic {
	s64 free_mono_ns;   /* when the NIC has sent what left the qdisc */
	s64 looked_mono_ns; /* the last look */
	u32 given_bytes;    /* given to the NIC */
	u32 sent_bytes;     /* reported as sent */
	u32 bulk_bytes;     /* left the qdisc since given_bytes changed: on the way to the driver */
	u32 reserved;
};

/* Time that the bytes in the NIC take, at most: some may be sent and not reported. */
ONR_FN s64 onr_nic_drain_ns(const struct onr_nic *nic, u32 given_bytes, u32 sent_bytes,
			    u32 line_ns_per_byte_q16)
{
	u32 waiting = given_bytes - sent_bytes + nic->bulk_bytes;

	if (!given_bytes && !sent_bytes)
		return 0;
	return onr_min((s64)onr_mul_q16(waiting, line_ns_per_byte_q16), ONR_NIC_LONGEST_NS);
}

/* The driver has these counts now. Returns when the NIC sends the next byte that leaves the
 * qdisc: now if it is idle, or if the line rate or the counts are unknown. */
ONR_FN s64 onr_nic_look(const struct onr_cfg *cfg, struct onr_nic *nic, s64 now_ns,
			u32 given_bytes, u32 sent_bytes)
{
	s64 drain_ns, free_ns;

	if (given_bytes != nic->given_bytes)
		nic->bulk_bytes = 0;
	drain_ns = onr_nic_drain_ns(nic, given_bytes, sent_bytes, cfg->line_ns_per_byte_q16);
	free_ns = nic->free_mono_ns > now_ns ? nic->free_mono_ns : now_ns;
	free_ns = onr_min(free_ns, onr_add(now_ns, drain_ns));
	/* What is not reported was not sent when the driver reported last: after the last look. */
	if (sent_bytes != nic->sent_bytes && free_ns < onr_add(nic->looked_mono_ns, drain_ns))
		free_ns = onr_add(nic->looked_mono_ns, drain_ns);
	nic->looked_mono_ns = now_ns;
	nic->given_bytes = given_bytes;
	nic->sent_bytes = sent_bytes;
	nic->free_mono_ns = free_ns;
	return free_ns;
}

/* bytes leave the qdisc. */
ONR_FN void onr_nic_gets(const struct onr_cfg *cfg, struct onr_nic *nic, u32 bytes)
{
	nic->bulk_bytes += bytes;
	nic->free_mono_ns = onr_add(nic->free_mono_ns,
				    (s64)onr_mul_q16(bytes, cfg->line_ns_per_byte_q16));
}

/* On a real line each frame takes 24 B more than its length: preamble, checksum and gap.
 * A 64th at an MTU of 1500 B; where that is too much, the driver's counts correct it. */
ONR_FN u32 onr_nic_on_wire(u32 bytes)
{
	return bytes + (bytes >> 6);
}

#endif
