// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts that register in etcd: what the daemon's driver does with a registration, on simulated time.

use onramp_clock::registration::{Action, Answer, Config, Event as Input, Registration};
use onramp_sync::synthetic::uniform;

use crate::{
    etcd::Etcd,
    world::{Event, World},
};

/// Delay of a message to or from etcd, ns: from this to twice this.
const MESSAGE_NS: f64 = 300_000.0;

impl World {
    /// etcd.
    ///
    /// # Panics
    /// The world has none.
    pub fn etcd(&mut self) -> &mut Etcd {
        &mut self.etcd.as_mut().expect("a world with etcd").0
    }

    /// Ends the process of a host, which first leaves the fleet, as it does for SIGTERM.
    pub fn stop(&mut self, host: usize) {
        let process = self.hosts[host].process;
        self.feed(host, process, Input::Leave);
        // Its last request reaches etcd though the process has ended.
        self.hosts[host].running = None;
    }

    /// etcd was changed from outside: what follows from it happens at its time.
    pub fn touch_etcd(&mut self) {
        self.await_etcd();
    }

    /// A host that has just started begins to register.
    pub(crate) fn register(&mut self, host: usize) {
        let machine = &mut self.hosts[host];
        let config = Config {
            endpoints: vec!["http://10.9.9.9:2379".to_owned()],
            fleet: "default".to_owned(),
            node: format!("n{host}"),
            own: machine.address,
        };
        let now = machine.clock.read(self.now);
        let process = machine.process;
        if let Some(running) = &mut machine.running {
            running.registration = Some(Registration::new(config, now));
        }
        self.act(host, process);
    }

    /// A registration's time has come, if it still waits for it.
    pub(crate) fn pass_time(&mut self, host: usize, process: u32) {
        let now = self.now;
        let machine = &mut self.hosts[host];
        let runs_from = machine.runs_from(now);
        if runs_from > now {
            return self.push(runs_from, Event::Register { host, process });
        }
        let mono_ns = machine.clock.read(now);
        let Some(running) = &machine.running else {
            return;
        };
        let is_due = |registration: &Registration| registration.wakes_at() <= mono_ns;
        if running.registration.as_ref().is_some_and(is_due) {
            let unfit = running.is_unfit();
            self.feed(host, process, Input::Time { unfit });
        }
    }

    /// An answer has arrived at a host, which takes it when it has a processor.
    pub(crate) fn answer(&mut self, host: usize, process: u32, answer: Answer) {
        let runs_from = self.hosts[host].runs_from(self.now);
        if runs_from > self.now {
            let later = Event::Answer {
                host,
                process,
                answer,
            };
            return self.push(runs_from, later);
        }
        self.feed(host, process, Input::Answer(answer));
    }

    /// etcd does what is due.
    pub(crate) fn run_etcd(&mut self) {
        self.etcd_at = i64::MAX;
        let now = self.now;
        let Some((etcd, rng)) = &mut self.etcd else {
            return;
        };
        let mut delay = |_: usize, _: &Answer| Some(delay_ns(rng));
        for (host, answer) in etcd.run(now, &mut delay) {
            let process = self.hosts[host].process;
            self.answer(host, process, answer);
        }
        self.await_etcd();
    }

    fn feed(&mut self, host: usize, process: u32, input: Input) {
        let machine = &mut self.hosts[host];
        let now = machine.clock.read(self.now);
        let running = machine
            .running
            .as_mut()
            .filter(|_| machine.process == process);
        let Some(registration) = running.and_then(|running| running.registration.as_mut()) else {
            return;
        };
        registration.handle(now, input);
        self.act(host, process);
    }

    /// Does what a host's registration wants.
    fn act(&mut self, host: usize, process: u32) {
        loop {
            let Some(running) = &mut self.hosts[host].running else {
                return;
            };
            let Some(action) = running
                .registration
                .as_mut()
                .and_then(Registration::next_action)
            else {
                break;
            };
            match action {
                Action::Ask(request) => {
                    if let Some((etcd, rng)) = &mut self.etcd {
                        etcd.ask(self.now, host, request, Some(delay_ns(rng)));
                    }
                }
                Action::Disconnect => self.etcd().disconnect(host),
                Action::Publish(roster) => drop(running.rosters.send(roster)),
                Action::Show(shown) => running.shown = shown,
                Action::Say(_) | Action::End => {}
            }
        }
        self.await_etcd();
        let machine = &mut self.hosts[host];
        let registration = machine
            .running
            .as_ref()
            .and_then(|running| running.registration.as_ref());
        let wakes_at = registration.map_or(i64::MAX, Registration::wakes_at);
        if wakes_at < i64::MAX {
            let at = machine.clock.when(wakes_at, self.now) + 1;
            self.push(at, Event::Register { host, process });
        }
    }

    fn await_etcd(&mut self) {
        let Some((etcd, _)) = &self.etcd else { return };
        let at = etcd.wakes_at().max(self.now);
        if at < self.etcd_at && at < i64::MAX {
            self.etcd_at = at;
            self.push(at, Event::Etcd);
        }
    }
}

fn delay_ns(rng: &mut rand_chacha::ChaCha8Rng) -> i64 {
    (MESSAGE_NS * (1.0 + uniform(rng))) as i64
}
