// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about networks, flow lists and workloads that scenarios name.

use super::*;

/// A network of three hosts, the second of which is slow.
fn files(path: &str) -> std::io::Result<Vec<u8>> {
    let text = match path {
        "net.txt" => "4 1 3\n1\n0 1 100Gbps 1us 0\n2 1 10Gbps 2us 0\n3 1 100Gbps 1us 0\n",
        "cut.txt" => {
            "6 2 4\n4 5\n0 4 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 5 1Gbps 1us 0\n"
        }
        "zero.txt" => "3 1 2\n2\n0 2 0Gbps 1us 0\n1 2 1Gbps 1us 0\n",
        "two.txt" => "3 1 3\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 2 1Gbps 1us 0\n",
        "node.txt" => "3 1 2\n2\n0 2 1Gbps 1us 0\n1 7 1Gbps 1us 0\n",
        "flows.csv" => "src,dst,size_bytes,start_ns\n0,1,1000,0\n1,2,500,20000\n",
        "self.csv" => "src,dst,size_bytes,start_ns\n0,0,1000,0\n",
        "negative.csv" => "src,dst,size_bytes,start_ns\n0,1,-1,0\n",
        "backwards.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,1,1,4\n",
        "far.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,9,1,6\n",
        "late.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,2,1,20000000\n",
        "sizes.csv" => "# interpolation: step\n100,0.5\n200,1\n",
        "falling.csv" => "# interpolation: step\n100,0.5\n90,1\n",
        _ => return Err(std::io::ErrorKind::NotFound.into()),
    };
    Ok(text.as_bytes().to_vec())
}

/// The base in a network of a file, with `more`.
fn with_files(path: &str, more: &str) -> Result<Scenario, String> {
    let head = format!(
        "title = \"t\"\nduration = \"10 ms\"\n[network]\n\
         topology = {{ kind = \"file\", path = \"{path}\" }}\n[[traffic]]\n"
    );
    Scenario::parse_files(&format!("{head}{more}"), "t", &[], &files).map_err(|e| e.to_string())
}

#[test]
fn a_networks_file_has_links_of_its_own() {
    let more = "kind = \"poisson\"\nto = \"all\"\nworkload = \"sizes.csv\"\nload = \"10 %\"\n";
    let scenario = with_files("net.txt", more).unwrap();
    let run = &scenario.runs()[0];
    let rates: Vec<String> = (0..3)
        .map(|host| run.network.link_of(host).rate.to_string())
        .collect();
    // Node 1 is the switch, so host 1 is node 2.
    assert_eq!(rates, ["100 Gbit/s", "10 Gbit/s", "100 Gbit/s"]);
    assert_eq!(run.network.base_delay(), Span::from_us(3));
    // 150 B on average: 1.2 us of a tenth of 10 Gbit/s, a tenth of that on the faster lines.
    let arrivals = crate::plan(run);
    let to = |host| arrivals.iter().filter(|a| a.dst == host).count() as f64;
    assert!((to(1) / (1e-2 / 1.2e-6) - 1.0).abs() < 0.05, "{}", to(1));
    assert!((to(2) / to(1) - 10.0).abs() < 0.5, "{}", to(2) / to(1));
    let written = run.to_toml();
    let again = Scenario::parse_files(&written, "t", &[], &files).unwrap();
    assert_eq!(again.runs(), std::slice::from_ref(run), "{written}");
}

const INLINE: &str = r#"title = "t"
duration = "10 ms"
[network]
topology = { kind = "inline" }
[network.graph]
switches = ["tor", "spine"]
[[network.graph.hosts]]
count = 2
at = "tor"
rate = "25 Gbit/s"
delay = "1 us"
[[network.graph.hosts]]
at = "spine"
rate = "100 Gbit/s"
delay = "2 us"
[[network.graph.links]]
from = "spine"
to = "tor"
rate = "100 Gbit/s"
delay = "3 us"
[[traffic]]
kind = "long"
flows = 2
"#;

#[test]
fn a_network_may_stand_in_the_scenario_itself() {
    let scenario = Scenario::parse(INLINE, "t").unwrap_or_else(|e| panic!("{e}"));
    let run = &scenario.runs()[0];
    assert_eq!(run.network.topology.hosts(), 3);
    assert_eq!(run.network.link_of(1).rate.to_string(), "25 Gbit/s");
    assert_eq!(run.network.base_delay(), Span::from_us(1 + 3 + 2));
    let written = run.to_toml();
    let again = Scenario::parse(&written, "t").unwrap_or_else(|e| panic!("{written}\n{e}"));
    assert_eq!(again.runs(), std::slice::from_ref(run), "{written}");
}

#[test]
fn a_bad_network_of_a_scenario_is_refused_with_the_scenarios_line() {
    let error = |from: &str, to: &str| {
        let text = INLINE.replacen(from, to, 1);
        assert_ne!(text, INLINE);
        Scenario::parse(&text, "t").unwrap_err().to_string()
    };
    assert_eq!(
        error("at = \"tor\"", "at = \"tor3\""),
        "t:9: network.graph: node is \"tor3\", expected a name of `switches`"
    );
    assert_eq!(
        error("rate = \"25 Gbit/s\"", "rate = \"0 Gbit/s\""),
        "t:10: network.graph: rate is \"0 Gbit/s\", expected a rate above zero, such as 100 Gbit/s"
    );
    assert_eq!(
        error("count = 2", "number = 2"),
        "t:8: network.graph: unknown field `number`, expected one of `count`, `at`, `rate`, `delay`"
    );
    assert_eq!(
        error("to = \"tor\"", "to = \"spine\""),
        "t:18: network.graph: node \"spine\" has a link to itself, expected a link to another node"
    );
    assert_eq!(
        error("to = \"tor\"", "to = []"),
        "t:5: network.graph: no path connects host 2 with host 0: add a link"
    );
    let star = "\"star\", hosts = 3 }\nlink = { rate = \"1 Gbit/s\", delay = \"1 us\" }";
    assert_eq!(
        error("\"inline\" }", star),
        "t:6: network.graph is a table, which needs network.topology.kind inline"
    );
    assert_eq!(
        error("flows = 2", "to = 3"),
        "t:23: traffic.0.to is 3, above max 2 (network.graph)"
    );
    assert_eq!(
        error(
            "[[traffic]]",
            "[network.link]\nrate = \"1 Gbit/s\"\n[[traffic]]"
        ),
        "t:22: network.link.rate and network.graph are both set: remove one of them"
    );
    let set = Scenario::parse_with(INLINE, "t", &[("network.graph", "3")]);
    assert_eq!(
        set.unwrap_err().to_string(),
        "--set: network.graph is \"3\", expected a table with `switches`, `hosts` and `links`"
    );
}

#[test]
fn bad_networks_and_lists_are_refused_with_file_line_and_value() {
    let long = "kind = \"long\"\n";
    let error = |path: &str, more: &str| with_files(path, more).unwrap_err();
    assert_eq!(
        error("cut.txt", long),
        "t:4: network.topology.path is cut.txt: no path connects host 2 with host 0: add a link"
    );
    assert_eq!(
        error("zero.txt", long),
        "t:4: network.topology.path is zero.txt: line 3: rate is \"0Gbps\", expected a rate above zero, such as 100Gbps"
    );
    assert_eq!(
        error("two.txt", long),
        "t:4: network.topology.path is two.txt: line 5: host 0 has 2 links, expected 1"
    );
    assert_eq!(
        error("node.txt", long),
        "t:4: network.topology.path is node.txt: line 4: node is \"7\", expected a number up to 2"
    );
    assert!(error("none.txt", long)
        .starts_with("t:4: network.topology.path is none.txt: cannot be read: "));
    assert_eq!(
        error("net.txt", "kind = \"long\"\nto = 3\n"),
        "t:7: traffic.0.to is 3, above max 2 (network.topology.path)"
    );
    assert_eq!(
        error(
            "net.txt",
            "kind = \"long\"\n[network.link]\nrate = \"1 Gbit/s\"\n"
        ),
        "t:8: network.link.rate and network.topology.path are both set: remove one of them"
    );
    let replay = |file: &str| {
        error(
            "net.txt",
            &format!("kind = \"replay\"\npath = \"{file}\"\n"),
        )
    };
    assert_eq!(replay("self.csv"), "t:7: traffic.0.path is self.csv: line 2: destination is \"0\", expected a host other than the source");
    assert_eq!(replay("negative.csv"), "t:7: traffic.0.path is negative.csv: line 2: size_bytes is \"-1\", expected a number of bytes from 1 to 10^15");
    assert_eq!(replay("backwards.csv"), "t:7: traffic.0.path is backwards.csv: line 3: start is 4 ns, before the previous flow at 5 ns: sort the flows by start");
    assert_eq!(
        replay("far.csv"),
        "t:7: traffic.0.path is far.csv: flow 2: host 9 is above max 2"
    );
    assert_eq!(
        replay("late.csv"),
        "t:7: traffic.0.path is late.csv: flow 2: start is 20 ms, not below 10 ms (duration)"
    );
    let workload = |name: &str| {
        error(
            "net.txt",
            &format!("kind = \"poisson\"\nload = 0.1\nworkload = \"{name}\"\n"),
        )
    };
    assert_eq!(
        workload("falling.csv"),
        "t:8: traffic.0.workload is falling.csv: line 3 is 90 B at probability 1, expected a size above the previous row, and a probability from the previous row to 1"
    );
    assert!(workload("webserch")
        .starts_with("t:8: traffic.0.workload is \"webserch\", expected \"websearch\" or"));
}
