// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The registration of a host in etcd: registers, keeps the lease alive, watches the other nodes and publishes
//! every change of the fleet. [`crate::registry`] defines the keys and values.
//!
//! No sockets, clocks or threads: the caller carries out each [`Action`], passes each [`Event`] with the time,
//! which is CLOCK_MONOTONIC in ns, and passes [`Event::Time`] when it is [`Registration::wakes_at`]. So it runs
//! on simulated time against a simulated etcd (`onramp-fleets`) as on sockets (`onramp-agent`).
//!
//! A session talks to one endpoint: connect, keep the lease or have one granted, claim the key, read all keys,
//! watch them. Any trouble ends the session. The next one, at the next endpoint, reads the state of the lease,
//! the key and the fleet again. Between sessions the synchronisation uses the last known fleet.

mod messages;
mod view;

use std::collections::VecDeque;
use std::net::SocketAddr;

pub use messages::{Action, Answer, Change, Event, Expected, Key, News, Request, Text, Trouble};

use crate::{
    registry::{Record, MOST_NODES},
    status,
};
use view::View;

const MS: i64 = 1_000_000;
/// A node that is silent for this time is removed, s. By default etcd grants no shorter lease.
pub const LEASE_S: i64 = 2;
/// Time between two renewals of the lease.
const KEEP_NS: i64 = 400 * MS;
/// A server that does not answer for this time counts as dead.
pub const SILENT_NS: i64 = 1_500 * MS;
/// Pause between two sessions, and between two attempts to claim a key that another host holds.
pub const PAUSE_NS: i64 = 250 * MS;
/// Most that a lease can end after its nominal time.
const LATE_NS: i64 = 1_500 * MS;
/// Shortest time between two complaints about an etcd that does not answer.
const COMPLAINT_NS: i64 = 60_000 * MS;
/// A host that leads resigns when it was starved for this time: in a fleet of starved hosts, each may.
const STARVED_NS: i64 = 1_000 * MS;
/// Shortest time between two resignations of a host.
pub const RESIGN_NS: i64 = 30_000 * MS;
/// The time of what does not happen by itself.
const NEVER: i64 = i64::MAX;

/// This host and its etcd.
#[derive(Debug, Clone)]
pub struct Config {
    /// URLs of the servers, at least one.
    pub endpoints: Vec<String>,
    /// Name of the fleet.
    pub fleet: String,
    /// Name of this host in it.
    pub node: String,
    /// The address at which the other members reach this host.
    pub own: SocketAddr,
}

/// What the session does now. Requests follow one another; only renewals of the lease go beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between two sessions.
    Pausing,
    Connecting,
    /// Asks whether the lease of the last session is still valid.
    Keeping,
    Granting,
    Claiming,
    /// Another host holds the key of this one.
    Waiting,
    Reading,
    /// Has asked for the watch.
    Opening,
    /// The host is registered and sees the fleet.
    Member,
    /// Deletes its key, to claim it anew.
    Resigning,
    /// Deletes a key that no lease protects, to claim it.
    Clearing,
    Leaving,
    Over,
}

/// What is known since the connection was made.
#[derive(Debug, Default)]
struct Session {
    /// When etcd last confirmed the lease.
    kept: Option<i64>,
    /// When to renew it.
    keep_at: i64,
    /// When this host began to claim its key.
    claims_since: i64,
    /// Revision at which this host last wrote its key.
    claimed: i64,
    /// Revision of the last change of the key by another client, or of its deletion, that the watch showed.
    disowned: i64,
    /// Whether the watch runs.
    watches: bool,
}

/// A host's registration.
#[derive(Debug)]
pub struct Registration {
    config: Config,
    /// Time of the present event.
    now: i64,
    /// Index of the endpoint of this session.
    endpoint: usize,
    session: Session,
    phase: Phase,
    /// When the phase ends if no answer ends it before.
    until: i64,
    lease: Option<i64>,
    /// How long the lease lasts without renewal.
    lasts_ns: i64,
    /// Whether this process has had its key.
    was_registered: bool,
    view: View,
    /// Whether this host is too starved to lead.
    unfit: bool,
    /// Since when it leads nevertheless.
    starved_since: Option<i64>,
    resigned: Option<i64>,
    shown: status::Fleet,
    complained: Option<i64>,
    actions: VecDeque<Action>,
}

impl Registration {
    /// Begins the first session.
    pub fn new(config: Config, now: i64) -> Registration {
        let shown = status::Fleet {
            name: config.fleet.clone(),
            node: config.node.clone(),
            state: "connecting".to_owned(),
            ..status::Fleet::default()
        };
        let mut new = Registration {
            now,
            endpoint: 0,
            session: Session::default(),
            phase: Phase::Connecting,
            until: NEVER,
            lease: None,
            lasts_ns: 0,
            was_registered: false,
            view: View::new(config.own),
            unfit: false,
            starved_since: None,
            resigned: None,
            shown,
            complained: None,
            actions: VecDeque::new(),
            config,
        };
        new.show();
        new.connect();
        new
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Time`] is due: after the time of the last event. `i64::MAX` when the registration is over.
    pub fn wakes_at(&self) -> i64 {
        let kept = self.session.kept;
        let renewal = kept.map(|at| self.session.keep_at.min(at + SILENT_NS));
        let publication = self.view.due().filter(|_| self.session.watches);
        let others = renewal.into_iter().chain(publication);
        others.fold(self.until, i64::min)
    }

    /// Takes an event.
    pub fn handle(&mut self, now: i64, event: Event) {
        self.now = now;
        match event {
            Event::Time { unfit } => self.unfit = unfit,
            Event::Leave => self.leave(),
            Event::Answer(answer) => self.answer(answer),
        }
        // After the answer: one that arrives when its time is over still counts.
        self.pass_time();
    }

    fn answer(&mut self, answer: Answer) {
        match (self.phase, answer) {
            (Phase::Pausing | Phase::Over, _) => {}
            (Phase::Leaving, answer) => self.answer_to_leaving(answer),
            (_, Answer::Failed(trouble)) => self.lose(trouble),
            (_, Answer::Kept) => self.keep(),
            (_, Answer::Expired) => self.expire(),
            (_, Answer::Changed(changes)) => self.change(changes),
            (Phase::Connecting, Answer::Connected) => self.begin(),
            (Phase::Granting, Answer::Granted { lease, ttl_s }) => {
                self.lease = Some(lease);
                self.lasts_ns = ttl_s.saturating_mul(1_000 * MS);
                self.register();
            }
            (Phase::Claiming, Answer::Claimed { revision }) => self.own(revision),
            (Phase::Claiming, Answer::Held(key)) => self.contend(key),
            (Phase::Clearing, Answer::Deleted) => self.claim(Expected::Absent),
            (Phase::Resigning, Answer::Deleted) => self.claim_anew(),
            (Phase::Reading, Answer::Read { revision, keys }) => self.read(revision, &keys),
            (Phase::Opening, Answer::Watching) => self.join(),
            _ => {}
        }
    }

    fn pass_time(&mut self) {
        if self.now >= self.until {
            match self.phase {
                Phase::Pausing => self.connect(),
                Phase::Waiting => self.claim(Expected::Absent),
                Phase::Leaving => self.answer_to_leaving(Answer::Failed(silent())),
                _ => self.lose(silent()),
            }
        }
        if let Some(kept) = self.session.kept {
            if self.now >= kept + SILENT_NS {
                self.lose(silent());
            } else if self.now >= self.session.keep_at {
                self.renew();
            }
        }
        if self.session.watches && self.view.due().is_some_and(|at| self.now >= at) {
            self.publish();
        }
        self.resign_if_unfit();
    }

    // ---- a session ----

    fn connect(&mut self) {
        let endpoint = self.endpoint;
        self.enter(Phase::Connecting, Request::Connect { endpoint });
    }

    fn begin(&mut self) {
        match self.lease {
            Some(lease) => self.enter(Phase::Keeping, Request::KeepAlive { lease }),
            None => self.enter(Phase::Granting, Request::Grant { ttl_s: LEASE_S }),
        }
    }

    fn keep(&mut self) {
        match self.phase {
            Phase::Keeping => self.register(),
            _ => self.session.kept = Some(self.now),
        }
    }

    fn renew(&mut self) {
        if let Some(lease) = self.lease {
            self.session.keep_at = self.now + KEEP_NS;
            self.ask(Request::KeepAlive { lease });
        }
    }

    fn expire(&mut self) {
        self.lease = None;
        match self.phase {
            Phase::Keeping => self.begin(),
            _ => self.lose(passing("the lease of this host has ended")),
        }
    }

    /// Creates this host's key, with a lease that is valid now.
    fn register(&mut self) {
        self.session.kept = Some(self.now);
        self.session.keep_at = self.now + KEEP_NS;
        self.session.claims_since = self.now;
        self.claim(Expected::Absent);
    }

    fn claim(&mut self, expected: Expected) {
        let record = serde_json::to_vec(&Record::own(self.config.own)).expect("it is plain data");
        let claim = Request::Claim {
            name: self.name(),
            value: Text(record),
            lease: self.lease.unwrap_or(0),
            expected,
        };
        self.enter(Phase::Claiming, claim);
    }

    fn delete(&mut self, phase: Phase, modified: i64) {
        let name = self.name();
        self.enter(phase, Request::Delete { name, modified });
    }

    /// The name of this host's key.
    fn name(&self) -> Text {
        Text::from(self.config.node.as_str())
    }

    /// The key is not as this host expected. The key that a former process of this host left behind is taken
    /// over at once: this process could bind its address, so the former one has ended.
    fn contend(&mut self, key: Option<Key>) {
        let Some(key) = key else {
            return self.claim(Expected::Absent);
        };
        if Some(key.lease) == self.lease {
            return self.own(key.modified);
        }
        let record: Option<Record> = serde_json::from_slice(&key.value.0).ok();
        let address = record.map(|record| record.address);
        let is_left = !self.was_registered && address == Some(self.config.own);
        if key.lease == 0 {
            // To write it would keep its age: whoever leads now would be replaced by a leader of an older term.
            self.delete(Phase::Clearing, key.modified);
        } else if is_left {
            self.claim(Expected::Modified(key.modified));
        } else if self.now - self.session.claims_since > self.lasts_ns + LATE_NS {
            let address = address.map_or("an unreadable address".into(), |a| a.to_string());
            self.lose(Trouble::Lasting(format!(
                "node {} of fleet {} already runs at {address}; use another name with --node",
                self.config.node, self.config.fleet
            )));
        } else {
            self.phase = Phase::Waiting;
            self.until = self.now + PAUSE_NS;
        }
    }

    /// This host has its key since `revision`.
    fn own(&mut self, revision: i64) {
        self.was_registered = true;
        self.session.claimed = revision;
        if !self.session.watches {
            return self.enter(Phase::Reading, Request::Read);
        }
        self.phase = Phase::Member;
        self.until = NEVER;
        self.lose_if_disowned();
    }

    fn read(&mut self, revision: i64, keys: &[Key]) {
        self.view.read(self.now, keys);
        let own = self.name();
        let has_own = |key: &Key| key.name == own && Some(key.lease) == self.lease;
        // A removal between the claim and this reading is not in the watch.
        if keys.len() < MOST_NODES && !keys.iter().any(has_own) {
            return self.lose(disowned());
        }
        let from = revision + 1;
        self.enter(Phase::Opening, Request::Watch { from });
    }

    fn join(&mut self) {
        self.phase = Phase::Member;
        self.until = NEVER;
        self.session.watches = true;
        self.complained = None;
        self.shown.connected = true;
        self.shown.state = format!("connected to {}", self.url());
        self.publish();
        self.say(News::Joined(self.url().to_owned()));
    }

    fn change(&mut self, changes: Vec<Change>) {
        for change in &changes {
            self.view.change(self.now, change);
            let has_lease = matches!(change, Change::Put(key) if Some(key.lease) == self.lease);
            if *change.name() == self.name() && !has_lease {
                self.session.disowned = change.revision();
            }
        }
        self.lose_if_disowned();
    }

    /// Ends the session if another client changed or removed the key. The watch may show a change before the
    /// answer to this host's own request, so while this host writes its key nothing is concluded.
    fn lose_if_disowned(&mut self) {
        if self.phase == Phase::Member && self.session.disowned > self.session.claimed {
            self.lose(disowned());
        }
    }

    fn lose(&mut self, trouble: Trouble) {
        let trouble = trouble.at(self.url());
        self.shown.connected = false;
        self.shown.failures += 1;
        self.shown.state = trouble.to_string();
        self.show();
        self.actions.push_back(Action::Disconnect);
        if self
            .complained
            .is_none_or(|at| self.now - at > COMPLAINT_NS)
        {
            self.complained = Some(self.now);
            self.say(News::Lost(trouble));
        }
        if let Some(roster) = self.view.doubt() {
            self.actions.push_back(Action::Publish(roster));
        }
        self.session = Session::default();
        self.endpoint = (self.endpoint + 1) % self.config.endpoints.len();
        self.phase = Phase::Pausing;
        self.until = self.now + PAUSE_NS;
    }

    // ---- resigning and leaving ----

    /// A host that is too starved to lead gives up its key and creates it anew, so that it becomes the
    /// youngest. The lease, its renewals and the watch stay: one round trip lies between deletion and
    /// creation, which the others publish together. etcd refuses both in one transaction. To revoke the lease
    /// instead would take two more round trips, and a failure between them would cost the lease.
    fn resign_if_unfit(&mut self) {
        let leads = self.unfit
            && self.phase == Phase::Member
            && self.view.is_led_by(&self.config.node, self.lease);
        let since = self.starved_since.unwrap_or(self.now);
        self.starved_since = leads.then_some(since);
        let may = self.resigned.is_none_or(|at| self.now - at >= RESIGN_NS);
        if leads && may && self.now - since >= STARVED_NS {
            self.resigned = Some(self.now);
            self.delete(Phase::Resigning, self.session.claimed);
        }
    }

    fn claim_anew(&mut self) {
        self.shown.resignations += 1;
        self.show();
        self.say(News::Resigned);
        self.session.claims_since = self.now;
        self.claim(Expected::Absent);
    }

    /// Ends the lease, so that the others need not wait for its end.
    fn leave(&mut self) {
        let is_connected = match self.phase {
            Phase::Leaving => return,
            Phase::Pausing | Phase::Connecting | Phase::Over => false,
            _ => true,
        };
        self.session = Session::default();
        match self.lease.filter(|_| is_connected) {
            Some(lease) => self.enter(Phase::Leaving, Request::Revoke { lease }),
            None => self.end(),
        }
    }

    fn answer_to_leaving(&mut self, answer: Answer) {
        match answer {
            Answer::Revoked => self.end(),
            Answer::Failed(trouble) => {
                self.say(News::CannotLeave(trouble));
                self.end();
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        self.phase = Phase::Over;
        self.until = NEVER;
        self.actions.push_back(Action::Disconnect);
        self.actions.push_back(Action::End);
    }

    // ---- what goes out ----

    /// Asks etcd, and waits for the answer.
    fn enter(&mut self, phase: Phase, request: Request) {
        self.phase = phase;
        self.until = self.now + SILENT_NS;
        self.ask(request);
    }

    fn ask(&mut self, request: Request) {
        self.actions.push_back(Action::Ask(request));
    }

    fn say(&mut self, news: News) {
        self.actions.push_back(Action::Say(news));
    }

    fn show(&mut self) {
        self.actions.push_back(Action::Show(self.shown.clone()));
    }

    /// Publishes the fleet to the synchronisation and the status.
    fn publish(&mut self) {
        self.shown.nodes = self.view.nodes();
        self.shown.refused = self.view.refused();
        if let Some(roster) = self.view.publish() {
            self.actions.push_back(Action::Publish(roster));
        }
        self.show();
    }

    fn url(&self) -> &str {
        &self.config.endpoints[self.endpoint]
    }
}

fn passing(text: &str) -> Trouble {
    Trouble::Passing(text.to_owned())
}

fn silent() -> Trouble {
    Trouble::Passing(format!("no answer in {} s", SILENT_NS as f64 / 1e9))
}

fn disowned() -> Trouble {
    passing("another client changed or removed the key of this host")
}

#[cfg(test)]
mod tests;
