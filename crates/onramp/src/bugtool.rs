// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp bugtool`: one tar file with what a report of a fault needs: statuses, metrics, doctor, versions, and what tools
//! of the system print. It has no keys: key files are not read, and long hexadecimal numbers are removed from all texts.
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use onramp_agent::{
    config::DoctorOptions,
    doctor::{read_device, read_host, Plan},
    metrics::{self, Snapshot},
};
use onramp_status::{clock_socket_path, netns_inode, query, sockets, Status};

use crate::doctor;

#[derive(clap::Args)]
pub struct Args {
    /// File to write
    #[arg(long, default_value = "onramp-bugtool.tar")]
    out: PathBuf,
}

/// What is in every file, for the host as a whole.
const COMMANDS: &[&[&str]] = &[
    &["uname", "-a"],
    &["ip", "-d", "-s", "link", "show"],
    &["ip", "address", "show"],
    &["ip", "route", "show", "table", "all"],
    &["tc", "-s", "-d", "qdisc", "show"],
    &["bpftool", "net", "show"],
    &["bpftool", "prog", "show"],
    &["bpftool", "map", "show"],
    &["ss", "-s"],
    &["sysctl", "net.core", "net.ipv4.tcp_congestion_control"],
];
/// The same for each device of a daemon, whose name follows.
const OF_DEVICE: &[&[&str]] = &[
    &["ethtool", "-i"],
    &["ethtool", "-k"],
    &["ethtool", "-S"],
    &["ethtool", "-l"],
];
/// Half of a key of 16 B has so many digits; texts have no number as long that matters.
const MOST_HEX_DIGITS: usize = 24;

/// The parts of the file: name and text.
type Parts = Vec<(String, String)>;

pub fn run(args: &Args) -> Result<()> {
    let parts = collect()?;
    let cannot = || {
        format!(
            "cannot write {}; name another file with --out",
            args.out.display()
        )
    };
    let mut file = File::create(&args.out).with_context(cannot)?;
    write(&parts, &mut file).with_context(cannot)?;
    println!("{}: {} files, no keys", args.out.display(), parts.len());
    Ok(())
}

fn collect() -> Result<Parts> {
    let netns = netns_inode().context("reading the network namespace")?;
    let mut parts = vec![("version.txt".to_owned(), crate::LONG_VERSION.clone() + "\n")];
    let clock = query(&clock_socket_path(netns)).ok();
    let mut devices = vec![];
    let mut first = None;
    for socket in sockets(netns, None).unwrap_or_default() {
        match query::<Status>(&socket) {
            Ok(status) => {
                devices.extend(status.devices.iter().map(|device| device.name.clone()));
                parts.push((format!("status-{}.json", name_of(&socket)), json(&status)?));
                first = first.or(Some(status));
            }
            Err(error) => parts.push((
                format!("status-{}.txt", name_of(&socket)),
                error.to_string(),
            )),
        }
    }
    devices.sort();
    devices.dedup();
    if let Some(clock) = &clock {
        parts.push(("clock-status.json".to_owned(), json(clock)?));
    }
    let snapshot = Snapshot {
        datapath: first,
        clock,
    };
    parts.push(("metrics.txt".to_owned(), metrics::text(&snapshot)));
    parts.push(("doctor.txt".to_owned(), diagnosis(&devices)));
    parts.extend(COMMANDS.iter().map(|command| output_of(command, None)));
    for device in &devices {
        parts.extend(
            OF_DEVICE
                .iter()
                .map(|command| output_of(command, Some(device))),
        );
    }
    parts
        .iter_mut()
        .for_each(|(_, text)| *text = without_keys(text));
    Ok(parts)
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn name_of(socket: &Path) -> String {
    let name = socket.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn diagnosis(devices: &[String]) -> String {
    let host = match Plan::of(&DoctorOptions::default()).and_then(read_host) {
        Ok(host) => host,
        Err(error) => return format!("{error:#}\n"),
    };
    let mut text = doctor::of_host(&host);
    for dev in devices {
        text += &match read_device(dev) {
            Ok(device) => doctor::of_device(&host, &device),
            Err(error) => format!("{dev}: {error:#}\n"),
        };
    }
    text
}

/// What a command prints; if it cannot run, why.
fn output_of(command: &[&str], device: Option<&str>) -> (String, String) {
    let words: Vec<&str> = command.iter().copied().chain(device).collect();
    let name = words.join("-").replace(['/', ' '], "_");
    let text = match Command::new(words[0]).args(&words[1..]).output() {
        Ok(output) => {
            let (out, err) = (&output.stdout, &output.stderr);
            format!(
                "{}{}",
                String::from_utf8_lossy(out),
                String::from_utf8_lossy(err)
            )
        }
        Err(error) => format!("{}: {error}\n", words[0]),
    };
    (format!("{name}.txt"), text)
}

/// The text without hexadecimal numbers that are long enough for a key.
fn without_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_hexdigit() {
            digits.push(c);
            continue;
        }
        match digits.len() > MOST_HEX_DIGITS {
            true => out.push_str("(hex removed)"),
            false => out.push_str(&digits),
        }
        digits.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// A tar of the parts, which only its owner can read.
fn write(parts: &Parts, to: &mut impl Write) -> Result<()> {
    let mut tar = tar::Builder::new(to);
    for (name, text) in parts {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        tar.append_data(
            &mut header,
            format!("onramp-bugtool/{name}"),
            text.as_bytes(),
        )?;
    }
    Ok(tar.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn a_key_in_any_text_is_removed_and_the_rest_stays() {
        let text = format!(
            "key {KEY}, prog tag 7d2b1a6f00c4e9d8, {}",
            KEY.to_uppercase()
        );
        let expected = "key (hex removed), prog tag 7d2b1a6f00c4e9d8, (hex removed)";
        assert_eq!(without_keys(&text), expected);
        assert_eq!(without_keys("µs, end 12"), "µs, end 12");
    }

    #[test]
    fn the_file_is_a_tar_of_all_parts() {
        let parts = vec![
            ("a.txt".to_owned(), "one".to_owned()),
            ("b.txt".to_owned(), String::new()),
        ];
        let mut bytes = vec![];
        write(&parts, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read: Vec<(String, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.path().unwrap().display().to_string(), entry.size())
            })
            .collect();
        let expected = [("onramp-bugtool/a.txt", 3), ("onramp-bugtool/b.txt", 0)];
        assert_eq!(read, expected.map(|(name, size)| (name.to_owned(), size)));
    }

    #[test]
    fn a_command_that_is_not_there_is_said() {
        let (name, text) = output_of(&["no-such-command", "-k"], Some("eth0"));
        assert_eq!(name, "no-such-command--k-eth0.txt");
        assert!(text.starts_with("no-such-command: "), "{text}");
    }
}
