// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of a configuration: a struct whose fields are keys.

use crate::key::Key;
use crate::source::Source;

/// What [`section!`](crate::section!) declares.
pub trait Section: Sized {
    /// What a program adds to its keys.
    type More: 'static;

    /// Its own keys, in the order of the documentation.
    const KEYS: &'static [Key<Self::More>];

    /// These and those of the sections in it.
    const TABLES: &'static [&'static [Key<Self::More>]];

    /// Reads it. `None`: a key that must be set is not.
    fn read(from: &dyn Source) -> Option<Self>;
}

/// Declares a [`Section`]: `field: Type [bounds] = default, more, "meaning";`. The field's path is the table and its
/// name; `Section::field` is the path as a constant, so that a misspelt one does not compile. `and { .. }` has sections.
#[macro_export]
macro_rules! section {
    (
        $(#[$about:meta])*
        $vis:vis struct $section:ident in $table:tt with $more:ty {
            $( $field:ident: $type:ty $([$($bound:expr),+])? = $absent:expr, $extra:expr, $meaning:expr; )*
        }
        $( and { $( $(#[$inner_doc:meta])* $inner:ident: $inner_type:ty; )* } )?
    ) => {
        $(#[$about])*
        $vis struct $section {
            $( #[doc = $meaning] pub $field: $type, )*
            $($( $(#[$inner_doc])* pub $inner: $inner_type, )*)?
        }

        #[allow(non_upper_case_globals)]
        impl $section {
            $(
                #[doc = concat!("The path of the key `", stringify!($field), "`.")]
                pub const $field: &'static str = $crate::path!($table $field);
            )*
        }

        impl $crate::Section for $section {
            type More = $more;

            const KEYS: &'static [$crate::Key<$more>] = &[
                $( $crate::Key {
                    path: $section::$field,
                    form: &$crate::Of::<$type>(($($($bound),+)?)),
                    absent: $absent,
                    meaning: $meaning,
                    more: $extra,
                }, )*
            ];

            const TABLES: &'static [&'static [$crate::Key<$more>]] = &[
                Self::KEYS,
                $($( <$inner_type as $crate::Section>::KEYS, )*)?
            ];

            fn read(from: &dyn $crate::Source) -> Option<$section> {
                Some($section {
                    $( $field: $crate::Field::from_texts(from.texts($section::$field).as_deref(), ($($($bound),+)?))?, )*
                    $($( $inner: $crate::Section::read(from)?, )*)?
                })
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! path {
    ("" $field:ident) => {
        stringify!($field)
    };
    ($table:literal $field:ident) => {
        concat!($table, ".", stringify!($field))
    };
}
