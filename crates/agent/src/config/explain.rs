// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The documentation of the configuration, from the table of keys.

use std::fmt::Write as _;

use onramp_keys::Section;

use super::class::Class;
use super::configuration::DEFAULT_FILE;
use super::document::MOST_RULES;
use super::key::{Change, Daemons, Key};
use super::keys::{all, SECTIONS};

const INTRO: &str = "\
This page lists every key of the configuration file of `onramp agent run` and `onramp clock run`. They read \
`/etc/onramp/onramp.toml` if it exists, or the file that `--config` names. Without a file, the defaults hold. Each key \
is also an option, which overrides the file. `onramp agent validate` checks a file, and reports all mistakes at once, \
each with line, key, value, bound and fix.

The file is [TOML](https://toml.io). Times, rates and sizes are texts with a unit, such as \"50 us\", \"10 Gbit/s\" or \
\"16 kB\". Unknown keys are mistakes.

```toml
devices = [\"eth0\"]

[law]
threshold = \"auto\"

[peers]
prefixes = [\"10.0.0.0/8\"]
key_file = \"/etc/onramp/keys\"
```

## Reload
SIGHUP or `onramp reload` reads the file, the key file and the list of members again. Flows, delays and clock stay as \
they are. In the column *reload*, `yes` means that a new value takes effect at once. If a key with `no` has another \
value, or the file has a mistake, the daemon keeps its configuration and reports why; `onramp reload` prints that \
answer. An option of the command line keeps its value.
";

const CLASSES: &str = "\
A class is a set of flows with a threshold of its own, or which is never held. A flow belongs to the first `[[class]]` \
that it matches. It matches if all of the lists that the class has match; a list matches if one of its entries does. \
Flows of no class follow `others`. The data path looks for the class when a flow enters its table, and again after a \
reload, at the flow's next OR-ACK. A device or a cgroup that is not there matches nothing until it is there; the daemon \
looks once a second.
";

const EXAMPLE: &str = "\
[[class]]              # exclude
name = \"backup\"
ports = [873, \"8000-8100\"]
hold = false

[[class]]              # exclude what a service sends
name = \"mirror\"
cgroups = [\"/system.slice/mirror.service\"]
hold = false

[[class]]              # a threshold of its own
name = \"storage\"
prefixes = [\"10.9.0.0/16\"]
devices = [\"eth1\"]
threshold = \"200 us\"
";

/// Every key, as plain text.
pub fn explain() -> String {
    let mut out = format!("File: {DEFAULT_FILE}, or --config FILE\n\n");
    for (section, heading, about) in SECTIONS {
        let _ = writeln!(out, "{heading}: {}", plain(about));
        keys(section).for_each(|key| entry(&mut out, key));
        out.push('\n');
    }
    let _ = writeln!(out, "[[class]]: {CLASSES}");
    Class::KEYS.iter().for_each(|key| entry(&mut out, key));
    let _ = write!(out, "\n{EXAMPLE}");
    plain(&out)
}

fn entry(out: &mut String, key: &Key) {
    let option = match key.option {
        "" => String::new(),
        option => format!(" (--{option})"),
    };
    let _ = writeln!(out, "  {}{option}", key.path);
    let _ = writeln!(
        out,
        "      {}; default: {}; reload: {}",
        key.words(),
        key.default_words(),
        reload(key)
    );
    let _ = writeln!(out, "      {}", key.explanation());
}

/// The whole of docs/configuration.md.
pub fn explain_markdown() -> String {
    let mut out = String::from("# Configuration\n\n");
    let _ = writeln!(out, "<!-- Generated from the table of keys, which a test compares: cargo run -p onramp -- agent explain --markdown > docs/configuration.md -->\n");
    let _ = writeln!(out, "{INTRO}");
    for (section, heading, about) in SECTIONS {
        let name = match section {
            "" => heading.to_owned(),
            _ => format!("{heading}: `[{section}]`"),
        };
        let _ = writeln!(out, "## {name}\n{about}\n\n| key | option | value | default | reload | meaning |\n|---|---|---|---|---|---|");
        for key in keys(section) {
            let _ = writeln!(
                out,
                "| `{}` | `--{}` | {} | {} | {} | {}{} |",
                key.name(),
                key.option,
                key.words(),
                key.default_words(),
                reload(key),
                key.explanation(),
                owner(key)
            );
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Classes: `[[class]]`\n{CLASSES}\nAll classes together have at most {MOST_RULES} combinations of prefix, ports, device and cgroup.\n\n| key | value | default | meaning |\n|---|---|---|---|");
    for key in Class::KEYS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            key.name(),
            key.words(),
            key.default_words(),
            key.meaning
        );
    }
    let _ = write!(out, "\n```toml\n{EXAMPLE}```\n");
    out
}

fn keys(section: &'static str) -> impl Iterator<Item = &'static Key> {
    all().filter(move |key| key.table() == section && !key.hidden)
}

fn reload(key: &Key) -> &'static str {
    match key.change {
        Change::Live => "yes",
        Change::Restart => "no",
    }
}

fn owner(key: &Key) -> &'static str {
    match key.of {
        Daemons::Both => " Also for `onramp clock run`.",
        Daemons::Agent | Daemons::Fleet => "",
    }
}

/// Without Markdown's code marks and links.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        match link
            .split_once("](")
            .and_then(|(name, link)| Some((name, link.split_once(')')?.1)))
        {
            Some((name, after)) if !name.contains(['[', '\n']) => {
                out += before;
                out += name;
                rest = after;
            }
            _ => {
                out += before;
                out.push('[');
                rest = link;
            }
        }
    }
    (out + rest).replace('`', "")
}
