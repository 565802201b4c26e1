// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What becomes of the flows of a plan, written by whoever has an end of one.
//!
//! Each field of a flow has one writer: its sender or its receiver. Nobody reads while events are
//! handled, so the order of writes to different fields means nothing.

use super::flow::{Flow, Outcome};
use onramp_scenario::Work;
use onramp_units::{Bytes, Sim, Span, Time};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

/// By flow. A time in ps; zero: it has not come.
#[derive(Default)]
struct Cell {
    acked: AtomicI64,
    /// Time of the arrival; of a flow that has not arrived: less than zero by the bytes that have.
    arrived: AtomicI64,
    held: AtomicI64,
    retransmissions: AtomicU32,
    timeouts: AtomicU32,
    /// One more than the number that names its way; zero: it has not started.
    path: AtomicU32,
}

/// Outcomes of all flows of a plan.
pub(crate) struct Outcomes {
    cells: Vec<Cell>,
    /// By flow that waits for others, which are the last of the plan: when it started, as above.
    starts: Vec<AtomicI64>,
}

/// What the sender of a flow knows of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    pub held: Span,
    pub retransmissions: u32,
    pub timeouts: u32,
}

impl Outcomes {
    /// Outcomes of so many flows, of which the last `waiting` wait for others.
    pub fn new(flows: usize, waiting: usize) -> Outcomes {
        Outcomes {
            cells: (0..flows).map(|_| Cell::default()).collect(),
            starts: (0..waiting).map(|_| AtomicI64::default()).collect(),
        }
    }

    /// Where the start of a flow is noted, if it waits for others.
    fn start(&self, flow: usize) -> Option<&AtomicI64> {
        let first = self.cells.len() - self.starts.len();
        self.starts.get(flow.checked_sub(first)?)
    }

    /// A flow that has waited for others starts.
    pub fn started(&self, flow: u32, at: Time<Sim>) {
        let start = self.start(flow as usize).expect("it has waited");
        start.store(at.ticks(), Relaxed);
    }

    /// When it started, of a flow that waits for others or, by `plan`, for none.
    pub fn start_of(&self, flow: usize, plan: Time<Sim>) -> Option<Time<Sim>> {
        let Some(start) = self.start(flow) else {
            return Some(plan);
        };
        Some(Time::from_ticks(start.load(Relaxed))).filter(|start| *start > Time::ZERO)
    }

    /// The sender has the last acknowledgement, so long after the start.
    pub fn acked(&self, flow: u32, after: Span) {
        self.cells[flow as usize]
            .acked
            .store(after.as_ps(), Relaxed);
    }

    /// The receiver has everything, so long after the start.
    pub fn arrived(&self, flow: u32, after: Span) {
        self.cells[flow as usize]
            .arrived
            .store(after.as_ps(), Relaxed);
    }

    pub fn has_arrived(&self, flow: u32) -> bool {
        self.cells[flow as usize].arrived.load(Relaxed) > 0
    }

    /// The receiver has so much of it, unless it has everything.
    pub fn received(&self, flow: u32, bytes: u64) {
        if !self.has_arrived(flow) {
            let arrived = &self.cells[flow as usize].arrived;
            arrived.store(-(bytes as i64), Relaxed);
        }
    }

    /// It takes the way of its hosts' flow number `ordinal`.
    pub fn path(&self, flow: u32, ordinal: u16) {
        let path = &self.cells[flow as usize].path;
        path.store(u32::from(ordinal) + 1, Relaxed);
    }

    /// The number that names its way, if it has started.
    pub fn path_of(&self, flow: usize) -> Option<u16> {
        let path = self.cells[flow].path.load(Relaxed);
        path.checked_sub(1).map(|ordinal| ordinal as u16)
    }

    pub fn sent(&self, flow: u32, sent: Sent) {
        let cell = &self.cells[flow as usize];
        cell.held.store(sent.held.as_ps(), Relaxed);
        cell.retransmissions.store(sent.retransmissions, Relaxed);
        cell.timeouts.store(sent.timeouts, Relaxed);
    }

    /// What became of `flow`, number `n` of the plan.
    pub fn of(&self, n: usize, flow: &Flow) -> Outcome {
        let cell = &self.cells[n];
        let time =
            |cell: &AtomicI64| Some(Span::from_ps(cell.load(Relaxed))).filter(|t| *t > Span::ZERO);
        let arrived = time(&cell.arrived);
        let received = match (flow.work, arrived) {
            (Work::Send(size), Some(_)) => size,
            _ => Bytes::new(cell.arrived.load(Relaxed).min(0).unsigned_abs()),
        };
        Outcome {
            acked: time(&cell.acked),
            arrived,
            received,
            held: Span::from_ps(cell.held.load(Relaxed)),
            retransmissions: cell.retransmissions.load(Relaxed),
            timeouts: cell.timeouts.load(Relaxed),
        }
    }
}
