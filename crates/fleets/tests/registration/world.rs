// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts that register in the model of etcd, on simulated time. Every random choice follows from the seed.

use std::{collections::BTreeMap, net::SocketAddr};

use onramp_clock::{
    registration::{
        Action, Answer, Config, Event, Key, News, Registration, Request, Text, Trouble,
    },
    registry::Record,
    roster::Roster,
    status,
};
use onramp_fleets::etcd::{Delay, Etcd};

use crate::faults::{Fault, Faults};

pub const MS: i64 = 1_000_000;
pub const S: i64 = 1_000 * MS;
/// Far more than a host and etcd do in a simulated second.
const MOST_EVENTS: u64 = 20_000;

pub struct Host {
    pub config: Config,
    /// The process, while there is one.
    pub process: Option<Process>,
    /// The host does nothing before this time.
    pub paused_until: i64,
    pub unfit: bool,
}

pub struct Process {
    registration: Registration,
    began: i64,
    /// Answers that have arrived while the host was paused.
    waiting: Vec<Event>,
    pub shown: status::Fleet,
    pub published: Vec<(i64, Roster)>,
    /// Outcome of the first session.
    pub first: Option<Result<(), Trouble>>,
    complained: Option<i64>,
    resigned: Option<i64>,
    /// How often the term went back.
    back: u64,
    is_leaving: bool,
    cannot_leave: bool,
    is_over: bool,
}

impl Host {
    /// The process, if it is registered.
    pub fn member(&self) -> Option<&Process> {
        let process = self.process.as_ref();
        process.filter(|process| process.stays() && process.shown.connected)
    }
}

impl Process {
    pub fn roster(&self) -> Option<&Roster> {
        self.published.last().map(|(_, roster)| roster)
    }

    /// Whether the process goes on, and is not about to end.
    pub fn stays(&self) -> bool {
        !self.is_leaving && !self.is_over
    }
}

/// By name: the revision of a key's creation, its lease and the address in it.
type Owners = BTreeMap<Text, (i64, i64, Option<SocketAddr>)>;

pub struct World {
    pub now: i64,
    pub etcd: Etcd,
    pub hosts: Vec<Host>,
    pub faults: Faults,
    /// The keys at this revision of etcd.
    owners: Owners,
    revision: i64,
    /// How often etcd has forgotten everything.
    pub wipes: u64,
    /// Events of the present simulated second.
    events: (i64, u64),
    /// Depends on all that has happened.
    pub digest: u64,
    pub is_printed: bool,
}

/// The address of host `n`.
pub fn address(n: usize) -> SocketAddr {
    format!("10.0.0.{}:5198", n + 1)
        .parse()
        .expect("an address")
}

impl World {
    /// Hosts with these names; none has a process yet.
    pub fn new(names: &[&str], faults: Faults) -> World {
        let host = |(n, name): (usize, &&str)| Host {
            config: Config {
                endpoints: vec!["http://a:2379".to_owned(), "http://b:2379".to_owned()],
                fleet: "default".to_owned(),
                node: (*name).to_owned(),
                own: address(n),
            },
            process: None,
            paused_until: 0,
            unfit: false,
        };
        World {
            now: S,
            etcd: Etcd::default(),
            hosts: names.iter().enumerate().map(host).collect(),
            faults,
            owners: Owners::new(),
            revision: 0,
            wipes: 0,
            events: (0, 0),
            digest: 0,
            is_printed: false,
        }
    }

    /// All hosts run, each registered before the next one begins.
    pub fn whole(names: &[&str]) -> World {
        let mut world = World::new(names, Faults::none());
        for n in 0..names.len() {
            world.start(n);
            world.run(S);
        }
        world
    }

    pub fn process(&self, n: usize) -> &Process {
        self.hosts[n].process.as_ref().expect("it runs")
    }

    // ---- what happens to hosts ----

    pub fn start(&mut self, n: usize) {
        let host = &mut self.hosts[n];
        host.process = Some(Process {
            registration: Registration::new(host.config.clone(), self.now),
            began: self.now,
            waiting: vec![],
            shown: status::Fleet::default(),
            published: vec![],
            first: None,
            complained: None,
            resigned: None,
            back: 0,
            is_leaving: false,
            cannot_leave: false,
            is_over: false,
        });
        self.act(n);
    }

    pub fn kill(&mut self, n: usize) {
        self.etcd.disconnect(n);
        self.hosts[n].process = None;
    }

    pub fn leave(&mut self, n: usize) {
        if let Some(process) = &mut self.hosts[n].process {
            process.is_leaving = true;
            self.give(n, Event::Leave);
        }
    }

    /// Gives a host an event now, or when it is no longer paused.
    fn give(&mut self, n: usize, event: Event) {
        let host = &mut self.hosts[n];
        let Some(process) = &mut host.process else {
            return;
        };
        if self.now < host.paused_until {
            process.waiting.push(event);
        } else if !process.is_over {
            self.handle(n, event);
        }
    }

    fn handle(&mut self, n: usize, event: Event) {
        self.count(n);
        if self.is_printed {
            println!("{:.6} host {n}: {event:?}", self.now as f64 / 1e9);
        }
        let now = self.now;
        let Some(process) = &mut self.hosts[n].process else {
            return;
        };
        process.registration.handle(now, event);
        self.act(n);
        if let Some(process) = &self.hosts[n].process {
            let wakes_at = process.registration.wakes_at();
            assert!(wakes_at > now, "host {n} wakes at {wakes_at}");
            let is_finite = wakes_at < now + 60 * S;
            assert!(is_finite || process.is_over, "host {n} never wakes");
        }
    }

    /// Does what the host's registration wants.
    fn act(&mut self, n: usize) {
        while let Some(action) = self.next_action(n) {
            match action {
                Action::Ask(request) => self.ask(n, request),
                Action::Disconnect => self.etcd.disconnect(n),
                action => self.note(n, action),
            }
        }
    }

    fn next_action(&mut self, n: usize) -> Option<Action> {
        let process = self.hosts[n].process.as_mut()?;
        let action = process.registration.next_action();
        if let Some(action) = action.as_ref().filter(|_| self.is_printed) {
            println!("{:.6} host {n}: -> {action:?}", self.now as f64 / 1e9);
        }
        action
    }

    fn ask(&mut self, n: usize, request: Request) {
        let delay = self.faults.of_message(n);
        self.etcd.ask(self.now, n, request, delay);
    }

    /// Keeps what a host publishes and says, and checks it.
    fn note(&mut self, n: usize, action: Action) {
        let (now, wipes) = (self.now, self.wipes);
        let own = Some(self.hosts[n].config.own);
        let has_key = self
            .etcd
            .keys()
            .any(|key| key.lease != 0 && owner(key) == own);
        let process = self.hosts[n].process.as_mut().expect("it acts");
        match action {
            Action::Publish(roster) => process.publish(now, roster, wipes),
            Action::Show(shown) => process.shown = shown,
            Action::Say(news) => process.hear(now, news),
            Action::End => {
                let has_left = process.shown.connected && !process.cannot_leave;
                assert!(!(has_left && has_key), "host {n} has left and has a key");
                process.is_over = true;
            }
            Action::Ask(_) | Action::Disconnect => unreachable!("done already"),
        }
    }

    // ---- time ----

    pub fn run(&mut self, time: i64) {
        let end = self.now + time;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<i64> {
        let hosts = self.hosts.iter().filter_map(|host| {
            let process = host.process.as_ref().filter(|process| !process.is_over)?;
            let is_waited_for = !process.waiting.is_empty();
            let at = process.registration.wakes_at();
            Some(if is_waited_for { 0 } else { at }.max(host.paused_until))
        });
        let others = [self.etcd.wakes_at(), self.faults.wakes_at()];
        hosts.chain(others).min()
    }

    fn step(&mut self) {
        for fault in self.faults.due(self.now) {
            self.inflict(fault);
        }
        let faults = &mut self.faults;
        let arrived = self
            .etcd
            .run(self.now, &mut |n, _: &Answer| faults.of_message(n));
        self.check_owners();
        for (n, answer) in arrived {
            self.give(n, Event::Answer(answer));
        }
        for n in 0..self.hosts.len() {
            self.pass_time(n);
        }
    }

    fn pass_time(&mut self, n: usize) {
        let (now, host) = (self.now, &mut self.hosts[n]);
        let unfit = host.unfit;
        if now < host.paused_until {
            return;
        }
        let Some(process) = &mut host.process else {
            return;
        };
        for event in std::mem::take(&mut process.waiting) {
            self.give(n, event);
        }
        let process = self.hosts[n].process.as_ref();
        let is_due = |p: &Process| !p.is_over && p.registration.wakes_at() <= now;
        if process.is_some_and(is_due) {
            self.handle(n, Event::Time { unfit });
        }
    }

    fn count(&mut self, n: usize) {
        let second = self.now / S;
        let count = if self.events.0 == second {
            self.events.1 + 1
        } else {
            1
        };
        self.events = (second, count);
        assert!(count < MOST_EVENTS, "events without end");
        let mixed = self.digest ^ self.now as u64 ^ (n as u64) << 56;
        self.digest = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    // ---- faults ----

    fn inflict(&mut self, fault: Fault) {
        if self.is_printed {
            println!("{:.6} {fault:?}", self.now as f64 / 1e9);
        }
        let now = self.now;
        match fault {
            Fault::Reset(n) => self.etcd.reset(now, n),
            Fault::Cut(n, is_cut) => self.etcd.set_cut(n, is_cut),
            Fault::Pause(n, until) => {
                let host = &mut self.hosts[n];
                host.paused_until = host.paused_until.max(until);
            }
            Fault::Kill(n) => self.kill(n),
            Fault::Leave(n) => self.leave(n),
            Fault::Start(n) if self.hosts[n].process.as_ref().is_none_or(|p| p.is_over) => {
                self.start(n);
            }
            Fault::Start(_) => {}
            Fault::Unfit(n, unfit) => self.hosts[n].unfit = unfit,
            Fault::Refuse(n, is_refused) => self.etcd.set_refused(n, is_refused),
            Fault::Down(is_down) => self.etcd.set_down(now, is_down),
            Fault::PauseEtcd(until) => self.etcd.pause(until),
            Fault::Endpoint(endpoint, is_present) => self.etcd.set_present(endpoint, is_present),
            Fault::Wipe => {
                self.wipes += 1;
                self.owners.clear();
                self.etcd.wipe(now);
            }
            Fault::Remove(n) => self.operate(n, |key| Request::Delete {
                name: key.name.clone(),
                modified: key.modified,
            }),
            Fault::Overwrite(n) => self.operate(n, |key| Request::Claim {
                name: key.name.clone(),
                value: Text::from("not a record"),
                lease: 0,
                expected: onramp_clock::registration::Expected::Modified(key.modified),
            }),
        }
    }

    /// Everything works again. Some hosts are started, some stay dead; at least one that runs is not starved.
    pub fn end_faults(&mut self) {
        self.faults.end();
        self.etcd.set_down(self.now, false);
        self.etcd.pause(0);
        for endpoint in 0..2 {
            self.etcd.set_present(endpoint, true);
        }
        for n in 0..self.hosts.len() {
            self.etcd.set_cut(n, false);
            self.etcd.set_refused(n, false);
            self.hosts[n].paused_until = 0;
            if self.faults.below(2) == 0 {
                self.inflict(Fault::Start(n));
            }
        }
        let is_fit = |host: &Host| host.process.is_some() && !host.unfit;
        if !self.hosts.iter().any(is_fit) {
            self.hosts.iter_mut().for_each(|host| host.unfit = false);
        }
    }

    /// An operator does something to the key of a host.
    pub fn operate(&mut self, n: usize, request: impl FnOnce(&Key) -> Request) {
        let name = Text::from(self.hosts[n].config.node.as_str());
        let Some(request) = self.etcd.keys().find(|key| key.name == name).map(request) else {
            return;
        };
        let faults = &mut self.faults;
        let mut delay = |n, _: &Answer| -> Delay { faults.of_message(n) };
        self.etcd.operate(self.now, &request, &mut delay);
    }

    // ---- checks ----

    /// No host takes the key of another one whose lease still runs.
    fn check_owners(&mut self) {
        if self.etcd.revision() == self.revision {
            return;
        }
        self.revision = self.etcd.revision();
        let owned = |key: &Key| (key.name.clone(), (key.created, key.lease, owner(key)));
        let owners: Owners = self.etcd.keys().map(owned).collect();
        for (name, (created, present, owner)) in &owners {
            if let Some((was_created, lease, former)) = self.owners.get(name) {
                // Operators write without a lease.
                let is_host = *lease != 0 && *present != 0;
                let is_same = !is_host || owner == former || created != was_created;
                assert!(is_same, "{owner:?} took the key of {former:?}");
            }
        }
        self.owners = owners;
    }
}

pub fn owner(key: &Key) -> Option<SocketAddr> {
    let record: Option<Record> = serde_json::from_slice(&key.value.0).ok();
    record.map(|record| record.address)
}

impl Process {
    fn publish(&mut self, now: i64, roster: Roster, wipes: u64) {
        if let Some((at, last)) = self.published.last() {
            let is_joined = last.certain && roster.certain;
            assert!(!is_joined || now - at >= 100 * MS, "published too often");
            assert!(last.certain || roster.certain, "doubted twice");
            assert!(*last != roster, "the same roster is published again");
            if roster.term < last.term && roster.term > 0 {
                self.back += 1;
                assert!(self.back <= wipes, "the term went back");
            }
        }
        self.published.push((now, roster));
    }

    fn hear(&mut self, now: i64, news: News) {
        match news {
            News::Joined(_) => {
                self.complained = None;
                self.first.get_or_insert(Ok(()));
            }
            News::Lost(trouble) => {
                let is_due = self.complained.is_none_or(|at| now - at > 60 * S);
                assert!(is_due, "complained twice in a minute");
                self.complained = Some(now);
                // The daemon ends if an operator has to act.
                let is_lasting = matches!(trouble, Trouble::Lasting(_));
                self.is_over |= self.first.is_none() && is_lasting;
                self.first.get_or_insert(Err(trouble));
            }
            News::Resigned => {
                self.resigned = Some(now);
                let most = 1 + (now - self.began) / (30 * S);
                assert!(
                    self.shown.resignations <= most as u64,
                    "it resigns too often"
                );
            }
            News::CannotLeave(_) => self.cannot_leave = true,
        }
    }
}

impl World {
    /// Every host's process has had an outcome.
    pub fn check_outcomes(&self) {
        for (n, host) in self.hosts.iter().enumerate() {
            if let Some(process) = host.process.as_ref().filter(|p| p.stays()) {
                let is_new = self.now - process.began < 5 * S;
                assert!(is_new || process.first.is_some(), "host {n} waits for ever");
            }
        }
    }

    /// The hosts that run agree with each other and with etcd.
    pub fn check_agreement(&self) {
        let names: std::collections::BTreeSet<&str> = self
            .hosts
            .iter()
            .filter(|host| host.process.as_ref().is_some_and(Process::stays))
            .map(|host| host.config.node.as_str())
            .collect();
        // The others are an operator's.
        let leased: Vec<&Key> = self.etcd.keys().filter(|key| key.lease != 0).collect();
        let keys: Vec<&[u8]> = leased.iter().map(|key| &key.name.0[..]).collect();
        let wanted: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        assert_eq!(keys, wanted, "the keys are those of the hosts that run");
        let oldest = leased.iter().copied().min_by_key(|key| key.created);
        let leader = oldest.and_then(owner);
        let term = oldest.map_or(0, |key| key.created as u64);
        for key in leased {
            let holds = |host: &&Host| Some(host.config.own) == owner(key);
            let holder = self.hosts.iter().find(holds).expect("a host has the key");
            let process = holder.process.as_ref().expect("it runs");
            assert!(process.shown.connected, "{:?}", process.shown);
            let roster = process.roster().expect("it has published");
            assert_eq!((roster.leader, roster.term), (leader, term), "{holder:?}");
            assert_eq!(roster.members.all().len(), names.len(), "{roster:?}");
            assert!(roster.certain, "{roster:?}");
        }
        let members = self.hosts.iter().filter_map(Host::member);
        assert_eq!(members.count(), names.len(), "one host for each name");
        self.check_fitness(leader);
    }

    /// A starved host leads only if no other one can, or if it has just given way.
    fn check_fitness(&self, leader: Option<SocketAddr>) {
        let may_lead = |host: &Host| host.member().is_some() && !host.unfit;
        let leads = |host: &&Host| Some(host.config.own) == leader;
        let Some(leader) = self.hosts.iter().find(leads).filter(|host| host.unfit) else {
            return;
        };
        let gave_way = leader.member().and_then(|process| process.resigned);
        let is_locked = gave_way.is_some_and(|at| self.now - at <= 30 * S);
        let is_fine = is_locked || !self.hosts.iter().any(may_lead);
        assert!(is_fine, "{leader:?} is starved and leads");
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "host {} at {}", self.config.node, self.config.own)
    }
}
