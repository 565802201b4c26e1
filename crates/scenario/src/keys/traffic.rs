//! Keys of [[traffic]]. Several kinds share some of them, so they stand here and not at the fields.

use super::{key, Form, Is, Key, Rack, Required, Without, ANY_NUMBER, HOUR, RACK_KINDS};
use crate::{Arrivals, BuiltIn, Kind, Pattern, Sources, Traffic};
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
    key("traffic.kind", Form::Choice(Kind::VARIANTS), Required, "`incast`: an aggregator asks servers, which answer at once. `long`: flows that never run out of data. `poisson`: flows of random sizes at random times. `request`: clients send requests to servers, which answer. `all_to_all`: steps of a collective operation, as in training: every host sends to every other host, or all hosts reduce data in a ring. `replay`: the flows of a file.").fixed()
    .rack_has(Rack::Only(RACK_KINDS)),
    key("traffic.to", Form::HostOr("all"), Is("0"), "The receiver: the aggregator of an incast, the client of requests. A range or `all` (not for long): each of these hosts is a receiver, with the `load`, `interval` and `requests` of the entry.")
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request]),
    key(
        "traffic.from",
        Form::HostOr("others"),
        Is("others"),
        "The sender: the server of an incast or of requests. `others`: all hosts but the receiver; long flows take them one after the other, other traffic takes one at random.",
    )
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request])
    .rack_has(Rack::If("`others` for an incast", |run, entry, _| {
        let traffic = entry.and_then(|entry| run.traffic.get(entry));
        matches!(traffic, Some(Traffic::Incast(incast)) if incast.from != Sources::Others)
    })),
    key("traffic.among", Form::HostOr("all"), Is("all"), "The hosts that send to each other, at least two.").of(ALL_TO_ALL),
    key(
        "traffic.pattern",
        Form::Choice(Pattern::VARIANTS),
        Is("direct"),
        "What a step does. `direct`: every host sends `size` bytes to every other host. `ring`: the n hosts reduce `size` bytes each, in 2 (n - 1) rounds. In each round a host sends one n-th of the data to the next host, as soon as it has the data of the round before. It uses one connection, in order.",
    )
    .of(ALL_TO_ALL),
    key("traffic.path", Form::Path, Required, "List of flows in the order of their starts: `.csv` or `.parquet` with the columns src, dst, size_bytes, start_ns; other names: the HPCC authors' format (the number of flows, then `src dst priority port size_bytes start_s`).").of(REPLAY),
    key(
        "traffic.workload",
        Form::ChoiceOrPath(BuiltIn::VARIANTS),
        Required,
        "Distribution of flow sizes: a name of workloads/, or a file of the same format.",
    )
    .of(POISSON)
    .rack_has(Rack::If("the named ones", |_, _, value| {
        !BuiltIn::VARIANTS.contains(&value.to_string().as_str())
    })),
    key(
        "traffic.fanout",
        Form::Count(1, 10_000),
        Required,
        "Number of answers to a request, from different random servers. With more answers than servers, some servers answer more than once, on separate connections.",
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
        "Size of one answer (incast, request), of the data from one host to another in a step (all_to_all), or of the data that each host of a ring reduces.",
    )
    .of(&[Kind::Incast, Kind::Request, Kind::AllToAll]),
    key(
        "traffic.load",
        LOAD,
        Without("required for poisson; 2 % for an incast without `interval`; requests: the next one waits for the answer"),
        "Fraction of the receiver's link that the payload takes (for requests: the answers).",
    )
    .of(&[Kind::Incast, Kind::Poisson, Kind::Request]),
    key(
        "traffic.interval",
        Form::Span(Span::from_ns(1), HOUR),
        Without("from `load`; 0 s for all_to_all"),
        "Mean time between requests, instead of `load`. For all_to_all: the time from the end of a host's step to its next step.",
    )
    .of(&[Kind::Incast, Kind::AllToAll]),
    key(
        "traffic.think",
        Form::Span(Span::ZERO, HOUR),
        Without("0 s"),
        "Mean time from an answer to the client's next request, instead of `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.concurrency",
        Form::Count(1, 1000),
        Without("1"),
        "Number of requests that a client has in progress, instead of `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.arrivals",
        Form::Choice(Arrivals::VARIANTS),
        Is("poisson"),
        "Distribution of the times between requests (or of `think`): exponential (`poisson`) or constant (`periodic`).",
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
        "Delay between the starts of two successive answers to a request.",
    )
    .of(INCAST)
    .rack_has(Rack::Only(&["0 s"])),
    key(
        "traffic.ask_size",
        Form::Bytes(Bytes::ZERO, Bytes::new(1_000_000_000)),
        Is("0 B"),
        "Size of the request that the aggregator sends to each server, one server after the other with `stagger` and `jitter`. It waits behind other data for the server. 0 B: servers answer without a request. The rack's aggregators always send 64 B.",
    )
    .of(&[Kind::Incast])
    .rack_has(Rack::Only(&["0 B", "64 B"])),
    key(
        "traffic.jitter",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Each answer starts later by a random time up to this, in addition to `stagger`.",
    )
    .of(INCAST)
    .rack_has(Rack::Only(&["0 s"])),
    key("traffic.flows", Form::Count(0, 10_000), Is("1"), "Number of flows.").of(LONG),
    key(
        "traffic.start",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "When the flows, or the first step, start. Below `duration`.",
    )
    .of(&[Kind::Long, Kind::AllToAll]),
    key(
        "traffic.stop",
        Form::Span(Span::ZERO, HOUR),
        Without("`duration`"),
        "When the flows stop. After `start`, at most `duration`.",
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
