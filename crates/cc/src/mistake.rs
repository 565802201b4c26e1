// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Mistakes of parts of other crates: a panic, or an answer that cannot be. The first one of a run is kept, and the part
//! is not asked again; whoever runs it looks for mistakes and ends the run.

use onramp_units::{Sim, Time};
use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

/// What a part did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// "congestion control outside::aimd".
    pub part: String,
    /// The method.
    pub call: &'static str,
    /// "panicked: ...", "answered ...".
    pub what: String,
    /// Simulated time of the last call that had one; `None`: there was none.
    pub at: Option<Time<Sim>>,
}

impl std::error::Error for Mistake {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake {
            part,
            call,
            what,
            at,
        } = self;
        write!(f, "{part}: {call} {what}")?;
        match at {
            Some(at) => write!(f, ", at {} of simulated time", *at - Time::ZERO),
            None => Ok(()),
        }
    }
}

/// The first mistake of a part in a run; its flows or ports share it.
#[derive(Debug, Clone, Default)]
pub struct Mistakes(Arc<OnceLock<Mistake>>);

impl Mistakes {
    /// The first one, if there was any.
    pub fn first(&self) -> Option<&Mistake> {
        self.0.get()
    }

    fn note(&self, mistake: Mistake) {
        let _ = self.0.set(mistake); // Another one came first.
    }
}

/// A part of another crate, whose mistakes are kept. After one it answers what harms nobody.
pub struct Watched<F: ?Sized> {
    inner: Box<F>,
    /// As [`Mistake::part`].
    kind: &'static str,
    name: &'static str,
    mistakes: Mistakes,
    now: Option<Time<Sim>>,
}

impl<F: ?Sized> Watched<F> {
    /// `kind` and `name` are those of [`Mistake::part`].
    pub fn new(
        inner: Box<F>,
        kind: &'static str,
        name: &'static str,
        mistakes: Mistakes,
    ) -> Watched<F> {
        Watched {
            inner,
            kind,
            name,
            mistakes,
            now: None,
        }
    }

    /// The answer to `call`, or `harmless` after a mistake.
    pub fn call<T>(&mut self, call: &'static str, harmless: T, f: impl FnOnce(&mut F) -> T) -> T {
        if self.mistakes.first().is_some() {
            return harmless;
        }
        let answer = without_panic(|| f(&mut self.inner));
        self.kept(call, harmless, answer)
    }

    /// As [`Watched::call`], for what changes nothing.
    pub fn ask<T>(&self, call: &'static str, harmless: T, f: impl FnOnce(&F) -> T) -> T {
        if self.mistakes.first().is_some() {
            return harmless;
        }
        let answer = without_panic(|| f(&self.inner));
        self.kept(call, harmless, answer)
    }

    /// The answer; a panic is kept.
    fn kept<T>(&self, call: &'static str, harmless: T, answer: Result<T, String>) -> T {
        answer.unwrap_or_else(|what| {
            self.note(call, what);
            harmless
        })
    }

    /// The time of what follows.
    pub fn set_now(&mut self, now: Time<Sim>) {
        self.now = Some(now);
    }

    /// Keeps that `call` did `what`.
    pub fn note(&self, call: &'static str, what: String) {
        self.mistakes.note(Mistake {
            part: format!("{} {}", self.kind, self.name),
            call,
            what,
            at: self.now,
        });
    }
}

impl<F: ?Sized + fmt::Debug> fmt::Debug for Watched<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The answer of `f`, which is dropped if it panics, so that nobody sees its state half changed.
///
/// # Errors
/// "panicked: ..."
pub fn without_panic<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let text = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {}", text.unwrap_or("without a text"))
    };
    catch_unwind(AssertUnwindSafe(f)).map_err(text)
}
