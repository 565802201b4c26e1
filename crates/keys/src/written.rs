// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Values of TOML as texts, and their types in words.

use toml::de::DeValue;

/// A type of TOML that a key's value can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toml {
    /// In quotes.
    Text,
    /// A whole number.
    Integer,
    /// A number with a point or an exponent.
    Float,
    /// True or false.
    Flag,
}

impl Toml {
    /// The type of a value, if it is one of a key's.
    pub fn of(value: &DeValue<'_>) -> Option<Toml> {
        match value {
            DeValue::String(_) => Some(Toml::Text),
            DeValue::Integer(_) => Some(Toml::Integer),
            DeValue::Float(_) => Some(Toml::Float),
            DeValue::Boolean(_) => Some(Toml::Flag),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        }
    }
}

/// A scalar as text: `7` and `"7"` have the same text.
pub fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Some(number.to_string()),
            Err(_) => Some(digits.as_str().to_owned()),
        },
        DeValue::Float(digits) => Some(digits.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value as it is written in the file.
pub fn shown(value: &DeValue<'_>) -> String {
    match (value, text_of(value)) {
        (DeValue::String(_), Some(text)) => format!("{text:?}"),
        (_, Some(text)) => text,
        (other, None) => kind(other).to_owned(),
    }
}

/// Its type in words.
pub fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text in quotes",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
