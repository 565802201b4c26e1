// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What tests of several modules need.

use crate::run_result::RunResult;
use serde_json::Value;
use std::collections::BTreeMap;

/// A run without metrics.
pub(crate) fn run(run: usize, params: &[(&str, &str)]) -> RunResult {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    RunResult {
        run,
        params: params.iter().map(owned).collect(),
        resolved: Value::Null,
        partial: false,
        metrics: BTreeMap::new(),
        cost: BTreeMap::new(),
    }
}
