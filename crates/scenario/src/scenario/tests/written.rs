// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about writing back, and about any text.

use super::*;
use proptest::prelude::*;

#[test]
fn a_run_is_written_with_its_units() {
    let json = serde_json::to_value(only_run("")).unwrap();
    assert_eq!(json["network"]["link"]["rate"], "10 Gbit/s");
    assert_eq!(json["traffic"][0]["size"], "2 kB");
    assert_eq!(json["traffic"][0]["load"], 0.02);
    assert_eq!(json["onramp"]["threshold"], "50 us");
}

/// Scenario texts, most of them valid.
fn texts() -> impl Strategy<Value = String> {
    let incast = ("[0-8]", 1..30u32, 1..100_000u64, prop_oneof![
        Just("load = \"3 %\"".to_owned()),
        (1..5000u32).prop_map(|us| format!("interval = \"{us}.5 us\"\nrequests = 7")),
        Just("arrivals = \"periodic\"".to_owned()),
    ])
        .prop_map(|(to, fanout, size, rest)| {
            format!("[[traffic]]\nkind = \"incast\"\nto = {to}\nfanout = {fanout}\nsize = \"{size} B\"\n{rest}\n")
        });
    let long = (0..9u32, 1..20u32, 0..5u32, 6..10u32).prop_map(|(to, flows, start, stop)| {
        format!("[[traffic]]\nkind = \"long\"\nto = {to}\nflows = {flows}\nstart = \"{start} ms\"\nstop = \"{stop} ms\"\n")
    });
    let poisson = ("0|5|\"all\"", "websearch|fb_hadoop|google_search_rpc", 1..100u32).prop_map(|(to, workload, load)| {
        format!("[[traffic]]\nkind = \"poisson\"\nto = {to}\nworkload = \"{workload}\"\nload = \"{load} %\"\n")
    });
    let request = (
        "0|5|\"all\"|\"2-4\"",
        "think = \"9 us\"|load = \"10 %\"|concurrency = 2|requests = 5",
    )
        .prop_map(|(to, rest)| {
            format!("[[traffic]]\nkind = \"request\"\nto = {to}\nsize = \"2 kB\"\n{rest}\n")
        });
    let all_to_all = (
        "\"all\"|\"2-4\"",
        "steps = 2|interval = \"50 us\"|start = \"1 ms\"",
    )
        .prop_map(|(among, rest)| {
            format!(
                "[[traffic]]\nkind = \"all_to_all\"\namong = {among}\nsize = \"200 kB\"\n{rest}\n"
            )
        });
    let traffic = prop::collection::vec(
        prop_oneof![incast, long, poisson, request, all_to_all],
        1..4,
    );
    let cases = prop::sample::select(vec![
        "",
        CASES,
        "[[case]]\nname = \"dctcp\"\nhost.cc = \"dctcp\"\nnetwork.ecn = { threshold = \"64 KiB\", at = \"1 Gbit/s\" }\n",
    ]);
    let sweep = prop::sample::select(vec![
        "",
        "[sweep]\n\"onramp.threshold\" = [\"off\", \"31.25 us\"]\n\"onramp.gain\" = [\"1/3\", 0.1]\n",
        "[sweep]\nseed = [3, 4]\nnetwork.buffer = [\"100 KiB\", \"1500 kB\"]\n",
    ]);
    let groups = prop::sample::select(vec![
        "",
        "[[hosts]]\nrange = \"0-1,3\"\nhost.cc = \"bbr\"\nonramp.law = \"off\"\nhost.nic_queue = \"0 B\"\n",
        "[[hosts]]\nrange = 2\nhost.qdisc = \"edge\"\nonramp.law = \"gate\"\n[[hosts]]\nrange = \"3-4\"\nhost.qdisc = \"fq\"\nonramp.law = \"off\"\n",
        "[[hosts]]\nrange = \"1-2\"\nhost.cc = \"udp\"\nnetwork.link.rate = \"1 Gbit/s\"\n[cc.udp]\nrate = \"9 Mbit/s\"\n",
        "[[hosts]]\nrange = \"1-2\"\nhost.cc = \"udp\"\ncc.udp.rate = \"9 Mbit/s\"\n",
    ]);
    (traffic, groups, cases, sweep, 0..100u64).prop_map(|(traffic, groups, cases, sweep, seed)| {
        let head = BASE.split("[[traffic]]").next().unwrap_or_default();
        let traffic = traffic.concat();
        format!("seed = {seed}\n{head}{traffic}{groups}{cases}{sweep}")
    })
}

proptest! {
    #[test]
    fn a_written_scenario_parses_to_an_equal_one(text in texts()) {
        let scenario = Scenario::parse(&text, "t").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let written = scenario.to_toml();
        prop_assert_eq!(Scenario::parse(&written, "t"), Ok(scenario), "{}", written);
    }

    #[test]
    fn a_written_run_parses_to_an_equal_one(text in texts()) {
        for run in Scenario::parse(&text, "t").unwrap().runs() {
            let written = run.to_toml();
            let parsed = Scenario::parse(&written, "t").map_err(|e| TestCaseError::fail(format!("{e}\n{written}")))?;
            prop_assert_eq!(parsed.runs(), std::slice::from_ref(run), "{}", written);
        }
    }

    #[test]
    fn any_text_is_answered(text: String) {
        let _ = Scenario::parse(&text, "t");
    }

    /// Lines of real scenarios in any order, with any value.
    #[test]
    fn any_scenario_like_text_is_answered(lines in prop::collection::vec((
        prop::sample::select(vec![
            "[network]", "[[traffic]]", "[[hosts]]", "range = ", "host.cc = ", "\"hosts.0.range\" = ", "[[case]]", "[sweep]", "[traffic]", "[onramp]", "[traffic.0]",
            "name = ", "kind = ", "to = ", "from = ", "load = ", "duration = ", "\"traffic.0.load\" = ",
            "topology = { kind = \"star\", hosts = 3 } #", "link.rate = ", "threshold = ", "seed = ",
            "\"onramp.threshold\" = ", "fanout = ", "size = ", "interval = ", "title = ",
        ]),
        prop_oneof![
            "-?[0-9]{1,20}", "\"[0-9]{1,12} (us|ms|s|kB|Gbit/s|%)\"", "\\[(\"off\"|1|[0-9]+)\\]",
            "\"(incast|long|poisson|off|all|others)\"", "\\{ a = 1 \\}", "[a-z\\[{\".=]{0,8}",
        ],
    ), 0..20)) {
        let text: String = lines.iter().map(|(key, value)| match key.ends_with(']') {
            true => format!("{key}\n"),
            false => format!("{key}{value}\n"),
        }).collect();
        let _ = Scenario::parse(&text, "t");
        let _ = Scenario::parse(&format!("{BASE}{text}"), "t");
    }

    #[test]
    fn any_setting_is_answered(
        key in prop_oneof!["[a-z0-9.]{0,20}", prop::sample::select(keys::all().chain(keys::of_traffic()).map(|k| k.path.replace("traffic.", "traffic.1.")).collect::<Vec<_>>())],
        value: String,
    ) {
        let _ = Scenario::parse_with(BASE, "t", &[(&key, &value)]);
    }
}

/// What was added later stays out of scenarios that say nothing of it, and is told where it varies.
#[test]
fn later_keys_are_written_where_they_say_something() {
    let varied =
        scenario("[onramp]\nthreshold = \"60 us\"\n[sweep]\n\"onramp.pacing\" = [false, true]\n");
    let pacing: Vec<&str> = varied
        .runs()
        .iter()
        .map(|run| run.params["onramp.pacing"].as_str())
        .collect();
    assert_eq!(pacing, ["false", "true"]);
    let plain = scenario("").to_toml();
    assert!(!plain.contains("pacing") && !plain.contains("connections"));
}
