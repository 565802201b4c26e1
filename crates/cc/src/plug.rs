// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parts of other crates that join a registry. They must join before the registry is used for the first time, because
//! keys, help and documentation are made of it once.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What registries list: known, shown and compared by its name.
pub trait Named: 'static {
    /// What it is, in errors.
    const KIND: &'static str;
    /// As scenarios have it.
    fn name(&self) -> &'static str;
}

/// Makes a type with a field `name` [`Named`], of this kind.
#[macro_export]
macro_rules! named {
    ($type:ident, $kind:literal) => {
        impl $crate::Named for $type {
            const KIND: &'static str = $kind;

            fn name(&self) -> &'static str {
                self.name
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                self.name == other.name
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name)
            }
        }
    };
}

/// Methods that set fields of a registry's entry, for `static` entries of other crates:
/// `Entry::new(..).parameters(PARAMETERS)`. Each has its field's name.
#[macro_export]
macro_rules! setters {
    ($type:ident { $($(#[$doc:meta])* $field:ident: $value:ty;)+ }) => {
        impl $type {
            $(
                $(#[$doc])*
                pub const fn $field(mut self, $field: $value) -> $type {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

/// The parts of other crates.
pub struct Plugs<T: 'static> {
    joining: Mutex<Vec<&'static T>>,
    all: OnceLock<Vec<&'static T>>,
}

impl<T> Plugs<T> {
    /// None yet.
    pub const fn new() -> Plugs<T> {
        Plugs {
            joining: Mutex::new(Vec::new()),
            all: OnceLock::new(),
        }
    }
}

impl<T> Default for Plugs<T> {
    fn default() -> Plugs<T> {
        Plugs::new()
    }
}

impl<T: Named> Plugs<T> {
    /// Adds one beside the built-in ones.
    ///
    /// # Panics
    /// One has its name, or [`Plugs::all`] was called.
    #[track_caller]
    pub fn add(&self, part: &'static T, built_in: impl IntoIterator<Item = &'static T>) {
        let (kind, name) = (T::KIND, part.name());
        let mut joining = self.joining();
        assert!(
            self.all.get().is_none(),
            "the {kind} {name} is registered after the first scenario was read"
        );
        let mut others = built_in.into_iter().chain(joining.iter().copied());
        assert!(
            others.all(|other| other.name() != name),
            "there is a {kind} {name}"
        );
        joining.push(part);
    }

    /// All that have joined; no other joins from now on.
    pub fn all(&self) -> &[&'static T] {
        self.all
            .get_or_init(|| std::mem::take(&mut *self.joining()))
    }

    /// Also after a panic, which leaves the list as it was.
    fn joining(&self) -> MutexGuard<'_, Vec<&'static T>> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
