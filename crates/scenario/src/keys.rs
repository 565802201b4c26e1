//! The table of keys: what a scenario may say. The only place that knows a key's name, form,
//! bounds, default and meaning; the parser, `explain` and docs/scenario.md all read it.

use crate::value::{Form, Value, OFF};
use crate::{
    Arrivals, BuiltIn, Cc, ClockSync, Connections, HostKind, Kind, Law, Mark, Pattern, ProbeStamps,
    Qdisc, Sharing, TopologyKind,
};
use onramp_units::{Bytes, Rate, Span};
use strum::VariantNames;

/// One key.
pub(crate) struct Key {
    /// Dotted; entries of `[[traffic]]` share "traffic.NAME".
    pub path: &'static str,
    pub form: Form,
    pub default: Absent,
    pub meaning: &'static str,
    /// Traffic kinds that have it; empty for keys outside of traffic, and for all kinds.
    pub of: &'static [Kind],
    /// The only kind of host that has it, if one has not.
    pub on: Option<HostKind>,
    /// Congestion controls that have it; empty for what is no parameter of one.
    pub of_cc: &'static [Cc],
    /// Whether it is the same in all runs.
    pub fixed: bool,
}

/// What holds when a key is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Absent {
    Required,
    /// This text, as if it had been written.
    Is(&'static str),
    /// No value, with this effect.
    Without(&'static str),
    /// That of the congestion control's source, which crates/sim has; a test there compares.
    Source(&'static str),
}
use Absent::{Is, Required, Source, Without};

impl Key {
    /// Its value when it is not given.
    pub(crate) fn default_value(&self) -> Option<Value> {
        match self.default {
            Is(text) => self.form.read(self.path, text).ok(),
            Required | Without(_) | Source(_) => None,
        }
    }

    const fn of(mut self, kinds: &'static [Kind]) -> Key {
        self.of = kinds;
        self
    }

    const fn of_cc(mut self, ccs: &'static [Cc]) -> Key {
        self.of_cc = ccs;
        self
    }

    const fn on(mut self, kind: HostKind) -> Key {
        self.on = Some(kind);
        self
    }

    /// Its last part.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    const fn fixed(mut self) -> Key {
        self.fixed = true;
        self
    }
}

const fn key(path: &'static str, form: Form, default: Absent, meaning: &'static str) -> Key {
    Key {
        path,
        form,
        default,
        meaning,
        of: &[],
        on: None,
        of_cc: &[],
        fixed: false,
    }
}

const fn mbit_per_s(n: u64) -> Rate {
    match Rate::from_bits_per_s(n * 1_000_000) {
        Some(rate) => rate,
        None => panic!("a bound of zero"),
    }
}

const fn kbit_per_s(n: u64) -> Rate {
    match Rate::from_bits_per_s(n * 1_000) {
        Some(rate) => rate,
        None => panic!("a bound of zero"),
    }
}

const ANY_NUMBER: u64 = i64::MAX as u64;
/// Longer would not fit a span once dilated.
const HOUR: Span = Span::from_s(3600);
const LOAD: Form = Form::Fraction(0.000_001, 1.0);
const INCAST: &[Kind] = &[Kind::Incast];
const LONG: &[Kind] = &[Kind::Long];
const POISSON: &[Kind] = &[Kind::Poisson];
const REQUEST: &[Kind] = &[Kind::Request];
const ALL_TO_ALL: &[Kind] = &[Kind::AllToAll];
const REPLAY: &[Kind] = &[Kind::Replay];
/// As switch chips have them: powers of two, 2^-7 first.
pub(crate) const ALPHAS: &[&str] = &[
    "1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8",
];
const PART: Form = Form::Fraction(0.0001, 1.0);
const STEP: Form = Form::Rate(kbit_per_s(1), mbit_per_s(1_000_000));
const SHORT: Form = Form::Span(Span::from_ns(1), Span::from_s(1));
const HPCC: &[Cc] = &[Cc::Hpcc];
const DCQCN: &[Cc] = &[Cc::Dcqcn, Cc::DcqcnW, Cc::DcqcnPaper, Cc::DcqcnPaperW];
const TIMELY: &[Cc] = &[Cc::Timely, Cc::TimelyW];
const DCTCP: &[Cc] = &[Cc::Dctcp];
const CUBIC: &[Cc] = &[Cc::Cubic];
const BBR: &[Cc] = &[Cc::Bbr];

/// Every key, in the order of the documentation.
pub(crate) const KEYS: &[Key] = &[
    key("title", Form::Title, Required, "What the experiment shows.").fixed(),
    key(
        "seed",
        Form::Count(0, ANY_NUMBER),
        Is("1"),
        "Seed of all that is random. Every case sees the same traffic.",
    ),
    key(
        "duration",
        Form::Span(Span::from_us(1), HOUR),
        Required,
        "Traffic starts within this time.",
    ),
    key(
        "warmup",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "What starts before this is left out of the measures; below `duration`.",
    ),
    key(
        "time_dilation",
        Form::Count(1, 1000),
        Is("1"),
        "The rack runs this many times slower and scales its results back; the simulator ignores it.",
    ),
    key(
        "network.topology.kind",
        Form::Choice(TopologyKind::VARIANTS),
        Required,
        "`star`: all hosts at one switch. `dumbbell`: half of them at each of two. `leaf_spine`: at leaves, each linked to every spine. `fat_tree`: three stages of ToR, aggregation and core switches. `file`, `inline`: nodes and links of a file, of `[network.graph]`. Only the simulator has more than the star.",
    )
    .fixed(),
    key("network.topology.hosts", Form::Count(2, 4096), Without("required unless `kind` is file or inline"), "Number of hosts, the same at every switch that has any."),
    key("network.topology.path", Form::Path, Without("required for file"), "A network in TOML (`.toml`: `switches`, a list of names; `[[hosts]]` with `at`, `rate`, `delay` and, for several, `count`; `[[links]]` with `from`, `to`, `rate`, `delay`), or in the HPCC authors' format (`nodes switches links`, the switches, a line `a b rate delay 0` for each link). Hosts are numbered in the file's order."),
    key("network.topology.leaves", Form::Count(2, 256), Without("required for leaf_spine"), "Switches that have hosts."),
    key("network.topology.spines", Form::Count(1, 256), Without("required for leaf_spine"), "Switches that link the leaves."),
    key("network.topology.pods", Form::Count(2, 64), Without("required for fat_tree"), "Groups of ToR and aggregation switches, all linked with each other."),
    key("network.topology.width", Form::Count(1, 32), Without("required for fat_tree"), "ToR switches of a pod, aggregation switches of a pod, and core switches of each of the `width` groups."),
    key("network.graph", Form::Graph, Without("required for inline"), "Nodes and links, as in a file of TOML: `[network.graph]` with `switches`, `[[network.graph.hosts]]`, `[[network.graph.links]]`.").fixed(),
    key(
        "network.link.rate",
        Form::Rate(mbit_per_s(1), mbit_per_s(1_000_000)),
        Without("required unless `topology.kind` is file or inline"),
        "Of every host's link, in each direction.",
    ),
    key(
        "network.link.delay",
        Form::Span(Span::ZERO, Span::from_ms(100)),
        Without("required unless `topology.kind` is file or inline"),
        "Propagation over one link, one way; host to switch to host is two links.",
    ),
    key(
        "network.fabric.rate",
        Form::Rate(mbit_per_s(1), mbit_per_s(1_000_000)),
        Without("`network.link.rate`"),
        "Of every link between switches.",
    ),
    key(
        "network.fabric.delay",
        Form::Span(Span::ZERO, Span::from_ms(100)),
        Without("`network.link.delay`"),
        "Propagation over a link between switches, one way.",
    ),
    key(
        "network.buffer",
        Form::Bytes(Bytes::new(2_000), Bytes::new(1_000_000_000)),
        Without("300 kB; 32 MiB unless `sharing` is per_port"),
        "Waiting room of each switch port, or of each switch.",
    ),
    key(
        "network.sharing",
        Form::Choice(Sharing::VARIANTS),
        Without("`per_port`; `lossless` with nic hosts"),
        "Whose `buffer` is. `per_port`: each port's; what does not fit is dropped. `shared`: the switch's; a queue may take as much as is free. `lossless`: the switch's, and priority flow control keeps it from overflowing. Only the simulator shares.",
    ),
    key(
        "network.alpha",
        Form::Choice(ALPHAS),
        Without("`1`; `1/8` if `sharing` is lossless"),
        "Dynamic threshold: part of the free memory that a queue may take of a shared buffer, or, of a lossless one, a port's arrivals before it is paused (of ports at the hosts' rate, twice that at twice the rate, at most all).",
    ),
    key(
        "network.ecn.threshold",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("no marks"),
        "A packet that finds more than this in a switch port's queue is marked CE; at most `network.buffer`. In the simulator the lengths are those of ports at the hosts' rate, in proportion at others.",
    ),
    key(
        "network.ecn.max",
        Form::Bytes(Bytes::new(0), Bytes::new(1_000_000_000)),
        Without("`network.ecn.threshold`, a step"),
        "Queue above which all packets are marked; between `threshold` and this a growing part. The rack has only the step.",
    ),
    key(
        "network.ecn.max_fraction",
        Form::Fraction(0.0, 1.0),
        Is("1"),
        "Part of the packets that is marked just below `max`.",
    ),
    key(
        "network.ecn.steps",
        Form::Count(2, 64),
        Without("it grows steadily"),
        "The marked part grows in so many equal steps between `threshold` and `max`, in step i to (i - 1/2) of them; 8 on some switches. Only in the simulator.",
    ),
    key(
        "network.ecn.mark",
        Form::Choice(Mark::VARIANTS),
        Without("`enqueue`; `dequeue` with nic hosts"),
        "Whether the queue that a packet finds or that it leaves behind counts. The rack marks at enqueue.",
    ),
    key("host.kind", Form::Choice(HostKind::VARIANTS), Is("kernel"), "`kernel`: Linux TCP. `nic`: an RDMA-like NIC that paces and acknowledges packets; only in the simulator."),
    key("host.cc", Form::Choice(Cc::VARIANTS), Is("cubic"), "Congestion control. Kernel hosts have cubic, bbr, dctcp (which needs `network.ecn.threshold`), reno and scalable (in the simulator); nic hosts hpcc, dctcp, and dcqcn and timely in their variants, each with its source's parameters and, without `network.ecn`, its source's marks."),
    key(
        "host.qdisc",
        Form::Choice(Qdisc::VARIANTS),
        Is("edge"),
        "Queueing discipline of each NIC; `edge` is On-Ramp's own, the others are Linux's.",
    ),
    key(
        "host.gso",
        Form::Bytes(Bytes::new(1_448), Bytes::new(65_536)),
        Is("64 kB"),
        "Largest segment handed to the NIC.",
    ),
    key("host.gro", Form::Flag, Is("true"), "Whether receivers merge segments."),
    key(
        "host.coalescing",
        Form::Span(Span::ZERO, Span::from_ms(10)),
        Is("0 s"),
        "A kernel host's NIC interrupts so long after the first packet that it has not handled; only in the simulator.",
    ),
    key(
        "host.connections",
        Form::Choice(Connections::VARIANTS),
        Is("persistent"),
        "`persistent`: a flow takes the connection of its hosts that became idle last, with the window that it has. `new`: each opens one of its own (but a ring's host one to the next), whose handshake is over and found the network idle; only in the simulator.",
    )
    .on(HostKind::Kernel),
    key("host.initial_window", Form::Count(1, 10_000), Is("10"), "A kernel host's congestion window of a new connection, in packets; only in the simulator.").on(HostKind::Kernel),
    key(
        "host.min_rto",
        Form::Span(Span::from_us(1), Span::from_s(10)),
        Without("200 ms; 4 ms with nic hosts"),
        "Least retransmission timeout above the round-trip time; of a nic host, where packets can be dropped, the timeout itself. Only in the simulator.",
    ),
    key(
        "host.delayed_ack",
        Form::Span(Span::ZERO, Span::from_s(1)),
        Is("40 ms"),
        "How long a kernel host's lone packet waits for its acknowledgement; only in the simulator.",
    )
    .on(HostKind::Kernel),
    // sk_pacing_shift: 2^-10 s.
    key(
        "host.small_queue",
        Form::Span(Span::ZERO, Span::from_s(1)),
        Is("977 us"),
        "TCP small queues: what a connection's pace sends in this time may wait below TCP in its kernel host, at least two segments. The same time is the most that HyStart allows for segments before it takes a path for full. The rack has always Linux's, 1 ms both, which its dilation makes that much shorter: 10 us at 100.",
    )
    .on(HostKind::Kernel),
    key(
        "host.reordering",
        Form::Fraction(0.0, 10.0),
        Is("1/4"),
        "RACK: part of the shortest round-trip time that a kernel host's packet may be late before it counts as lost; only in the simulator.",
    )
    .on(HostKind::Kernel),
    key("cc.hpcc.eta", PART, Source("95 %"), "Utilisation that it aims at.").of_cc(HPCC),
    key("cc.hpcc.max_stage", Form::Count(0, 1000), Source("0"), "Additive steps before a multiplicative one: 5 in the paper, 0 in its authors' simulator.").of_cc(HPCC),
    key("cc.hpcc.rate_ai", STEP, Source("40 Mbit/s"), "W_AI as a rate; the default is in proportion to the line rate.").of_cc(HPCC),
    key("cc.hpcc.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(HPCC),
    key("cc.dcqcn.g", PART, Source("1/256"), "Weight of a new sample in alpha.").of_cc(DCQCN),
    key("cc.dcqcn.alpha_interval", SHORT, Source("1 us"), "How often alpha is updated; 50 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.decrease_interval", SHORT, Source("4 us"), "T_d, how often the rate may be cut; 50 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.increase_interval", SHORT, Source("300 us"), "T_i, how often the rate grows; 55 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.fast_recovery", Form::Count(0, 1000), Source("1"), "F: steps of fast recovery before additive increase; 5 in the paper.").of_cc(DCQCN),
    key("cc.dcqcn.rate_ai", STEP, Source("20 Mbit/s"), "R_AI; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.dcqcn.rate_hai", STEP, Source("200 Mbit/s"), "R_HAI; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.dcqcn.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.timely.t_low", SHORT, Source("50 us"), "Below this round-trip time the rate grows whatever the gradient; not above `t_high`.").of_cc(TIMELY),
    key("cc.timely.t_high", SHORT, Source("500 us"), "Above this the rate shrinks whatever the gradient.").of_cc(TIMELY),
    key("cc.timely.min_rtt", SHORT, Source("20 us"), "Round-trip time of the idle fabric, which scales the gradient.").of_cc(TIMELY),
    key("cc.timely.alpha", PART, Source("87.5 %"), "Weight of a new difference of round-trip times.").of_cc(TIMELY),
    key("cc.timely.beta", PART, Source("80 %"), "Part of the rate that a gradient of 1 takes away.").of_cc(TIMELY),
    key("cc.timely.delta", STEP, Source("100 Mbit/s"), "Additive step; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.timely.rate_hai", STEP, Source("500 Mbit/s"), "Step after `hai_after` increases in a row; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.timely.hai_after", Form::Count(0, 1000), Source("5"), "Increases in a row before the larger step.").of_cc(TIMELY),
    key("cc.timely.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.dctcp.g", PART, Source("1/16"), "Weight of a window's marked part in alpha.").of_cc(DCTCP),
    key("cc.dctcp.rate_ai", STEP, Source("615 Mbit/s"), "Growth per window of a nic host's rate.").of_cc(DCTCP).on(HostKind::Nic),
    key("cc.dctcp.min_rate", STEP, Source("1 Gbit/s"), "A nic host's rate is never below this; the default is in proportion to the line rate.").of_cc(DCTCP).on(HostKind::Nic),
    key("cc.cubic.c", Form::Fraction(0.0001, 1000.0), Source("0.4"), "C of RFC 9438, in packets per cubic second.").of_cc(CUBIC),
    key("cc.cubic.beta", Form::Fraction(0.1, 0.99), Source("70 %"), "Part of the window that a loss leaves.").of_cc(CUBIC),
    key("cc.cubic.hystart", Form::Flag, Source("true"), "Whether HyStart may end slow start before a loss does.").of_cc(CUBIC),
    key("cc.bbr.startup_gain", Form::Fraction(1.0, 10.0), Source("2.885"), "Of pace and window while it looks for the bandwidth; its inverse drains the queue after that.").of_cc(BBR),
    key("cc.bbr.window_gain", Form::Fraction(1.0, 10.0), Source("2"), "Window in estimated bandwidth-delay products.").of_cc(BBR),
    key("cc.bbr.probe_gain", Form::Fraction(1.0, 10.0), Source("1.25"), "Pace of the phase that looks for more bandwidth.").of_cc(BBR),
    key("cc.bbr.drain_gain", Form::Fraction(0.1, 1.0), Source("75 %"), "Pace of the phase after it.").of_cc(BBR),
    key("cc.bbr.bandwidth_rounds", Form::Count(1, 1000), Source("10"), "Round trips for which the best sample of bandwidth counts.").of_cc(BBR),
    key("cc.bbr.min_rtt_window", Form::Span(Span::from_us(1), HOUR), Source("10 s"), "Time for which the shortest round trip counts.").of_cc(BBR),
    key("cc.bbr.probe_rtt", Form::Span(Span::from_us(1), HOUR), Source("200 ms"), "How long it keeps the path almost empty to see the shortest round trip.").of_cc(BBR),
    key("cc.reno.beta", Form::Fraction(0.1, 0.99), Source("50 %"), "Part of the window that a loss leaves.").of_cc(&[Cc::Reno]),
    key("cc.scalable.packets", Form::Count(1, 10_000), Source("100"), "Packets to be acknowledged for one more in the window, at most.").of_cc(&[Cc::Scalable]),
    key("cc.scalable.decrease", Form::Fraction(0.01, 0.9), Source("1/8"), "Part of the window that a loss takes.").of_cc(&[Cc::Scalable]),
    key(
        "clock.offset",
        Form::Span(Span::ZERO, Span::from_ms(10)),
        Is("0 s"),
        "Standard deviation of a host's constant offset.",
    ),
    key(
        "clock.drift",
        Form::Fraction(0.0, 0.001),
        Is("0"),
        "Standard deviation of a host's constant drift: 1/1000000 is a microsecond a second.",
    ),
    key(
        "clock.noise",
        Form::Span(Span::ZERO, Span::from_ms(10)),
        Is("0 s"),
        "Standard deviation of a single time stamp of a data packet; only in the simulator.",
    ),
    key("clock.wander", Form::Fraction(0.0, 0.0001), Is("0"), "How far a host's drift swings with its temperature, up and down; each host in its own period of 10 to 60 minutes."),
    key("clock.sync", Form::Choice(ClockSync::VARIANTS), Is("none"), "What corrects clocks. `huygens`: hosts probe each other with packets of this network; until the first correction nobody knows a delay, and nothing is held."),
    key("clock.stamps", Form::Choice(ProbeStamps::VARIANTS), Is("software"), "Who stamps probes. `hardware`: the NIC, to some 5 ns; pairs are 10 us apart. `software`: the kernel, on arrival a microsecond late or many; 50 us. The rack has only these, slowed down like all else."),
    key("clock.degree", Form::Count(1, 1000), Is("10"), "Hosts that each host probes; in the rack as in the daemon, neighbours of a host, half of which it probes."),
    key("clock.probe_interval", Form::Span(Span::from_us(100), HOUR), Is("20 ms"), "Time between two pairs of probes to a host."),
    key("clock.window", Form::Span(Span::from_ms(1), HOUR), Is("2 s"), "Time between two corrections. A line is fitted to the pairs of the last three windows. In the rack it has to be 2 s of its slowed-down time: 20 ms at `time_dilation` 100."),
    key("traffic.kind", Form::Choice(Kind::VARIANTS), Required, "`incast`: an aggregator asks servers, which answer at once. `long`: flows that never run out of data. `poisson`: flows of random sizes at random times. `request`: clients ask a server and are answered. `all_to_all`: steps in which every host sends to every other, or all reduce in a ring, as in training. `replay`: the flows of a file. Only the simulator has the last three.").fixed(),
    key("traffic.to", Form::HostOr("all"), Is("0"), "The receiver: the aggregator of an incast, the clients of requests. A range or `all` (not of long): each of them, every one with the `load`, `interval` and `requests` of the entry.")
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request]),
    key(
        "traffic.from",
        Form::HostOr("others"),
        Is("others"),
        "The sender, the servers of an incast; `others` are all hosts but the receiver: long flows take several in turn, the others at random. Of an incast only in the simulator.",
    )
    .of(&[Kind::Incast, Kind::Long, Kind::Poisson, Kind::Request]),
    key("traffic.among", Form::HostOr("all"), Is("all"), "The hosts that send to each other, at least two.").of(ALL_TO_ALL),
    key(
        "traffic.pattern",
        Form::Choice(Pattern::VARIANTS),
        Is("direct"),
        "What a step is. `direct`: every host sends `size` to every other. `ring`: an all-reduce of `size` bytes a host: in 2 (n - 1) rounds each of n hosts passes an n-th of it to the next one, as soon as it has that of the round before, in order over one connection.",
    )
    .of(ALL_TO_ALL),
    key("traffic.path", Form::Path, Required, "List of flows: `.csv` or `.parquet` with the columns src, dst, size_bytes, start_ns; else the HPCC authors' format (how many, then `src dst priority port size_bytes start_s`). In the order of their starts.").of(REPLAY),
    key(
        "traffic.fanout",
        Form::Count(1, 10_000),
        Required,
        "Answers to a request, from distinct random servers. Beyond the number of other hosts, servers answer more than once, on separate connections.",
    )
    .of(INCAST),
    key(
        "traffic.size",
        Form::Bytes(Bytes::new(1), Bytes::new(1_000_000_000)),
        Required,
        "Of one answer; of what a host sends to another in a step; of what a ring reduces.",
    )
    .of(&[Kind::Incast, Kind::Request, Kind::AllToAll]),
    key(
        "traffic.request_size",
        Form::Bytes(Bytes::new(1), Bytes::new(1_000_000_000)),
        Is("100 B"),
        "Of a request.",
    )
    .of(REQUEST),
    key(
        "traffic.workload",
        Form::ChoiceOrPath(BuiltIn::VARIANTS),
        Required,
        "Distribution of flow sizes: a file of workloads/, or another one like those.",
    )
    .of(POISSON),
    key(
        "traffic.load",
        LOAD,
        Without("required for poisson; 2 % for an incast without `interval`; requests wait for answers"),
        "Fraction of the receiver's link that the payload takes; of requests, the answers.",
    )
    .of(&[Kind::Incast, Kind::Poisson, Kind::Request]),
    key(
        "traffic.interval",
        Form::Span(Span::from_ns(1), HOUR),
        Without("from `load`; of all_to_all 0 s"),
        "Mean time between requests; instead of `load`. Of all_to_all, from the end of a host's step to its next.",
    )
    .of(&[Kind::Incast, Kind::AllToAll]),
    key(
        "traffic.stagger",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Each answer to a request starts so much later than the one before; only in the simulator, unless 0 s.",
    )
    .of(INCAST),
    key(
        "traffic.ask_size",
        Form::Bytes(Bytes::ZERO, Bytes::new(1_000_000_000)),
        Is("0 B"),
        "Of what the aggregator asks each server with (with `stagger` and `jitter` one server after the other), behind all else that the server receives; 0 B: servers know that they are asked. The rack's aggregators always ask with 64 B.",
    )
    .of(&[Kind::Incast]),
    key(
        "traffic.jitter",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "Each answer starts at random up to this much later still; only in the simulator, unless 0 s.",
    )
    .of(INCAST),
    key(
        "traffic.think",
        Form::Span(Span::ZERO, HOUR),
        Without("0 s"),
        "Mean time from an answer to the client's next request; instead of `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.concurrency",
        Form::Count(1, 1000),
        Without("1"),
        "Requests that a client has under way; instead of `load`.",
    )
    .of(REQUEST),
    key(
        "traffic.arrivals",
        Form::Choice(Arrivals::VARIANTS),
        Is("poisson"),
        "Gaps between requests, or times to think: exponential (`poisson`) or equal (`periodic`).",
    )
    .of(&[Kind::Incast, Kind::Request]),
    key(
        "traffic.requests",
        Form::Count(1, ANY_NUMBER),
        Without("until `duration`"),
        "Stop after so many requests, each client by itself.",
    )
    .of(&[Kind::Incast, Kind::Request]),
    key(
        "traffic.steps",
        Form::Count(1, ANY_NUMBER),
        Without("until `duration`"),
        "Stop after so many steps.",
    )
    .of(ALL_TO_ALL),
    key("traffic.flows", Form::Count(0, 10_000), Is("1"), "Number of flows.").of(LONG),
    key(
        "traffic.start",
        Form::Span(Span::ZERO, HOUR),
        Is("0 s"),
        "When the flows, or the first step, start; below `duration`.",
    )
    .of(&[Kind::Long, Kind::AllToAll]),
    key(
        "traffic.stop",
        Form::Span(Span::ZERO, HOUR),
        Without("`duration`"),
        "When they stop; after `start`, at most `duration`.",
    )
    .of(LONG),
    key(
        "onramp.law",
        Form::Choice(Law::NAMES),
        Without("`final` on kernel hosts with qdisc `edge`, else `off`"),
        "Control law; docs/law.md says what each does. On kernel hosts only qdisc edge can hold packets; nic hosts hold each packet.",
    ),
    key(
        "onramp.hosts",
        Form::HostOr("all"),
        Is("all"),
        "Who has it: the others send as without it. Only the simulator has others than all.",
    ),
    // facts/onramp.md: the row of real kernels with GSO and no hypervisor.
    key(
        "onramp.threshold",
        Form::SpanOrOff(Span::from_us(1), Span::from_ms(100)),
        Is("50 us"),
        "T: one-way delay above which flows are held; at least that of the idle path. `off` is law off.",
    ),
    key(
        "onramp.gain",
        Form::Fraction(0.0001, 1.0),
        Is("1/16"),
        "g of eq. 3: weight of a new sample in beta. Used by law final.",
    ),
    key(
        "onramp.max_pause",
        Form::Span(Span::from_us(1), Span::from_s(1)),
        Is("5 ms"),
        "No segment is held longer, whatever arrives.",
    ),
    key(
        "onramp.gso",
        Form::Bytes(Bytes::new(1_448), Bytes::new(65_536)),
        Is("16 kB"),
        "Largest segment while On-Ramp holds: a segment leaves as one burst, so it is the granule of control (fig. 19). host.gso where that is smaller.",
    ),
    key(
        "onramp.reuse",
        Form::SpanOrOff(Span::from_us(1), Span::from_s(10)),
        Is("off"),
        "A flow that starts is held by the last one-way delay that its host measured to the receiver, unless that is older than this; else it sends its first round trip unheld. Only in the simulator.",
    ),
    key(
        "onramp.pacing",
        Form::Flag,
        Is("false"),
        "Segments leave at TCP's pace, as with qdisc fq, which the paper's On-Ramp is built into: 1.2 windows a round trip, 2 early in slow start. Without it they leave as soon as they may.",
    )
    .on(HostKind::Kernel),
    key(
        "onramp.piggyback",
        Form::Flag,
        Is("false"),
        "A NIC says in the transport's acknowledgement, which it sends at once for each packet, when the packet arrived, instead of in an OR-ACK of its own. Only in the simulator.",
    )
    .on(HostKind::Nic),
    key(
        "onramp.orack_every",
        Form::Bytes(Bytes::new(1), Bytes::new(1_000_000)),
        Without("14.48 kB of kernel hosts, 1 B of nic hosts"),
        "A packet that holds a multiple of so many bytes of its flow is answered with an OR-ACK: 14.48 kB is every tenth full packet, 1 B each.",
    ),
];

/// The key that `path` means, and the number of its `[[traffic]]` entry.
pub(crate) fn find(path: &str) -> Option<(&'static Key, Option<usize>)> {
    let (name, entry) = without_entry(path);
    let key = KEYS.iter().find(|k| k.path == name)?;
    (key.path.starts_with("traffic.") == entry.is_some()).then_some((key, entry))
}

/// Whether some key lies below `path`.
pub(crate) fn is_table(path: &str) -> bool {
    let prefix = format!("{}.", without_entry(path).0);
    KEYS.iter().any(|k| k.path.starts_with(&prefix))
}

/// The key that a person who wrote `path` may have meant.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    let (name, _) = without_entry(path);
    let last = |p: &str| p.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |k: &&Key| {
        let whole = strsim::damerau_levenshtein(k.path, &name);
        let moved = if last(k.path) == last(&name) {
            1
        } else {
            usize::MAX
        };
        whole.min(moved)
    };
    let best = KEYS.iter().min_by_key(distance)?;
    (distance(&best) <= 2).then_some(best.path)
}

/// "traffic.3.load" as ("traffic.load", 3); other paths as they are.
fn without_entry(path: &str) -> (String, Option<usize>) {
    let split = path.strip_prefix("traffic.").and_then(|rest| {
        let (number, name) = rest.split_once('.').unwrap_or((rest, ""));
        // "007" must not be a second name of "7".
        let entry: usize = number
            .parse()
            .ok()
            .filter(|n: &usize| n.to_string() == number)?;
        Some((name, entry))
    });
    match split {
        Some(("", entry)) => ("traffic".to_owned(), Some(entry)),
        Some((name, entry)) => (format!("traffic.{name}"), Some(entry)),
        None => (path.to_owned(), None),
    }
}

/// Whether a threshold value means law off.
pub(crate) fn is_off(value: &Value) -> bool {
    matches!(value, Value::Text(word) if word == OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_within_its_bounds() {
        for key in KEYS {
            assert_eq!(
                key.default_value().is_some(),
                matches!(key.default, Is(_)),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn no_key_is_listed_twice_or_lies_below_another() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(!is_table(key.path), "{}", key.path);
            assert!(
                KEYS[..index].iter().all(|k| k.path != key.path),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn traffic_keys_need_a_number() {
        assert_eq!(
            find("traffic.3.load").map(|(k, n)| (k.path, n)),
            Some(("traffic.load", Some(3)))
        );
        for path in [
            "traffic.load",
            "traffic.03.load",
            "traffic.-1.load",
            "traffic.3",
            "network.3.buffer",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn misspelt_and_misplaced_keys_are_recognised() {
        assert_eq!(nearest("onramp.treshold"), Some("onramp.threshold"));
        assert_eq!(nearest("network.rate"), Some("network.link.rate"));
        assert_eq!(nearest("traffic.0.fan_out"), Some("traffic.fanout"));
        assert_eq!(nearest("colour"), None);
    }
}
