// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY on hosts with Linux TCP: a rate from the gradient of the round-trip time (Mittal et al., SIGCOMM 2015). The
//! arithmetic is `law/cc/timely.h`, which the kernel runs too.
//! Differs from the paper, whose segments are messages of an RDMA NIC: a segment is a number of acknowledged packets; the
//! round-trip time is TCP's, which contains the host's stack; the first rate is the initial window in the
//! first round-trip time; a loss halves the rate once. The window is a constant, which bounds what is in flight.

use super::{Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl, PACKET_BYTES};
use crate::parameter::{kbit, parameters, Bounds, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_law::TimelyConfig;
use onramp_units::{Rate, Span};

/// Section 4.4: a rate of which less is used does not grow.
const USED: f64 = 0.8;

parameters! { "timely", {
    "t_low" low: Span = Span::from_us(50), SHORT, "Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.";
    "t_high" high: Span = Span::from_us(500), SHORT, "Above this round-trip time the rate shrinks at any gradient.";
    "min_rtt" min_rtt: Span = Span::from_us(20), SHORT, "Round-trip time of the idle fabric, which scales the gradient.";
    "alpha" ewma: f64 = 0.875, PART, "Weight of a new difference of round-trip times.";
    "beta" decrease: f64 = 0.8, PART, "Fraction by which a gradient of 1 reduces the rate.";
    "delta" step: Rate = kbit(1000 * 10), STEP, "Step of additive increase.";
    "hai_falls" hyper_after: u32 = 5, TIMES, "Number of falling gradients in a row before the rate grows by `hai_steps`.";
    "min_rate" min_rate: Rate = kbit(1000 * 10), STEP, "Lower bound of the rate.";
    "hai_steps" hyper: u32 = 5, Bounds::Count(1, 1000), "Steps of hyper-active increase.";
    "hai_low" hyper_low: bool = false, Bounds::Flag, "Whether hyper-active increase counts every increase in a row, also below `t_low`, as the HPCC authors' code. `false`: only falling gradients above `t_low`, as algorithm 1.";
    "max_rate" max_rate: Rate = kbit(1000 * 10_000), STEP, "Upper bound of the rate. Must be at least `min_rate`.";
    "segment" segment: u32 = 11, Bounds::Count(1, 1000), "Packets that have one round-trip time, the least of their acknowledgements.";
    "cap" cap: u32 = 1000, Bounds::Count(4, 100_000), "Packets that may be in flight.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "timely",
    about: "TIMELY (SIGCOMM 2015), for TCP",
    linux: Linux::Loads,
    marks: false,
    short_segments: true,
    parameters: PARAMETERS,
    ordered: &[("t_low", "t_high"), ("min_rate", "max_rate")],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: || TcpAlgorithm::Timely(Params::default()),
};

fn bytes(packets: f64) -> u64 {
    (packets * f64::from(PACKET_BYTES)) as u64
}

#[derive(Debug, Clone)]
pub struct Timely {
    law: onramp_law::Timely,
    cap: u32,
    /// Packets.
    initial_window: u32,
}

impl Timely {
    pub fn new(params: &Params) -> Timely {
        let config = TimelyConfig {
            low: params.low,
            high: params.high,
            min_rtt: params.min_rtt,
            step: params.step,
            bounds: (params.min_rate, params.max_rate),
            beta: params.decrease,
            ewma: params.ewma,
            hyper: (params.hyper_after, params.hyper),
            hyper_low: params.hyper_low,
            segment_bytes: bytes(f64::from(params.segment)) as u32,
        };
        Timely {
            law: onramp_law::Timely::new(&config),
            cap: params.cap,
            initial_window: 0,
        }
    }

    /// Packets a second.
    fn pace(&self) -> Option<f64> {
        Some(self.law.bytes_per_s()? as f64 / f64::from(PACKET_BYTES))
    }
}

impl WindowControl for Timely {
    fn begin(&mut self, window: &mut Window) {
        self.initial_window = window.packets;
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        window.packets = self.cap;
        let Some(rate) = self.pace() else {
            let first = f64::from(self.initial_window) / acked.rtt.as_s_f64().max(1e-9);
            self.law.begin(bytes(first));
            return;
        };
        let sent = acked.sample.packets_per_s;
        let is_limited = acked.sample.app_limited && sent.is_some_and(|sent| sent < USED * rate);
        let new = bytes(f64::from(acked.packets)) as u32;
        self.law.acked(new, acked.rtt, is_limited);
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        window.packets.max(2)
    }

    fn repairing_from(&mut self, _in_flight: u32, _delivered: u64, _window: &mut Window) {
        self.law.loss();
    }

    fn on_timeout(&mut self) {
        self.law.loss();
    }

    #[inline]
    fn owns_window(&self) -> bool {
        true
    }

    #[inline]
    fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
        let first = f64::from(self.initial_window) / smoothed_rtt.as_s_f64().max(1e-9);
        Some(self.pace().unwrap_or(first))
    }
}
