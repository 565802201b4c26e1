// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Every parameter that a scenario can set reaches its congestion control, and the defaults that the
//! documentation states are those that hold.

use onramp_cc::{keys, Cc};
use onramp_scenario::Scenario;
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

fn configured(cc: Cc, set: &[(&str, &str)]) -> Config {
    let kind = if cc.is_nic() { "nic" } else { "kernel" };
    let mut all = vec![("host.cc", cc.name()), ("host.kind", kind)];
    all.extend(set);
    let scenario = Scenario::parse_with(TEXT, "t", &all).unwrap_or_else(|e| panic!("{e}"));
    config(&scenario.runs()[0])
}

#[test]
fn documented_defaults_hold() {
    for key in keys() {
        let (path, default) = (key.parameter.key, key.default_text());
        let written = configured(key.of[0], &[(path, &default)]);
        assert_eq!(written, configured(key.of[0], &[]), "{path}");
    }
}

#[test]
fn every_parameter_reaches_its_congestion_controls() {
    for key in keys() {
        let path = key.parameter.key;
        for &cc in &key.of {
            for end in key.parameter.bounds.ends() {
                let line = "100 Gbit/s".parse().unwrap();
                let is_default = cc.default_of(key.parameter.name, line) == Some(end);
                let changed = configured(cc, &[(path, &end.to_string())]) != configured(cc, &[]);
                assert_eq!(changed, !is_default, "{path} = {end} of {cc:?}");
            }
        }
    }
}
