// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is measured: the offloads and the address family of a link, and who runs On-Ramp on it.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{bail, ensure, Context, Result};
use onramp_status::Status;
use serde::{Deserialize, Serialize};

/// Interface indices of `eth0` in the namespaces `a` (sender) and `b` (receiver).
pub const SENDER_IFINDEX: i32 = 10;
pub const RECEIVER_IFINDEX: i32 = 11;

/// A frame in 60 us: three times what both ends, the line and the probes take for it.
const LINE_RATE: &str = "200mbit";

/// Far above the window of `transfer`.
const RECEIVE_BUFFER_BYTES: u32 = 2 << 20;

/// A threshold T that no delay exceeds: longer ones are ignored (the default of `--max-owd`).
const NEVER: &str = "100ms";

/// Loading the data path takes about 1 s of virtual time.
const AGENT_START: Duration = Duration::from_secs(30);

/// Two hosts and a line of `LINE_RATE` between them: they idle most of the time and treat frames as
/// they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bed {
    /// 64 KB segments go through the qdisc; they are cut into frames behind it.
    pub gso: bool,
    /// Frames are merged before the receiver's stack sees them.
    pub gro: bool,
    pub ip6: bool,
}

impl Bed {
    pub const ALL: [Bed; 8] = {
        let mut all = [Bed {
            gso: false,
            gro: false,
            ip6: false,
        }; 8];
        let mut i = 0;
        while i < all.len() {
            all[i] = Bed {
                ip6: i & 4 != 0,
                gso: i & 2 != 0,
                gro: i & 1 != 0,
            };
            i += 1;
        }
        all
    };

    /// Whether a set-up makes sense here: single frames have no segments to limit.
    pub fn has(self, setup: Setup) -> bool {
        setup != Setup::Shipped || self.gso
    }

    pub fn name(self) -> String {
        format!(
            "{}-{}-{}",
            if self.ip6 { "ipv6" } else { "ipv4" },
            if self.gso { "gso" } else { "single" },
            if self.gro { "gro" } else { "nogro" },
        )
    }

    pub fn receiver_address(self) -> &'static str {
        if self.ip6 {
            "fd00::2"
        } else {
            "10.0.0.2"
        }
    }

    /// Makes the namespaces `a` and `b` and the link, with fq at both ends. A line loses OR-ACKs
    /// where the set-up says; its classifiers look for them in all set-ups. Towards the sender
    /// there is a second cable behind the line's queue, so that an OR-ACK lost late has cost the
    /// line what one that arrives costs it.
    pub fn build(self, setup: Setup) -> Result<()> {
        let lost = |here| if setup == here { "drop" } else { "continue" };
        let (early, late) = (lost(Setup::LostEarly), lost(Setup::LostLate));
        let (family, orack) = if self.ip6 {
            ("ipv6", "ip6 protocol 17 0xff")
        } else {
            ("ip", "ip protocol 17 0xff")
        };
        let gso = if self.gso {
            ""
        } else {
            "ip -n a link set eth0 gso_max_segs 1"
        };
        let gro = if self.gro { "on" } else { "off" };
        shell(&format!(
            "ip netns add a
             ip netns add b
             ip netns add s
             ip link add eth0 index {SENDER_IFINDEX} netns a type veth peer name a netns s
             ip link add eth0 index {RECEIVER_IFINDEX} netns b type veth peer name b netns s
             ip link add line netns s type veth peer name end netns s
             for i in a b line end; do
                 ip -n s link set dev $i up
                 tc -n s qdisc add dev $i clsact
             done
             for i in line b; do
                 tc -n s qdisc add dev $i root netem rate {LINE_RATE} limit 10000
             done
             tc -n s filter add dev b ingress prio 1 protocol {family} u32 match {orack} action {early}
             tc -n s filter add dev end ingress prio 1 protocol {family} u32 match {orack} action {late}
             for i in \"a b\" \"b line\" \"end a\"; do
                 set -- $i
                 tc -n s filter add dev $1 ingress prio 2 protocol all matchall action mirred egress redirect dev $2
             done
             for i in 1 2; do
                 n=$([ $i = 1 ] && echo a || echo b)
                 ip netns exec $n sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.eth0.router_solicitations=0
                 ip netns exec $n sysctl -qw net.ipv4.tcp_rmem='{RECEIVE_BUFFER_BYTES} {RECEIVE_BUFFER_BYTES} {RECEIVE_BUFFER_BYTES}'
                 ip netns exec $n ethtool -K eth0 tso off gro {gro} >/dev/null
                 ip -n $n addr add 10.0.0.$i/24 dev eth0
                 ip -n $n addr add fd00::$i/64 dev eth0 nodad
                 ip -n $n link set lo up
                 ip -n $n link set eth0 up
                 ip netns exec $n tc qdisc replace dev eth0 root fq
             done
             {gso}
             ip netns exec a ping -q -c 2 -i 0.1 {} >/dev/null",
            self.receiver_address(),
        ))
    }

    pub fn remove(self) -> Result<()> {
        shell("ip netns del a; ip netns del b; ip -all netns del")
    }
}

/// Option of the set-ups that measure On-Ramp alone: fq paces, and its work is not theirs.
pub const UNPACED: &[&str] = &["--pace", "off"];

/// Who runs On-Ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// fq at both ends: the baseline.
    Fq,
    /// The edge qdisc at the sender, law off. No OR-ACKs: fq at the receiver.
    EdgeOff,
    /// The same with the final law.
    EdgeFinal,
    /// On-Ramp at both ends, law final, but the line loses the OR-ACKs as they come from the
    /// receiver.
    LostEarly,
    /// The same, behind the line's queue, just before they reach the sender.
    LostLate,
    /// On-Ramp at both ends, law final: the receiver sends OR-ACKs.
    Both,
    /// The same with the daemon's defaults: it paces, as the device had fq.
    Shipped,
}

impl Setup {
    pub const ALL: [Setup; 7] = [
        Setup::Fq,
        Setup::EdgeOff,
        Setup::EdgeFinal,
        Setup::LostEarly,
        Setup::LostLate,
        Setup::Both,
        Setup::Shipped,
    ];

    /// Starts the daemons that this needs.
    pub fn start(self) -> Result<Vec<Agent>> {
        match self {
            Setup::Fq => Ok(vec![]),
            Setup::EdgeOff => Ok(vec![Agent::start("a", "off", UNPACED)?]),
            Setup::EdgeFinal => Ok(vec![Agent::start("a", "final", UNPACED)?]),
            Setup::LostEarly | Setup::LostLate | Setup::Both => Ok(vec![
                Agent::start("a", "final", UNPACED)?,
                Agent::start("b", "final", UNPACED)?,
            ]),
            Setup::Shipped => Ok(vec![
                Agent::start("a", "final", &[])?,
                Agent::start("b", "final", &[])?,
            ]),
        }
    }
}

/// A daemon on `eth0` of a namespace. Its threshold is so high that nothing is held: holding costs
/// time, which would be taken for instructions only if it were not idle time.
pub struct Agent {
    namespace: &'static str,
    process: Child,
}

impl Agent {
    pub fn start(namespace: &'static str, law: &str, options: &[&str]) -> Result<Self> {
        let process = Command::new("ip")
            .args([
                "netns",
                "exec",
                namespace,
                "/job/onramp",
                "agent",
                "run",
                "--dev",
                "eth0",
            ])
            .args([
                "--law",
                law,
                "--threshold",
                NEVER,
                "--line-rate",
                "10Gbit/s",
                "--lease",
                "600s",
            ])
            .args(options)
            .stderr(Stdio::null())
            .spawn()
            .context("starting onramp agent")?;
        let mut agent = Self { namespace, process };
        let begun = Instant::now();
        while let Err(error) = agent.status() {
            if let Some(status) = agent.process.try_wait()? {
                bail!("onramp agent in {namespace} ended: {status}");
            }
            ensure!(
                begun.elapsed() < AGENT_START,
                "onramp agent in {namespace} did not start in {AGENT_START:?}: {error:#}"
            );
            std::thread::sleep(Duration::from_millis(250));
        }
        Ok(agent)
    }

    /// One of the daemon's counters, by the name it has in `onramp status --json`.
    pub fn counter(&self, name: &str) -> Result<u64> {
        self.status()?
            .counter(name)
            .with_context(|| format!("no counter {name}"))
    }

    fn status(&self) -> Result<Status> {
        let answer = Command::new("ip")
            .args([
                "netns",
                "exec",
                self.namespace,
                "/job/onramp",
                "status",
                "--json",
            ])
            .stderr(Stdio::null())
            .output()?;
        ensure!(answer.status.success(), "no status in {}", self.namespace);
        Ok(serde_json::from_slice(&answer.stdout)?)
    }

    /// Ends the daemon, which puts fq back.
    pub fn stop(mut self) -> Result<()> {
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.process.id() as i32),
            nix::sys::signal::Signal::SIGTERM,
        )?;
        let status = self.process.wait()?;
        ensure!(
            status.success(),
            "onramp agent in {} ended: {status}",
            self.namespace
        );
        Ok(())
    }
}

pub fn shell(script: &str) -> Result<()> {
    let status = Command::new("bash")
        .args(["-e", "-c", script])
        .status()
        .context("bash")?;
    ensure!(status.success(), "the shell ended with {status}");
    Ok(())
}
