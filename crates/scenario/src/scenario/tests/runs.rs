// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about cases, sweeps and settings.

use super::*;

#[test]
fn runs_are_cases_times_sweep_with_the_last_key_fastest() {
    let sweep = "[sweep]\nseed = [1, 2]\n\"onramp.threshold\" = [\"30 us\", \"50 us\"]\n";
    let scenario = scenario(&format!("{CASES}{sweep}"));
    let params = |run: &Run| {
        let of = |key: &str| run.params[key].clone();
        [
            of("case"),
            of("seed"),
            of("onramp.threshold"),
            of("onramp.law"),
            of("host.qdisc"),
        ]
        .join(" ")
    };
    let runs: Vec<String> = scenario.runs().iter().map(params).collect();
    // With law off the threshold means nothing: one run for both.
    assert_eq!(
        runs,
        [
            "fq 1 off off fq",
            "fq 2 off off fq",
            "gate 1 30 us gate edge",
            "gate 1 50 us gate edge",
            "gate 2 30 us gate edge",
            "gate 2 50 us gate edge",
        ]
    );
}

#[test]
fn errors_of_an_override_are_at_the_override() {
    let more = r#"[onramp]
law = "final"
[[case]]
name = "fq"
"host.qdisc" = "fq"
[[case]]
name = "fq"
"traffic.2.load" = 0.1
"traffic.0.kind" = "long"
[sweep]
"network.ecn.threshold" = ["65 kB",
  "400 kB", "1"]
"network.colour" = [1]
"host.cc" = []
"#;
    assert_eq!(
        errors_of(more),
        "t:16: onramp.law is final, which needs host.qdisc edge\n\
         t:18: case.name is \"fq\", the name of an earlier case: set another name\n\
         t:19: traffic.2.load is a key of [[traffic]] entry 2, expected an entry from 0 to 1\n\
         t:20: traffic.0.kind is the same in all runs: set it outside of cases and sweep\n\
         t:23: network.ecn.threshold is \"1\", which has no unit (one of B, kB, MB, GB, KiB, MiB, GiB)\n\
         t:23: network.ecn.threshold is 400 kB, above max 300 kB (network.buffer)\n\
         t:24: unknown key network.colour\n\
         t:25: sweep.host.cc is an empty list, expected at least one value"
    );
}

#[test]
fn case_names_are_given_and_fit_file_names() {
    assert!(errors_of("[[case]]\nseed = 2\n")
        .starts_with("t:12: case.name is missing, expected 1 to 40 of"));
    for name in ["", "a/b", "..", "a b"] {
        let text = errors_of(&format!("[[case]]\nname = \"{name}\"\n"));
        assert!(
            text.starts_with(&format!("t:13: case.name is \"{name}\", expected")),
            "{text}"
        );
    }
}

#[test]
fn too_many_runs_are_refused_before_they_are_made() {
    let list = format!("[{}]", vec!["1"; 1001].join(","));
    let sweep = format!("[sweep]\nseed = {list}\ntime_dilation = {list}\n");
    assert_eq!(
        errors_of(&sweep),
        "t:14: case x sweep is 1002001 runs, above max 1000"
    );
}

#[test]
fn a_setting_replaces_file_case_and_sweep() {
    let text = format!("{BASE}{CASES}[sweep]\nseed = [1, 2]\n");
    let set = [
        ("seed", "9"),
        ("onramp.law", "off"),
        ("network.buffer", "1 MB"),
    ];
    let scenario = Scenario::parse_with(&text, "t", &set).unwrap();
    assert_eq!(scenario.runs().len(), 2);
    for run in scenario.runs() {
        assert_eq!(
            (run.seed, run.onramp.law, run.network.ports.buffer.get()),
            (9, Law::Off.into(), 1_000_000)
        );
        assert!(!run.params.contains_key("seed"));
    }
}

#[test]
fn a_list_of_settings_is_swept() {
    let set = [
        ("seed", "[1, 2]"),
        ("network.buffer", "[\"1 MB\", \"2 MB\"]"),
    ];
    let scenario = Scenario::parse_with(BASE, "t", &set).unwrap();
    let varied = |run: &Run| {
        (
            run.params["seed"].clone(),
            run.params["network.buffer"].clone(),
        )
    };
    let runs: Vec<_> = scenario.runs().iter().map(varied).collect();
    let expected = [("1", "1 MB"), ("1", "2 MB"), ("2", "1 MB"), ("2", "2 MB")];
    assert_eq!(runs, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    for wrong in ["[]", "[1, x", "[-1]", "[[1]]"] {
        let error = Scenario::parse_with(BASE, "t", &[("seed", wrong)]).unwrap_err();
        assert!(error.to_string().starts_with("--set: seed is"), "{error}");
    }
}

#[test]
fn wrong_settings_are_reported_as_such() {
    let set = [
        ("seed", "x"),
        ("colour", "red"),
        ("traffic.2.to", "1"),
        ("warmup", "1 s"),
    ];
    assert_eq!(
        Scenario::parse_with(BASE, "t", &set)
            .unwrap_err()
            .to_string(),
        "--set: seed is \"x\", expected a number, from 0\n\
         --set: traffic.2.to is a key of [[traffic]] entry 2, expected an entry from 0 to 1\n\
         --set: unknown key colour\n\
         --set: warmup is 1 s, not below 10 ms (duration)"
    );
}

#[test]
fn keys_set_twice_in_two_spellings_are_refused() {
    let text = format!("\"network.buffer\" = \"9 kB\"\n{BASE}")
        .replace("[[traffic]]\nkind = \"long\"", "");
    let text = text.replace("[network]\n", "[network]\nbuffer = \"8 kB\"\n");
    assert_eq!(
        errors(&text),
        "t:5: network.buffer is set twice: remove one of the lines"
    );
}
