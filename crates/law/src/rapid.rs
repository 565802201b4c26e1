// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TCP RAPID's gaps, estimates and rate: [`Rapid`].

use crate::raw;
use onramp_units::{Rate, Span};

/// Parameters (TCP RAPID, sections II and IV).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RapidConfig {
    /// Least and greatest rate.
    pub bounds: (Rate, Rate),
    /// Time in which the rate rises.
    pub tau: Span,
    /// Part of the way down to a lower estimate that an update goes, up to 1.
    pub fall: f64,
    /// Ratio of neighbouring rates of a stream, and in the start; above 1.
    pub spread: (f64, f64),
    /// Packets at each of the four rates, 1 to 48.
    pub each: u32,
    /// Streams an update, at least 1.
    pub gamma: u32,
    /// Streams in a row with lost packets that halve the rate, at least 1.
    pub patience: u32,
    /// Payload of a full packet.
    pub packet_bytes: u32,
    /// Entries that must queue to count, and their delay above the least of the stream.
    pub least: (u32, Span),
    /// Denoising: a spike's height above the gap before it and after it, and the number of passes.
    pub spike: (Span, Span, u32),
    /// A queue that stands through a stream is drained from here on, up to 1 s.
    pub standing: Span,
}

/// What is known of a packet that was sent once and has arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// In the order of the data.
    pub number: u32,
    /// All packets between it and the one reported before have arrived, too.
    pub are_all: bool,
    /// The application did not have enough data when it was sent.
    pub is_limited: bool,
    /// The packet that is sent next.
    pub next: u32,
    /// When it was sent, on the sender's clock, and when it arrived, on any clock of the receiver. Nanoseconds.
    pub sent_ns: u64,
    /// See above.
    pub arrived_ns: u64,
    /// Its round-trip time.
    pub rtt: Span,
}

/// What an arrival led to.
pub use raw::onr_rapid_news as Estimate;

/// One connection's rate and its streams (law/cc/rapid.h).
#[derive(Clone)]
pub struct Rapid {
    config: raw::onr_rapid_cfg,
    state: raw::onr_rapid,
    stream: Box<raw::onr_rapid_stream>,
}

impl std::fmt::Debug for Rapid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

fn bytes_per_s(rate: Rate) -> u64 {
    (rate.bits_per_s() / 8).clamp(1, 1 << 40)
}

#[inline]
fn ns(span: Span) -> u64 {
    span.as_ps().max(0) as u64 / 1000
}

fn ns_u32(span: Span) -> u32 {
    ns(span).min(1_000_000_000) as u32
}

fn q16(ratio: f64) -> u32 {
    (ratio * 65536.0).round() as u32
}

impl Rapid {
    /// A connection without a rate.
    pub fn new(config: &RapidConfig) -> Rapid {
        let most_each = raw::ONR_RAPID_MOST / raw::ONR_RAPID_RATES;
        Rapid {
            config: raw::onr_rapid_cfg {
                min_rate: bytes_per_s(config.bounds.0),
                max_rate: bytes_per_s(config.bounds.1),
                tau_ns: ns(config.tau).clamp(1, 1 << 40),
                fall_q16: q16(config.fall.clamp(0.0, 1.0)),
                spread_q16: q16(config.spread.0.clamp(1.001, 16.0)),
                start_spread_q16: q16(config.spread.1.clamp(1.001, 16.0)),
                each: config.each.clamp(1, most_each),
                gamma: config.gamma.max(1),
                patience: config.patience.max(1),
                packet_bytes: config.packet_bytes.clamp(1, 65_535),
                least_run: config.least.0,
                least_rise_ns: ns_u32(config.least.1),
                spike_rise_ns: ns_u32(config.spike.0),
                spike_fall_ns: ns_u32(config.spike.1),
                passes: config.spike.2,
                standing_ns: ns_u32(config.standing),
                unused: 0,
            },
            state: raw::onr_rapid::default(),
            stream: Box::default(),
        }
    }

    /// R_avg, bytes a second; none before the connection has a rate.
    #[inline]
    pub fn bytes_per_s(&self) -> Option<u64> {
        (self.state.rate > 0).then_some(self.state.rate)
    }

    /// The last estimate of the available bandwidth, bytes a second, and the number of estimates so far.
    pub fn last_estimate(&self) -> (u64, u32) {
        (self.state.last_estimate, self.state.seen)
    }

    /// Begins with this rate, within the bounds, and the packet `next`.
    pub fn begin(&mut self, bytes_per_s: u64, next: u32) {
        // SAFETY: reads the configuration, writes state and stream.
        unsafe {
            raw::onr_rapid_begin(
                &self.config,
                &mut self.state,
                &mut *self.stream,
                bytes_per_s,
                next,
            );
        }
    }

    /// Begins with the rate of an initial window in this round-trip time.
    pub fn begin_after(&mut self, rtt: Span, next: u32) {
        // SAFETY: reads the configuration.
        let rate = unsafe { raw::onr_rapid_first_rate(&self.config, ns(rtt)) };
        self.begin(rate, next);
    }

    /// Time from the packet before `number` to this one, at its first transmission. Ask once for each, in order.
    #[inline]
    pub fn gap(&mut self, number: u32) -> Span {
        // SAFETY: reads the configuration, writes the state.
        let gap_ns = unsafe { raw::onr_rapid_gap_ns(&self.config, &mut self.state, number) };
        Span::from_ns(gap_ns.min(1 << 50) as i64)
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, arrival: &Arrival) -> Estimate {
        let arrival = raw::onr_rapid_arrival {
            number: arrival.number,
            are_all: arrival.are_all.into(),
            is_limited: arrival.is_limited.into(),
            next: arrival.next,
            sent_ns: arrival.sent_ns,
            arrived_ns: arrival.arrived_ns,
            rtt_ns: ns(arrival.rtt),
        };
        // SAFETY: reads configuration and arrival, writes state and stream.
        unsafe {
            raw::onr_rapid_arrived(&self.config, &mut self.state, &mut *self.stream, &arrival)
        }
    }

    /// Halves the rate after a timeout; streams begin anew with the packet `next`.
    pub fn back_off(&mut self, next: u32) {
        // SAFETY: reads the configuration, writes state and stream.
        unsafe {
            raw::onr_rapid_back_off(&self.config, &mut self.state, &mut *self.stream, next);
        }
    }
}

#[cfg(test)]
mod tests;
