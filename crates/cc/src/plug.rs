// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parts of other crates that join a registry. They must join before the registry is used for the first time, because
//! keys, help and documentation are made of it once.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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

impl<T: PartialEq + std::fmt::Debug> Plugs<T> {
    /// Adds one.
    ///
    /// # Panics
    /// An equal one has joined, or [`Plugs::all`] was called.
    #[track_caller]
    pub fn add(&self, part: &'static T) {
        let mut joining = self.joining();
        assert!(
            self.all.get().is_none(),
            "{part:?} is registered after the first scenario was read"
        );
        assert!(!joining.contains(&part), "{part:?} is registered twice");
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
