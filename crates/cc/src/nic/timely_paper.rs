//! TIMELY as its paper has it: rates by completed segments (Mittal et al., SIGCOMM 2015). The arithmetic is
//! `law/cc/timely.h`, which the kernel's `timely` runs too.
//! The round-trip time of a segment is that of its last packet: from when it left to its acknowledgement. The paper takes
//! the time since the whole segment was handed to the NIC, less the segment's time on the line; the two differ by what
//! other flows send from the same NIC meanwhile. The paper does not say which rate a flow begins with: `first_rate`.

use super::{red, scaled, Burst, Preset};
use super::{Ack, Algorithm, CongestionControl, Feedback, Limits, PathFacts};
use crate::parameter::{parameters, Bounds, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_law::{Timely, TimelyConfig};
use onramp_units::{Rate, Sim, Span, Time};

pub const FEEDBACK: Feedback = Feedback::TimeStamp;
pub const MOVES_NEXT_PACKET: bool = false;

/// Of which a segment has whole packets.
pub(super) const SEGMENT: Bounds = Bounds::Count(1_000, 1_000_000);
/// Section 4.4: a rate of which less is used does not grow.
const USED: f64 = 0.8;

parameters! { "timely_paper", |line| {
    "t_low" low: Span = Span::from_us(50), SHORT, "Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.";
    "t_high" high: Span = Span::from_us(500), SHORT, "Above this round-trip time the rate shrinks at any gradient.";
    "min_rtt" min_rtt: Span = Span::from_us(20), SHORT, "Round-trip time of the idle fabric, which scales the gradient.";
    "alpha" ewma: f64 = 0.875, PART, "Weight of a new difference of round-trip times.";
    "beta" decrease: f64 = 0.8, PART, "Fraction by which a gradient of 1 reduces the rate.";
    "delta" step: Rate = scaled(line, 0.001), STEP, "Step of additive increase.";
    "hai_falls" hyper_after: u32 = 5, TIMES, "Number of falling gradients in a row before the rate grows by `hai_steps`.";
    "hai_steps" hyper: u32 = 5, Bounds::Count(1, 1000), "Steps of hyper-active increase.";
    "min_rate" min_rate: Rate = scaled(line, 0.001), STEP, "Lower bound of the rate. The upper bound is the line's.";
    "first_rate" first_rate: Rate = line, STEP, "The rate with which a flow begins.";
    "segment_bytes" segment_bytes: u32 = 16_000, SEGMENT, "Payload that has one round-trip time and leaves as one burst.";
    "burst_rate" burst_rate: Rate = line, STEP, "Rate within a burst (the paper's NIC pacing).";
} }

/// Per segment.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "timely_paper",
    about: "TIMELY by segments, as in its paper",
    parameters: PARAMETERS,
    ordered: &[("t_low", "t_high")],
    fairness: FAIR,
    algorithm: |line| Algorithm::TimelyPaper(Params::reference(line)),
    ecn: red,
    hold_acks: false,
}];

impl Params {
    /// Whether the window changes with time alone, without acknowledgements.
    #[inline]
    pub fn window_follows_time(&self) -> bool {
        false
    }
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct TimelyPaper {
    law: Timely,
    burst: Burst,
    /// End of the segment that completes next.
    end: u64,
    /// When the last packet of the last completed segment left.
    last_left: Option<Time<Sim>>,
}

impl TimelyPaper {
    pub fn new(params: &Params, path: &PathFacts) -> TimelyPaper {
        let mut law = Timely::new(&TimelyConfig {
            low: params.low,
            high: params.high,
            min_rtt: params.min_rtt,
            step: params.step,
            bounds: (params.min_rate, path.line_rate),
            beta: params.decrease,
            ewma: params.ewma,
            hyper: (params.hyper_after, params.hyper),
            segment_bytes: params.segment_bytes,
        });
        law.begin(params.first_rate.bits_per_s() / 8);
        TimelyPaper {
            law,
            burst: Burst {
                bytes: params.segment_bytes,
                rate: params.burst_rate,
            },
            end: u64::from(params.segment_bytes),
            last_left: None,
        }
    }

    fn rate(&self) -> Rate {
        let bytes = self.law.bytes_per_s().expect("it has begun");
        Rate::from_bits_per_s(bytes * 8).expect("at least the bound")
    }

    /// Whether the flow has used less of its rate than it may, between two segments.
    fn is_limited(&self, bytes: u64, left: Time<Sim>) -> bool {
        let Some(gap) = self.last_left.map(|last| left - last) else {
            return false;
        };
        let used = bytes as f64 * 8.0 / gap.as_s_f64().max(1e-12);
        used < USED * self.rate().bits_per_s() as f64
    }
}

impl CongestionControl for TimelyPaper {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.acked < self.end {
            return;
        }
        let segment = u64::from(self.burst.bytes);
        let bytes = ack.acked + segment - self.end;
        let left = Time::ZERO + (ack.now - Time::ZERO - ack.rtt);
        let is_limited = self.is_limited(bytes, left);
        self.law.sample(bytes, ack.rtt, is_limited);
        self.last_left = Some(left);
        self.end = ack.acked - ack.acked % segment + segment;
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate(),
            window_bytes: u64::MAX,
        }
    }

    #[inline]
    fn burst(&self) -> Option<Burst> {
        Some(self.burst)
    }
}
