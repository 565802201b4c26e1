// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! On-Ramp in the NIC: a packet waits while its path is congested. The control law of `law/` decides, with
//! the delays that the receiver's OR-ACKs report.
//!
//! The receiver answers every data packet with an OR-ACK, unless `onramp.orack_every` is larger. An OR-ACK is
//! a packet of the data class, which waits behind data and uses bandwidth. With `onramp.piggyback` the
//! acknowledgement carries the arrival time instead. The law's record of a transmission travels with the
//! packet and its answer; there is no table. Acknowledgements are never held.

use crate::host::clock::{mono, sim};
use crate::net::packet::{Kind, Packet, Path, NONE};

use onramp_units::{Mono, Sim, Span, Time};

/// An OR-ACK on the wire (On-Ramp, section 4.1).
pub(crate) const OR_ACK_BYTES: u16 = 78;

/// The OR-ACK of `data`, with its sequence number, length and time.
pub(crate) fn or_ack(data: &Packet, path: Path) -> Packet {
    Packet {
        next: NONE,
        wire_bytes: OR_ACK_BYTES,
        at_port: 0,
        hop: 0,
        kind: Kind::OrAck,
        marked: false,
        path,
        ..*data
    }
}

/// The law of a host's own line, if it has one.
pub(crate) fn law_of(
    laws: &[Option<onramp_law::Config>],
    host: u32,
) -> Option<&onramp_law::Config> {
    laws.get(host as usize)?.as_ref()
}

/// The time until which the law holds the head of a flow, if it does.
pub(crate) fn held_until(
    law: &onramp_law::Config,
    flow: &mut onramp_law::Flow,
    held_since: &mut Option<Time<Sim>>,
    now: Time<Sim>,
) -> Option<Time<Sim>> {
    let again = flow.may_go(law, mono(now))?;
    held_since.get_or_insert(now);
    Some(sim(again))
}

/// The law's state of a flow that starts with the last delay `owd` to its receiver, as if an OR-ACK had just
/// reported it.
pub(crate) fn reuse(
    law: &onramp_law::Config,
    flow: &mut onramp_law::Flow,
    owd: Span,
    now: Time<Mono>,
) {
    let record = flow.sent(law, now, 0, 1);
    flow.orack(law, &record, 0, now, now + owd);
}
