// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rules of switches: which packets a port marks or drops although its buffer has room.
//!
//! Each has one file. A new one needs a file and a line in the list below (docs/extend.md). Rules from outside this
//! crate come by [`register`].

use crate::parameter::{Parameter, ParameterValue, Parameters, Tuning};
use crate::plug::Plugs;
use crate::{Custom, Mistakes, Named, Watched};
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// A packet at a port, before it enters the queue or after it has left it.
pub struct Seen<'a> {
    pub now: Time<Sim>,
    /// In the queue, without this packet.
    pub queue: Bytes,
    /// Bytes of this packet on the wire.
    pub packet: Bytes,
    /// Since the packet entered the queue; zero then. Right only for rules that see every packet.
    pub waited: Span,
    /// Draws a random number in [0, 1) of the switch.
    pub uniform: &'a mut dyn FnMut() -> f64,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// It has congestion experienced (CE) from now on.
    Mark,
    Drop,
}

/// The line of a port, and that of the fastest host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    pub port: Rate,
    pub hosts: Rate,
}

impl Lines {
    /// A length of queue that applies at the hosts' rate, in proportion to the port's rate.
    pub fn in_proportion(&self, length: Bytes) -> Bytes {
        let bytes = u128::from(length.get()) * u128::from(self.port.bits_per_s());
        Bytes::new((bytes / u128::from(self.hosts.bits_per_s())) as u64)
    }
}

/// A rule at one port. It sees data packets only, because nothing else can be marked.
pub trait SwitchRule {
    /// The shortest queue, without the packet, at which it is asked. Constant: a shorter queue costs nothing.
    fn asked_from(&self) -> Bytes {
        Bytes::ZERO
    }
    /// A packet that has found room in the buffer enters the queue.
    fn arrives(&mut self, _seen: &mut Seen<'_>) -> Verdict {
        Verdict::Pass
    }
    /// A packet leaves the queue for the line.
    fn leaves(&mut self, _seen: &mut Seen<'_>) -> Verdict {
        Verdict::Pass
    }
}

/// A rule, as a scenario names it.
#[non_exhaustive]
pub struct Entry {
    /// Name in scenarios: `network.rule`.
    pub name: &'static str,
    /// Full name, with its source.
    pub about: &'static str,
    /// Whether it marks packets, as congestion controls such as DCTCP need it.
    pub marks: bool,
    /// Parameters that scenarios can set.
    pub parameters: &'static [Parameter],
    /// With its source's parameters.
    pub rule: fn() -> Rule,
}

impl Entry {
    /// A rule without parameters that marks nothing.
    pub const fn new(name: &'static str, about: &'static str, rule: fn() -> Rule) -> Entry {
        Entry {
            name,
            about,
            marks: false,
            parameters: &[],
            rule,
        }
    }
}

crate::setters!(Entry {
    /// Whether it marks packets, as congestion controls such as DCTCP need it.
    marks: bool;
    /// Parameters that scenarios can set.
    parameters: &'static [Parameter];
});

crate::named!(Entry, "rule");

static PLUGS: Plugs<Entry> = Plugs::new();

/// Adds a rule of another crate.
///
/// # Panics
/// A rule has this name, or rules have been listed already.
pub fn register(entry: &'static Entry) {
    assert!(entry.name != ecn::NAME, "there is a rule {entry:?}");
    PLUGS.add(entry, BUILT_IN.iter().copied());
}

/// All but `ecn`, in the order of the documentation.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    BUILT_IN.iter().copied().chain(PLUGS.all().iter().copied())
}

/// The rule of that name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// The rule that has no entry: marks by the length of the queue.
pub const ECN: &str = ecn::NAME;

/// One of another crate.
impl SwitchRule for Watched<dyn SwitchRule + Send> {
    fn asked_from(&self) -> Bytes {
        self.ask("asked_from", Bytes::ZERO, |rule| rule.asked_from())
    }

    fn arrives(&mut self, seen: &mut Seen<'_>) -> Verdict {
        self.set_now(seen.now);
        self.call("arrives", Verdict::Pass, |rule| rule.arrives(seen))
    }

    fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
        self.set_now(seen.now);
        self.call("leaves", Verdict::Pass, |rule| rule.leaves(seen))
    }
}

/// Names each rule with its module.
macro_rules! switch_rules {
    ($($variant:ident: $module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// The rules of this crate with an entry.
        const BUILT_IN: &[&Entry] = &[$(&$module::ENTRY),*];

        /// A rule with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Rule {
            /// switch/ecn.rs
            Ecn(ecn::Ecn),
            $(
                #[doc = concat!("switch/", stringify!($module), ".rs")]
                $variant($module::Params),
            )*
            /// One of another crate.
            Custom(Custom<Lines, dyn SwitchRule + Send>),
        }

        /// A rule at a port, with its state.
        pub enum AtPort {
            Ecn(ecn::AtPort),
            $($variant($module::AtPort),)*
            Custom(Watched<dyn SwitchRule + Send>),
        }

        impl Rule {
            /// One of another crate: `at` makes it for a port.
            pub fn custom<P: Parameters>(
                params: P,
                at: impl Fn(&P, &Lines) -> Box<dyn SwitchRule + Send> + Clone + Send + Sync + 'static,
            ) -> Rule {
                Rule::Custom(Custom::new(Entry::KIND, params, at))
            }

            /// The mistakes of one of another crate.
            pub fn mistakes(&self) -> Option<&Mistakes> {
                match self {
                    Rule::Custom(custom) => Some(custom.mistakes()),
                    _ => None,
                }
            }

            /// The parameter `name`, unless it is of [`Ecn`], whose keys are `network.ecn`.
            pub fn get(&self, name: &str) -> Option<ParameterValue> {
                match self {
                    Rule::Ecn(_) => None,
                    $(Rule::$variant(params) => params.get(name),)*
                    Rule::Custom(custom) => custom.get(name),
                }
            }

            /// With the parameters that a scenario sets.
            #[must_use]
            pub fn tuned(mut self, given: &Tuning) -> Rule {
                match &mut self {
                    Rule::Ecn(_) => {}
                    $(Rule::$variant(params) => params.tune(given),)*
                    Rule::Custom(custom) => custom.tune(given),
                }
                self
            }

            /// At a port with these lines.
            pub fn at(&self, lines: Lines) -> AtPort {
                match self {
                    Rule::Ecn(params) => AtPort::Ecn(ecn::AtPort::new(params, lines)),
                    $(Rule::$variant(params) => AtPort::$variant($module::AtPort::new(params, lines)),)*
                    Rule::Custom(custom) => AtPort::Custom(custom.start(&lines)),
                }
            }
        }

        impl SwitchRule for AtPort {
            fn asked_from(&self) -> Bytes {
                match self {
                    AtPort::Ecn(rule) => rule.asked_from(),
                    $(AtPort::$variant(rule) => rule.asked_from(),)*
                    AtPort::Custom(rule) => rule.asked_from(),
                }
            }

            #[inline]
            fn arrives(&mut self, seen: &mut Seen<'_>) -> Verdict {
                match self {
                    AtPort::Ecn(rule) => rule.arrives(seen),
                    $(AtPort::$variant(rule) => rule.arrives(seen),)*
                    AtPort::Custom(rule) => rule.arrives(seen),
                }
            }

            #[inline]
            fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
                match self {
                    AtPort::Ecn(rule) => rule.leaves(seen),
                    $(AtPort::$variant(rule) => rule.leaves(seen),)*
                    AtPort::Custom(rule) => rule.leaves(seen),
                }
            }
        }
    };
}

mod ecn;

pub use ecn::Ecn;

switch_rules! {}
