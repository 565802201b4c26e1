//! Keys of [onramp]: the control law.

use crate::field::{Field, Reader};
use crate::key::{field, By, Is, Rack, Without};
use crate::section::section;
use crate::value::{Form, Value};
use crate::{Fraction, HostKind, Qdisc, Receivers};
pub use onramp_law::Law;
use onramp_units::{Bytes, Span};

section! {
    /// The control law and its parameters. With [`Law::Off`] the parameters are the defaults and mean
    /// nothing.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct OnRamp in "onramp" {
        law: Law = field(
            Form::Choice(Law::NAMES),
            By("`final` on kernel hosts with qdisc `edge`, else `off`", law),
        ),
            "Control law; docs/law.md says what each does. Kernel hosts need qdisc edge to hold packets. Nic hosts can hold every packet.";
        hosts: Receivers = field(Form::HostOr("all"), Is("all")).rack_has(Rack::Only(&["all"])),
            "Hosts that have On-Ramp. The others send as without it.";
        // facts/onramp.md: the row of real kernels with GSO and no hypervisor.
        threshold: Span = field(Form::SpanOrOff(Span::from_us(1), Span::from_ms(100)), Is("50 us")),
            "T: a flow is held while its one-way delay is above this. At least the delay of the idle path. `off` is law off.";
        gain: Fraction = field(Form::Fraction(0.0001, 1.0), Is("1/16")),
            "g of eq. 3: weight of a new sample in beta. Law final uses it.";
        max_pause: Span = field(Form::Span(Span::from_us(1), Span::from_s(1)), Is("5 ms")),
            "Upper bound of the time that a segment is held.";
        gso: Bytes = field(Form::Bytes(Bytes::new(1_448), Bytes::new(65_536)), Is("16 kB")),
            "Largest segment while On-Ramp holds packets; `host.gso` if that is smaller. A segment leaves as one burst, so its size limits how finely On-Ramp controls (fig. 19).";
        reuse: Option<Span> = field(Form::SpanOrOff(Span::from_us(1), Span::from_s(10)), Is("off")).rack_has(Rack::Only(&["off"])),
            "A new flow starts with the one-way delay that its host measured last to the receiver, if the measurement is not older than this. `off`: a new flow is not held in its first round trip.";
        orack_every: Option<Bytes> = field(
            Form::Bytes(Bytes::new(1), Bytes::new(1_000_000)),
            Without("14.48 kB with kernel hosts, 1 B with nic hosts"),
        ),
            "Payload of a flow between two OR-ACKs. 14.48 kB: an OR-ACK for every tenth full packet. 1 B: for every packet.";
        pacing: bool = field(Form::Flag, Is("false")).on(HostKind::Kernel).later(),
            "Segments leave at TCP's pace, as with qdisc fq, which the paper's On-Ramp is built into: 1.2 windows a round trip, and 2 early in slow start. `false`: segments leave as soon as the law allows.";
        piggyback: bool = field(Form::Flag, Is("false")).on(HostKind::Nic).later(),
            "A NIC reports the arrival time of a packet in the transport's acknowledgement, which it sends at once for each packet, and not in an OR-ACK.";
    }
}

fn law(run: &mut dyn Reader) -> Option<Value> {
    let (kind, qdisc) = (run.field("host.kind")?, run.field("host.qdisc")?);
    match (kind, qdisc) {
        (HostKind::Kernel, Qdisc::Edge) => Law::Final.to_value(),
        _ => Law::Off.to_value(),
    }
}
