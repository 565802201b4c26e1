//! A section of a run: a struct whose fields are keys of scenarios. Each field is declared once; reading
//! it, writing it back, refusing it in the rack and documenting it follow from there.

use crate::keys::Key;
use crate::resolve::Resolver;
use crate::value::Value;
use crate::write::Settings;
use crate::{Fraction, Receivers, Sources};
use onramp_units::{Bytes, Rate, Span};

/// What [`section`] declares. `table` is the dotted name of its table: "host", "traffic.2".
pub(crate) trait Section: Sized {
    /// The keys that it declares.
    const KEYS: &'static [Key];

    /// Reads it. `None`: an error has been reported.
    fn read(from: &mut Resolver<'_>, table: &str) -> Option<Self>;

    /// Adds its keys with their values.
    fn write(&self, table: &str, to: &mut Settings);
}

/// Declares a [`Section`]. A field says its type, and its key with the meaning that is also its
/// documentation. A field without a key has it in another table (keys/traffic.rs: several kinds of traffic
/// share keys). Fields in `and { .. }` are made of several keys: sections themselves.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident in $table:literal {
            $( $(#[$doc:meta])* $field:ident: $type:ty $(= $key:expr, $meaning:literal)?; )*
        }
        $( and { $( $(#[$inner_doc:meta])* $inner:ident: $inner_type:ty; )* } )?
    ) => {
        $(#[$about])*
        pub struct $name {
            $( $(#[$doc])* $(#[doc = $meaning])? pub $field: $type, )*
            $($( $(#[$inner_doc])* pub $inner: $inner_type, )*)?
        }

        impl $crate::section::Section for $name {
            const KEYS: &'static [$crate::keys::Key] = &[
                $( $( $crate::keys::Key {
                    path: concat!($table, ".", stringify!($field)),
                    meaning: $meaning,
                    ..$key
                }, )? )*
            ];

            fn read(from: &mut $crate::resolve::Resolver<'_>, table: &str) -> Option<$name> {
                // All of them before the first failure is acted on.
                $( let $field = from.field(&format!("{table}.{}", stringify!($field))); )*
                $($( let $inner = $crate::section::Section::read(from, table); )*)?
                Some($name { $($field: $field?,)* $($($inner: $inner?,)*)? })
            }

            fn write(&self, table: &str, to: &mut $crate::write::Settings) {
                $( to.field(&format!("{table}.{}", stringify!($field)), &self.$field); )*
                $($( $crate::section::Section::write(&self.$inner, table, to); )*)?
            }
        }
    };
}
pub(crate) use section;

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
    crate::HostKind,
    crate::Kind,
    crate::Law,
    crate::Mark,
    crate::Pattern,
    crate::ProbeStamps,
    crate::Qdisc,
    crate::Sharing,
    crate::TopologyKind
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
        match crate::keys::is_off(&value) {
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
            Value::Text(word) => match crate::value::range(word) {
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
            Value::Text(word) => match crate::value::range(word) {
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
