// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parameters of the congestion controls. Each file declares one table; the struct of parameters, the
//! scenario's keys with bounds and defaults, and the documentation follow from it.

use onramp_units::{Rate, Span};
use std::collections::BTreeMap;
use std::fmt;

/// A value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub enum ParameterValue {
    /// A number without dimension.
    Fraction(f64),
    /// A whole number.
    Count(u32),
    /// A time.
    Span(Span),
    /// A rate.
    Rate(Rate),
    /// Yes or no.
    Flag(bool),
}

/// Least and greatest value, both allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bounds {
    /// Bounds of a number without dimension.
    Fraction(f64, f64),
    /// Bounds of a whole number.
    Count(u32, u32),
    /// Bounds of a time.
    Span(Span, Span),
    /// Bounds of a rate.
    Rate(Rate, Rate),
    /// Yes or no.
    Flag,
}

/// A rate in a constant; `number` is above zero.
pub const fn kbit(number: u64) -> Rate {
    match Rate::from_bits_per_s(number * 1000) {
        Some(rate) => rate,
        None => panic!("a rate of zero"),
    }
}

/// A ratio above zero.
pub const PART: Bounds = Bounds::Fraction(0.0001, 1.0);
/// The step by which a rate grows, or its least value: 1 kbit/s to 1 Tbit/s.
pub const STEP: Bounds = Bounds::Rate(kbit(1), kbit(1_000_000_000));
/// A time of the order of round trips in a datacentre.
pub const SHORT: Bounds = Bounds::Span(Span::from_ns(1), Span::from_s(1));
/// A time up to an hour.
pub const LONG: Bounds = Bounds::Span(Span::from_us(1), Span::from_s(3600));
/// A number of repetitions.
pub const TIMES: Bounds = Bounds::Count(0, 1000);

/// One row of a file's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// The key of scenarios: "cc.hpcc.eta".
    pub key: &'static str,
    /// Its last part.
    pub name: &'static str,
    /// Form and bounds.
    pub bounds: Bounds,
    /// One sentence or more, for the documentation.
    pub meaning: &'static str,
}

/// Parameters that a scenario sets, by the last parts of their keys, within their bounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuning(BTreeMap<&'static str, ParameterValue>);

impl Tuning {
    /// Sets the parameter `name`.
    pub fn set(&mut self, name: &'static str, setting: ParameterValue) {
        self.0.insert(name, setting);
    }

    /// What `name` is set to, if it is.
    pub fn get(&self, name: &str) -> Option<ParameterValue> {
        self.0.get(name).copied()
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Overwrites `to` if `name` is set.
    pub fn apply<F: Field>(&self, name: &str, to: &mut F) {
        if let Some(value) = self.get(name).and_then(F::of) {
            *to = value;
        }
    }
}

/// A type that a parameter can have.
pub trait Field: Sized + Copy {
    /// As a value of any type.
    fn setting(self) -> ParameterValue;
    /// None if the value has another type.
    fn of(setting: ParameterValue) -> Option<Self>;
}

/// The parameters of a congestion control, a rule of switches or a control law, as [`parameters!`] makes them.
pub trait Parameters: fmt::Debug + Clone + Send + Sync + 'static {
    /// Overwrites what `given` sets.
    fn tune(&mut self, given: &Tuning);
    /// The parameter `name`.
    fn get(&self, name: &str) -> Option<ParameterValue>;
}

macro_rules! fields {
    ($($type:ty: $variant:ident),*) => {
        $(impl Field for $type {
            fn setting(self) -> ParameterValue {
                ParameterValue::$variant(self)
            }

            fn of(setting: ParameterValue) -> Option<$type> {
                match setting {
                    ParameterValue::$variant(value) => Some(value),
                    _ => None,
                }
            }
        })*
    };
}

fields!(f64: Fraction, u32: Count, Span: Span, Rate: Rate, bool: Flag);

/// A value as law/cc has it: times in nanoseconds, rates in bytes a second up to 2^40, parts in units of 2^-16.
pub trait InLaw<T> {
    /// What is beyond the ends of `T` is at them.
    fn in_law(self) -> T;
}

impl InLaw<u64> for Span {
    #[inline]
    fn in_law(self) -> u64 {
        self.as_ns().max(0) as u64
    }
}

impl InLaw<u32> for Span {
    #[inline]
    fn in_law(self) -> u32 {
        self.as_ns().clamp(0, u32::MAX.into()) as u32
    }
}

impl InLaw<u64> for Rate {
    fn in_law(self) -> u64 {
        (self.bits_per_s() / 8).clamp(1, 1 << 40)
    }
}

impl InLaw<u32> for f64 {
    fn in_law(self) -> u32 {
        (self * 65_536.0).round() as u32
    }
}

impl InLaw<u32> for u32 {
    fn in_law(self) -> u32 {
        self
    }
}

impl InLaw<u32> for bool {
    fn in_law(self) -> u32 {
        self.into()
    }
}

impl fmt::Display for ParameterValue {
    /// As a scenario writes it. A fraction that would be long is one over a whole number, if it is
    /// one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Fraction(value) => {
                let (text, inverse) = (value.to_string(), 1.0 / value);
                match text.len() > 4 && inverse.fract() == 0.0 {
                    true => write!(f, "1/{inverse}"),
                    false => f.write_str(&text),
                }
            }
            ParameterValue::Count(value) => value.fmt(f),
            ParameterValue::Span(value) => value.fmt(f),
            ParameterValue::Rate(value) => value.fmt(f),
            ParameterValue::Flag(value) => value.fmt(f),
        }
    }
}

impl Bounds {
    /// Whether `setting` has this form and lies within the bounds.
    pub fn contain(&self, setting: ParameterValue) -> bool {
        match (*self, setting) {
            (Bounds::Fraction(min, max), ParameterValue::Fraction(value)) => {
                (min..=max).contains(&value)
            }
            (Bounds::Count(min, max), ParameterValue::Count(value)) => (min..=max).contains(&value),
            (Bounds::Span(min, max), ParameterValue::Span(value)) => (min..=max).contains(&value),
            (Bounds::Rate(min, max), ParameterValue::Rate(value)) => (min..=max).contains(&value),
            (Bounds::Flag, ParameterValue::Flag(_)) => true,
            _ => false,
        }
    }

    /// A value of this form, in one number with its unit.
    pub fn read(&self, text: &str) -> Option<ParameterValue> {
        match self {
            Bounds::Fraction(..) => text.parse().ok().map(ParameterValue::Fraction),
            Bounds::Count(..) => text.parse().ok().map(ParameterValue::Count),
            Bounds::Span(..) => text.parse().ok().map(ParameterValue::Span),
            Bounds::Rate(..) => text.parse().ok().map(ParameterValue::Rate),
            Bounds::Flag => text.parse().ok().map(ParameterValue::Flag),
        }
    }

    /// The least and the greatest value.
    pub fn ends(&self) -> [ParameterValue; 2] {
        match *self {
            Bounds::Fraction(min, max) => {
                [ParameterValue::Fraction(min), ParameterValue::Fraction(max)]
            }
            Bounds::Count(min, max) => [ParameterValue::Count(min), ParameterValue::Count(max)],
            Bounds::Span(min, max) => [ParameterValue::Span(min), ParameterValue::Span(max)],
            Bounds::Rate(min, max) => [ParameterValue::Rate(min), ParameterValue::Rate(max)],
            Bounds::Flag => [ParameterValue::Flag(false), ParameterValue::Flag(true)],
        }
    }
}

/// Makes `Params` and `PARAMETERS` of a table: `"name" field: type = default, bounds, "meaning";`, where "name" is
/// the last part of the key `cc.FAMILY.name`, or of another section (`in "network.": FAMILY`). Defaults may depend on the
/// line rate, if it is named. Fields of the block `variant` are no keys: the variants of a congestion control differ in them.
///
/// For a congestion control whose arithmetic is in C, `FAMILY => TYPE { field: value }` names the structure of its
/// configuration and the fields that are no parameters, and a row with `=> field` says which one it sets: as [`InLaw`]
/// writes it, or as a function does (`=> field via function`). `Params::law` makes the structure, for the simulator and for
/// the kernel.
#[macro_export]
macro_rules! parameters {
    ($family:literal => $cfg:ident { $($fixed:tt)* }, |$line:ident| { $($table:tt)* }) => {
        $crate::parameters! { $family, |$line| { $($table)* } }
        $crate::parameters! { @law $cfg { $($table)* } { $($fixed)* } }
    };
    ($family:literal => $cfg:ident { $($fixed:tt)* }, { $($table:tt)* }) => {
        $crate::parameters! { $family, { $($table)* } }
        $crate::parameters! { @law $cfg { $($table)* } { $($fixed)* } }
    };
    (@law $cfg:ident
        { $($name:literal $field:ident: $type:ty = $default:expr, $bounds:expr
            $(=> $c:ident $(via $via:path)?)?, $meaning:expr;)* }
        { $($fixed:tt)* }
    ) => {
        impl Params {
            /// The configuration of its arithmetic.
            pub fn law(&self) -> $cfg {
                $cfg {
                    $($($c: $crate::parameters!(@in_law self.$field $(, $via)?),)?)*
                    $($fixed)*
                }
            }
        }
    };
    (@in_law $value:expr) => {
        $crate::InLaw::in_law($value)
    };
    (@in_law $value:expr, $via:path) => {
        $via($value)
    };
    ($family:literal, |$line:ident| { $($table:tt)* } $(variant { $($variant:tt)* })?) => {
        $crate::parameters! { @struct "cc." $family { $($table)* } { $($($variant)*)? } $line }
    };
    ($family:literal, { $($table:tt)* }) => {
        $crate::parameters! { in "cc.": $family, { $($table)* } }
    };
    (in $section:literal: $family:literal, { $($table:tt)* }) => {
        $crate::parameters! { @struct $section $family { $($table)* } {} line }

        impl Default for Params {
            /// Those of its source.
            fn default() -> Params {
                // No default depends on it.
                Params::reference($crate::Rate::from_bits_per_s(1).expect("above zero"))
            }
        }
    };
    (@struct $section:literal $family:literal
        { $($name:literal $field:ident: $type:ty = $default:expr, $bounds:expr
            $(=> $c:ident $(via $via:path)?)?, $meaning:expr;)* }
        { $($(#[$doc:meta])* $extra:ident: $extra_type:ty = $extra_default:expr;)* }
        $line:ident
    ) => {
        /// Parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Params {
            $(#[doc = $meaning] pub $field: $type,)*
            $($(#[$doc])* pub $extra: $extra_type,)*
        }

        /// What scenarios can set.
        const PARAMETERS: &[$crate::Parameter] = &[
            $($crate::Parameter {
                key: concat!($section, $family, ".", $name),
                name: $name,
                bounds: $bounds,
                meaning: $meaning,
            },)*
        ];

        impl Params {
            /// Those of its source, for hosts of this line rate.
            #[allow(unused_variables)] // Not all have one that depends on it.
            pub fn reference($line: $crate::Rate) -> Params {
                Params {
                    $($field: $default,)*
                    $($extra: $extra_default,)*
                }
            }
        }

        impl $crate::Parameters for Params {
            fn tune(&mut self, given: &$crate::Tuning) {
                let _ = given;
                $(given.apply($name, &mut self.$field);)*
            }

            fn get(&self, name: &str) -> Option<$crate::ParameterValue> {
                match name {
                    $($name => Some($crate::Field::setting(self.$field)),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use parameters;
