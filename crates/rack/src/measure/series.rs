// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Values over time, thinned to a fixed number of intervals.

/// One value of a named series.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Since the start of the traffic, ns.
    pub time_ns: i64,
    /// Value in the unit of the series' name.
    pub value: f64,
}

/// The largest value of each of equally long intervals. Intervals without values have none.
#[derive(Debug, Clone)]
pub struct Series {
    interval_ns: i64,
    peaks: Vec<Option<Sample>>,
}

impl Series {
    /// Over [0, `length_ns`), in `intervals` intervals.
    pub fn new(length_ns: i64, intervals: usize) -> Series {
        let interval_ns = (length_ns / intervals as i64).max(1);
        Series {
            interval_ns,
            peaks: vec![None; intervals],
        }
    }

    /// Notes a value; one outside the time is ignored.
    pub fn add(&mut self, time_ns: i64, value: f64) {
        let index = usize::try_from(time_ns.div_euclid(self.interval_ns));
        let Some(peak) = index.ok().and_then(|i| self.peaks.get_mut(i)) else {
            return;
        };
        if peak.as_ref().is_none_or(|p| value > p.value) {
            *peak = Some(Sample { time_ns, value });
        }
    }

    /// The values, by time.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.peaks.iter().flatten()
    }
}

/// The part of each of equally long intervals in which something was busy.
#[derive(Debug, Clone)]
pub struct Busy {
    from_ns: i64,
    interval_ns: f64,
    busy_ns: Vec<f64>,
}

impl Busy {
    /// Over [`from_ns`, `until_ns`), in `intervals` intervals.
    pub fn new(from_ns: i64, until_ns: i64, intervals: usize) -> Busy {
        Busy {
            from_ns,
            interval_ns: ((until_ns - from_ns) as f64 / intervals as f64).max(1.0),
            busy_ns: vec![0.0; intervals],
        }
    }

    /// It is busy from `start_ns` for `length_ns`; what lies outside the time is ignored.
    pub fn add(&mut self, start_ns: i64, length_ns: f64) {
        let end = self.interval_ns * self.busy_ns.len() as f64;
        let mut at = (start_ns - self.from_ns) as f64;
        let until = (at + length_ns).min(end);
        at = at.max(0.0);
        while at < until {
            let index = ((at / self.interval_ns) as usize).min(self.busy_ns.len() - 1);
            // The next one begins later than `at`, whatever was rounded.
            let next = (index + 1) as f64 * self.interval_ns;
            let stop = if next > at { until.min(next) } else { until };
            self.busy_ns[index] += stop - at;
            at = stop;
        }
    }

    /// The fraction of each interval, 0 to 1, at its end.
    pub fn fractions(&self) -> impl Iterator<Item = Sample> + '_ {
        (1..).zip(&self.busy_ns).map(|(nth, busy_ns)| Sample {
            time_ns: self.from_ns + (f64::from(nth) * self.interval_ns) as i64,
            value: busy_ns / self.interval_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_shared_between_intervals() {
        let mut busy = Busy::new(100, 140, 4);
        for (start, length) in [(90, 15.0), (108, 14.0), (135, 100.0), (200, 5.0)] {
            busy.add(start, length);
        }
        let got: Vec<_> = busy.fractions().map(|s| (s.time_ns, s.value)).collect();
        assert_eq!(got, [(110, 0.7), (120, 1.0), (130, 0.2), (140, 0.5)]);
    }

    #[test]
    fn the_peak_of_each_interval_stays() {
        let mut series = Series::new(100, 10);
        for (time, value) in [
            (0, 1.0),
            (9, 3.0),
            (5, 2.0),
            (10, 0.5),
            (99, 4.0),
            (100, 9.0),
            (-1, 9.0),
        ] {
            series.add(time, value);
        }
        let got: Vec<_> = series.samples().map(|s| (s.time_ns, s.value)).collect();
        assert_eq!(got, [(9, 3.0), (10, 0.5), (99, 4.0)]);
    }
}
