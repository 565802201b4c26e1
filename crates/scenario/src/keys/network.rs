//! Keys of [network].

use super::{key, mbit_per_s, By, Form, Is, Key, Rack, Required, Without};
use crate::field::{Field, Reader};
use crate::value::Value;
use crate::{HostKind, Mark, Sharing, TopologyKind};
use onramp_units::{Bytes, Span};
use strum::VariantNames;

/// As switch chips have them: powers of two, 2^-7 first.
pub(crate) const ALPHAS: &[&str] = &[
    "1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8",
];

pub(super) const KEYS: &[Key] = &[
    key(
        "network.topology.kind",
        Form::Choice(TopologyKind::VARIANTS),
        Required,
        "`star`: all hosts at one switch. `dumbbell`: half of the hosts at each of two switches. `leaf_spine`: hosts at leaves, and every leaf has a link to every spine. `fat_tree`: three stages of ToR, aggregation and core switches. `file`: nodes and links of the file `path`. `inline`: nodes and links of `[network.graph]`.",
    )
    .fixed()
    .rack_has(Rack::Only(&["star"])),
    key("network.topology.hosts", Form::Count(2, 4096), Without("required unless `kind` is file or inline"), "Number of hosts. Every switch that has hosts has the same number of them."),
    key("network.topology.path", Form::Path, Without("required for file"), "A network in TOML (a name that ends in `.toml`), or in the HPCC authors' format. TOML: `switches`, a list of names; `[[hosts]]` with `at`, `rate`, `delay` and optionally `count`; `[[links]]` with `from`, `to`, `rate`, `delay`. The HPCC authors' format: `nodes switches links`, the numbers of the switches, a line `a b rate delay 0` for each link. Hosts are numbered in the file's order.")
    .rack_has(Rack::Ignores("simulator")),
    key("network.topology.leaves", Form::Count(2, 256), Without("required for leaf_spine"), "Number of switches that have hosts.")
    .rack_has(Rack::Ignores("simulator")),
    key("network.topology.spines", Form::Count(1, 256), Without("required for leaf_spine"), "Number of switches that connect the leaves.")
    .rack_has(Rack::Ignores("simulator")),
    key("network.topology.pods", Form::Count(2, 64), Without("required for fat_tree"), "Number of pods: groups of ToR and aggregation switches. In a pod every ToR switch has a link to every aggregation switch.")
    .rack_has(Rack::Ignores("simulator")),
    key("network.topology.width", Form::Count(1, 32), Without("required for fat_tree"), "Number of ToR switches of a pod, of aggregation switches of a pod, and of core switches in each of the `width` groups.")
    .rack_has(Rack::Ignores("simulator")),
    key("network.graph", Form::Graph, Without("required for inline"), "Nodes and links, as in a TOML file of `topology.path`: `[network.graph]` with `switches`, `[[network.graph.hosts]]`, `[[network.graph.links]]`.").fixed()
    .rack_has(Rack::Ignores("simulator")),
    key(
        "network.link.rate",
        Form::Rate(mbit_per_s(1), mbit_per_s(1_000_000)),
        Without("required unless `topology.kind` is file or inline"),
        "Rate of every host's link, in each direction.",
    ),
    key(
        "network.link.delay",
        Form::Span(Span::ZERO, Span::from_ms(100)),
        Without("required unless `topology.kind` is file or inline"),
        "Propagation delay of a host's link in one direction. A path from host to host over one switch has two links.",
    ),
    key(
        "network.fabric.rate",
        Form::Rate(mbit_per_s(1), mbit_per_s(1_000_000)),
        Without("`network.link.rate`"),
        "Rate of every link between switches.",
    )
    .rack_has(Rack::Ignores("simulator")),
    key(
        "network.fabric.delay",
        Form::Span(Span::ZERO, Span::from_ms(100)),
        Without("`network.link.delay`"),
        "Propagation delay of a link between switches in one direction.",
    )
    .rack_has(Rack::Ignores("simulator")),
    key(
        "network.alpha",
        Form::Choice(ALPHAS),
        Without("`1`; `1/8` if `sharing` is lossless"),
        "Dynamic threshold: the part of the free memory that one queue may take (`shared`), or that the arrivals of one port may take before the switch pauses the port (`lossless`). For ports at the hosts' rate; a port of twice the rate may take twice as much, at most all.",
    )
    .rack_has(Rack::Never),
    key(
        "network.buffer",
        Form::Bytes(Bytes::new(2_000), Bytes::new(1_000_000_000)),
        By("300 kB; 32 MiB if ports share it", buffer),
        "Size of the buffer of each switch port, or of each switch if ports share it.",
    ),
    key(
        "network.sharing",
        Form::Choice(Sharing::VARIANTS),
        By("`per_port`; `lossless` with nic hosts", sharing),
        "Who shares a `buffer`. `per_port`: each port has its own, and drops packets that do not fit. `shared`: the ports of a switch share it; a queue may take a part of the free memory (`alpha`). `lossless`: the ports share it, and priority flow control (PFC) prevents drops.",
    )
    .rack_has(Rack::Only(&["per_port"])),
    key(
        "network.ecn.threshold",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("no marks"),
        "A switch port marks a packet (CE) if the queue is longer than this. At most `network.buffer`. In the simulator the length is for ports at the hosts' rate, and in proportion at other rates.",
    ),
    key(
        "network.ecn.max",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("`network.ecn.threshold`, a step"),
        "A switch port marks every packet if the queue is longer than this. Between `threshold` and `max` the marked fraction grows.",
    )
    .rack_has(Rack::If("the value of `threshold`", |run, _, _| {
        run.network.ecn.is_some_and(|ecn| ecn.max != ecn.threshold)
    })),
    key(
        "network.ecn.max_fraction",
        Form::Fraction(0.0, 1.0),
        Is("1"),
        "Fraction of the packets that are marked just below `max`.",
    ),
    key(
        "network.ecn.steps",
        Form::Count(2, 64),
        Without("the fraction grows continuously"),
        "Number of equal steps in which the marked fraction grows between `threshold` and `max`; some switches have 8. In step i of n the fraction is (i - 1/2)/n of `max_fraction`.",
    )
    .rack_has(Rack::Never),
    key(
        "network.ecn.mark",
        Form::Choice(Mark::VARIANTS),
        By("`enqueue`; `dequeue` with nic hosts", mark),
        "`enqueue`: the queue that a packet joins decides. `dequeue`: the queue that a packet leaves behind decides.",
    )
    .rack_has(Rack::Only(&["enqueue"])),
];

fn sharing(run: &mut dyn Reader) -> Option<Value> {
    match run.field("host.kind")? {
        HostKind::Nic => Sharing::Lossless.to_value(),
        HostKind::Kernel => Sharing::PerPort.to_value(),
    }
}

fn buffer(run: &mut dyn Reader) -> Option<Value> {
    match run.field("network.sharing")? {
        Sharing::PerPort => Bytes::new(300_000).to_value(),
        Sharing::Shared | Sharing::Lossless => Bytes::new(32 << 20).to_value(),
    }
}

fn mark(run: &mut dyn Reader) -> Option<Value> {
    match run.field("host.kind")? {
        HostKind::Kernel => Mark::Enqueue.to_value(),
        HostKind::Nic => Mark::Dequeue.to_value(),
    }
}
