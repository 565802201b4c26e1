// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Numbers without a dimension: loads and gains.

use onramp_keys::{Toml, Value, Wrong};
use std::fmt;
use std::str::FromStr;

/// A finite number, zero or more; written "40 %", "1/16" or 0.0625.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// The number itself.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Nearest multiple of 2^-16, as the control laws take it.
    pub fn q16(self) -> u32 {
        // A float to integer cast saturates, which is what is wanted beyond 65535.
        (self.0 * 65_536.0).round() as u32
    }

    fn read(text: &str) -> Option<f64> {
        let number = |t: &str| t.trim().parse::<f64>().ok();
        let text = text.trim();
        if let Some(percent) = text.strip_suffix('%') {
            return Some(number(percent)? / 100.0);
        }
        match text.split_once('/') {
            Some((over, under)) => Some(number(over)? / number(under)?),
            None => number(text),
        }
    }
}

impl FromStr for Fraction {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Fraction, Wrong> {
        match Fraction::read(text) {
            // "-0" would print as a text that differs from "0".
            Some(number) if number.is_finite() && number >= 0.0 => Ok(Fraction(number.abs())),
            _ => Err(Wrong::Other(
                "which is not a fraction like 0.4, \"40 %\" or \"1/16\"".to_owned(),
            )),
        }
    }
}

impl fmt::Display for Fraction {
    /// The shortest decimal that reads back as the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Value for Fraction {
    type Bounds = (f64, f64);
    const WRITTEN: &'static [Toml] = &[Toml::Text, Toml::Integer, Toml::Float];
    const PLACEHOLDER: &'static str = "FRACTION";

    fn read(text: &str, (least, most): (f64, f64)) -> Result<Fraction, Wrong> {
        let fraction: Fraction = text.parse()?;
        match fraction.get() {
            number if number < least => Err(Wrong::Below(least.to_string())),
            number if number > most => Err(Wrong::Above(most.to_string())),
            _ => Ok(fraction),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((least, most): (f64, f64)) -> String {
        format!("a fraction, {least} to {most}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> f64 {
        text.parse::<Fraction>().unwrap().get()
    }

    #[test]
    fn percent_ratio_and_decimal_are_the_same_number() {
        assert_eq!(read("40 %"), 0.4);
        assert_eq!(read("1/16"), 0.0625);
        assert_eq!(read("6.25%"), read("0.0625"));
    }

    #[test]
    fn what_is_no_fraction_is_refused() {
        for text in ["", "x", "1/0", "nan", "inf", "-0.1", "1/", "%", "50 us"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }

    #[test]
    fn q16_of_a_sixteenth_is_4096() {
        assert_eq!("1/16".parse::<Fraction>().unwrap().q16(), 4096);
    }
}
