// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clients that send a request to a server. The server answers when the request has arrived. The request is complete
//! when the client has the answer.

use super::plan::{After, Arrival, Plan, Purpose, Random, Work};
use super::{Arrivals, Generator, Measured, TrafficKind};
use crate::fraction::Fraction;
use crate::graph::Link;
use crate::hosts::HostId;
use crate::key::{both, Scope, HOUR};
use crate::types::Run;
use crate::values::{Receivers, Sources};
use onramp_keys::Absent::{By, Is, Required, Without};
use onramp_keys::{section, Section, Source, ANY_NUMBER};
use onramp_units::{Bytes, Span};
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "request",
    about: "clients send requests to servers, which answer",
    keys: Request::KEYS,
    measured: Measured::Requests,
    in_rack: false,
    read: |entry| {
        for key in [Request::think, Request::concurrency] {
            entry.refuse_beside(key, Request::load);
        }
        let request: Request = entry.read()?;
        entry.refuse_itself(request.from, request.to);
        Some(Arc::new(request))
    },
};

section! {
    /// An entry. With `load` requests are independent of answers; otherwise they come a time after an answer, with a
    /// limited number in progress.
    #[derive(Debug)]
    struct Request in "traffic" with Scope {
        to: Receivers = Is("0"), both(),
            "The client. A range or `all`: each of these hosts is one, and `load` and `requests` apply to each.";
        from: Sources = Is("others"), both(),
            "The server. A range or `others` (all hosts but the client): each request has a random one.";
        request_size: Bytes [Bytes::new(1), Bytes::new(1_000_000_000)] = Is("100 B"), both(),
            "Size of a request.";
        size: Bytes [Bytes::new(1), Bytes::new(1_000_000_000)] = Required, both(),
            "Size of an answer.";
        load: Option<Fraction> [0.000_001, 1.0] = Without("a client waits for an answer before its next request"), both(),
            "Offered load: payload of the answers, as a fraction of the rate of the client's link.";
        think: Option<Span> [Span::ZERO, HOUR] = By("0 s", |entry| without_load(entry, "0 s")), both(),
            "Mean time between an answer and the client's next request. Not with `load`.";
        concurrency: Option<u32> [1, 1000] = By("1", |entry| without_load(entry, "1")), both(),
            "Number of requests that a client has in progress. Not with `load`.";
        arrivals: Arrivals = Is("poisson"), both(),
            "Distribution of the time between requests, or of `think`. `poisson`: exponential. `periodic`: constant.";
        requests: Option<u64> [1, ANY_NUMBER] = Without("until `duration`"), both(),
            "Each client stops after this number of requests.";
    }
}

fn without_load(entry: &dyn Source, text: &str) -> Option<String> {
    entry.text(Request::load).is_none().then(|| text.to_owned())
}

impl Generator for Request {
    fn generate(&self, plan: &mut Plan<'_>) {
        let run = plan.run();
        let mut number = 0;
        for client in self.to.hosts(run) {
            let mut asks = Asks {
                request: self,
                client,
                link: run.network.link_of(client),
                gaps: plan.random(client, Purpose::Gaps),
                sources: plan.random(client, Purpose::Sources),
                servers: self.from.servers(run, client),
                asked: 0,
                number,
                plan,
            };
            match self.load {
                Some(load) => asks.at_load(load.get()),
                None => asks.in_turn(),
            }
            number = asks.number;
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        let most = self.requests.unwrap_or(u64::MAX) as f64;
        let requests = |host| {
            let gap_ps = self.least_gap_ps(run.network.link_of(host));
            (run.duration.as_ps() as f64 / gap_ps).min(most)
        };
        2.0 * self.to.hosts(run).into_iter().map(requests).sum::<f64>()
    }

    fn receiver(&self) -> HostId {
        self.to.first()
    }
}

/// The requests of one client.
struct Asks<'a, 'p> {
    request: &'a Request,
    client: HostId,
    link: Link,
    gaps: Random,
    sources: Random,
    servers: Vec<HostId>,
    asked: u64,
    /// The number of the next request of the whole entry.
    number: u64,
    plan: &'a mut Plan<'p>,
}

impl Asks<'_, '_> {
    /// At random times, independent of answers.
    fn at_load(&mut self, load: f64) {
        let size = self.request.size;
        let gap_ps = self.link.rate.time_to_send(size).as_ps() as f64 / load;
        let mut at_ps = 0.0;
        loop {
            at_ps += self.request.arrivals.gap_ps(gap_ps, &mut self.gaps);
            let at = Span::from_ps(at_ps.round() as i64);
            if at >= self.plan.run().duration || self.is_done() {
                return;
            }
            self.ask(at, None, 0);
        }
    }

    /// Each request after the answer to the previous one.
    fn in_turn(&mut self) {
        let (think, concurrency) = self.request.in_turn();
        let least_ps = self.request.answer_ps(self.link);
        let end_ps = self.plan.run().duration.as_ps() as f64;
        let mut slots = vec![(0.0, None); concurrency as usize];
        // A round robin over the slots, so that a limit on requests stops all of them.
        while !self.is_done() && slots.iter().any(|(at_ps, _)| *at_ps < end_ps) {
            for (slot, (at_ps, before)) in (0..).zip(&mut slots) {
                if *at_ps >= end_ps || self.is_done() {
                    continue;
                }
                let think_ps = think.as_ps() as f64;
                let gap_ps = self.request.arrivals.gap_ps(think_ps, &mut self.gaps);
                *at_ps += gap_ps;
                if *at_ps >= end_ps {
                    continue;
                }
                let delay = Span::from_ps(gap_ps.round() as i64);
                let after = before.map(|group| After { group, delay });
                let at = Span::from_ps(at_ps.round() as i64);
                *before = Some(self.ask(at, after, slot));
                *at_ps += least_ps;
            }
        }
    }

    fn is_done(&self) -> bool {
        self.request.requests.is_some_and(|most| self.asked >= most)
    }

    /// A request and its answer. Returns the answer's group.
    fn ask(&mut self, at: Span, after: Option<After>, slot: u32) -> u32 {
        let server = self.sources.pick(&self.servers);
        let asked = self.plan.new_groups(2);
        let size = Work::Send(self.request.size);
        let arrival = Arrival {
            request: Some(self.number),
            slot,
            ..self.plan.flow(at, server, self.client, size)
        };
        let [ask, answer] = arrival.asked_for(self.request.request_size, asked);
        self.plan.add(Arrival { after, ..ask });
        self.plan.add(Arrival {
            joins: Some(asked + 1),
            ..answer
        });
        self.asked += 1;
        self.number += 1;
        asked + 1
    }
}

impl Request {
    /// Mean time between an answer and the next request, and the number of requests in progress.
    fn in_turn(&self) -> (Span, u32) {
        (
            self.think.unwrap_or(Span::ZERO),
            self.concurrency.unwrap_or(1),
        )
    }

    /// Least time between a request and its answer, in ps, of a client with this link.
    fn answer_ps(&self, link: Link) -> f64 {
        let bytes = self.request_size + self.size;
        (link.rate.time_to_send(bytes) + link.delay * 2).as_ps() as f64
    }

    /// Least mean time between two requests of a client with this link, in ps.
    fn least_gap_ps(&self, link: Link) -> f64 {
        match self.load {
            Some(load) => link.rate.time_to_send(self.size).as_ps() as f64 / load.get(),
            None => {
                let (think, concurrency) = self.in_turn();
                (think.as_ps() as f64 + self.answer_ps(link)) / f64::from(concurrency)
            }
        }
    }
}
