// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Encodes packets as Ethernet frames, for captures. The simulation does not read them.
//!
//! Packets of kernel hosts are TCP over IPv4, from sequence number 0, in one direction, without a
//! handshake. The time stamps option has the microsecond in which the packet was made. Frames have no
//! selective acknowledgements, which use no room on the simulated wire. Packets of NICs are UDP over IPv4.
//! Host n has the addresses 10.0.0.1 + n and 02:00:00:00:n, as in the rack. Switches do not change addresses
//! or the TTL. The UDP payload, in network order:
//!
//! ```text
//! 1 B   0 data, 1 ACK, 2 NACK, 3 read request; +8: echo of a congestion mark; +16 for each hop of telemetry
//! 5 B   first byte of the data, also of requested data; of an acknowledgement, the byte expected next
//! 40 B  with telemetry: five hops, as HPCC's figure 7 has them (rate, ns, bytes sent, queue)
//! 8 B   data with a time stamp: ns since the start, when it was sent
//! rest  zeros
//! ```
//!
//! OR-ACKs are those of the data path (bpf/abi.h), without tag.
//!
//! A PFC frame is IEEE 802.1Qbb's MAC control frame, for the simulator's only class. Differences: a pause
//! lasts until the resume, at any value of its time field; frames are not padded to Ethernet's minimum,
//! because the simulated ones are not; there is no frame check sequence.

use crate::net::packet::{Kind, Packet};
use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpHeaders, IpNumber, Ipv4Header, PacketBuilder, TcpHeader,
    TcpOptionElement::{Noop, Timestamp},
};
use onramp_cc::int::IntStack;
use onramp_cc::nic::Feedback;
use onramp_law::abi::{ONR_ORACK_PORT, ONR_ORACK_VERSION};
use onramp_units::{Mono, Time};

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;
const OR_ACK_PORT: u16 = ONR_ORACK_PORT as u16;
const OR_ACK_VERSION: u8 = ONR_ORACK_VERSION as u8;
/// Destination of MAC control frames: IEEE 802.1Q, table 8-1.
const MAC_CONTROL: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// IEEE 802.3, annex 31A.
const MAC_CONTROL_TYPE: EtherType = EtherType(0x8808);
const PFC_OPCODE: [u8; 2] = [0x01, 0x01];
/// The class that PFC stops, as in the reference.
const CLASS: usize = 3;

/// The ends of a packet's path, in its direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub src: u32,
    pub dst: u32,
    /// Source, destination.
    pub ports: (u16, u16),
}

impl Ends {
    /// In the other direction.
    pub fn swapped(&self) -> Ends {
        Ends {
            src: self.dst,
            dst: self.src,
            ports: (self.ports.1, self.ports.0),
        }
    }
}

/// A kernel host's data from byte `seq`.
pub(crate) fn tcp_data(packet: &Packet, ends: &Ends, seq: u64) -> Vec<u8> {
    let header = tcp_header(packet, ends, seq, 0);
    tcp(ends, ecn_of_data(packet), header, packet.payload)
}

/// A kernel host's acknowledgement of everything before byte `ack`.
pub(crate) fn tcp_ack(packet: &Packet, ends: &Ends, ack: u64, echo: bool) -> Vec<u8> {
    let mut header = tcp_header(packet, ends, 0, ack);
    header.ece = echo;
    tcp(ends, IpEcn::NotEct, header, 0)
}

fn tcp_header(packet: &Packet, ends: &Ends, seq: u64, ack: u64) -> TcpHeader {
    // Sequence numbers are modulo 2^32: RFC 9293, section 3.4.
    let mut header = TcpHeader::new(ends.ports.0, ends.ports.1, seq as u32, u16::MAX);
    header.ack = true;
    header.acknowledgment_number = ack as u32;
    let made_us = (packet.sent.ticks() / 1_000_000) as u32;
    // RFC 7323, appendix A.
    let options = [Noop, Noop, Timestamp(made_us, 0)];
    header.set_options(&options).expect("12 B of options fit");
    header
}

fn tcp(ends: &Ends, ecn: IpEcn, header: TcpHeader, payload: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(mac(ends.src), mac(ends.dst))
        .ip(ip(ends, ecn, IpNumber::TCP))
        .tcp_header(header)
        .write(&mut frame, &vec![0; usize::from(payload)])
        .expect("the largest packet fits IPv4");
    frame
}

/// A probe of clocks, or its answer: UDP with the probe's number and zeros.
pub(crate) fn probe(packet: &Packet, ends: &Ends) -> Vec<u8> {
    let mut payload = packet.seq.to_be_bytes().to_vec();
    payload.resize(usize::from(packet.wire_bytes) - HEADERS, 0);
    udp(ends, IpEcn::NotEct, &payload)
}

/// The hosts of the simulator are all capable of ECN.
fn ecn_of_data(packet: &Packet) -> IpEcn {
    match packet.marked {
        true => IpEcn::CongestionExperienced,
        false => IpEcn::Ect0,
    }
}

/// A NIC's data packet or acknowledgement. `telemetry` is read only with [`Feedback::Int`]; `received` is
/// the arrival time of the data, if the acknowledgement carries it.
pub(crate) fn transport(
    packet: &Packet,
    ends: &Ends,
    feedback: Feedback,
    telemetry: &IntStack,
    received: Option<Time<Mono>>,
) -> Vec<u8> {
    let is_data = packet.kind.carries_data();
    let kind = match packet.kind {
        Kind::Data | Kind::ReadResponse => 0,
        Kind::Nack => 2,
        Kind::ReadRequest => 3,
        _ => 1,
    };
    let echo = u8::from(!is_data && packet.marked) << 3;
    let mut payload = packet.seq.to_be_bytes()[2..].to_vec();
    payload[0] = kind | echo;
    match feedback {
        Feedback::Int => {
            payload[0] |= (telemetry.hops().len() as u8) << 4;
            payload.extend(telemetry.to_bytes());
        }
        Feedback::TimeStamp if is_data => {
            payload.extend((packet.sent.ticks() / 1000).to_be_bytes());
        }
        Feedback::TimeStamp | Feedback::Marks => {}
    }
    if let Some(received) = received {
        payload.extend(received.ticks().to_be_bytes());
    }
    payload.resize(usize::from(packet.wire_bytes) - HEADERS, 0);
    let ecn = match is_data {
        true => ecn_of_data(packet),
        false => IpEcn::NotEct,
    };
    udp(ends, ecn, &payload)
}

fn udp(ends: &Ends, ecn: IpEcn, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADERS + payload.len());
    PacketBuilder::ethernet2(mac(ends.src), mac(ends.dst))
        .ip(ip(ends, ecn, IpNumber::UDP))
        .udp(ends.ports.0, ends.ports.1)
        .write(&mut frame, payload)
        .expect("the largest packet fits IPv4");
    frame
}

/// The builder computes lengths and checksums.
fn ip(ends: &Ends, ecn: IpEcn, protocol: IpNumber) -> IpHeaders {
    let header = Ipv4Header {
        ecn,
        dont_fragment: true,
        time_to_live: 64,
        protocol,
        source: ipv4(ends.src),
        destination: ipv4(ends.dst),
        ..Ipv4Header::default()
    };
    IpHeaders::Ipv4(header, Default::default())
}

/// An OR-ACK from one end of `flow` to the other, with the arrival time of the `len` bytes from `seq`.
pub(crate) fn or_ack(flow: &Ends, seq: u64, len: u32, received: Time<Mono>) -> Vec<u8> {
    let mut payload = vec![OR_ACK_VERSION, 0, 0, 0]; // flags, key
    payload.extend((seq as u32).to_be_bytes());
    payload.extend([0; 4]); // csum_scratch, reserved
    payload.extend(flow.ports.0.to_be_bytes());
    payload.extend(flow.ports.1.to_be_bytes());
    payload.extend(len.to_be_bytes());
    payload.extend(received.ticks().to_be_bytes());
    payload.extend([0; 8]); // tag
    let back = Ends {
        src: flow.dst,
        dst: flow.src,
        ports: (OR_ACK_PORT, OR_ACK_PORT),
    };
    udp(&back, IpEcn::NotEct, &payload)
}

/// A PFC frame of `node`'s.
pub(crate) fn pfc(packet: &Packet, node: u32) -> Vec<u8> {
    let header = Ethernet2Header {
        source: mac(node),
        destination: MAC_CONTROL,
        ether_type: MAC_CONTROL_TYPE,
    };
    let mut quanta = [0u8; 16];
    if packet.kind == Kind::Pause {
        quanta[2 * CLASS..][..2].fill(0xff);
    }
    let mut frame = header.to_bytes().to_vec();
    frame.extend(PFC_OPCODE);
    frame.extend([0, 1 << CLASS]);
    frame.extend(quanta);
    frame.resize(usize::from(packet.wire_bytes), 0);
    frame
}

fn ipv4(host: u32) -> [u8; 4] {
    (u32::from_be_bytes([10, 0, 0, 1]) + host).to_be_bytes()
}

fn mac(node: u32) -> [u8; 6] {
    let [_, _, high, low] = node.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}
