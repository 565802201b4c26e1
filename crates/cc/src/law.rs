// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Control laws of On-Ramp: when the head of a flow's queue may leave. Those of `law/` are [`onramp_law::Law`]; those of
//! other crates come by [`register`], and only the simulator runs them.
//!
//! The simulator measures delays, matches OR-ACKs with what was sent and ends what was held too long, as `law/` does
//! for the built-in ones. A law from outside decides when a head may leave.

use crate::parameter::{Parameter, ParameterValue, Parameters, Tuning};
use crate::plug::{Names, Plugs};
use crate::{Custom, Mistakes, Named, Watched};
use onramp_keys::{alternatives, Value, Wrong};
use onramp_law::Law;
use onramp_units::{Bytes, Mono, Rate, Span, Time};
use std::fmt;
use std::str::FromStr;

/// What a law knows of a flow before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowFacts {
    /// Rate of the sender's line.
    pub line_rate: Rate,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// T: `onramp.threshold`.
    pub threshold: Span,
    /// `onramp.max_pause`: a head leaves so long after it was first refused, whatever the law answers.
    pub max_pause: Span,
}

/// A one-way delay that an OR-ACK has brought. Times are those of the sender's clock, in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The OR-ACK's arrival.
    pub now: Time<Mono>,
    /// When the first byte of the segment with the sampled byte left.
    pub sent: Time<Mono>,
    /// Delay of the sampled byte, without its place in the segment. It is below zero if clocks are wrong.
    pub owd: Span,
}

/// A segment, or a NIC's packet, that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// On the sender's clock.
    pub now: Time<Mono>,
    /// Payload, also of a retransmission.
    pub payload: Bytes,
    /// Since its first refusal; zero if it was not refused.
    pub held: Span,
}

/// The head of a flow's queue, which would leave now without a law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// On the sender's clock.
    pub now: Time<Mono>,
    /// Since its first refusal; zero if it was not refused.
    pub held: Span,
    /// As [`FlowFacts::max_pause`].
    pub max_pause: Span,
}

/// A control law of one flow. Acknowledgements and retransmission timers do not pass it.
pub trait FlowLaw: fmt::Debug {
    /// An OR-ACK has brought a delay, before [`FlowLaw::hold_until`] is asked again. Each call has a segment that left later
    /// than that of the call before, or a later byte of the same one; other OR-ACKs, and absurd delays, are left out. With
    /// `onramp.reuse` the first call may come before anything is sent, with the last delay of another flow.
    fn on_sample(&mut self, sample: &Sample);
    /// A segment leaves, after [`FlowLaw::hold_until`] has let it go.
    fn on_departure(&mut self, _departure: &Departure) {}
    /// Whether the head waits. `None`: it may go, though it may be asked for again if another flow leaves first. Otherwise the time
    /// of the next decision: after `head.now`, and at most `head.max_pause` after it. It is also asked after each sample.
    fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>>;
}

/// One of another crate, whose answers are checked. The caller sets the time.
impl FlowLaw for Watched<dyn FlowLaw + Send> {
    fn on_sample(&mut self, sample: &Sample) {
        self.call("on_sample", (), |law| law.on_sample(sample));
    }

    fn on_departure(&mut self, departure: &Departure) {
        self.call("on_departure", (), |law| law.on_departure(departure));
    }

    fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>> {
        let until = self.call("hold_until", None, |law| law.hold_until(head))?;
        let after_ns = until.ticks().saturating_sub(head.now.ticks());
        let max = head.max_pause;
        let bound = match after_ns {
            ..=0 => "not above min 0 s".to_owned(),
            _ if until > head.now + max => format!("above max {max} (onramp.max_pause)"),
            _ => return Some(until),
        };
        self.note(
            "hold_until",
            format!("answered a time {after_ns} ns after now, {bound}"),
        );
        None
    }
}

/// A law of another crate with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomLaw(Custom<FlowFacts, dyn FlowLaw + Send>);

impl CustomLaw {
    /// `start` makes the state of a new flow.
    pub fn starting<P: Parameters>(
        params: P,
        start: impl Fn(&P, &FlowFacts) -> Box<dyn FlowLaw + Send> + Clone + Send + Sync + 'static,
    ) -> CustomLaw {
        CustomLaw(Custom::new(Entry::KIND, params, start))
    }

    /// Its mistakes.
    pub fn mistakes(&self) -> &Mistakes {
        self.0.mistakes()
    }

    /// The parameter `name`.
    pub fn get(&self, name: &str) -> Option<ParameterValue> {
        self.0.get(name)
    }

    /// With the parameters that a scenario sets.
    #[must_use]
    pub fn tuned(mut self, given: &Tuning) -> CustomLaw {
        self.0.tune(given);
        self
    }

    /// A new flow.
    pub fn start(&self, flow: &FlowFacts) -> Watched<dyn FlowLaw + Send> {
        self.0.start(flow)
    }
}

/// A law of another crate, as a scenario names it.
#[non_exhaustive]
pub struct Entry {
    /// Name in scenarios: `onramp.law`.
    pub name: &'static str,
    /// What it does, with its source.
    pub about: &'static str,
    /// Parameters that scenarios can set, with keys `onramp.NAME.*`.
    pub parameters: &'static [Parameter],
    /// With its source's parameters.
    pub law: &'static (dyn Fn() -> CustomLaw + Sync),
}

impl Entry {
    /// A law without parameters.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        law: &'static (dyn Fn() -> CustomLaw + Sync),
    ) -> Entry {
        Entry {
            name,
            about,
            parameters: &[],
            law,
        }
    }
}

crate::setters!(Entry {
    /// Parameters that scenarios can set.
    parameters: &'static [Parameter];
});

crate::named!(Entry, "control law");

static PLUGS: Plugs<Entry> = Plugs::new();

/// Adds a law of another crate.
///
/// # Panics
/// A law has this name; or it has parameters, and a scenario has been read already.
pub fn register(entry: &'static Entry) {
    let is_new = !Law::NAMES.contains(&entry.name);
    assert!(is_new, "there is a control law {entry:?}");
    PLUGS.add_with(entry, [], entry.parameters);
}

/// Those of other crates.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    PLUGS.all().iter().copied()
}

/// A law that a scenario names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ControlLaw {
    /// Of `law/`, which the kernel runs too.
    BuiltIn(Law),
    /// Of another crate.
    Custom(&'static Entry),
}

impl ControlLaw {
    /// All, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = ControlLaw> {
        let built_in = Law::all().map(ControlLaw::BuiltIn);
        built_in.chain(entries().map(ControlLaw::Custom))
    }

    /// As scenarios have it.
    pub fn name(self) -> &'static str {
        match self {
            ControlLaw::BuiltIn(law) => law.name(),
            ControlLaw::Custom(entry) => entry.name,
        }
    }

    /// What it does.
    pub fn about(self) -> &'static str {
        match self {
            ControlLaw::BuiltIn(law) => law.meaning(),
            ControlLaw::Custom(entry) => entry.about,
        }
    }

    /// What scenarios can set beside what every law has.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            ControlLaw::BuiltIn(_) => &[],
            ControlLaw::Custom(entry) => entry.parameters,
        }
    }

    /// Whether the kernel's programs have it.
    pub fn in_kernel(self) -> bool {
        matches!(self, ControlLaw::BuiltIn(_))
    }
}

impl From<Law> for ControlLaw {
    fn from(law: Law) -> ControlLaw {
        ControlLaw::BuiltIn(law)
    }
}

impl PartialEq<Law> for ControlLaw {
    fn eq(&self, other: &Law) -> bool {
        *self == ControlLaw::BuiltIn(*other)
    }
}

impl fmt::Display for ControlLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ControlLaw {
    type Err = Wrong;

    fn from_str(name: &str) -> Result<ControlLaw, Wrong> {
        let named = ControlLaw::all().find(|law| law.name() == name);
        named.ok_or_else(|| Wrong::unlike::<ControlLaw>(()))
    }
}

impl Value for ControlLaw {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "NAME";

    fn read(text: &str, (): ()) -> Result<ControlLaw, Wrong> {
        text.parse()
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn words((): ()) -> String {
        alternatives(Self::names())
    }

    fn names() -> &'static [&'static str] {
        static NAMES: Names = Names::new();
        NAMES.are(ControlLaw::all().map(ControlLaw::name).collect())
    }

    fn meanings() -> String {
        let meaning = |law: ControlLaw| format!(" `{law}`: {}.", law.about());
        ControlLaw::all().map(meaning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::parameters! { in "onramp.": "answers", {
        "after" after: Span = Span::from_us(1), crate::LONG, "Time of a hold.";
    } }

    #[derive(Debug)]
    struct Answers(i64);

    impl FlowLaw for Answers {
        fn on_sample(&mut self, _sample: &Sample) {}

        fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>> {
            let until = head.now.ticks().saturating_add(self.0);
            (self.0 != 0).then(|| Time::from_ticks(until))
        }
    }

    /// What is taken of an answer of `after_ns`, and the mistake.
    fn answered(after_ns: i64) -> (Option<Time<Mono>>, Option<String>) {
        let law = CustomLaw::starting(Params::default(), move |_, _| Box::new(Answers(after_ns)));
        let mut flow = law.start(&FlowFacts {
            line_rate: crate::kbit(10_000_000),
            payload: Bytes::new(1448),
            threshold: Span::from_us(50),
            max_pause: Span::from_ms(5),
        });
        let until = flow.hold_until(&Head {
            now: Time::from_ticks(1_000),
            held: Span::ZERO,
            max_pause: Span::from_ms(5),
        });
        (until, law.mistakes().first().map(ToString::to_string))
    }

    #[test]
    fn a_hold_ends_after_now_and_within_the_longest_pause() {
        assert_eq!(answered(0), (None, None));
        for after_ns in [1, 5_000_000] {
            let until = Time::from_ticks(1_000 + after_ns);
            assert_eq!(answered(after_ns), (Some(until), None));
        }
    }

    #[test]
    fn another_answer_is_a_mistake_and_holds_nothing() {
        for (after_ns, words) in [
            (-1, "answered a time -1 ns after now, not above min 0 s"),
            (
                5_000_001,
                "answered a time 5000001 ns after now, above max 5 ms (onramp.max_pause)",
            ),
            (i64::MAX, " ns after now, above max 5 ms (onramp.max_pause)"),
            (i64::MIN, " ns after now, not above min 0 s"),
        ] {
            let (until, mistake) = answered(after_ns);
            assert_eq!(until, None);
            let mistake = mistake.expect("it is a mistake");
            assert!(
                mistake.starts_with("control law onramp_cc::law::tests: hold_until "),
                "{mistake}"
            );
            assert!(mistake.ends_with(words), "{mistake}");
        }
    }

    #[test]
    fn its_keys_are_below_onramp() {
        assert_eq!(PARAMETERS[0].key, "onramp.answers.after");
    }

    #[test]
    fn every_law_has_the_name_that_it_parses_from() {
        for law in ControlLaw::all() {
            assert_eq!(law.name().parse(), Ok(law));
        }
        assert_eq!(ControlLaw::meanings(), <Law as Value>::meanings());
    }
}
