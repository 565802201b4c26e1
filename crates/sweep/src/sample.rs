// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Values that are drawn: a place between 0 and 1 for each point and key, and the value there.

use onramp_results::quantity;
use onramp_units::{Bytes, Rate, Span};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Value;

use crate::file::{text_of, Between, Method, Range, Sample, Scale};

/// Most points that Sobol's sequence has here, and most keys.
const SOBOL: (u32, usize) = (1 << 16, 256);

/// What lies between two values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interval {
    from: f64,
    to: f64,
    is_log: bool,
    form: Form,
}

/// How a number between the two becomes text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Whole,
    Number,
    Percent,
    Span,
    Rate,
    Bytes,
}

/// From where the values of a key come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Choice(Vec<String>),
    Interval(Interval),
}

impl Source {
    /// # Errors
    /// What is wrong with the range.
    pub fn of(range: &Range) -> Result<Source, String> {
        match range {
            Range::Choice(values) if values.is_empty() => Err("has no value".to_owned()),
            Range::Choice(values) => Ok(Source::Choice(values.iter().map(text_of).collect())),
            Range::Between(between) => Interval::of(between).map(Source::Interval),
        }
    }

    /// The value at `place`, from 0 to 1 (excluded).
    pub fn at(&self, place: f64) -> String {
        match self {
            Source::Choice(values) => {
                let index = (place * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Source::Interval(interval) => interval.at(place),
        }
    }
}

impl Interval {
    fn of(between: &Between) -> Result<Interval, String> {
        let (from, to) = (&between.from, &between.to);
        let (one, two) = (number(from)?, number(to)?);
        let form = match (one.1, two.1) {
            (Form::Whole, Form::Number) | (Form::Number, Form::Whole) => Form::Number,
            (one, two) if one == two => one,
            _ => {
                let (from, to) = (text_of(from), text_of(to));
                return Err(format!(
                    "goes from {from} to {to}, which are not of one kind"
                ));
            }
        };
        let is_log = between.scale == Scale::Log;
        let (from, to) = (one.0, two.0);
        if to <= from {
            let (from, to) = (text_of(&between.from), text_of(&between.to));
            return Err(format!("goes from {from} to {to}, expected a higher end"));
        }
        if is_log && from <= 0.0 {
            let from = text_of(&between.from);
            return Err(format!("goes from {from} on a log scale, expected above 0"));
        }
        Ok(Interval {
            from,
            to,
            is_log,
            form,
        })
    }

    fn at(&self, place: f64) -> String {
        let Interval { from, to, .. } = *self;
        let value = |from: f64, to: f64| match self.is_log {
            true => from * libm::pow(to / from, place),
            false => from + (to - from) * place,
        };
        match self.form {
            // Both ends are as likely as the others.
            Form::Whole => {
                let low = if self.is_log { from } else { from - 0.5 };
                let high = if self.is_log { to } else { to + 0.5 };
                value(low, high).round().clamp(from, to).to_string()
            }
            Form::Number => value(from, to).to_string(),
            Form::Percent => format!("{} %", (value(from, to) * 1e6).round() / 1e6),
            Form::Span => Span::from_ps((value(from, to) * 1e3).round() as i64).to_string(),
            Form::Rate => {
                let rate = Rate::from_bits_per_s(value(from, to).round() as u64);
                rate.expect("it is above 0").to_string()
            }
            Form::Bytes => Bytes::new(value(from, to).round() as u64).to_string(),
        }
    }
}

/// A number in the unit of its kind (ns, bit/s, bytes, percent), and the kind.
fn number(value: &Value) -> Result<(f64, Form), String> {
    let text = text_of(value);
    if let Some(percent) = text.strip_suffix('%') {
        let percent = percent.trim().parse();
        return percent
            .map(|number| (number, Form::Percent))
            .map_err(|_| format!("has {text}, which is no percentage"));
    }
    let (number, unit) = quantity(&text).ok_or_else(|| {
        format!(
            "has {text}, expected a number or a quantity such as \"10 us\"; words can be a list"
        )
    })?;
    let form = match unit {
        "ns" => Form::Span,
        "bits_per_s" => Form::Rate,
        "bytes" => Form::Bytes,
        _ if value.is_integer() => Form::Whole,
        _ => Form::Number,
    };
    Ok((number, form))
}

/// The places of all keys at each point.
///
/// # Errors
/// More points or keys than the method has.
pub(crate) fn places(sample: &Sample) -> Result<Vec<Vec<f64>>, String> {
    let keys = sample.keys.len();
    match sample.method {
        Method::Random => {
            let mut random = ChaCha8Rng::seed_from_u64(sample.seed.into());
            let mut point = || (0..keys).map(|_| random.random::<f64>()).collect();
            Ok((0..sample.points).map(|_| point()).collect())
        }
        Method::Sobol if sample.points > SOBOL.0 || keys > SOBOL.1 => Err(format!(
            "sobol has at most {} points of {} keys; random has no such bound",
            SOBOL.0, SOBOL.1
        )),
        Method::Sobol => {
            let place = |point: u32, key: usize| {
                f64::from(sobol_burley::sample(point, key as u32, sample.seed))
            };
            let point = |point: u32| (0..keys).map(|key| place(point, key)).collect();
            Ok((0..sample.points).map(point).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(range: &str) -> Result<Source, String> {
        let table: toml::Table = toml::from_str(&format!("range = {range}")).unwrap();
        Source::of(&table["range"].clone().try_into().unwrap())
    }

    #[test]
    fn values_lie_between_the_ends_in_their_unit() {
        let at = |range: &str, place: f64| source(range).unwrap().at(place);
        let span = r#"{ from = "10 us", to = "1 ms", scale = "log" }"#;
        assert_eq!(at(span, 0.0), "10 us");
        assert_eq!(at(span, 0.5), "100 us");
        assert_eq!(at(r#"{ from = "100 kB", to = "300 kB" }"#, 0.25), "150 kB");
        assert_eq!(
            at(r#"{ from = "1 Gbit/s", to = "3 Gbit/s" }"#, 0.5),
            "2 Gbit/s"
        );
        assert_eq!(at(r#"{ from = "5 %", to = "25 %" }"#, 0.5), "15 %");
        assert_eq!(at("{ from = 0.5, to = 1 }", 0.5), "0.75");
        let whole = |place| at("{ from = 1, to = 4 }", place);
        assert_eq!([whole(0.0), whole(0.25), whole(0.999)], ["1", "2", "4"]);
        let words = |place| at(r#"["cubic", "bbr"]"#, place);
        assert_eq!(
            [words(0.0), words(0.49), words(0.5), words(0.999)],
            ["cubic", "cubic", "bbr", "bbr"]
        );
    }

    #[test]
    fn what_is_no_range_is_refused_with_its_values() {
        for (range, error) in [
            (
                r#"{ from = "10 us", to = "10 kB" }"#,
                "goes from 10 us to 10 kB, which are not of one kind",
            ),
            (
                r#"{ from = 4, to = 1 }"#,
                "goes from 4 to 1, expected a higher end",
            ),
            (
                r#"{ from = 0, to = 1, scale = "log" }"#,
                "goes from 0 on a log scale, expected above 0",
            ),
            (
                r#"{ from = "off", to = "10 us" }"#,
                "has off, expected a number or a quantity",
            ),
            ("[]", "has no value"),
        ] {
            let found = source(range).unwrap_err();
            assert!(found.starts_with(error), "{range}: {found}");
        }
    }

    fn drawn(method: &str, points: u32, seed: u32) -> Vec<Vec<f64>> {
        let text = format!(
            "method = \"{method}\"\npoints = {points}\nseed = {seed}\n[keys]\na = [1]\nb = [1]\n"
        );
        places(&toml::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn sobols_points_are_spread_evenly_and_random_ones_are_not() {
        // Of 64 points, each of 64 strips of a key has one.
        let strips = |points: &[Vec<f64>], key: usize| {
            let strips = points.iter().map(|point| (point[key] * 64.0) as u32);
            strips.collect::<std::collections::BTreeSet<u32>>().len()
        };
        let (sobol, random) = (drawn("sobol", 64, 1), drawn("random", 64, 1));
        for key in [0, 1] {
            assert_eq!(strips(&sobol, key), 64);
            assert!((20..60).contains(&strips(&random, key)));
        }
        assert!(sobol != drawn("sobol", 64, 2) && random != drawn("random", 64, 2));
        assert_eq!(sobol[..8], drawn("sobol", 8, 1));
        let all = sobol.iter().chain(&random).flatten();
        assert!(all.copied().all(|place| (0.0..1.0).contains(&place)));
    }
}
