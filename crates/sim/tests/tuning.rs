//! Every parameter that a scenario can set reaches its congestion control, and the defaults that the
//! documentation states are those that the simulator has.

use onramp_scenario::{parameters, Cc, HostKind, Parameter, Scenario};
use onramp_sim::run::config;
use onramp_sim::Config;

const TEXT: &str = r#"title = "t"
duration = "1 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "100 Gbit/s", delay = "1 us" }
ecn.threshold = "100 kB"
[[traffic]]
kind = "long"
"#;

fn configured(cc: Cc, kind: HostKind, set: &[(&str, &str)]) -> Config {
    let (cc, kind) = (cc.to_string(), kind.to_string());
    let mut all = vec![("host.cc", cc.as_str()), ("host.kind", kind.as_str())];
    all.extend(set);
    let scenario = Scenario::parse_with(TEXT, "t", &all).unwrap_or_else(|e| panic!("{e}"));
    config(&scenario.runs()[0])
}

fn kind(parameter: &Parameter) -> HostKind {
    let nic_only = ["cc.dctcp.rate_ai", "cc.dctcp.min_rate"].contains(&parameter.key);
    match parameter.of[0].runs_on(HostKind::Kernel) && !nic_only {
        true => HostKind::Kernel,
        false => HostKind::Nic,
    }
}

#[test]
fn documented_defaults_are_the_sources() {
    for parameter in parameters() {
        let (cc, kind) = (parameter.of[0], kind(&parameter));
        let written = configured(cc, kind, &[(parameter.key, parameter.default)]);
        assert_eq!(written, configured(cc, kind, &[]), "{}", parameter.key);
    }
}

#[test]
fn every_parameter_reaches_its_congestion_controls() {
    for parameter in parameters() {
        let other = match parameter.default {
            "true" => "false",
            text if text.ends_with("bit/s") => "17 Mbit/s",
            text if text.ends_with('s') => "17 us",
            "0" | "1" | "5" | "10" | "100" => "17",
            "2.885" | "2" | "1.25" => "1.7",
            _ => "17 %",
        };
        for &cc in parameter.of {
            let kind = kind(&parameter);
            let changed = configured(cc, kind, &[(parameter.key, other)]);
            assert_ne!(
                changed,
                configured(cc, kind, &[]),
                "{} of {cc}",
                parameter.key
            );
        }
    }
}
