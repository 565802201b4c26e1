// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Values of keys, and the forms that they have: a form reads a text, checks its bounds, and describes itself.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use onramp_law::{abi::ONR_CGROUP_LEVELS, Law};
use onramp_sync::synthetic::Oscillator;
use onramp_units::{Bytes, ParseError, Rate, Span};

use crate::{cgroup, prefix::Prefix};

use super::class::Ports;

/// A value within the bounds of its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Flag(bool),
    Count(u32),
    Number(f64),
    Span(Span),
    Rate(Rate),
    Bytes(Bytes),
    Address(SocketAddr),
    Prefix(Prefix),
    Ports(Ports),
    Clock(Oscillator),
    List(Vec<Value>),
}

/// The form of a value, with its bounds.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A text of one line, which these words describe.
    Text(&'static str),
    Path,
    Flag,
    Count(u32, u32),
    /// A number above the first bound and up to the second.
    Number(f64, f64),
    Span(Span, Span),
    /// A span, or this word.
    SpanOr(&'static str, Span, Span),
    Rate(Rate, Rate),
    Bytes(Bytes, Bytes),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// The name of a registered law.
    Law,
    Address,
    Prefix,
    Ports,
    Cgroup,
    /// The error of a clock.
    Clock,
    /// A list of values of the other form.
    List(&'static Form),
}

/// Why a text is no value: what is wrong with it, without the key and the text.
pub type Wrong = String;

impl Form {
    /// Reads one value; lists read [`Form::element`]s.
    ///
    /// # Errors
    /// Another form, or out of bounds.
    pub fn read(self, text: &str) -> Result<Value, Wrong> {
        let unlike = || format!("which is not {}", self.words());
        match self {
            Form::Text(_) | Form::Path if text.is_empty() || text.contains(char::is_control) => {
                Err(unlike())
            }
            Form::Text(_) | Form::Path => Ok(Value::Text(text.to_owned())),
            Form::Choice(names) if names.contains(&text) => Ok(Value::Text(text.to_owned())),
            Form::Choice(_) => Err(unlike()),
            Form::Law => match text.parse::<Law>() {
                Ok(law) => Ok(Value::Text(law.name().to_owned())),
                Err(_) => Err(unlike()),
            },
            Form::Flag => text.parse().map(Value::Flag).map_err(|_| unlike()),
            Form::Count(least, most) => {
                let number: i128 = text.parse().map_err(|_| unlike())?;
                within(&number, &least.into(), &most.into())?;
                Ok(Value::Count(number as u32))
            }
            Form::Number(above, most) => {
                let number: f64 = text.parse().map_err(|_| unlike())?;
                match number > above && number <= most {
                    true => Ok(Value::Number(number)),
                    false => Err(format!("outside ({above}, {most}]")),
                }
            }
            Form::SpanOr(word, ..) if text == word => Ok(Value::Text(text.to_owned())),
            Form::Span(least, most) => quantity(text, &least, &most).map(Value::Span),
            Form::SpanOr(word, least, most) => quantity(text, &least, &most)
                .map(Value::Span)
                .map_err(|wrong| format!("{wrong}, and not \"{word}\"")),
            Form::Rate(least, most) => quantity(text, &least, &most).map(Value::Rate),
            Form::Bytes(least, most) => quantity(text, &least, &most).map(Value::Bytes),
            Form::Address => text.parse().map(Value::Address).map_err(|_| unlike()),
            Form::Prefix => {
                let prefix: Result<Prefix, _> = text.parse();
                prefix.map(Value::Prefix).map_err(|e| e.to_string())
            }
            Form::Ports => text.parse().map(Value::Ports),
            Form::Cgroup if cgroup::is_path(text) => Ok(Value::Text(text.to_owned())),
            Form::Cgroup => Err(unlike()),
            Form::Clock => text.parse().map(Value::Clock),
            Form::List(element) => element.read(text),
        }
    }

    /// The form of the elements of a list.
    pub fn element(self) -> Option<Form> {
        match self {
            Form::List(element) => Some(*element),
            _ => None,
        }
    }

    /// What to write, for messages: "a time, 1 us to 1 h".
    pub fn words(&self) -> String {
        match self {
            Form::Text(words) => (*words).to_owned(),
            Form::Path => "a path".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Count(least, most) => format!("a number, {least} to {most}"),
            Form::Number(above, most) => format!("a number in ({above}, {most}]"),
            Form::Span(least, most) => format!("a time, {least} to {most}"),
            Form::SpanOr(word, least, most) => format!("a time, {least} to {most}, or \"{word}\""),
            Form::Rate(least, most) => format!("a rate, {least} to {most}"),
            Form::Bytes(least, most) => format!("a size, {least} to {most}"),
            Form::Choice(names) => alternatives(names),
            Form::Law => alternatives(&Law::all().map(Law::name).collect::<Vec<_>>()),
            Form::Address => "ADDRESS:PORT".to_owned(),
            Form::Prefix => "an IP address or prefix such as \"10.0.0.0/8\"".to_owned(),
            Form::Ports => "a port or a range such as \"8000-8100\"".to_owned(),
            Form::Cgroup => format!(
                "a path of 1 to {} names such as \"/system.slice/backup.service\"",
                ONR_CGROUP_LEVELS - 1
            ),
            Form::Clock => "offset=TIME,drift=NUMBER".to_owned(),
            Form::List(element) => format!("a list of: {}", element.words()),
        }
    }

    /// Whether TOML writes such a value in quotes.
    pub fn is_quoted(self) -> bool {
        !matches!(self, Form::Flag | Form::Count(..) | Form::Number(..))
    }

    /// The name of a value in the help of an option.
    pub fn placeholder(self) -> &'static str {
        match self {
            Form::Text(_) => "TEXT",
            Form::Path => "FILE",
            Form::Flag => "true|false",
            Form::Count(..) | Form::Number(..) => "NUMBER",
            Form::Span(..) | Form::SpanOr(..) => "TIME",
            Form::Rate(..) => "RATE",
            Form::Bytes(..) => "SIZE",
            Form::Choice(_) | Form::Law => "NAME",
            Form::Address => "ADDRESS:PORT",
            Form::Prefix => "PREFIX",
            Form::Ports => "PORTS",
            Form::Cgroup => "PATH",
            Form::Clock => "ERROR",
            Form::List(element) => element.placeholder(),
        }
    }
}

fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(" or ")
}

fn quantity<Q>(text: &str, least: &Q, most: &Q) -> Result<Q, Wrong>
where
    Q: FromStr<Err = ParseError> + PartialOrd + fmt::Display,
{
    let value: Q = text.parse().map_err(|error| match error {
        ParseError::NotANumber { .. } => {
            "which does not start with a decimal number and a unit".to_owned()
        }
        ParseError::NoUnit { units, .. } => format!("which has no unit (one of {units})"),
        ParseError::UnknownUnit { units, .. } => format!("whose unit is not one of {units}"),
        ParseError::TooFine { base, .. } => format!("finer than 1 {base}"),
        ParseError::OutOfRange { .. } => format!("outside {least} to {most}"),
    })?;
    within(&value, least, most)?;
    Ok(value)
}

fn within<T: PartialOrd + fmt::Display>(value: &T, least: &T, most: &T) -> Result<(), Wrong> {
    if value < least {
        return Err(format!("below min {least}"));
    }
    if value > most {
        return Err(format!("above max {most}"));
    }
    Ok(())
}

impl fmt::Display for Value {
    /// As in a file, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => text.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Span(span) => span.fmt(f),
            Value::Rate(rate) => rate.fmt(f),
            Value::Bytes(bytes) => bytes.fmt(f),
            Value::Address(address) => address.fmt(f),
            Value::Prefix(prefix) => prefix.fmt(f),
            Value::Ports(ports) => ports.fmt(f),
            Value::Clock(clock) => clock.fmt(f),
            Value::List(list) => {
                let all: Vec<String> = list.iter().map(Value::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
        }
    }
}

/// The Rust types of values. A key's form and its type are both chosen where the key is read, so a mismatch is a
/// mistake of the program, which the test of the defaults finds.
macro_rules! of_value {
    ($($variant:ident: $type:ty,)+) => {
        $(impl From<&Value> for $type {
            fn from(value: &Value) -> $type {
                match value {
                    Value::$variant(inner) => inner.clone(),
                    other => panic!("{other} is no {}", stringify!($variant)),
                }
            }
        })+
    };
}

of_value! {
    Text: String,
    Flag: bool,
    Count: u32,
    Number: f64,
    Span: Span,
    Rate: Rate,
    Bytes: Bytes,
    Address: SocketAddr,
    Prefix: Prefix,
    Ports: Ports,
    Clock: Oscillator,
}

impl From<&Value> for PathBuf {
    fn from(value: &Value) -> PathBuf {
        String::from(value).into()
    }
}

impl<T: for<'a> From<&'a Value>> From<&Value> for Vec<T> {
    fn from(value: &Value) -> Vec<T> {
        match value {
            Value::List(list) => list.iter().map(T::from).collect(),
            other => panic!("{other} is no list"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_bounds_is_told_its_bound() {
        let span = Form::Span(Span::from_us(1), Span::from_s(1));
        let wrong = |form: Form, text: &str| form.read(text).unwrap_err();
        assert_eq!(wrong(span, "1 ns"), "below min 1 us");
        assert_eq!(wrong(span, "2 s"), "above max 1 s");
        assert!(wrong(span, "5").starts_with("which has no unit"));
        assert!(wrong(span, "5 kB").starts_with("whose unit is not one of"));
        assert_eq!(wrong(Form::Count(16, 32), "-1"), "below min 16");
        assert_eq!(wrong(Form::Number(0.0, 1.0), "0"), "outside (0, 1]");
        assert_eq!(wrong(Form::Number(0.0, 1.0), "NaN"), "outside (0, 1]");
        let either = Form::SpanOr("auto", Span::from_us(1), Span::from_s(1));
        assert!(wrong(either, "often").ends_with("and not \"auto\""));
        assert_eq!(either.read("auto"), Ok(Value::Text("auto".to_owned())));
    }
}
