//! Parameters of the congestion control that a scenario sets. The others are its source's, which
//! this crate does not know: whoever has them lets a [`Tuning`] overwrite some.

use crate::keys::{self, Absent};
use crate::value::Value;
use crate::Cc;
use onramp_units::{Rate, Span};
use std::collections::BTreeMap;

/// Values by the last part of their keys, within their bounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuning(pub(crate) BTreeMap<&'static str, Value>);

/// A parameter that scenarios can set.
pub struct Parameter {
    /// Dotted: "cc.hpcc.eta".
    pub key: &'static str,
    /// The congestion controls that have it; the default is that of the first.
    pub of: &'static [Cc],
    /// As the documentation has it, for hosts at 100 Gbit/s.
    pub default: &'static str,
}

/// All parameters, in the order of the documentation.
pub fn parameters() -> impl Iterator<Item = Parameter> {
    keys::all().filter_map(|key| match key.default {
        Absent::Source(default) => Some(Parameter {
            key: key.path,
            of: key.of_cc,
            default,
        }),
        _ => None,
    })
}

/// Overwrites `to` if the scenario sets the parameter `name`, whose form is that of `to`.
macro_rules! setter {
    ($(#[$doc:meta])* $method:ident, $type:ty, $variant:ident, $convert:expr) => {
        $(#[$doc])*
        pub fn $method(&self, name: &str, to: &mut $type) {
            if let Some(Value::$variant(value)) = self.0.get(name) {
                *to = $convert(*value);
            }
        }
    };
}

impl Tuning {
    setter!(
        /// A number without dimension.
        fraction, f64, Fraction, |value: crate::Fraction| value.get()
    );
    setter!(
        /// A number within 32 bits, by its key's bounds.
        count, u32, Count, |value: u64| value as u32
    );
    setter!(
        /// A time.
        span, Span, Span, |value: Span| value
    );
    setter!(
        /// A rate.
        rate, Rate, Rate, |value: Rate| value
    );
    setter!(
        /// Yes or no.
        flag, bool, Flag, |value: bool| value
    );

    /// Whether the scenario sets nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
