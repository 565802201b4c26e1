// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! "number unit" in text: one exact parser and printer for all quantities.
//!
//! Does not round: a number finer than the base unit is an error, and what is printed parses
//! back to the same value.

/// A unit and its size in base units (ps, bit/s or B), smallest first in a list.
pub(crate) type Unit = (&'static str, u64);

/// Why a text is not a quantity. Every variant carries the text as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing that reads as a decimal number at the start.
    #[error("\"{text}\", which does not start with a decimal number")]
    NotANumber {
        /// The text.
        text: String,
    },
    /// A bare number.
    #[error("\"{text}\", which has no unit (one of {units})")]
    NoUnit {
        /// The text.
        text: String,
        /// Units that would do.
        units: String,
    },
    /// A unit of another quantity, or a misspelt one.
    #[error("\"{text}\", whose unit is not one of {units}")]
    UnknownUnit {
        /// The text.
        text: String,
        /// Units that would do.
        units: String,
    },
    /// Not a whole number of base units.
    #[error("\"{text}\", finer than 1 {base}")]
    TooFine {
        /// The text.
        text: String,
        /// The base unit.
        base: &'static str,
    },
    /// Does not fit the type, or is zero or negative where that has no meaning.
    #[error("\"{text}\", outside {min} to {max}")]
    OutOfRange {
        /// The text.
        text: String,
        /// Least value, with its unit.
        min: String,
        /// Greatest value, with its unit.
        max: String,
    },
}

/// More digits than any quantity needs; keeps the arithmetic inside i128.
const MAX_DIGITS: usize = 24;

/// Reads `text` as a whole number of base units (`units[0]`) within `range`.
pub(crate) fn parse(text: &str, units: &[Unit], range: (i128, i128)) -> Result<i128, ParseError> {
    let owned = || text.to_owned();
    let base = units[0].0;
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    let Some(decimal) = Decimal::of(number) else {
        return Err(ParseError::NotANumber { text: owned() });
    };
    let names = || units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    if unit.is_empty() {
        return Err(ParseError::NoUnit {
            text: owned(),
            units: names(),
        });
    }
    let Some(&(_, factor)) = units.iter().find(|u| u.0 == unit) else {
        return Err(ParseError::UnknownUnit {
            text: owned(),
            units: names(),
        });
    };
    let (min, max) = range;
    let out_of_range = || {
        // `print` writes decimal places.
        let decimal = |unit: &&Unit| unit.1 == 10_u64.pow(unit.1.ilog10());
        let units: Vec<Unit> = units.iter().filter(decimal).copied().collect();
        ParseError::OutOfRange {
            text: owned(),
            min: print(min, &units, base),
            max: print(max, &units, base),
        }
    };
    match decimal.times(factor) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        Ok(_) | Err(Unfit::TooLarge) => Err(out_of_range()),
        Err(Unfit::TooFine) => Err(ParseError::TooFine {
            text: owned(),
            base,
        }),
    }
}

/// A number in decimal places.
struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    /// Without zeros at its end.
    fraction: &'a str,
}

/// Why a number is no multiple of a unit.
enum Unfit {
    TooLarge,
    TooFine,
}

impl Decimal<'_> {
    fn of(number: &str) -> Option<Decimal<'_>> {
        let (negative, digits) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let decimal = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let is_number = !whole.is_empty() && decimal(whole) && decimal(fraction);
        (is_number && !digits.ends_with('.')).then(|| Decimal {
            negative,
            whole,
            fraction: fraction.trim_end_matches('0'),
        })
    }

    /// So many times `factor`.
    fn times(&self, factor: u64) -> Result<i128, Unfit> {
        let all_digits = format!("{}{}", self.whole, self.fraction);
        let significant = all_digits.trim_start_matches('0');
        if significant.len() > MAX_DIGITS {
            let fine = self.fraction.len() > MAX_DIGITS;
            return Err(if fine {
                Unfit::TooFine
            } else {
                Unfit::TooLarge
            });
        }
        // At most 24 digits times at most 10^12 stays below i128::MAX.
        let scaled = significant
            .bytes()
            .fold(0i128, |n, b| n * 10 + i128::from(b - b'0'))
            * i128::from(factor);
        let places = u32::try_from(self.fraction.len()).ok();
        let divisor = places.and_then(|places| 10i128.checked_pow(places));
        let divisor = divisor.filter(|divisor| scaled % divisor == 0);
        let value = scaled / divisor.ok_or(Unfit::TooFine)?;
        Ok(if self.negative { -value } else { value })
    }
}

/// Writes `value` base units exactly, in the largest of `units` it reaches; zero as "0" and the
/// unit called `zero`.
pub(crate) fn print(value: i128, units: &[Unit], zero: &str) -> String {
    let size = value.unsigned_abs();
    if size == 0 {
        return format!("0 {zero}");
    }
    let reached = units.iter().rev().find(|u| size >= u128::from(u.1));
    let &(unit, factor) = reached.unwrap_or(&units[0]);
    let factor = u128::from(factor);
    let sign = if value < 0 { "-" } else { "" };
    let (whole, rest) = (size / factor, size % factor);
    if rest == 0 {
        return format!("{sign}{whole} {unit}");
    }
    let places = factor.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{sign}{whole}.{} {unit}", fraction.trim_end_matches('0'))
}
