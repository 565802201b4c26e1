// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The file of a sweep, as TOML has it.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A sweep as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub title: Option<String>,
    /// Path of the scenario, from the file's directory.
    pub scenario: String,
    /// Each point runs with all of them; none: the scenario's.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Settings that belong together.
    #[serde(default)]
    pub point: Vec<IndexMap<String, Value>>,
    /// Values of keys, of which each combination is a point.
    #[serde(default)]
    pub grid: IndexMap<String, Vec<Value>>,
    pub sample: Option<Sample>,
}

/// Points that are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub method: Method,
    pub points: u32,
    #[serde(default)]
    pub seed: u32,
    pub keys: IndexMap<String, Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Method {
    /// Independent of each other.
    Random,
    /// Spread evenly over all keys (Sobol's sequence, scrambled as Owen does).
    Sobol,
}

/// From where a key's values are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Range {
    /// One of these.
    Choice(Vec<Value>),
    /// A number or a quantity between two.
    Between(Between),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Between {
    pub from: Value,
    pub to: Value,
    #[serde(default)]
    pub scale: Scale,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    #[default]
    Linear,
    Log,
}

/// A value as a scenario's setting.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
