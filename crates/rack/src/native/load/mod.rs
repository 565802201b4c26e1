// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The load generator: one thread and one event loop with every socket of every host. Runs the plan of a
//! run's traffic over real TCP, and records when flows and requests finish.
//!
//! Connects before the measured time (later connections: [`pool`]), starts flows at their times in the plan,
//! answers requests, and discards data. Does not measure the network; it calls an [`Observer`].
//!
//! The completion time of a flow counts from its time in the plan, even if this loop started it late, to the
//! last byte that the receiver's TCP delivers. The completion time of a request counts from the
//! aggregator's first write. Flows that have not finished [`DRAIN`] after the end are unfinished.

mod connection;
mod events;
mod flow;
mod pool;
mod sockets;

pub use connection::Counters;
pub use flow::{Flow, Request};

use self::connection::{Route, ENDLESS};
pub use self::events::now_ns;
use self::events::Source;
use self::flow::FlowState;
use self::pool::{Pools, Take};
use self::sockets::Sockets;
use super::dilation::Dilation;
use super::sys::NetNs;
use crate::error::{Doing, Error, Result};
use onramp_scenario::{Arrival, Measured, Run, Work};
use onramp_units::Span;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Real time after the end of the traffic in which flows may still finish: ten minimum RTOs.
pub const DRAIN: Span = Span::from_s(2);
/// Interval of the observer's calls, in the rack's time.
const TICK_NS: i64 = 1_000_000_000;
/// Rack time within which all initial connections must be established.
const CONNECT_NS: i64 = 30_000_000_000;
/// Rack time between the last handshake and the measured time.
const SETTLE_NS: i64 = 100_000_000;

/// Callbacks about the measured time. Times are nanoseconds of CLOCK_MONOTONIC.
pub trait Observer {
    /// The measured time will start; the traffic's time zero is `zero_ns`.
    fn zero(&mut self, zero_ns: i64);
    /// Warm-up is over.
    fn window_opens(&mut self, now_ns: i64) -> Result<()>;
    /// The traffic has ended.
    fn window_closes(&mut self, now_ns: i64) -> Result<()>;
    /// About once a second of the rack's time, and at the end.
    fn tick(&mut self, now_ns: i64) -> Result<()>;
}

/// The results of the traffic.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// All flows, by start.
    pub flows: Vec<Flow>,
    /// All requests, by start.
    pub requests: Vec<Request>,
    /// Counters of each traffic entry, between warm-up and end.
    pub window: Vec<Counters>,
    /// Counters of all, from warm-up until everything had finished.
    pub whole: Counters,
    /// Connections opened.
    pub connections: usize,
    /// Largest delay with which this loop started a flow, ns.
    pub late_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    WindowOpens,
    WindowCloses,
    Tick,
    Stop(usize),
}

/// Runs the plan of `run` between the hosts.
///
/// # Errors
/// Sockets that fail, connections that cannot be made, or the observer's.
pub fn play(
    run: &Run,
    plan: &[Arrival],
    hosts: &[NetNs],
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let mut generator = Generator::new(run, plan, hosts)?;
    generator.connect()?;
    generator.play(observer)?;
    generator.finish()
}

struct Generator<'a> {
    run: &'a Run,
    plan: &'a [Arrival],
    dilation: Dilation,
    sockets: Sockets<'a>,
    pools: Pools,
    up: usize,
    zero_ns: i64,
    next: usize,
    due: BinaryHeap<Reverse<(i64, Due)>>,
    /// Flow n is arrival n of the plan.
    flows: Vec<FlowState>,
    requests: Vec<Request>,
    request_index: HashMap<(usize, u64), usize>,
    unfinished: usize,
    window_start: Vec<Counters>,
    outcome: Outcome,
}

impl<'a> Generator<'a> {
    fn new(run: &'a Run, plan: &'a [Arrival], hosts: &'a [NetNs]) -> Result<Generator<'a>> {
        Ok(Generator {
            run,
            plan,
            dilation: Dilation::new(run.time_dilation),
            sockets: Sockets::new(run, hosts)?,
            pools: Pools::default(),
            up: 0,
            zero_ns: 0,
            next: 0,
            due: BinaryHeap::new(),
            flows: vec![FlowState::default(); plan.len()],
            requests: Vec::new(),
            request_index: HashMap::new(),
            unfinished: plan
                .iter()
                .filter(|a| matches!(a.work, Work::Send(_)))
                .count(),
            window_start: vec![Counters::default(); run.traffic.len()],
            outcome: Outcome::default(),
        })
    }

    /// One connection for each route of the plan.
    fn connect(&mut self) -> Result<()> {
        let routes: BTreeSet<Route> = self.plan.iter().map(route).collect();
        let started_ns = now_ns();
        for &route in &routes {
            self.open(route)?;
        }
        while self.up < routes.len() {
            if now_ns() - started_ns > CONNECT_NS {
                return Err(Error::Unconnected {
                    missing: routes.len() - self.up,
                    wanted: routes.len(),
                    waited_s: (CONNECT_NS / 1_000_000_000) as u64,
                });
            }
            self.sockets.events.wake_at(now_ns() + TICK_NS)?;
            self.wait()?;
        }
        Ok(())
    }

    fn play(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.zero_ns = now_ns() + SETTLE_NS;
        observer.zero(self.zero_ns);
        let at = |span: Span| self.zero_ns + self.dilation.slow(span).as_ns();
        let end_ns = at(self.run.duration);
        let deadline_ns = at(self.run.duration + DRAIN);
        self.due
            .push(Reverse((at(self.run.warmup), Due::WindowOpens)));
        self.due.push(Reverse((end_ns, Due::WindowCloses)));
        self.due.push(Reverse((self.zero_ns, Due::Tick)));
        loop {
            self.start_due_flows()?;
            self.run_due_events(observer)?;
            let now = now_ns();
            if now >= deadline_ns
                || (now >= end_ns && self.unfinished == 0 && self.due_is_only_ticks())
            {
                return observer.tick(now);
            }
            self.sockets
                .events
                .wake_at(self.next_due_ns().min(deadline_ns))?;
            self.wait()?;
        }
    }

    fn due_is_only_ticks(&self) -> bool {
        self.due.iter().all(|Reverse((_, due))| *due == Due::Tick)
    }

    fn next_due_ns(&self) -> i64 {
        let event = self.due.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
        let arrival = self
            .plan
            .get(self.next)
            .map_or(i64::MAX, |a| self.arrival_ns(a));
        event.min(arrival)
    }

    fn arrival_ns(&self, arrival: &Arrival) -> i64 {
        let since_zero = self.dilation.slow(Span::from_ps(arrival.at.ticks()));
        self.zero_ns + since_zero.as_ns()
    }

    /// Starts flows that are due. All of them are prepared first, so that an aggregator's requests leave back
    /// to back.
    fn start_due_flows(&mut self) -> Result<()> {
        while let Some(first) = self.plan.get(self.next) {
            let late_ns = now_ns() - self.arrival_ns(first);
            if late_ns < 0 {
                return Ok(());
            }
            self.outcome.late_ns = self.outcome.late_ns.max(late_ns);
            let together = self.plan[self.next..].iter();
            let count = together.take_while(|a| a.at == first.at).count();
            let flows = self.next..self.next + count;
            self.next = flows.end;
            let mut ready = Vec::with_capacity(count);
            for flow in flows.clone() {
                ready.extend(self.assign(flow)?);
            }
            flows.for_each(|flow| self.note_request(flow));
            ready.into_iter().try_for_each(|index| self.start(index))?;
        }
        Ok(())
    }

    fn note_request(&mut self, flow: usize) {
        let arrival = &self.plan[flow];
        let (Some(number), traffic) = (arrival.request, arrival.traffic) else {
            return;
        };
        let next = self.requests.len();
        let index = *self.request_index.entry((traffic, number)).or_insert(next);
        if index == next {
            let start_ns = now_ns() - self.zero_ns;
            self.requests.push(Request {
                traffic,
                number,
                start_ns,
                rct_ns: None,
                missing: 0,
            });
        }
        self.requests[index].missing += 1;
    }

    /// Prepares a flow on a connection, if one is available, and returns it.
    fn assign(&mut self, flow: usize) -> Result<Option<usize>> {
        let arrival = self.plan[flow];
        let route = route(&arrival);
        self.flows[flow].started = true;
        if let Work::Until(stop) = arrival.work {
            let stop_ns = self.zero_ns + self.dilation.slow(Span::from_ps(stop.ticks())).as_ns();
            self.due.push(Reverse((stop_ns, Due::Stop(flow))));
        }
        let Take { connection, open } =
            self.pools
                .take(route, flow, arrival.kind.measured != Measured::Goodput);
        if let Some(index) = connection {
            self.prepare(flow, index)?;
        }
        if open {
            self.open(route)?;
        }
        Ok(connection)
    }

    fn prepare(&mut self, flow: usize, index: usize) -> Result<()> {
        let size = match self.plan[flow].work {
            Work::Send(size) => size.get(),
            Work::Until(_) => ENDLESS,
        };
        self.flows[flow].before = self.counters(index)?;
        self.flows[flow].connection = Some(index);
        let connection = self.sockets.get(index);
        let route = connection.route;
        let prepared = connection.prepare(flow, size);
        prepared.doing(|| format!("preparing a flow on {route:?}"))
    }

    fn start(&mut self, index: usize) -> Result<()> {
        let connection = self.sockets.get(index);
        let route = connection.route;
        let started = connection.start();
        started.doing(|| format!("starting a flow on {route:?}"))
    }

    /// For flows that have waited for a connection.
    fn begin(&mut self, flow: usize, index: usize) -> Result<()> {
        self.prepare(flow, index)?;
        self.start(index)
    }

    fn open(&mut self, route: Route) -> Result<()> {
        let asked = self.run.traffic[route.traffic].measured() == Measured::Incasts;
        self.sockets.open(route, asked)?;
        self.pools.opening(route);
        Ok(())
    }

    fn run_due_events(&mut self, observer: &mut dyn Observer) -> Result<()> {
        while let Some(&Reverse((at, due))) = self.due.peek() {
            let now = now_ns();
            if at > now {
                return Ok(());
            }
            self.due.pop();
            match due {
                Due::WindowOpens => self.open_window(now, observer)?,
                Due::WindowCloses => self.close_window(now, observer)?,
                Due::Tick => {
                    observer.tick(now)?;
                    self.due.push(Reverse((now + TICK_NS, Due::Tick)));
                }
                Due::Stop(flow) => self.stop(flow)?,
            }
        }
        Ok(())
    }

    fn open_window(&mut self, now: i64, observer: &mut dyn Observer) -> Result<()> {
        self.window_start = self.counters_by_entry()?;
        for flow in self.running_endless_flows() {
            if let Some(index) = self.flows[flow].connection {
                self.flows[flow].before = self.counters(index)?;
            }
        }
        observer.window_opens(now)
    }

    fn close_window(&mut self, now: i64, observer: &mut dyn Observer) -> Result<()> {
        for flow in self.running_endless_flows() {
            self.stop(flow)?;
        }
        let end = self.counters_by_entry()?;
        self.outcome.window = end
            .iter()
            .zip(&self.window_start)
            .map(|(e, s)| e.since(*s))
            .collect();
        observer.window_closes(now)
    }

    fn running_endless_flows(&self) -> Vec<usize> {
        let endless = |&flow: &usize| {
            let state = &self.flows[flow];
            state.started && !state.stopped && matches!(self.plan[flow].work, Work::Until(_))
        };
        (0..self.next).filter(endless).collect()
    }

    fn counters(&self, index: usize) -> Result<Counters> {
        self.sockets.all()[index]
            .counters()
            .doing(|| "reading TCP_INFO".into())
    }

    fn counters_by_entry(&self) -> Result<Vec<Counters>> {
        let mut sums = vec![Counters::default(); self.run.traffic.len()];
        for (index, connection) in self.sockets.all().iter().enumerate() {
            let sum = &mut sums[connection.route.traffic];
            *sum = sum.plus(self.counters(index)?);
        }
        Ok(sums)
    }

    fn stop(&mut self, flow: usize) -> Result<()> {
        match self.flows[flow].connection {
            Some(index) if !self.flows[flow].stopped => {
                self.flows[flow].stopped = true;
                self.sockets.get(index).stop();
                self.note_change(flow, index)
            }
            _ => Ok(()),
        }
    }

    fn note_change(&mut self, flow: usize, index: usize) -> Result<()> {
        self.flows[flow].change = self.counters(index)?.since(self.flows[flow].before);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        for source in self.sockets.events.wait()? {
            match source {
                Source::Timer => {}
                Source::Listener(host) => {
                    for index in self.sockets.accept(host)? {
                        self.note_if_up(index)?;
                    }
                }
                Source::Connection(index) => self.progress(index)?,
            }
        }
        Ok(())
    }

    fn progress(&mut self, index: usize) -> Result<()> {
        let connection = self.sockets.get(index);
        let route = connection.route;
        let was_up = connection.is_up();
        let Some(flow) = connection.flow else {
            connection
                .check_connected()
                .doing(|| format!("connecting {route:?}"))?;
            return if was_up {
                Ok(())
            } else {
                self.note_if_up(index)
            };
        };
        if connection
            .progress()
            .doing(|| format!("transferring on {route:?}"))?
        {
            self.finish_flow(flow, index)?;
            if let Some(next) = self.pools.free(route, index) {
                self.begin(next, index)?;
            }
        }
        Ok(())
    }

    fn note_if_up(&mut self, index: usize) -> Result<()> {
        let connection = &self.sockets.all()[index];
        if !connection.is_up() {
            return Ok(());
        }
        self.up += 1;
        match self.pools.up(connection.route, index) {
            Some(flow) => self.begin(flow, index),
            None => Ok(()),
        }
    }

    fn finish_flow(&mut self, flow: usize, index: usize) -> Result<()> {
        let now = now_ns();
        let arrival = self.plan[flow];
        self.flows[flow].fct_ns = Some(now - self.arrival_ns(&arrival));
        self.note_change(flow, index)?;
        self.unfinished -= 1;
        if let Some(number) = arrival.request {
            let request = &mut self.requests[self.request_index[&(arrival.traffic, number)]];
            request.missing -= 1;
            if request.missing == 0 {
                request.rct_ns = Some(now - self.zero_ns - request.start_ns);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome> {
        for flow in 0..self.flows.len() {
            let FlowState {
                connection, fct_ns, ..
            } = self.flows[flow];
            if let (Some(index), None, Work::Send(_)) = (connection, fct_ns, self.plan[flow].work) {
                self.note_change(flow, index)?;
            }
        }
        let start = self
            .window_start
            .iter()
            .copied()
            .fold(Counters::default(), Counters::plus);
        let end = self
            .counters_by_entry()?
            .into_iter()
            .fold(Counters::default(), Counters::plus);
        let flows = self.plan.iter().zip(&self.flows);
        let flows = flows.map(|(arrival, state)| Flow::of(arrival, state, self.dilation));
        Ok(Outcome {
            flows: flows.collect(),
            requests: self.requests,
            whole: end.since(start),
            connections: self.sockets.all().len(),
            ..self.outcome
        })
    }
}

fn route(arrival: &Arrival) -> Route {
    Route {
        traffic: arrival.traffic,
        src: arrival.src,
        dst: arrival.dst,
        slot: arrival.slot,
    }
}
