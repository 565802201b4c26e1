// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [host]: settings that all hosts share.

use crate::field::{Field, Reader};
use crate::key::{field, By, Is, Rack};
use crate::section::section;
use crate::value::{Form, Value};
use crate::{Cc, Fraction};
use onramp_units::{Bytes, Span};
use strum::{Display, EnumString, VariantNames};

section! {
    /// Settings of every host.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Host in "host" {
        kind: HostKind = field(Form::Choice(HostKind::VARIANTS), Is("kernel"))
            .everywhere()
            .rack_has(Rack::Only(&["kernel"])),
            "`kernel`: Linux TCP. `nic`: an RDMA-like NIC that paces and acknowledges packets.";
        cc: Cc = field(Form::Cc, Is("cubic")).rack_has(Rack::If(
            "congestion controls of its Linux",
            |run, _, value| {
                let cc = Cc::named(&value.to_string()).and_then(|cc| cc.on(false));
                run.host.kind == HostKind::Kernel && !cc.is_some_and(Cc::in_linux)
            },
        )),
            "Congestion control; the table under [cc] lists them. Each one has the parameters of its source by default. On nic hosts without `network.ecn`, switches mark as in its source.";
        qdisc: Qdisc = field(Form::Choice(Qdisc::VARIANTS), Is("edge")),
            "Queueing discipline of each NIC. `edge` is On-Ramp's; the others are Linux's. A kernel host without `edge` sends no OR-ACKs.";
        gso: Bytes = field(Form::Bytes(Bytes::new(1_448), Bytes::new(65_536)), Is("64 kB")),
            "Largest segment that TCP hands to the NIC (segmentation offload).";
        gro: bool = field(Form::Flag, Is("true")),
            "Whether receivers merge segments (generic receive offload).";
        coalescing: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s")).rack_has(Rack::Only(&["0 s"])),
            "Interrupt coalescing: time between the arrival of the first waiting packet in a kernel host's NIC and the interrupt.";
        nic_queue: Bytes = field(Form::Bytes(Bytes::ZERO, Bytes::new(10_000_000)), Is("0 B"))
            .on(HostKind::Kernel)
            .later(),
            "Queue of a kernel host's NIC: the NIC takes segments and acknowledgements from the queueing discipline, in order, while fewer bytes than this wait for the wire (a driver's transmit ring under byte queue limits, BQL). 0 B: one segment when the wire is free. What is there cannot be held any more.";
        connections: Connections = field(Form::Choice(Connections::VARIANTS), Is("persistent"))
            .on(HostKind::Kernel)
            .rack_has(Rack::Only(&["persistent"]))
            .later(),
            "`persistent`: a flow uses the connection between its hosts that became idle last, and that connection keeps its window. `new`: each flow has a new connection (each host of a ring has one, to the next host). The handshake is already complete and took place on an idle network.";
        ack_priority: bool = field(Form::Flag, Is("false"))
            .on(HostKind::Nic)
            .everywhere()
            .later(),
            "`true`: acknowledgements have a class of their own at switches. They leave before data, are not paused, and take no room from data. `false`: they wait in the queue of the data.";
        rtt_stamps: RttStamps = field(Form::Choice(RttStamps::VARIANTS), Is("exact"))
            .on(HostKind::Nic)
            .later(),
            "Who stamps the departure and the completion of a segment, where the congestion control sends segments. `exact`: without error. `hardware`: the NIC stamps both. `calibrated`: the host stamps the departure and the NIC the completion, as in TIMELY's paper. `software`: the host stamps both. The errors are those of the probes of `clock.stamps`.";
        rtt_noise: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s"))
            .on(HostKind::Nic)
            .later(),
            "A random time between 0 and this is added to the round-trip time of each segment.";
    } and {
        /// Constants of the transport.
        transport: Transport;
    }
}

section! {
    /// Constants of the hosts' transport; all but the timeout are a kernel's.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Transport in "host" {
        min_rto: Span = field(
            Form::Span(Span::from_us(1), Span::from_s(10)),
            By("200 ms; 4 ms with nic hosts", min_rto),
        )
        .rack_has(Rack::If("`200 ms`", |run, _, value| {
            run.host.kind == HostKind::Kernel && *value != Value::Span(MIN_RTO)
        })),
            "Lower bound of the part of the retransmission timeout that is added to the round-trip time. On nic hosts: the timeout itself, if the network can drop packets.";
        initial_window: u32 = field(Form::Count(1, 10_000), Is("10"))
            .on(HostKind::Kernel)
            .rack_has(Rack::Only(&["10"])),
            "Congestion window of a kernel host's new connection, in packets.";
        delayed_ack: Span = field(Form::Span(Span::ZERO, Span::from_s(1)), Is("40 ms"))
            .on(HostKind::Kernel)
            .rack_has(Rack::Only(&["40 ms"])),
            "Time for which a kernel host delays the acknowledgement of a single packet.";
        // sk_pacing_shift: 2^-10 s.
        small_queue: Span = field(Form::Span(Span::ZERO, Span::from_s(1)), Is("977 us"))
            .on(HostKind::Kernel)
            .rack_has(Rack::Ignores("simulator; rack always 1 ms, unscaled")),
            "TCP small queues: below TCP, a connection may queue as much data as its pacing rate sends in this time, and at least two segments. The value also bounds the time that HyStart allows for segments before it ends slow start. With `time_dilation` 100 the rack's value is 10 us.";
        reordering: Fraction = field(Form::Fraction(0.0, 10.0), Is("1/4"))
            .on(HostKind::Kernel)
            .rack_has(Rack::Only(&["0.25"])),
            "RACK: a packet counts as lost if it is late by more than this fraction of the shortest round-trip time.";
    }
}

const MIN_RTO: Span = Span::from_ms(200);

fn min_rto(run: &mut dyn Reader) -> Option<Value> {
    match run.field("host.kind")? {
        HostKind::Kernel => MIN_RTO.to_value(),
        HostKind::Nic => Span::from_ms(4).to_value(),
    }
}

/// The transport of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum HostKind {
    /// Linux TCP.
    Kernel,
    /// An RDMA-like NIC, in the simulator only.
    Nic,
}

/// Who stamps a round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum RttStamps {
    /// Nobody: it is known.
    Exact,
    /// The NIC.
    Hardware,
    /// The host at departure, the NIC at completion.
    Calibrated,
    /// The host.
    Software,
}

/// The connection that a flow uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Connections {
    /// An idle connection of its hosts, if there is one.
    Persistent,
    /// A new connection.
    New,
}

/// Queueing discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Qdisc {
    /// On-Ramp's own; with law off it holds nothing.
    Edge,
    /// Linux sch_fq.
    Fq,
    /// Linux sch_fq_codel.
    FqCodel,
}
