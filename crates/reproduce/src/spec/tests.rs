// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;

const SPEC: &str = r#"title = "t"
asked = "a"
scenario = "s.toml"
[quick]
seeds = 5
takes_s = 1
[full]
seeds = 5
takes_s = 1
[[row]]
name = "RCT"
source = "s"
metric = "incast.rct_us.mean"
each = { "host.cc" = ["dcqcn", "hpcc"] }
of = { "onramp.law" = "off" }
over = { "onramp.law" = "final" }
as = "ratio"
"#;

fn error(from: &str, to: &str) -> String {
    assert!(SPEC.contains(from), "{from}");
    let text = SPEC.replacen(from, to, 1);
    Spec::parse(&text, "figures/t.toml")
        .unwrap_err()
        .to_string()
}

#[test]
fn a_row_is_repeated_for_each_value() {
    let spec = Spec::parse(SPEC, "t").unwrap().expanded(&[]);
    let names: Vec<&str> = spec.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["RCT, dcqcn", "RCT, hpcc"]);
    assert_eq!(spec.rows[1].runs.of["host.cc"], "hpcc");
    assert_eq!(spec.rows[1].runs.over.as_ref().unwrap()["host.cc"], "hpcc");
}

#[test]
fn a_row_is_repeated_for_all_values_of_its_runs() {
    let text = SPEC.replace("[\"dcqcn\", \"hpcc\"]", "\"all\"");
    let run = |law: &str, cc: &str| {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Choice::from([pair("onramp.law", law), pair("host.cc", cc)])
    };
    let runs = [
        run("off", "cubic"),
        run("off", "bbr"),
        run("final", "hpcc"),
        run("off", "cubic"),
    ];
    let spec = Spec::parse(&text, "t").unwrap();
    let spec = spec.expanded(&runs.iter().collect::<Vec<_>>());
    let names: Vec<&str> = spec.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["RCT, cubic", "RCT, bbr"]);
}

/// A text of the figure, what replaces it, and what the error says.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "title =",
        "tilte =",
        "figures/t.toml: TOML parse error at line 1",
    ),
    ("metric =", "metrik =", "unknown field `metrik`"),
    (
        "seeds = 5",
        "seeds = 4",
        "figures/t.toml: quick.seeds is 4, below 5",
    ),
    (
        "seeds = 5",
        "seeds = 0",
        "figures/t.toml: quick.seeds is 0, below min 1",
    ),
    ("as = \"ratio\"", "", "figures/t.toml: row.0.as is missing"),
    ("over = {", "# {", "figures/t.toml: row.0.over is missing"),
    (
        "metric = \"incast.rct_us.mean\"",
        "",
        "row.0.metric is not one of",
    ),
    (
        "\"host.cc\" = [\"dcqcn\", \"hpcc\"]",
        "",
        "row.0.each is not exactly one key",
    ),
    ("as = \"ratio\"", "as = \"half\"", "unknown variant `half`"),
    (
        "metric = \"incast.rct_us.mean\"",
        "cost = \"3.sender_percent\"\nper = \"drops\"",
        "row.0.per is given, but no metric",
    ),
    (
        "[[row]]",
        "[rack]\nseeds = 3\ntakes_s = 1\n[[row]]",
        "figures/t.toml: rack.seeds is 3, below 5",
    ),
    (
        "[[row]]",
        "[rack]\nseeds = 5\ntakes_s = 1\nhosts = 3\n[[row]]",
        "unknown field `hosts`",
    ),
    (
        "scenario = \"s.toml\"\n[quick]",
        "[rack]\nseeds = 5\ntakes_s = 1\n[quick]",
        "figures/t.toml: rack is given, but no scenario",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\nat = \"slow\"",
        "unknown variant `slow`",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\nat_least = 2",
        "row.0.gives is missing: \"words\" or \"picture\"",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\ngives = \"picture\"",
        "row.0.at_least is missing",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\nsays = \"more\"",
        "row.0.gives is missing: \"words\" or \"picture\"",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\ngives = \"words\"\nsays = \"same\"",
        "row.0.margin is missing: the per cent that count as no effect",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\ngives = \"words\"\nsays = \"more\"\nmargin = 2",
        "row.0.margin is given, but `says` has none",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\ngives = \"words\"\nsays = \"same\"\nmargin = 0",
        "row.0.margin is not above 0",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\ngives = \"words\"\nsays = \"more\"\nat_least = 2",
        "row.0.says is given, but a number or a bound says it already",
    ),
    (
        "as = \"ratio\"",
        "as = \"ratio\"\npaper = 1",
        "row.0.paper is no effect: state it as says = \"same\" with a margin",
    ),
    (
        "source = \"s\"",
        "paper = 2",
        "row.0.source is missing, but there is a number of the paper",
    ),
];

#[test]
fn errors_name_file_and_key() {
    for (from, to, expected) in MISTAKES {
        let error = error(from, to);
        assert!(error.contains(expected), "{error}");
    }
}
