// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Documentation of the keys: plain text for a terminal, and Markdown for docs/scenario.md.

use crate::key::{section, Key};
use crate::keys::{self, LINK_RATE};
use crate::traffic::{self, KindKeys, TrafficKind};
use onramp_cc::Cc;
use onramp_keys::{Absent, Section};
use std::fmt::Write;

/// Sections of the reference: first part of the keys, heading, introduction.
const SECTIONS: [(&str, &str, &str); 9] = [
    ("", "The experiment", "At the top of the file."),
    ("network", "[network]", "Links and switches. A table may be written inline: `link = { rate = \"10 Gbit/s\", delay = \"1 us\" }`."),
    ("host", "[host]", "Settings of every host, except those that a `[[hosts]]` entry gives its hosts."),
    ("cc", "[cc]", "Parameters of the congestion controls. The rack has those of the congestion controls that `onramp cc load` knows. Example: `[cc.hpcc]` with `eta = \"90 %\"`. The defaults come from the source of each congestion control; a default that depends on the line rate is given for 100 Gbit/s. A run ignores the parameters of other congestion controls. A parameter of a congestion control that no run of the file uses is an error."),
    ("hosts", "[[hosts]]", "Each entry is a group of hosts. It has `range` and the keys in which its hosts differ from the others, with their dotted names: `host.cc = \"bbr\"`, `onramp.law = \"off\"`. Cases, sweep and `--set` name them with the number of the entry, from 0: `hosts.0.host.cc`. The value of an entry replaces that of [host], [cc] or [onramp] for its hosts, also the value that a case, the sweep or `--set` gives there."),
    ("clock", "[clock]", "Errors of the hosts' clocks, which have a normal distribution over the hosts, and clock synchronisation. The rack's hosts share the clock of one kernel; each daemon adds the error that its host has in the simulator with the same seed."),
    ("traffic", "[[traffic]]", "One entry for each kind of traffic in the experiment. An entry has only the keys of its `kind`."),
    ("onramp", "[onramp]", "The control law. With `law = \"off\"` the other keys have no effect."),
    ("measure", "[measure]", "The ports that results measure."),
];

const INTRO: &str = "\
This page lists every key of a scenario file, for those who write one. A scenario file is TOML and describes one \
experiment, for the simulator and for the virtual rack.

- A quantity is a string with a unit: `\"50 us\"`, `\"10 Gbit/s\"`, `\"32 kB\"` (kB = 1000 B, KiB = 1024 B). \
A fraction is `0.4`, `\"40 %\"` or `\"1/16\"`. Hosts are numbered from 0.
- Values describe the real network. `time_dilation` slows the rack down and does not change them.
- The column *worlds* shows whether the simulator and the rack support a key. The rack refuses a run with a value \
that it does not support; `onramp sim run` runs it.
- Unknown keys, numbers without units and values out of bounds are errors. All errors of a file are reported \
together, each with file, line, key, value and bound.
";

const VARIANTS: &str = "\
Each `[[case]]` is a named set of settings, and `[sweep]` lists values of keys. A case with `every_cc = \"kernel\"` or \
`\"nic\"` in place of `name` is one case for each congestion control of such hosts that no named case has. Both use dotted keys; traffic \
entries are numbered from 0. Every case runs at every point of the sweep: at most 1000 runs, in which the last key \
of the sweep changes fastest. Equal runs run once. A setting replaces an earlier one in this order: the file's \
tables, case, sweep, `--set`.
";

const EXAMPLE: &str = "\
[[case]]
name = \"fq\"
\"host.qdisc\" = \"fq\"

[[case]]
name = \"gate\"
\"onramp.law\" = \"gate\"

[[case]]
every_cc = \"kernel\"
\"host.gso\" = \"16 kB\"

[sweep]
\"onramp.threshold\" = [\"30 us\", \"50 us\"]
\"traffic.0.load\" = [\"2 %\", \"20 %\"]
";

/// Three congestion controls.
const GROUPS: &str = "\
[host]
cc = \"cubic\"

[[hosts]]
range = \"0-7\"
host.cc = \"bbr\"
onramp.law = \"off\"

[[hosts]]
range = \"8-11,14\"
host.cc = \"dctcp\"
network.link.rate = \"1 Gbit/s\"
";

/// Every key with its form, bounds, default and meaning, as plain text.
///
/// ```
/// let text = onramp_scenario::explain();
/// assert!(text.contains("network.link.rate"));
/// ```
pub fn explain() -> String {
    let mut out = String::new();
    for (prefix, heading, about) in SECTIONS {
        line(&mut out, &format!("{heading}: {}", plain(about)));
        if prefix == "hosts" {
            line(&mut out, &plain(&overridden()));
        }
        for key in of_section(prefix) {
            key_in_text(&mut out, key, &worlds(key));
        }
        if prefix == "traffic" {
            for kind in traffic::kinds() {
                let about = plain(kind.about);
                line(&mut out, &format!("  traffic.kind {}: {about}", kind.name));
                for key in kind.keys {
                    key_in_text(&mut out, key, &worlds_of(key, kind));
                }
            }
        }
        if prefix == "cc" {
            for cc in Cc::all() {
                let hosts = if cc.is_nic() { "nic" } else { "kernel" };
                line(
                    &mut out,
                    &format!("  host.cc {cc} ({hosts} hosts): {}", cc.about()),
                );
            }
        }
        line(&mut out, "");
    }
    line(&mut out, "[[case]], [sweep]");
    line(&mut out, &plain(VARIANTS));
    out + EXAMPLE
}

fn key_in_text(out: &mut String, key: &Key, worlds: &str) {
    line(out, &format!("  {}", key.path));
    let (words, default) = (key.words(), default(key));
    let facts = plain(&format!("{words}; {default}; {worlds}"));
    line(out, &format!("      {facts}"));
    line(out, &format!("      {}", plain(&meaning(key))));
}

/// The whole of docs/scenario.md.
pub fn explain_markdown() -> String {
    let mut out = String::from("# Scenario files\n\n");
    line(&mut out, "<!-- Generated from the table of keys, which a test compares: cargo run -p onramp-scenario --example scenario-reference > docs/scenario.md -->\n");
    line(&mut out, INTRO);
    for (prefix, heading, about) in SECTIONS {
        line(&mut out, &format!("## {heading}\n\n{about}\n"));
        if prefix == "cc" {
            congestion_controls(&mut out);
        }
        if prefix == "hosts" {
            line(
                &mut out,
                &format!("{}\n\n```toml\n{GROUPS}```\n", overridden()),
            );
        }
        table(
            &mut out,
            prefix,
            of_section(prefix).map(|key| (key, worlds(key))),
        );
        if prefix == "traffic" {
            for kind in traffic::kinds() {
                line(
                    &mut out,
                    &format!("### kind = \"{}\"\n\n{}.\n", kind.name, capital(kind.about)),
                );
                let keys = kind.keys.iter().map(|key| (key, worlds_of(key, kind)));
                table(&mut out, prefix, keys);
            }
        }
    }
    line(
        &mut out,
        &format!("## [[case]] and [sweep]\n\n{VARIANTS}\n```toml\n{EXAMPLE}```"),
    );
    out
}

/// A table of keys, with the worlds that have each.
fn table(out: &mut String, prefix: &str, keys: impl Iterator<Item = (&'static Key, String)>) {
    line(
        out,
        "| key | value | default | worlds | meaning |\n|---|---|---|---|---|",
    );
    for (key, worlds) in keys {
        let name = key.path.strip_prefix(&format!("{prefix}."));
        let name = name.unwrap_or(key.path);
        let (words, default, meaning) = (key.words(), default(key), meaning(key));
        line(
            out,
            &format!("| `{name}` | {words} | {default} | {worlds} | {meaning} |"),
        );
    }
    line(out, "");
}

fn worlds(key: &Key) -> String {
    if key.path != KindKeys::kind {
        return key.worlds();
    }
    format!("simulator; rack only `{}`", traffic::in_rack().join("`, `"))
}

fn worlds_of(key: &Key, kind: &TrafficKind) -> String {
    match kind.in_rack {
        true => key.worlds(),
        false => "simulator".to_owned(),
    }
}

/// With a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The keys that an entry of `[[hosts]]` can have.
fn overridden() -> String {
    let everywhere = keys::all().filter(|key| key.everywhere);
    let everywhere: Vec<String> = everywhere.map(|key| format!("`{}`", key.path)).collect();
    let but = everywhere.join(", ");
    format!(
        "An entry can have every key of [host], [cc] and [onramp] except {but}; and `{LINK_RATE}`."
    )
}

/// A table of the values of `host.cc`.
fn congestion_controls(out: &mut String) {
    line(
        out,
        "| host.cc | hosts | worlds | congestion control |\n|---|---|---|---|",
    );
    for cc in Cc::all() {
        let hosts = if cc.is_nic() { "nic" } else { "kernel" };
        let worlds = if cc.in_linux() { "both" } else { "simulator" };
        let about = cc.about();
        line(out, &format!("| `{cc}` | {hosts} | {worlds} | {about} |"));
    }
    line(out, "");
}

fn of_section(prefix: &'static str) -> impl Iterator<Item = &'static Key> {
    let of_entries = KindKeys::KEYS.iter().filter(move |_| prefix == "traffic");
    keys::all()
        .filter(move |key| section(key.path) == prefix)
        .chain(of_entries)
}

fn default(key: &Key) -> String {
    match key.absent {
        Absent::Is(text) => format!("`{text}`"),
        _ => key.default_words(),
    }
}

fn meaning(key: &Key) -> String {
    let on = key.on.map(|kind| format!(" Only for {kind} hosts."));
    key.explanation() + &on.unwrap_or_default()
}

/// Without Markdown's code marks.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}
