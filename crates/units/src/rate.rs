// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rates, and the only division of bytes by a rate in the project.

use crate::quantity::{self, ParseError, Unit};
use crate::{Bytes, Span};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

const UNITS: [Unit; 5] = [
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];
const PS_PER_S: u128 = 1_000_000_000_000;

/// Bits per second, never zero: a link that never sends is no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// `bits` per second; `None` for zero.
    pub const fn from_bits_per_s(bits: u64) -> Option<Rate> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Rate(bits)),
            None => None,
        }
    }

    /// Bits per second.
    pub const fn bits_per_s(self) -> u64 {
        self.0.get()
    }

    /// Time until the last bit of `size` is on the wire, rounded up to 1 ps: nothing is ever
    /// delivered early. Saturates at the longest span (106 days).
    pub fn time_to_send(self, size: Bytes) -> Span {
        // Up to 2 MB 64 bits will do, in a tenth of the time.
        if let Some(product) = size.get().checked_mul(8 * PS_PER_S as u64) {
            return Span::from_ps(product.div_ceil(self.bits_per_s()) as i64);
        }
        let bits = u128::from(size.get()) * 8;
        let ps = (bits * PS_PER_S).div_ceil(u128::from(self.bits_per_s()));
        Span::from_ps(i64::try_from(ps).unwrap_or(i64::MAX))
    }

    /// Whole bytes sent in `span`; zero for a negative one.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let ps = span.as_ps().max(0) as u128;
        let bytes = u128::from(self.bits_per_s()) * ps / (8 * PS_PER_S);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// This rate in a world `times` slower, rounded down, at least 1 bit/s.
    pub fn slowed(self, times: NonZeroU64) -> Rate {
        Rate(NonZeroU64::new(self.bits_per_s() / times).unwrap_or(NonZeroU64::MIN))
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads "10 Gbit/s". The unit is mandatory, zero is refused.
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        let bits = quantity::parse(text, &UNITS, (1, i128::from(u64::MAX)))?;
        Ok(Rate(
            NonZeroU64::new(bits as u64).unwrap_or(NonZeroU64::MIN),
        ))
    }
}

impl fmt::Display for Rate {
    /// Exact, in the largest unit reached: "2.5 Gbit/s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quantity::print(
            i128::from(self.bits_per_s()),
            &UNITS,
            "bit/s",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_full_frame_takes_its_wire_time() {
        assert_eq!(
            rate("10 Gbit/s").time_to_send(Bytes::new(1500)),
            Span::from_ns(1200)
        );
        assert_eq!(
            rate("400 Gbit/s").time_to_send(Bytes::new(64)),
            Span::from_ps(1280)
        );
    }

    #[test]
    fn wire_time_is_rounded_up_and_saturates() {
        assert_eq!(
            rate("3 bit/s").time_to_send(Bytes::new(1)),
            Span::from_ps(2_666_666_666_667)
        );
        assert_eq!(
            rate("1 bit/s").time_to_send(Bytes::new(u64::MAX)),
            Span::MAX
        );
    }

    #[test]
    fn zero_and_foreign_units_are_refused() {
        assert!("0 Gbit/s".parse::<Rate>().is_err());
        let error = "10 Gbps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"10 Gbps\", whose unit is not one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s"
        );
    }

    #[test]
    fn slowing_never_stops_a_link() {
        let hundred = NonZeroU64::new(100).unwrap();
        assert_eq!(rate("10 Gbit/s").slowed(hundred), rate("100 Mbit/s"));
        assert_eq!(rate("5 bit/s").slowed(hundred), rate("1 bit/s"));
    }

    proptest! {
        #[test]
        fn printed_rates_parse_back(bits in 1u64..) {
            let rate = Rate::from_bits_per_s(bits).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn bytes_in_inverts_time_to_send(bits in 1_000u64..1_000_000_000_000, n in 0u64..1_000_000) {
            let rate = Rate::from_bits_per_s(bits).unwrap();
            prop_assert_eq!(rate.bytes_in(rate.time_to_send(Bytes::new(n))), Bytes::new(n));
        }
    }
}
