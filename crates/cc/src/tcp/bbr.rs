// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! BBRv1: a model of the path, its bandwidth and its delay, instead of losses (Cardwell et al., ACM
//! Queue 14(5), 2016; constants as in Linux's tcp_bbr.c).
//! Differs from Linux: no policer model ("lt_bw"); what is in flight is not counted at the time at which
//! the next segment may leave, but now; the cycle starts with the phase after the draining one
//! instead of at random.

mod aggregation;

use super::{Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl, PACKET_BYTES};
use crate::parameter::{parameters, Bounds, LONG};
use crate::FAIR;
use onramp_units::{Sim, Span, Time};

use aggregation::Aggregation;

/// Phases of the cycle: one that probes, one that drains, the others at the estimate.
const PHASES: usize = 8;
/// bbr_pacing_margin_percent: a little below the estimate.
const MARGIN: f64 = 0.99;
const MIN_WINDOW: u32 = 4;
/// The path is full when bandwidth has not grown by a quarter in three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// tso_segs_goal: packets of a segment, at least, and at most: 64 KiB without headers.
const SEGMENT: (f64, f64) = (2.0, 45.0);

parameters! { "bbr", {
    "startup_gain" startup_gain: f64 = 2.885, Bounds::Fraction(1.0, 10.0), "Gain of pacing rate and window in Startup. Drain uses its inverse as the pacing gain.";
    "window_gain" window_gain: f64 = 2.0, Bounds::Fraction(1.0, 10.0), "Window as a multiple of the estimated bandwidth-delay product.";
    "probe_gain" probe_gain: f64 = 1.25, Bounds::Fraction(1.0, 10.0), "Pacing gain of the ProbeBW phase that probes for more bandwidth.";
    "drain_gain" drain_gain: f64 = 0.75, Bounds::Fraction(0.1, 1.0), "Pacing gain of the next phase, which drains the queue.";
    "bandwidth_rounds" bandwidth_rounds: u32 = 10, Bounds::Count(1, 1000), "Number of round trips for which the largest bandwidth sample counts.";
    "min_rtt_window" min_rtt_window: Span = Span::from_s(10), LONG, "Time for which the shortest round-trip time counts.";
    "probe_rtt" probe_rtt: Span = Span::from_ms(200), LONG, "Duration of ProbeRTT, which keeps the path almost empty to measure the shortest round-trip time.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "bbr",
    about: "BBRv1, as in Linux",
    linux: Linux::Has,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Bbr(Params::default()),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

#[derive(Debug, Clone)]
pub struct Bbr {
    params: Params,
    /// Packets.
    initial_window: u32,
    mode: Mode,
    /// Best samples, packets a second, with their rounds; falling.
    bandwidths: Vec<(u32, f64)>,
    round: u32,
    round_end: u64,
    min_rtt: Span,
    min_rtt_at: Time<Sim>,
    full_bandwidth: f64,
    full_rounds: u32,
    phase: usize,
    phase_at: Time<Sim>,
    probe_rtt_until: Option<Time<Sim>>,
    /// Window before a loss or a probe of the RTT.
    prior_window: u32,
    /// Packet conservation: the first round after a loss.
    conserve_until: Option<u64>,
    recovering: bool,
    aggregation: Aggregation,
}

impl Bbr {
    pub fn new(params: &Params) -> Bbr {
        Bbr {
            params: *params,
            initial_window: 0,
            mode: Mode::Startup,
            bandwidths: Vec::new(),
            round: 0,
            round_end: 0,
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            phase: 2,
            phase_at: Time::ZERO,
            probe_rtt_until: None,
            prior_window: 0,
            conserve_until: None,
            recovering: false,
            aggregation: Aggregation::new(),
        }
    }

    fn bandwidth(&self) -> f64 {
        self.bandwidths.first().map_or(0.0, |&(_, best)| best)
    }

    /// Packets that fill the path.
    fn bdp(&self) -> f64 {
        match self.min_rtt == Span::MAX {
            true => f64::from(self.initial_window),
            false => self.bandwidth() * self.min_rtt.as_s_f64(),
        }
    }

    /// bbr_quantization_budget: three segments on top, so that ends that work in segments never run
    /// dry, in whole pairs; and two more in the phase that probes.
    fn with_budget(&self, packets: f64, small_queue: Span) -> f64 {
        let worth = self.pace() * small_queue.as_s_f64();
        let segment = worth.floor().clamp(SEGMENT.0, SEGMENT.1);
        let pairs = ((packets + 3.0 * segment) / 2.0).ceil();
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        2.0 * pairs + if probes { 2.0 } else { 0.0 }
    }

    /// bbr_inflight: what is in flight if `gain` paths are full.
    fn full(&self, gain: f64, acked: &Acked) -> f64 {
        self.with_budget((gain * self.bdp()).ceil(), acked.pacing.small_queue)
    }

    /// Packets a second.
    fn pace(&self) -> f64 {
        self.gains().0 * self.bandwidth() * MARGIN
    }

    /// Gains of pace and window.
    fn gains(&self) -> (f64, f64) {
        let startup = self.params.startup_gain;
        match self.mode {
            Mode::Startup => (startup, startup),
            Mode::Drain => (1.0 / startup, startup),
            Mode::ProbeBandwidth => (self.cycle_gain(), self.params.window_gain),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    fn cycle_gain(&self) -> f64 {
        match self.phase {
            0 => self.params.probe_gain,
            1 => self.params.drain_gain,
            _ => 1.0,
        }
    }

    fn count_round(&mut self, acked: &Acked) -> bool {
        let new = acked.sample.prior_delivered >= self.round_end;
        if new {
            self.round += 1;
            self.round_end = acked.delivered;
        }
        new
    }

    /// A running maximum; application-limited samples count only if they are the best.
    fn take_bandwidth(&mut self, acked: &Acked) {
        let Some(sample) = acked.sample.packets_per_s else {
            return;
        };
        if acked.sample.app_limited && sample < self.bandwidth() {
            return;
        }
        while self
            .bandwidths
            .last()
            .is_some_and(|&(_, worse)| worse <= sample)
        {
            self.bandwidths.pop();
        }
        self.bandwidths.push((self.round, sample));
        let oldest = self.round.saturating_sub(self.params.bandwidth_rounds);
        self.bandwidths.retain(|&(round, _)| round >= oldest);
    }

    fn check_full(&mut self, new_round: bool, app_limited: bool) {
        if !new_round || app_limited || self.full_rounds >= FULL_ROUNDS {
            return;
        }
        if self.bandwidth() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth();
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
        }
    }

    fn change_mode(&mut self, acked: &Acked) {
        if self.mode == Mode::Startup && self.full_rounds >= FULL_ROUNDS {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && f64::from(acked.in_flight) <= self.full(1.0, acked) {
            self.probe_bandwidth(acked.now);
        }
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(acked) {
            self.phase = (self.phase + 1) % PHASES;
            self.phase_at = acked.now;
        }
    }

    fn probe_bandwidth(&mut self, now: Time<Sim>) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = 2;
        self.phase_at = now;
    }

    fn phase_is_over(&self, acked: &Acked) -> bool {
        let full_length = acked.now - self.phase_at > self.min_rtt;
        let before = f64::from(acked.in_flight + acked.packets);
        match self.cycle_gain() {
            gain if gain > 1.0 => full_length && (acked.lost || before >= self.full(gain, acked)),
            gain if gain < 1.0 => full_length || before <= self.full(1.0, acked),
            _ => full_length,
        }
    }

    /// Every 10 s with no smaller RTT: almost empties the path to see it.
    fn take_rtt(&mut self, acked: &Acked, window: &mut Window) {
        let expired = acked.now - self.min_rtt_at > self.params.min_rtt_window;
        if acked.rtt <= self.min_rtt || expired {
            self.min_rtt = acked.rtt;
            self.min_rtt_at = acked.now;
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.prior_window = window.packets;
            self.probe_rtt_until = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        match self.probe_rtt_until {
            None if acked.in_flight <= MIN_WINDOW => {
                self.probe_rtt_until = Some(acked.now + self.params.probe_rtt.max(self.min_rtt));
            }
            Some(until) if acked.now >= until => {
                self.min_rtt_at = acked.now;
                window.packets = window.packets.max(self.prior_window);
                match self.full_rounds >= FULL_ROUNDS {
                    true => self.probe_bandwidth(acked.now),
                    false => self.mode = Mode::Startup,
                }
            }
            _ => {}
        }
    }

    fn set_window(&mut self, window: &mut Window, acked: &Acked) {
        let (_, gain) = self.gains();
        let mut target = (gain * self.bdp()).ceil();
        if self.full_rounds >= FULL_ROUNDS {
            target += self.aggregation.packets(self.bandwidth());
        }
        let target = self.with_budget(target, acked.pacing.small_queue) as u32;
        let conserving = self.conserve_until.is_some_and(|end| acked.delivered < end);
        if !conserving {
            self.conserve_until = None;
        }
        if conserving {
            window.packets = window.packets.max(acked.in_flight + acked.packets);
        } else if self.full_rounds >= FULL_ROUNDS {
            window.packets = (window.packets + acked.packets).min(target);
        } else if window.packets < target || acked.delivered < 10 {
            window.packets += acked.packets;
        }
        window.packets = window.packets.max(MIN_WINDOW);
        if self.mode == Mode::ProbeRtt {
            window.packets = window.packets.min(MIN_WINDOW);
        }
    }
}

impl WindowControl for Bbr {
    fn begin(&mut self, window: &mut Window) {
        self.initial_window = window.packets;
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if self.recovering && !acked.repairing {
            self.recovering = false;
            self.conserve_until = None;
            window.packets = window.packets.max(self.prior_window);
        }
        let new_round = self.count_round(acked);
        self.take_bandwidth(acked);
        let (bandwidth, most) = (self.bandwidth(), window.packets);
        self.aggregation
            .on_ack(acked.now, acked.packets, new_round, bandwidth, most);
        self.check_full(new_round, acked.sample.app_limited);
        self.change_mode(acked);
        self.take_rtt(acked, window);
        self.set_window(window, acked);
    }

    /// The window is BBR's own affair; only the first round after a loss keeps to what arrives.
    fn on_loss(&mut self, window: &Window) -> u32 {
        self.prior_window = window.packets;
        window.packets.max(2)
    }

    fn repairing_from(&mut self, in_flight: u32, delivered: u64, window: &mut Window) {
        self.recovering = true;
        self.conserve_until = Some(delivered + u64::from(in_flight));
        window.packets = (in_flight + 1).max(MIN_WINDOW);
    }

    fn on_timeout(&mut self) {
        self.recovering = true;
        self.full_bandwidth = 0.0;
    }

    #[inline]
    fn owns_window(&self) -> bool {
        true
    }

    fn estimate(&self) -> Option<f64> {
        (!self.bandwidths.is_empty()).then(|| self.bandwidth() * f64::from(PACKET_BYTES))
    }

    #[inline]
    fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
        if self.bandwidths.is_empty() {
            // Initially the window in a round trip, at least a millisecond.
            let bandwidth = f64::from(self.initial_window) / smoothed_rtt.as_s_f64().max(1e-3);
            return Some(self.gains().0 * bandwidth);
        }
        Some(self.pace())
    }
}
