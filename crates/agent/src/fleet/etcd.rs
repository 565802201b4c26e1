// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A fleet in etcd: carries out what the registration (`onramp_clock::registration`) wants, with sockets and
//! the clock. It decides nothing. A thread with its own runtime does it.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Sender},
        Arc, Mutex,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{bail, Result};
use etcd_client::ConnectOptions;
use onramp_clock::{
    registration::{self, Action, Event, News, Registration, Request, Trouble, LEASE_S},
    roster::Roster,
    stamps::now_mono_ns,
    status,
};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::etcd::Session;

/// The options of a registration.
pub struct Config {
    pub registration: registration::Config,
    pub options: ConnectOptions,
}

/// A registration; it ends when dropped.
pub struct Etcd {
    shown: Arc<Mutex<status::Fleet>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Etcd {
    /// Registers, and sends every change of the fleet to `rosters`. Retries for ever if etcd does not answer.
    /// `unfit`: whether this host is too starved to lead.
    ///
    /// # Errors
    /// Another node has the name, or etcd refuses this host.
    pub fn start(config: Config, rosters: Sender<Roster>, unfit: Arc<AtomicBool>) -> Result<Etcd> {
        let shown = Arc::new(Mutex::new(status::Fleet::default()));
        let (stop, stopped) = oneshot::channel();
        let (first, outcome) = mpsc::channel();
        let driver = Driver {
            registration: Registration::new(config.registration.clone(), now_mono_ns()),
            config,
            session: None,
            shown: Arc::clone(&shown),
            rosters,
            unfit,
            first: Some(first),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let run = move || runtime.block_on(driver.run(stopped));
        let thread = thread::Builder::new().name("etcd".into()).spawn(run)?;
        let etcd = Etcd {
            shown,
            stop: Some(stop),
            thread: Some(thread),
        };
        match outcome.recv() {
            Ok(Err(Trouble::Lasting(why))) => bail!("{why}"),
            Ok(Err(Trouble::Passing(why))) => {
                warn!("etcd: {why}; there is no fleet until etcd answers; retrying");
            }
            Ok(Ok(())) | Err(_) => {}
        }
        Ok(etcd)
    }

    /// The fleet for the status.
    pub fn shown(&self) -> status::Fleet {
        self.shown
            .lock()
            .expect("the thread does not panic")
            .clone()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Connects the registration with etcd and the daemon.
struct Driver {
    config: Config,
    registration: Registration,
    session: Option<Session>,
    shown: Arc<Mutex<status::Fleet>>,
    rosters: Sender<Roster>,
    unfit: Arc<AtomicBool>,
    /// Takes the outcome of the first session.
    first: Option<Sender<Result<(), Trouble>>>,
}

impl Driver {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut is_leaving = false;
        loop {
            while let Some(action) = self.registration.next_action() {
                if action == Action::End {
                    return;
                }
                self.act(action);
            }
            // Answers before the time: an answer that has waited for this thread is not late.
            let event = tokio::select! {
                biased;
                _ = &mut stopped, if !is_leaving => {
                    is_leaving = true;
                    Event::Leave
                }
                answer = Session::answer(&mut self.session) => Event::Answer(answer),
                () = sleep_until(self.registration.wakes_at()) => Event::Time {
                    unfit: self.unfit.load(Ordering::Relaxed),
                },
            };
            self.registration.handle(now_mono_ns(), event);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Ask(Request::Connect { endpoint }) => {
                let registration = &self.config.registration;
                let url = registration.endpoints[endpoint].clone();
                let prefix = format!("/onramp/{}/members/", registration.fleet);
                self.session = Some(Session::begin(url, self.config.options.clone(), prefix));
            }
            Action::Ask(request) => {
                if let Some(session) = &self.session {
                    session.ask(request);
                }
            }
            Action::Disconnect => self.session = None,
            Action::Publish(roster) => drop(self.rosters.send(roster)),
            Action::Show(shown) => *self.shown.lock().expect("readers do not panic") = shown,
            Action::Say(news) => self.say(news),
            Action::End => {}
        }
    }

    fn say(&mut self, news: News) {
        let node = &self.config.registration.node;
        let first = match &news {
            News::Joined(_) | News::Lost(_) => self.first.take(),
            News::Resigned | News::CannotLeave(_) => None,
        };
        match (news, first) {
            (News::Joined(url), first) => {
                let fleet = &self.config.registration.fleet;
                info!("etcd: {url} has registered {node} in fleet {fleet}");
                first.map(|first| first.send(Ok(())));
            }
            (News::Lost(trouble), Some(first)) => drop(first.send(Err(trouble))),
            (News::Lost(Trouble::Lasting(text)), None) => error!("etcd: {text}"),
            (News::Lost(Trouble::Passing(text)), None) => {
                warn!("etcd: {text}; the fleet stays as last known; retrying");
            }
            (News::Resigned, _) => {
                warn!("etcd: {node} is too starved to lead, so the next oldest node leads");
            }
            (News::CannotLeave(trouble), _) => {
                warn!("etcd: cannot leave the fleet now; this host's lease ends within {LEASE_S} s: {trouble}");
            }
        }
    }
}

/// Sleeps until CLOCK_MONOTONIC, ns.
async fn sleep_until(at: i64) {
    let left_ns = at.saturating_sub(now_mono_ns()).max(0);
    tokio::time::sleep(Duration::from_nanos(left_ns.unsigned_abs())).await;
}
