// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! OR-ACKs as frames: read, changed, signed and written again. The layout of the payload is bpf/abi.h's;
//! byte order and tag are written once more, from their description there. The tag is SipHash-2-4 by the
//! siphasher crate.
use std::{hash::Hasher, net::IpAddr};

use bytemuck::{bytes_of, pod_read_unaligned};
use onramp_law::abi::{onr_orack, ONR_KEY_BYTES, ONR_ORACK_PORT};
use siphasher::sip::SipHasher24;

pub const PORT: u16 = ONR_ORACK_PORT as u16;
/// Bytes of the UDP payload, and of the frame over IPv4 and IPv6.
pub const PAYLOAD: usize = size_of::<onr_orack>();
pub const WIRE4: usize = 14 + 20 + 8 + PAYLOAD;
pub const WIRE6: usize = 14 + 40 + 8 + PAYLOAD;
/// The key of daemons without --key-file.
pub const OPEN_KEY: [u8; ONR_KEY_BYTES as usize] = [0; ONR_KEY_BYTES as usize];

/// An OR-ACK with the addresses around it. The rest of the frame (MAC addresses, TTL) is kept.
#[derive(Clone, Debug)]
pub struct Orack {
    frame: Vec<u8>,
    /// From the receiver of the data, to its sender.
    pub from: IpAddr,
    pub to: IpAddr,
    pub version: u8,
    pub flags: u8,
    pub key_id: u16,
    pub seq: u32,
    pub csum_scratch: u16,
    /// Ports of the data.
    pub sport: u16,
    pub dport: u16,
    /// What the receiver says about its port.
    pub hint: u16,
    pub len: u16,
    pub rx_fleet_ns: i64,
    pub tag: u64,
}

/// Offset of the UDP header in a frame.
fn udp_at(frame: &[u8]) -> usize {
    if frame[12..14] == [0x08, 0x00] {
        34
    } else {
        54
    }
}

fn be<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("N bytes")
}

impl Orack {
    /// Reads a frame as the data path writes it.
    pub fn parse(frame: &[u8]) -> Self {
        let udp = udp_at(frame);
        let o: onr_orack = pod_read_unaligned(&frame[udp + 8..][..PAYLOAD]);
        let (from, to): (IpAddr, IpAddr) = if udp == 34 {
            (be::<4>(frame, 26).into(), be::<4>(frame, 30).into())
        } else {
            (be::<16>(frame, 22).into(), be::<16>(frame, 38).into())
        };
        Self {
            frame: frame.to_vec(),
            from,
            to,
            version: o.version,
            flags: o.flags,
            key_id: u16::from_be(o.key_id),
            seq: u32::from_be(o.seq),
            csum_scratch: u16::from_be(o.csum_scratch),
            sport: u16::from_be(o.sport),
            dport: u16::from_be(o.dport),
            hint: u16::from_be(o.hint),
            len: u16::from_be(o.len),
            rx_fleet_ns: i64::from(u32::from_be(o.rx_fleet_hi_ns)) << 32
                | i64::from(u32::from_be(o.rx_fleet_lo_ns)),
            tag: o.tag,
        }
    }

    /// The frame with the present values of the fields.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.frame.clone();
        let p = udp_at(&frame) + 8;
        let before: onr_orack = pod_read_unaligned(&frame[p..][..PAYLOAD]);
        let payload = onr_orack {
            version: self.version,
            flags: self.flags,
            key_id: self.key_id.to_be(),
            seq: self.seq.to_be(),
            csum_scratch: self.csum_scratch.to_be(),
            sport: self.sport.to_be(),
            dport: self.dport.to_be(),
            hint: self.hint.to_be(),
            len: self.len.to_be(),
            rx_fleet_hi_ns: ((self.rx_fleet_ns >> 32) as u32).to_be(),
            rx_fleet_lo_ns: (self.rx_fleet_ns as u32).to_be(),
            tag: self.tag,
            ..before
        };
        frame[p..][..PAYLOAD].copy_from_slice(bytes_of(&payload));
        frame
    }

    /// The tag that these values have under a key: words of 64 bits, the flow as its sender sees it.
    pub fn tag_under(&self, key: &[u8; 16]) -> u64 {
        let word = |bytes: &[u8]| u64::from(u32::from_ne_bytes(be(bytes, 0)));
        let pairs = |addr: [u8; 16]| {
            let words: Vec<u64> = addr.chunks(4).map(word).collect();
            [words[0] << 32 | words[1], words[2] << 32 | words[3]]
        };
        let mut words = vec![];
        match (self.to, self.from) {
            (IpAddr::V4(sender), IpAddr::V4(receiver)) => {
                words.push(word(&sender.octets()) << 32 | word(&receiver.octets()));
            }
            (IpAddr::V6(sender), IpAddr::V6(receiver)) => {
                words.extend(pairs(sender.octets()));
                words.extend(pairs(receiver.octets()));
            }
            _ => unreachable!("one family a frame"),
        }
        let (sport, dport) = (self.sport.to_be(), self.dport.to_be());
        words.push(u64::from(sport) << 48 | u64::from(dport) << 32 | u64::from(self.seq));
        words.push(
            u64::from(self.hint) << 48
                | u64::from(self.len) << 32
                | u64::from(self.key_id) << 16
                | u64::from(self.version),
        );
        words.push(self.rx_fleet_ns as u64);
        let half = |at| u64::from_ne_bytes(be(key, at));
        let mut hash = SipHasher24::new_with_keys(half(0), half(8));
        words
            .iter()
            .for_each(|word| hash.write(&word.to_le_bytes()));
        hash.finish()
    }

    /// These values with the tag that a daemon without --key-file believes.
    pub fn signed(mut self) -> Self {
        self.tag = self.tag_under(&OPEN_KEY);
        self
    }

    /// The frame over IPv4 with another UDP payload; lengths and the IP header's checksum fit it. It is to the
    /// loopback device.
    pub fn frame_with(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = [&self.frame[..42], payload].concat();
        frame[..6].fill(0);
        let ip_bytes = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
        frame[24..26].fill(0);
        let check = !(folded(sum(&frame[14..34])) as u16);
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        frame
    }

    /// The same OR-ACK over IPv4 to another host, with the tag that it has; `frame_with` its payload is a valid packet.
    pub fn sent_to(&self, host: IpAddr) -> Self {
        let IpAddr::V4(to) = host else {
            unreachable!("over IPv4")
        };
        let mut frame = self.frame();
        frame[30..34].copy_from_slice(&to.octets());
        Self::parse(&frame)
    }

    /// Type of service over IPv4, traffic class over IPv6.
    pub fn tos(&self) -> u8 {
        if self.to.is_ipv4() {
            self.frame[15]
        } else {
            self.frame[14] << 4 | self.frame[15] >> 4
        }
    }

    /// The frame after a device has completed its checksum: it sums from the UDP header on, and writes the
    /// complement at `offset` from there, never 0, which stands for no checksum (RFC 768).
    pub fn completed_at(&self, offset: usize) -> Self {
        let mut frame = self.frame.clone();
        let udp = udp_at(&frame);
        let check = match !(folded(sum(&frame[udp..])) as u16) {
            0 => 0xffff,
            check => check,
        };
        frame[udp + offset..][..2].copy_from_slice(&check.to_be_bytes());
        Self::parse(&frame)
    }

    /// Is the UDP checksum right (RFC 768: the sum over pseudo header, header and payload is a
    /// zero of one's complement), and the header's over IPv4?
    pub fn checksums_are_right(&self) -> bool {
        let udp = udp_at(&self.frame);
        let addresses = if udp == 34 {
            &self.frame[26..34]
        } else {
            &self.frame[22..54]
        };
        let segment = &self.frame[udp..];
        let pseudo = sum(addresses) + 17 + segment.len() as u64;
        let header = if udp == 34 {
            folded(sum(&self.frame[14..34]))
        } else {
            0xffff
        };
        folded(pseudo + sum(segment)) == 0xffff && header == 0xffff && segment[6..8] != [0, 0]
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(u16::from_be_bytes(be(pair, 0))))
        .sum()
}

fn folded(mut sum: u64) -> u64 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}
