// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Captures: pcap, and pcapng (draft-ietf-opsawg-pcapng).

use crate::bursts::Bursts;
use crate::error::{LogError, Place, Reason};
use crate::packet::{is_known, segment};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};
use std::io::Read;

/// Adds the segments of a pcap file.
pub fn pcap(file: impl Read, bursts: &mut Bursts) -> Result<(), LogError> {
    let mut reader = PcapReader::new(file).map_err(|error| wrong(&error, 1))?;
    let header = reader.header();
    refuse_unknown(header.datalink, 1)?;
    let unit_ns = match header.ts_resolution {
        TsResolution::MicroSecond => 1000,
        TsResolution::NanoSecond => 1,
    };
    for number in 1.. {
        // Raw, because the reader refuses packets of which the capture has a part.
        let Some(packet) = reader.next_raw_packet() else {
            break;
        };
        let packet = packet.map_err(|error| wrong(&error, number))?;
        let at_ns = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_frac) * unit_ns;
        add(
            bursts,
            at_ns,
            header.datalink,
            &packet.data,
            packet.orig_len,
        );
    }
    Ok(())
}

/// Adds the segments of a pcapng file.
pub fn pcapng(file: impl Read, bursts: &mut Bursts) -> Result<(), LogError> {
    let mut reader = PcapNgReader::new(file).map_err(|error| wrong(&error, 1))?;
    let mut number = 0;
    loop {
        number += 1;
        let (at, interface, length, data) = match reader.next_block() {
            None => return Ok(()),
            Some(Err(error)) => return Err(wrong(&error, number)),
            Some(Ok(Block::EnhancedPacket(packet))) => (
                packet.timestamp.as_nanos(),
                packet.interface_id as usize,
                packet.original_len,
                packet.data.into_owned(),
            ),
            // Simple packets have no time; others are no packets.
            Some(Ok(_)) => {
                number -= 1;
                continue;
            }
        };
        let Some(interface) = reader.interfaces().get(interface) else {
            let reason = Reason::Capture(format!(
                "it is of interface {interface}, which the file does not have"
            ));
            return Err(LogError::at(Place::Packet(number), reason));
        };
        refuse_unknown(interface.linktype, number)?;
        let at_ns = (at * unit_ns(interface)).min(i64::MAX as u128 / 4) as i64;
        add(bursts, at_ns, interface.linktype, &data, length);
    }
}

fn add(bursts: &mut Bursts, at_ns: i64, link: DataLink, data: &[u8], length: u32) {
    match segment(link, data, length) {
        Some(segment) => bursts.add(at_ns, segment),
        None => bursts.leave_out(length),
    }
}

/// Nanoseconds of a time stamp's unit; a microsecond without the option. The reader gives stamps as they are.
fn unit_ns(interface: &InterfaceDescriptionBlock<'_>) -> u128 {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(digits) => Some(*digits),
        _ => None,
    });
    // A unit below a nanosecond, or one that is a power of two, is not written by any tool that is known.
    10_u128.pow(9 - u32::from(resolution.unwrap_or(6)).min(9))
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
