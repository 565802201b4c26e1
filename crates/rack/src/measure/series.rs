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

#[cfg(test)]
mod tests {
    use super::*;

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
