//! A section of a run: a struct whose fields are keys of scenarios. Each field is declared once; reading
//! it, writing it back, refusing it in the rack and documenting it follow from there.

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
            const KEYS: &'static [$crate::key::Key] = &[
                $( $( $crate::key::Key {
                    path: concat!($table, ".", stringify!($field)),
                    meaning: $meaning,
                    ..$key
                }, )? )*
            ];

            fn read(from: &mut dyn $crate::field::Reader, table: &str) -> Option<$name> {
                // All of them before the first failure is acted on.
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
