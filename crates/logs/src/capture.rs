// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Captures: pcap, and pcapng (draft-ietf-opsawg-pcapng), as packets in the order of the file; several in the order of time.

use crate::error::{LogError, Place, Reason};
use crate::packet::{is_known, segment, Segment};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};
use std::io::Read;

/// The latest time that is believed.
const LATEST_NS: u128 = i64::MAX as u128 / 4;

/// A packet: when it was captured, its bytes on the wire, and the segment that it is, if it is one.
pub type Packet = (i64, u32, Option<Segment>);

/// The packets of a file.
pub type Packets<'f> = Box<dyn Iterator<Item = Result<Packet, LogError>> + 'f>;

/// A file whose packets are read one after the other.
pub struct Capture<'f> {
    name: String,
    packets: Packets<'f>,
    /// The next one.
    head: Option<Packet>,
}

impl<'f> Capture<'f> {
    /// Reads the first packet; `name` is the file's for errors.
    pub fn open(name: &str, packets: Packets<'f>) -> Result<Capture<'f>, LogError> {
        let mut capture = Capture {
            name: name.to_owned(),
            packets,
            head: None,
        };
        capture.take()?;
        Ok(capture)
    }

    /// The packet at the head, in whose place the next one comes.
    fn take(&mut self) -> Result<Option<Packet>, LogError> {
        let next = self.packets.next().transpose();
        let next = next.map_err(|error| error.in_file(&self.name))?;
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// Calls `each` with the packets of all captures, by time; at the same time by capture.
pub fn in_order(
    mut captures: Vec<Capture<'_>>,
    mut each: impl FnMut(Packet),
) -> Result<(), LogError> {
    loop {
        let at = |(_, capture): &(usize, &Capture<'_>)| capture.head.map(|(at_ns, ..)| at_ns);
        let waiting = captures.iter().enumerate().filter(|one| at(one).is_some());
        let Some((first, _)) = waiting.min_by_key(at) else {
            return Ok(());
        };
        if let Some(packet) = captures[first].take()? {
            each(packet);
        }
    }
}

/// The packets of a pcap file.
pub fn pcap<'f>(file: impl Read + 'f) -> Result<Packets<'f>, LogError> {
    let mut reader = PcapReader::new(file).map_err(|error| wrong(&error, 1))?;
    let header = reader.header();
    refuse_unknown(header.datalink, 1)?;
    let unit_ns = match header.ts_resolution {
        TsResolution::MicroSecond => 1000,
        TsResolution::NanoSecond => 1,
    };
    let mut number = 0;
    Ok(Box::new(std::iter::from_fn(move || {
        number += 1;
        // Raw, because the reader refuses packets of which the capture has a part.
        let packet = match reader.next_raw_packet()? {
            Ok(packet) => packet,
            Err(error) => return Some(Err(wrong(&error, number))),
        };
        let at_ns = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_frac) * unit_ns;
        let length = packet.orig_len;
        Some(Ok((
            at_ns,
            length,
            segment(header.datalink, &packet.data, length),
        )))
    })))
}

/// The packets of a pcapng file.
pub fn pcapng<'f>(file: impl Read + 'f) -> Result<Packets<'f>, LogError> {
    let mut reader = PcapNgReader::new(file).map_err(|error| wrong(&error, 1))?;
    let mut number = 0;
    Ok(Box::new(std::iter::from_fn(move || loop {
        let (at, interface, length, data) = match reader.next_block()? {
            Err(error) => return Some(Err(wrong(&error, number + 1))),
            Ok(Block::EnhancedPacket(packet)) => (
                packet.timestamp.as_nanos(),
                packet.interface_id as usize,
                packet.original_len,
                packet.data.into_owned(),
            ),
            // Simple packets have no time; others are no packets.
            Ok(_) => continue,
        };
        number += 1;
        let Some(interface) = reader.interfaces().get(interface) else {
            let reason = format!("it is of interface {interface}, which the file does not have");
            let place = Place::Packet(number);
            return Some(Err(LogError::at(place, Reason::Capture(reason))));
        };
        let link = interface.linktype;
        let packet = refuse_unknown(link, number).map(|()| {
            let at_ns = time_ns(at, interface);
            (at_ns, length, segment(link, &data, length))
        });
        return Some(packet);
    })))
}

/// The time of a stamp, which the reader gives as it is: microseconds, if the interface does not say another unit.
fn time_ns(stamp: u128, interface: &InterfaceDescriptionBlock<'_>) -> i64 {
    let (mut resolution, mut offset_s) = (6, 0);
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfTsResol(value) => resolution = *value,
            InterfaceDescriptionOption::IfTsOffset(value) => offset_s = *value,
            _ => {}
        }
    }
    let in_s = |unit: u128| stamp.saturating_mul(1_000_000_000) / unit.max(1);
    let ns = match resolution {
        power_of_two if power_of_two & 0x80 != 0 => in_s(1 << (power_of_two & 0x7f)),
        power_of_ten => in_s(10_u128.saturating_pow(u32::from(power_of_ten))),
    };
    let offset_ns = u128::from(offset_s) * 1_000_000_000;
    (ns.saturating_add(offset_ns)).min(LATEST_NS) as i64
}

fn refuse_unknown(link: DataLink, number: u64) -> Result<(), LogError> {
    match is_known(link) {
        true => Ok(()),
        false => {
            let reason = Reason::LinkType(format!("{link:?}"));
            Err(LogError::at(Place::Packet(number), reason))
        }
    }
}

fn wrong(error: &PcapError, packet: u64) -> LogError {
    let reason = match error {
        PcapError::IncompleteBuffer => Reason::Cut,
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Reason::Cut
        }
        other => Reason::Capture(other.to_string()),
    };
    LogError::at(Place::Packet(packet), reason)
}
