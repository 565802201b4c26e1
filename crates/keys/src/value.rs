// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The types of values. A type reads a text, checks its bounds, prints it, and describes itself.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use onramp_units::{Bytes, ParseError, Rate, Span};

use crate::written::Toml;

/// Why a text is no value of a key; without the key and the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It is something else than these words say.
    #[error("which is not {0}")]
    Unlike(String),
    /// Below this.
    #[error("below min {0}")]
    Below(String),
    /// Above this.
    #[error("above max {0}")]
    Above(String),
    /// Wrong in another manner.
    #[error("{0}")]
    Other(String),
}

impl Wrong {
    /// It is no `T` at all.
    pub fn unlike<T: Value>(bounds: T::Bounds) -> Wrong {
        Wrong::Unlike(T::words(bounds))
    }
}

/// The type of a value that is written as one text.
pub trait Value: Sized {
    /// What a key adds to the type: the least and the greatest value, or what a text means; `()`: nothing.
    type Bounds: Copy + Sync + 'static;

    /// The types of TOML in which it may be written.
    const WRITTEN: &'static [Toml] = &[Toml::Text];

    /// The name of a value in the help of an option.
    const PLACEHOLDER: &'static str;

    /// Reads it.
    ///
    /// # Errors
    /// It is of another type, or out of bounds.
    fn read(text: &str, bounds: Self::Bounds) -> Result<Self, Wrong>;

    /// A text that reads as this value.
    fn text(&self) -> String;

    /// What to write, for messages and documentation: "a time, 1 us to 1 h".
    fn words(bounds: Self::Bounds) -> String;

    /// All values, if they are names.
    fn names() -> &'static [&'static str] {
        &[]
    }

    /// What the names mean, where the type knows it and not the key.
    fn meanings() -> String {
        String::new()
    }
}

/// Names for people: "a" or "b".
pub fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(" or ")
}

/// Reads a value, or `word`, which is none.
///
/// # Errors
/// It is neither.
pub fn read_or<T: Value>(word: &str, text: &str, bounds: T::Bounds) -> Result<Option<T>, Wrong> {
    if text == word {
        return Ok(None);
    }
    let or = |wrong| Wrong::Other(format!("{wrong}, and not \"{word}\""));
    T::read(text, bounds).map(Some).map_err(or)
}

/// What [`read_or`] reads.
pub fn words_or<T: Value>(word: &str, bounds: T::Bounds) -> String {
    format!("{}, or \"{word}\"", T::words(bounds))
}

/// A value, or "off".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrOff<T>(pub Option<T>);

const OFF: &str = "off";

impl<T: Value> Value for OrOff<T> {
    type Bounds = T::Bounds;
    const WRITTEN: &'static [Toml] = T::WRITTEN;
    const PLACEHOLDER: &'static str = T::PLACEHOLDER;

    fn read(text: &str, bounds: T::Bounds) -> Result<Self, Wrong> {
        read_or(OFF, text, bounds).map(OrOff)
    }

    fn text(&self) -> String {
        self.0.as_ref().map_or_else(|| OFF.to_owned(), T::text)
    }

    fn words(bounds: T::Bounds) -> String {
        words_or::<T>(OFF, bounds)
    }
}

/// Quantities: a number with a unit, between two others.
macro_rules! quantities {
    ($($type:ty: $words:literal, $placeholder:literal;)*) => { $(
        impl Value for $type {
            type Bounds = ($type, $type);
            // A bare number is read as a text, so that the message names the units.
            const WRITTEN: &'static [Toml] = &[Toml::Text, Toml::Integer, Toml::Float];
            const PLACEHOLDER: &'static str = $placeholder;

            fn read(text: &str, bounds: Self::Bounds) -> Result<Self, Wrong> {
                quantity(text, bounds)
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn words((least, most): Self::Bounds) -> String {
                format!(concat!($words, ", {} to {}"), least, most)
            }
        }
    )* };
}

quantities! {
    Span: "a time", "TIME";
    Rate: "a rate", "RATE";
    Bytes: "a size", "SIZE";
}

fn quantity<Q>(text: &str, bounds: (Q, Q)) -> Result<Q, Wrong>
where
    Q: FromStr<Err = ParseError> + PartialOrd + fmt::Display,
{
    let (least, most) = &bounds;
    let value: Q = text.parse().map_err(|error| {
        Wrong::Other(match error {
            ParseError::NotANumber { .. } => {
                "which does not start with a decimal number and a unit".to_owned()
            }
            ParseError::NoUnit { units, .. } => format!("which has no unit (one of {units})"),
            ParseError::UnknownUnit { units, .. } => format!("whose unit is not one of {units}"),
            ParseError::TooFine { base, .. } => format!("finer than 1 {base}"),
            // Below the type's range: negative, or a rate of zero.
            ParseError::OutOfRange { .. } if text.trim().starts_with(['-', '0']) => {
                return Wrong::Below(least.to_string())
            }
            ParseError::OutOfRange { .. } => return Wrong::Above(most.to_string()),
        })
    })?;
    within(&value, least, most)?;
    Ok(value)
}

fn within<T: PartialOrd + fmt::Display>(value: &T, least: &T, most: &T) -> Result<(), Wrong> {
    if value < least {
        return Err(Wrong::Below(least.to_string()));
    }
    if value > most {
        return Err(Wrong::Above(most.to_string()));
    }
    Ok(())
}

impl Value for bool {
    type Bounds = ();
    const WRITTEN: &'static [Toml] = &[Toml::Flag];
    const PLACEHOLDER: &'static str = "true|false";

    fn read(text: &str, (): ()) -> Result<bool, Wrong> {
        text.parse().map_err(|_| Wrong::unlike::<bool>(()))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((): ()) -> String {
        "true or false".to_owned()
    }
}

/// The greatest whole number that TOML can write.
pub const ANY_NUMBER: u64 = i64::MAX as u64;

/// Whole numbers between two others.
macro_rules! whole_numbers {
    ($($type:ty),*) => { $(
        impl Value for $type {
            type Bounds = ($type, $type);
            const WRITTEN: &'static [Toml] = &[Toml::Integer];
            const PLACEHOLDER: &'static str = "NUMBER";

            fn read(text: &str, bounds: Self::Bounds) -> Result<Self, Wrong> {
                let unlike = |_| Wrong::unlike::<Self>(bounds);
                let number: i128 = text.parse().map_err(unlike)?;
                within(&number, &bounds.0.into(), &bounds.1.into())?;
                Ok(number as $type)
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn words((least, most): Self::Bounds) -> String {
                match u64::from(most) == ANY_NUMBER {
                    true => format!("a number, from {least}"),
                    false => format!("a number, {least} to {most}"),
                }
            }
        }
    )* };
}

whole_numbers!(u32, u64);

/// A number above the first bound and up to the second.
impl Value for f64 {
    type Bounds = (f64, f64);
    const WRITTEN: &'static [Toml] = &[Toml::Integer, Toml::Float];
    const PLACEHOLDER: &'static str = "NUMBER";

    fn read(text: &str, bounds: (f64, f64)) -> Result<f64, Wrong> {
        let unlike = |_| Wrong::unlike::<f64>(bounds);
        let (number, (above, most)) = (text.parse::<f64>().map_err(unlike)?, bounds);
        match number > above && number <= most {
            true => Ok(number),
            false => Err(Wrong::Other(format!("outside ({above}, {most}]"))),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((above, most): (f64, f64)) -> String {
        format!("a number in ({above}, {most}]")
    }
}

/// A text of one line, which the words of its key describe.
impl Value for String {
    type Bounds = &'static str;
    const PLACEHOLDER: &'static str = "TEXT";

    fn read(text: &str, words: &'static str) -> Result<String, Wrong> {
        match is_line(text) {
            true => Ok(text.to_owned()),
            false => Err(Wrong::unlike::<String>(words)),
        }
    }

    fn text(&self) -> String {
        self.clone()
    }

    fn words(words: &'static str) -> String {
        words.to_owned()
    }
}

impl Value for PathBuf {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "FILE";

    fn read(text: &str, (): ()) -> Result<PathBuf, Wrong> {
        match is_line(text) {
            true => Ok(text.into()),
            false => Err(Wrong::unlike::<PathBuf>(())),
        }
    }

    fn text(&self) -> String {
        self.display().to_string()
    }

    fn words((): ()) -> String {
        "a path".to_owned()
    }
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

impl Value for SocketAddr {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "ADDRESS:PORT";

    fn read(text: &str, (): ()) -> Result<SocketAddr, Wrong> {
        text.parse().map_err(|_| Wrong::unlike::<SocketAddr>(()))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((): ()) -> String {
        Self::PLACEHOLDER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: (Span, Span) = (Span::from_us(1), Span::from_s(1));

    fn wrong<T: Value>(text: &str, bounds: T::Bounds) -> String {
        T::read(text, bounds).err().expect(text).to_string()
    }

    #[test]
    fn a_value_out_of_bounds_is_told_its_bound() {
        assert_eq!(wrong::<Span>("1 ns", BOUNDS), "below min 1 us");
        assert_eq!(wrong::<Span>("2 s", BOUNDS), "above max 1 s");
        assert!(wrong::<Span>("5", BOUNDS).starts_with("which has no unit"));
        assert!(wrong::<Span>("5 kB", BOUNDS).starts_with("whose unit is not one of"));
        assert_eq!(wrong::<u32>("-1", (16, 32)), "below min 16");
        assert_eq!(wrong::<f64>("0", (0.0, 1.0)), "outside (0, 1]");
        assert_eq!(wrong::<f64>("NaN", (0.0, 1.0)), "outside (0, 1]");
        assert_eq!(wrong::<String>("a\nb", "a name"), "which is not a name");
        assert_eq!(wrong::<bool>("yes", ()), "which is not true or false");
    }

    #[test]
    fn a_word_stands_in_place_of_a_value() {
        type Guard = OrOff<Span>;
        assert!(wrong::<Guard>("often", BOUNDS).ends_with("and not \"off\""));
        let off = Guard::read("off", BOUNDS);
        assert_eq!(off.as_ref().map(Value::text), Ok("off".to_owned()));
        assert_eq!(off, Ok(OrOff(None)));
        assert_eq!(Guard::words(BOUNDS), "a time, 1 us to 1 s, or \"off\"");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(number in -1.0_f64..1e9, ps in 0..i64::MAX, count: u32, bits in 1..u64::MAX) {
            let span = Span::from_ps(ps);
            let rate = Rate::from_bits_per_s(bits).expect("it is above 0");
            let any = (Span::ZERO, Span::from_ps(i64::MAX));
            prop_assert_eq!(Span::read(&span.text(), any), Ok(span));
            prop_assert_eq!(f64::read(&number.text(), (-2.0, 1e9)), Ok(number));
            prop_assert_eq!(u32::read(&count.text(), (0, u32::MAX)), Ok(count));
            prop_assert_eq!(Rate::read(&rate.text(), (rate, rate)), Ok(rate));
        }
    }
}
