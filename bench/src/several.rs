// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Inside a machine with several processors: transfers where each processor has its part.
//!
//! Does: build `Kind::Queues` (a host with a transmit queue for each processor) or `Kind::Hosts` (each
//! processor is a host or the switch), move bytes through each set-up, let the plugin count.
//! Does not: compare; compare.rs does.

use std::{sync::Barrier, time::Duration};

use anyhow::{bail, ensure, Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    bed::{shell, Agent},
    guest::{mark_begin, mark_end, SETTLE},
    transfer::{frames_sent, stay_on, Connection, Route},
};

const WARM_UP_BYTES: u64 = 2 << 20;
/// A flow.
const MEASURED_BYTES: u64 = 4 << 20;
/// The emulated processors share 10^9 instructions a second: eight flows that rest this long after each write of
/// 128 KB (52 Mbit/s) take half of them.
const REST: Duration = Duration::from_millis(20);
const FIRST_PORT: u16 = 5001;
/// Ten times the default of --orack-every.
const SPARSE: &[&str] = &["--orack-every", "144800B"];
/// The switch's part of `Kind::Hosts`.
const SWITCH_PROCESSOR: usize = 3;

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Host `a` has as many transmit queues and flows as there are processors; a flow, its queue and its
    /// receiver in host `b` stay on one. The cable between the two has no queue of its own.
    Queues,
    /// Senders `a` and `c` on processors 0 and 1, the receiver `b` on 2 and the switch on 3.
    Hosts,
}

/// Who runs On-Ramp, with the daemon's defaults but for the threshold, which nothing exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// fq, below mq where there are several queues.
    Nobody,
    /// The senders. There are no OR-ACKs.
    Senders,
    All,
    /// All, with OR-ACKs ten times sparser.
    AllSparse,
}

impl Who {
    pub fn of(kind: Kind) -> &'static [Who] {
        match kind {
            Kind::Queues => &[Who::Nobody, Who::Senders, Who::All],
            Kind::Hosts => &[Who::Nobody, Who::Senders, Who::All, Who::AllSparse],
        }
    }

    fn start(self, kind: Kind) -> Result<Vec<Agent>> {
        let options = match self {
            Who::AllSparse => SPARSE,
            _ => &[],
        };
        let runs = |host: &Host| match self {
            Who::Nobody => false,
            Who::Senders => host.sends,
            Who::All | Who::AllSparse => true,
        };
        let start = |host: &Host| {
            stay_on(host.processor)?;
            Agent::start(host.name, "final", options)
        };
        let hosts = kind.hosts().iter().filter(|host| runs(host));
        hosts.map(start).collect()
    }
}

struct Host {
    name: &'static str,
    sends: bool,
    processor: Option<usize>,
}

impl Kind {
    fn hosts(self) -> &'static [Host] {
        const fn host(name: &'static str, sends: bool, processor: Option<usize>) -> Host {
            Host {
                name,
                sends,
                processor,
            }
        }
        const QUEUES: &[Host] = &[host("a", true, None), host("b", false, None)];
        const HOSTS: &[Host] = &[
            host("a", true, Some(0)),
            host("c", true, Some(1)),
            host("b", false, Some(2)),
        ];
        match self {
            Kind::Queues => QUEUES,
            Kind::Hosts => HOSTS,
        }
    }

    /// Routes, and the processors of their senders.
    fn routes(self, processors: usize) -> Vec<(Route, usize)> {
        let route = |from, to_processor, n: usize| Route {
            from,
            to: "b",
            address: "10.0.0.2",
            port: FIRST_PORT + n as u16,
            receivers_processor: Some(to_processor),
        };
        match self {
            Kind::Queues => (0..processors).map(|n| (route("a", n, n), n)).collect(),
            Kind::Hosts => vec![(route("a", 2, 0), 0), (route("c", 2, 1), 1)],
        }
    }

    /// Each in a run.
    pub fn flows(self, processors: usize) -> usize {
        self.routes(processors).len()
    }

    fn build(self, processors: usize) -> Result<()> {
        match self {
            Kind::Queues => build_queues(processors),
            Kind::Hosts => build_hosts(),
        }
    }
}

/// Offloads as in the first table's row "IPv4, GSO, GRO off".
fn build_queues(processors: usize) -> Result<()> {
    let root = if processors == 1 {
        "fq"
    } else {
        "handle 1: mq"
    };
    let queues = format!("numtxqueues {processors} numrxqueues {processors}");
    shell(&format!(
        "sysctl -qw net.core.default_qdisc=fq
         ip netns add a
         ip netns add b
         ip link add eth0 netns a {queues} type veth peer name eth0 netns b {queues}
         for i in 1 2; do
             n=$([ $i = 1 ] && echo a || echo b)
             ip netns exec $n sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv4.tcp_rmem='2097152 2097152 2097152'
             ip netns exec $n ethtool -K eth0 tso off gro off >/dev/null
             ip -n $n addr add 10.0.0.$i/24 dev eth0
             ip -n $n link set lo up
             ip -n $n link set eth0 up
             ip netns exec $n tc qdisc replace dev eth0 root {root}
             for q in $(seq 0 $(({processors} - 1))); do
                 [ {processors} = 1 ] || ip netns exec $n bash -c \"printf '%x' $((1 << q)) > /sys/class/net/eth0/queues/tx-$q/xps_cpus\"
             done
         done
         ip netns exec a ping -q -c 2 -i 0.1 10.0.0.2 >/dev/null
         ip netns exec a tc qdisc show dev eth0"
    ))
}

/// A bridge whose ports netem limits. What arrives at a host is treated on its processor (RPS).
fn build_hosts() -> Result<()> {
    let switch = 1 << SWITCH_PROCESSOR;
    shell(&format!(
        "ip netns add s
         ip -n s link add name sw type bridge
         ip -n s link set sw up
         for i in 'a 1 1 100' 'c 3 2 100' 'b 2 4 200'; do
             set -- $i
             ip netns add $1
             ip link add eth0 netns $1 type veth peer name $1 netns s
             ip -n s link set dev $1 master sw
             ip -n s link set dev $1 up
             tc -n s qdisc add dev $1 root netem rate $4mbit limit 10000
             ip netns exec s bash -c \"echo {switch} > /sys/class/net/$1/queues/rx-0/rps_cpus\"
             ip netns exec $1 bash -c \"echo $3 > /sys/class/net/eth0/queues/rx-0/rps_cpus\"
             ip netns exec $1 sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv4.tcp_rmem='2097152 2097152 2097152'
             ip netns exec $1 ethtool -K eth0 tso off gro off >/dev/null
             ip -n $1 addr add 10.0.0.$2/24 dev eth0
             ip -n $1 link set lo up
             ip -n $1 link set eth0 up
             ip netns exec $1 tc qdisc replace dev eth0 root fq
         done
         ip netns exec a ping -q -c 2 -i 0.1 10.0.0.2 >/dev/null
         ip netns exec c ping -q -c 2 -i 0.1 10.0.0.2 >/dev/null"
    ))
}

/// A transfer that the plugin has counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transferred {
    pub who: Who,
    /// Frames that left the senders.
    pub frames: u64,
    /// TCP's acknowledgements, which the receiver sent.
    pub acks: u64,
    pub oracks: u64,
}

/// `guest several KIND PROCESSORS`.
pub fn guest(arguments: &[String]) -> Result<()> {
    let kind = match arguments[0].as_str() {
        "queues" => Kind::Queues,
        "hosts" => Kind::Hosts,
        other => bail!("neither queues nor hosts: {other}"),
    };
    let processors = arguments.get(1).context("how many processors?")?.parse()?;
    std::fs::write("/proc/sys/net/core/bpf_jit_kallsyms", "1")?;
    let mut all: Vec<Transferred> = vec![];
    for who in Who::of(kind) {
        kind.build(processors)?;
        // A thread of its own, because it stays on processors.
        let measured = std::thread::scope(|scope| {
            let symbols = format!("/out/symbols.{}", all.len());
            let work = move || measure(kind, processors, *who, &symbols);
            scope.spawn(work).join().expect("measuring does not panic")
        })?;
        println!("{kind:?} {processors}: {measured:?}");
        all.push(measured);
        shell("ip -all netns del; sleep 1")?;
    }
    Ok(std::fs::write(
        "/out/counted.json",
        serde_json::to_vec(&all)?,
    )?)
}

fn measure(kind: Kind, processors: usize, who: Who, symbols: &str) -> Result<Transferred> {
    let agents = who.start(kind)?;
    let routes = kind.routes(processors);
    // Warm, begin, and end.
    let barrier = Barrier::new(routes.len() + 1);
    let frames = || -> Result<u64> {
        let senders = kind.hosts().iter().filter(|host| host.sends);
        senders.map(|host| frames_sent(host.name)).sum()
    };
    let oracks = || -> Result<u64> {
        let receiver = agents.last().filter(|_| who != Who::Senders);
        receiver.map_or(Ok(0), |agent| agent.counter("oracks_sent"))
    };
    let transferred = std::thread::scope(|scope| {
        for (route, processor) in routes {
            let barrier = &barrier;
            scope.spawn(move || {
                if let Err(error) = transfer(kind, route, processor, barrier) {
                    // The others wait for it.
                    eprintln!("{error:#}");
                    std::process::exit(1);
                }
            });
        }
        barrier.wait();
        let before = (frames()?, frames_sent("b")?, oracks()?);
        std::thread::sleep(SETTLE);
        mark_begin();
        barrier.wait();
        barrier.wait();
        mark_end();
        std::fs::copy("/proc/kallsyms", symbols).context("/proc/kallsyms")?;
        let oracks = oracks()? - before.2;
        Ok::<_, anyhow::Error>(Transferred {
            who,
            frames: frames()? - before.0,
            acks: frames_sent("b")? - before.1 - oracks,
            oracks,
        })
    })?;
    ensure!(transferred.frames > 0, "nothing was sent");
    agents.into_iter().try_for_each(Agent::stop)?;
    Ok(transferred)
}

fn transfer(kind: Kind, route: Route, processor: usize, barrier: &Barrier) -> Result<()> {
    stay_on(Some(processor))?;
    let mut connection = Connection::open(route)?;
    if kind == Kind::Queues {
        connection.rest(REST);
    }
    connection.send(WARM_UP_BYTES)?;
    barrier.wait();
    barrier.wait();
    connection.send(MEASURED_BYTES)?;
    barrier.wait();
    connection.close()
}
