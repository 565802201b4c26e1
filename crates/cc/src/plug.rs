// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parts of other crates that join a registry. Those with keys must join before the registry is used for the first time,
//! because keys, help and documentation are made of it once.

use crate::Parameter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// The list never changes: it is replaced.
    parts: Mutex<&'static [&'static T]>,
    is_used: AtomicBool,
}

impl<T> Plugs<T> {
    /// None yet.
    pub const fn new() -> Plugs<T> {
        Plugs {
            parts: Mutex::new(&[]),
            is_used: AtomicBool::new(false),
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
        assert!(
            !self.is_used.load(Ordering::Relaxed),
            "the {kind} {name} is registered after the first scenario was read"
        );
        self.join(part, built_in);
    }

    /// Adds one with these parameters. Without any it has no keys and may join at any time.
    ///
    /// # Panics
    /// One has its name, or it has parameters and [`Plugs::all`] was called.
    #[track_caller]
    pub fn add_with(
        &self,
        part: &'static T,
        built_in: impl IntoIterator<Item = &'static T>,
        parameters: &[Parameter],
    ) {
        match parameters {
            [] => self.join(part, built_in),
            _ => self.add(part, built_in),
        }
    }

    #[track_caller]
    fn join(&self, part: &'static T, built_in: impl IntoIterator<Item = &'static T>) {
        let (kind, name) = (T::KIND, part.name());
        let mut parts = self.parts();
        let mut others = built_in.into_iter().chain(parts.iter().copied());
        assert!(
            others.all(|other| other.name() != name),
            "there is a {kind} {name}"
        );
        let mut all = parts.to_vec();
        all.push(part);
        *parts = all.leak();
    }

    /// All that have joined.
    pub fn all(&self) -> &'static [&'static T] {
        self.is_used.store(true, Ordering::Relaxed);
        *self.parts()
    }

    /// Also after a panic, which leaves the list as it was.
    fn parts(&self) -> MutexGuard<'_, &'static [&'static T]> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names of a registry's parts, for those who keep them: a new list is made when a part has joined.
pub struct Names(Mutex<&'static [&'static str]>);

impl Names {
    /// None yet.
    pub const fn new() -> Names {
        Names(Mutex::new(&[]))
    }

    /// The list, which has these names now.
    pub fn are(&self, now: Vec<&'static str>) -> &'static [&'static str] {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != now {
            *known = now.leak();
        }
        *known
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}
