// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Nothing that somebody writes makes a parser panic: arbitrary bytes, and valid files with bytes
//! changed, lines doubled, dropped and swapped. More cases: PROPTEST_CASES=100000 cargo test -p
//! onramp-scenario --release --test fuzz

use onramp_scenario::{plan, rack_limits, read_flow_list, Distribution, Graph, Scenario};
use proptest::prelude::*;

/// Scenarios that ship, one that is all kinds of traffic, and the files that they name.
const SCENARIOS: [&str; 7] = [
    include_str!("../../../scenarios/groups.toml"),
    include_str!("../../../scenarios/incast.toml"),
    include_str!("../../../scenarios/fabric.toml"),
    include_str!("../../../scenarios/facebook.toml"),
    include_str!("../../../scenarios/rpc.toml"),
    include_str!("../../../scenarios/training.toml"),
    include_str!("../../../scenarios/replay.toml"),
];
const NETWORK: &str = include_str!("../../../scenarios/topologies/facebook.toml");
const HPCC_NETWORK: &str = "4 1 3\n1\n0 1 100Gbps 1us 0\n2 1 10Gbps 2us 0\n3 1 100Gbps 0.001ms 0\n";
const CSV: &str = include_str!("../../../scenarios/flows/mixed.csv");
const HPCC_FLOWS: &str = "3\n1 0 3 100 1001 0.00004\n2 0 3 100 5 0.5\n1 2 3 100 7 0.5\n";
const SIZES: &str = include_str!("../../../workloads/google_search_rpc.csv");

/// What is done to a valid text.
#[derive(Debug, Clone)]
enum Change {
    Byte(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize, usize),
    Double(usize),
    Swap(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || any::<prop::sample::Index>().prop_map(|i| i.index(1 << 20));
    // What parsers trip over.
    let words = prop::sample::select(vec![
        "-1",
        "0",
        "99999999999999999999",
        "1e999",
        "-0",
        "NaN",
        "inf",
        "\"",
        "[",
        "]",
        "{",
        "=",
        "\n",
        "\r",
        "\0",
        "\u{fffd}",
        "4-2",
        "0-3,8",
        "0-0",
        "1/0",
        "%",
        "\"0 s\"",
        "\"1/0\"",
        ",,",
        " ",
        "#",
        "18446744073709551615",
        "4294967295",
        "\"3600 s\"",
        "\"1 ps\"",
        "\"1 Tbit/s\"",
    ]);
    let change = prop_oneof![
        (at(), any::<u8>()).prop_map(|(n, byte)| Change::Byte(n, byte)),
        (at(), words).prop_map(|(n, word)| Change::Insert(n, word.as_bytes().to_vec())),
        (at(), prop::collection::vec(any::<u8>(), 0..8)).prop_map(|(n, b)| Change::Insert(n, b)),
        (at(), 0usize..40).prop_map(|(n, count)| Change::Cut(n, count)),
        at().prop_map(Change::Double),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
    ];
    prop::collection::vec(change, 0..6)
}

fn changed(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for change in changes {
        let end = bytes.len();
        match change {
            Change::Byte(n, byte) if end > 0 => bytes[n % end] = *byte,
            Change::Byte(..) => {}
            Change::Insert(n, what) => {
                drop(bytes.splice(n % (end + 1)..n % (end + 1), what.clone()))
            }
            Change::Cut(n, count) => {
                let from = n % (end + 1);
                bytes.drain(from..(from + count).min(end));
            }
            Change::Double(n) => lines(&mut bytes, |lines| {
                let line = lines[n % lines.len()].clone();
                lines.insert(n % lines.len(), line);
            }),
            Change::Swap(a, b) => lines(&mut bytes, |lines| {
                let count = lines.len();
                lines.swap(a % count, b % count);
            }),
        }
    }
    bytes
}

fn lines(bytes: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    *bytes = lines.join(&b'\n');
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shipped(path: &str) -> std::io::Result<Vec<u8>> {
    match path {
        "topologies/facebook.toml" => Ok(NETWORK.into()),
        "flows/mixed.csv" => Ok(CSV.into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

/// Parses, and goes on with what is valid, unless its plan is large.
fn answer(text: &str) {
    let Ok(scenario) = Scenario::parse_files(text, "t", &[], &shipped) else {
        return;
    };
    let written = scenario.to_toml();
    let again = Scenario::parse_files(&written, "t", &[], &shipped);
    assert_eq!(
        again.map_err(|e| e.to_string()),
        Ok(scenario.clone()),
        "{written}"
    );
    for run in scenario.runs().iter().take(2) {
        rack_limits(run);
        if run.duration < onramp_units::Span::from_ms(1) {
            plan(run);
        }
    }
}

/// A Parquet file of flows.
fn parquet() -> Vec<u8> {
    use parquet::data_type::Int64Type;
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message flows { required int64 src; required int64 dst; required int64 size_bytes; required int64 start_ns; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema.into(), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in [[1, 2], [0, 1], [1001, 5], [40_000, 500_000]] {
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(&values, None, None)
            .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_parquet_list_with_a_wrong_byte_is_answered() {
    let bytes = parquet();
    let mut damaged = 0;
    for (at, wrong) in (0..bytes.len()).flat_map(|at| [(at, 0), (at, 2), (at, 255)]) {
        let list = read_flow_list("a.parquet", &changed(&bytes, &[Change::Byte(at, wrong)]));
        let error = list.err().map(|error| error.to_string());
        damaged +=
            usize::from(error.is_some_and(|error| error.contains("pages of the file are damaged")));
    }
    assert!(damaged > 0, "the library panics no more: nothing to catch");
}

#[test]
fn a_parquet_list_is_read() {
    let csv = b"src,dst,size_bytes,start_ns\n1,0,1001,40000\n2,1,5,500000\n";
    let expected = read_flow_list("a.csv", csv).unwrap();
    assert_eq!(read_flow_list("a.parquet", &parquet()).unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_scenarios_are_answered(which in 0usize..SCENARIOS.len(), changes in changes()) {
        answer(&text(&changed(SCENARIOS[which].as_bytes(), &changes)));
    }

    #[test]
    fn changed_networks_are_answered(changes in changes()) {
        let _ = Graph::parse_toml(&text(&changed(NETWORK.as_bytes(), &changes)))
            .map(|graph| (graph.longest_delay(), graph.hosts_first().host_links()));
        let _ = Graph::parse(&text(&changed(HPCC_NETWORK.as_bytes(), &changes)))
            .map(|graph| (graph.longest_delay(), graph.hosts_first().host_links()));
    }

    #[test]
    fn changed_lists_are_answered(changes in changes()) {
        let _ = read_flow_list("a.csv", &changed(CSV.as_bytes(), &changes));
        let _ = read_flow_list("a.flow", &changed(HPCC_FLOWS.as_bytes(), &changes));
        let _ = read_flow_list("a.parquet", &changed(&parquet(), &changes));
    }

    #[test]
    fn changed_distributions_are_answered(changes in changes(), part in 0.0..=1.0f64) {
        if let Ok(sizes) = Distribution::parse(&text(&changed(SIZES.as_bytes(), &changes))) {
            prop_assert!(sizes.mean_bytes() > 0.0);
            sizes.quantile(part);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = text(&bytes);
        answer(&text);
        let _ = (Graph::parse(&text), Graph::parse_toml(&text), Distribution::parse(&text));
        for name in ["a.csv", "a.flow", "a.parquet"] {
            let _ = read_flow_list(name, &bytes);
        }
    }
}
