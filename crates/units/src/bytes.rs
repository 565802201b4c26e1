// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Sizes. kB, MB and GB are powers of 1000; KiB, MiB and GiB powers of 1024.

use crate::quantity::{self, ParseError, Unit};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

const DECIMAL: [Unit; 4] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];
const BINARY: [Unit; 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Bytes {
        Bytes(count)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, at least zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    /// Reads "1500 B", "64 kB", "1.5 MiB". The unit is mandatory.
    fn from_str(text: &str) -> Result<Bytes, ParseError> {
        let units: Vec<Unit> = DECIMAL.iter().chain(&BINARY).copied().collect();
        let value = quantity::parse(text, &units, (0, i128::from(u64::MAX)))?;
        Ok(Bytes(value as u64))
    }
}

impl fmt::Display for Bytes {
    /// Exact; binary units where only they are round ("64 KiB", but "64 kB").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = self.0 != 0 && self.0.is_multiple_of(1024) && !self.0.is_multiple_of(1000);
        match BINARY
            .iter()
            .rev()
            .find(|u| binary && self.0.is_multiple_of(u.1))
        {
            Some((unit, factor)) => write!(f, "{} {unit}", self.0 / factor),
            None => f.write_str(&quantity::print(i128::from(self.0), &DECIMAL, "B")),
        }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl Div<u64> for Bytes {
    type Output = Bytes;
    fn div(self, by: u64) -> Bytes {
        Bytes(self.0 / by)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(all: I) -> Bytes {
        all.fold(Bytes::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kb_is_1000_and_kib_is_1024() {
        assert_eq!("32 kB".parse(), Ok(Bytes::new(32_000)));
        assert_eq!("32 KiB".parse(), Ok(Bytes::new(32_768)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes::new(1_572_864)));
    }

    #[test]
    fn the_round_unit_is_printed() {
        let text = |n| Bytes::new(n).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1448), "1.448 kB");
        assert_eq!(text(65_536), "64 KiB");
        assert_eq!(text(128_000), "128 kB");
        assert_eq!(text(2_500_000), "2.5 MB");
    }

    #[test]
    fn part_of_a_byte_is_refused() {
        let error = "1.5 B".parse::<Bytes>().unwrap_err();
        assert_eq!(error.to_string(), "\"1.5 B\", finer than 1 B");
        assert!("-1 B".parse::<Bytes>().is_err());
    }

    proptest! {
        #[test]
        fn printed_bytes_parse_back(n: u64) {
            prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
        }

        #[test]
        fn any_text_is_answered(text: String) {
            let _ = text.parse::<Bytes>();
        }
    }
}
