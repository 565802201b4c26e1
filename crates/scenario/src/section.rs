// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of a run: a struct whose fields are keys of scenarios. Each field is declared once. The
//! declaration generates the code that reads it and writes it back, its documentation, and the rack's check.

use crate::field::{Reader, Writer};
use crate::key::Key;

/// What [`section`] declares. `table` is the dotted name of its table: "host", "traffic.2".
pub(crate) trait Section: Sized {
    /// The keys that it declares.
    const KEYS: &'static [Key];

    /// Reads it. `None`: an error has been reported.
    fn read(from: &mut dyn Reader, table: &str) -> Option<Self>;

    /// Adds its keys with their values.
    fn write(&self, table: &str, to: &mut dyn Writer);
}

/// Declares a [`Section`]. A field has a type, a key, and a meaning that is also its documentation. The
/// key of a field without one is in another table (keys/traffic.rs, because kinds of traffic share keys).
/// Fields in `and { .. }` consist of several keys: they are sections themselves.
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
            const KEYS: &'static [$crate::key::Key] = &[
                $( $( $crate::key::Key {
                    path: concat!($table, ".", stringify!($field)),
                    meaning: $meaning,
                    ..$key
                }, )? )*
            ];

            fn read(from: &mut dyn $crate::field::Reader, table: &str) -> Option<$name> {
                // All fields are read before the first failure returns, so that all errors are reported.
                $( let $field = from.field(&format!("{table}.{}", stringify!($field))); )*
                $($( let $inner = $crate::section::Section::read(from, table); )*)?
                Some($name { $($field: $field?,)* $($($inner: $inner?,)*)? })
            }

            fn write(&self, table: &str, to: &mut dyn $crate::field::Writer) {
                $( to.field(&format!("{table}.{}", stringify!($field)), &self.$field); )*
                $($( $crate::section::Section::write(&self.$inner, table, to); )*)?
            }
        }
    };
}
pub(crate) use section;
