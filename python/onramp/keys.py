# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The tables of scenarios, as types: an editor completes their keys, and a type checker finds wrong ones.

Made by python/tools/keys from the table of keys, which a test compares. `Scenario` checks the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict


class NetworkTopology(TypedDict, total=False):
    """`topology` of network."""

    #: "star" or "dumbbell" or "leaf_spine" or "fat_tree" or "file" or "inline". Shape of the network. `star`: all hosts at one switch. `dumbbell`: half of the hosts at each of two switches. `leaf_spine`: hosts at leaves, and every leaf has a link to every spine. `fat_tree`: three stages of ToR, aggregation and core switches. `file`: the file `topology.path` lists nodes and links. `inline`: `[network.graph]` lists them. (simulator; rack only `star`)
    kind: Required[Literal["star", "dumbbell", "leaf_spine", "fat_tree", "file", "inline"]]
    #: a number, 2 to 4096. Default: required unless `kind` is file or inline. Number of hosts. Every switch with hosts has the same number of hosts.
    hosts: int
    #: a path, from the scenario's directory. Default: required for file. File with the nodes and links. A name that ends in `.toml`: `switches` is a list of names; each `[[hosts]]` has `at`, `rate`, `delay` and optionally `count`; each `[[links]]` has `from`, `to`, `rate`, `delay`. Any other name: the HPCC authors' format, which has `nodes switches links`, then the numbers of the switches, then a line `a b rate delay 0` for each link. Hosts are numbered in the file's order. (simulator)
    path: str
    #: a number, 2 to 256. Default: required for leaf_spine. Number of leaves: switches with hosts. (simulator)
    leaves: int
    #: a number, 1 to 256. Default: required for leaf_spine. Number of spines: switches that connect the leaves. (simulator)
    spines: int
    #: a number, 2 to 64. Default: required for fat_tree. Number of pods. A pod is a group of ToR and aggregation switches, with a link from each ToR switch to each aggregation switch. (simulator)
    pods: int
    #: a number, 1 to 32. Default: required for fat_tree. Number of ToR switches in a pod. A pod has as many aggregation switches, and each of the `width` groups of core switches has as many core switches. (simulator)
    width: int


class NetworkLink(TypedDict, total=False):
    """`link` of network."""

    #: a rate, 1 Mbit/s to 1 Tbit/s. Default: required unless `topology.kind` is file or inline. Rate of every host's link, in each direction.
    rate: str
    #: a time, 0 s to 100 ms. Default: required unless `topology.kind` is file or inline. Propagation delay of a host's link in one direction. A path over one switch has two such links.
    delay: str


class NetworkFabric(TypedDict, total=False):
    """`fabric` of network."""

    #: a rate, 1 Mbit/s to 1 Tbit/s. Default: `network.link.rate`. Rate of every link between switches. (simulator)
    rate: str
    #: a time, 0 s to 100 ms. Default: `network.link.delay`. Propagation delay of a link between switches in one direction. (simulator)
    delay: str


class NetworkEcn(TypedDict, total=False):
    """`ecn` of network."""

    #: a size, 0 B to 1 GB. Default: no marks. A switch port may mark a packet (CE) if the queue is longer than this. Must be at most `network.buffer`. The value applies to ports at the rate `at` and grows in proportion to the port's rate.
    threshold: str
    #: a rate, 1 Mbit/s to 1 Tbit/s. Default: the hosts' rate; required if their links differ in rate. Rate of the ports whose queues `threshold`, `max` and `bdp` mean. `onramp scenario validate` prints the threshold of each rate.
    at: str
    #: a size, 0 B to 1 GB. Default: `network.ecn.threshold`: every packet above it is marked. A switch port marks every packet if the queue is longer than this. Between `threshold` and `max` the fraction of marked packets grows.
    max: str
    #: a fraction, 0 to 1. Default: `1`. Fraction of packets that are marked if the queue is just below `max`.
    max_fraction: float | str
    #: a number, 2 to 64. Default: the fraction grows continuously. Number of equal steps in which the fraction of marked packets grows between `threshold` and `max`. Some switches have 8. In step i of n the fraction is `max_fraction` times (i - 1/2)/n.
    steps: int
    #: a size, 1 kB to 1 GB. Default: the fraction grows in a line. Bandwidth-delay product B of the port, for the curve of Tiny Buffer TCP: x bytes above `threshold` the fraction of marked packets is x/(x + B), and 1/2 from B bytes on, times `max_fraction`. Not with `max` or `steps`.
    bdp: str
    #: "enqueue" or "dequeue". Default: `enqueue`; `dequeue` with nic hosts. When the length of the queue decides about a mark. `enqueue`: when the packet enters the queue. `dequeue`: when it leaves. (simulator; rack only `enqueue`)
    mark: Literal["enqueue", "dequeue"]


class NetworkHash(TypedDict, total=False):
    """`hash` of network."""

    #: a number, 0 to 4294967295. Default: `0`. Added to the seed of each switch, which is its number: other flows share paths. (simulator)
    seed: int


class Network(TypedDict, total=False):
    """Links and switches."""

    #: a table with `switches`, `hosts` and `links`. Default: required for inline. Nodes and links, as in a TOML file of `topology.path`: `[network.graph]` with `switches`, `[[network.graph.hosts]]`, `[[network.graph.links]]`. (simulator)
    graph: Mapping[str, object]
    #: a list of: the name of a port, like "switch0-host3", or "busiest". Default: none. Links that are down during the whole run, by the port at one end: `["switch0-switch4"]`, or `["leaf0-spine1"]` where `graph` names its switches. Hosts must still reach each other. (simulator)
    failed: Sequence[str]
    #: "1/128" or "1/64" or "1/32" or "1/16" or "1/8" or "1/4" or "1/2" or "1" or "2" or "4" or "8". Default: `1`; `1/8` if `sharing` is lossless. Dynamic threshold. `shared`: the ratio of the free memory that one queue may use. `lossless`: the ratio of the free memory that the packets from one port may use before the switch pauses that port. The value applies to ports at the hosts' rate. It grows in proportion to the port's rate, up to all free memory. (simulator)
    alpha: Literal["1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8"]
    #: a size, 2 kB to 1 GB. Default: 300 kB; 32 MiB if ports share the buffer. Size of the buffer of each switch port, or of each switch if its ports share the buffer.
    buffer: str
    #: "per_port" or "shared" or "lossless". Default: `per_port`; `lossless` with nic hosts. Which ports share a `buffer`. `per_port`: each port has its own and drops packets that do not fit. `shared`: the ports of a switch share one buffer, and `alpha` limits each queue. `lossless`: the ports of a switch share one buffer, and priority flow control (PFC) prevents drops. (simulator; rack only `per_port`)
    sharing: Literal["per_port", "shared", "lossless"]
    #: a fraction, 0 to 0.5. Default: `0`. Fraction of data packets, and of the requests of reads, that the link of the receiving host loses, at random, in addition to what switches drop. (simulator; rack only `0`)
    loss: float | str
    #: "ecn". Default: `ecn`. Rule by which switches mark or drop packets although the buffer has room. `ecn`: marks by the length of the queue, with the keys `network.ecn`. (simulator; rack only `ecn`)
    rule: Literal["ecn"]
    #: "hash" or "modulo". Default: `hash`. How switches choose among equal-cost paths to a host, for all packets of a flow. `hash`: by a hash of addresses and ports (ECMP), as the HPCC authors' simulator does. `modulo`: by the number of the receiving host modulo the number of ways (D-mod-k). (simulator; rack only `hash`)
    paths: Literal["hash", "modulo"]
    topology: NetworkTopology
    link: NetworkLink
    fabric: NetworkFabric
    ecn: NetworkEcn
    hash: NetworkHash


class Host(TypedDict, total=False):
    """Settings of every host, except those that a `[[hosts]]` entry gives its hosts."""

    #: "kernel" or "nic". Default: `kernel`. `kernel`: Linux TCP. `nic`: an RDMA-like NIC that paces and acknowledges packets. (simulator; rack only `kernel`)
    kind: Literal["kernel", "nic"]
    #: "cubic" or "bbr" or "dctcp" or "tbtcp" or "tbtcp_orack" or "rapid" or "reno" or "scalable" or "timely" or "udp" or "hpcc" or "dcqcn" or "dcqcn_w" or "dcqcn_paper" or "dcqcn_paper_w" or "timely_w" or "timely_paper" or "fast_star" or "none". Default: `cubic`. Congestion control; the table under [cc] lists them. Each one has the parameters of its source by default. On nic hosts without `network.ecn`, switches mark as in its source. (simulator; rack only congestion controls of its Linux)
    cc: Literal["cubic", "bbr", "dctcp", "tbtcp", "tbtcp_orack", "rapid", "reno", "scalable", "timely", "udp", "hpcc", "dcqcn", "dcqcn_w", "dcqcn_paper", "dcqcn_paper_w", "timely_w", "timely_paper", "fast_star", "none"] | str
    #: "edge" or "fq" or "fq_codel". Default: `edge`. Queueing discipline of each NIC. `edge` is On-Ramp's; the others are Linux's. A kernel host without `edge` sends no OR-ACKs.
    qdisc: Literal["edge", "fq", "fq_codel"]
    #: a size, 1.448 kB to 64 KiB. Default: `64 kB`. Largest segment that TCP hands to the NIC (segmentation offload).
    gso: str
    #: true or false. Default: `true`. Whether receivers merge segments (generic receive offload).
    gro: bool
    #: a time, 0 s to 10 ms. Default: `0 s`. Interrupt coalescing: time between the arrival of the first waiting packet in a kernel host's NIC and the interrupt. (simulator; rack only `0 s`)
    coalescing: str
    #: a size, 0 B to 10 MB. Default: `0 B`. Queue of a kernel host's NIC: the NIC takes segments and acknowledgements from the queueing discipline, in order, while fewer bytes than this wait for the wire (a driver's transmit ring under byte queue limits, BQL). 0 B: one segment when the wire is free. What is there cannot be held any more. Only for kernel hosts.
    nic_queue: str
    #: "persistent" or "new". Default: `persistent`. `persistent`: a flow uses the connection between its hosts that became idle last, and that connection keeps its window. `new`: each flow has a new connection (each host of a ring has one, to the next host). The handshake is already complete and took place on an idle network. Only for kernel hosts. (simulator; rack only `persistent`)
    connections: Literal["persistent", "new"]
    #: true or false. Default: `false`. `true`: acknowledgements have a class of their own at switches. They leave before data, are not paused, and take no room from data. `false`: they wait in the queue of the data. Only for nic hosts. (simulator)
    ack_priority: bool
    #: "exact" or "hardware" or "calibrated" or "software". Default: `exact`. Who stamps the departure and the completion of a segment, where the congestion control sends segments. `exact`: without error. `hardware`: the NIC stamps both. `calibrated`: the host stamps the departure and the NIC the completion, as in TIMELY's paper. `software`: the host stamps both. The errors are those of the probes of `clock.stamps`. Only for nic hosts. (simulator)
    rtt_stamps: Literal["exact", "hardware", "calibrated", "software"]
    #: a time, 0 s to 10 ms. Default: `0 s`. A random time between 0 and this is added to the round-trip time of each segment. Only for nic hosts. (simulator)
    rtt_noise: str
    #: a time, 1 us to 10 s. Default: 200 ms; 4 ms with nic hosts. Lower bound of the part of the retransmission timeout that is added to the round-trip time. On nic hosts: the timeout itself, if the network can drop packets. (simulator; rack only `200 ms`)
    min_rto: str
    #: a number, 1 to 10000. Default: `10`. Congestion window of a kernel host's new connection, in packets. Only for kernel hosts. (simulator; rack only `10`)
    initial_window: int
    #: a time, 0 s to 1 s. Default: `40 ms`. Time for which a kernel host delays the acknowledgement of a single packet. Only for kernel hosts. (simulator; rack only `40 ms`)
    delayed_ack: str
    #: a time, 0 s to 1 s. Default: `977 us`. TCP small queues: below TCP, a connection may queue as much data as its pacing rate sends in this time, and at least two segments. The value also bounds the time that HyStart allows for segments before it ends slow start. With `time_dilation` 100 the rack's value is 10 us. Only for kernel hosts. (simulator; rack always 1 ms, unscaled)
    small_queue: str
    #: a fraction, 0 to 10. Default: `1/4`. RACK: a packet counts as lost if it is late by more than this fraction of the shortest round-trip time. Only for kernel hosts. (simulator; rack only `0.25`)
    reordering: float | str


class CcCubic(TypedDict, total=False):
    """`cubic` of cc."""

    #: a fraction, 0.0001 to 1000. Default: `0.4`. C of RFC 9438, in packets per cubic second. (simulator)
    c: float | str
    #: a fraction, 0.1 to 0.99. Default: `0.7`. Ratio of the window after a loss to the window before it; 717/1024 in Linux. (simulator)
    beta: float | str
    #: true or false. Default: `true`. Whether HyStart may end slow start before a loss does. (simulator)
    hystart: bool


class CcBbr(TypedDict, total=False):
    """`bbr` of cc."""

    #: a fraction, 1 to 10. Default: `2.885`. Gain of pacing rate and window in Startup. Drain uses its inverse as the pacing gain. (simulator)
    startup_gain: float | str
    #: a fraction, 1 to 10. Default: `2`. Window as a multiple of the estimated bandwidth-delay product. (simulator)
    window_gain: float | str
    #: a fraction, 1 to 10. Default: `1.25`. Pacing gain of the ProbeBW phase that probes for more bandwidth. (simulator)
    probe_gain: float | str
    #: a fraction, 0.1 to 1. Default: `0.75`. Pacing gain of the next phase, which drains the queue. (simulator)
    drain_gain: float | str
    #: a number, 1 to 1000. Default: `10`. Number of round trips for which the largest bandwidth sample counts. (simulator)
    bandwidth_rounds: int
    #: a time, 1 us to 3600 s. Default: `10 s`. Time for which the shortest round-trip time counts. (simulator)
    min_rtt_window: str
    #: a time, 1 us to 3600 s. Default: `200 ms`. Duration of ProbeRTT, which keeps the path almost empty to measure the shortest round-trip time. (simulator)
    probe_rtt: str


class CcDctcp(TypedDict, total=False):
    """`dctcp` of cc."""

    #: a fraction, 0.0001 to 1. Default: `1/16`. Weight in alpha of the latest window's fraction of marked packets. (simulator)
    g: float | str
    #: a fraction, 0.001 to 1. Default: `1`. Growth of the window in a round trip after slow start, in packets. 1 as in the RFC; 0.1 is DCTCP with the Reduced Additive Increase of Tiny Buffer TCP. Only for kernel hosts. (simulator)
    eta: float | str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `615 Mbit/s`. Growth of a nic host's rate per window. Only for nic hosts. (simulator)
    rate_ai: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `1 Gbit/s`. Lower bound of a nic host's rate. The default is proportional to the line rate. Only for nic hosts. (simulator)
    min_rate: str


class CcTbtcp(TypedDict, total=False):
    """`tbtcp` of cc."""

    #: a fraction, 0.001 to 1. Default: `0.1`. Growth of the window in a round trip after slow start, in packets. N flows keep a queue of N times this.
    eta: float | str
    #: a number, 1 to 64. Default: `1`. Packets that one mark takes from the window, at most half of it. Give switches `network.ecn.max_fraction` 1/k.
    k: int


class CcTbtcpOrack(TypedDict, total=False):
    """`tbtcp_orack` of cc."""

    #: a fraction, 0.001 to 1. Default: `0.1`. Growth of the window in a round trip after slow start, in packets. (simulator)
    eta: float | str
    #: a time, 0 s to 1 s. Default: `0 s`. Queueing delay that cuts nothing: that of a burst of a host. (simulator)
    t_min: str


class CcRapid(TypedDict, total=False):
    """`rapid` of cc."""

    #: a time, 1 us to 3600 s. Default: `10 ms`. Time in which the rate rises to a higher estimate.
    tau: str
    #: a number, 1 to 100. Default: `3`. Number of updates in which the rate falls to a lower estimate.
    eta: int
    #: a number, 1 to 100. Default: `3`. Number of streams for one update of the rate.
    gamma: int
    #: a fraction, 1.01 to 4. Default: `1.15`. Ratio of two neighbouring rates of a stream, which has four.
    spread: float | str
    #: a fraction, 1.01 to 4. Default: `2`. The same at the start of a connection.
    start_spread: float | str
    #: a number, 1 to 48. Default: `16`. Number of packets at each rate of a stream.
    each: int
    #: a number, 1 to 1000. Default: `16`. Number of streams in a row with lost packets after which the rate is halved.
    patience: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 kbit/s`. Lower bound of the rate.
    min_rate: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Gbit/s`. Upper bound of the rate. Must be at least `min_rate`.
    max_rate: str
    #: a number, 1 to 192. Default: `4`. Acknowledgements that packets must queue for, at the end of a stream, to count as queueing consistently.
    least_run: int
    #: a time, 0 s to 1 s. Default: `1 us`. Queueing delay above the least of the stream from which a packet counts as queueing.
    least_rise: str
    #: a time, 1 ns to 1 s. Default: `30 us`. Denoising: a receive gap that is so much longer than the one before it ends a wait of the receiver.
    spike_rise: str
    #: a time, 1 ns to 1 s. Default: `20 us`. And so much longer than the one after it.
    spike_fall: str
    #: a time, 1 ns to 1 s. Default: `200 us`. Queueing delay from which a queue that stands through a stream is drained.
    standing: str
    #: a number, 0 to 8. Default: `3`. Passes of denoising; 0: none.
    passes: int
    #: a time, 1 ns to 1 s. Default: `1 us`. Resolution of time stamps.
    stamp: str
    #: a time, 0 s to 1 s. Default: `0 s`. A packet leaves late by up to this time, at random and unknown to the estimator: timers instead of PAUSE frames.
    timer_late: str
    #: a time, 0 s to 1 s. Default: `0 s`. An arrival is stamped late by up to this time, at random: TCP's stamp of the acknowledgement instead of the packet's.
    stamp_late: str
    #: a number, 4 to 1000000. Default: `16000`. Packets that may be in flight.
    cap: int


class CcReno(TypedDict, total=False):
    """`reno` of cc."""

    #: a fraction, 0.1 to 0.99. Default: `0.5`. Ratio of the window after a loss to the window before it. (simulator)
    beta: float | str


class CcScalable(TypedDict, total=False):
    """`scalable` of cc."""

    #: a number, 1 to 10000. Default: `100`. Upper bound of the number of acknowledged packets after which the window grows by one packet. (simulator)
    packets: int
    #: a fraction, 0.01 to 0.9. Default: `1/8`. Fraction by which a loss reduces the window. (simulator)
    decrease: float | str


class CcTimely(TypedDict, total=False):
    """`timely` of cc."""

    #: a time, 1 ns to 1 s. Default: `50 us`. Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.
    t_low: str
    #: a time, 1 ns to 1 s. Default: `500 us`. Above this round-trip time the rate shrinks at any gradient.
    t_high: str
    #: a time, 1 ns to 1 s. Default: `20 us`. Round-trip time of the idle fabric, which scales the gradient.
    min_rtt: str
    #: a fraction, 0.0001 to 1. Default: `0.875`. Weight of a new difference of round-trip times.
    alpha: float | str
    #: a fraction, 0.0001 to 1. Default: `0.8`. Fraction by which a gradient of 1 reduces the rate.
    beta: float | str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `10 Mbit/s`. Step of additive increase. Default for timely: `100 Mbit/s`. Default for timely_w: `100 Mbit/s`.
    delta: str
    #: a number, 0 to 1000. Default: `5`. Number of falling gradients in a row before the rate grows by `hai_steps`. Only for kernel hosts.
    hai_falls: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `10 Mbit/s`. Lower bound of the rate. Default for timely: `1 Gbit/s`. Default for timely_w: `1 Gbit/s`.
    min_rate: str
    #: a number, 1 to 1000. Default: `5`. Steps of hyper-active increase. Only for kernel hosts.
    hai_steps: int
    #: true or false. Default: `false`. Whether hyper-active increase counts every increase in a row, also below `t_low`, as the HPCC authors' code. `false`: only falling gradients above `t_low`, as algorithm 1. Only for kernel hosts.
    hai_low: bool
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `10 Gbit/s`. Upper bound of the rate. Must be at least `min_rate`. Only for kernel hosts.
    max_rate: str
    #: a number, 1 to 1000. Default: `11`. Packets that have one round-trip time, the least of their acknowledgements. Only for kernel hosts.
    segment: int
    #: a number, 4 to 100000. Default: `1000`. Packets that may be in flight. Only for kernel hosts.
    cap: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `500 Mbit/s`. Step of the increase after `hai_after` increases in a row. The default is proportional to the line rate. Only for nic hosts. (simulator)
    rate_hai: str
    #: a number, 0 to 1000. Default: `5`. Number of increases in a row before `rate_hai` applies. Only for nic hosts. (simulator)
    hai_after: int


class CcUdp(TypedDict, total=False):
    """`udp` of cc."""

    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `10 Gbit/s`. Rate of a flow, payload. A host's line may be slower. (simulator)
    rate: str


class CcHpcc(TypedDict, total=False):
    """`hpcc` of cc."""

    #: a fraction, 0.0001 to 1. Default: `0.95`. Target utilisation. (simulator)
    eta: float | str
    #: a number, 0 to 1000. Default: `0`. Number of additive steps before a multiplicative one: 5 in the paper, 0 in its authors' simulator. (simulator)
    max_stage: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `40 Mbit/s`. W_AI as a rate: step of additive increase. The default is proportional to the line rate. (simulator)
    rate_ai: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `1 Gbit/s`. Lower bound of the rate. The default is proportional to the line rate. (simulator)
    min_rate: str


class CcDcqcn(TypedDict, total=False):
    """`dcqcn` of cc."""

    #: a fraction, 0.0001 to 1. Default: `1/256`. Weight of a new sample in alpha. (simulator)
    g: float | str
    #: a time, 1 ns to 1 s. Default: `1 us`. Time between two updates of alpha. Default for dcqcn_paper: `50 us`. Default for dcqcn_paper_w: `50 us`. (simulator)
    alpha_interval: str
    #: a time, 1 ns to 1 s. Default: `4 us`. T_d: shortest time between two decreases of the rate. Default for dcqcn_paper: `50 us`. Default for dcqcn_paper_w: `50 us`. (simulator)
    decrease_interval: str
    #: a time, 1 ns to 1 s. Default: `300 us`. T_i: time between two increases of the rate. Default for dcqcn_paper: `55 us`. Default for dcqcn_paper_w: `55 us`. (simulator)
    increase_interval: str
    #: a number, 0 to 1000. Default: `1`. F: steps of fast recovery before additive increase; 5 in the paper. (simulator)
    fast_recovery: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `20 Mbit/s`. R_AI: step of additive increase. The default is proportional to the line rate. (simulator)
    rate_ai: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `200 Mbit/s`. R_HAI: step of hyper increase. The default is proportional to the line rate. (simulator)
    rate_hai: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `1 Gbit/s`. Lower bound of the rate. The default is proportional to the line rate. (simulator)
    min_rate: str


class CcTimelyPaper(TypedDict, total=False):
    """`timely_paper` of cc."""

    #: a time, 1 ns to 1 s. Default: `50 us`. Below this round-trip time the rate grows at any gradient. Must be at most `t_high`. (simulator)
    t_low: str
    #: a time, 1 ns to 1 s. Default: `500 us`. Above this round-trip time the rate shrinks at any gradient. (simulator)
    t_high: str
    #: a time, 1 ns to 1 s. Default: `20 us`. Round-trip time of the idle fabric, which scales the gradient. (simulator)
    min_rtt: str
    #: a fraction, 0.0001 to 1. Default: `0.875`. Weight of a new difference of round-trip times. (simulator)
    alpha: float | str
    #: a fraction, 0.0001 to 1. Default: `0.8`. Fraction by which a gradient of 1 reduces the rate. (simulator)
    beta: float | str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Mbit/s`. Step of additive increase. The default is proportional to the line rate. (simulator)
    delta: str
    #: a number, 0 to 1000. Default: `5`. Number of falling gradients in a row before the rate grows by `hai_steps`. (simulator)
    hai_falls: int
    #: a number, 1 to 1000. Default: `5`. Steps of hyper-active increase. (simulator)
    hai_steps: int
    #: true or false. Default: `false`. Whether hyper-active increase counts every increase in a row, also below `t_low`, as the HPCC authors' code. `false`: only falling gradients above `t_low`, as algorithm 1. (simulator)
    hai_low: bool
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Mbit/s`. Lower bound of the rate. The upper bound is the line's. The default is proportional to the line rate. (simulator)
    min_rate: str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Gbit/s`. The rate with which a flow begins. The default is proportional to the line rate. (simulator)
    first_rate: str
    #: a number, 1000 to 1000000. Default: `16000`. Payload that has one round-trip time and leaves as one burst. (simulator)
    segment_bytes: int
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Gbit/s`. Rate within a burst (the paper's NIC pacing). The default is proportional to the line rate. (simulator)
    burst_rate: str
    #: a number, 0 to 1000000. Default: `0`. Number of segments that may be outstanding when another one begins (the paper's static limit, whose value it does not give). 0: no limit. (simulator)
    outstanding: int


class CcFastStar(TypedDict, total=False):
    """`fast_star` of cc."""

    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `5 Gbit/s`. Rate that a flow tries to keep in the queues of its path. The default is proportional to the line rate. (simulator)
    alpha: str
    #: a fraction, 0.0001 to 1. Default: `0.5`. Weight of a new rate. (simulator)
    gamma: float | str
    #: a rate, 1 kbit/s to 1 Tbit/s. Default: `100 Gbit/s`. The rate with which a flow begins. The default is proportional to the line rate. (simulator)
    first_rate: str
    #: a number, 1000 to 1000000. Default: `16000`. Payload that has one round-trip time and leaves as one burst. (simulator)
    segment_bytes: int


class CcNone(TypedDict, total=False):
    """`none` of cc."""

    #: a number, 1000 to 1000000. Default: `16000`. Payload that has one round-trip time. (simulator)
    segment_bytes: int


class Cc(TypedDict, total=False):
    """Parameters of the congestion controls."""

    cubic: CcCubic
    bbr: CcBbr
    dctcp: CcDctcp
    tbtcp: CcTbtcp
    tbtcp_orack: CcTbtcpOrack
    rapid: CcRapid
    reno: CcReno
    scalable: CcScalable
    timely: CcTimely
    udp: CcUdp
    hpcc: CcHpcc
    dcqcn: CcDcqcn
    timely_paper: CcTimelyPaper
    fast_star: CcFastStar
    none: CcNone


class Clock(TypedDict, total=False):
    """Errors of the hosts' clocks, which have a normal distribution over the hosts, and clock synchronisation."""

    #: a time, 0 s to 10 ms. Default: `0 s`. Standard deviation of a host's constant offset.
    offset: str
    #: a fraction, 0 to 0.001. Default: `0`. Standard deviation of a host's constant drift. 1/1000000 is 1 us per second.
    drift: float | str
    #: a time, 0 s to 10 ms. Default: `0 s`. Standard deviation of the error of each time stamp of a data packet. (simulator; rack only `0 s`)
    noise: str
    #: a fraction, 0 to 0.0001. Default: `0`. Amplitude of the drift's change with a host's temperature. Each host has its own period of 10 to 60 minutes.
    wander: float | str
    #: "none" or "huygens". Default: `none`. Clock synchronisation. `none`: clocks are not corrected. `huygens`: hosts send probes to each other over this network. Before the first correction one-way delays are unknown, so no packet is held.
    sync: Literal["none", "huygens"]
    #: "hardware" or "software". Default: `software`. Source of the probes' time stamps. `hardware`: the NIC, with an error of about 5 ns; the probes of a pair are 10 us apart. `software`: the kernel, which stamps an arrival late by 1 us or more; the probes of a pair are 50 us apart. `time_dilation` scales the rack's time stamps too. (simulator; rack only `software`)
    stamps: Literal["hardware", "software"]
    #: a number, 1 to 1000. Default: `10`. Number of hosts that each host probes. In the rack, as in the daemon, it is the number of a host's neighbours, and the host probes half of them.
    degree: int
    #: a time, 100 us to 3600 s. Default: `20 ms`. Time between two pairs of probes to the same host.
    probe_interval: str
    #: a time, 1 ms to 3600 s. Default: `2 s`. Time between two corrections. Each correction fits a line to the pairs of the last three windows. The rack needs 2 s before scaling: 20 ms at `time_dilation` 100.
    window: str


#: An aggregator sends a request to `fanout` servers, which answer at the same time.
Incast = TypedDict(
    "Incast",
    {
        #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
        "kind": Required[Literal["incast"]],
        #: a host's number, a range like "0-3", or "all". Default: `0`. The aggregator. A range or `all`: each of these hosts is one, and `load`, `interval` and `requests` apply to each.
        "to": int | str,
        #: a host's number, a range like "0-3", or "others". Default: `others`. The servers: a host, or a range or `others` (all hosts but the aggregator), among which a request chooses at random. (simulator; rack only `others`)
        "from": int | str,
        #: a number, 1 to 10000. Number of answers to a request, from random servers. If it exceeds the number of servers, some servers send several answers, on separate connections.
        "fanout": Required[int],
        #: a size, 1 B to 1 GB. Size of one answer.
        "size": Required[str],
        #: a fraction, 0.000001 to 1. Default: 2 % without `interval`. Offered load: payload of the answers, as a fraction of the rate of the aggregator's link.
        "load": float | str,
        #: a time, 1 ns to 3600 s. Default: from `load`. Mean time between requests, instead of `load`.
        "interval": str,
        #: "poisson" or "periodic". Default: `poisson`. Distribution of the time between requests. `poisson`: exponential. `periodic`: constant.
        "arrivals": Literal["poisson", "periodic"],
        #: a number, from 1. Default: until `duration`. Each aggregator stops after this number of requests.
        "requests": int,
        #: a time, 0 s to 3600 s. Default: `0 s`. Time between the starts of two successive answers to a request. (simulator; rack only `0 s`)
        "stagger": str,
        #: a size, 0 B to 1 GB. Default: `0 B`. Size of the request that the aggregator sends to each server. `stagger` and `jitter` delay these requests. A request waits behind other data for the same server. 0 B: servers answer without a request. In the rack, aggregators always send 64 B. (simulator; rack only `0 B`, `64 B`)
        "ask_size": str,
        #: a time, 0 s to 3600 s. Default: `0 s`. Upper bound of a random time that delays each answer, in addition to `stagger`. (simulator; rack only `0 s`)
        "jitter": str,
        #: "write" or "read". Default: `write`. How NICs move the data from `from` to `to`, which are the same for both values. `write`: the NIC of `from` has the congestion control. `read`: the NIC of `to` has it, and paces requests for segments, which the NIC of `from` sends at the rate of its line; docs/timely.md describes this. A read starts at `to` and ends when `to` has the last byte. `read` needs a congestion control of nic hosts that sends bursts, `onramp.law` off, no `ask_size` and no `cc.timely_paper.burst_rate`. (simulator; rack only `write`)
        "op": Literal["write", "read"],
    },
    total=False,
)


#: Flows that never run out of data.
Long = TypedDict(
    "Long",
    {
        #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
        "kind": Required[Literal["long"]],
        #: a host's number. Default: `0`. The receiver.
        "to": int | str,
        #: a host's number, a range like "0-3", or "others". Default: `others`. The sender. A range or `others` (all hosts but the receiver): flows use these hosts in round robin, the lowest number first.
        "from": int | str,
        #: "write" or "read". Default: `write`. As for incast. (simulator; rack only `write`)
        "op": Literal["write", "read"],
        #: a number, 0 to 10000. Default: `1`. Number of flows.
        "flows": int,
        #: a time, 0 s to 3600 s. Default: `0 s`. Start of the flows. Must be below `duration`.
        "start": str,
        #: a time, 0 s to 3600 s. Default: `duration`. End of the flows. Must be after `start` and at most `duration`.
        "stop": str,
    },
    total=False,
)


#: Flows of random sizes, with exponential times between their starts.
Poisson = TypedDict(
    "Poisson",
    {
        #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
        "kind": Required[Literal["poisson"]],
        #: a host's number, a range like "0-3", or "all". Default: `0`. The receiver. A range or `all`: each of these hosts is one, and `load` applies to each.
        "to": int | str,
        #: a host's number, a range like "0-3", or "others". Default: `others`. The sender. A range or `others` (all hosts but the receiver): each flow has a random one.
        "from": int | str,
        #: "websearch" or "fb_hadoop" or "google_search_rpc", or the path of a file. Distribution of flow sizes: the name of a distribution in workloads/, or a file. Its rows are a size in bytes and the part of flows up to it: `10000,0.15` below a line `# interpolation: linear` or `step`, or `10000 15` in percent, linear, as HPCC's traffic generator reads them. (simulator; rack only named distributions)
        "workload": Required[str],
        #: a fraction, 0.000001 to 1. Offered load: payload sent to the receiver, as a fraction of the rate of its link.
        "load": Required[float | str],
        #: "random" or "stratified". Default: `random`. How sizes are drawn. `random`: each by itself; a short run draws few, so that its load is another one. `stratified`: as many flows as `load` asks for, each with the mean size of its part of `workload`: of N flows one is the mean of the smallest N-th, one that of the next, and so on. So every seed offers `load`, over all receivers together and to a whole flow; seeds differ in starts, order and hosts. The parts before and after the end of `warmup` are drawn apart.
        "sizes": Literal["random", "stratified"],
        #: "write" or "read". Default: `write`. As for incast. (simulator; rack only `write`)
        "op": Literal["write", "read"],
    },
    total=False,
)


#: Clients send requests to servers, which answer.
Request = TypedDict(
    "Request",
    {
        #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
        "kind": Required[Literal["request"]],
        #: a host's number, a range like "0-3", or "all". Default: `0`. The client. A range or `all`: each of these hosts is one, and `load` and `requests` apply to each. (simulator)
        "to": int | str,
        #: a host's number, a range like "0-3", or "others". Default: `others`. The server. A range or `others` (all hosts but the client): each request has a random one. (simulator)
        "from": int | str,
        #: a size, 1 B to 1 GB. Default: `100 B`. Size of a request. (simulator)
        "request_size": str,
        #: a size, 1 B to 1 GB. Size of an answer. (simulator)
        "size": Required[str],
        #: a fraction, 0.000001 to 1. Default: a client waits for an answer before its next request. Offered load: payload of the answers, as a fraction of the rate of the client's link. (simulator)
        "load": float | str,
        #: a time, 0 s to 3600 s. Default: 0 s. Mean time between an answer and the client's next request. Not with `load`. (simulator)
        "think": str,
        #: a number, 1 to 1000. Default: 1. Number of requests that a client has in progress. Not with `load`. (simulator)
        "concurrency": int,
        #: "poisson" or "periodic". Default: `poisson`. Distribution of the time between requests, or of `think`. `poisson`: exponential. `periodic`: constant. (simulator)
        "arrivals": Literal["poisson", "periodic"],
        #: a number, from 1. Default: until `duration`. Each client stops after this number of requests. (simulator)
        "requests": int,
    },
    total=False,
)


class AllToAll(TypedDict, total=False):
    """The steps of a collective operation, as in training: every host sends to every other host, or all hosts reduce data in a ring."""

    #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
    kind: Required[Literal["all_to_all"]]
    #: a host's number, a range like "0-3", or "all". Default: `all`. Hosts that send to each other; at least two. (simulator)
    among: int | str
    #: "direct" or "ring". Default: `direct`. Communication in a step. `direct`: every host sends `size` bytes to every other host. `ring`: the n hosts reduce `size` bytes each, in 2 (n - 1) rounds. In each round a host sends `size` / n to the next host, as soon as it has received the data of the previous round. It sends all rounds in order on one connection. (simulator)
    pattern: Literal["direct", "ring"]
    #: a size, 1 B to 1 GB. Size of the data that one host sends to another in a step (`direct`), or of the data that each host reduces (`ring`). (simulator)
    size: Required[str]
    #: a time, 1 ns to 3600 s. Default: 0 s. Time from the end of a host's step to the start of its next step. (simulator)
    interval: str
    #: a time, 0 s to 3600 s. Default: `0 s`. Start of the first step. Must be below `duration`. (simulator)
    start: str
    #: a number, from 1. Default: until `duration`. The traffic stops after this number of steps. (simulator)
    steps: int


class Replay(TypedDict, total=False):
    """Flows that a file lists."""

    #: "incast" or "long" or "poisson" or "request" or "all_to_all" or "replay".
    kind: Required[Literal["replay"]]
    #: a path, from the scenario's directory. File that lists the flows by start time. A name that ends in `.csv` or `.parquet`: it has columns src, dst, size_bytes and start_ns, in any order. A name that ends in `.trace` or `.jsonl`: a trace of a daemon; its hosts have the numbers of their addresses in order, and the first flow starts at 0. Rates and delays are the scenario's; `onramp advise` writes a scenario with those of the trace. Any other name: the HPCC authors' format, which has the number of flows, then a line `src dst priority port size_bytes start_s` for each flow. (simulator)
    path: Required[str]


class Onramp(TypedDict, total=False):
    """The control law."""

    #: "off" or "strawman" or "final" or "gate" or "level". Default: `final` on kernel hosts with qdisc `edge`, else `off`. Control law; docs/law.md has the equations. On kernel hosts a law other than `off` needs `host.qdisc` `edge`. Nic hosts need no qdisc. `off`: measures and holds nothing. `strawman`: pauses a flow for as long as its delay is above T (eq. 2 of the paper). `final`: the strawman less what past pauses have removed (eqs. 3 and 4). `gate`: caps what a flow has in flight. `level`: caps what a flow has in flight, where its receiver says that holding is of use.
    law: Literal["off", "strawman", "final", "gate", "level"] | str
    #: a time, 1 us to 100 ms, or "off". Default: `50 us`. Threshold T: a flow is held while its one-way delay is above T. Without `guard` it must be at least the delay of the idle path. `off` means law `off`.
    threshold: str
    #: a fraction, 0.0001 to 1. Default: `1/16`. g of eq. 3: weight of a new sample in beta. Only law `final` uses it.
    gain: float | str
    #: a time, 1 us to 1 s. Default: `5 ms`. Upper bound of the time for which a segment is held.
    max_pause: str
    #: a time, 1 ms to 10 s, or "off". Default: `off`. Time after which the guard judges holding: it raises T of a flow that is held in vain, and gives room to one that is alone at its receiver. docs/law.md describes the rules. `off`: no guard, as in the paper. The daemon's default is 50 ms.
    guard: str
    #: a size, 1.448 kB to 64 KiB. Default: `16 kB`. Largest segment on a host with On-Ramp, or `host.gso` if that is smaller. A segment leaves as one burst, so its size bounds the precision of On-Ramp's control (fig. 19).
    gso: str
    #: a time, 1 us to 10 s, or "off". Default: `off`. A new flow starts with the last one-way delay that its host measured to the receiver, unless that measurement is older than this. `off`: a new flow is not held in its first round trip. (simulator; rack only `off`)
    reuse: str
    #: a size, 1 B to 1 MB. Default: 14.48 kB on kernel hosts, 1 B on nic hosts. Payload of a flow between two OR-ACKs. 14.48 kB: an OR-ACK for every tenth full packet. 1 B: an OR-ACK for every packet.
    orack_every: str
    #: true or false. Default: `false`. `true`: segments leave at TCP's pacing rate, as with qdisc fq, which the paper's On-Ramp extends: 1.2 windows per round trip, and 2 early in slow start. `false`: segments leave as soon as the law allows. Only for kernel hosts.
    pacing: bool
    #: true or false. Default: `true`. `true`: the stamp of a segment is the time at which the NIC sends it, so the one-way delay does not contain the wait in `host.nic_queue`. `false`: the stamp is the time at which the segment leaves the queueing discipline. Only for kernel hosts.
    subtract_nic_queue: bool
    #: true or false. Default: `false`. `true`: the transport's acknowledgement, which the NIC sends at once for each packet, also carries the packet's arrival time. `false`: an OR-ACK carries it. Only for nic hosts. (simulator)
    piggyback: bool


class Measure(TypedDict, total=False):
    """The ports that results measure."""

    #: a list of: the name of a port, like "switch0-host3", or "busiest". Default: the switch port to the measured host. Ports that are measured: `["switch0-switch1", "busiest"]`. `switch0-host3` is the port of switch 0 to host 3, `host3` the NIC of host 3, `busiest` the port of a switch that uses most of its line. The metrics `port.*`, `utilisation` and `queue_us` are those of the first, `ports.PORT.*` those of each. (simulator)
    ports: Sequence[str]


class Keys(TypedDict, total=False):
    """A scenario."""

    #: one line of 1 to 200 characters. What the experiment shows.
    title: Required[str]
    #: a number, from 0. Default: `1`. Seed of all random numbers. All cases of a seed have the same traffic.
    seed: int
    #: a time, 1 us to 3600 s. Time within which traffic starts.
    duration: Required[str]
    #: a time, 0 s to 3600 s. Default: `0 s`. Traffic that starts before this time is not measured. Must be below `duration`.
    warmup: str
    #: a number, 1 to 1000. Default: `1`. The rack runs slower by this factor and scales its results back. The simulator ignores it. (rack)
    time_dilation: int
    #: Links and switches.
    network: Required[Network]
    #: Settings of every host, except those that an entry of `hosts` gives its hosts.
    host: Host
    #: Parameters of the congestion controls.
    cc: Cc
    #: Groups of hosts: `range`, and dotted names of the keys in which they differ: `{"range": "0-7", "host.cc": "bbr"}`.
    hosts: Sequence[Mapping[str, object]]
    #: Errors of the hosts' clocks, and their synchronisation.
    clock: Clock
    #: Kinds of traffic.
    traffic: Required[Sequence[Incast | Long | Poisson | Request | AllToAll | Replay]]
    #: The control law.
    onramp: Onramp
    #: The ports that results measure.
    measure: Measure
    #: Named sets of settings: `{"name": "fq", "host.qdisc": "fq"}`.
    case: Sequence[Mapping[str, object]]
    #: Lists of values of keys: a run for each combination.
    sweep: Mapping[str, Sequence[object]]
