// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether this machine's kernel can be a rack: asked by trying, in a namespace that vanishes.

use super::sys::NetNs;
use super::tools;
use crate::error::Missing;
use std::fs;

/// First kernel with BPF qdiscs.
const KERNEL: (u32, u32) = (6, 16);

/// Everything the rack needs of this machine, or what of it is missing.
///
/// # Errors
/// The list of what is missing; never empty.
pub fn capabilities() -> Result<(), Vec<Missing>> {
    let mut missing = Vec::new();
    let mut lacks = |what: &str, because: String| {
        missing.push(Missing {
            what: what.to_owned(),
            because,
        })
    };
    if !rustix::process::geteuid().is_root() {
        lacks("root", "network namespaces and BPF programs need it".into());
        return Err(missing);
    }
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    if parse_release(&release).is_none_or(|version| version < KERNEL) {
        lacks("Linux 6.16 or later", format!("this is {release}"));
    }
    if !has_bpf_qdisc() {
        lacks(
            "BPF qdiscs (CONFIG_NET_SCH_BPF)",
            format!("kernel {release} has none"),
        );
    }
    match NetNs::create() {
        Err(error) => lacks("network namespaces", error.to_string()),
        Ok(namespace) => {
            for (what, tool, script) in TRIALS {
                if let Err(error) = tools::batch(&namespace, tool, script) {
                    lacks(what, error.to_string());
                }
            }
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(missing)
    }
}

/// What is tried, in this order, on two devices.
const TRIALS: [(&str, &str, &str); 7] = [
    ("veth", "ip", "link add up0 type veth peer name eth0\n"),
    ("netkit", "ip", "link add line0 type netkit\n"),
    (
        "sch_netem",
        "tc",
        "qdisc add dev line0 root netem rate 100mbit delay 1ms\n",
    ),
    (
        "sch_tbf",
        "tc",
        "qdisc add dev up0 root tbf rate 100mbit burst 1514 limit 100000\n",
    ),
    (
        "sch_htb",
        "tc",
        "qdisc add dev eth0 root handle 1: htb default 1\n",
    ),
    ("sch_fq", "tc", "qdisc replace dev eth0 root fq\n"),
    (
        "sch_fq_codel",
        "tc",
        "qdisc replace dev eth0 root fq_codel\n",
    ),
];

/// The kernel exports the functions that BPF qdiscs call.
fn has_bpf_qdisc() -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols
        .lines()
        .any(|line| line.split(' ').nth(2) == Some("bpf_qdisc_watchdog_schedule"))
}

/// "6.16.1-cloud" is (6, 16).
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_as_numbers() {
        assert_eq!(parse_release("7.2.12+deb13-cloud-amd64"), Some((7, 2)));
        assert_eq!(parse_release("6.16-rc1"), Some((6, 16)));
        assert!(parse_release("6.9.0").unwrap() < KERNEL);
        assert_eq!(parse_release("?"), None);
    }
}
