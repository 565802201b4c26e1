// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Times of logs: numbers since 1970, or dates.

use chrono::NaiveDateTime;

/// How a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    fn ns(self) -> i64 {
        match self {
            Unit::Seconds => 1_000_000_000,
            Unit::Milliseconds => 1_000_000,
            Unit::Microseconds => 1_000,
            Unit::Nanoseconds => 1,
        }
    }
}

/// Nanoseconds of a number in this unit; digits behind the point count, as far as nanoseconds. It may have an exponent, as
/// small numbers have in JSON.
pub fn number_ns(text: &str, unit: Unit) -> Option<i64> {
    if text.contains(['e', 'E']) {
        let number: f64 = text.parse().ok()?;
        let ns = number * unit.ns() as f64;
        return (ns.abs() < i64::MAX as f64 / 4.0).then_some(ns.round() as i64);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let mut ns = whole.parse::<i64>().ok()?.checked_mul(unit.ns())?;
    let mut digit_ns = unit.ns();
    for digit in part.bytes() {
        digit_ns /= 10;
        ns = ns.checked_add(i64::from(digit - b'0') * digit_ns)?;
    }
    Some(sign * ns).filter(|ns| ns.abs() < i64::MAX / 4)
}

/// Nanoseconds since 1970 of a number in this unit, or of a date such as `2026-11-30 08:11:42.123`, in UTC.
pub fn since_1970_ns(text: &str, unit: Unit) -> Option<i64> {
    let text = text.trim();
    number_ns(text, unit).or_else(|| date_ns(text))
}

fn date_ns(text: &str) -> Option<i64> {
    let text = text.trim_end_matches('Z').replace('/', "-");
    let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];
    let date = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok());
    date?
        .and_utc()
        .timestamp_nanos_opt()
        .filter(|ns| ns.abs() < i64::MAX / 4)
}
