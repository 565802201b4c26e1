//! Captures: what a port sends, as a pcapng file (draft-ietf-opsawg-pcapng) for Wireshark.
//!
//! A packet is noted when its first bit is sent. Time stamps count from the start of the run and are
//! whole nanoseconds: picoseconds are cut off. Only the first [`SNAPLEN`] bytes are kept; the rest
//! of any frame is zeros. A comment tells the flow, by its row in flows.parquet.
//!
//! Does not: open files, or see what a port drops.

use crate::frame::{self, Ends};
use crate::int::IntStack;
use crate::packet::{Kind, Packet};
use crate::simulation::Simulation;
use onramp_scenario::Work;
use onramp_units::{Rate, Sim, Time};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// All headers, telemetry included.
const SNAPLEN: usize = 128;
/// Time stamps are multiples of 10^-9 s.
const TSRESOL: u8 = 9;

/// Where a capture goes.
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
    /// What went wrong first; nothing is written after that.
    error: Option<PcapError>,
}

impl Capture {
    fn new(name: &str, rate: Rate, out: Output) -> Result<Capture, PcapError> {
        // Not the machine's byte order: the same bytes everywhere.
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

impl Simulation {
    /// From now on writes all packets that `port` sends to `out`, as those of interface `name`.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub(crate) fn start_capture(
        &mut self,
        port: u32,
        name: &str,
        out: Output,
    ) -> Result<(), CaptureError> {
        let line = &mut self.ports[port as usize];
        let capture = Capture::new(name, line.rate, out).map_err(|error| failed(name, &error))?;
        line.captured = true;
        self.captures.insert(port, capture);
        Ok(())
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// The first that could not be written.
    pub(crate) fn end_captures(&mut self) -> Result<(), CaptureError> {
        let captures = std::mem::take(&mut self.captures);
        captures.into_values().try_for_each(Capture::end)
    }

    /// Notes a packet that `port` begins to send.
    #[cold]
    pub(crate) fn capture(&mut self, port: u32, id: u32) {
        let packet = self.packets[id];
        let (frame, comment) = match packet.kind {
            Kind::Pause | Kind::Resume => {
                let node = self.ports[port as usize].node;
                (frame::pfc(&packet, node), pfc_comment(packet.kind))
            }
            Kind::OrAck => self.or_ack_frame(id, &packet),
            Kind::Data | Kind::Ack | Kind::Nack => self.transport_frame(id, &packet),
        };
        if let Some(capture) = self.captures.get_mut(&port) {
            capture.note(self.now, &frame, comment);
        }
    }

    fn or_ack_frame(&self, id: u32, packet: &Packet) -> (Vec<u8>, String) {
        let ends = self.ends(packet);
        let plan = self.pairs[packet.flow].plan;
        let payload = u64::from(self.config.nic.payload);
        let len = match self.flows[plan as usize].work {
            Work::Send(size) => payload.min(size.get() - packet.seq),
            Work::Until(_) => payload,
        };
        let received = self.stamps[id as usize].received;
        let frame = frame::or_ack(&ends, packet.seq, len as u32, received);
        let comment = format!("flow {plan}: or-ack {} to {}", packet.seq, packet.seq + len);
        (frame, comment)
    }

    fn transport_frame(&self, id: u32, packet: &Packet) -> (Vec<u8>, String) {
        let there = self.ends(packet);
        let back = Ends {
            src: there.dst,
            dst: there.src,
            ports: (there.ports.1, there.ports.0),
        };
        let (seq, end) = (packet.seq, packet.seq + u64::from(packet.payload));
        let (ends, what) = match packet.kind {
            Kind::Data => (there, format!("data {seq} to {end}")),
            Kind::Nack => (back, format!("nack {seq}")),
            _ => (back, format!("ack {seq}")),
        };
        let no_telemetry = IntStack::default();
        let telemetry = self.stacks.get(id as usize).unwrap_or(&no_telemetry);
        let frame = frame::transport(packet, &ends, self.feedback, telemetry);
        let plan = self.pairs[packet.flow].plan;
        (frame, format!("flow {plan}: {what}"))
    }

    /// Of the packet's flow, in the direction of its data.
    fn ends(&self, packet: &Packet) -> Ends {
        let pair = &self.pairs[packet.flow];
        let flow = &self.flows[pair.plan as usize];
        Ends {
            src: flow.src,
            dst: flow.dst,
            ports: pair.ports,
        }
    }
}

fn pfc_comment(kind: Kind) -> String {
    match kind {
        Kind::Pause => "pause".to_owned(),
        _ => "resume".to_owned(),
    }
}
