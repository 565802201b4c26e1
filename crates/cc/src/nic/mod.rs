// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of NICs: the rate and window of a flow, from its acknowledgements.
//!
//! Each has one file, with its source's parameters as defaults. A new one needs a file and a line in the list
//! below (docs/architecture.md). They do not know clocks, queues or packets: every input is an argument.

use crate::int::{IntFormat, IntHop};
use crate::parameter::{Parameter, ParameterValue, Parameters, Tuning};
use crate::plug::Plugs;
use crate::{Custom, Mistakes, Named, Watched};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::fmt;

/// Content of one acknowledgement.
#[derive(Clone, Copy)]
pub struct Ack<'a> {
    /// Its arrival time.
    pub now: Time<Sim>,
    /// All bytes below this have arrived.
    pub acked: u64,
    /// The next byte to send.
    pub next: u64,
    /// Round-trip time: since the acknowledged packet was sent.
    pub rtt: Span,
    /// Whether that packet was marked CE.
    pub marked: bool,
    /// Telemetry of each switch in that packet.
    pub hops: &'a [IntHop],
    /// Units of the telemetry.
    pub int: &'a IntFormat,
}

/// A burst that its receiver has acknowledged as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completion {
    /// Time of the acknowledgement.
    pub now: Time<Sim>,
    /// Payload.
    pub bytes: u64,
    /// Time since the burst was due, less its own time on the sender's line.
    pub rtt: Span,
    /// Whether the burst left so late that the flow used less of its rate than [`USED`].
    pub is_limited: bool,
}

/// Part of its rate that a flow has to use, to be not limited by its application (TIMELY, section 5).
pub const USED: f64 = 0.8;

/// Limits of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pacing rate.
    pub rate: Rate,
    /// Payload that may be unacknowledged; at the limit nothing more is sent.
    pub window_bytes: u64,
}

/// Packets of a flow that leave together. The pacing rate is that of whole bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Payload.
    pub bytes: u32,
    /// Rate within the burst.
    pub rate: Rate,
}

/// A flow's path, before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathFacts {
    /// Rate of the sender's line.
    pub line_rate: Rate,
    /// Round-trip time of an idle network between the hosts that are furthest apart.
    pub base_rtt: Span,
    /// Bandwidth-delay product of that path.
    pub bdp_bytes: u64,
    /// Payload of a full packet.
    pub payload_bytes: u64,
}

/// Feedback that a congestion control needs from switches and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing but marks.
    Marks,
    /// The packet's time stamp, returned.
    TimeStamp,
    /// Telemetry of each switch.
    Int,
}

/// Marks of switches, by the length of the queue when a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marks {
    /// No packet is marked at or below this length.
    pub min: Bytes,
    /// All packets are marked above this length.
    pub max: Bytes,
    /// Fraction of packets that are marked just below `max`; it grows from zero at `min`.
    pub max_fraction: f64,
}

/// What a congestion control needs from its surroundings, by its parameters.
pub trait Needs: Parameters {
    /// Feedback from switches and receivers.
    const FEEDBACK: Feedback = Feedback::Marks;
    /// Whether a new rate also changes the time of a packet that is already scheduled.
    const MOVES_NEXT_PACKET: bool = false;
    /// Whether its window changes with time alone, without acknowledgements.
    #[inline]
    fn window_follows_time(&self) -> bool {
        false
    }
}

/// What a congestion control of another crate needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needed {
    feedback: Feedback,
    moves_next_packet: bool,
    window_follows_time: bool,
}

/// A congestion control of one flow.
pub trait CongestionControl: fmt::Debug {
    /// An acknowledgement has arrived.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// A burst is complete.
    fn on_completion(&mut self, _completion: &Completion) {}
    /// Advances the time to `now`; called before limits that depend on time are read.
    fn advance(&mut self, _now: Time<Sim>) {}
    /// The current limits of the flow.
    fn limits(&self) -> Limits;
    /// None if each packet leaves at its time.
    #[inline]
    fn burst(&self) -> Option<Burst> {
        None
    }
    /// Its timers, for callers that have an event for each of them.
    fn timers(&mut self) -> Option<&mut dyn Timers> {
        None
    }
}

/// Timers of a congestion control. On its own it lets time go by when it is next called, and decides itself what of all
/// that is due at once comes first. A caller that keeps them as events, as ns-3 does, decides that by the order in which it
/// scheduled them.
pub trait Timers {
    /// From now on nothing but [`Timers::expire`] handles timers.
    fn leave_to_events(&mut self);
    /// When each of them expires. Of those that one call sets, the first is set first.
    fn due(&self) -> [Time<Sim>; 3];
    /// Handles number `timer` of [`Timers::due`], which is due now.
    fn expire(&mut self, timer: usize);
}

/// One of another crate, whose answers are checked.
impl CongestionControl for Watched<dyn CongestionControl + Send> {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.set_now(ack.now);
        self.call("on_ack", (), |cc| cc.on_ack(ack));
    }

    fn on_completion(&mut self, completion: &Completion) {
        self.call("on_completion", (), |cc| cc.on_completion(completion));
    }

    fn advance(&mut self, now: Time<Sim>) {
        self.set_now(now);
        self.call("advance", (), |cc| cc.advance(now));
    }

    fn limits(&self) -> Limits {
        let harmless = Limits {
            rate: crate::kbit(1_000_000_000),
            window_bytes: u64::MAX,
        };
        let limits = self.ask("limits", harmless, |cc| cc.limits());
        if limits.window_bytes == 0 {
            self.note("limits", "answered a window of 0 bytes".to_owned());
            return harmless;
        }
        limits
    }

    fn burst(&self) -> Option<Burst> {
        let burst = self.ask("burst", None, |cc| cc.burst());
        if burst.is_some_and(|burst| burst.bytes == 0) {
            self.note("burst", "answered a burst of 0 bytes".to_owned());
        }
        burst.filter(|burst| burst.bytes > 0)
    }
}

/// Names each congestion control with its module: parameters, state, and which is which.
macro_rules! congestion_controls {
    ($($variant:ident: $module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Those of this crate; "_w" stands for the papers' "+w".
        fn built_in() -> impl Iterator<Item = &'static Preset> {
            [$($module::PRESETS),*].into_iter().flatten()
        }

        /// A congestion control with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)] // The modules say it.
        pub enum Algorithm {
            $($variant($module::Params),)*
            Custom(Custom<PathFacts, dyn CongestionControl + Send>, Needed),
        }

        /// The state of one flow under its congestion control.
        #[derive(Debug)]
        pub enum Control {
            $($variant($module::$variant),)*
            Custom(Watched<dyn CongestionControl + Send>),
        }

        impl Algorithm {
            /// One of another crate: `start` makes the state of a new flow. What it needs is asked once, of these parameters.
            pub fn custom<P: Needs>(
                params: P,
                start: impl Fn(&P, &PathFacts) -> Box<dyn CongestionControl + Send> + Clone + Send + Sync + 'static,
            ) -> Algorithm {
                let needed = Needed {
                    feedback: P::FEEDBACK,
                    moves_next_packet: P::MOVES_NEXT_PACKET,
                    window_follows_time: params.window_follows_time(),
                };
                Algorithm::Custom(Custom::new(Preset::KIND, params, start), needed)
            }

            /// The mistakes of one of another crate.
            pub fn mistakes(&self) -> Option<&Mistakes> {
                match self {
                    Algorithm::Custom(custom, _) => Some(custom.mistakes()),
                    _ => None,
                }
            }

            pub fn start(&self, path: &PathFacts) -> Control {
                match self {
                    $(Algorithm::$variant(params) => {
                        Control::$variant($module::$variant::new(params, path))
                    })*
                    Algorithm::Custom(custom, _) => Control::Custom(custom.start(path)),
                }
            }

            /// With the parameters that a scenario sets.
            #[must_use]
            pub fn tuned(mut self, given: &Tuning) -> Algorithm {
                match &mut self {
                    $(Algorithm::$variant(params) => params.tune(given),)*
                    Algorithm::Custom(custom, _) => custom.tune(given),
                }
                self
            }

            /// The parameter `name`.
            pub fn get(&self, name: &str) -> Option<ParameterValue> {
                match self {
                    $(Algorithm::$variant(params) => params.get(name),)*
                    Algorithm::Custom(custom, _) => custom.get(name),
                }
            }

            /// Feedback that it needs from the network.
            #[inline]
            pub fn feedback(&self) -> Feedback {
                match self {
                    $(Algorithm::$variant(_) => $module::Params::FEEDBACK,)*
                    Algorithm::Custom(_, needed) => needed.feedback,
                }
            }

            /// Whether its window changes with time alone, without acknowledgements.
            #[inline]
            pub fn window_follows_time(&self) -> bool {
                match self {
                    $(Algorithm::$variant(params) => params.window_follows_time(),)*
                    Algorithm::Custom(_, needed) => needed.window_follows_time,
                }
            }

            /// Whether a new rate also changes the time of a packet that is already scheduled.
            #[inline]
            pub fn moves_next_packet(&self) -> bool {
                match self {
                    $(Algorithm::$variant(_) => $module::Params::MOVES_NEXT_PACKET,)*
                    Algorithm::Custom(_, needed) => needed.moves_next_packet,
                }
            }
        }

        impl CongestionControl for Control {
            #[inline]
            fn on_ack(&mut self, ack: &Ack<'_>) {
                match self {
                    $(Control::$variant(cc) => cc.on_ack(ack),)*
                    Control::Custom(cc) => cc.on_ack(ack),
                }
            }

            fn on_completion(&mut self, completion: &Completion) {
                match self {
                    $(Control::$variant(cc) => cc.on_completion(completion),)*
                    Control::Custom(cc) => cc.on_completion(completion),
                }
            }

            #[inline]
            fn advance(&mut self, now: Time<Sim>) {
                match self {
                    $(Control::$variant(cc) => cc.advance(now),)*
                    Control::Custom(cc) => cc.advance(now),
                }
            }

            #[inline]
            fn limits(&self) -> Limits {
                match self {
                    $(Control::$variant(cc) => cc.limits(),)*
                    Control::Custom(cc) => cc.limits(),
                }
            }

            #[inline]
            fn burst(&self) -> Option<Burst> {
                match self {
                    $(Control::$variant(cc) => cc.burst(),)*
                    Control::Custom(cc) => cc.burst(),
                }
            }

            fn timers(&mut self) -> Option<&mut dyn Timers> {
                match self {
                    $(Control::$variant(cc) => cc.timers(),)*
                    Control::Custom(cc) => cc.timers(),
                }
            }
        }
    };
}

congestion_controls! {
    Hpcc: hpcc,
    Dcqcn: dcqcn,
    Timely: timely,
    Dctcp: dctcp,
    TimelyPaper: timely_paper,
    FastStar: fast_star,
    Unlimited: unlimited,
}

/// A congestion control with the parameters, and the switches' settings, of the HPCC authors'
/// experiments, which On-Ramp's build on.
#[non_exhaustive]
pub struct Preset {
    /// Name in scenarios.
    pub name: &'static str,
    /// What it is, with its source.
    pub about: &'static str,
    /// Parameters that scenarios can set.
    pub parameters: &'static [Parameter],
    /// Pairs of parameters of which the first is not above the second.
    pub ordered: &'static [(&'static str, &'static str)],
    /// Jain's index of two flows that share a link, at least.
    pub fairness: f64,
    /// Its parameters for a line rate.
    pub algorithm: &'static (dyn Fn(Rate) -> Algorithm + Sync),
    /// Marks at a port of the given rate.
    pub ecn: fn(Rate) -> Marks,
    /// Whether a pause of the data class holds acknowledgements back in the host's NIC.
    pub hold_acks: bool,
}

impl Preset {
    /// A congestion control of another crate, without parameters. Its `algorithm` is [`Algorithm::custom`].
    pub const fn new(
        name: &'static str,
        about: &'static str,
        algorithm: &'static (dyn Fn(Rate) -> Algorithm + Sync),
    ) -> Preset {
        Preset {
            name,
            about,
            parameters: &[],
            ordered: &[],
            fairness: crate::FAIR,
            algorithm,
            ecn: red,
            hold_acks: true,
        }
    }

    /// Whether its flows send bursts.
    pub(crate) fn sends_bursts(&self) -> bool {
        let line = Rate::from_bits_per_s(1_000_000_000).expect("above zero");
        (self.algorithm)(line).sends_bursts()
    }
}

impl Algorithm {
    /// Whether its flows send bursts, which depends neither on the path nor on parameters.
    pub fn sends_bursts(&self) -> bool {
        let path = PathFacts {
            line_rate: Rate::from_bits_per_s(1_000_000_000).expect("above zero"),
            base_rtt: Span::from_us(10),
            bdp_bytes: 1_250,
            payload_bytes: 1_000,
        };
        self.start(&path).burst().is_some()
    }
}

crate::setters!(Preset {
    /// Parameters that scenarios can set.
    parameters: &'static [Parameter];
    /// Pairs of parameters of which the first is not above the second.
    ordered: &'static [(&'static str, &'static str)];
    /// Jain's index of two flows that share a link, at least.
    fairness: f64;
    /// Marks at a port of the given rate, in place of [`red`].
    ecn: fn(Rate) -> Marks;
    /// Whether a pause of the data class holds acknowledgements back in the host's NIC.
    hold_acks: bool;
});

crate::named!(Preset, "congestion control");

static PLUGS: Plugs<Preset> = Plugs::new();

/// Adds a congestion control of another crate, whose `algorithm` is [`Algorithm::custom`].
///
/// # Panics
/// One for NICs has this name; or it has parameters, and a scenario has been read already.
pub fn register(preset: &'static Preset) {
    PLUGS.add_with(preset, built_in(), preset.parameters);
}

/// All, in the order of the documentation.
pub fn presets() -> impl Iterator<Item = &'static Preset> {
    built_in().chain(PLUGS.all().iter().copied())
}

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().find(|preset| preset.name == name)
}

/// RED as for DCQCN: 400 kB to 1600 kB at 100 Gbit/s, up to 20 %.
pub fn red(line: Rate) -> Marks {
    Marks {
        min: kb_per_100g(400, line),
        max: kb_per_100g(1600, line),
        max_fraction: 0.2,
    }
}

/// A step as for DCTCP: 300 kB at 100 Gbit/s.
pub fn step(line: Rate) -> Marks {
    let threshold = kb_per_100g(300, line);
    Marks {
        min: threshold,
        max: threshold,
        max_fraction: 1.0,
    }
}

fn kb_per_100g(kb: u64, line: Rate) -> Bytes {
    let bytes = u128::from(kb) * 1000 * u128::from(line.bits_per_s()) / 100_000_000_000;
    Bytes::new(bytes as u64)
}

/// `rate * factor` in whole bits per second, rounded down, at least one.
#[inline]
fn scaled(rate: Rate, factor: f64) -> Rate {
    let bits = rate.bits_per_s() as f64 * factor;
    Rate::from_bits_per_s((bits as u64).max(1)).expect("at least one")
}

/// `rate / divisor`, as [`scaled`]; not the same as times the reciprocal, which is rounded twice.
#[inline]
fn divided(rate: Rate, divisor: f64) -> Rate {
    let bits = rate.bits_per_s() as f64 / divisor;
    Rate::from_bits_per_s((bits as u64).max(1)).expect("at least one")
}

/// Sum of two rates.
#[inline]
fn sum(a: Rate, b: Rate) -> Rate {
    Rate::from_bits_per_s(a.bits_per_s() + b.bits_per_s()).expect("a sum of rates above zero")
}

/// `base_bits_per_s` at 25 Gbit/s, in proportion to the line rate.
fn per_25g(base_bits_per_s: u64, line: Rate) -> Rate {
    scaled(line, base_bits_per_s as f64 / 25e9)
}

/// The window of the "+w" variants: the BDP, shrunk as the rate is below the line's.
#[inline]
fn window_at(rate: Rate, path: &PathFacts) -> u64 {
    let (bdp, line) = (path.bdp_bytes, path.line_rate.bits_per_s());
    let window = match bdp.checked_mul(rate.bits_per_s()) {
        Some(product) => product / line,
        // Beyond what any network has.
        None => (u128::from(bdp) * u128::from(rate.bits_per_s()) / u128::from(line)) as u64,
    };
    window.max(1)
}

/// No cap, or that of the "+w" variants.
#[inline]
fn window_if(capped: bool, rate: Rate, path: &PathFacts) -> u64 {
    if capped {
        window_at(rate, path)
    } else {
        u64::MAX
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The papers' fabric.
    pub fn path() -> PathFacts {
        PathFacts {
            line_rate: "100 Gbit/s".parse().unwrap(),
            base_rtt: Span::from_ns(12_240),
            bdp_bytes: 153_000,
            payload_bytes: 1000,
        }
    }

    /// An acknowledgement of the first packet, 153 packets having been sent.
    pub fn ack(now: Time<Sim>) -> Ack<'static> {
        static INT: std::sync::LazyLock<IntFormat> = std::sync::LazyLock::new(|| {
            let line = path().line_rate;
            IntFormat::new(line, &[line]).unwrap()
        });
        Ack {
            now,
            acked: 1000,
            next: 153_000,
            rtt: Span::from_us(13),
            marked: false,
            hops: &[],
            int: &INT,
        }
    }

    #[test]
    fn presets_have_reference_values() {
        let line = path().line_rate;
        let Algorithm::Dcqcn(params) = (preset("dcqcn").unwrap().algorithm)(line) else {
            panic!("dcqcn is DCQCN");
        };
        assert_eq!(params.additive.to_string(), "20 Mbit/s");
        assert_eq!(params.hyper.to_string(), "200 Mbit/s");
        assert_eq!(
            (preset("dctcp").unwrap().ecn)(line).max,
            Bytes::new(300_000)
        );
    }

    #[test]
    fn the_window_shrinks_with_the_rate() {
        let quarter = divided(path().line_rate, 4.0);
        assert_eq!(window_at(quarter, &path()), 38_250);
        assert_eq!(window_if(false, quarter, &path()), u64::MAX);
    }
}
