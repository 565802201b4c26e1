// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The keys of the configuration. Each is declared once, here: the parser of the file, the command line with its help,
//! `onramp agent explain` and docs/configuration.md all read this table.

use onramp_clock::window::INTERVALS;
use onramp_clock::{
    config::USUAL_LEASE,
    members::{MOST_DEGREE, USUAL_DEGREE},
};
use onramp_law::abi::{ONR_FLOWS, ONR_MAX_FLOWS, ONR_MAX_SLOTS};
use onramp_law::{defaults, Law, SAMPLE_BYTES};
use onramp_units::{Bytes, Rate, Span};

use super::form::Form;
use super::key::{key, Absent, Daemons, Key};
use Absent::{From, Is, Without};

const NS: Span = Span::from_ns(1);
const HOUR: Span = Span::from_s(3600);
/// The largest T that the data path stores is 2^32 ns.
pub const LONGEST_T: Span = Span::from_s(4);
const TEXTS: Form = Form::List(&Form::Text("a name"));
const PREFIXES: Form = Form::List(&Form::Prefix);
const RATE: Form = Form::Rate(rate(1_000_000), rate(10_000_000_000_000));
const OFF: &str = "off";
pub const AUTO: &str = "auto";
/// Where hosts mount it.
pub const BPFFS: &str = "/sys/fs/bpf";

const fn rate(bits_per_s: u64) -> Rate {
    Rate::from_bits_per_s(bits_per_s).expect("it is above 0")
}

/// The sections of the file: name, heading, about.
pub const SECTIONS: [(&str, &str, &str); 9] = [
    ("", "Daemon", "Devices, and what the daemon does on them."),
    ("law", "Control law", "When and for how long flows are held ([equations](law.md))."),
    ("link", "Link", "How packets leave the devices."),
    ("peers", "Peers", "Which hosts take part, and how they exchange OR-ACKs."),
    ("limits", "Limits", "Bounds of the flow table and of the queues."),
    ("trace", "Trace", "A file that lists this host's flows, for `onramp advise` and replays ([format](trace.md)). Without `trace.path` nothing is written; with `observe` the daemon looks at the flows all the same."),
    ("clock", "Clock", "The source of fleet time ([clocks](clock.md))."),
    ("fleet", "Fleet", "The hosts that synchronise their clocks. Only with `clock.source = \"huygens\"`, and for `onramp clock run`."),
    ("etcd", "etcd", "A fleet whose hosts come and go, and which elects its leader, in place of a list of members."),
];

/// All keys outside of `[[class]]`, in the order of the documentation.
pub const KEYS: &[Key] = &[
    key("devices", "dev", TEXTS, Without("the devices of the default routes"), "Network devices whose outgoing traffic is held. For traffic in a tunnel, name the tunnel's device; for a bond, name the bond, whose slaves are followed as they come and go.").restart(),
    key("observe", "observe", Form::Flag, Is("false"), "Only measure: hold nothing, and leave qdisc and GSO limit as they are. The status tells what would have been held. `path`, `link.gso_max` and `link.pace` have no effect then.").restart(),
    key("path", "path", Form::Choice(&["auto", "edge", "edt"]), Is("auto"), "How flows are held: by the qdisc `edge` (Linux 6.16 and later), or by `edt`, times of departure that the fq qdisc obeys; there a hold does not end early. `auto` takes `edge` where the kernel has BPF qdiscs.").restart(),
    key("socket", "socket", Form::Path, Without("one in /run/onramp for each device"), "Socket that `onramp status` and `onramp reload` connect to.").restart().of(Daemons::Both),
    key("bpffs", "bpffs", Form::Path, Is(BPFFS), "BPF file system in which maps and tcx programs stay if the daemon ends without restoring its devices (crash, SIGUSR2), so that the next one goes on with them. Without a BPF file system there, the next one begins anew.").restart(),
    key("metrics", "metrics", Form::Address, Without("no metrics"), "Serve Prometheus metrics of data path and clock over HTTP on this ADDRESS:PORT.").restart().of(Daemons::Both),
    key("others", "others", Form::Choice(&["hold", "pass"]), Is("hold"), "What happens to flows that match no `[[class]]`: `pass` never holds them."),

    key("law.name", "law", Form::Law, From(|| Law::Final.name().to_owned()), "Control law."),
    key("law.threshold", "threshold", Form::SpanOr(AUTO, NS, HOUR), Is("auto"), "Threshold T: a flow whose one-way delay is above T is held. With `auto`, each peer has its own T: its minimum delay of the last half minute + headroom + the time to send one segment at the line rate. The headroom is the root of the sum of two squares: of `law.headroom`, and of the error of a delay, which is 6 sigma of the clock, or twice `clock.bound`. While a fixed T is below that error, or sigma is above 100 us with `auto`, nothing is held."),
    key("law.headroom", "headroom", Form::Span(NS, HOUR), Is("10 us"), "Headroom of an automatic threshold for the noise of an idle path."),
    key("law.gain", "gain", Form::Number(0.0, 1.0), From(|| (f64::from(defaults::GAIN_Q16) / 65536.0).to_string()), "Gain g of the moving average of the final law."),
    key("law.gate_tau", "gate-tau", Form::Span(NS, HOUR), From(|| defaults::GATE_TAU.to_string()), "Averaging time of the delivery rate of the laws gate and level."),
    key("law.guard", "guard", Form::SpanOr(OFF, NS, HOUR), From(|| defaults::GUARD_WINDOW.to_string()), "Time after which the guard judges holding: it raises T of a flow that is held in vain, e.g. because T is below the delay of the path. `off`: no guard."),
    key("law.max_pause", "max-pause", Form::Span(NS, HOUR), From(|| defaults::MAX_PAUSE.to_string()), "Longest pause: no packet is held longer."),
    key("law.max_owd", "max-owd", Form::Span(NS, HOUR), From(|| defaults::MAX_OWD.to_string()), "Longest plausible one-way delay: larger measurements, of either sign, are ignored."),

    key("link.line_rate", "line-rate", RATE, Without("the rate that the driver reports"), "Line rate of the devices."),
    key("link.shape", "shape", RATE, Without("no limit"), "Limit outgoing traffic to this rate. In a virtual machine, a rate below the hypervisor's limit keeps the queue in this host.").restart(),
    key("link.gso_max", "gso-max", Form::Bytes(Bytes::new(1_448), Bytes::new(65_536)), Without("leave it"), "The largest GSO segment of the devices. A segment leaves as one burst, so smaller segments give finer control. Connections that are open by then keep longer segments, which the kernel then splits in software, at a cost.").restart(),
    key("link.pace", "pace", Form::Choice(&["auto", "on", "off"]), Is("auto"), "Send segments at TCP's pacing rate, as the fq qdisc does, instead of as early as possible. With `auto`, do so if the device had fq. A pace that an application has set is always kept.").restart(),
    key("link.shape_ahead", "shape-ahead", Form::Bytes(Bytes::ZERO, Bytes::new(1 << 30)), Is("0 B"), "For the virtual rack: bytes that may leave ahead of the line of --shape, as a NIC takes them into its own queue.").restart().needs(&["link.shape"]).hidden(),
    key("link.stamp", "stamp", Form::Choice(&["wire", "qdisc"]), Is("wire"), "For comparison: with `qdisc`, the wait in the NIC's own queue counts as delay of the network.").restart().hidden(),

    key("peers.prefixes", "peers", PREFIXES, Without("the subnets of the devices, and the members of the fleet"), "Addresses of hosts that also run On-Ramp."),
    key("peers.serve", "serve", PREFIXES, Without("none"), "Addresses of pods or containers behind this host, whose flows it treats as its own. It leaves other flows alone that it forwards."),
    key("peers.key_file", "key-file", Form::Path, Without("a key that everybody knows"), "File with the fleet's keys, mode 600, owned by the user that runs the daemon (`onramp keygen` makes one). The first key signs; all are accepted. A reload reads it again.").of(Daemons::Both).restart(),
    key("peers.orack_every", "orack-every", Form::Bytes(Bytes::new(1), Bytes::new(1_000_000)), From(|| Bytes::new(SAMPLE_BYTES.into()).to_string()), "Bytes that a flow receives between two OR-ACKs; must be the same on all hosts. A smaller value gives newer delays and more packets.").restart(),

    key("limits.flows", "flows", Form::Count(16, ONR_MAX_FLOWS), From(|| ONR_FLOWS.to_string()), "Maximum number of tracked flows; others pass unheld. Each takes 2 kB of kernel memory.").restart(),
    key("limits.packets", "limit", Form::Count(1, ONR_MAX_SLOTS), Is("10000"), "Maximum number of queued packets.").restart(),
    key("limits.flow_packets", "flow-limit", Form::Count(1, ONR_MAX_SLOTS), Is("1000"), "Maximum number of queued packets of one flow.").restart(),
    key("limits.flow_age", "flow-age", Form::Span(NS, HOUR), Is("10 s"), "A flow that sends nothing for this time is removed from the table.").restart(),

    key("trace.path", "trace", Form::Path, Without("no trace"), "File of the trace. Who reads it knows who talks to whom, when and how much; it has no payload.").restart(),
    key("trace.max_size", "trace-max-size", Form::Bytes(Bytes::new(10_000), Bytes::new(1 << 40)), Is("100 MB"), "A larger file is renamed to PATH.1, and another begins.").restart(),
    key("trace.keep", "trace-keep", Form::Count(0, 1000), Is("4"), "Number of renamed files; the oldest is replaced.").restart(),
    key("trace.look", "trace-look", Form::Span(Span::from_ms(1), Span::from_s(10)), Is("100 ms"), "Time between two looks at the flow table. A look reads up to 256 flows; with more flows each is read more rarely.").restart(),
    key("trace.gap", "trace-gap", Form::Span(Span::from_us(1), Span::from_s(10)), Is("1 ms"), "A longer pause between the segments of a connection ends a flow of the trace.").restart(),
    key("trace.addresses", "trace-addresses", Form::Choice(&["plain", "hashed"]), Is("plain"), "`hashed`: addresses are hashed by the key that signs OR-ACKs. Who has the key can try all addresses; without `peers.key_file` everybody has it.").restart(),

    key("clock.source", "clock", Form::Choice(&["local", "huygens", "system", "phc"]), Is("local"), "Source of fleet time: `local` is CLOCK_MONOTONIC, correct only if all hosts share one kernel; `huygens` synchronises with the other hosts of the fleet, in software; `system` is the system clock, which another program (chrony, phc2sys) keeps right within `clock.bound` on all hosts; `phc` is a PTP hardware clock, which ptp4l, the NIC or the hypervisor keeps right likewise.").restart(),
    key("clock.bound", "clock-bound", Form::Span(NS, Span::from_s(1)), Without("required with `system` and `phc`"), "Largest error of the clock on each host, with `clock.source = \"system\"` and `\"phc\"`; with `phc` the error of a reading is part of it, which the log names at the start. A measured delay below minus twice this bound proves it wrong: nothing is held then for a minute.").restart(),
    key("clock.device", "clock-device", Form::Path, Without("the clock with which the first device stamps packets"), "File of the PTP hardware clock, e.g. /dev/ptp0, with `clock.source = \"phc\"`.").restart(),
    key("clock.lease", "lease", Form::Span(Span::from_ms(1), Span::from_s(86_400)), From(|| USUAL_LEASE.to_string()), "Nothing is held if the clock is not renewed, and fleet time ends if the leader is not heard, for this time.").restart().of(Daemons::Both),

    key("fleet.members", "member", Form::List(&Form::Text("ADDRESS or ADDRESS:PORT")), Without("none"), "All hosts of the fleet, this one included, as ADDRESS or ADDRESS:PORT. Give the same list in the same order on every host; the first host leads.").of(Daemons::Fleet),
    key("fleet.members_file", "members-file", Form::Path, Without("none"), "File with the same list, one host per line. A reload reads it again.").of(Daemons::Fleet),
    key("fleet.own", "own", Form::Text("ADDRESS or ADDRESS:PORT"), Without("the first member that is a local address; with etcd, the address of the first device, or without devices the address from which this host reaches etcd"), "Address of this host, as ADDRESS or ADDRESS:PORT.").restart().of(Daemons::Fleet),
    key("fleet.degree", "degree", Form::Count(1, MOST_DEGREE as u32), From(|| USUAL_DEGREE.to_string()), "Number of neighbours that a host exchanges probes with.").restart().of(Daemons::Fleet),
    key("fleet.probe_interval", "probe-interval", Form::Span(INTERVALS.0, INTERVALS.1), Is("20 ms"), "Time between two pairs of probes to the same neighbour.").restart().of(Daemons::Fleet),
    key("fleet.discipline", "discipline", Form::Flag, Is("false"), "Make this host's system clock follow the leader's. It is slewed, or stepped if it is more than 0.1 s off. No other program may set it.").restart().of(Daemons::Fleet).needs(&["peers.key_file"]),
    key("fleet.synthetic_clock", "synthetic-clock", Form::Clock, Is(""), "For tests on one machine: add this error to the clock, e.g. offset=1ms,drift=2e-5.").restart().of(Daemons::Both).hidden(),
    key("fleet.synthetic_noise", "synthetic-noise", Form::Number(-1.0, 1e9), Is("0"), "For tests: add noise to the time stamps, as a multiple of the usual noise of software stamps.").restart().of(Daemons::Both).hidden(),

    key("etcd.servers", "etcd", Form::List(&Form::Text("a URL")), Without("none"), "URLs of the etcd servers that keep the list of members, e.g. http://10.0.0.9:2379.").restart().of(Daemons::Fleet).excludes(&["fleet.members", "fleet.members_file"]),
    key("etcd.fleet", "fleet", Form::Text("a name"), Is("default"), "Name of the fleet; several fleets can share an etcd.").restart().of(Daemons::Fleet).needs(&["etcd.servers"]),
    key("etcd.node", "node", Form::Text("a name"), Without("the host name"), "Name of this host in the fleet.").restart().of(Daemons::Fleet).needs(&["etcd.servers"]),
    key("etcd.user", "etcd-user", Form::Text("a name"), Without("none"), "User name for etcd.").restart().of(Daemons::Fleet).needs(&["etcd.password_file"]),
    key("etcd.password_file", "etcd-password-file", Form::Path, Without("none"), "File whose first line is the password of that user.").restart().of(Daemons::Fleet).needs(&["etcd.user"]),
    key("etcd.ca", "etcd-ca", Form::Path, Without("none"), "File (PEM) with the certificate authority of the etcd servers, for https://.").restart().of(Daemons::Fleet).needs(&["etcd.servers"]),
    key("etcd.cert", "etcd-cert", Form::Path, Without("none"), "File (PEM) with this host's certificate, if etcd requires one.").restart().of(Daemons::Fleet).needs(&["etcd.key", "etcd.ca"]),
    key("etcd.key", "etcd-key", Form::Path, Without("none"), "File (PEM) with the private key of that certificate.").restart().of(Daemons::Fleet).needs(&["etcd.cert"]),
];

/// The keys of an entry of `[[class]]`.
pub const CLASS_KEYS: &[Key] = &[
    key(
        "class.name",
        "",
        Form::Text("a name"),
        Without("required"),
        "Its name in messages.",
    ),
    key(
        "class.prefixes",
        "",
        PREFIXES,
        Without("any host"),
        "The other end of the flow is one of these hosts.",
    ),
    key(
        "class.ports",
        "",
        Form::List(&Form::Ports),
        Without("any port"),
        "One end of the flow has one of these TCP ports.",
    ),
    key(
        "class.devices",
        "",
        TEXTS,
        Without("any device"),
        "The flow leaves by one of these devices.",
    ),
    key(
        "class.cgroups",
        "",
        Form::List(&Form::Cgroup),
        Without("any cgroup"),
        "The socket that sends was made in one of these cgroups (version 2) or below it: `/system.slice/backup.service`. \
         Of a connection that was accepted, it is the listener's. Flows of pods that this host serves have none.",
    ),
    key(
        "class.hold",
        "",
        Form::Flag,
        Is("true"),
        "`false`: its flows are measured and never held.",
    ),
    key(
        "class.threshold",
        "",
        Form::Span(NS, LONGEST_T),
        Without("law.threshold"),
        "Threshold T of its flows. While it is below the error of a delay (`law.threshold`), they pass.",
    ),
];

/// The key of this path, outside of `[[class]]`.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The key of this path that a file may have.
pub fn find_in_file(path: &str) -> Option<&'static Key> {
    let all = KEYS.iter().chain(CLASS_KEYS);
    all.filter(|key| !key.hidden).find(|key| key.path == path)
}

/// Whether keys of a file lie below `path`.
pub fn is_table(path: &str) -> bool {
    let below = |key: &Key| key.path.strip_prefix(path)?.starts_with('.').then_some(());
    KEYS.iter()
        .filter(|key| !key.hidden)
        .any(|key| below(key).is_some())
}

/// The key that a person who wrote `path` may have meant: one with nearly that name, in this section or another.
pub fn nearest(path: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |key: &&Key| {
        let whole = strsim::damerau_levenshtein(key.path, path);
        let moved = strsim::damerau_levenshtein(&last(key.path), &last(path)) + 1;
        let as_option = strsim::damerau_levenshtein(key.option, &last(path).replace('_', "-")) + 1;
        whole.min(moved).min(as_option)
    };
    let all = KEYS.iter().chain(CLASS_KEYS).filter(|key| !key.hidden);
    let best = all.min_by_key(distance)?;
    (distance(&best) <= 2).then_some(best.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_has_the_form_of_its_key() {
        for key in KEYS.iter().chain(CLASS_KEYS) {
            if let Some(text) = key.default_text() {
                let read = key.form.read(&text);
                assert!(read.is_ok(), "{}: {read:?}", key.path);
            }
        }
    }

    #[test]
    fn names_are_unique_and_relations_name_keys() {
        for (n, key) in KEYS.iter().enumerate() {
            let others = || KEYS[..n].iter();
            assert!(others().all(|other| other.path != key.path), "{}", key.path);
            assert!(
                others().all(|other| other.option != key.option),
                "{}",
                key.option
            );
            for other in key.needs.iter().chain(key.excludes) {
                assert!(find(other).is_some(), "{other}");
            }
            let section = key.path.split_once('.').map_or("", |(section, _)| section);
            assert!(
                SECTIONS.iter().any(|(name, ..)| *name == section),
                "{section}"
            );
        }
    }

    #[test]
    fn misspelt_and_misplaced_keys_are_recognised() {
        for (written, meant) in [
            ("law.treshold", Some("law.threshold")),
            ("threshold", Some("law.threshold")),
            ("key_file", Some("peers.key_file")),
            ("device", Some("devices")),
            ("dev", Some("devices")),
            ("law.law", Some("law.name")),
            ("colour", None),
        ] {
            assert_eq!(nearest(written), meant, "{written}");
        }
    }
}
