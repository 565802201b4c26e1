// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs `ip` and `tc` of iproute2, and reads the counters of `tc`.

use super::sys::NetNs;
use crate::error::{Doing, Error, Result};
use serde::Deserialize;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Feeds `script` to `tool -batch -` inside `namespace`.
pub fn batch(namespace: &NetNs, tool: &str, script: &str) -> Result<()> {
    if script.is_empty() {
        return Ok(());
    }
    let mut child = start(namespace, tool, &["-batch", "-"])?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A tool that stops at a bad line closes the pipe; its own message is better.
    let _ = stdin.write_all(script.as_bytes());
    drop(stdin);
    let done = child
        .wait_with_output()
        .doing(|| format!("running {tool}"))?;
    if done.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(Error::Tool {
        command: format!("{tool} -batch"),
        message,
    })
}

/// Counters of a qdisc.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct QdiscStats {
    /// "tbf", "netem", ...
    pub kind: String,
    /// Device.
    pub dev: String,
    /// Bytes that left.
    #[serde(default)]
    pub bytes: u64,
    /// Packets that left; a GSO segment counts as its frames.
    #[serde(default)]
    pub packets: u64,
    /// Packets dropped.
    #[serde(default)]
    pub drops: u64,
}

/// A `tc` process that reads the counters of all qdiscs in a namespace. It takes some milliseconds, and
/// traffic continues meanwhile.
#[derive(Debug)]
pub struct Reading(Child);

impl Reading {
    /// Starts to read.
    pub fn start(namespace: &NetNs) -> Result<Reading> {
        start(namespace, "tc", &["-s", "-j", "qdisc", "show"]).map(Reading)
    }

    /// The counters.
    pub fn finish(self) -> Result<Vec<QdiscStats>> {
        let done = self.0.wait_with_output().doing(|| "running tc".into())?;
        let failed = |message: String| Error::Tool {
            command: "tc -s -j qdisc show".into(),
            message,
        };
        if !done.status.success() {
            let message = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(failed(message));
        }
        parse_stats(&done.stdout).map_err(|error| failed(error.to_string()))
    }
}

/// Starts `tool` with pipes, in `namespace` because this thread is there at the moment: a child that
/// joined it by itself would need a fork, which copies page tables while traffic waits.
fn start(namespace: &NetNs, tool: &str, arguments: &[&str]) -> Result<Child> {
    let start = || {
        Command::new(tool)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    let started = namespace.within(start).and_then(|child| child);
    started.doing(|| format!("starting {tool}"))
}

fn parse_stats(json: &[u8]) -> serde_json::Result<Vec<QdiscStats>> {
    serde_json::from_slice(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_what_tc_prints() {
        let json = br#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
            {"kind":"tbf","handle":"8002:","dev":"up0","root":true,"refcnt":2,
             "options":{"rate":12500000,"burst":1514,"lat":48000},
             "bytes":302800,"packets":200,"drops":7,"overlimits":300,"requeues":0,"backlog":0,"qlen":0}]"#;
        let stats = parse_stats(json).unwrap();
        assert_eq!(stats[0].drops, 0);
        assert_eq!(
            stats[1],
            QdiscStats {
                kind: "tbf".into(),
                dev: "up0".into(),
                bytes: 302_800,
                packets: 200,
                drops: 7
            }
        );
    }
}
