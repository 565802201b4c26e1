// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [[traffic]]. They are not declared at the fields, because several kinds share some of them.

use super::{key, Form, Is, Key, Rack, Required, Without, ANY_NUMBER, HOUR, RACK_KINDS};
use crate::{Arrivals, BuiltIn, Kind, Op, Pattern, Sources, Traffic};
use onramp_units::{Bytes, Span};
use strum::VariantNames;

const LOAD: Form = Form::Fraction(0.000_001, 1.0);
const INCAST: &[Kind] = &[Kind::Incast];
const LONG: &[Kind] = &[Kind::Long];
const POISSON: &[Kind] = &[Kind::Poisson];
const REQUEST: &[Kind] = &[Kind::Request];
const ALL_TO_ALL: &[Kind] = &[Kind::AllToAll];
const REPLAY: &[Kind] = &[Kind::Replay];

pub(super) const KEYS: &[Key] = &[
    key("traffic.kind", Form::Choice(Kind::VARIANTS), Required, "`incast`: an aggregator sends a request to `fanout` servers, which answer at the same time. `long`: flows that never run out of data. `poisson`: flows of random sizes, with exponential times between their starts. `request`: clients send requests to servers, which answer. `all_to_all`: the steps of a collective operation, as in training: every host sends to every other host, or all hosts reduce data in a ring. `replay`: flows that a file lists.").fixed()
    .rack_has(Rack::Only(RACK_KINDS)),
    key("traffic.to", Form::HostOr("all"), Is("0"), "The receiver: the aggregator of an incast, or the client of requests. A range or `all` (not for long): each of these hosts is a receiver, and `load`, `interval` and `requests` apply to each one.")
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request]),
    key(
        "traffic.from",
        Form::HostOr("others"),
        Is("others"),
        "The sender: the server of an incast or of requests. A range or `others` (all hosts but the receiver): long flows use these hosts in order, and other traffic chooses among them at random.",
    )
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request])
    .rack_has(Rack::If("`others` for an incast", |run, entry, _| {
        let traffic = entry.and_then(|entry| run.traffic.get(entry));
        matches!(traffic, Some(Traffic::Incast(incast)) if incast.from != Sources::Others)
    })),
    key("traffic.among", Form::HostOr("all"), Is("all"), "Hosts that send to each other; at least two.").of(ALL_TO_ALL),
    key(
        "traffic.pattern",
        Form::Choice(Pattern::VARIANTS),
        Is("direct"),
        "Communication in a step. `direct`: every host sends `size` bytes to every other host. `ring`: the n hosts reduce `size` bytes each, in 2 (n - 1) rounds. In each round a host sends `size` / n to the next host, as soon as it has received the data of the previous round. It sends all rounds in order on one connection.",
    )
    .of(ALL_TO_ALL),
    key("traffic.path", Form::Path, Required, "File that lists the flows by start time. A name that ends in `.csv` or `.parquet`: the columns are src, dst, size_bytes, start_ns. A name that ends in `.trace` or `.jsonl`: a trace of a daemon; its hosts have the numbers of their addresses in order, and the first flow starts at 0. Rates and delays are the scenario's; `onramp advise` writes a scenario with those of the trace. Any other name: the HPCC authors' format, which has the number of flows, then a line `src dst priority port size_bytes start_s` for each flow.").of(REPLAY),
    key(
        "traffic.workload",
        Form::ChoiceOrPath(BuiltIn::VARIANTS),
        Required,
        "Distribution of flow sizes: the name of a distribution in workloads/, or a file. Its rows are a size in bytes and the part of flows up to it: `10000,0.15` below a line `# interpolation: linear` or `step`, or `10000 15` in percent, linear, as HPCC's traffic generator reads them.",
    )
    .of(POISSON)
    .rack_has(Rack::If("named distributions", |_, _, value| {
        !BuiltIn::VARIANTS.contains(&value.to_string().as_str())
    })),
    key(
        "traffic.fanout",
        Form::Count(1, 10_000),
        Required,
        "Number of answers to a request, from random servers. If it exceeds the number of servers, some servers send several answers, on separate connections.",
    )
    .of(INCAST),
    key(
        "traffic.request_size",
        Form::Bytes(Bytes::new(1), Bytes::new(1_000_000_000)),
        Is("100 B"),
        "Size of a request.",
    )
    .of(REQUEST),
    key(
        "traffic.size",
        Form::Bytes(Bytes::new(1), Bytes::new(1_000_000_000)),
        Required,
        "Size of one answer (incast, request); of the data that one host sends to another in a step (all_to_all, `direct`); or of the data that each host reduces (all_to_all, `ring`).",
    )
    .of(&[Kind::Incast, Kind::Request, Kind::AllToAll]),
    key(
        "traffic.load",
        LOAD,
        Without("required for poisson; 2 % for an incast without `interval`; for request: a client waits for an answer before its next request"),
        "Offered load: payload sent to the receiver, as a fraction of the rate of its link. For request only the answers count.",
    )
    .of(&[Kind::Incast, Kind::Poisson, Kind::Request]),
    key(
        "traffic.interval",
        Form::Span(Span::from_ns(1), HOUR),
        Without("from `load`; 0 s for all_to_all"),
        "Mean time between requests, instead of `load`. For all_to_all: the time from the end of a host's step to the start of its next step.",
    )
    .of(&[Kind::Incast, Kind::AllToAll]),
    key(
        "traffic.think",
        Form::Span(Span::ZERO, HOUR),
        Without("0 s"),
        "Mean time between an answer and the client's next request. Not with `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.concurrency",
        Form::Count(1, 1000),
        Without("1"),
        "Number of requests that a client has in progress. Not with `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.arrivals",
        Form::Choice(Arrivals::VARIANTS),
        Is("poisson"),
        "Distribution of the time between requests, or of `think`. `poisson`: exponential. `periodic`: constant.",
    )
    .of(&[Kind::Incast, Kind::Request]),
    key(
        "traffic.requests",
        Form::Count(1, ANY_NUMBER),
        Without("until `duration`"),
        "Each client stops after this number of requests.",
    )
    .of(&[Kind::Incast, Kind::Request]),
    key(
        "traffic.stagger",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Time between the starts of two successive answers to a request.",
    )
    .of(INCAST)
    .rack_has(Rack::Only(&["0 s"])),
    key(
        "traffic.ask_size",
        Form::Bytes(Bytes::ZERO, Bytes::new(1_000_000_000)),
        Is("0 B"),
        "Size of the request that the aggregator sends to each server. `stagger` and `jitter` delay these requests. A request waits behind other data for the same server. 0 B: servers answer without a request. In the rack, aggregators always send 64 B.",
    )
    .of(&[Kind::Incast])
    .rack_has(Rack::Only(&["0 B", "64 B"])),
    key(
        "traffic.jitter",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Upper bound of a random time that delays each answer, in addition to `stagger`.",
    )
    .of(INCAST)
    .rack_has(Rack::Only(&["0 s"])),
    key(
        "traffic.op",
        Form::Choice(Op::VARIANTS),
        Is("write"),
        "How NICs move the data from `from` to `to`, which are the same for both values. `write`: the NIC of `from` has the congestion control. `read`: the NIC of `to` has it, and paces requests for segments, which the NIC of `from` sends at the rate of its line; docs/timely.md describes this. A read starts at `to` and ends when `to` has the last byte. `read` needs a congestion control of nic hosts that sends bursts, `onramp.law` off, no `ask_size` and no `cc.timely_paper.burst_rate`.",
    )
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson])
    .later()
    .rack_has(Rack::Only(&["write"])),
    key("traffic.flows", Form::Count(0, 10_000), Is("1"), "Number of flows.").of(LONG),
    key(
        "traffic.start",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Start of the flows, or of the first step. Must be below `duration`.",
    )
    .of(&[Kind::Long, Kind::AllToAll]),
    key(
        "traffic.stop",
        Form::Span(Span::ZERO, HOUR),
        Without("`duration`"),
        "End of the flows. Must be after `start` and at most `duration`.",
    )
    .of(LONG),
    key(
        "traffic.steps",
        Form::Count(1, ANY_NUMBER),
        Without("until `duration`"),
        "The traffic stops after this number of steps.",
    )
    .of(ALL_TO_ALL),
];
