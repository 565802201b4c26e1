// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that wait for others: answers wait for requests, steps for the previous steps.

use super::{pick, After, Arrival, Entry, Purpose, Work};
use crate::{AllToAll, Asking, HostId, Link, Pattern, Request, Run};
use onramp_units::{Bytes, Span};
use rand_chacha::ChaCha8Rng;

impl Arrival {
    /// A request of `size` and this answer, which starts when the request has arrived; `group` is that of the
    /// request.
    pub(super) fn asked_for(self, size: Bytes, group: u32) -> [Arrival; 2] {
        let question = Arrival {
            joins: Some(group),
            src: self.dst,
            dst: self.src,
            work: Work::Send(size),
            ..self
        };
        let after = After {
            group,
            delay: Span::ZERO,
        };
        let answer = Arrival {
            after: Some(after),
            ..self
        };
        [question, answer]
    }
}

impl Entry<'_> {
    pub(super) fn request(&self, request: &Request, groups: &mut u32, arrivals: &mut Vec<Arrival>) {
        let mut numbers = 0;
        for client in request.to.hosts(self.run) {
            let mut asks = Asks {
                entry: self,
                request,
                client,
                link: self.run.network.link_of(client),
                gaps: self.stream(client, Purpose::Gaps),
                sources: self.stream(client, Purpose::Sources),
                servers: request.from.servers(self.run, client),
                asked: 0,
                numbers: &mut numbers,
                groups,
            };
            match request.asking {
                Asking::Load(load) => asks.at_load(load.get(), arrivals),
                Asking::Think { time, concurrency } => asks.in_turn(time, concurrency, arrivals),
            }
        }
    }

    /// Step by step and round by round. A host waits for the data of the previous round.
    pub(super) fn all_to_all(&self, all: &AllToAll, groups: &mut u32, arrivals: &mut Vec<Arrival>) {
        let hosts = all.among.hosts(self.run);
        let rounds = all.rounds(hosts.len()) as u64;
        let round_ps = all.least_round(self.run, &hosts).as_ps();
        let mut at_ps = all.start.as_ps();
        for step in 0..all.steps.unwrap_or(u64::MAX) {
            if at_ps >= self.run.duration.as_ps() {
                break;
            }
            for round in 0..rounds {
                let delay = match round {
                    0 => all.pause(),
                    _ => Span::ZERO,
                };
                let after = (step + round > 0).then_some(delay);
                let of = (all, hosts.as_slice());
                self.round(of, (step, after, at_ps), groups, arrivals);
                at_ps += round_ps;
            }
            at_ps += all.pause().as_ps();
        }
    }

    /// A round of step `step` that starts, at `at_ps` or later, with what waits for the round before
    /// and `after` that.
    fn round(
        &self,
        (all, hosts): (&AllToAll, &[HostId]),
        (step, after, at_ps): (u64, Option<Span>, i64),
        groups: &mut u32,
        arrivals: &mut Vec<Arrival>,
    ) {
        let size = all.flow_size(hosts.len());
        let before = (*groups).wrapping_sub(hosts.len() as u32);
        for (n, &src) in (0..).zip(hosts) {
            let group = before.wrapping_add(n);
            for away in 1..=all.each_sends_to(hosts.len()) {
                let to = (n as usize + away) % hosts.len();
                let flow = self.arrival(at_ps, src, hosts[to], Work::Send(size));
                arrivals.push(Arrival {
                    after: after.map(|delay| After { group, delay }),
                    joins: Some(*groups + to as u32),
                    request: Some(step),
                    in_order: all.pattern == Pattern::Ring,
                    ..flow
                });
            }
        }
        *groups += hosts.len() as u32;
    }
}

/// The requests of one client.
struct Asks<'a> {
    entry: &'a Entry<'a>,
    request: &'a Request,
    client: HostId,
    link: Link,
    gaps: ChaCha8Rng,
    sources: ChaCha8Rng,
    servers: Vec<HostId>,
    asked: u64,
    /// Requests of the whole entry.
    numbers: &'a mut u64,
    groups: &'a mut u32,
}

impl Asks<'_> {
    /// At random times, independent of answers.
    fn at_load(&mut self, load: f64, arrivals: &mut Vec<Arrival>) {
        let size = self.request.size;
        let gap_ps = self.link.rate.time_to_send(size).as_ps() as f64 / load;
        let mut at_ps = 0.0;
        loop {
            at_ps += self.request.arrivals.gap_ps(gap_ps, &mut self.gaps);
            if at_ps.round() as i64 >= self.entry.run.duration.as_ps() || self.is_done() {
                return;
            }
            self.ask(at_ps.round() as i64, None, 0, arrivals);
        }
    }

    /// Each request after the answer to the previous one.
    fn in_turn(&mut self, think: Span, concurrency: u32, arrivals: &mut Vec<Arrival>) {
        let least_ps = self.request.answer_ps(self.link);
        let end_ps = self.entry.run.duration.as_ps() as f64;
        let mut slots = vec![(0.0, None); concurrency as usize];
        // A round robin over the slots, so that a limit on requests stops all of them.
        while !self.is_done() && slots.iter().any(|(at_ps, _)| *at_ps < end_ps) {
            for (slot, (at_ps, before)) in (0..).zip(&mut slots) {
                if *at_ps >= end_ps || self.is_done() {
                    continue;
                }
                let gap_ps = self
                    .request
                    .arrivals
                    .gap_ps(think.as_ps() as f64, &mut self.gaps);
                *at_ps += gap_ps;
                if *at_ps >= end_ps {
                    continue;
                }
                let delay = Span::from_ps(gap_ps.round() as i64);
                let after = before.map(|group| After { group, delay });
                let answer = self.ask(at_ps.round() as i64, after, slot, arrivals);
                *before = Some(answer);
                *at_ps += least_ps;
            }
        }
    }

    fn is_done(&self) -> bool {
        self.request.requests.is_some_and(|most| self.asked >= most)
    }

    /// A request and its answer. Returns the answer's group.
    fn ask(
        &mut self,
        at_ps: i64,
        after: Option<After>,
        slot: u32,
        arrivals: &mut Vec<Arrival>,
    ) -> u32 {
        let server = pick(&self.servers, &mut self.sources);
        let (asked, answered) = (*self.groups, *self.groups + 1);
        *self.groups += 2;
        let size = Work::Send(self.request.size);
        let told = Arrival {
            request: Some(*self.numbers),
            slot,
            ..self.entry.arrival(at_ps, server, self.client, size)
        };
        let [ask, answer] = told.asked_for(self.request.request_size, asked);
        arrivals.push(Arrival { after, ..ask });
        arrivals.push(Arrival {
            joins: Some(answered),
            ..answer
        });
        self.asked += 1;
        *self.numbers += 1;
        answered
    }
}

impl Request {
    /// Least time between a request and its answer, in ps, of a client with this link.
    pub(super) fn answer_ps(&self, link: Link) -> f64 {
        let bytes = self.request_size + self.size;
        (link.rate.time_to_send(bytes) + link.delay * 2).as_ps() as f64
    }

    /// Least mean time between two requests of a client with this link, in ps.
    pub(super) fn least_gap_ps(&self, link: Link) -> f64 {
        match self.asking {
            Asking::Load(load) => link.rate.time_to_send(self.size).as_ps() as f64 / load.get(),
            Asking::Think { time, concurrency } => {
                (time.as_ps() as f64 + self.answer_ps(link)) / f64::from(concurrency)
            }
        }
    }
}

impl AllToAll {
    /// Of a step among `hosts`.
    pub(super) fn rounds(&self, hosts: usize) -> usize {
        match self.pattern {
            Pattern::Direct => 1,
            Pattern::Ring => 2 * (hosts - 1),
        }
    }

    /// Flows of a host in a round.
    pub(super) fn each_sends_to(&self, hosts: usize) -> usize {
        match self.pattern {
            Pattern::Direct => hosts - 1,
            Pattern::Ring => 1,
        }
    }

    /// Of one flow.
    fn flow_size(&self, hosts: usize) -> Bytes {
        match self.pattern {
            Pattern::Direct => self.size,
            Pattern::Ring => Bytes::new(self.size.get().div_ceil(hosts as u64)),
        }
    }

    /// Least time between two rounds.
    fn least_round(&self, run: &Run, hosts: &[HostId]) -> Span {
        let sent = self.flow_size(hosts.len()) * self.each_sends_to(hosts.len()) as u64;
        let round = |&host: &HostId| {
            let link = run.network.link_of(host);
            link.rate.time_to_send(sent) + link.delay
        };
        hosts.iter().map(round).max().unwrap_or(Span::ZERO)
    }

    /// Least time between two steps, in ps.
    pub(super) fn least_gap_ps(&self, run: &Run, hosts: &[HostId]) -> f64 {
        let rounds = self.rounds(hosts.len()) as i64;
        (self.least_round(run, hosts) * rounds + self.pause()).as_ps() as f64
    }
}
