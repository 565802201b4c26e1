// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [network], apart from those of topologies and rules.

use super::{key, mbit_per_s, By, Form, Is, Key, Rack, Without};
use crate::field::{Field, Reader};
use crate::value::Value;
use crate::{HostKind, Mark, Sharing};
use onramp_units::{Bytes, Span};
use strum::VariantNames;

/// As switch chips have them: powers of two, 2^-7 first.
pub(crate) const ALPHAS: &[&str] = &[
    "1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8",
];

pub(super) const KEYS: &[Key] = &[
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
        "Propagation delay of a host's link in one direction. A path over one switch has two such links.",
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
        "Dynamic threshold. `shared`: the ratio of the free memory that one queue may use. `lossless`: the ratio of the free memory that the packets from one port may use before the switch pauses that port. The value applies to ports at the hosts' rate. It grows in proportion to the port's rate, up to all free memory.",
    )
    .rack_has(Rack::Never),
    key(
        "network.buffer",
        Form::Bytes(Bytes::new(2_000), Bytes::new(1_000_000_000)),
        By("300 kB; 32 MiB if ports share the buffer", buffer),
        "Size of the buffer of each switch port, or of each switch if its ports share the buffer.",
    ),
    key(
        "network.sharing",
        Form::Choice(Sharing::VARIANTS),
        By("`per_port`; `lossless` with nic hosts", sharing),
        "Which ports share a `buffer`. `per_port`: each port has its own and drops packets that do not fit. `shared`: the ports of a switch share one buffer, and `alpha` limits each queue. `lossless`: the ports of a switch share one buffer, and priority flow control (PFC) prevents drops.",
    )
    .rack_has(Rack::Only(&["per_port"])),
    key(
        "network.ecn.threshold",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("no marks"),
        "A switch port may mark a packet (CE) if the queue is longer than this. Must be at most `network.buffer`. In the simulator the value applies to ports at the hosts' rate and grows in proportion to the port's rate.",
    ),
    key(
        "network.ecn.max",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("`network.ecn.threshold`: every packet above it is marked"),
        "A switch port marks every packet if the queue is longer than this. Between `threshold` and `max` the fraction of marked packets grows.",
    ),
    key(
        "network.ecn.max_fraction",
        Form::Fraction(0.0, 1.0),
        Is("1"),
        "Fraction of packets that are marked if the queue is just below `max`.",
    ),
    key(
        "network.ecn.steps",
        Form::Count(2, 64),
        Without("the fraction grows continuously"),
        "Number of equal steps in which the fraction of marked packets grows between `threshold` and `max`. Some switches have 8. In step i of n the fraction is `max_fraction` times (i - 1/2)/n.",
    ),
    key(
        "network.ecn.bdp",
        Form::Bytes(Bytes::new(1_000), Bytes::new(1_000_000_000)),
        Without("the fraction grows in a line"),
        "Bandwidth-delay product B of the port, for the curve of Tiny Buffer TCP: x bytes above `threshold` the fraction of marked packets is x/(x + B), and 1/2 from B bytes on, times `max_fraction`. Not with `max` or `steps`.",
    ),
    key(
        "network.ecn.mark",
        Form::Choice(Mark::VARIANTS),
        By("`enqueue`; `dequeue` with nic hosts", mark),
        "When the length of the queue decides about a mark. `enqueue`: when the packet enters the queue. `dequeue`: when it leaves.",
    )
    .rack_has(Rack::Only(&["enqueue"])),
    key(
        "network.loss",
        Form::Fraction(0.0, 0.5),
        Is("0"),
        "Fraction of data packets, and of the requests of reads, that the link of the receiving host loses, at random, in addition to what switches drop.",
    )
    .rack_has(Rack::Only(&["0"])),
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
