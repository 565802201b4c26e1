// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Completion times.

use super::Metrics;
use crate::summary::Summary;
use onramp_scenario::{HostKind, Run};

/// Completion times of flows or requests that started after the warm-up.
#[derive(Clone, Default)]
pub(super) struct Times {
    /// To the last byte at the receiver.
    received_us: Vec<f64>,
    /// To the last acknowledgement at the sender, of NIC hosts.
    acked_us: Vec<f64>,
    pub unfinished: u64,
}

impl Times {
    pub fn add(&mut self, received_ns: Option<i64>, acked_ns: Option<i64>) {
        self.received_us.extend(received_ns.map(us));
        self.acked_us.extend(acked_ns.map(us));
        self.unfinished += u64::from(received_ns.is_none());
    }

    /// The times of all together.
    pub fn of<'a>(all: impl Iterator<Item = &'a Times>) -> Times {
        let mut sum = Times::default();
        for times in all {
            sum.received_us.extend(&times.received_us);
            sum.acked_us.extend(&times.acked_us);
            sum.unfinished += times.unfinished;
        }
        sum
    }

    /// `NAME_us` at receivers and, for NIC hosts, `NAME_acked_us`.
    pub fn put(self, run: &Run, name: &str, suffix: &str, metrics: &mut Metrics) {
        let received = Summary::of(self.received_us);
        metrics.put(&format!("{name}_us{suffix}"), received);
        if is_nic(run) {
            let acked = Summary::of(self.acked_us);
            metrics.put(&format!("{name}_acked_us{suffix}"), acked);
        }
    }
}

/// Whether hosts know when the last byte was acknowledged.
pub(super) fn is_nic(run: &Run) -> bool {
    run.host.kind == HostKind::Nic
}

pub(super) fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}
