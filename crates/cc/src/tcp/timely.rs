// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY on hosts with Linux TCP: a rate from the gradient of the round-trip time (Mittal et al., SIGCOMM 2015). The
//! arithmetic is `law/cc/timely.h`, which the kernel runs too.
//! Differs from the paper, whose segments are messages of an RDMA NIC: a segment is a number of acknowledged packets; the
//! round-trip time is TCP's, which contains the host's stack; the first rate is the initial window in the
//! first round-trip time; a loss halves the rate once. The window is a constant, which bounds what is in flight.

use super::{in_kernel, Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl, PACKET_BYTES};
use crate::parameter::{kbit, parameters, Bounds, InLaw, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_law::cc::{self, TimelyCfg};
use onramp_units::{Rate, Span};

/// Section 4.4: a rate of which less is used does not grow.
const USED: f64 = 0.8;

parameters! { "timely" => TimelyCfg {}, {
    "t_low" t_low: Span = Span::from_us(50), SHORT => t_low_ns, "Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.";
    "t_high" t_high: Span = Span::from_us(500), SHORT => t_high_ns, "Above this round-trip time the rate shrinks at any gradient.";
    "min_rtt" min_rtt: Span = Span::from_us(20), SHORT => min_rtt_ns, "Round-trip time of the idle fabric, which scales the gradient.";
    "alpha" alpha: f64 = 0.875, PART => alpha_q16, "Weight of a new difference of round-trip times.";
    "beta" beta: f64 = 0.8, PART => beta_q16, "Fraction by which a gradient of 1 reduces the rate.";
    "delta" delta: Rate = kbit(1000 * 10), STEP => delta, "Step of additive increase.";
    "hai_falls" hai_falls: u32 = 5, TIMES => hai_falls, "Number of falling gradients in a row before the rate grows by `hai_steps`.";
    "min_rate" min_rate: Rate = kbit(1000 * 10), STEP => min_rate, "Lower bound of the rate.";
    "hai_steps" hai_steps: u32 = 5, Bounds::Count(1, 1000) => hai_steps, "Steps of hyper-active increase.";
    "hai_low" hai_low: bool = false, Bounds::Flag => hai_low, "Whether hyper-active increase counts every increase in a row, also below `t_low`, as the HPCC authors' code. `false`: only falling gradients above `t_low`, as algorithm 1.";
    "max_rate" max_rate: Rate = kbit(1000 * 10_000), STEP => max_rate, "Upper bound of the rate. Must be at least `min_rate`.";
    "segment" segment: u32 = 11, Bounds::Count(1, 1000) => segment_bytes via payload, "Packets that have one round-trip time, the least of their acknowledgements.";
    "cap" cap: u32 = 1000, Bounds::Count(4, 100_000) => cap_packets, "Packets that may be in flight.";
} }

/// Bytes of so many packets.
fn payload(packets: u32) -> u32 {
    packets.saturating_mul(PACKET_BYTES)
}

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "timely",
    about: "TIMELY (SIGCOMM 2015), for TCP",
    linux: Linux::Loads(|given| in_kernel(given, Params::law)),
    marks: false,
    short_segments: true,
    parameters: PARAMETERS,
    ordered: &[("t_low", "t_high"), ("min_rate", "max_rate")],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Timely(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Timely {
    cfg: TimelyCfg,
    flow: cc::Timely,
    /// Packets.
    initial_window: u32,
}

impl Timely {
    pub fn new(params: &Params) -> Timely {
        Timely {
            cfg: params.law(),
            flow: cc::Timely::default(),
            initial_window: 0,
        }
    }

    /// Packets a second, once it has a rate.
    fn pace(&self) -> Option<f64> {
        let bytes_per_s = self.flow.rate();
        (bytes_per_s > 0).then(|| bytes_per_s as f64 / f64::from(PACKET_BYTES))
    }
}

impl WindowControl for Timely {
    fn begin(&mut self, window: &mut Window) {
        self.initial_window = window.packets;
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        window.packets = self.cfg.cap_packets;
        let Some(rate) = self.pace() else {
            let first = f64::from(self.initial_window) / acked.rtt.as_s_f64().max(1e-9);
            let bytes_per_s = (first * f64::from(PACKET_BYTES)) as u64;
            cc::timely_begin(&self.cfg, &mut self.flow, bytes_per_s);
            return;
        };
        let sent = acked.sample.packets_per_s;
        let is_limited = acked.sample.app_limited && sent.is_some_and(|sent| sent < USED * rate);
        let (bytes, rtt_ns) = (payload(acked.packets), acked.rtt.in_law());
        cc::timely_acked(&self.cfg, &mut self.flow, bytes, rtt_ns, is_limited.into());
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        window.packets.max(2)
    }

    fn repairing_from(&mut self, _in_flight: u32, _delivered: u64, _window: &mut Window) {
        cc::timely_loss(&self.cfg, &mut self.flow);
    }

    fn on_timeout(&mut self) {
        cc::timely_loss(&self.cfg, &mut self.flow);
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
