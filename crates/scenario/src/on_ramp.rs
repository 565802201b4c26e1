// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [onramp]: the control law.

use crate::fraction::Fraction;
use crate::host::{Host, Qdisc};
use crate::hosts::HostKind;
use crate::key::{both, Scope};
use onramp_cc::law::ControlLaw;
use onramp_keys::Absent::{By, Is, Without};
use onramp_keys::{section, OrOff, Source};
pub use onramp_law::Law;
use onramp_units::{Bytes, Span};

section! {
    /// The control law and its parameters. With [`Law::Off`] the parameters are the defaults and mean
    /// nothing.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct OnRamp in "onramp" with Scope {
        law: ControlLaw = By("`final` on kernel hosts with qdisc `edge`, else `off`", law), both(),
            "Control law; docs/law.md has the equations. On kernel hosts a law other than `off` needs `host.qdisc` `edge`. Nic hosts need no qdisc.";
        // facts/onramp.md: the row of real kernels with GSO and no hypervisor.
        threshold: OrOff<Span> [Span::from_us(1), Span::from_ms(100)] = Is("50 us"), both(),
            "Threshold T: a flow is held while its one-way delay is above T. Without `guard` it must be at least the delay of the idle path. `off` means law `off`.";
        gain: Fraction [0.0001, 1.0] = Is("1/16"), both(),
            "g of eq. 3: weight of a new sample in beta. Only law `final` uses it.";
        max_pause: Span [Span::from_us(1), Span::from_s(1)] = Is("5 ms"), both(),
            "Upper bound of the time for which a segment is held.";
        guard: OrOff<Span> [Span::from_ms(1), Span::from_s(10)] = Is("off"), both().later(),
            "Time after which the guard judges holding: it raises T of a flow that is held in vain, and gives room to one that is alone at its receiver. docs/law.md describes the rules. `off`: no guard, as in the paper. The daemon's default is 50 ms.";
        gso: Bytes [Bytes::new(1_448), Bytes::new(65_536)] = Is("16 kB"), both(),
            "Largest segment on a host with On-Ramp, or `host.gso` if that is smaller. A segment leaves as one burst, so its size bounds the precision of On-Ramp's control (fig. 19).";
        reuse: OrOff<Span> [Span::from_us(1), Span::from_s(10)] = Is("off"), both().rack_only(&["off"]),
            "A new flow starts with the last one-way delay that its host measured to the receiver, unless that measurement is older than this. `off`: a new flow is not held in its first round trip.";
        orack_every: Option<Bytes> [Bytes::new(1), Bytes::new(1_000_000)] = Without("14.48 kB on kernel hosts, 1 B on nic hosts"), both().everywhere(),
            "Payload of a flow between two OR-ACKs. 14.48 kB: an OR-ACK for every tenth full packet. 1 B: an OR-ACK for every packet.";
        pacing: bool = Is("false"), both().on(HostKind::Kernel).later(),
            "`true`: segments leave at TCP's pacing rate, as with qdisc fq, which the paper's On-Ramp extends: 1.2 windows per round trip, and 2 early in slow start. `false`: segments leave as soon as the law allows.";
        subtract_nic_queue: bool = Is("true"), both().on(HostKind::Kernel).later(),
            "`true`: the stamp of a segment is the time at which the NIC sends it, so the one-way delay does not contain the wait in `host.nic_queue`. `false`: the stamp is the time at which the segment leaves the queueing discipline.";
        piggyback: bool = Is("false"), both().on(HostKind::Nic).everywhere().later(),
            "`true`: the transport's acknowledgement, which the NIC sends at once for each packet, also carries the packet's arrival time. `false`: an OR-ACK carries it.";
    }
}

impl OnRamp {
    /// Threshold T. With law off: the default.
    pub fn t(&self) -> Span {
        let given = self.threshold.0;
        given.expect("with threshold off the law is off, and T the default")
    }
}

fn law(run: &dyn Source) -> Option<String> {
    let kind = run.text(Host::kind)?.parse().ok()?;
    let qdisc = run.text(Host::qdisc)?.parse().ok()?;
    let law = match (kind, qdisc) {
        (HostKind::Kernel, Qdisc::Edge) => Law::Final,
        _ => Law::Off,
    };
    Some(law.to_string())
}
