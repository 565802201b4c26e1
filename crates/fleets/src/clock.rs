// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A host's CLOCK_MONOTONIC over true time: an oscillator that wanders, steps of its rate, jumps, and times in which it stands
//! still.

use onramp_sync::synthetic::Oscillator;

/// CLOCK_MONOTONIC of a host. All times are true times in ns.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    oscillator: Oscillator,
    /// Changes of its rate: when, and by how much.
    rates: Vec<(i64, f64)>,
    /// What programs do to its rate: the same.
    programs: Vec<(i64, f64)>,
    /// Jumps: when, and how far forward, ns.
    jumps: Vec<(i64, i64)>,
    /// Times in which it stands still: beginning and end.
    stops: Vec<(i64, i64)>,
}

impl Clock {
    /// A clock that has this oscillator.
    pub fn new(oscillator: Oscillator) -> Clock {
        Clock {
            oscillator,
            ..Clock::default()
        }
    }

    /// From `at` on it runs faster by `rate`.
    pub fn change_rate(&mut self, at: i64, rate: f64) {
        self.rates.push((at, rate));
    }

    /// From `at` on a program makes it run faster by `rate`, which CLOCK_MONOTONIC_RAW does not.
    pub fn slew(&mut self, at: i64, rate: f64) {
        self.programs.push((at, rate));
    }

    /// At `at` it jumps forward by `by_ns`, or back.
    pub fn jump(&mut self, at: i64, by_ns: i64) {
        self.jumps.push((at, by_ns));
    }

    /// It stands still between these times.
    pub fn stop(&mut self, from: i64, until: i64) {
        self.stops.push((from, until));
    }

    /// What it reads.
    pub fn read(&self, at: i64) -> i64 {
        let gained = |(from, rate): &(i64, f64)| rate * (at - from).max(0) as f64;
        self.raw(at) + self.programs.iter().map(gained).sum::<f64>().round() as i64
    }

    /// What CLOCK_MONOTONIC_RAW reads.
    pub fn raw(&self, at: i64) -> i64 {
        let stood = |(from, until): &(i64, i64)| (at.min(*until) - from).max(0);
        let ran = at - self.stops.iter().map(stood).sum::<i64>();
        let gained = |(from, rate): &(i64, f64)| rate * (at - from).max(0) as f64;
        let gained_ns: f64 = self.rates.iter().map(gained).sum();
        let jumped = self.jumps.iter().filter(|(from, _)| *from <= at);
        let jumped_ns: i64 = jumped.map(|(_, by_ns)| by_ns).sum();
        self.oscillator.read(ran) + gained_ns.round() as i64 + jumped_ns
    }

    /// The true time, `now` or later, at which it reads `mono_ns`.
    pub fn when(&self, mono_ns: i64, now: i64) -> i64 {
        let mut at = now;
        // Rates are within 10^-3 of 1, so each round makes the error a thousand times smaller.
        for _ in 0..4 {
            at = (at + mono_ns - self.read(at)).max(now);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn it_steps_stands_and_jumps_as_told() {
        let mut clock = Clock::new("offset=1ms,drift=1e-5".parse().unwrap());
        assert_eq!(clock.read(10 * S), 10 * S + 1_100_000);
        clock.change_rate(10 * S, 1e-6);
        assert_eq!(clock.read(20 * S), 20 * S + 1_210_000);
        clock.jump(15 * S, -500);
        clock.stop(11 * S, 12 * S);
        assert_eq!(clock.read(20 * S), 19 * S + 1_200_000 - 500);
        let at = clock.when(25 * S, 20 * S);
        assert!((clock.read(at) - 25 * S).abs() <= 1);
        assert_eq!(clock.when(0, 20 * S), 20 * S, "the past is now");
    }
}
