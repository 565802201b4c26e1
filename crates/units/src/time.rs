// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Instants of named clocks and the signed spans between them.

use crate::quantity::{self, ParseError, Unit};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::str::FromStr;

const UNITS: [Unit; 5] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];

/// A clock: a zero, and a length of its ticks.
pub trait Clock {
    /// For people.
    const NAME: &'static str;
    /// Picoseconds in a tick.
    const PS_PER_TICK: i64;
}

/// Time inside a scenario: 1 ps ticks since the run's start.
pub enum Sim {}
/// A host's CLOCK_MONOTONIC: 1 ns ticks.
pub enum Mono {}
/// The clock all hosts of a fleet agree on: 1 ns ticks.
pub enum Fleet {}

impl Clock for Sim {
    const NAME: &'static str = "sim";
    const PS_PER_TICK: i64 = 1;
}
impl Clock for Mono {
    const NAME: &'static str = "mono";
    const PS_PER_TICK: i64 = 1_000;
}
impl Clock for Fleet {
    const NAME: &'static str = "fleet";
    const PS_PER_TICK: i64 = 1_000;
}

/// An instant of clock `C`, in its ticks. Instants of two clocks do not mix.
pub struct Time<C> {
    ticks: i64,
    clock: PhantomData<fn() -> C>,
}

impl<C: Clock> Time<C> {
    /// The clock's zero.
    pub const ZERO: Time<C> = Time::from_ticks(0);

    /// The instant `ticks` after the clock's zero.
    pub const fn from_ticks(ticks: i64) -> Time<C> {
        Time {
            ticks,
            clock: PhantomData,
        }
    }

    /// Ticks since the clock's zero: ps for [`Sim`], ns for [`Mono`] and [`Fleet`].
    pub const fn ticks(self) -> i64 {
        self.ticks
    }
}

impl<C> Clone for Time<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C> Copy for Time<C> {}
impl<C> PartialEq for Time<C> {
    fn eq(&self, other: &Self) -> bool {
        self.ticks == other.ticks
    }
}
impl<C> Eq for Time<C> {}
impl<C> PartialOrd for Time<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<C> Ord for Time<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ticks.cmp(&other.ticks)
    }
}
impl<C> Hash for Time<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ticks.hash(state);
    }
}
impl<C: Clock> fmt::Debug for Time<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks of {}", self.ticks, C::NAME)
    }
}

impl<C: Clock> Sub for Time<C> {
    type Output = Span;
    /// Signed; saturates at the longest span (106 days either way).
    fn sub(self, earlier: Time<C>) -> Span {
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        Span(ticks.saturating_mul(C::PS_PER_TICK))
    }
}

impl<C: Clock> Add<Span> for Time<C> {
    type Output = Time<C>;
    /// Rounded down to a tick; saturates.
    fn add(self, span: Span) -> Time<C> {
        Time::from_ticks(self.ticks.saturating_add(span.0.div_euclid(C::PS_PER_TICK)))
    }
}

impl<C: Clock> Sub<Span> for Time<C> {
    type Output = Time<C>;
    /// Rounded down to a tick; saturates.
    fn sub(self, span: Span) -> Time<C> {
        self + -span
    }
}

impl<C: Clock> AddAssign<Span> for Time<C> {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// A signed length of time in picoseconds, up to 106 days. Signed because a measured one-way
/// delay is negative when clocks disagree by more than it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);
    /// The longest span, about 106 days.
    pub const MAX: Span = Span(i64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: i64) -> Span {
        Span(ps)
    }

    /// `ns` nanoseconds; saturates.
    pub const fn from_ns(ns: i64) -> Span {
        Span(ns.saturating_mul(1_000))
    }

    /// `us` microseconds; saturates.
    pub const fn from_us(us: i64) -> Span {
        Span(us.saturating_mul(1_000_000))
    }

    /// `ms` milliseconds; saturates.
    pub const fn from_ms(ms: i64) -> Span {
        Span(ms.saturating_mul(1_000_000_000))
    }

    /// `s` seconds; saturates.
    pub const fn from_s(s: i64) -> Span {
        Span(s.saturating_mul(1_000_000_000_000))
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> i64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Seconds, for statistics and printing; not for arithmetic on instants.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl FromStr for Span {
    type Err = ParseError;

    /// Reads "50 us", "-1.5 ms". The unit is mandatory.
    fn from_str(text: &str) -> Result<Span, ParseError> {
        let range = (i128::from(i64::MIN), i128::from(i64::MAX));
        Ok(Span(quantity::parse(text, &UNITS, range)? as i64))
    }
}

impl fmt::Display for Span {
    /// Exact, in the largest unit reached: "1.5 ms".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quantity::print(i128::from(self.0), &UNITS, "s"))
    }
}

impl Add for Span {
    type Output = Span;
    /// Saturates.
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// Saturates.
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(self.0.saturating_neg())
    }
}

impl Mul<i64> for Span {
    type Output = Span;
    /// Saturates.
    fn mul(self, times: i64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Div<i64> for Span {
    type Output = Span;
    /// Rounds towards zero; a zero divisor panics, as for integers.
    fn div(self, by: i64) -> Span {
        Span(self.0 / by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_gives_bounds_with_their_units() {
        let error = "9999999999 s".parse::<Span>().unwrap_err();
        let bounds = "outside -9223372.036854775808 s to 9223372.036854775807 s";
        assert_eq!(error.to_string(), format!("\"9999999999 s\", {bounds}"));
    }

    #[test]
    fn spans_are_signed() {
        let (early, late) = (Time::<Fleet>::from_ticks(5), Time::<Fleet>::from_ticks(7));
        assert_eq!(early - late, Span::from_ns(-2));
        assert_eq!("-1.5 ms".parse(), Ok(Span::from_us(-1500)));
    }

    #[test]
    fn part_of_a_tick_is_rounded_down() {
        let t = Time::<Mono>::from_ticks(10);
        assert_eq!(t + Span::from_ps(1_999), Time::from_ticks(11));
        assert_eq!(t - Span::from_ps(1), Time::from_ticks(9));
    }

    #[test]
    fn extremes_saturate() {
        let (min, max) = (
            Time::<Mono>::from_ticks(i64::MIN),
            Time::<Mono>::from_ticks(i64::MAX),
        );
        assert_eq!(max - min, Span::MAX);
        assert_eq!(max + Span::MAX, max);
    }

    #[test]
    fn a_bare_number_is_refused() {
        let error = "200".parse::<Span>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"200\", which has no unit (one of ps, ns, us, ms, s)"
        );
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!("0.1 us".parse(), Ok(Span::from_ns(100)));
        assert_eq!("1.50 us".parse(), Ok(Span::from_ns(1500)));
        assert!("0.5 ps".parse::<Span>().is_err());
        assert!("1e3 us".parse::<Span>().is_err());
        assert!(". us".parse::<Span>().is_err());
        assert!("9999999999 s".parse::<Span>().is_err());
    }

    proptest! {
        #[test]
        fn printed_spans_parse_back(ps: i64) {
            prop_assert_eq!(Span::from_ps(ps).to_string().parse(), Ok(Span::from_ps(ps)));
        }

        #[test]
        fn any_text_is_answered(text in "[0-9.-]{0,60} ?(ps|us|s|kB)?") {
            let _ = text.parse::<Span>();
        }
    }
}
