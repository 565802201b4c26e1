// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flow-size distributions: the CSV files of workloads/, their mean, and sampling.
//!
//! A file names its interpolation. `linear`: the distribution function is a straight line between
//! points. `step`: all mass lies on the points.

use onramp_keys::choice;
use onramp_units::Bytes;
use std::sync::{Arc, OnceLock};

/// A distribution of sizes. Points rise in both coordinates and end at probability 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    points: Vec<Point>,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    bytes: f64,
    /// Probability of a size up to `bytes`.
    cdf: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Linear,
    Step,
}

/// How a row says how many flows are up to its size.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Behind a comma, from 0 to 1.
    Probability,
    /// Behind a space, from 0 to 100.
    Percent,
}

/// Errors of a distribution's text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// No line `# interpolation: linear` or `# interpolation: step`.
    #[error(
        "the file has no line \"# interpolation: linear\" or \"# interpolation: step\": add one"
    )]
    NoShape,
    /// A row is not two numbers.
    #[error("line {line} is \"{text}\", expected a size and its probability such as 10000,0.15, or, as HPCC's traffic generator reads them, a size and a percentage such as 10000 15, in all lines alike")]
    NotAPoint {
        /// From 1.
        line: usize,
        /// The row.
        text: String,
    },
    /// A size or probability below the previous row's or below 0, or a probability above 1.
    #[error("line {line} is {bytes} B at probability {cdf}, expected a size above the previous row, and a probability from the previous row to 1")]
    NotRising {
        /// From 1.
        line: usize,
        /// Size in bytes.
        bytes: f64,
        /// Probability.
        cdf: f64,
    },
    /// All flows are empty.
    #[error("all sizes are 0 B, expected a size above zero")]
    Nothing,
    /// The last row is not at probability 1, or there is none.
    #[error("the last row is at probability {cdf}, expected 1")]
    Unfinished {
        /// The value in the last row.
        cdf: f64,
    },
}

impl Distribution {
    /// Reads rows `size_bytes,cdf`; `#` starts a comment, the row of names is optional. Or rows of size and percentage, as
    /// HPCC's traffic generator reads them; these are linear.
    pub fn parse(text: &str) -> Result<Distribution, DistributionError> {
        let text = text.trim_start_matches('\u{feff}'); // some editors put it in front
        let mut shape = None;
        let mut form = None;
        let mut points: Vec<Point> = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            match text.strip_prefix('#').map(str::trim) {
                Some("interpolation: linear") => shape = Some(Shape::Linear),
                Some("interpolation: step") => shape = Some(Shape::Step),
                Some(_) => {}
                None if text.is_empty() || text == "size_bytes,cdf" => {}
                None => {
                    let form = *form.get_or_insert(Form::of(text));
                    let point = form.point(text);
                    let point = point.ok_or_else(|| DistributionError::NotAPoint {
                        line,
                        text: text.to_owned(),
                    })?;
                    if !point.follows(points.last()) {
                        let Point { bytes, cdf } = point;
                        return Err(DistributionError::NotRising { line, bytes, cdf });
                    }
                    points.push(point);
                }
            }
        }
        let usual = (form == Some(Form::Percent)).then_some(Shape::Linear);
        let shape = shape.or(usual).ok_or(DistributionError::NoShape)?;
        if points.len() == 1 && points[0].bytes == 0.0 {
            return Err(DistributionError::Nothing);
        }
        match points.last() {
            Some(last) if last.cdf == 1.0 => Ok(Distribution { points, shape }),
            last => Err(DistributionError::Unfinished {
                cdf: last.map_or(0.0, |p| p.cdf),
            }),
        }
    }

    /// Mean size in bytes, exact for the shape.
    pub fn mean_bytes(&self) -> f64 {
        self.mean_between(0.0, 1.0)
    }

    /// Mean size in bytes of the flows between these fractions (0 to 1, `low` below `high`) of all flows by size.
    pub fn mean_between(&self, low: f64, high: f64) -> f64 {
        let mut before = self.origin();
        let mut sum = 0.0;
        for &point in &self.points {
            let (from, to) = (before.cdf.max(low), point.cdf.min(high));
            if from < to {
                let rise = point.cdf - before.cdf;
                let at =
                    |u: f64| before.bytes + (u - before.cdf) / rise * (point.bytes - before.bytes);
                let typical = match self.shape {
                    Shape::Linear => (at(from) + at(to)) / 2.0,
                    Shape::Step => point.bytes,
                };
                sum += typical * (to - from);
            }
            before = point;
        }
        sum / (high - low)
    }

    /// The size below which a fraction `u` (0 to 1) of flows lies: the inverse of the
    /// distribution function, in whole bytes, at least 1.
    pub fn quantile(&self, u: f64) -> Bytes {
        let above = self
            .points
            .partition_point(|p| p.cdf < u)
            .min(self.points.len() - 1);
        let point = self.points[above];
        let bytes = match self.shape {
            Shape::Step => point.bytes,
            Shape::Linear => {
                let before = if above == 0 {
                    self.origin()
                } else {
                    self.points[above - 1]
                };
                let rise = point.cdf - before.cdf;
                let part = if rise > 0.0 {
                    ((u - before.cdf) / rise).clamp(0.0, 1.0)
                } else {
                    1.0
                };
                before.bytes + part * (point.bytes - before.bytes)
            }
        };
        Bytes::new((bytes.round() as u64).max(1))
    }

    /// Where the first line or step starts: a linear file with mass at its first point has that
    /// mass there.
    fn origin(&self) -> Point {
        Point {
            bytes: self.points[0].bytes,
            cdf: 0.0,
        }
    }
}

impl Form {
    fn of(row: &str) -> Form {
        match row.contains(',') {
            true => Form::Probability,
            false => Form::Percent,
        }
    }

    fn point(self, row: &str) -> Option<Point> {
        let (separator, whole) = match self {
            Form::Probability => (',', 1.0),
            Form::Percent => (' ', 100.0),
        };
        let row = row.replace('\t', " ");
        let (bytes, part) = row.split_once(separator)?;
        let number = |t: &str| t.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        Some(Point {
            bytes: number(bytes)?,
            cdf: number(part)? / whole,
        })
    }
}

impl Point {
    fn follows(self, before: Option<&Point>) -> bool {
        let rises = before.is_none_or(|b| self.bytes > b.bytes && self.cdf >= b.cdf);
        rises && self.bytes >= 0.0 && (0.0..=1.0).contains(&self.cdf)
    }
}

choice! {
    /// The distributions of workloads/.
    pub enum BuiltIn {
        /// The DCTCP paper's web search.
        Websearch = "websearch",
        /// Facebook's Hadoop cluster.
        FbHadoop = "fb_hadoop",
        /// Google search RPCs: Homa's W2.
        GoogleSearchRpc = "google_search_rpc",
    }
}

impl BuiltIn {
    /// Its distribution of sizes.
    pub fn distribution(self) -> Arc<Distribution> {
        static READ: [OnceLock<Arc<Distribution>>; 3] = [const { OnceLock::new() }; 3];
        let read = || Distribution::parse(self.csv()).expect("the files of workloads/ are tested");
        READ[self as usize].get_or_init(|| Arc::new(read())).clone()
    }

    fn csv(self) -> &'static str {
        match self {
            BuiltIn::Websearch => include_str!("../workloads/websearch.csv"),
            BuiltIn::FbHadoop => include_str!("../workloads/fb_hadoop.csv"),
            BuiltIn::GoogleSearchRpc => include_str!("../workloads/google_search_rpc.csv"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_keys::Value;
    use proptest::prelude::*;

    fn close(got: f64, want: f64, relative: f64) {
        assert!(
            (got / want - 1.0).abs() <= relative,
            "{got} is not {want} within {relative}"
        );
    }

    #[test]
    fn every_workload_is_readable() {
        for name in BuiltIn::names() {
            name.parse::<BuiltIn>().unwrap().distribution();
        }
    }

    /// facts/workloads.md.
    #[test]
    fn means_are_those_of_the_sources() {
        assert_eq!(BuiltIn::Websearch.distribution().mean_bytes(), 1_711_250.0);
        close(
            BuiltIn::FbHadoop.distribution().mean_bytes(),
            120_421.0,
            1e-5,
        );
        close(
            BuiltIn::GoogleSearchRpc.distribution().mean_bytes(),
            441.6,
            1e-4,
        );
    }

    /// facts/workloads.md.
    #[test]
    fn quantiles_are_those_of_the_sources() {
        let rpc = BuiltIn::GoogleSearchRpc.distribution();
        for (u, bytes) in [
            (0.1, 8),
            (0.2, 34),
            (0.3, 58),
            (0.4, 171),
            (0.5, 269),
            (0.6, 320),
            (0.7, 366),
            (0.8, 427),
            (0.9, 512),
            (0.95, 931),
            (0.98, 2048),
            (0.99, 3151),
            (0.995, 4096),
            (0.998, 7447),
            (0.999, 21_845),
            (0.9995, 77_101),
            (0.9998, 119_156),
            (0.9999, 154_202),
            (1.0, 3_529_904),
        ] {
            assert_eq!(rpc.quantile(u), Bytes::new(bytes), "at {u}");
        }
        let web = BuiltIn::Websearch.distribution();
        assert_eq!(web.quantile(0.15), Bytes::new(10_000));
        assert_eq!(web.quantile(0.75), Bytes::new(1_500_000));
        assert_eq!(web.quantile(0.0), Bytes::new(1));
        assert_eq!(
            BuiltIn::FbHadoop.distribution().quantile(0.975),
            Bytes::new(1_000_000)
        );
    }

    #[test]
    fn parts_have_the_mean_of_the_whole() {
        for name in BuiltIn::names() {
            let d = name.parse::<BuiltIn>().unwrap().distribution();
            for parts in [1, 3, 7, 100] {
                let part = |k: u32| {
                    d.mean_between(
                        f64::from(k) / f64::from(parts),
                        f64::from(k + 1) / f64::from(parts),
                    )
                };
                let means: Vec<f64> = (0..parts).map(part).collect();
                close(
                    means.iter().sum::<f64>() / f64::from(parts),
                    d.mean_bytes(),
                    1e-9,
                );
            }
        }
        let line = Distribution::parse("# interpolation: linear\n0,0\n1000,1\n").unwrap();
        close(line.mean_between(0.2, 0.4), 300.0, 1e-9);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |csv: &str| Distribution::parse(csv).unwrap_err().to_string();
        let shape = "# interpolation: step\n";
        assert_eq!(error("8,1"), DistributionError::NoShape.to_string());
        assert_eq!(
            error(&format!("{shape}8,0.5\n8;1")),
            "line 3 is \"8;1\", expected a size and its probability such as 10000,0.15, or, as HPCC's traffic generator \
             reads them, a size and a percentage such as 10000 15, in all lines alike"
        );
        assert_eq!(
            error(&format!("{shape}8,0.5\n9,0.4")),
            "line 3 is 9 B at probability 0.4, expected a size above the previous row, and a probability from the previous row to 1"
        );
        assert_eq!(
            error(&format!("{shape}8,0.5")),
            "the last row is at probability 0.5, expected 1"
        );
        assert_eq!(error(shape), "the last row is at probability 0, expected 1");
    }

    /// As HPCC's traffic_gen has it, and as an editor of Windows saves it.
    #[test]
    fn files_of_hpcc_are_linear_and_in_percent() {
        let csv = "# interpolation: linear\nsize_bytes,cdf\n0,0\n10000,0.15\n30000000,1\n";
        let expected = Distribution::parse(csv).unwrap();
        let percent = "0 0\n10000 15\r\n30000000\t100\n";
        assert_eq!(Distribution::parse(percent).unwrap(), expected);
        let marked = format!("\u{feff}{csv}");
        assert_eq!(Distribution::parse(&marked).unwrap(), expected);
        let mixed = Distribution::parse("0 0\n10000,0.15\n").unwrap_err();
        assert!(mixed.to_string().starts_with("line 2 is \"10000,0.15\""));
        let above = Distribution::parse("0 0\n10000 150\n").unwrap_err();
        assert!(above.to_string().contains("at probability 1.5"), "{above}");
    }

    proptest! {
        #[test]
        fn quantiles_never_fall(a in 0.0..=1.0f64, b in 0.0..=1.0f64) {
            for name in BuiltIn::names() {
                let d = name.parse::<BuiltIn>().unwrap().distribution();
                prop_assert!(d.quantile(a.min(b)) <= d.quantile(a.max(b)));
            }
        }

        #[test]
        fn any_text_is_answered(text in "(# interpolation: (step|linear)\n)?([0-9.,-]{0,9}\n){0,5}") {
            if let Ok(d) = Distribution::parse(&text) {
                prop_assert!(d.mean_bytes() >= 0.0);
                d.quantile(0.5);
            }
        }
    }
}
