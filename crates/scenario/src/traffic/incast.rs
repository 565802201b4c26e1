// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Incasts: an aggregator requests `size` bytes from each of `fanout` servers, which answer at once or one after the
//! other. The request completion time runs from the start of the first answer to the last byte that arrives.

use super::plan::{choose, Arrival, Plan, Purpose, Starts, Work};
use super::{Arrivals, Generator, Measured, Op, TrafficKind};
use crate::fraction::Fraction;
use crate::hosts::HostId;
use crate::key::{both, Scope, HOUR};
use crate::types::Run;
use crate::values::{Receivers, Sources};
use onramp_keys::Absent::{By, Is, Required, Without};
use onramp_keys::{section, Section, ANY_NUMBER};
use onramp_units::{Bytes, Rate, Span};
use std::ops::RangeFrom;
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "incast",
    about: "an aggregator sends a request to `fanout` servers, which answer at the same time",
    keys: Incast::KEYS,
    measured: Measured::Incasts,
    in_rack: true,
    read: |entry| {
        entry.refuse_beside(Incast::interval, Incast::load);
        let incast: Incast = entry.read()?;
        entry.refuse_itself(incast.from, incast.to);
        Some(Arc::new(incast))
    },
};

section! {
    /// An entry.
    #[derive(Debug)]
    struct Incast in "traffic" with Scope {
        to: Receivers = Is("0"), both(),
            "The aggregator. A range or `all`: each of these hosts is one, and `load`, `interval` and `requests` apply to each.";
        from: Sources = Is("others"), both().rack_only(&["others"]),
            "The servers: a host, or a range or `others` (all hosts but the aggregator), among which a request chooses at random.";
        fanout: u32 [1, 10_000] = Required, both(),
            "Number of answers to a request, from random servers. If it exceeds the number of servers, some servers send several answers, on separate connections.";
        size: Bytes [Bytes::new(1), Bytes::new(1_000_000_000)] = Required, both(),
            "Size of one answer.";
        load: Option<Fraction> [0.000_001, 1.0] = By("2 % without `interval`", |entry| {
                entry.text(Incast::interval).is_none().then(|| "2 %".to_owned())
            }), both(),
            "Offered load: payload of the answers, as a fraction of the rate of the aggregator's link.";
        interval: Option<Span> [Span::from_ns(1), HOUR] = Without("from `load`"), both(),
            "Mean time between requests, instead of `load`.";
        arrivals: Arrivals = Is("poisson"), both(),
            "Distribution of the time between requests. `poisson`: exponential. `periodic`: constant.";
        requests: Option<u64> [1, ANY_NUMBER] = Without("until `duration`"), both(),
            "Each aggregator stops after this number of requests.";
        stagger: Span [Span::ZERO, HOUR] = Is("0 s"), both().rack_only(&["0 s"]),
            "Time between the starts of two successive answers to a request.";
        ask_size: Bytes [Bytes::ZERO, Bytes::new(1_000_000_000)] = Is("0 B"), both().rack_only(&["0 B", "64 B"]),
            "Size of the request that the aggregator sends to each server. `stagger` and `jitter` delay these requests. A request waits behind other data for the same server. 0 B: servers answer without a request. In the rack, aggregators always send 64 B.";
        jitter: Span [Span::ZERO, HOUR] = Is("0 s"), both().rack_only(&["0 s"]),
            "Upper bound of a random time that delays each answer, in addition to `stagger`.";
        op: Op = Is("write"), both().later().rack_only(&["write"]),
            "How NICs move the data from `from` to `to`, which are the same for both values. `write`: the NIC of `from` has the congestion control. `read`: the NIC of `to` has it, and paces requests for segments, which the NIC of `from` sends at the rate of its line; docs/timely.md describes this. A read starts at `to` and ends when `to` has the last byte. `read` needs a congestion control of nic hosts that sends bursts, `onramp.law` off, no `ask_size` and no `cc.timely_paper.burst_rate`.";
    }
}

impl Generator for Incast {
    fn generate(&self, plan: &mut Plan<'_>) {
        let mut numbers = 0..;
        let mut answers = Vec::new();
        for aggregator in self.to.hosts(plan.run()) {
            self.answers_to(aggregator, &mut numbers, plan, &mut answers);
        }
        // The rack's aggregators send their requests themselves, so requests are not flows there.
        let asks = self.ask_size > Bytes::ZERO && !plan.is_for_rack();
        for answer in answers {
            match asks {
                true => plan.add_with_request(self.ask_size, answer),
                false => plan.add(answer),
            }
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        let most = self.requests.unwrap_or(u64::MAX) as f64;
        let requests = |host| {
            let gap_ps = self.mean_gap_ps(run.network.link_of(host).rate);
            (run.duration.as_ps() as f64 / gap_ps).min(most)
        };
        let requests: f64 = self.to.hosts(run).into_iter().map(requests).sum();
        let each = if self.ask_size > Bytes::ZERO {
            2.0
        } else {
            1.0
        };
        requests * each * f64::from(self.fanout)
    }

    fn receiver(&self) -> HostId {
        self.to.first()
    }

    fn op(&self) -> Op {
        self.op
    }

    fn connections(&self, run: &Run) -> u64 {
        let servers = u64::from(run.network.topology.hosts()) - 1;
        let aggregators = self.to.hosts(run).len() as u64;
        u64::from(self.fanout).div_ceil(servers) * servers * aggregators
    }
}

impl Incast {
    /// The answers to one aggregator, to requests with the next `numbers` of the entry.
    fn answers_to(
        &self,
        to: HostId,
        numbers: &mut RangeFrom<u64>,
        plan: &Plan<'_>,
        answers: &mut Vec<Arrival>,
    ) {
        let run = plan.run();
        let gap_ps = self.mean_gap_ps(run.network.link_of(to).rate);
        let starts = Starts::new(plan, to, self.arrivals, gap_ps);
        let mut sources = plan.random(to, Purpose::Sources);
        let mut servers = self.from.servers(run, to);
        let mut jitter = plan.random(to, Purpose::Jitter);
        let limit = self.requests.map_or(usize::MAX, |most| most as usize);
        for (at, request) in starts.take(limit).zip(numbers) {
            let chosen = choose(&mut servers, self.fanout, &mut sources);
            for (n, (slot, src)) in (0..).zip(chosen) {
                let mut at = at + self.stagger * n;
                if self.jitter > Span::ZERO {
                    at += Span::from_ps((self.jitter.as_ps() as f64 * jitter.uniform()) as i64);
                }
                answers.push(Arrival {
                    request: Some(request),
                    slot,
                    ..plan.flow(at, src, to, Work::Send(self.size))
                });
            }
        }
    }

    /// Mean time between requests, in ps, when the aggregator's link runs at `rate`.
    fn mean_gap_ps(&self, rate: Rate) -> f64 {
        match (self.interval, self.load) {
            (Some(gap), _) => gap.as_ps() as f64,
            (None, load) => {
                let answers = self.size * u64::from(self.fanout);
                rate.time_to_send(answers).as_ps() as f64 / load.map_or(1.0, Fraction::get)
            }
        }
    }
}
