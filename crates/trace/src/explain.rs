// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The reference of the format, from the comments of the records.

use std::fmt::Write;

use schemars::{schema_for, Schema};
use serde_json::Value;

use crate::{Delays, Device, Flow, Head, Hour};

const ABOUT: &str = "# Traces
A trace lists the flows that a daemon saw. The daemon writes one if `trace.path` is set ([keys](configuration.md)), also
while it only observes. [Use](observe.md#record-a-trace).

<!-- Written by: cargo run -p onramp-trace --example trace-reference > docs/trace.md -->

A trace has a JSON object a line. `kind` is `head`, `flow` or `hour`. It has no payload.

| limit | reason |
|---|---|
| times of a flow are those of sampled segments, one in 14,480 B | the daemon reads them from the flow table; nothing is added to the path of a packet |
| sizes of flows that follow each other on one connection are exact together, and each to 14,480 B | the same |
| of a fast flow the first segments of a look are lost, and their bytes begin at the look before | the flow table has the last 256 sampled segments |
| a flow longer than 10 s is written in pieces | so it is in the trace before it ends |
| a flow that ends, and whose entry goes to another flow, between two looks is lost | the daemon looks at most once a millisecond |
| delays are those that a look saw, at most one a look | |
";

/// docs/trace.md.
pub fn reference() -> String {
    let mut text = ABOUT.to_owned();
    let kinds = [
        (
            "head: the first line of a file, and of a daemon",
            schema_for!(Head),
        ),
        ("devices of a head", schema_for!(Device)),
        (
            "flow: bytes that one connection sends without a pause of `gap_ns`",
            schema_for!(Flow),
        ),
        ("delays of a flow", schema_for!(Delays)),
        ("hour: a peer in an hour", schema_for!(Hour)),
    ];
    for (title, schema) in kinds {
        let _ = write!(
            text,
            "\n## {title}\n\n| field | meaning |\n|---|---|\n{}",
            rows(&schema)
        );
    }
    text
}

fn rows(schema: &Schema) -> String {
    let fields = schema.get("properties").and_then(Value::as_object);
    let row = |(name, field): (&String, &Value)| {
        let meaning = field["description"].as_str().unwrap_or_default();
        format!("| `{name}` | {} |\n", meaning.replace('\n', " "))
    };
    fields.into_iter().flatten().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_that_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace.md");
        let is = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            is == reference(),
            "cargo run -p onramp-trace --example trace-reference > docs/trace.md"
        );
    }

    #[test]
    fn every_field_has_a_meaning() {
        assert!(!reference().contains("|  |\n"));
    }
}
