// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls and rules of switches of other crates: their parameters, and what starts one, behind one type.

use crate::parameter::{Parameters, Setting, Tuning};
use std::fmt;
use std::sync::Arc;

/// A congestion control of another crate, with its parameters: a flow on `Path` has the state `Flow`. Or a rule of switches: at the
/// port `Path` it is `Flow`.
pub struct Custom<Path, Flow: ?Sized>(Arc<dyn Algorithm<Path, Flow>>);

trait Algorithm<Path, Flow: ?Sized>: fmt::Debug + Send + Sync {
    fn get(&self, name: &str) -> Option<Setting>;
    fn tuned(&self, given: &Tuning) -> Arc<dyn Algorithm<Path, Flow>>;
    fn start(&self, path: &Path) -> Box<Flow>;
}

#[derive(Clone)]
struct With<P, S> {
    params: P,
    start: S,
}

impl<P: fmt::Debug, S> fmt::Debug for With<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.params.fmt(f)
    }
}

impl<P, S, Path, Flow> Algorithm<Path, Flow> for With<P, S>
where
    P: Parameters,
    S: Fn(&P, &Path) -> Box<Flow> + Clone + Send + Sync + 'static,
    Flow: ?Sized,
{
    fn get(&self, name: &str) -> Option<Setting> {
        self.params.get(name)
    }

    fn tuned(&self, given: &Tuning) -> Arc<dyn Algorithm<Path, Flow>> {
        let mut tuned = self.clone();
        tuned.params.tune(given);
        Arc::new(tuned)
    }

    fn start(&self, path: &Path) -> Box<Flow> {
        (self.start)(&self.params, path)
    }
}

impl<Path, Flow: ?Sized> Custom<Path, Flow> {
    /// `start` makes the state of a new flow, or port.
    pub fn new<P: Parameters>(
        params: P,
        start: impl Fn(&P, &Path) -> Box<Flow> + Clone + Send + Sync + 'static,
    ) -> Custom<Path, Flow> {
        Custom(Arc::new(With { params, start }))
    }

    /// The parameter `name`.
    pub fn get(&self, name: &str) -> Option<Setting> {
        self.0.get(name)
    }

    /// Overwrites the parameters that `given` sets.
    pub fn tune(&mut self, given: &Tuning) {
        self.0 = self.0.tuned(given);
    }

    /// A new flow, or port.
    pub fn start(&self, path: &Path) -> Box<Flow> {
        self.0.start(path)
    }
}

impl<Path, Flow: ?Sized> Clone for Custom<Path, Flow> {
    fn clone(&self) -> Custom<Path, Flow> {
        Custom(Arc::clone(&self.0))
    }
}

impl<Path, Flow: ?Sized> PartialEq for Custom<Path, Flow> {
    /// The same one, not an equal one.
    fn eq(&self, other: &Custom<Path, Flow>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<Path, Flow: ?Sized> fmt::Debug for Custom<Path, Flow> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
