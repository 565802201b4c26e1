//! TIMELY: rate from the gradient of the RTT (Mittal et al., SIGCOMM 2015, alg. 1).
//! Differs from the paper: as the HPCC authors' simulator, it updates once per window instead of
//! per segment, counts every increase towards hyper-active increase, and starts at line rate.

use super::{scaled, sum, window_if, Ack, CongestionControl, Feedback, Limits, PathFacts};
use onramp_scenario::Tuning;
use onramp_units::{Rate, Span};

pub const FEEDBACK: Feedback = Feedback::TimeStamp;
pub const MOVES_NEXT_PACKET: bool = false;

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Below T_low the rate grows whatever the gradient.
    pub low: Span,
    /// Above T_high it shrinks whatever the gradient.
    pub high: Span,
    /// Minimum RTT of the fabric, which scales the gradient.
    pub min_rtt: Span,
    /// alpha: weight of a new RTT difference.
    pub ewma: f64,
    /// beta: part of the rate that a gradient of 1 takes away.
    pub decrease: f64,
    /// delta.
    pub additive: Rate,
    /// Step after `hyper_after` increases in a row.
    pub hyper: Rate,
    /// Increases before the hyper step.
    pub hyper_after: u32,
    /// The rate is never below this.
    pub min_rate: Rate,
    /// "+w": cap what is in flight.
    pub window: bool,
}

impl Params {
    /// The HPCC authors' simulator's; steps in proportion to the line rate.
    pub fn reference(line: Rate) -> Params {
        Params {
            low: Span::from_us(50),
            high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            ewma: 0.875,
            decrease: 0.8,
            additive: scaled(line, 0.001),
            hyper: scaled(line, 0.005),
            hyper_after: 5,
            min_rate: scaled(line, 0.01),
            window: false,
        }
    }

    /// Whether the window changes with time alone, without acknowledgements.
    pub fn window_follows_time(&self) -> bool {
        false
    }

    pub fn tune(&mut self, given: &Tuning) {
        given.span("t_low", &mut self.low);
        given.span("t_high", &mut self.high);
        given.span("min_rtt", &mut self.min_rtt);
        given.fraction("alpha", &mut self.ewma);
        given.fraction("beta", &mut self.decrease);
        given.rate("delta", &mut self.additive);
        given.rate("rate_hai", &mut self.hyper);
        given.count("hai_after", &mut self.hyper_after);
        given.rate("min_rate", &mut self.min_rate);
    }
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct Timely {
    params: Params,
    path: PathFacts,
    rate: Rate,
    last_rtt: Span,
    /// rtt_diff, in ns.
    difference_ns: f64,
    increases: u32,
    /// The update after this byte's acknowledgement is the next.
    last_update: u64,
}

impl Timely {
    pub fn new(params: &Params, path: &PathFacts) -> Timely {
        Timely {
            params: *params,
            path: *path,
            rate: path.line_rate,
            last_rtt: Span::ZERO,
            difference_ns: 0.0,
            increases: 0,
            last_update: 0,
        }
    }

    /// Alg. 1.
    fn update(&mut self, rtt: Span) {
        let p = &self.params;
        let new_difference_ns = ns(rtt - self.last_rtt);
        self.difference_ns = (1.0 - p.ewma) * self.difference_ns + p.ewma * new_difference_ns;
        let gradient = self.difference_ns / ns(p.min_rtt);
        if rtt < p.low {
            self.increase();
        } else if rtt > p.high {
            self.shrink(1.0 - p.decrease * (1.0 - ns(p.high) / ns(rtt)));
        } else if gradient <= 0.0 {
            self.increase();
        } else {
            self.shrink((1.0 - p.decrease * gradient).max(0.0));
        }
    }

    fn increase(&mut self) {
        let hyper = self.increases >= self.params.hyper_after;
        let step = if hyper {
            self.params.hyper
        } else {
            self.params.additive
        };
        self.rate = sum(self.rate, step).min(self.path.line_rate);
        self.increases += 1;
    }

    fn shrink(&mut self, factor: f64) {
        self.rate = scaled(self.rate, factor).max(self.params.min_rate);
        self.increases = 0;
    }
}

fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1000.0
}

impl CongestionControl for Timely {
    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.acked <= self.last_update {
            return;
        }
        if self.last_update != 0 {
            self.update(ack.rtt);
        }
        if ack.next > self.last_update {
            self.last_update = ack.next;
            self.last_rtt = ack.rtt;
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate,
            window_bytes: window_if(self.params.window, self.rate, &self.path),
        }
    }
}
