// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The keys of the configuration. Each is declared once, here: the parser of the file, the command line with its help,
//! `onramp agent explain` and docs/configuration.md all read this table.

use std::{net::SocketAddr, path::PathBuf};

use onramp_clock::window::INTERVALS;
use onramp_clock::{
    config::USUAL_LEASE,
    members::{MOST_DEGREE, USUAL_DEGREE},
};
use onramp_keys::Absent::{From, Is, Without};
use onramp_keys::{section, OrOff, Section};
use onramp_law::abi::{ONR_FLOWS, ONR_MAX_FLOWS, ONR_MAX_SLOTS};
use onramp_law::{defaults, Law, SAMPLE_BYTES};
use onramp_units::{Bytes, Rate, Span};

use super::class::Class;
use super::key::{option, Daemons, Handling, Key, NS};
use super::values::{Addresses, ClockError, ClockSource, Others, Pace, Path, Stamp, Threshold};
use crate::prefix::Prefix;

const HOUR: Span = Span::from_s(3600);
const SLOWEST: Rate = rate(1_000_000);
const FASTEST: Rate = rate(10_000_000_000_000);
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

section! {
    /// The values of a valid configuration, without its classes.
    #[derive(Debug, Clone)]
    pub struct Config in "" with Handling {
        devices: Vec<String> ["a name"] = Without("the devices of the default routes"), option("dev").restart(),
            "Network devices whose outgoing traffic is held. For traffic in a tunnel, name the tunnel's device; for a bond, name the bond, whose slaves are followed as they come and go.";
        observe: bool = Is("false"), option("observe").restart(),
            "Only measure: hold nothing, and leave qdisc and GSO limit as they are. The status tells what would have been held. `path`, `link.gso_max` and `link.pace` have no effect then.";
        path: Path = Is("auto"), option("path").restart(),
            "How flows are held: by the qdisc `edge` (Linux 6.16 and later), or by `edt`, times of departure that the fq qdisc obeys; there a hold does not end early. `auto` takes `edge` where the kernel has BPF qdiscs.";
        socket: Option<PathBuf> = Without("one in /run/onramp for each device"), option("socket").restart().of(Daemons::Both),
            "Socket that `onramp status` and `onramp reload` connect to.";
        bpffs: PathBuf = Is(BPFFS), option("bpffs").restart(),
            "BPF file system in which maps and tcx programs stay if the daemon ends without restoring its devices (crash, SIGUSR2), so that the next one goes on with them. Without a BPF file system there, the next one begins anew.";
        metrics: Option<SocketAddr> = Without("no metrics"), option("metrics").restart().of(Daemons::Both),
            "Serve Prometheus metrics of data path and clock over HTTP on this ADDRESS:PORT.";
        others: Others = Is("hold"), option("others"),
            "What happens to flows that match no `[[class]]`: `pass` never holds them.";
    } and {
        /// When and for how long flows are held.
        law: LawKeys;
        /// How packets leave the devices.
        link: LinkKeys;
        /// Which hosts take part, and how they exchange OR-ACKs.
        peers: PeerKeys;
        /// Bounds of the flow table and of the queues.
        limits: LimitKeys;
        /// The file that lists the flows of this host.
        trace: TraceKeys;
        /// The source of fleet time.
        clock: ClockKeys;
        /// The hosts that synchronise their clocks.
        fleet: FleetKeys;
        /// A fleet whose hosts come and go, and which elects its leader.
        etcd: EtcdKeys;
    }
}

section! {
    /// When and for how long flows are held.
    #[derive(Debug, Clone)]
    pub struct LawKeys in "law" with Handling {
        name: Law = From(|| Law::Final.name().to_owned()), option("law"),
            "Control law.";
        threshold: Threshold [NS, HOUR] = Is("auto"), option("threshold"),
            "Threshold T: a flow whose one-way delay is above T is held. With `auto`, each peer has its own T: its minimum delay of the last half minute + headroom + the time to send one segment at the line rate. The headroom is the root of the sum of two squares: of `law.headroom`, and of the error of a delay, which is 6 sigma of the clock, or twice `clock.bound`. While a fixed T is below that error, or sigma is above 100 us with `auto`, nothing is held.";
        headroom: Span [NS, HOUR] = Is("10 us"), option("headroom"),
            "Headroom of an automatic threshold for the noise of an idle path.";
        gain: f64 [0.0, 1.0] = From(|| (f64::from(defaults::GAIN_Q16) / 65536.0).to_string()), option("gain"),
            "Gain g of the moving average of the final law.";
        gate_tau: Span [NS, HOUR] = From(|| defaults::GATE_TAU.to_string()), option("gate-tau"),
            "Averaging time of the delivery rate of the laws gate and level.";
        guard: OrOff<Span> [NS, HOUR] = From(|| defaults::GUARD_WINDOW.to_string()), option("guard"),
            "Time after which the guard judges holding: it raises T of a flow that is held in vain, e.g. because T is below the delay of the path. With a guard a flow that is alone at its receiver keeps its throughput. `off`: no guard.";
        max_pause: Span [NS, HOUR] = From(|| defaults::MAX_PAUSE.to_string()), option("max-pause"),
            "Longest pause: no packet is held longer.";
        max_owd: Span [NS, HOUR] = From(|| defaults::MAX_OWD.to_string()), option("max-owd"),
            "Longest plausible one-way delay: larger measurements, of either sign, are ignored.";
    }
}

section! {
    /// How packets leave the devices.
    #[derive(Debug, Clone)]
    pub struct LinkKeys in "link" with Handling {
        line_rate: Option<Rate> [SLOWEST, FASTEST] = Without("the rate that the driver reports"), option("line-rate"),
            "Line rate of the devices.";
        shape: Option<Rate> [SLOWEST, FASTEST] = Without("no limit"), option("shape").restart(),
            "Limit outgoing traffic to this rate. In a virtual machine, a rate below the hypervisor's limit keeps the queue in this host.";
        gso_max: Option<Bytes> [Bytes::new(1_448), Bytes::new(65_536)] = Without("leave it"), option("gso-max").restart(),
            "The largest GSO segment of the devices. A segment leaves as one burst, so smaller segments give finer control. Connections that are open by then keep longer segments, which the kernel then splits in software, at a cost.";
        pace: Pace = Is("auto"), option("pace").restart(),
            "Send segments at TCP's pacing rate, as the fq qdisc does, instead of as early as possible. With `auto`, do so if the device had fq. A pace that an application has set is always kept.";
        shape_ahead: Bytes [Bytes::ZERO, Bytes::new(1 << 30)] = Is("0 B"), option("shape-ahead").restart().needs(&[LinkKeys::shape]).hidden(),
            "For the virtual rack: bytes that may leave ahead of the line of --shape, as a NIC takes them into its own queue.";
        stamp: Stamp = Is("wire"), option("stamp").restart().hidden(),
            "For comparison: with `qdisc`, the wait in the NIC's own queue counts as delay of the network.";
    }
}

section! {
    /// Which hosts take part, and how they exchange OR-ACKs.
    #[derive(Debug, Clone)]
    pub struct PeerKeys in "peers" with Handling {
        prefixes: Vec<Prefix> = Without("the subnets of the devices, and the members of the fleet"), option("peers"),
            "Addresses of hosts that also run On-Ramp.";
        serve: Vec<Prefix> = Without("none"), option("serve"),
            "Addresses of pods or containers behind this host, whose flows it treats as its own. It leaves other flows alone that it forwards.";
        key_file: Option<PathBuf> = Without("a key that everybody knows"), option("key-file").of(Daemons::Both).restart(),
            "File with the fleet's keys, mode 600, owned by the user that runs the daemon (`onramp keygen` makes one). The first key signs; all are accepted. A reload reads it again.";
        orack_every: Bytes [Bytes::new(1), Bytes::new(1_000_000)] = From(|| Bytes::new(SAMPLE_BYTES.into()).to_string()), option("orack-every").restart(),
            "Bytes that a flow receives between two OR-ACKs; must be the same on all hosts. A smaller value gives newer delays and more packets.";
    }
}

section! {
    /// Bounds of the flow table and of the queues.
    #[derive(Debug, Clone)]
    pub struct LimitKeys in "limits" with Handling {
        flows: u32 [16, ONR_MAX_FLOWS] = From(|| ONR_FLOWS.to_string()), option("flows").restart(),
            "Maximum number of tracked flows; others pass unheld. Each takes 2 kB of kernel memory.";
        packets: u32 [1, ONR_MAX_SLOTS] = Is("10000"), option("limit").restart(),
            "Maximum number of queued packets.";
        flow_packets: u32 [1, ONR_MAX_SLOTS] = Is("1000"), option("flow-limit").restart(),
            "Maximum number of queued packets of one flow.";
        flow_age: Span [NS, HOUR] = Is("10 s"), option("flow-age").restart(),
            "A flow that sends nothing for this time is removed from the table.";
    }
}

section! {
    /// The file that lists the flows of this host.
    #[derive(Debug, Clone)]
    pub struct TraceKeys in "trace" with Handling {
        path: Option<PathBuf> = Without("no trace"), option("trace").restart(),
            "File of the trace. Who reads it knows who talks to whom, when and how much; it has no payload.";
        max_size: Bytes [Bytes::new(10_000), Bytes::new(1 << 40)] = Is("100 MB"), option("trace-max-size").restart(),
            "A larger file is renamed to PATH.1, and another begins.";
        keep: u32 [0, 1000] = Is("4"), option("trace-keep").restart(),
            "Number of renamed files; the oldest is replaced.";
        look: Span [Span::from_ms(1), Span::from_s(10)] = Is("100 ms"), option("trace-look").restart(),
            "Time between two looks at the flow table. A look reads up to 256 flows; with more flows each is read more rarely.";
        gap: Span [Span::from_us(1), Span::from_s(10)] = Is("1 ms"), option("trace-gap").restart(),
            "A longer pause between the segments of a connection ends a flow of the trace.";
        addresses: Addresses = Is("plain"), option("trace-addresses").restart(),
            "`hashed`: addresses are hashed by the key that signs OR-ACKs. Who has the key can try all addresses; without `peers.key_file` everybody has it.";
    }
}

section! {
    /// The source of fleet time.
    #[derive(Debug, Clone)]
    pub struct ClockKeys in "clock" with Handling {
        source: ClockSource = Is("local"), option("clock").restart(),
            "Source of fleet time: `local` is CLOCK_MONOTONIC, correct only if all hosts share one kernel; `huygens` synchronises with the other hosts of the fleet, in software; `system` is the system clock, which another program (chrony, phc2sys) keeps right within `clock.bound` on all hosts; `phc` is a PTP hardware clock, which ptp4l, the NIC or the hypervisor keeps right likewise.";
        bound: Option<Span> [NS, Span::from_s(1)] = Without("required with `system` and `phc`"), option("clock-bound").restart(),
            "Largest error of the clock on each host, with `clock.source = \"system\"` and `\"phc\"`; with `phc` the error of a reading is part of it, which the log names at the start. A measured delay below minus twice this bound proves it wrong: nothing is held then for a minute.";
        device: Option<PathBuf> = Without("the clock with which the first device stamps packets"), option("clock-device").restart(),
            "File of the PTP hardware clock, e.g. /dev/ptp0, with `clock.source = \"phc\"`.";
        lease: Span [Span::from_ms(1), Span::from_s(86_400)] = From(|| USUAL_LEASE.to_string()), option("lease").restart().of(Daemons::Both),
            "Nothing is held if the clock is not renewed, and fleet time ends if the leader is not heard, for this time.";
    }
}

section! {
    /// The hosts that synchronise their clocks.
    #[derive(Debug, Clone)]
    pub struct FleetKeys in "fleet" with Handling {
        members: Vec<String> ["ADDRESS or ADDRESS:PORT"] = Without("none"), option("member").of(Daemons::Fleet),
            "All hosts of the fleet, this one included, as ADDRESS or ADDRESS:PORT. Give the same list in the same order on every host; the first host leads.";
        members_file: Option<PathBuf> = Without("none"), option("members-file").of(Daemons::Fleet),
            "File with the same list, one host per line. A reload reads it again.";
        own: Option<String> ["ADDRESS or ADDRESS:PORT"] = Without("the first member that is a local address; with etcd, the address of the first device, or without devices the address from which this host reaches etcd"), option("own").restart().of(Daemons::Fleet),
            "Address of this host, as ADDRESS or ADDRESS:PORT.";
        degree: u32 [1, MOST_DEGREE as u32] = From(|| USUAL_DEGREE.to_string()), option("degree").restart().of(Daemons::Fleet),
            "Number of neighbours that a host exchanges probes with.";
        probe_interval: Span [INTERVALS.0, INTERVALS.1] = Is("20 ms"), option("probe-interval").restart().of(Daemons::Fleet),
            "Time between two pairs of probes to the same neighbour.";
        discipline: bool = Is("false"), option("discipline").restart().of(Daemons::Fleet).needs(&[PeerKeys::key_file]),
            "Make this host's system clock follow the leader's. It is slewed, or stepped if it is more than 0.1 s off. No other program may set it.";
        synthetic_clock: ClockError = Is(""), option("synthetic-clock").restart().of(Daemons::Both).hidden(),
            "For tests on one machine: add this error to the clock, e.g. offset=1ms,drift=2e-5.";
        synthetic_noise: f64 [-1.0, 1e9] = Is("0"), option("synthetic-noise").restart().of(Daemons::Both).hidden(),
            "For tests: add noise to the time stamps, as a multiple of the usual noise of software stamps.";
    }
}

section! {
    /// A fleet whose hosts come and go, and which elects its leader.
    #[derive(Debug, Clone)]
    pub struct EtcdKeys in "etcd" with Handling {
        servers: Vec<String> ["a URL"] = Without("none"), option("etcd").restart().of(Daemons::Fleet).excludes(&[FleetKeys::members, FleetKeys::members_file]),
            "URLs of the etcd servers that keep the list of members, e.g. http://10.0.0.9:2379.";
        fleet: String ["a name"] = Is("default"), option("fleet").restart().of(Daemons::Fleet).needs(&[EtcdKeys::servers]),
            "Name of the fleet; several fleets can share an etcd.";
        node: Option<String> ["a name"] = Without("the host name"), option("node").restart().of(Daemons::Fleet).needs(&[EtcdKeys::servers]),
            "Name of this host in the fleet.";
        user: Option<String> ["a name"] = Without("none"), option("etcd-user").restart().of(Daemons::Fleet).needs(&[EtcdKeys::password_file]),
            "User name for etcd.";
        password_file: Option<PathBuf> = Without("none"), option("etcd-password-file").restart().of(Daemons::Fleet).needs(&[EtcdKeys::user]),
            "File whose first line is the password of that user.";
        ca: Option<PathBuf> = Without("none"), option("etcd-ca").restart().of(Daemons::Fleet).needs(&[EtcdKeys::servers]),
            "File (PEM) with the certificate authority of the etcd servers, for https://.";
        cert: Option<PathBuf> = Without("none"), option("etcd-cert").restart().of(Daemons::Fleet).needs(&[EtcdKeys::key, EtcdKeys::ca]),
            "File (PEM) with this host's certificate, if etcd requires one.";
        key: Option<PathBuf> = Without("none"), option("etcd-key").restart().of(Daemons::Fleet).needs(&[EtcdKeys::cert]),
            "File (PEM) with the private key of that certificate.";
    }
}

/// All keys outside of `[[class]]`, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Key> {
    Config::TABLES.iter().copied().flatten()
}

/// The key of this path, outside of `[[class]]`.
pub fn find(path: &str) -> &'static Key {
    let found = all().find(|key| key.path == path);
    found.expect("paths are constants of sections")
}

/// The keys that a file may have.
fn of_file() -> impl Iterator<Item = &'static Key> {
    all().chain(Class::KEYS).filter(|key| !key.hidden)
}

/// The key of this path that a file may have.
pub fn find_in_file(path: &str) -> Option<&'static Key> {
    of_file().find(|key| key.path == path)
}

/// Whether keys of a file lie below `path`.
pub fn is_table(path: &str) -> bool {
    let keys = all().filter(|key| !key.hidden);
    !path.is_empty() && keys.map(Key::table).any(|table| table == path)
}

/// The key that a person who wrote `path` may have meant: one with nearly that name, in this section or another.
pub fn nearest(path: &str) -> Option<&'static str> {
    let last = path.rsplit('.').next().unwrap_or_default();
    let distance = |key: &&Key| {
        let whole = strsim::damerau_levenshtein(key.path, path);
        let moved = strsim::damerau_levenshtein(key.name(), last) + 1;
        let as_option = strsim::damerau_levenshtein(key.option, &last.replace('_', "-")) + 1;
        whole.min(moved).min(as_option)
    };
    let best = of_file().min_by_key(distance)?;
    (distance(&best) <= 2).then_some(best.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_has_the_form_of_its_key() {
        for key in all().chain(Class::KEYS) {
            if let Some(text) = key.default_text() {
                let read = key.form.check(&text);
                assert!(read.is_ok(), "{}: {read:?}", key.path);
            }
        }
    }

    #[test]
    fn names_are_unique_and_each_section_has_a_heading() {
        for (n, key) in all().enumerate() {
            let others = || all().take(n);
            assert!(others().all(|other| other.path != key.path), "{}", key.path);
            assert!(
                others().all(|other| other.option != key.option),
                "{}",
                key.option
            );
            let section = key.table();
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
