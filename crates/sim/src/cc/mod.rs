//! Congestion controls: how fast and how much a flow may send, from what its acknowledgements say.
//!
//! One file each, with its source's parameters as defaults. Adding one is a file and a line in the
//! list below. They know no clock, queue or packet: every input is an argument.

use crate::int::{IntFormat, IntHop};
use onramp_units::{Rate, Sim, Span, Time};

pub mod hpcc;

/// What one acknowledgement tells the sender.
#[derive(Clone, Copy)]
pub struct Ack<'a> {
    /// When it arrived.
    pub now: Time<Sim>,
    /// All bytes below this have arrived.
    pub acked: u64,
    /// The byte to be sent next.
    pub next: u64,
    /// Since the acknowledged packet was handed to the line.
    pub rtt: Span,
    /// Whether that packet was marked CE.
    pub marked: bool,
    /// What each switch wrote into that packet.
    pub hops: &'a [IntHop],
    /// How to read it.
    pub int: &'a IntFormat,
}

/// What a flow may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pace of its packets.
    pub rate: Rate,
    /// Payload that may be unacknowledged; at the limit nothing more is sent.
    pub window_bytes: u64,
}

/// What a flow's way is like, before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathFacts {
    /// Rate of the sender's line.
    pub line_rate: Rate,
    /// Round-trip time of an idle network between the hosts that are furthest apart.
    pub base_rtt: Span,
    /// Bytes in flight that fill such a way.
    pub bdp_bytes: u64,
    /// Payload of a full packet.
    pub payload_bytes: u64,
}

/// What a congestion control needs from switches and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing but marks.
    Marks,
    /// The packet's time stamp back.
    TimeStamp,
    /// Telemetry of each switch.
    Int,
}

/// A congestion control of one flow.
pub trait CongestionControl {
    /// An acknowledgement has arrived.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// Time has come to `now`; asked before limits that depend on time are read.
    fn advance(&mut self, _now: Time<Sim>) {}
    /// What the flow may do now.
    fn limits(&self) -> Limits;
}

/// Names each congestion control with its module: parameters, state, and which is which.
macro_rules! congestion_controls {
    ($($variant:ident: $module:ident),* $(,)?) => {
        /// A congestion control with its parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(missing_docs)] // The modules say it.
        pub enum Algorithm {
            $($variant($module::Params),)*
        }

        /// The state of one flow under its congestion control.
        #[derive(Debug, Clone)]
        pub(crate) enum Control {
            $($variant($module::$variant),)*
        }

        impl Algorithm {
            pub(crate) fn start(&self, path: &PathFacts) -> Control {
                match self {
                    $(Algorithm::$variant(params) => {
                        Control::$variant($module::$variant::new(params, path))
                    })*
                }
            }

            /// What it needs from the network.
            pub fn feedback(&self) -> Feedback {
                match self {
                    $(Algorithm::$variant(_) => $module::FEEDBACK,)*
                }
            }

            /// Whether a new rate also moves the packet that already has its time.
            pub(crate) fn moves_next_packet(&self) -> bool {
                match self {
                    $(Algorithm::$variant(_) => $module::MOVES_NEXT_PACKET,)*
                }
            }
        }

        impl CongestionControl for Control {
            fn on_ack(&mut self, ack: &Ack<'_>) {
                match self {
                    $(Control::$variant(cc) => cc.on_ack(ack),)*
                }
            }

            fn advance(&mut self, now: Time<Sim>) {
                match self {
                    $(Control::$variant(cc) => cc.advance(now),)*
                }
            }

            fn limits(&self) -> Limits {
                match self {
                    $(Control::$variant(cc) => cc.limits(),)*
                }
            }
        }
    };
}

congestion_controls! {
    Hpcc: hpcc,
}

/// `rate * factor` in whole bits per second, rounded down, at least one.
fn scaled(rate: Rate, factor: f64) -> Rate {
    let bits = rate.bits_per_s() as f64 * factor;
    Rate::from_bits_per_s((bits as u64).max(1)).expect("at least one")
}

/// `rate / divisor`, as [`scaled`]; not the same as times the reciprocal, which is rounded twice.
fn divided(rate: Rate, divisor: f64) -> Rate {
    let bits = rate.bits_per_s() as f64 / divisor;
    Rate::from_bits_per_s((bits as u64).max(1)).expect("at least one")
}

/// Sum of two rates.
fn sum(a: Rate, b: Rate) -> Rate {
    Rate::from_bits_per_s(a.bits_per_s() + b.bits_per_s()).expect("a sum of rates above zero")
}

/// `base_bits_per_s` at 25 Gbit/s, in proportion to the line rate.
fn per_25g(base_bits_per_s: u64, line: Rate) -> Rate {
    scaled(line, base_bits_per_s as f64 / 25e9)
}

/// The window of the "+w" variants: the BDP, shrunk as the rate is below the line's.
fn window_at(rate: Rate, path: &PathFacts) -> u64 {
    let window = u128::from(path.bdp_bytes) * u128::from(rate.bits_per_s())
        / u128::from(path.line_rate.bits_per_s());
    (window as u64).max(1)
}
