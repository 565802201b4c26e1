// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about networks and their texts.

use super::*;

const RACKS: &str = r#"switches = ["tor1", "tor2", "spine"]
[[hosts]]
count = 2
at = "tor1"
rate = "25 Gbit/s"
delay = "1 us"
[[hosts]]
at = "tor2"
rate = "100 Gbit/s"
delay = "2 us"
[[links]]
from = "spine"
to = ["tor1", "tor2"]
rate = "100 Gbit/s"
delay = "3 us"
"#;

#[test]
fn a_toml_network_has_its_hosts_first_with_links_of_their_own() {
    let graph = Graph::parse_toml(RACKS).unwrap();
    assert_eq!(graph.hosts().collect::<Vec<_>>(), [0, 1, 2]);
    let rates: Vec<String> = graph
        .host_links()
        .iter()
        .map(|l| l.rate.to_string())
        .collect();
    assert_eq!(rates, ["25 Gbit/s", "25 Gbit/s", "100 Gbit/s"]);
    assert_eq!(graph.edges.len(), 5);
    assert_eq!(graph.longest_delay(), Span::from_us(1 + 3 + 3 + 2));
}

#[test]
fn bad_toml_networks_are_refused_with_line_and_value() {
    let error = |from: &str, to: &str| {
        let text = RACKS.replacen(from, to, 1);
        assert_ne!(text, RACKS);
        Graph::parse_toml(&text).unwrap_err().to_string()
    };
    assert_eq!(
        error("at = \"tor1\"", "at = \"tor3\""),
        "line 4: node is \"tor3\", expected a name of `switches`"
    );
    assert_eq!(
        error("rate = \"25 Gbit/s\"", "rate = \"0 Gbit/s\""),
        "line 5: rate is \"0 Gbit/s\", expected a rate above zero, such as 100 Gbit/s"
    );
    assert_eq!(
        error("to = [\"tor1\", \"tor2\"]", "to = \"tor1\""),
        "no path connects host 2 with host 0: add a link"
    );
    assert_eq!(
        error("to = [\"tor1\"", "to = [\"spine\""),
        "line 13: node \"spine\" has a link to itself, expected a link to another node"
    );
    assert_eq!(
        error("count = 2", "count = 0"),
        "line 3: count is \"0\", expected 1 to 65535"
    );
    assert_eq!(
        error("\"tor2\", \"spine\"", "\"tor1\", \"spine\""),
        "line 1: switch is \"tor1\", expected a name that no other switch has"
    );
    assert!(error("count = 2", "number = 2").starts_with("line 3: unknown field `number`"));
}

/// As forks of ns-3 write them.
#[test]
fn a_file_may_leave_out_units_which_are_bit_per_second_and_seconds() {
    let graph = |rate, delay| {
        let text = format!("3 1 2\n2\n0 2 {rate} {delay} 0\n1 2 25Gbps 1us 0\n");
        Graph::parse(&text).unwrap()
    };
    let with_units = graph("25Gbps", "1us");
    assert_eq!(graph("25000000000.0", "0.000001"), with_units);
    assert_eq!(graph("2.5e10", "1e-6"), with_units);
    for (rate, delay) in [
        ("inf", "1us"),
        ("-1", "1us"),
        ("NaN", "1us"),
        ("1Gbps", "NaN"),
        ("1Gbps", "-1"),
    ] {
        let text = format!("3 1 2\n2\n0 2 {rate} {delay} 0\n1 2 25Gbps 1us 0\n");
        assert!(Graph::parse(&text).is_err(), "{rate} {delay}");
    }
}

#[test]
fn bad_files_are_refused_with_line_and_value() {
    let error = |text| Graph::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 0Gbps 1us 0\n"),
        "line 4: rate is \"0Gbps\", expected a rate above zero, such as 100Gbps"
    );
    assert_eq!(
        error("6 2 1 2 6 A100\n2 3 4\n"),
        "line 1: number of fields is \"6\", expected 3 (nodes, switches, links); SimAI's topologies begin like this, and are \
         not supported"
    );
    assert_eq!(
        error("3 1 2\n2\n0 2 1Gbps 1us\n1 2 1Gbps 1us 0\n"),
        "line 3: number of fields is \"4\", expected 5 (node, node, rate, delay, error rate)"
    );
    assert_eq!(
        error("4 2 1\n2\n0 2 1Gbps 1us 0\n"),
        "line 3: number of switches is \"5\", expected 1, which the first line gives"
    );
    assert_eq!(
        error("3 1 2\n7\n"),
        "line 2: switch is \"7\", expected a number up to 2"
    );
    assert_eq!(
        error("3 1 2\n2\n0 2 1Gbps 1us 0\n"),
        "line 3: the number of links is 1, but the first line gives 2"
    );
    assert_eq!(
        error("4 2 2\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"),
        "no path connects host 1 with host 0: add a link"
    );
    assert_eq!(
        error("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0.1\n"),
        "line 4: error rate is \"0.1\", expected 0: lossy links are not modelled"
    );
    assert_eq!(
        error("2 1 1\n1\n0 0 1Gbps 1us 0\n"),
        "line 3: node 0 has a link to itself, expected a link to another node"
    );
    assert_eq!(
        error("4 2 4\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n0 3 1Gbps 1us 0\n"),
        "line 6: host 0 has 2 links, expected 1"
    );
}

#[test]
fn hosts_come_first_when_asked() {
    let graph = Graph::parse("3 1 2\n0\n1 0 1Gbps 1us 0\n0 2 2Gbps 1us 0\n").unwrap();
    let first = graph.hosts_first();
    assert_eq!(first.switches, [false, false, true]);
    assert_eq!((first.edges[0].a, first.edges[0].b), (0, 2));
    assert_eq!((first.edges[1].a, first.edges[1].b), (2, 1));
}

#[test]
fn switches_have_names_that_ports_and_files_can_have() {
    let named = |name: &str| {
        let text = format!(
            "switches = [{name:?}]\n[[hosts]]\nat = {name:?}\ncount = 2\nrate = \"1 Gbit/s\"\ndelay = \"1 us\"\n"
        );
        Graph::parse_toml(&text).map_err(|error| error.to_string())
    };
    assert_eq!(named("tor-1.a_b").unwrap().names, ["tor-1.a_b"]);
    for name in ["", "a b", "../x", "host3"] {
        let error = named(name).unwrap_err();
        let expected = format!("line 1: switch is \"{name}\", expected letters, digits");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert!(named("host").is_ok() && named("hosts3").is_ok());
}
