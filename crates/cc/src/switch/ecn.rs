// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Marks by the length of the egress queue (RED on the instantaneous queue, as in DCTCP and DCQCN). Lengths apply to
//! ports at one rate, by default the hosts', and are proportional to the rate at others. Its keys are `network.ecn`, because
//! the virtual
//! rack has them too.

use super::{Lines, Rule, Seen, SwitchRule, Verdict};
use crate::nic::Marks;
use crate::Curve;
use onramp_units::{Bytes, Rate};

/// Name in scenarios.
pub const NAME: &str = "ecn";

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// No packet is marked at or below this length.
    pub min: Bytes,
    /// All packets are marked above this length, unless the curve says otherwise.
    pub max: Bytes,
    /// How the fraction of marked packets grows from zero at `min`. Above `max` a hyperbola stays as it is there.
    pub curve: Curve,
    /// Scales the curve.
    pub max_fraction: f64,
    /// Rate of the ports for which the lengths are; `None`: that of the fastest host.
    pub at: Option<Rate>,
    /// Whether the queue on arrival decides; if not, the queue on departure does.
    pub at_enqueue: bool,
}

impl From<Marks> for Rule {
    fn from(marks: Marks) -> Rule {
        Rule::Ecn(Ecn {
            min: marks.min,
            max: marks.max,
            max_fraction: marks.max_fraction,
            curve: Curve::Line,
            at: None,
            at_enqueue: false,
        })
    }
}

pub struct AtPort {
    params: Ecn,
    min: u64,
    max: u64,
}

impl AtPort {
    pub fn new(params: &Ecn, lines: Lines) -> AtPort {
        let lines = Lines {
            hosts: params.at.unwrap_or(lines.hosts),
            ..lines
        };
        AtPort {
            params: *params,
            min: lines.in_proportion(params.min).get(),
            max: lines.in_proportion(params.max).get(),
        }
    }

    fn verdict(&self, seen: &mut Seen<'_>) -> Verdict {
        let queue = seen.queue.get();
        let marks = match self.params.curve.between(queue, self.min, self.max) {
            Some(part) => (seen.uniform)() < self.params.max_fraction * part,
            None => queue > self.max,
        };
        match marks {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }
}

impl SwitchRule for AtPort {
    fn asked_from(&self) -> Bytes {
        Bytes::new(self.min.saturating_add(1))
    }

    #[inline]
    fn arrives(&mut self, seen: &mut Seen<'_>) -> Verdict {
        match self.params.at_enqueue {
            true => self.verdict(seen),
            false => Verdict::Pass,
        }
    }

    #[inline]
    fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
        match self.params.at_enqueue {
            true => Verdict::Pass,
            false => self.verdict(seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_units::{Span, Time};

    /// A fifth at most is marked between 100 and 200 B.
    fn marked(curve: Curve, queue: u64, uniform: f64) -> bool {
        let hosts = "100 Gbit/s".parse().unwrap();
        let ecn = Ecn {
            min: Bytes::new(100),
            max: Bytes::new(200),
            max_fraction: 0.2,
            curve,
            at: None,
            at_enqueue: true,
        };
        let mut rule = AtPort::new(&ecn, Lines { port: hosts, hosts });
        let mut seen = Seen {
            now: Time::ZERO,
            queue: Bytes::new(queue),
            packet: Bytes::new(1_000),
            waited: Span::ZERO,
            uniform: &mut || uniform,
        };
        assert_eq!(rule.leaves(&mut seen), Verdict::Pass);
        rule.arrives(&mut seen) == Verdict::Mark
    }

    #[test]
    fn marks_grow_in_steps_whose_middles_are_on_the_line() {
        let marked = |queue, uniform| marked(Curve::Steps(8), queue, uniform);
        // Of 12.5 B each, from 100 on: the first has half of an eighth of 20 %.
        for queue in [101, 112] {
            assert!(marked(queue, 0.0124) && !marked(queue, 0.0126), "{queue}");
        }
        assert!(marked(113, 0.0374) && !marked(113, 0.0376));
        assert!(marked(200, 0.1874) && !marked(200, 0.1876));
        assert!(!marked(100, 0.0) && marked(201, 1.0));
    }

    #[test]
    fn marks_grow_from_none_to_all() {
        let marked = |queue, uniform| marked(Curve::Line, queue, uniform);
        assert!(!marked(100, 0.0));
        assert!(marked(150, 0.09) && !marked(150, 0.11));
        assert!(marked(201, 1.0));
    }

    /// d is 100 B, k is 5.
    #[test]
    fn marks_grow_by_the_curve_of_tiny_buffer_tcp() {
        let marked = |queue, uniform| marked(Curve::Hyperbola, queue, uniform);
        assert!(!marked(100, 0.0));
        assert!(marked(125, 0.0399) && !marked(125, 0.0401));
        for queue in [200, 201, 5_000] {
            assert!(marked(queue, 0.0999) && !marked(queue, 0.1001), "{queue}");
        }
    }
}
