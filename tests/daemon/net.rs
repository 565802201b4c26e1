// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts as network namespaces, star-wired to a bridge whose ports netem limits. Host i (from 1)
//! has 10.0.0.i, fd00::i and the Ethernet address 02:00:00:00:00:0i on its eth0; its port in the
//! switch's namespace is p<i>.
use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::MetadataExt,
    process::Command,
    thread,
};

use nix::sched::{setns, CloneFlags};

/// A network namespace by the name that `ip netns` gave it.
#[derive(Clone, Debug)]
pub struct Namespace(pub String);

impl Namespace {
    /// Runs `work` on a thread in this namespace; what it spawns and opens belongs there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let entered = scope.spawn(|| {
                self.become_it();
                work()
            });
            entered
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into this namespace for good.
    pub fn become_it(&self) {
        let file = File::open(format!("/run/netns/{}", self.0)).expect("the namespace exists");
        setns(file, CloneFlags::CLONE_NEWNET).expect("root may enter a namespace");
    }

    /// As /proc/self/ns/net has it there.
    pub fn inode(&self) -> u64 {
        let file = std::fs::metadata(format!("/run/netns/{}", self.0));
        file.expect("the namespace exists").ino()
    }

    /// A command in this namespace, with its own /sys.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(words);
        command
    }

    /// What a command of this namespace prints; it must succeed.
    pub fn run(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = self.command(&words).output().expect("ip starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}: {line}: {text}{errors}",
            self.0
        );
        text
    }

    /// Sets a sysctl of the namespace, e.g. net.ipv4.tcp_rmem.
    pub fn sysctl(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        self.enter(|| std::fs::write(&path, value))
            .unwrap_or_else(|e| panic!("{name}={value}: {e}"));
    }

    /// The root qdisc of a device as `tc -s -j` tells it; none for a device without.
    pub fn qdisc(&self, dev: &str) -> Option<serde_json::Value> {
        let mut all = self.qdiscs(dev).into_iter();
        all.find(|q| q["root"] == true && q["kind"] != "noqueue")
    }

    /// All of them.
    pub fn qdiscs(&self, dev: &str) -> Vec<serde_json::Value> {
        let text = self.run(&format!("tc -s -d -j qdisc show dev {dev}"));
        serde_json::from_str(&text).expect("tc prints JSON")
    }
}

/// How to build a star.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub hosts: u8,
    /// Rate of every switch port, Mbit/s; none: as fast as the kernel goes.
    pub port_mbit: Option<u32>,
    /// Buffer of every switch port, packets.
    pub buffer_packets: u32,
    pub mtu: u32,
    /// GSO segments cross the wire whole, as to a NIC with TSO; else the kernel cuts them.
    pub tso: bool,
    pub gro: bool,
    /// Transmit queues of every host.
    pub queues: u8,
}

impl Plan {
    /// Two hosts, 100 Mbit/s, 48 ms of buffer, frames of 1500 B.
    pub const USUAL: Plan = Plan {
        hosts: 2,
        port_mbit: Some(100),
        buffer_packets: 400,
        mtu: 1500,
        tso: false,
        gro: false,
        queues: 1,
    };
}

/// One end of a star.
#[derive(Clone, Debug)]
pub struct Host {
    pub ns: Namespace,
    pub v4: IpAddr,
    pub v6: IpAddr,
    /// Its port in the switch.
    pub port: String,
}

impl Host {
    /// A counter of its kernel, of a section (`TcpExt:`) of a file of /proc/net.
    pub fn counted(&self, file: &str, section: &str, name: &str) -> u64 {
        let text = self.ns.run(&format!("cat /proc/net/{file}"));
        let mut lines = text.lines().filter(|line| line.starts_with(section));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut both = names.split_whitespace().zip(values.split_whitespace());
        let found = both.find(|(found, _)| *found == name);
        found.expect("a counter").1.parse().expect("a number")
    }
}

/// A running star. Dropped, it takes its namespaces and all in them along.
pub struct Star {
    pub hosts: Vec<Host>,
    pub switch: Namespace,
}

impl Star {
    pub fn build(plan: &Plan) -> Self {
        let switch = Namespace("switch".into());
        shell("ip netns add switch");
        shell("ip -n switch link add name sw type bridge mcast_snooping 0");
        shell("ip -n switch link set sw up");
        let hosts: Vec<Host> = (1..=plan.hosts).map(|i| build_host(i, plan)).collect();
        for host in &hosts {
            if let Some(mbit) = plan.port_mbit {
                let (port, limit) = (&host.port, plan.buffer_packets);
                switch.run(&format!(
                    "tc qdisc add dev {port} root netem rate {mbit}mbit limit {limit}"
                ));
            }
        }
        Self { hosts, switch }
    }

    /// The first two hosts: by custom here, who sends and who receives.
    pub fn pair(&self) -> (&Host, &Host) {
        (&self.hosts[0], &self.hosts[1])
    }

    /// From now on what a device sends arrives in the order in which it was sent, as through the ring of a NIC. Else veth
    /// puts it into the backlog of the processor that sends, and of processors that take turns one overtakes another.
    pub fn receive_in_order(&self) {
        let all = "/sys/class/net/*/queues/rx-*/rps_cpus";
        let line = format!("for file in {all}; do echo 1 > $file; done");
        let hosts = self.hosts.iter().map(|host| &host.ns);
        for ns in hosts.chain([&self.switch]) {
            let status = ns.command(&["sh", "-c", &line]).status();
            assert!(status.expect("ip starts").success(), "{}: {line}", ns.0);
        }
    }

    /// Packets dropped so far at the port towards `host`.
    pub fn drops_towards(&self, host: &Host) -> u64 {
        self.switch
            .qdisc(&host.port)
            .map_or(0, |q| q["drops"].as_u64().expect("a count"))
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        // After a failure guest.rs tries again.
        let _ = Command::new("ip")
            .args(["-all", "netns", "delete"])
            .status();
    }
}

fn build_host(i: u8, plan: &Plan) -> Host {
    let (name, port) = (format!("h{i}"), format!("p{i}"));
    let ns = Namespace(name.clone());
    let on_off = |on: bool| if on { "on" } else { "off" };
    shell(&format!("ip netns add {name}"));
    shell(&format!("ip link add eth0 netns {name} address 02:00:00:00:00:{i:02x} mtu {mtu} numtxqueues {queues} numrxqueues {queues} type veth peer name {port} netns switch numtxqueues {queues} numrxqueues {queues}", mtu = plan.mtu, queues = plan.queues));
    shell(&format!(
        "ip -n switch link set {port} mtu {} master sw up",
        plan.mtu
    ));
    shell(&format!("ip -n {name} link set lo up"));
    ns.sysctl("net.ipv6.conf.all.keep_addr_on_down", "1");
    shell(&format!("ip -n {name} addr add 10.0.0.{i}/24 dev eth0"));
    shell(&format!(
        "ip -n {name} addr add fd00::{i:x}/64 dev eth0 nodad"
    ));
    shell(&format!("ip -n {name} link set eth0 up"));
    ns.run(&format!(
        "ethtool -K eth0 tso {} gro {}",
        on_off(plan.tso),
        on_off(plan.gro)
    ));
    if plan.gro {
        // veth merges only what a device without TSO has sent.
        shell(&format!("ip netns exec switch ethtool -K {port} tso off"));
    }
    ns.sysctl("net.ipv4.tcp_rmem", "4096 2000000 8000000");
    ns.sysctl("net.ipv4.tcp_wmem", "4096 2000000 8000000");
    Host {
        ns,
        v4: Ipv4Addr::new(10, 0, 0, i).into(),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, i.into()).into(),
        port,
    }
}

/// Gives a host addresses without subnets, as clouds do, and a route to the others.
pub fn leave_subnets(host: &Host, number: usize) {
    host.ns
        .run(&format!("ip addr del fd00::{number:x}/64 dev eth0"));
    host.ns
        .run(&format!("ip addr del 10.0.0.{number}/24 dev eth0"));
    host.ns
        .run(&format!("ip addr add 10.0.0.{number}/32 dev eth0"));
    host.ns.run("ip route add 10.0.0.0/24 dev eth0");
}

/// Runs a command of the guest, which must succeed.
pub fn shell(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().expect("a command"))
        .args(words)
        .output()
        .expect(line);
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
