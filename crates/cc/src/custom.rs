// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls, rules of switches and control laws of other crates: their parameters, and what starts one, behind one type.

use crate::mistake::{Mistakes, Watched};
use crate::parameter::{ParameterValue, Parameters, Tuning};
use std::fmt;
use std::sync::Arc;

/// A congestion control or a control law of another crate, with its parameters: a flow on `Path` has the state `Flow`. Or a rule of
/// switches: at the port `Path` it is `Flow`.
pub struct Custom<Path, Flow: ?Sized> {
    algorithm: Arc<dyn Algorithm<Path, Flow>>,
    /// What it is, in mistakes.
    kind: &'static str,
    mistakes: Mistakes,
}

trait Algorithm<Path, Flow: ?Sized>: fmt::Debug + Send + Sync {
    /// Its module.
    fn name(&self) -> &'static str;
    fn get(&self, name: &str) -> Option<ParameterValue>;
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
    fn name(&self) -> &'static str {
        std::any::type_name::<P>().trim_end_matches("::Params")
    }

    fn get(&self, name: &str) -> Option<ParameterValue> {
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
    /// `start` makes the state of a new flow, or port. `kind`: what it is, in mistakes.
    pub fn new<P: Parameters>(
        kind: &'static str,
        params: P,
        start: impl Fn(&P, &Path) -> Box<Flow> + Clone + Send + Sync + 'static,
    ) -> Custom<Path, Flow> {
        Custom {
            algorithm: Arc::new(With { params, start }),
            kind,
            mistakes: Mistakes::default(),
        }
    }

    /// The parameter `name`.
    pub fn get(&self, name: &str) -> Option<ParameterValue> {
        self.algorithm.get(name)
    }

    /// Overwrites the parameters that `given` sets.
    pub fn tune(&mut self, given: &Tuning) {
        self.algorithm = self.algorithm.tuned(given);
    }

    /// A new flow, or port.
    pub fn start(&self, path: &Path) -> Watched<Flow> {
        let (flow, name) = (self.algorithm.start(path), self.algorithm.name());
        Watched::new(flow, self.kind, name, self.mistakes.clone())
    }

    /// The mistakes of its flows, or ports.
    pub fn mistakes(&self) -> &Mistakes {
        &self.mistakes
    }
}

impl<Path, Flow: ?Sized> Clone for Custom<Path, Flow> {
    fn clone(&self) -> Custom<Path, Flow> {
        Custom {
            algorithm: Arc::clone(&self.algorithm),
            kind: self.kind,
            mistakes: self.mistakes.clone(),
        }
    }
}

impl<Path, Flow: ?Sized> PartialEq for Custom<Path, Flow> {
    /// The same one, not an equal one.
    fn eq(&self, other: &Custom<Path, Flow>) -> bool {
        Arc::ptr_eq(&self.algorithm, &other.algorithm)
    }
}

impl<Path, Flow: ?Sized> fmt::Debug for Custom<Path, Flow> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.algorithm.fmt(f)
    }
}
