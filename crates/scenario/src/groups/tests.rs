// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Host groups in scenarios.

use super::*;
use crate::host::Qdisc;
use crate::limits::rack_limits;
use crate::scenario::Scenario;
use crate::types::Run;
use onramp_cc::Cc;
use onramp_law::Law;
use onramp_units::Bytes;

const TEXT: &str = r#"title = "t"
duration = "10 ms"
time_dilation = 100
[network]
topology = { kind = "star", hosts = 16 }
link = { rate = "10 Gbit/s", delay = "1 us" }
ecn = { threshold = "65 kB", at = "10 Gbit/s" }
[[hosts]]
range = "0-7"
host.cc = "bbr"
host.qdisc = "fq"
[[hosts]]
range = "8-11,14"
host.cc = "dctcp"
onramp.gso = "8 kB"
network.link.rate = "1 Gbit/s"
[onramp]
threshold = "30 us"
[[traffic]]
kind = "long"
to = 15
"#;

fn run_of(text: &str) -> Run {
    let scenario = Scenario::parse(text, "t").unwrap_or_else(|errors| panic!("{errors}"));
    scenario.runs()[0].clone()
}

fn errors_of(changes: &[(&str, &str)]) -> String {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let parsed = Scenario::parse(&text, "t");
    parsed.map_or_else(|errors| errors.to_string(), |_| String::new())
}

#[test]
fn a_group_has_the_settings_of_all_hosts_except_its_own() {
    let run = run_of(TEXT);
    let cc = |host| run.settings_of(host).host.cc.name();
    assert_eq!(
        (cc(7), cc(8), cc(13), cc(14)),
        ("bbr", "dctcp", "cubic", "dctcp")
    );
    let law = |host| run.settings_of(host).onramp.law;
    // Queueing disciplines of Linux hold nothing.
    assert_eq!(
        (law(0), law(8), law(12)),
        (Law::Off.into(), Law::Final.into(), Law::Final.into())
    );
    assert_eq!(run.settings_of(0).host.qdisc, Qdisc::Fq);
    let gso = |host| run.settings_of(host).onramp.gso;
    assert_eq!((gso(8), gso(12)), (Bytes::new(8_000), Bytes::new(16_000)));
    assert_eq!(run.settings_of(9).onramp.threshold, run.onramp.threshold);
    let rate = |host| run.network.link_of(host).rate.to_string();
    assert_eq!(
        (rate(7).as_str(), rate(14).as_str()),
        ("10 Gbit/s", "1 Gbit/s")
    );
    assert_eq!(
        (run.group_of(3), run.group_of(14), run.group_of(13)),
        (Some(0), Some(1), None)
    );
    assert!(rack_limits(&run.slow()).is_empty());
}

impl Run {
    /// With links that a rack can have.
    fn slow(&self) -> Run {
        let text = self.to_toml().replace("10 Gbit/s", "5 Gbit/s");
        run_of(&text)
    }
}

#[test]
fn a_threshold_of_marks_says_for_which_ports_it_is_where_they_differ() {
    let of = |rate: &str| run_of(TEXT).network.ecn_at(rate.parse().unwrap()).unwrap();
    let lengths = |rate| [of(rate).threshold, of(rate).max].map(|b| b.get());
    assert_eq!(lengths("10 Gbit/s"), [65_000; 2]);
    assert_eq!(lengths("1 Gbit/s"), [6_500; 2]);
    assert_eq!(
        errors_of(&[(", at = \"10 Gbit/s\"", "")]),
        "t:7: network.ecn.threshold is 65 kB, but hosts' links have 1 Gbit/s to 10 Gbit/s: \
         add network.ecn.at = \"1 Gbit/s\", or the rate of the ports that it is for"
    );
    let alike = [
        (", at = \"10 Gbit/s\"", ""),
        ("= \"1 Gbit/s\"", "= \"10 Gbit/s\""),
    ];
    assert_eq!(errors_of(&alike), "");
}

#[test]
fn what_is_written_is_read() {
    let law_of_one = TEXT.replace("[onramp]", "[onramp]\nlaw = \"off\"").replace(
        "onramp.gso = \"8 kB\"",
        "onramp.law = \"gate\"\ncc.dctcp_kernel.g = 0.1\nhost.nic_queue = \"0 B\"",
    );
    let law_of_one = match Scenario::parse(&law_of_one, "t") {
        Ok(_) => law_of_one,
        Err(_) => law_of_one.replace("cc.dctcp_kernel.g = 0.1\n", ""),
    };
    for text in [TEXT, &law_of_one] {
        let run = run_of(text);
        assert_eq!(run_of(&run.to_toml()), run);
        let scenario = Scenario::parse(text, "t").unwrap();
        let again = Scenario::parse(&scenario.to_toml(), "t").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again.runs(), scenario.runs());
    }
}

#[test]
fn cases_and_sweeps_set_keys_of_groups() {
    let cases = "[sweep]\n\"hosts.0.host.cc\" = [\"cubic\", \"reno\"]\n\"hosts.1.range\" = [\"8\", \"8-9\"]\n";
    let text = format!("{TEXT}{cases}");
    let scenario = Scenario::parse(&text, "t").unwrap_or_else(|errors| panic!("{errors}"));
    let params = |n: usize| {
        let params = &scenario.runs()[n].params;
        [
            params["hosts.0.host.cc"].as_str(),
            params["hosts.1.range"].as_str(),
        ]
    };
    // Also the value that the other hosts have is a label.
    assert_eq!((params(0), params(3)), (["cubic", "8"], ["reno", "8-9"]));
    let set = [("hosts.0.host.cc", "reno"), ("host.cc", "scalable")];
    let set = Scenario::parse_with(TEXT, "t", &set).unwrap_or_else(|errors| panic!("{errors}"));
    let run = &set.runs()[0];
    let ccs: Vec<&str> = run.each_settings().map(|s| s.host.cc.name()).collect();
    assert_eq!(ccs, ["scalable", "reno", "dctcp"]);
}

#[test]
fn wrong_ranges_are_named_all_at_once() {
    assert_eq!(
        errors_of(&[("\"0-7\"", "\"0-8\""), ("14\"", "14-16\"")]),
        "t:13: hosts.1.range is \"8-11,14-16\", but host 8 is also in hosts.0.range: a host is in one group at most\n\
         t:13: hosts.1.range is 16, above max 15 (network.topology.hosts)"
    );
    let form = "expected numbers and ranges of hosts, like \"0-7\" or \"0-3,8\"";
    assert_eq!(
        errors_of(&[("\"0-7\"", "\"\""), ("\"8-11,14\"", "\"11-8\"")]),
        format!("t:9: hosts.0.range is \"\", {form}\nt:13: hosts.1.range is \"11-8\", {form}")
    );
    assert_eq!(
        errors_of(&[("8-11,14", "8-11,10")]),
        "t:13: hosts.1.range is \"8-11,10\", which has host 10 twice"
    );
    assert_eq!(
        errors_of(&[("range = \"0-7\"\n", "")]),
        format!("t:8: hosts.0.range is missing, {form}")
    );
}

#[test]
fn wrong_keys_of_groups_are_named() {
    for (written, expected) in [
        ("cc = \"bbr\"", "t:10: unknown key hosts.0.cc, did you mean hosts.0.host.cc?"),
        ("host.gsso = \"8 kB\"", "t:10: unknown key hosts.0.host.gsso, did you mean hosts.0.host.gso?"),
        ("host.gso = \"8 B\"", "t:10: hosts.0.host.gso is 8 B, below min 1.448 kB"),
        ("host.kind = \"nic\"", "t:10: hosts.0.host.kind: host.kind is the same for all hosts: set it outside of [[hosts]]"),
        ("clock.offset = \"1 us\"", "t:10: hosts.0.clock.offset: clock.offset is the same for all hosts: set it outside of [[hosts]]"),
        ("host.cc = \"hpcc\"", "t:10: hosts.0.host.cc is hpcc, which needs host.kind nic"),
        ("onramp.law = \"gate\"", "t:10: hosts.0.onramp.law is gate, which needs host.qdisc edge"),
        ("host.rtt_noise = \"1 us\"", "t:10: hosts.0.host.rtt_noise is 1 us, which needs host.kind nic"),
    ] {
        assert_eq!(errors_of(&[("host.cc = \"bbr\"", written)]), expected);
    }
    let unused = errors_of(&[("host.cc = \"bbr\"", "cc.udp.rate = \"1 Gbit/s\"")]);
    assert_eq!(
        unused,
        "t:10: hosts.0.cc.udp.rate is 1 Gbit/s, which needs host.cc udp"
    );
    let beyond = Scenario::parse_with(TEXT, "t", &[("hosts.2.host.cc", "bbr")]).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "--set: hosts.2.host.cc is a key of [[hosts]] entry 2, expected an entry from 0 to 1"
    );
}

#[test]
fn keys_that_groups_have_replaced_name_the_new_form() {
    let old = "[host]\ncc_hosts = \"0-7\"\nother_cc = \"bbr\"\n[onramp]\nhosts = \"0-7\"";
    assert_eq!(
        errors_of(&[("[onramp]", old)]),
        "t:18: host.cc_hosts has been replaced by the `range` of a [[hosts]] entry that has `host.cc`\n\
         t:19: host.other_cc has been replaced by `host.cc` of a [[hosts]] entry, whose `range` has those hosts\n\
         t:21: onramp.hosts has been replaced by `onramp.law = \"off\"` of a [[hosts]] entry, whose `range` has the other hosts"
    );
}

#[test]
fn nics_of_several_forms_of_marks_need_thresholds() {
    let nics = |ecn: &str| {
        let nic = "host.cc = \"dctcp\"";
        errors_of(&[
            ("ecn = { threshold = \"65 kB\", at = \"10 Gbit/s\" }", ecn),
            ("host.cc = \"bbr\"\nhost.qdisc = \"fq\"", nic),
            (
                "host.cc = \"dctcp\"\nonramp.gso = \"8 kB\"",
                "host.cc = \"timely\"",
            ),
            (
                "[onramp]",
                "[host]\nkind = \"nic\"\ncc = \"hpcc\"\n[onramp]",
            ),
        ])
    };
    let at = "ecn = { threshold = \"65 kB\", at = \"10 Gbit/s\" }";
    assert_eq!(nics(at), "");
    let lacking = nics("buffer = \"1 MB\"");
    assert!(
        lacking.contains("hosts.0.host.cc is dctcp, which needs network.ecn.threshold"),
        "{lacking}"
    );
}

#[test]
fn the_rack_names_what_it_lacks_in_a_group() {
    let text = TEXT.replace("10 Gbit/s", "5 Gbit/s");
    let udp = run_of(&text.replace("host.cc = \"bbr\"", "host.cc = \"udp\""));
    let limits: Vec<String> = rack_limits(&udp).iter().map(ToString::to_string).collect();
    let udp_in_linux = Cc::named("udp").is_some_and(Cc::in_linux);
    assert_eq!(
        limits
            .iter()
            .any(|l| l.starts_with("hosts.0.host.cc is udp")),
        !udp_in_linux,
        "{limits:?}"
    );
}

#[test]
fn sets_of_hosts_are_ranges() {
    let set = |text: &str| text.parse::<HostSet>();
    let some = set("8, 0-3").unwrap();
    assert_eq!(some.to_string(), "0-3,8");
    assert_eq!(some.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
    assert_eq!(
        (some.last(), some.contains(8), some.contains(4)),
        (8, true, false)
    );
    let wrong = |text: &str| set(text).unwrap_err().to_string();
    assert!(wrong("3-0").starts_with("which is not numbers and ranges"));
    assert_eq!(wrong("0-3,3-5"), "which has host 3 twice");
    let common = |a: &str, b: &str| set(a).unwrap().common(&set(b).unwrap());
    assert_eq!(
        (common("0-9", "5,20"), common("5,20", "0-9")),
        (Some(5), Some(5))
    );
    assert_eq!(
        (common("3-5", "0-9"), common("0-3", "4-5")),
        (Some(3), None)
    );
}
