// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! On-Ramp in the NIC: a packet waits while its path is congested. The control law of `law/` decides, with
//! the delays that the receiver's OR-ACKs report.
//!
//! The receiver answers every data packet with an OR-ACK, unless `onramp.orack_every` is larger. An OR-ACK is
//! a packet of the data class, which waits behind data and uses bandwidth. With `onramp.piggyback` the
//! acknowledgement carries the arrival time instead. The law's record of a transmission travels with the
//! packet and its answer; there is no table. Acknowledgements are never held.

use crate::host::clock::{mono, sim};
use crate::host::config::{Law, OtherLaw};
use crate::net::packet::{Kind, Packet, Path, NONE};

use onramp_cc::law::{Departure, FlowFacts, FlowLaw, Head, Sample};
use onramp_cc::Watched;
use onramp_law::Verdict;
use onramp_units::{Bytes, Rate, Sim, Span, Time};

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
#[inline]
pub(crate) fn law_of(laws: &[Option<HostLaw>], host: u32) -> Option<&HostLaw> {
    laws.get(host as usize)?.as_ref()
}

/// A law with the rate of a host's line.
#[derive(Debug, Clone)]
pub(crate) struct HostLaw {
    /// A built-in law. Under one of another crate this is law `off`, which measures.
    pub config: onramp_law::Config,
    other: Option<(OtherLaw, FlowFacts)>,
}

impl HostLaw {
    pub fn new(law: &Law, line: Rate) -> HostLaw {
        let other = match law {
            Law::BuiltIn(_) => None,
            Law::Other(other) => Some((other.clone(), other.facts(line))),
        };
        HostLaw {
            config: law.measures().line_rate(line),
            other,
        }
    }
}

/// A flow under its host's law.
pub(crate) struct Held {
    /// The state of a built-in law. Under one of another crate this is what law `off` has measured.
    pub flow: onramp_law::Flow,
    other: Option<Box<Other>>,
}

/// A flow under a law of another crate.
struct Other {
    law: Watched<dyn FlowLaw + Send>,
    max_pause: Span,
    /// The first refusal of the head, until it leaves.
    refused: Option<Time<Sim>>,
}

impl Held {
    /// A new flow of a host with this law.
    pub fn new(law: Option<&HostLaw>) -> Held {
        let other = law.and_then(|law| law.other.as_ref());
        let start = |(law, facts): &(OtherLaw, FlowFacts)| Other {
            law: law.law.start(facts),
            max_pause: facts.max_pause,
            refused: None,
        };
        Held {
            flow: onramp_law::Flow::default(),
            other: other.map(start).map(Box::new),
        }
    }

    /// The time until which the law holds the head, if it does.
    #[inline]
    pub fn until(
        &mut self,
        law: &HostLaw,
        held_since: &mut Option<Time<Sim>>,
        now: Time<Sim>,
    ) -> Option<Time<Sim>> {
        let again = match &mut self.other {
            None => sim(self.flow.may_go(&law.config, mono(now))?),
            Some(other) => other.until(now)?,
        };
        held_since.get_or_insert(now);
        Some(again)
    }

    /// The head has left with this payload; `flow` knows it already.
    #[inline]
    pub fn departed(&mut self, now: Time<Sim>, payload: u32) {
        if let Some(other) = &mut self.other {
            other.departed(now, payload);
        }
    }

    /// An OR-ACK had this effect on `flow`.
    #[inline]
    pub fn sampled(&mut self, now: Time<Sim>, verdict: Verdict) {
        let (Some(other), Verdict::Used) = (&mut self.other, verdict) else {
            return;
        };
        if let Some(owd) = self.flow.owd() {
            other.law.set_now(now);
            other.law.on_sample(&Sample {
                now: mono(now),
                sent: Time::from_ticks(self.flow.abi().sample_sent_mono_ns),
                owd,
            });
        }
    }

    /// A flow starts with the last delay `owd` to its receiver, as if an OR-ACK had just reported it.
    pub fn reuse(&mut self, law: &HostLaw, owd: Span, now: Time<Sim>) {
        let at = mono(now);
        let record = self.flow.sent(&law.config, at, 0, 1);
        let verdict = self.flow.orack(&law.config, &record, 0, at, at + owd);
        self.sampled(now, verdict);
    }
}

impl Other {
    /// As `onr_may_go` of law/law.h: no head is held longer than the longest pause.
    fn until(&mut self, now: Time<Sim>) -> Option<Time<Sim>> {
        self.law.set_now(now);
        let until = self.law.hold_until(&Head {
            now: mono(now),
            held: self.held(now),
            max_pause: self.max_pause,
        })?;
        let refused = *self.refused.get_or_insert(now);
        let latest = mono(refused) + self.max_pause;
        (latest > mono(now)).then(|| sim(until.min(latest)))
    }

    fn departed(&mut self, now: Time<Sim>, payload: u32) {
        self.law.set_now(now);
        self.law.on_departure(&Departure {
            now: mono(now),
            payload: Bytes::new(payload.into()),
            held: self.held(now),
        });
        self.refused = None;
    }

    /// Since the first refusal.
    fn held(&self, now: Time<Sim>) -> Span {
        self.refused
            .map_or(Span::ZERO, |refused| mono(now) - mono(refused))
    }
}
