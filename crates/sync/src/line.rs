// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The line between an edge's two clouds of points: how far the far clock is ahead of the near one,
//! and how fast that grows.
//!
//! Points of probes to the far end lie above the truth by at least the shortest delay, points of
//! probes from it below. The truth runs through the gap between the clouds, in its middle if the
//! way out and the way back are equally long. Huygens takes the line with the widest margin, as a
//! soft-margin support vector machine does. Its margin is perpendicular and so depends on how time
//! and offset are scaled; ours is vertical, which does not:
//!
//!   maximise over slope, offset, m:   m - C sum_i max(0, m - l_i (y_i - slope x_i - offset))
//!
//! with l = 1 above and -1 below. For a given slope, offset + m and offset - m separate, each is a
//! quantile of one cloud, and what remains is
//!
//!   width(slope) = mean of the k least (y - slope x) above - mean of the k greatest below,
//!
//! k = 1/2C. The sum of the k least of linear functions is concave, so the best slope is found by
//! bisection on where width stops to rise: its derivative is the difference of those k points' mean
//! times. No solver, no scaling, no start value.
//!
//! The points nearest the gap also say how well they fix the line. Had all of them met nothing, they would lie at one height: by
//! how much they differ, each end of the gap may be off. A slope is as likely as the best one if its gap is narrower by less than
//! that, so few points, late points, and points of the two directions at different times leave the slope open.

use onramp_units::Time;

use crate::probe::{Near, Point, Stamps};

/// Clocks that drift apart faster than this are not clocks: 1 ms in a second.
const STEEPEST: f64 = 1e-3;
/// Halvings of the range of slopes: to less than 10^-15.
const HALVINGS: u32 = 42;
/// Windows whose pairs a line is fitted to: few pairs meet no queue under load, and probing three times as
/// often costs more than a line that is a window older (docs/clock.md has numbers).
pub const WINDOWS: usize = 3;
/// A cloud with fewer points says nothing.
pub const FEWEST_POINTS: usize = 8;
/// Steps in which a range of slopes is found: to a thousandth of it.
const RANGINGS: u32 = 24;
/// Part of the heights' difference by which the gap may be narrower with another slope. It makes drifts of a calm network as
/// uncertain as they are (`--test synthetic`); the mesh corrects what is left (fleet/found.rs).
const NARROWER: f64 = 0.25;

/// How soft the margin is: the part of a cloud's points that may lie inside, and the least number.
/// Time stamps taken late at the sender put points there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softness {
    /// Part of the points of a cloud.
    pub part: f64,
    /// At least so many.
    pub least: usize,
}

impl Softness {
    /// What suits these stamps. Those of a NIC are exact, and then the points nearest the gap are the best ones:
    /// with fewer of them fewer have met a queue. The noise of a kernel's is averaged.
    pub const fn of(stamps: Stamps) -> Softness {
        match stamps {
            Stamps::Hardware => Softness {
                part: 0.01,
                least: 2,
            },
            Stamps::Software => Softness {
                part: 0.05,
                least: 4,
            },
        }
    }
}

/// The far clock relative to the near one over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Mean time of the points that fix the line, on the near clock: here errors of offset and drift are independent.
    pub at: Time<Near>,
    /// Far clock less near clock then, in whole ns: near the truth, and exact however far apart two
    /// machines have booted.
    pub about_ns: i64,
    /// What the far clock is ahead of that, ns.
    pub ahead_ns: f64,
    /// What that grows by, ns a ns of the near clock.
    pub drift: f64,
    /// Half the gap between the clouds: the shortest one-way delay, if both ways are alike, ns.
    /// Negative if the clouds overlap.
    pub delay_ns: f64,
    /// Points of the smaller cloud.
    pub points: usize,
    /// How exactly the points fix the offset at `at`, ns.
    pub sigma_ns: f64,
    /// How exactly they fix the drift.
    pub drift_sigma: f64,
}

impl Line {
    /// What the far clock is ahead of `about_ns` at `at`, ns.
    pub fn ahead_at(&self, at: Time<Near>) -> f64 {
        self.ahead_ns + self.drift * at.ticks().saturating_sub(self.at.ticks()) as f64
    }

    /// How exactly that is known, ns.
    pub fn sigma_at(&self, at: Time<Near>) -> f64 {
        let since_ns = at.ticks().saturating_sub(self.at.ticks()) as f64;
        libm::hypot(self.sigma_ns, self.drift_sigma * since_ns)
    }
}

/// The line between `above` (probes to the far end) and `below` (probes from it).
/// `None`: one of them has fewer than [`FEWEST_POINTS`] points, all at one instant, or the best slope is no clock's: pairs
/// that all met a growing queue tell none.
pub fn fit(above: &[Point], below: &[Point], softness: Softness) -> Option<Line> {
    let points = above.len().min(below.len());
    if points < FEWEST_POINTS {
        return None;
    }
    let (first, last) = range(above.iter().chain(below).map(|point| point.at.ticks()))?;
    let length = last.checked_sub(first).filter(|length| *length > 0)?;
    let middle = first + length / 2;
    let zero = above[0].ahead_ns;
    let mut above = Cloud::new(above, middle, zero, 1.0, softness);
    let mut below = Cloud::new(below, middle, zero, -1.0, softness);

    let (mut low, mut high) = (-STEEPEST, STEEPEST);
    for _ in 0..HALVINGS {
        let slope = (low + high) / 2.0;
        // The derivative of width(slope).
        let rises = below.edge(slope).time - above.edge(slope).time;
        *(if rises > 0.0 { &mut low } else { &mut high }) = slope;
    }
    let drift = (low + high) / 2.0;
    if drift.abs() > 0.999 * STEEPEST {
        return None;
    }
    let (top, bottom) = (above.edge(drift), below.edge(drift));
    let width = top.height + bottom.height;
    let apart_ns = (above.apart_ns(), below.apart_ns());
    let narrower = width - NARROWER * (apart_ns.0 + apart_ns.1).max(1.0);
    let mut range = |far: f64| {
        let (mut inside, mut outside) = (drift, far);
        for _ in 0..RANGINGS {
            let slope = (inside + outside) / 2.0;
            let is_inside = above.edge(slope).height + below.edge(slope).height >= narrower;
            *(if is_inside { &mut inside } else { &mut outside }) = slope;
        }
        (inside - drift).abs()
    };
    let drift_sigma = range(STEEPEST).max(range(-STEEPEST));
    let time = (top.time + bottom.time) / 2.0;
    Some(Line {
        at: Time::from_ticks(middle.saturating_add(time.round() as i64)),
        about_ns: zero,
        ahead_ns: (top.height - bottom.height) / 2.0 + drift * time.round(),
        drift,
        delay_ns: width / 2.0,
        points,
        sigma_ns: libm::hypot(apart_ns.0, apart_ns.1) / 2.0,
        drift_sigma,
    })
}

fn range(values: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

/// One side's points, turned so that the gap is below them.
struct Cloud {
    points: Vec<Turned>,
    /// Points that the margin gives up.
    inside: usize,
    sign: f64,
}

#[derive(Clone, Copy)]
struct Turned {
    /// Since the middle of the window, ns.
    time: f64,
    /// `sign` times what the far clock is ahead, ns.
    ahead: f64,
    /// The same less the slope tried last.
    height: f64,
}

/// Means over the points nearest the gap.
struct Edge {
    time: f64,
    height: f64,
}

impl Cloud {
    fn new(points: &[Point], middle: i64, zero: i64, sign: f64, softness: Softness) -> Cloud {
        let inside = ((points.len() as f64 * softness.part) as usize)
            .max(softness.least)
            .min(points.len());
        let turn = |point: &Point| Turned {
            time: point.at.ticks().saturating_sub(middle) as f64,
            ahead: sign * point.ahead_ns.saturating_sub(zero) as f64,
            height: 0.0,
        };
        Cloud {
            points: points.iter().map(turn).collect(),
            inside,
            sign,
        }
    }

    /// The points nearest the gap when the line has this slope.
    fn edge(&mut self, slope: f64) -> Edge {
        let slope = slope * self.sign;
        for point in &mut self.points {
            point.height = point.ahead - slope * point.time;
        }
        let k = self.inside;
        self.points
            .select_nth_unstable_by(k - 1, |a, b| a.height.total_cmp(&b.height));
        let nearest = &self.points[..k];
        let mean = |of: fn(&Turned) -> f64| nearest.iter().map(of).sum::<f64>() / k as f64;
        Edge {
            time: mean(|point| point.time),
            height: mean(|point| point.height),
        }
    }

    /// By how much the points nearest the gap lie above the very nearest one on average, with the slope tried last, ns. Never of
    /// fewer than [`FEWEST_POINTS`]: two pairs may agree by chance.
    fn apart_ns(&mut self) -> f64 {
        let count = self.inside.max(FEWEST_POINTS).min(self.points.len());
        self.points
            .select_nth_unstable_by(count - 1, |a, b| a.height.total_cmp(&b.height));
        let heights = self.points[..count].iter().map(|point| point.height);
        let least = heights.clone().fold(f64::INFINITY, f64::min);
        heights.map(|height| height - least).sum::<f64>() / count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW_NS: i64 = 2_000_000_000;

    /// Points `delay` above and below a line, every `every` ns, less those that `met` a queue.
    fn clouds(ahead: i64, ppb: i64, delay: i64, late: impl Fn(i64) -> i64) -> [Vec<Point>; 2] {
        let truth = |at: i64| ahead + (i128::from(at) * i128::from(ppb) / 1_000_000_000) as i64;
        let cloud = |sign: i64| {
            let points = (0..400).map(|n| {
                let at = n * WINDOW_NS / 400;
                Point {
                    at: Time::from_ticks(at),
                    ahead_ns: truth(at) + sign * (delay + late(2 * n + sign)),
                }
            });
            points.collect()
        };
        [cloud(1), cloud(-1)]
    }

    fn whole(line: &Line) -> f64 {
        line.about_ns as f64 + line.ahead_ns
    }

    #[test]
    fn without_noise_the_line_is_exact() {
        let [above, below] = clouds(123_456, 20_000, 5_000, |_| 0);
        let line = fit(&above, &below, Softness::of(Stamps::Software)).expect("enough points");
        let middle = 123_456.0 + 20e-6 * line.at.ticks() as f64;
        assert!((whole(&line) - middle).abs() < 1.0, "{line:?}");
        assert!((line.drift - 20e-6).abs() < 1e-9, "{line:?}");
        assert!((line.delay_ns - 5_000.0).abs() < 1.0, "{line:?}");
    }

    /// Most points queued for up to 200 us, more on the way out than back.
    #[test]
    fn queues_do_not_move_the_line() {
        let late = |n: i64| match n * 7919 % 100 {
            r if r < if n % 2 == 1 { 20 } else { 40 } => 0,
            r => r * r * 20,
        };
        let [above, below] = clouds(0, -8_000, 5_000, late);
        let line = fit(&above, &below, Softness::of(Stamps::Software)).expect("enough points");
        assert!((line.drift + 8e-6).abs() < 2e-9, "{line:?}");
        assert!(
            (whole(&line) + 8e-6 * line.at.ticks() as f64).abs() < 2.0,
            "{line:?}"
        );
    }

    /// Every pair met a queue that grew by 2 ms a second.
    #[test]
    fn a_slope_that_is_no_clocks_is_no_line() {
        let [above, below] = clouds(0, 2_000_000, 5_000, |_| 0);
        assert_eq!(fit(&above, &below, Softness::of(Stamps::Software)), None);
    }

    #[test]
    fn a_point_inside_the_gap_is_given_up() {
        let [mut above, below] = clouds(0, 10_000, 5_000, |_| 0);
        above[100].ahead_ns -= 4_000;
        let line = fit(&above, &below, Softness::of(Stamps::Software)).expect("enough points");
        // It is one of 20 that make the margin.
        let middle = 10e-6 * line.at.ticks() as f64;
        assert!((whole(&line) - middle).abs() < 4_000.0 / 20.0, "{line:?}");
    }

    #[test]
    fn clocks_that_booted_years_apart_lose_nothing() {
        let years = 100_000_000_000_000_000;
        let [above, below] = clouds(years, 10_000, 5_000, |_| 0);
        let line = fit(&above, &below, Softness::of(Stamps::Software)).expect("enough points");
        let rest = (line.about_ns - years) as f64 + line.ahead_ns;
        assert!(
            (rest - 10e-6 * line.at.ticks() as f64).abs() < 1.0,
            "{line:?}"
        );
    }

    #[test]
    fn too_little_says_nothing() {
        let [above, below] = clouds(0, 0, 1_000, |_| 0);
        assert_eq!(
            fit(&above[..7], &below, Softness::of(Stamps::Software)),
            None
        );
        let at_once = vec![above[0]; 10];
        assert_eq!(
            fit(&at_once, &at_once, Softness::of(Stamps::Software)),
            None
        );
    }

    proptest! {
        #[test]
        fn absurd_points_harm_nobody(
            above in prop::collection::vec((any::<i64>(), any::<i64>()), 8..40),
            below in prop::collection::vec((any::<i64>(), any::<i64>()), 8..40),
        ) {
            let points = |from: &[(i64, i64)]| -> Vec<Point> {
                let point = |(at, ahead_ns): &(i64, i64)| Point {
                    at: Time::from_ticks(*at),
                    ahead_ns: *ahead_ns,
                };
                from.iter().map(point).collect()
            };
            if let Some(line) = fit(&points(&above), &points(&below), Softness::of(Stamps::Software)) {
                prop_assert!(line.ahead_ns.is_finite() && line.drift.abs() <= STEEPEST);
            }
        }
    }
}
