// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One checked value, and the forms a value can have.

use crate::error::Problem;
use crate::{Fraction, HostSet, Inline, NotHosts};
use onramp_cc::{Bounds, Setting};
use onramp_units::{Bytes, ParseError, Rate, Span};
use std::fmt;
use std::str::FromStr;

/// A value of a key, within the key's bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Count(u64),
    Flag(bool),
    Fraction(Fraction),
    Span(Span),
    Rate(Rate),
    Bytes(Bytes),
    Graph(Inline),
}

/// The form of a key's value, with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// A line of text.
    Title,
    /// A whole number.
    Count(u64, u64),
    /// A host's number, a range of them, or the word for several hosts.
    HostOr(&'static str),
    /// Of a file.
    Path,
    /// A name of a list, or a path.
    ChoiceOrPath(&'static [&'static str]),
    Host,
    /// Numbers and ranges of hosts.
    Hosts,
    Flag,
    /// A number without dimension.
    Fraction(f64, f64),
    Span(Span, Span),
    /// A span, or the word "off".
    SpanOrOff(Span, Span),
    Rate(Rate, Rate),
    Bytes(Bytes, Bytes),
    Choice(&'static [&'static str]),
    /// The name of a congestion control.
    Cc,
    /// A table of nodes and links, which is read as such (document.rs).
    Graph,
}

/// The word that switches a law off where a threshold is expected.
pub(crate) const OFF: &str = "off";
const MAX_TITLE: usize = 200;
const MAX_PATH: usize = 1000;

impl Form {
    /// Reads `text`, the value of `key`.
    pub(crate) fn read(self, key: &str, text: &str) -> Result<Value, Problem> {
        match self {
            Form::Title => self.read_title(key, text),
            Form::Count(min, max) => read_count(key, text, min, max).map(Value::Count),
            Form::Host => read_count(key, text, 0, u64::from(u32::MAX)).map(Value::Count),
            Form::HostOr(word) if text == word => Ok(Value::Text(text.to_owned())),
            Form::HostOr(_) if range(text).is_some() => Ok(Value::Text(text.to_owned())),
            Form::HostOr(_) if text.parse::<i128>().is_err() => Err(self.unlike(key, text)),
            Form::HostOr(_) => Form::Host.read(key, text),
            Form::Hosts => self.read_hosts(key, text),
            Form::Path => self.read_path(key, text),
            Form::ChoiceOrPath(names) if names.contains(&text) => Ok(Value::Text(text.to_owned())),
            // A text without these is a misspelt name.
            Form::ChoiceOrPath(_) if text.contains(['.', '/']) => self.read_path(key, text),
            Form::ChoiceOrPath(_) => Err(self.unlike(key, text)),
            Form::Flag => match text.parse() {
                Ok(flag) => Ok(Value::Flag(flag)),
                Err(_) => Err(self.unlike(key, text)),
            },
            Form::Fraction(min, max) => {
                let number: Fraction = text.parse().map_err(|error| Problem::Fraction {
                    key: key.to_owned(),
                    error,
                })?;
                within(key, number.get(), min, max)?;
                Ok(Value::Fraction(number))
            }
            Form::SpanOrOff(..) if text == OFF => Ok(Value::Text(text.to_owned())),
            Form::Span(min, max) | Form::SpanOrOff(min, max) => {
                read_quantity(key, text, min, max).map(Value::Span)
            }
            Form::Rate(min, max) => read_quantity(key, text, min, max).map(Value::Rate),
            Form::Bytes(min, max) => read_quantity(key, text, min, max).map(Value::Bytes),
            Form::Cc => Form::Choice(onramp_cc::names()).read(key, text),
            Form::Choice(names) if names.contains(&text) => Ok(Value::Text(text.to_owned())),
            Form::Choice(_) | Form::Graph => Err(self.unlike(key, text)),
        }
    }

    fn read_title(self, key: &str, text: &str) -> Result<Value, Problem> {
        let fits = (1..=MAX_TITLE).contains(&text.chars().count());
        if !fits || text.chars().any(char::is_control) {
            return Err(self.unlike(key, text));
        }
        Ok(Value::Text(text.to_owned()))
    }

    fn read_hosts(self, key: &str, text: &str) -> Result<Value, Problem> {
        match text.parse::<HostSet>() {
            Ok(_) => Ok(Value::Text(text.to_owned())),
            Err(NotHosts::Form) => Err(self.unlike(key, text)),
            Err(NotHosts::Twice(host)) => Err(Problem::Expected {
                key: key.to_owned(),
                found: format!("{text:?}, which has host {host} twice"),
                expected: "each host once".to_owned(),
            }),
        }
    }

    fn read_path(self, key: &str, text: &str) -> Result<Value, Problem> {
        let fits = (1..=MAX_PATH).contains(&text.len()) && !text.chars().any(char::is_control);
        fits.then(|| Value::Text(text.to_owned()))
            .ok_or_else(|| self.unlike(key, text))
    }

    fn unlike(self, key: &str, text: &str) -> Problem {
        Problem::Expected {
            key: key.to_owned(),
            found: format!("{text:?}"),
            expected: self.to_string(),
        }
    }
}

impl From<Bounds> for Form {
    fn from(bounds: Bounds) -> Form {
        match bounds {
            Bounds::Fraction(min, max) => Form::Fraction(min, max),
            Bounds::Count(min, max) => Form::Count(min.into(), max.into()),
            Bounds::Span(min, max) => Form::Span(min, max),
            Bounds::Rate(min, max) => Form::Rate(min, max),
            Bounds::Flag => Form::Flag,
        }
    }
}

impl Value {
    /// Whether it is the word for no threshold: law off.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Value::Text(word) if word == OFF)
    }

    /// As a parameter of a congestion control, if it can be one.
    pub(crate) fn setting(&self) -> Option<Setting> {
        Some(match self {
            Value::Fraction(value) => Setting::Fraction(value.get()),
            Value::Count(value) => Setting::Count((*value).try_into().ok()?),
            Value::Span(value) => Setting::Span(*value),
            Value::Rate(value) => Setting::Rate(*value),
            Value::Flag(value) => Setting::Flag(*value),
            Value::Text(_) | Value::Bytes(_) | Value::Graph(_) => return None,
        })
    }
}

impl From<Setting> for Value {
    fn from(setting: Setting) -> Value {
        match setting {
            Setting::Fraction(value) => Value::Fraction(Fraction::of(value)),
            Setting::Count(value) => Value::Count(value.into()),
            Setting::Span(value) => Value::Span(value),
            Setting::Rate(value) => Value::Rate(value),
            Setting::Flag(value) => Value::Flag(value),
        }
    }
}

impl fmt::Display for Form {
    /// For people: "rate, 1 Mbit/s to 1 Tbit/s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Title => write!(f, "one line of 1 to {MAX_TITLE} characters"),
            Form::Count(min, max) if *max == i64::MAX as u64 => write!(f, "number, from {min}"),
            Form::Count(min, max) => write!(f, "number, {min} to {max}"),
            Form::Host => f.write_str("host number"),
            Form::Hosts => f.write_str("host numbers and ranges, like \"0-7\" or \"0-3,8\""),
            Form::HostOr(word) => write!(f, "host number, range like \"0-3\", or \"{word}\""),
            Form::Graph => f.write_str("a table with `switches`, `hosts` and `links`"),
            Form::Path => f.write_str("path, from the scenario's directory"),
            Form::ChoiceOrPath(names) => {
                write!(f, "{}, or the path of a file", Form::Choice(names))
            }
            Form::Flag => f.write_str("true or false"),
            Form::Fraction(min, max) => write!(f, "fraction, {min} to {max}"),
            Form::Span(min, max) => write!(f, "time, {min} to {max}"),
            Form::SpanOrOff(min, max) => write!(f, "time, {min} to {max}, or \"{OFF}\""),
            Form::Rate(min, max) => write!(f, "rate, {min} to {max}"),
            Form::Bytes(min, max) => write!(f, "size, {min} to {max}"),
            Form::Cc => Form::Choice(onramp_cc::names()).fmt(f),
            Form::Choice(names) => {
                let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
                f.write_str(&quoted.join(" or "))
            }
        }
    }
}

impl fmt::Display for Value {
    /// As in a scenario file, without quotes; "a table" for tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => text.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
            Value::Fraction(fraction) => fraction.fmt(f),
            Value::Span(span) => span.fmt(f),
            Value::Rate(rate) => rate.fmt(f),
            Value::Bytes(bytes) => bytes.fmt(f),
            Value::Graph(_) => f.write_str("a table"),
        }
    }
}

impl From<&Value> for toml::Value {
    fn from(value: &Value) -> toml::Value {
        match value {
            // Counts are read from TOML's signed integers or bounded by their form.
            Value::Count(count) => toml::Value::Integer(*count as i64),
            Value::Flag(flag) => toml::Value::Boolean(*flag),
            Value::Fraction(fraction) => toml::Value::Float(fraction.get()),
            Value::Graph(inline) => toml::Value::Table(inline.table.clone()),
            other => toml::Value::String(other.to_string()),
        }
    }
}

/// "3-7" as 3 and 7.
pub(crate) fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| {
        let number: u32 = text.parse().ok()?;
        (number.to_string() == text).then_some(number)
    };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

fn read_count(key: &str, text: &str, min: u64, max: u64) -> Result<u64, Problem> {
    let number: i128 = text
        .parse()
        .map_err(|_| Form::Count(min, max).unlike(key, text))?;
    within(key, number, i128::from(min), i128::from(max))?;
    Ok(number as u64)
}

fn read_quantity<Q>(key: &str, text: &str, min: Q, max: Q) -> Result<Q, Problem>
where
    Q: FromStr<Err = ParseError> + PartialOrd + fmt::Display,
{
    let quantity: Q = text
        .parse()
        .map_err(|error| beyond(key, text, error, &min, &max))?;
    within(key, &quantity, &min, &max)?;
    Ok(quantity)
}

/// The error of a text that does not parse. A number outside of its type's range is also outside of the
/// key's bounds, which the message gives.
fn beyond<Q: fmt::Display>(key: &str, text: &str, error: ParseError, min: &Q, max: &Q) -> Problem {
    let (key, value) = (key.to_owned(), text.trim().to_owned());
    match error {
        // Below the type's range: negative, or a rate of zero.
        ParseError::OutOfRange { .. } if value.starts_with(['-', '0']) => Problem::Below {
            key,
            value,
            min: min.to_string(),
        },
        ParseError::OutOfRange { .. } => Problem::Above {
            key,
            value,
            max: max.to_string(),
        },
        error => Problem::Quantity { key, error },
    }
}

fn within<Q: PartialOrd + fmt::Display>(
    key: &str,
    value: Q,
    min: Q,
    max: Q,
) -> Result<(), Problem> {
    let (key, text) = (key.to_owned(), value.to_string());
    if value < min {
        return Err(Problem::Below {
            key,
            value: text,
            min: min.to_string(),
        });
    }
    if value > max {
        return Err(Problem::Above {
            key,
            value: text,
            max: max.to_string(),
        });
    }
    Ok(())
}
