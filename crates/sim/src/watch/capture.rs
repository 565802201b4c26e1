// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Captures: what a port sends, as a pcapng file (draft-ietf-opsawg-pcapng) for Wireshark.
//!
//! A packet is recorded when its first bit is sent. Time stamps count from the start of the run, in whole
//! nanoseconds, rounded down. Only the first [`SNAPLEN`] bytes are kept; the rest of any frame is zeros. A
//! comment has the flow's row in flows.parquet.
//!
//! Does not open files, and does not record dropped packets.

use crate::host::clock::mono;
use crate::host::config::{Hosts, Nic, MSS};
use crate::host::edge::law_of;
use crate::host::site::huygens::Edge;
use crate::host::site::Site;
use crate::net::fabric::port::Port;
use crate::net::fabric::Sent;
use crate::net::packet::{Kind, Packet};
use crate::tcp::Acknowledgement;
use crate::watch::frame::{self, Ends};
use onramp_units::{Rate, Sim, Time};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// All headers, telemetry included.
const SNAPLEN: usize = 128;
/// Time stamps are multiples of 10^-9 s.
const TSRESOL: u8 = 9;

/// The output of a capture.
pub type Output = Box<dyn Write + Send>;

/// A capture could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot write the packets of port {port}: {reason}")]
pub struct CaptureError {
    port: String,
    reason: String,
}

/// A port's packets on their way to a file.
pub(crate) struct Capture {
    name: String,
    writer: PcapNgWriter<Output>,
    /// The first error; nothing is written after it.
    error: Option<PcapError>,
}

impl Capture {
    fn new(name: &str, rate: Rate, out: Output) -> Result<Capture, PcapError> {
        // Little endian on every machine, so that the bytes are the same.
        let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little)?;
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, SNAPLEN as u32);
        interface.options = vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(name.to_owned())),
            InterfaceDescriptionOption::IfSpeed(rate.bits_per_s()),
            InterfaceDescriptionOption::IfTsResol(TSRESOL),
            InterfaceDescriptionOption::IfFcsLen(0),
        ];
        writer.write_block(&interface.into_block())?;
        Ok(Capture {
            name: name.to_owned(),
            writer,
            error: None,
        })
    }

    fn note(&mut self, at: Time<Sim>, frame: &[u8], comment: String) {
        if self.error.is_some() {
            return;
        }
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos((at.ticks() / 1000) as u64),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(&frame[..frame.len().min(SNAPLEN)]),
            options: vec![EnhancedPacketOption::Comment(Cow::Owned(comment))],
        };
        self.error = self.writer.write_block(&block.into_block()).err();
    }

    fn end(mut self) -> Result<(), CaptureError> {
        let flushed = self.writer.get_mut().flush().map_err(PcapError::IoError);
        match self.error.map_or(flushed, Err) {
            Ok(()) => Ok(()),
            Err(error) => Err(failed(&self.name, &error)),
        }
    }
}

fn failed(port: &str, error: &PcapError) -> CaptureError {
    CaptureError {
        port: port.to_owned(),
        reason: match error {
            PcapError::IoError(error) => error.to_string(),
            other => other.to_string(),
        },
    }
}

/// Captures by port.
#[derive(Default)]
pub(crate) struct Captures(BTreeMap<u32, Capture>);

impl Captures {
    /// Writes all packets that `port`, number `number`, sends from now on to `out`, as packets of interface
    /// `name`.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub(crate) fn start(
        &mut self,
        (number, line): (u32, &mut Port),
        name: &str,
        out: Output,
    ) -> Result<(), CaptureError> {
        let capture = Capture::new(name, line.rate, out).map_err(|error| failed(name, &error))?;
        line.captured = true;
        self.0.insert(number, capture);
        Ok(())
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// The first capture that could not be written.
    pub(crate) fn end(&mut self) -> Result<(), CaptureError> {
        let captures = std::mem::take(&mut self.0);
        captures.into_values().try_for_each(Capture::end)
    }

    /// Whether any port is captured.
    pub(crate) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Records packets that ports have begun to send.
    pub(crate) fn note(&mut self, site: &mut Site) {
        let sent = std::mem::take(&mut site.net.captured);
        for sent in &sent {
            let Some(capture) = self.0.get_mut(&sent.port) else {
                continue;
            };
            let (frame, comment) = Scene { site, sent }.frame();
            capture.note(sent.at, &frame, comment);
        }
    }
}

/// A packet that is sent, and its port.
struct Scene<'a> {
    site: &'a Site,
    sent: &'a Sent,
}

impl Scene<'_> {
    fn frame(&self) -> (Vec<u8>, String) {
        let packet = &self.sent.packet;
        match packet.kind {
            Kind::Pause | Kind::Resume => {
                let node = self.site.net.ports[self.sent.port as usize].node;
                (frame::pfc(packet, node), pfc_comment(packet.kind))
            }
            Kind::Probe | Kind::ProbeAnswer => self.probe_frame(packet),
            _ => {
                let (frame, what) = self.flow_frame(packet);
                (frame, format!("flow {}: {what}", packet.flow))
            }
        }
    }

    /// A probe of clocks, or its answer.
    fn probe_frame(&self, packet: &Packet) -> (Vec<u8>, String) {
        let (Edge { near, far }, ports) = self.site.probed(packet.flow);
        let there = Ends {
            src: near,
            dst: far,
            ports,
        };
        let (ends, what) = match packet.kind {
            Kind::Probe => (there, "probe"),
            _ => (there.swapped(), "answer to probe"),
        };
        let comment = format!("edge {}: {what} {}", packet.flow, packet.seq);
        (frame::probe(packet, &ends), comment)
    }

    /// A flow's packet as a frame, with its comment.
    fn flow_frame(&self, packet: &Packet) -> (Vec<u8>, String) {
        let flow = &self.site.network.flows[packet.flow as usize];
        let there = Ends {
            src: flow.src,
            dst: flow.dst,
            ports: flow.ports(packet.ordinal),
        };
        match (packet.kind, &self.site.config.hosts) {
            (Kind::OrAck, _) => self.or_ack_frame(packet, &there),
            (_, Hosts::Kernel(_)) => self.kernel_frame(packet, &there),
            (_, Hosts::Nic(nic)) => self.nic_frame(packet, &there, nic),
        }
    }

    fn or_ack_frame(&self, packet: &Packet, there: &Ends) -> (Vec<u8>, String) {
        let received = match &self.site.config.hosts {
            Hosts::Kernel(_) => mono(packet.sent),
            Hosts::Nic(_) => self.sent.stamp.received.expect("an OR-ACK has it"),
        };
        let frame = frame::or_ack(there, packet.seq, packet.payload.into(), received);
        (frame, format!("or-ack {}", packet.seq))
    }

    fn kernel_frame(&self, packet: &Packet, there: &Ends) -> (Vec<u8>, String) {
        if packet.kind == Kind::Data {
            let seq = packet.seq * u64::from(MSS);
            let frame = frame::tcp_data(packet, there, seq);
            return (frame, data_comment(seq, packet));
        }
        let ack = self.sent.acknowledgement;
        let (seq, echo) = (tcp_seq(&ack), ack.marked > 0);
        let frame = frame::tcp_ack(packet, &there.swapped(), seq, echo);
        (frame, tcp_comment(&ack))
    }

    fn nic_frame(&self, packet: &Packet, there: &Ends, nic: &Nic) -> (Vec<u8>, String) {
        let is_managed = law_of(&self.site.laws, there.src).is_some();
        let says = is_managed && !packet.kind.carries_data() && nic.piggyback;
        let received = self.sent.stamp.received.filter(|_| says);
        let (ends, comment) = match packet.kind {
            Kind::Data | Kind::ReadResponse => (*there, data_comment(packet.seq, packet)),
            Kind::ReadRequest => {
                let comment = format!("read {} packets from {}", packet.payload, packet.seq);
                (there.swapped(), comment)
            }
            Kind::Nack => (there.swapped(), format!("nack {}", packet.seq)),
            _ => (there.swapped(), format!("ack {}", packet.seq)),
        };
        let telemetry = match self.site.net.carried.has.int {
            true => self.sent.stack,
            false => Default::default(),
        };
        let frame = frame::transport(
            packet,
            &ends,
            self.site.config.feedback(),
            &telemetry,
            received,
        );
        (frame, comment)
    }
}

/// The byte after the last acknowledged one.
fn tcp_seq(ack: &Acknowledgement) -> u64 {
    u64::from(ack.cumulative) * u64::from(MSS) - u64::from(ack.short)
}

/// Selective acknowledgements use no room on the simulated wire, so only the comment has them.
fn tcp_comment(ack: &Acknowledgement) -> String {
    let mut text = format!("ack {}", tcp_seq(ack));
    for (first, end) in ack.blocks.iter().filter(|(first, end)| first < end) {
        let byte = |number: u32| u64::from(number) * u64::from(MSS);
        text += &format!(", sack {} to {}", byte(*first), byte(*end));
    }
    text
}

fn data_comment(seq: u64, packet: &Packet) -> String {
    format!("data {seq} to {}", seq + u64::from(packet.payload))
}

fn pfc_comment(kind: Kind) -> String {
    match kind {
        Kind::Pause => "pause".to_owned(),
        _ => "resume".to_owned(),
    }
}
