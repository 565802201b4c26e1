// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use onramp_keys::Value;
use onramp_law::Law;

use crate::config::Threshold;

fn given(options: &[(&'static str, &str)]) -> Given {
    let option =
        |(path, text): &(&'static str, &str)| (*path, text.split(',').map(str::to_owned).collect());
    Given {
        config: None,
        options: options.iter().map(option).collect(),
    }
}

fn load(text: &str, options: &[(&'static str, &str)]) -> Result<Configuration, Errors> {
    let file = Some(Path::new("onramp.toml"));
    Configuration::of_text(text, file, &given(options), Daemon::Agent)
}

fn valid(text: &str) -> Configuration {
    load(text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn wrong(text: &str) -> String {
    load(text, &[]).expect_err(text).to_string()
}

#[test]
fn ten_mistakes_are_told_at_once_each_with_line_value_bound_and_fix() {
    let text = "\
devices = \"eth0\"
obsreve = true
[law]
threshold = \"50\"
gain = 2.0
max_pause = \"0 ms\"
name = \"fast\"
[limits]
flows = 4
[peers]
prefixes = [\"10.0.0.0/8\", \"10.0.0.0/40\"]
[clock]
source = \"ntp\"
[etcd]
user = \"onramp\"
";
    let expected = "\
the configuration has 10 mistakes:
onramp.toml:1: devices is \"eth0\", which is not a list; write [\"eth0\"]
onramp.toml:2: obsreve is no key; do you mean observe?
onramp.toml:4: law.threshold is \"50\", which has no unit (one of ps, ns, us, ms, s), and not \"auto\"; write a time, 1 ns to 3600 s, or \"auto\"
onramp.toml:5: law.gain is 2.0, outside (0, 1]; write a number in (0, 1]
onramp.toml:6: law.max_pause is \"0 ms\", below min 1 ns; write a time, 1 ns to 3600 s
onramp.toml:7: law.name is \"fast\", which is not LAWS; write LAWS
onramp.toml:9: limits.flows is 4, below min 16; write a number, 16 to 65536
onramp.toml:11: peers.prefixes is \"10.0.0.0/40\", the prefix length of 10.0.0.0/40 is 40, above 32; write an IP address or prefix such as \"10.0.0.0/8\"
onramp.toml:13: clock.source is \"ntp\", which is not \"local\" or \"huygens\" or \"system\" or \"phc\"; write \"local\" or \"huygens\" or \"system\" or \"phc\"
onramp.toml:15: etcd.user is onramp, which needs etcd.password_file; set it, or remove etcd.user";
    assert_eq!(wrong(text), expected.replace("LAWS", &Law::words(())));
}

#[test]
fn what_is_not_toml_is_told_beside_the_other_mistakes() {
    let message = wrong("observe = maybe\nlimits.flows = 1\n");
    assert!(message.contains("onramp.toml:1: not TOML: "), "{message}");
    assert!(
        message.contains("onramp.toml:2: limits.flows is 1, below min 16"),
        "{message}"
    );
    let message = wrong("observe = true\nobserve = false\n");
    assert!(
        message.contains("onramp.toml:2: not TOML: duplicate key"),
        "{message}"
    );
}

#[test]
fn values_of_another_type_are_told_the_right_one() {
    for (text, part) in [
        ("law = 3", "law is a number, not a table; write [law]"),
        (
            "class = 3",
            "class is a number, not a list of tables; write [[class]]",
        ),
        (
            "observe = \"true\"",
            "observe is \"true\", which is a text in quotes; write true or false",
        ),
        ("limits.flows = \"16\"", "which is a text in quotes"),
        (
            "limits.flows = 1.5",
            "which is a number; write a number, 16 to 65536",
        ),
        (
            "law.gain = true",
            "law.gain is true, which is true or false",
        ),
        ("law.headroom = 5", "law.headroom is 5, which has no unit"),
        ("path = []", "path is a list, which is a list"),
        ("link.shape_ahead = \"1 kB\"", "link.shape_ahead is no key"),
    ] {
        let message = wrong(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn the_command_line_overrides_the_file() {
    let text = "devices = [\"eth0\"]\n[law]\nthreshold = \"50 us\"\nname = \"gate\"\n";
    let options = [("law.threshold", "auto"), ("devices", "eth1,eth2")];
    let configuration = load(text, &options).unwrap();
    assert_eq!(configuration.devices, ["eth1", "eth2"]);
    assert_eq!(configuration.law.threshold, Threshold::Auto);
    assert_eq!(configuration.law.name, Law::Gate);
    let message = load(text, &[("limits.flows", "4")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "--flows is 4, below min 16; write a number, 16 to 65536"
    );
}

#[test]
fn relations_hold_between_file_and_command_line() {
    let load = |text: &str, option| load(text, &[option]);
    assert!(load(
        "peers.key_file = \"k\"\nclock.source = \"huygens\"",
        ("fleet.discipline", "true")
    )
    .is_ok());
    let message = load("clock.source = \"huygens\"", ("fleet.discipline", "true")).unwrap_err();
    assert!(
        message
            .to_string()
            .contains("--discipline is true, which needs --key-file"),
        "{message}"
    );
    let both = load(
        "fleet.members = [\"10.0.0.1\"]\nclock.source = \"huygens\"",
        ("etcd.servers", "http://a:1"),
    );
    let message = both.unwrap_err().to_string();
    assert!(
        message.contains("--etcd is [http://a:1], and fleet.members is set too"),
        "{message}"
    );
    let message = load("", ("fleet.members", "10.0.0.1"))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("--member") && message.contains("write --clock huygens"),
        "{message}"
    );
}

#[test]
fn a_threshold_above_the_longest_believed_delay_is_refused() {
    let message = wrong("[law]\nthreshold = \"5 s\"\n");
    let says = "onramp.toml:2: law.threshold is 5 s, above law.max_owd 100 ms";
    assert!(message.starts_with(says), "{message}");
    assert!(
        message.ends_with("lower law.threshold or raise law.max_owd"),
        "{message}"
    );
    let message = wrong("[law]\nheadroom = \"5 s\"\n");
    assert!(
        message.contains("law.headroom is 5 s, above law.max_owd"),
        "{message}"
    );
    let message = wrong("[law]\nmax_owd = \"1 us\"\n");
    assert!(message.starts_with("onramp.toml:2: "), "{message}");
    valid("[law]\nthreshold = \"100 ms\"\n");
}

#[test]
fn classes_are_read_in_order_and_checked() {
    let text = "\
others = \"pass\"
[[class]]
name = \"ssh\"
ports = [22, \"8000-8100\"]
hold = false
[[class]]
name = \"storage\"
prefixes = [\"10.9.0.0/16\"]
devices = [\"eth1\"]
threshold = \"200 us\"
";
    let all = valid(text).classes;
    assert_eq!(
        (all[0].name.as_str(), all[0].ports.len(), all[0].hold),
        ("ssh", 2, false)
    );
    assert_eq!(all[1].threshold, Some("200 us".parse().unwrap()));
    for (text, part) in [
        (
            "[[class]]\nports = [22]",
            "onramp.toml:1: class.name is missing",
        ),
        (
            "[[class]]\nname = \"a\"\nprots = [22]",
            "onramp.toml:3: class.prots is no key; do you mean class.ports?",
        ),
        (
            "[[class]]\nname = \"a\"\nports = [0]",
            "class.ports is 0, outside 1 to 65535",
        ),
        (
            "[[class]]\nname = \"a\"\n[[class]]\nname = \"a\"",
            "onramp.toml:4: class.name is \"a\", the name of an earlier",
        ),
        (
            "[[class]]\nname = \"a\"\nhold = false\nthreshold = \"1 us\"",
            "onramp.toml:4: class.threshold is 1 us, and",
        ),
        (
            "[[class]]\nhold = false\nthreshold = \"1 us\"",
            "onramp.toml:1: class.name is missing; write name = \"NAME\"\nonramp.toml:3: class.threshold is",
        ),
        (
            "[[class]]\nname = \"a\"\nthreshold = \"1 s\"",
            "below the threshold of class \"a\"",
        ),
        (
            "others = \"pass\"",
            "onramp.toml:1: others is pass, and no [[class]] is held",
        ),
        (
            "law.max_owd = \"60 s\"\n[[class]]\nname = \"a\"\nhold = false",
            "law.max_owd is 60 s, above max 4 s",
        ),
    ] {
        let message = wrong(text);
        assert!(message.contains(part), "{text}: {message}");
    }
    let ports: Vec<String> = (1..=64).map(|port| port.to_string()).collect();
    let message = wrong(&format!(
        "[[class]]\nname = \"a\"\nports = [{}]",
        ports.join(", ")
    ));
    assert!(
        message.contains("64 combinations of prefix, ports, device and cgroup, above max 63"),
        "{message}"
    );
}

#[test]
fn a_reload_changes_what_can_change_and_refuses_the_rest() {
    let before = valid("devices = [\"eth0\"]\n[law]\nthreshold = \"50 us\"\n");
    let same = before.changes(&valid(
        "[law]\nthreshold = \"50us\"\n[[class]]\nname=\"a\"\n",
    ));
    let refused = same.unwrap_err().to_string();
    assert!(
        refused.starts_with("onramp.toml: devices is not set"),
        "{refused}"
    );
    let new = valid("devices = [\"eth0\"]\n[law]\nthreshold = \"auto\"\n[[class]]\nname=\"a\"\n");
    let changed = before.changes(&new).unwrap();
    assert_eq!(
        changed,
        ["law.threshold: auto, was 50 us", "[[class]]: 1, was 0"]
    );
    let new = valid("devices = [\"eth1\"]\npath = \"edt\"\nothers = \"hold\"\n");
    let refused = before.changes(&new).unwrap_err();
    assert_eq!(refused.count(), 2);
    let message = refused.to_string();
    assert!(
        message.contains(
            "onramp.toml:1: devices is [eth1], and the daemon runs with [eth0]; it cannot"
        ),
        "{message}"
    );
    assert!(
        message.contains("onramp.toml:2: path is edt, and the daemon runs with auto"),
        "{message}"
    );
    assert!(before.changes(&before).unwrap().is_empty());
}

#[test]
fn a_bound_and_the_system_clock_need_each_other() {
    let (system, bound) = ("clock.source = \"system\"\n", "clock.bound = \"5 us\"\n");
    valid(&format!("devices = [\"eth0\"]\n{system}{bound}"));
    let message = load(system, &[]).unwrap_err().to_string();
    assert!(message.contains("which needs clock.bound"), "{message}");
    let message = load(bound, &[]).unwrap_err().to_string();
    let sources = "write clock.source = \"system\" or clock.source = \"phc\"";
    assert!(message.contains(sources), "{message}");
    let message = load(&format!("{system}{bound}"), &[("fleet.degree", "4")])
        .unwrap_err()
        .to_string();
    assert!(message.contains("write --clock huygens"), "{message}");
}

#[test]
fn a_hardware_clock_needs_a_bound_and_alone_has_a_device() {
    let (phc, bound) = ("clock.source = \"phc\"\n", "clock.bound = \"5 us\"\n");
    let device = "clock.device = \"/dev/ptp0\"\n";
    valid(&format!("devices = [\"eth0\"]\n{phc}{bound}{device}"));
    valid(&format!("devices = [\"eth0\"]\n{phc}{bound}"));
    let message = load(phc, &[]).unwrap_err().to_string();
    assert!(message.contains("which needs clock.bound"), "{message}");
    let system = format!("clock.source = \"system\"\n{bound}{device}");
    let message = load(&system, &[]).unwrap_err().to_string();
    assert!(
        message.contains("write clock.source = \"phc\""),
        "{message}"
    );
}

#[test]
fn observing_names_the_keys_that_have_no_effect() {
    let text = "observe = true\npath = \"edt\"\nlink.pace = \"on\"\n";
    assert_eq!(valid(text).without_effect(), ["path", "link.pace"]);
    assert!(valid("path = \"edt\"").without_effect().is_empty());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = Path::new("/nope/onramp.toml");
    let message = Configuration::of_file(missing, &Given::default(), Daemon::Agent).unwrap_err();
    assert!(
        message
            .to_string()
            .starts_with("/nope/onramp.toml: cannot read the configuration: "),
        "{message}"
    );
}

#[test]
fn no_text_makes_the_reader_panic() {
    let text = "others = \"pass\"\npath = 'edt'\n[law]\nthreshold = \"5 ms\"\ngain = 1e-1\n[[class]]\nname = \"é\"\n\
                ports = [22, \"1-2\"]\nprefixes = [\"::/0\"]\n[peers]\nserve = []\n";
    let read = |text: &str| drop(load(text, &[]));
    read(text);
    for (at, former) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + former.len_utf8()..]);
        read(before);
        read(after);
        for other in ["", "\"", "[", "]", "=", "{", "\n", "\0", "-", "9", "é"] {
            read(&format!("{before}{other}{after}"));
        }
    }
}
