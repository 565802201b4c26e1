// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The central step of a leading host. With thousands of hosts it takes longer than the time between two probes, so a daemon
//! does it on a thread of its own.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
};

use onramp_units::Span;
use tracing::warn;

use crate::{
    coordinator::Coordinator,
    members::Members,
    status::OneWayDelays,
    wire::{Report, Verdict},
};

/// What to tell whom.
pub(super) type Verdicts = Vec<(SocketAddr, Verdict)>;

/// Where central steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Each on a thread of its own.
    Thread,
    /// At once, so a simulation repeats itself.
    Here,
}

/// A coordinator, and its step while one runs.
pub(super) struct Central {
    steps: Steps,
    lease: Span,
    /// When the last step began.
    began_mono_ns: i64,
    members: Members,
    /// None while a step runs.
    coordinator: Option<Coordinator>,
    step: Option<Step>,
    /// What has come since the step began, in its order.
    missed: Vec<News>,
    /// One-way delays of all edges after the last step.
    ways: Arc<[OneWayDelays]>,
}

enum Step {
    Runs(JoinHandle<Stepped>),
    Done(Box<Stepped>),
}

struct Stepped {
    coordinator: Coordinator,
    verdicts: Verdicts,
    ways: Arc<[OneWayDelays]>,
}

enum News {
    Report(SocketAddr, Report),
    Members(Members),
}

impl Central {
    /// A coordinator that knows nothing yet at CLOCK_MONOTONIC `now`, ns.
    pub fn new(members: Members, steps: Steps, lease: Span, now: i64) -> Central {
        Central {
            steps,
            lease,
            began_mono_ns: now,
            coordinator: Some(Coordinator::new(members.clone()).leasing(lease)),
            members,
            step: None,
            missed: vec![],
            ways: Arc::from([]),
        }
    }

    /// Takes a member's report; a running step does not see it.
    pub fn take(&mut self, from: SocketAddr, report: Report) {
        self.learn(News::Report(from, report));
    }

    /// Members have come or gone.
    pub fn renumber(&mut self, members: Members) {
        self.members = members.clone();
        self.learn(News::Members(members));
    }

    /// One-way delays of all edges after the last step.
    pub fn ways(&self) -> Arc<[OneWayDelays]> {
        Arc::clone(&self.ways)
    }

    /// Begins a step at CLOCK_MONOTONIC `now`, ns, unless one runs.
    pub fn begin(&mut self, now: i64) {
        let Some(mut coordinator) = self.coordinator.take() else {
            return;
        };
        let passed_ns = now.saturating_sub(self.began_mono_ns).max(0);
        self.began_mono_ns = now;
        coordinator.pass(Span::from_ns(passed_ns));
        let step = move || Stepped {
            verdicts: coordinator.step(),
            ways: coordinator.ways().into(),
            coordinator,
        };
        if self.steps == Steps::Here {
            self.step = Some(Step::Done(Box::new(step())));
            return;
        }
        let thread = thread::Builder::new().name("central step".into());
        match thread.spawn(step) {
            Ok(step) => self.step = Some(Step::Runs(step)),
            Err(error) => self.begin_anew(&error.to_string()),
        }
    }

    /// The verdicts of a step that has ended since the last call.
    pub fn finished(&mut self) -> Option<Verdicts> {
        let is_done = |step: &mut Step| match step {
            Step::Runs(thread) => thread.is_finished(),
            Step::Done(_) => true,
        };
        let stepped = match self.step.take_if(is_done)? {
            Step::Runs(thread) => thread.join().ok(),
            Step::Done(stepped) => Some(*stepped),
        };
        let Some(stepped) = stepped else {
            self.begin_anew("it failed");
            return None;
        };
        self.coordinator = Some(stepped.coordinator);
        self.ways = stepped.ways;
        for news in std::mem::take(&mut self.missed) {
            self.learn(news);
        }
        Some(stepped.verdicts)
    }

    /// A coordinator keeps nothing that it could not learn again in two windows.
    fn begin_anew(&mut self, why: &str) {
        warn!("clock: a central step is lost: {why}");
        self.missed.clear();
        let anew = Coordinator::new(self.members.clone());
        self.coordinator = Some(anew.leasing(self.lease));
    }

    fn learn(&mut self, news: News) {
        match (&mut self.coordinator, news) {
            (None, news) => self.missed.push(news),
            (Some(coordinator), News::Report(from, report)) => coordinator.take(from, &report),
            (Some(coordinator), News::Members(members)) => coordinator.renumber(members),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        config::USUAL_LEASE,
        wire::{Delays, EdgeReport},
    };
    use onramp_sync::line::Line;
    use onramp_units::Time;

    fn host(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 5198))
    }

    /// Its one edge: the clocks agree, and each way takes 5 us.
    pub fn report(far: u8) -> Report {
        let line = Line {
            at: Time::from_ticks(1_000_000_000),
            about_ns: 0,
            ahead_ns: 0.0,
            drift: 0.0,
            delay_ns: 5_000.0,
            points: 60,
            sigma_ns: 50.0,
            drift_sigma: 2e-8,
        };
        let delays = Delays {
            out_min_ns: 5_000,
            back_min_ns: 5_000,
            out_now_ns: 6_000,
            back_now_ns: 6_000,
        };
        let far = host(far);
        Report {
            epoch: 0,
            follows: None,
            edges: vec![EdgeReport {
                far,
                far_epoch: 0,
                line,
                delays,
            }],
        }
    }

    fn stepped(central: &mut Central) -> Vec<SocketAddr> {
        central.begin(0);
        finished(central)
    }

    fn finished(central: &mut Central) -> Vec<SocketAddr> {
        loop {
            if let Some(verdicts) = central.finished() {
                return verdicts.into_iter().map(|(to, _)| to).collect();
            }
            thread::yield_now();
        }
    }

    #[test]
    fn what_comes_during_a_step_belongs_to_the_next_one() {
        let mut central = Central::new(
            Members::registered(vec![host(1), host(2)]),
            Steps::Thread,
            USUAL_LEASE,
            0,
        );
        central.take(host(1), report(2));
        central.begin(0);
        central.take(host(2), report(3)); // of a host that is no member yet
        central.renumber(Members::registered(vec![host(1), host(2), host(3)]));
        central.take(host(2), report(3));
        assert_eq!(finished(&mut central), [host(1), host(2)]);
        assert_eq!(central.ways().len(), 2);
        assert_eq!(stepped(&mut central), [host(2), host(3)]);
        assert_eq!(central.finished(), None);
    }
}
