// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A packet of a capture, as a segment of TCP. Packets may be cut: only headers are read.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::DataLink;
use std::net::IpAddr;

/// Addresses and ports of a direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    pub from: IpAddr,
    pub from_port: u16,
    pub to: IpAddr,
    pub to_port: u16,
}

impl Ends {
    /// The other direction.
    pub fn back(self) -> Ends {
        Ends {
            from: self.to,
            from_port: self.to_port,
            to: self.from,
            to_port: self.from_port,
        }
    }
}

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub ends: Ends,
    pub sequence: u32,
    pub payload: u32,
    pub syn: bool,
    pub ack: bool,
}

/// The segment in a packet that had `length` bytes on the wire; none: it is of another protocol, or no whole header.
pub fn segment(link: DataLink, data: &[u8], length: u32) -> Option<Segment> {
    let packet = sliced(link, data)?;
    let (from, to, ip_payload) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            if header.is_fragmenting_payload() {
                return None;
            }
            let ends = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            let options = u32::from(header.ihl()) * 4;
            let whole = match header.total_len() {
                0 => length.saturating_sub(offset(data, header.slice())),
                length => u32::from(length),
            };
            (ends.0, ends.1, whole.checked_sub(options)?)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let ends: (IpAddr, IpAddr) = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            let extensions = ip.extensions().slice().len() as u32;
            let whole = match header.payload_length() {
                0 => length.saturating_sub(offset(data, header.slice()) + 40),
                length => u32::from(length),
            };
            (ends.0, ends.1, whole.checked_sub(extensions)?)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let TransportSlice::Tcp(tcp) = packet.transport.as_ref()? else {
        return None;
    };
    Some(Segment {
        ends: Ends {
            from,
            from_port: tcp.source_port(),
            to,
            to_port: tcp.destination_port(),
        },
        sequence: tcp.sequence_number(),
        payload: ip_payload.checked_sub(u32::from(tcp.data_offset()) * 4)?,
        syn: tcp.syn(),
        ack: tcp.ack(),
    })
}

/// The bytes before `part`, which is a part of `data`.
fn offset(data: &[u8], part: &[u8]) -> u32 {
    (part.as_ptr() as usize - data.as_ptr() as usize) as u32
}

/// Whether packets of this type are understood.
pub fn is_known(link: DataLink) -> bool {
    matches!(
        link,
        DataLink::ETHERNET | DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 | DataLink::LINUX_SLL
    ) || is_cooked_2(link)
}

/// LINKTYPE_LINUX_SLL2, of `tcpdump -i any`.
fn is_cooked_2(link: DataLink) -> bool {
    u32::from(link) == 276
}

fn sliced(link: DataLink, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let cooked = |protocol: usize, payload: usize| {
        let protocol = data.get(protocol..protocol + 2)?;
        let protocol = EtherType(u16::from_be_bytes([protocol[0], protocol[1]]));
        Some(LaxSlicedPacket::from_ether_type(
            protocol,
            data.get(payload..)?,
        ))
    };
    match link {
        DataLink::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => LaxSlicedPacket::from_ip(data).ok(),
        DataLink::LINUX_SLL => cooked(14, 16),
        link if is_cooked_2(link) => cooked(0, 20),
        _ => None,
    }
}
