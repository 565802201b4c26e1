// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What deploy/ has for Prometheus and Grafana, with a real Prometheus (tools/setup fetches it): it reads the metrics as
//! the daemon serves them, loads the alerts, and answers each query of the dashboard.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use onramp_agent::metrics::{names, serve, text, Snapshot};
use serde_json::Value;

#[path = "../../../tests/machine.rs"]
mod machine;
#[path = "../src/metrics/sample.rs"]
mod sample;

use machine::{addresses, until};

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn program(name: &str) -> Command {
    let path = root(&format!(".cache/prometheus/usr/bin/{name}"));
    assert!(
        path.exists(),
        "{} is missing; run tools/setup",
        path.display()
    );
    Command::new(path)
}

/// Runs promtool; fails with what it says.
fn promtool(arguments: &[&str], input: &str) {
    let mut child = program("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert!(
        output.stderr.is_empty(),
        "{arguments:?} warns: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Statuses of a daemon under both clocks; its counters grow with `round`.
fn snapshot(round: u64) -> Snapshot {
    let (mut datapath, mut clock) = (sample::datapath(), sample::clock());
    for device in &mut datapath.devices {
        device
            .counters
            .values_mut()
            .for_each(|value| *value *= round);
        device.pauses.iter_mut().for_each(|value| *value *= round);
    }
    for peer in &mut datapath.peers {
        peer.holds *= round;
        peer.held_ns *= round;
        peer.oracks *= round;
    }
    clock
        .counters
        .iter_mut()
        .for_each(|(_, value)| *value *= round);
    clock.cost.cpu_ns = 1_000_000 * round as i64;
    Snapshot {
        datapath: Some(datapath),
        clock: Some(clock),
    }
}

/// The names in a query that begin as our metrics do, without the suffixes of histograms.
fn metrics_in(query: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = query.split(|c| !is_name(c));
    let ours = words.filter(|word| word.starts_with("onramp_"));
    let base = |word: &str| {
        let suffixes = ["_bucket", "_sum", "_count"];
        let base = suffixes.iter().find_map(|s| word.strip_suffix(s));
        base.unwrap_or(word).to_owned()
    };
    ours.map(base).collect()
}

fn assert_known(what: &str, query: &str) {
    let known: BTreeSet<&str> = names().collect();
    let unknown: Vec<String> = metrics_in(query)
        .into_iter()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{what}: no metric {unknown:?}: {query}");
}

/// The queries of a dashboard, each with the title of its panel.
fn queries() -> Vec<(String, String)> {
    let json = fs::read_to_string(root("deploy/grafana/onramp.json")).expect("the dashboard");
    let board: Value = serde_json::from_str(&json).expect("it is JSON");
    let panels = board["panels"].as_array().expect("it has panels");
    let of_panel = |panel: &Value| -> Vec<(String, String)> {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let query = |target: &Value| target["expr"].as_str().expect("a query").to_owned();
        targets.iter().map(|t| (title.clone(), query(t))).collect()
    };
    panels.iter().flat_map(of_panel).collect()
}

/// As Grafana does it, for all hosts and peers, and over all scrapes, however rare they are on a busy machine.
fn without_variables(query: &str) -> String {
    let query = query.replace("$__rate_interval", "1h");
    let query = query.replace("$instance", ".*").replace("$peer", ".*");
    assert!(!query.contains('$'), "an unknown variable: {query}");
    query
}

/// A Prometheus that scrapes one daemon once a second. Killed when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    /// Removed when dropped.
    _directory: tempfile::TempDir,
}

impl Prometheus {
    fn start(daemon: SocketAddr) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n  \
             - job_name: onramp\n    static_configs: [{{targets: ['{daemon}']}}]\n",
            root("deploy/prometheus/onramp.rules.yml").display()
        );
        fs::write(dir.path().join("config.yml"), config).expect("a file");
        let [address] = addresses();
        let log = File::create(dir.path().join("log")).expect("a file");
        let child = program("prometheus")
            .arg(format!("--config.file={}/config.yml", dir.path().display()))
            .arg(format!("--storage.tsdb.path={}/data", dir.path().display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus runs");
        Self {
            child,
            address,
            _directory: dir,
        }
    }

    /// The answer of the HTTP API; none while Prometheus does not answer yet.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// The number of results of a query.
    fn results(&self, query: &str) -> usize {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let Some(answer) = self.get(&format!("/api/v1/query?query={encoded}")) else {
            return 0;
        };
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn promtool_finds_nothing_to_say_about_the_metrics() {
    promtool(&["check", "metrics"], &text(&snapshot(1)));
    let only_datapath = Snapshot {
        clock: None,
        ..snapshot(1)
    };
    promtool(&["check", "metrics"], &text(&only_datapath));
}

#[test]
fn alerts_are_valid_and_fire_when_they_should() {
    let path = |name: &str| root(name).display().to_string();
    let rules = path("deploy/prometheus/onramp.rules.yml");
    promtool(&["check", "rules", &rules], "");
    promtool(
        &["test", "rules", &path("deploy/prometheus/onramp.test.yml")],
        "",
    );
    let text = fs::read_to_string(rules).expect("the rules");
    assert_known("alerts", &text.replace("name: onramp\n", ""));
    let tests = fs::read_to_string(path("deploy/prometheus/onramp.test.yml")).expect("the tests");
    for line in text.lines() {
        let Some(alert) = line.trim().strip_prefix("- alert: ") else {
            continue;
        };
        assert!(
            tests.contains(&format!("\"{alert}\"")),
            "{alert} is not tested"
        );
    }
}

#[test]
fn a_prometheus_answers_each_query_of_the_dashboard() {
    let queries = queries();
    assert!(queries.len() > 30, "{queries:?}");
    for (title, query) in &queries {
        assert_known(title, query);
        assert!(!metrics_in(query).is_empty(), "{title}: {query}");
    }
    let rounds = AtomicU64::new(0);
    let next = move || Some(snapshot(rounds.fetch_add(1, Ordering::Relaxed) + 1));
    let daemon = serve("127.0.0.1:0".parse().expect("an address"), next).expect("a port");
    let prometheus = Prometheus::start(daemon);
    until("two scrapes", || {
        prometheus.results("count_over_time(onramp_info[1h]) > 2") == 1
    });
    for (title, query) in &queries {
        let query = without_variables(query);
        until(&format!("{title}: {query} has a result"), || {
            prometheus.results(&query) > 0
        });
    }
    for name in names() {
        // Also after a scrape that failed because this machine was busy.
        let series = format!("last_over_time({{__name__=~\"{name}(_count)?\"}}[1h])");
        assert!(prometheus.results(&series) > 0, "{name} did not arrive");
    }
    let rules = prometheus.get("/api/v1/rules").expect("an answer");
    let rules = rules["data"]["groups"][0]["rules"].as_array().cloned();
    let rules = rules.expect("rules");
    assert!(rules.len() > 10);
    assert!(
        rules.iter().all(|rule| rule["health"] != "err"),
        "{rules:?}"
    );
}
