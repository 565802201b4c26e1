//! BBRv1: a model of the path, its bandwidth and its delay, instead of losses (Cardwell et al., ACM
//! Queue 14(5), 2016; constants as in Linux's tcp_bbr.c).
//! Differs from Linux: no policer model ("lt_bw"), no aggregation estimate ("extra_acked"); the
//! cycle starts with the phase after the draining one instead of at random.

use super::{Acked, Window, WindowControl};
use onramp_scenario::Tuning;
use onramp_units::{Sim, Span, Time};

/// Phases of the cycle: one that probes, one that drains, the others at the estimate.
const PHASES: usize = 8;
/// bbr_pacing_margin_percent: a little below the estimate.
const MARGIN: f64 = 0.99;
const MIN_WINDOW: u32 = 4;
/// The path is full when bandwidth has not grown by a quarter in three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// tso_segs_goal: three segments of at least two packets on top.
const BURST_ALLOWANCE: f64 = 6.0;

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// 2/ln 2 fills the path in the fewest rounds; its inverse drains what that left in the queue.
    pub startup_gain: f64,
    pub window_gain: f64,
    /// Pace of the cycle's first two phases.
    pub probe_gain: f64,
    pub drain_gain: f64,
    /// Rounds and time for which the best samples count.
    pub bandwidth_rounds: u32,
    pub min_rtt_window: Span,
    /// For how long the path is kept almost empty.
    pub probe_rtt: Span,
}

impl Default for Params {
    /// Linux's.
    fn default() -> Params {
        Params {
            startup_gain: 2.885,
            window_gain: 2.0,
            probe_gain: 1.25,
            drain_gain: 0.75,
            bandwidth_rounds: 10,
            min_rtt_window: Span::from_s(10),
            probe_rtt: Span::from_ms(200),
        }
    }
}

impl Params {
    pub(crate) fn tune(&mut self, given: &Tuning) {
        given.fraction("startup_gain", &mut self.startup_gain);
        given.fraction("window_gain", &mut self.window_gain);
        given.fraction("probe_gain", &mut self.probe_gain);
        given.fraction("drain_gain", &mut self.drain_gain);
        given.count("bandwidth_rounds", &mut self.bandwidth_rounds);
        given.span("min_rtt_window", &mut self.min_rtt_window);
        given.span("probe_rtt", &mut self.probe_rtt);
    }
}

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
}

impl Bbr {
    pub(super) fn new(params: &Params) -> Bbr {
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

    /// Of pace and window.
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
        if self.mode == Mode::Drain && f64::from(acked.in_flight) <= self.bdp() {
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
        let in_flight = f64::from(acked.in_flight);
        match self.cycle_gain() {
            gain if gain > 1.0 => full_length && (acked.lost || in_flight >= gain * self.bdp()),
            gain if gain < 1.0 => full_length || in_flight <= self.bdp(),
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
        let quantum = if self.phase == 0 { 2.0 } else { 0.0 };
        let target = (gain * self.bdp() + BURST_ALLOWANCE + quantum).ceil() as u32;
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
    fn begin(&mut self, window: &Window) {
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

    fn owns_window(&self) -> bool {
        true
    }

    fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
        let (gain, _) = self.gains();
        let bandwidth = match self.bandwidths.is_empty() {
            // Initially the window in a round trip, at least a millisecond.
            true => f64::from(self.initial_window) / smoothed_rtt.as_s_f64().max(1e-3),
            false => self.bandwidth() * MARGIN,
        };
        Some(gain * bandwidth)
    }
}
