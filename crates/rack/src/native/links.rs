// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The network as text for `ip -batch` and `tc -batch`: pure functions of a run.
//!
//! A frame from host i to host j passes:
//! ```text
//! host i: eth0, qdisc under test (htb shapes the baselines to the line rate, as back-pressure of
//!    |    a NIC would; `edge` shapes itself), segmentation to MTU frames after the qdisc
//! switch: up<i> -> line<i>: netem, the access line: rate, and the propagation of both links
//!    |    -> up<j>: tbf, the switch port: rate, and the buffer in bytes, drop-tail
//! host j: eth0
//! ```
//! Differs from a real path: both propagation delays come before the port; an idle port forwards
//! at once instead of after the frame's wire time (one frame time less of base delay); preamble,
//! FCS and gap (24 B) take no wire time. netem also ends TCP's custody of a frame there, as a NIC
//! does at transmission: without it TCP small queues would count the switch's queue.

use super::dilation::Dilation;
use onramp_scenario::{HostSettings, Qdisc, Run};
use onramp_units::Span;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Largest IP packet on the wire.
pub const MTU_BYTES: u32 = 1500;
/// Largest frame as the qdiscs count it.
pub const FRAME_BYTES: u32 = MTU_BYTES + 14;
/// TCP payload of a full frame with timestamps.
const MSS_BYTES: u64 = 1448;

/// How late a port's timer may be. tbf's bucket holds one frame, so that back-to-back frames leave
/// a frame time apart, and this much more: with less, every late timer would cost the port rate.
const TIMER_LATENESS: Span = Span::from_us(20);

/// IPv4 address of a host.
pub fn ipv4(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + host)
}

/// IPv6 address of a host.
pub fn ipv6(host: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1)
}

/// Ethernet address of a host's eth0. switch.bpf.c reads the number from it.
fn mac(host: u32) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", host >> 8, host & 0xff)
}

/// `ip` commands in the switch: a veth to each host, whose namespace has a path, and its line.
pub fn switch_links(host_paths: &[String]) -> String {
    let mut text = String::new();
    let queues = "numtxqueues 1 numrxqueues 1";
    for (host, path) in host_paths.iter().enumerate() {
        let mac = mac(host as u32);
        // A netkit line's peer is named nk<n> by the kernel; it must be up and sees no frame.
        let _ = writeln!(
            text,
            "link add up{host} mtu {MTU_BYTES} {queues} type veth peer name eth0 address {mac} mtu {MTU_BYTES} {queues} netns {path}\n\
             link add line{host} mtu {MTU_BYTES} type netkit\n\
             link set up{host} up\n\
             link set line{host} up\n\
             link set nk{host} up"
        );
    }
    text
}

/// `tc` commands in the switch: lines and ports.
pub fn switch_queues(run: &Run) -> String {
    let dilation = Dilation::new(run.time_dilation);
    let delay_us = dilation.slow(run.network.base_delay()).as_ns() as f64 / 1e3;
    let buffer = run.network.ports.buffer.get().max(u64::from(FRAME_BYTES));
    let mut text = String::new();
    for host in 0..run.network.topology.hosts() {
        let rate = dilation.slow_rate(run.network.link_of(host).rate);
        let burst = FRAME_BYTES as u64 + rate.bytes_in(TIMER_LATENESS).get();
        let rate = rate.bits_per_s();
        let _ = writeln!(
            text,
            "qdisc add dev line{host} root netem rate {rate}bit delay {delay_us}us limit 1000000\n\
             qdisc add dev up{host} root tbf rate {rate}bit burst {burst} limit {buffer}"
        );
    }
    text
}

/// `ip` commands in a host.
pub fn host_links(run: &Run, host: u32) -> String {
    let segments = (run.settings_of(host).host.gso.get() / MSS_BYTES).clamp(1, 45);
    let mut text = format!(
        "link set lo up\n\
         link set eth0 gso_max_segs {segments} up\n\
         addr add {}/8 dev eth0\n\
         addr add {}/64 dev eth0 nodad\n",
        ipv4(host),
        ipv6(host),
    );
    for peer in (0..run.network.topology.hosts()).filter(|&peer| peer != host) {
        let mac = mac(peer);
        let _ = writeln!(
            text,
            "neigh add {} lladdr {mac} nud permanent dev eth0\n\
             neigh add {} lladdr {mac} nud permanent dev eth0",
            ipv4(peer),
            ipv6(peer),
        );
    }
    text
}

/// `tc` commands in a host; none for `edge`, which the agent attaches.
pub fn host_queues(run: &Run, host: u32) -> String {
    let dilation = Dilation::new(run.time_dilation);
    let rate = dilation
        .slow_rate(run.network.link_of(host).rate)
        .bits_per_s();
    let own = run.settings_of(host).host;
    let times = dilation.times();
    let us = |real: Span| dilation.slow(real).as_ns() / 1000;
    let child = match own.qdisc {
        Qdisc::Edge => return String::new(),
        Qdisc::Fq => format!(
            "fq refill_delay {}us horizon {}us low_rate_threshold {}bit",
            us(Span::from_ms(40)),
            us(Span::from_s(10)).min(4_000_000_000),
            (550_000 / times).max(8),
        ),
        Qdisc::FqCodel => format!(
            "fq_codel target {}us interval {}us noecn",
            us(Span::from_ms(5)),
            us(Span::from_ms(100)),
        ),
    };
    // A class may go once its tokens are not negative, whatever the segment's size, and then waits
    // for all of it to be paid: what a NIC with one segment of ring does. A burst is a longer ring: a busy host
    // has it all in the line behind.
    let ring = own.nic_queue.get().max(u64::from(FRAME_BYTES));
    format!(
        "qdisc add dev eth0 root handle 1: htb default 1\n\
         class add dev eth0 parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {ring} cburst {ring} quantum {FRAME_BYTES}\n\
         qdisc add dev eth0 parent 1:1 handle 10: {child}\n"
    )
}

/// Settings of TCP in a host's namespace: path below /proc/sys, value. Both ends negotiate marks if hosts of either
/// need them.
pub fn host_sysctls(run: &Run) -> Vec<(&'static str, String)> {
    let dilation = Dilation::new(run.time_dilation);
    let times = dilation.times();
    let needs_marks = |of: HostSettings<'_>| of.host.cc.needs_marks();
    let ecn = u32::from(run.network.ecn.is_some() && run.each_settings().any(needs_marks));
    vec![
        ("net/ipv6/conf/all/accept_dad", "0".into()),
        ("net/ipv6/conf/default/accept_dad", "0".into()),
        ("net/ipv6/conf/default/router_solicitations", "0".into()),
        ("net/ipv4/tcp_ecn", ecn.to_string()),
        // Never the limit: windows are the congestion control's.
        ("net/ipv4/tcp_rmem", "4096 8388608 33554432".into()),
        ("net/ipv4/tcp_wmem", "4096 4194304 33554432".into()),
        // Runs must not learn from each other.
        ("net/ipv4/tcp_no_metrics_save", "1".into()),
        ("net/ipv4/tcp_rto_min_us", dilation.rto_min_us().to_string()),
        (
            "net/ipv4/tcp_tso_rtt_log",
            dilation.tso_rtt_log().to_string(),
        ),
        (
            "net/ipv4/tcp_comp_sack_delay_ns",
            (1_000_000 * times).to_string(),
        ),
        (
            "net/ipv4/tcp_comp_sack_slack_ns",
            (100_000 * times).to_string(),
        ),
        // Pools of connections between the same two hosts.
        ("net/ipv4/ip_local_port_range", "10000 64999".into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;

    fn run(extra: &str) -> Run {
        let text = format!(
            "title = \"t\"\nduration = \"1 ms\"\ntime_dilation = 100\n[network]\n\
             topology = {{ kind = \"star\", hosts = 3 }}\n\
             link = {{ rate = \"10 Gbit/s\", delay = \"1 us\" }}\nbuffer = \"600 kB\"\n\
             [host]\n{extra}\n[[traffic]]\nkind = \"long\"\nto = 0\nflows = 1\n"
        );
        Scenario::parse(&text, "test.toml").unwrap().runs()[0].clone()
    }

    #[test]
    fn lines_and_ports_run_at_the_dilated_rate() {
        let text = switch_queues(&run("qdisc = \"fq\""));
        assert!(
            text.contains("line2 root netem rate 100000000bit delay 200us"),
            "{text}"
        );
        assert!(
            text.contains("up2 root tbf rate 100000000bit burst 1764 limit 600000"),
            "{text}"
        );
        assert!(!text.contains("up3"), "{text}");
    }

    #[test]
    fn a_nic_queue_is_a_burst_of_the_line() {
        let usual = host_queues(&run("qdisc = \"fq\""), 0);
        assert!(usual.contains("burst 1514 cburst 1514 "), "{usual}");
        let long = host_queues(&run("qdisc = \"fq\"\nnic_queue = \"64 kB\""), 0);
        assert!(long.contains("burst 64000 cburst 64000 "), "{long}");
    }

    #[test]
    fn hosts_know_all_others_and_not_themselves() {
        let text = host_links(&run("qdisc = \"fq\""), 1);
        assert!(
            text.contains("neigh add 10.0.0.1 lladdr 02:00:00:00:00:00"),
            "{text}"
        );
        assert!(
            text.contains("neigh add fd00::3 lladdr 02:00:00:00:00:02"),
            "{text}"
        );
        assert!(!text.contains("neigh add 10.0.0.2 "), "{text}");
    }

    #[test]
    fn codel_slows_down_with_the_world() {
        let text = host_queues(&run("qdisc = \"fq_codel\""), 0);
        assert!(
            text.contains("fq_codel target 500000us interval 10000000us"),
            "{text}"
        );
        assert!(text.contains("htb rate 100000000bit"), "{text}");
    }

    #[test]
    fn edge_gets_no_stock_qdisc() {
        assert_eq!(host_queues(&run("qdisc = \"edge\""), 0), "");
    }
}
