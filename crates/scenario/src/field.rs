// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The types of keys' values, and the two traits by which such values are read and written. Which keys there
//! are, and where their values come from, is not known here.

use crate::error::Problem;
use crate::value::{range, Value};
use crate::{Fraction, Receivers, Sources};
use onramp_units::{Bytes, Rate, Span};

/// Where values are read from: one run of a scenario.
pub(crate) trait Reader {
    /// Whether the scenario gives the key.
    fn given(&self, path: &str) -> bool;

    /// The value of a key, as given or by default. `Some(None)`: the key has neither. `None`: an error has been
    /// reported.
    fn value_of(&mut self, path: &str) -> Option<Option<Value>>;

    /// Reports a problem of the first key of `paths`, or of the one that overrides it.
    fn report(&mut self, paths: &[&str], problem: Problem);
}

impl dyn Reader + '_ {
    /// The value of the key `path`, if it is one of that type.
    pub(crate) fn field<T: Field>(&mut self, path: &str) -> Option<T> {
        match self.value_of(path)? {
            Some(value) => T::from_value(value),
            None => T::absent(),
        }
    }
}

/// Where values are written to.
pub(crate) trait Writer {
    /// Adds a key that has this value; `None`: it has none.
    fn put(&mut self, path: &str, value: Option<Value>);
}

impl dyn Writer + '_ {
    /// Adds the key `path` with its value.
    pub(crate) fn field<T: Field>(&mut self, path: &str, value: &T) {
        self.put(path, value.to_value());
    }
}

/// The type of a key's value.
pub(crate) trait Field: Sized {
    /// `None`: the value is of another type. The key's form says which one it is.
    fn from_value(value: Value) -> Option<Self>;

    /// `None`: there is none, which not every type can say.
    fn to_value(&self) -> Option<Value>;

    /// What a key without a value and without a default means; `None`: nothing.
    fn absent() -> Option<Self> {
        None
    }
}

/// Types that are one variant of [`Value`].
macro_rules! plain {
    ($($type:ty: $variant:ident),*) => { $(
        impl Field for $type {
            fn from_value(value: Value) -> Option<$type> {
                match value {
                    Value::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn to_value(&self) -> Option<Value> {
                Some(Value::$variant(*self))
            }
        }
    )* };
}
plain!(bool: Flag, u64: Count, Fraction: Fraction, Span: Span, Rate: Rate, Bytes: Bytes);

impl Field for u32 {
    fn from_value(value: Value) -> Option<u32> {
        u64::from_value(value).and_then(|count| u32::try_from(count).ok())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Count((*self).into()))
    }
}

/// Types that scenarios write as a word.
macro_rules! words {
    ($($type:ty),*) => { $(
        impl Field for $type {
            fn from_value(value: Value) -> Option<$type> {
                match value {
                    Value::Text(word) => word.parse().ok(),
                    _ => None,
                }
            }

            fn to_value(&self) -> Option<Value> {
                Some(Value::Text(self.to_string()))
            }
        }
    )* };
}
words!(
    String,
    crate::Arrivals,
    crate::ClockSync,
    crate::Connections,
    crate::RttStamps,
    crate::HostKind,
    crate::HostSet,
    crate::Kind,
    crate::Law,
    crate::Mark,
    crate::Op,
    crate::Pattern,
    crate::ProbeStamps,
    crate::Qdisc,
    crate::Sharing
);

impl Field for crate::Cc {
    /// The first of that name; which one the hosts have is decided where their kind is known.
    fn from_value(value: Value) -> Option<crate::Cc> {
        match value {
            Value::Text(word) => crate::Cc::named(&word),
            _ => None,
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

impl<T: Field> Field for Option<T> {
    fn from_value(value: Value) -> Option<Option<T>> {
        match value.is_off() {
            true => Some(None),
            false => T::from_value(value).map(Some),
        }
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl Field for Receivers {
    fn from_value(value: Value) -> Option<Receivers> {
        Some(match &value {
            Value::Text(word) => match range(word) {
                Some((first, last)) => Receivers::Range(first, last),
                None => Receivers::All,
            },
            _ => Receivers::Host(u32::from_value(value)?),
        })
    }

    fn to_value(&self) -> Option<Value> {
        Some(match *self {
            Receivers::Host(host) => Value::Count(host.into()),
            Receivers::Range(first, last) => Value::Text(format!("{first}-{last}")),
            Receivers::All => Value::Text("all".to_owned()),
        })
    }
}

impl Field for Sources {
    fn from_value(value: Value) -> Option<Sources> {
        Some(match &value {
            Value::Text(word) => match range(word) {
                Some((first, last)) => Sources::Range(first, last),
                None => Sources::Others,
            },
            _ => Sources::Host(u32::from_value(value)?),
        })
    }

    fn to_value(&self) -> Option<Value> {
        Some(match *self {
            Sources::Host(host) => Value::Count(host.into()),
            Sources::Range(first, last) => Value::Text(format!("{first}-{last}")),
            Sources::Others => Value::Text("others".to_owned()),
        })
    }
}
