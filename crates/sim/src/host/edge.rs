//! On-Ramp in the NIC: a packet waits while its way is congested, as the control law of `law/` says,
//! which the receiver's OR-ACKs feed.
//!
//! Every data packet, unless the scenario spaces them, is answered with an OR-ACK: a packet of the
//! data class, which waits behind data and takes bandwidth; or its acknowledgement says the same
//! (`onramp.piggyback`). What the law remembers of a transmission travels with the packet and its
//! answer instead of waiting in a table. Acknowledgements are never held.

use crate::host::clock::{mono, sim};
use crate::net::packet::{Kind, Packet, Path, NONE};

use onramp_units::{Mono, Sim, Span, Time};

/// An OR-ACK on the wire (On-Ramp, section 4.1).
pub(crate) const OR_ACK_BYTES: u16 = 78;

/// The OR-ACK of `data`, which it takes sequence number, length and time from.
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

/// Asks the law for the head of a flow: until when it is held, if it is.
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

/// The law's state of a flow that starts where the last delay to its receiver was `owd`: as if its
/// OR-ACK had come just now.
pub(crate) fn reuse(
    law: &onramp_law::Config,
    flow: &mut onramp_law::Flow,
    owd: Span,
    now: Time<Mono>,
) {
    let record = flow.sent(law, now, 0, 1);
    flow.orack(law, &record, 0, now, now + owd);
}
