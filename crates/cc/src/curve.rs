// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Curves by which switches mark packets, and the steps of a real switch that come nearest to the curve of Tiny Buffer
//! TCP.

use onramp_units::Bytes;

/// Fraction of marked packets at x bytes above the threshold; d is the length of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// x/d.
    Line,
    /// The same in this number of equal steps: step i of n has (i - 1/2)/n.
    Steps(u32),
    /// x/(x + d), where d is a bandwidth-delay product ("Tiny Buffer TCP", equation 6).
    Hyperbola,
}

impl Curve {
    /// At `part` = x/d, above 0 and at most 1.
    pub fn at(self, part: f64) -> f64 {
        match self {
            Curve::Line => part,
            Curve::Steps(steps) => ((part * f64::from(steps)).ceil() - 0.5) / f64::from(steps),
            Curve::Hyperbola => part / (part + 1.0),
        }
    }

    /// At a queue of so many bytes, where the curve goes from `min` to `max` bytes. None where a switch marks nothing
    /// (up to `min`) or all (above `max`). Above `max` the hyperbola stays as it is there.
    #[inline]
    pub fn between(self, queue: u64, min: u64, max: u64) -> Option<f64> {
        if queue <= min || queue > max && self != Curve::Hyperbola {
            return None;
        }
        Some(self.at((queue.min(max) - min) as f64 / (max - min) as f64))
    }
}

/// What the steps of a switch are to come near to ("Tiny Buffer TCP", section 6.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// No packet is marked at or below this queue.
    pub min: Bytes,
    /// The steps end here; the switch marks every packet above.
    pub max: Bytes,
    /// Bandwidth-delay product of the port.
    pub bdp: Bytes,
    /// Packets that a mark takes from a window; the curve is divided by it.
    pub most_cut: u32,
    /// Steps of the switch.
    pub steps: u32,
}

/// The nearest steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Fraction of marked packets at the end of the last step, as a switch is configured (P_max).
    pub max_fraction: f64,
    /// Sum of the squared differences at queues of every kilobyte.
    pub squared_error: f64,
}

/// Queues are compared at every so many bytes.
const GRID: u64 = 1000;

impl Target {
    /// The ideal fraction at a queue (equations 6 and 9, divided by k).
    pub fn ideal(&self, queue: Bytes) -> f64 {
        let above = queue.get().saturating_sub(self.min.get()) as f64;
        let part = (above / self.bdp.get() as f64).min(1.0);
        Curve::Hyperbola.at(part) / f64::from(self.most_cut)
    }

    /// That of the steps, for P_max.
    pub fn stepped(&self, queue: Bytes, max_fraction: f64) -> f64 {
        let above = queue.get().saturating_sub(self.min.get()) as f64;
        let part = above / (self.max.get() - self.min.get()) as f64;
        match above > 0.0 {
            true => max_fraction * Curve::Steps(self.steps).at(part.min(1.0)),
            false => 0.0,
        }
    }

    /// Queues at which the curves are compared.
    fn queues(&self) -> impl Iterator<Item = Bytes> {
        (self.min.get()..=self.max.get())
            .step_by(GRID as usize)
            .map(Bytes::new)
    }

    /// The least squares, where P_max is a multiple of `unit`.
    pub fn fit(&self, unit: f64) -> Fit {
        let (mut product, mut square) = (0.0, 0.0);
        for queue in self.queues() {
            let shape = self.stepped(queue, 1.0);
            product += self.ideal(queue) * shape;
            square += shape * shape;
        }
        // A parabola in P_max: the nearest multiple is the best.
        let max_fraction = ((product / square / unit).round() * unit).clamp(unit, 1.0);
        let difference = |queue| self.ideal(queue) - self.stepped(queue, max_fraction);
        Fit {
            max_fraction,
            squared_error: self.queues().map(|queue| difference(queue).powi(2)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(most_cut: u32, bdp_kb: u64) -> Fit {
        let kb = |n: u64| Bytes::new(n * 1000);
        let target = Target {
            min: kb(138),
            max: kb(550),
            bdp: kb(bdp_kb),
            most_cut,
            steps: 8,
        };
        target.fit(0.05)
    }

    /// The errors are the paper's for 200 kB, although its text says 180 kB (facts/tbtcp.md).
    #[test]
    fn the_fit_of_table_1() {
        let paper = [(0.7, 6.66), (0.35, 1.67), (0.25, 0.76), (0.2, 0.49)];
        for (k, (max_fraction, squared_error)) in (1..).zip(paper) {
            for bdp_kb in [180, 200] {
                let fit = fit(k, bdp_kb);
                assert!(
                    (fit.max_fraction - max_fraction).abs() < 1e-9,
                    "{k}: {fit:?}"
                );
            }
            let error = fit(k, 200).squared_error;
            assert!((error / squared_error - 1.0).abs() < 0.02, "{k}: {error}");
        }
    }

    #[test]
    fn the_ideal_curve_begins_at_the_threshold_and_ends_at_a_half() {
        let kb = |n: u64| Bytes::new(n * 1000);
        let target = Target {
            min: kb(100),
            max: kb(500),
            bdp: kb(200),
            most_cut: 1,
            steps: 8,
        };
        let at = |n| target.ideal(kb(n));
        assert_eq!((at(0), at(100), at(200)), (0.0, 0.0, 1.0 / 3.0));
        assert_eq!((at(300), at(9_000)), (0.5, 0.5));
        assert_eq!(target.stepped(kb(100), 0.8), 0.0);
        assert!((target.stepped(kb(500), 0.8) - 0.75).abs() < 1e-12);
    }
}
