// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Coded probes: two packets sent shortly one after the other. Both met the same conditions, most
//! likely no queue at all, if their spacing at the receiver is what it was at the sender.

use onramp_units::{Clock, Span, Time};

/// The clock of the host that speaks of an edge: 1 ns ticks.
pub enum Near {}
/// The clock of the edge's other end: 1 ns ticks.
pub enum Far {}

impl Clock for Near {
    const NAME: &'static str = "near";
    const PS_PER_TICK: i64 = 1_000;
}
impl Clock for Far {
    const NAME: &'static str = "far";
    const PS_PER_TICK: i64 = 1_000;
}

/// A probe: sent on its sender's clock, received on its receiver's.
pub struct Probe<From, To> {
    /// When it left.
    pub sent: Time<From>,
    /// When it arrived.
    pub received: Time<To>,
}

impl<From, To> Clone for Probe<From, To> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<From, To> Copy for Probe<From, To> {}

/// Two probes of one direction, in the order in which they were sent.
pub struct Pair<From, To> {
    /// The first.
    pub first: Probe<From, To>,
    /// The one sent right after it.
    pub second: Probe<From, To>,
}

impl<From, To> Clone for Pair<From, To> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<From, To> Copy for Pair<From, To> {}

impl<From: Clock, To: Clock> Pair<From, To> {
    /// How far the spacing on arrival is from that on departure; both clocks run so nearly alike
    /// that over 50 us they differ by a nanosecond or two.
    pub fn distortion(&self) -> Span {
        let sent = self.second.sent - self.first.sent;
        let received = self.second.received - self.first.received;
        let difference = received - sent;
        difference.max(-difference)
    }
}

/// Which pairs are pure enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Purity {
    /// Those that are distorted by no more than this.
    Within(Span),
    /// The least distorted part of a window's, but never fewer than [`FEWEST`]; and all that are
    /// distorted by no more than `within`.
    Best {
        /// 0 to 1.
        part: f64,
        /// Where stamps are exact, what all pairs have in common may delay some of them by more than
        /// others, and these must not be lost for a nanosecond.
        within: Span,
    },
}

/// Pairs that [`Purity::Best`] keeps at least, if there are that many.
pub const FEWEST: usize = 20;

/// Who stamps probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// The NIC.
    Hardware,
    /// The kernel.
    Software,
}

impl Stamps {
    /// Between the probes of a pair: longer than a receiver takes its interrupts together.
    pub const fn spacing(self) -> Span {
        match self {
            Stamps::Hardware => Span::from_us(10),
            Stamps::Software => Span::from_us(50),
        }
    }

    /// Which pairs to keep.
    pub const fn purity(self) -> Purity {
        match self {
            Stamps::Hardware => Purity::Within(Span::from_ns(50)),
            Stamps::Software => Purity::Best {
                part: 0.15,
                within: Span::from_ns(200),
            },
        }
    }
}

/// The pure ones among one direction's pairs of a window, in no particular order.
pub fn pure<From: Clock, To: Clock>(
    mut pairs: Vec<Pair<From, To>>,
    purity: Purity,
) -> Vec<Pair<From, To>> {
    match purity {
        Purity::Within(bound) => pairs.retain(|pair| pair.distortion() <= bound),
        Purity::Best { part, within } => {
            let best = ((pairs.len() as f64 * part) as usize).max(FEWEST);
            let good = pairs.iter().filter(|pair| pair.distortion() <= within);
            let keep = best.max(good.count());
            if keep < pairs.len() {
                pairs.select_nth_unstable_by_key(keep, Pair::distortion);
                pairs.truncate(keep);
            }
        }
    }
    pairs
}

/// A probe as a point: when it was at the near end, and what the far clock then seems to be ahead.
/// Probes to the far end say too much, by their delay; probes from it too little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// On the near clock.
    pub at: Time<Near>,
    /// Far clock less near clock, ns.
    pub ahead_ns: i64,
}

/// A direction of an edge.
pub trait Direction {
    /// The point that a probe of this direction makes.
    fn point(&self) -> Point;
}

impl Direction for Probe<Near, Far> {
    fn point(&self) -> Point {
        Point {
            at: self.sent,
            ahead_ns: self.received.ticks().saturating_sub(self.sent.ticks()),
        }
    }
}

impl Direction for Probe<Far, Near> {
    fn point(&self) -> Point {
        Point {
            at: self.received,
            ahead_ns: self.sent.ticks().saturating_sub(self.received.ticks()),
        }
    }
}

/// The points of pairs, two a pair.
pub fn points<From, To>(pairs: &[Pair<From, To>]) -> Vec<Point>
where
    Probe<From, To>: Direction,
{
    let both = |pair: &Pair<From, To>| [pair.first.point(), pair.second.point()];
    pairs.iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(sent: [i64; 2], received: [i64; 2]) -> Pair<Near, Far> {
        let probe = |n: usize| Probe {
            sent: Time::from_ticks(sent[n]),
            received: Time::from_ticks(received[n]),
        };
        Pair {
            first: probe(0),
            second: probe(1),
        }
    }

    #[test]
    fn a_pair_that_keeps_its_spacing_is_pure() {
        let kept = pure(
            vec![
                pair([0, 50_000], [900, 50_950]),
                pair([0, 50_000], [900, 51_901]),
                pair([0, 50_000], [900, 49_899]),
            ],
            Purity::Within(Span::from_us(1)),
        );
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].distortion(), Span::from_ns(50));
    }

    fn best(part: f64) -> Purity {
        let within = Span::ZERO;
        Purity::Best { part, within }
    }

    #[test]
    fn what_is_hardly_distorted_is_kept_whatever_its_delay() {
        let exact = (0..90).map(|_| pair([0, 50_000], [1_280, 51_280]));
        let quick = (0..10).map(|_| pair([0, 50_000], [0, 50_003]));
        let within = Span::from_ns(200);
        let kept = pure(
            exact.chain(quick).collect(),
            Purity::Best { part: 0.15, within },
        );
        assert_eq!(kept.len(), 100);
    }

    #[test]
    fn the_best_are_the_least_distorted() {
        let pairs: Vec<_> = (0..1000)
            .map(|n| pair([0, 50_000], [0, 50_000 + (n * 7919) % 1000]))
            .collect();
        let kept = pure(pairs.clone(), best(0.1));
        assert_eq!(kept.len(), 100);
        assert!(kept
            .iter()
            .all(|pair| pair.distortion() < Span::from_ns(100)));
        assert_eq!(pure(pairs[..30].to_vec(), best(0.1)).len(), FEWEST);
        assert_eq!(pure(pairs[..5].to_vec(), best(0.1)).len(), 5);
    }

    #[test]
    fn out_and_back_enclose_the_truth() {
        // The far clock is 1000 ns ahead, a way takes 300 ns.
        let out = Probe::<Near, Far> {
            sent: Time::from_ticks(0),
            received: Time::from_ticks(1300),
        };
        let back = Probe::<Far, Near> {
            sent: Time::from_ticks(2000),
            received: Time::from_ticks(1300),
        };
        assert_eq!((out.point().ahead_ns, back.point().ahead_ns), (1300, 700));
        assert_eq!(back.point().at, Time::from_ticks(1300));
    }

    proptest! {
        #[test]
        fn absurd_stamps_harm_nobody(a: i64, b: i64, c: i64, d: i64) {
            let pair = pair([a, b], [c, d]);
            prop_assert!(pair.distortion() >= Span::ZERO);
            let kept = pure(vec![pair], best(0.5));
            points(&kept);
        }
    }
}
