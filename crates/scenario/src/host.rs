// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [host]: settings that all hosts share.

use crate::fraction::Fraction;
use crate::hosts::HostKind;
use crate::key::{both, Rack, Scope};
use onramp_cc::Cc;
use onramp_keys::Absent::{By, Is};
use onramp_keys::{choice, section, Source};
use onramp_units::{Bytes, Span};

section! {
    /// Settings of every host.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Host in "host" with Scope {
        kind: HostKind = Is("kernel"), both().everywhere().rack_only(&["kernel"]),
            "`kernel`: Linux TCP. `nic`: an RDMA-like NIC that paces and acknowledges packets.";
        cc: Cc = Is("cubic"), both().rack(Rack::If("congestion controls of its Linux", |run, name| {
            let cc = Cc::named(name).and_then(|cc| cc.on(false));
            is_kernel(run) && !cc.is_some_and(Cc::in_linux)
        })),
            "Congestion control; the table under [cc] lists them. Each one has the parameters of its source by default. On nic hosts without `network.ecn`, switches mark as in its source.";
        qdisc: Qdisc = Is("edge"), both(),
            "Queueing discipline of each NIC. `edge` is On-Ramp's; the others are Linux's. A kernel host without `edge` sends no OR-ACKs.";
        gso: Bytes [Bytes::new(1_448), Bytes::new(65_536)] = Is("64 kB"), both(),
            "Largest segment that TCP hands to the NIC (segmentation offload).";
        gro: bool = Is("true"), both(),
            "Whether receivers merge segments (generic receive offload).";
        coalescing: Span [Span::ZERO, Span::from_ms(10)] = Is("0 s"), both().rack_only(&["0 s"]),
            "Interrupt coalescing: time between the arrival of the first waiting packet in a kernel host's NIC and the interrupt.";
        nic_queue: Bytes [Bytes::ZERO, Bytes::new(10_000_000)] = Is("0 B"), both().on(HostKind::Kernel).later(),
            "Queue of a kernel host's NIC: the NIC takes segments and acknowledgements from the queueing discipline, in order, while fewer bytes than this wait for the wire (a driver's transmit ring under byte queue limits, BQL). 0 B: one segment when the wire is free. What is there cannot be held any more.";
        connections: Connections = Is("persistent"), both().on(HostKind::Kernel).rack_only(&["persistent"]).later(),
            "`persistent`: a flow uses the connection between its hosts that became idle last, and that connection keeps its window. `new`: each flow has a new connection (each host of a ring has one, to the next host). The handshake is already complete and took place on an idle network.";
        ack_priority: bool = Is("false"), both().on(HostKind::Nic).everywhere().later(),
            "`true`: acknowledgements have a class of their own at switches. They leave before data, are not paused, and take no room from data. `false`: they wait in the queue of the data.";
        rtt_stamps: RttStamps = Is("exact"), both().on(HostKind::Nic).later(),
            "Who stamps the departure and the completion of a segment, where the congestion control sends segments. `exact`: without error. `hardware`: the NIC stamps both. `calibrated`: the host stamps the departure and the NIC the completion, as in TIMELY's paper. `software`: the host stamps both. The errors are those of the probes of `clock.stamps`.";
        rtt_noise: Span [Span::ZERO, Span::from_ms(10)] = Is("0 s"), both().on(HostKind::Nic).later(),
            "A random time between 0 and this is added to the round-trip time of each segment.";
    } and {
        /// Constants of the transport.
        transport: Transport;
    }
}

section! {
    /// Constants of the hosts' transport; all but the timeout are a kernel's.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Transport in "host" with Scope {
        min_rto: Span [Span::from_us(1), Span::from_s(10)] = By("200 ms; 4 ms with nic hosts", min_rto), both().rack(Rack::If("`200 ms`", |run, text| {
            is_kernel(run) && text != MIN_RTO
        })),
            "Lower bound of the part of the retransmission timeout that is added to the round-trip time. On nic hosts: the timeout itself, if the network can drop packets.";
        initial_window: u32 [1, 10_000] = Is("10"), both().on(HostKind::Kernel).rack_only(&["10"]),
            "Congestion window of a kernel host's new connection, in packets.";
        delayed_ack: Span [Span::ZERO, Span::from_s(1)] = Is("40 ms"), both().on(HostKind::Kernel).rack_only(&["40 ms"]),
            "Time for which a kernel host delays the acknowledgement of a single packet.";
        // sk_pacing_shift: 2^-10 s.
        small_queue: Span [Span::ZERO, Span::from_s(1)] = Is("977 us"), both().on(HostKind::Kernel)
            .rack(Rack::Ignores("simulator; rack always 1 ms, unscaled")),
            "TCP small queues: below TCP, a connection may queue as much data as its pacing rate sends in this time, and at least two segments. The value also bounds the time that HyStart allows for segments before it ends slow start. With `time_dilation` 100 the rack's value is 10 us.";
        reordering: Fraction [0.0, 10.0] = Is("1/4"), both().on(HostKind::Kernel).rack_only(&["0.25"]),
            "RACK: a packet counts as lost if it is late by more than this fraction of the shortest round-trip time.";
    }
}

const MIN_RTO: &str = "200 ms";

fn min_rto(run: &dyn Source) -> Option<String> {
    let min_rto = match run.text(Host::kind)?.parse().ok()? {
        HostKind::Kernel => MIN_RTO,
        HostKind::Nic => "4 ms",
    };
    Some(min_rto.to_owned())
}

fn is_kernel(run: &dyn Source) -> bool {
    let kind = run.text(Host::kind).and_then(|kind| kind.parse().ok());
    kind == Some(HostKind::Kernel)
}

choice! {
    /// Who stamps a round-trip time.
    pub enum RttStamps {
        /// Nobody: it is known.
        Exact = "exact",
        /// The NIC.
        Hardware = "hardware",
        /// The host at departure, the NIC at completion.
        Calibrated = "calibrated",
        /// The host.
        Software = "software",
    }
}

choice! {
    /// The connection that a flow uses.
    pub enum Connections {
        /// An idle connection of its hosts, if there is one.
        Persistent = "persistent",
        /// A new connection.
        New = "new",
    }
}

choice! {
    /// Queueing discipline.
    pub enum Qdisc {
        /// On-Ramp's own; with law off it holds nothing.
        Edge = "edge",
        /// Linux sch_fq.
        Fq = "fq",
        /// Linux sch_fq_codel.
        FqCodel = "fq_codel",
    }
}
