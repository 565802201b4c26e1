//! What a simulation is made of, beside its topology and its flows.

use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::host::clock::ClockErrors;
use crate::host::huygens::Probing;
use crate::host::kernel::MSS;
use onramp_cc::nic::{Algorithm, Feedback, Marks, Preset};
use onramp_cc::tcp::TcpAlgorithm;
use onramp_scenario::{Transport, Work};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::sync::Arc;

/// Everything that all hosts and switches have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Exact, or as the HPCC authors' ns-3, for comparison: then times are whole nanoseconds, a NIC
    /// looks at blocked flows too when it decides how long to sleep, and duplicates are not
    /// acknowledged.
    pub rounding: Rounding,
    /// What hosts are.
    pub hosts: Hosts,
    /// On-Ramp's control law, if any.
    pub law: Option<onramp_law::Config>,
    /// First and last host that has it; `None`: all.
    pub managed: Option<(u32, u32)>,
    /// How wrong the hosts' clocks are, by which the law measures.
    pub clocks: ClockErrors,
    /// A flow begins with the last delay to its receiver, unless that is older than this.
    pub reuse: Option<Span>,
    /// Packets that hold a multiple of so many bytes of their connection are OR-ACKed; 1: all.
    pub or_ack_every: u32,
    /// Flows that wait for others.
    pub chains: Option<Arc<Chains>>,
    /// How hosts probe each other to synchronise their clocks, if they do.
    pub probing: Option<Probing>,
    /// The switches.
    pub switch: Switch,
    /// Of random marks and clocks.
    pub seed: u64,
}

/// What all hosts are.
#[derive(Debug, Clone, PartialEq)]
pub enum Hosts {
    /// RDMA-like NICs.
    Nic(Nic),
    /// Linux TCP on plain NICs.
    Kernel(Kernel),
}

/// A host's RDMA-like NIC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nic {
    /// Congestion control of every flow.
    pub algorithm: Algorithm,
    /// Payload of a full packet.
    pub payload: u16,
    /// A receiver asks for the same packet again at most this often.
    pub nack_interval: Span,
    /// Acknowledgements say what OR-ACKs would, which there are none of.
    pub piggyback: bool,
    /// A pause of the data class holds acknowledgements back here too. At switches they are in the
    /// data class in any case.
    pub hold_acks: bool,
    /// Go back after so long without progress; `None`: never, as in a network without loss.
    pub timeout: Option<Span>,
}

/// A host's kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Congestion control of every connection.
    pub algorithm: TcpAlgorithm,
    /// Its constants.
    pub transport: Arc<Transport>,
    /// Largest segment handed to the NIC.
    pub gso: Bytes,
    /// The same of a host that has On-Ramp's law.
    pub managed_gso: Bytes,
    /// Packets that are handled together are acknowledged together.
    pub gro: bool,
    /// Segments are spaced by TCP's pace, as with sch_fq; BBR's are in any case.
    pub paced: bool,
    /// The same where On-Ramp's law holds.
    pub managed_paced: bool,
    /// Flows take idle connections, if there are any.
    pub persistent: bool,
    /// Its queueing discipline drops what has waited too long, as sch_fq_codel does.
    pub codel: bool,
    /// The NIC interrupts so long after the first packet.
    pub coalescing: Span,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch {
    /// Where packets wait.
    pub buffer: Buffer,
    /// Congestion marks, if any.
    pub ecn: Option<Ecn>,
    /// Dynamic threshold: alpha is 2 to this; `None`: 1 if shared, 1/8 at the hosts' rate if lossless.
    pub alpha_log2: Option<i8>,
}

/// How packets share a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Each egress port has its own; what does not fit is dropped.
    PerPort(Bytes),
    /// All ports share it; a queue may take alpha times what is free (dynamic threshold), the rest is
    /// dropped.
    Shared(Bytes),
    /// All ports share it; priority flow control stops the sender before it is full.
    Lossless(Bytes),
}

/// Marks by the length of the egress queue. Lengths are for ports at the hosts' rate, and in
/// proportion at others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// None at or below this.
    pub min: Bytes,
    /// All above this.
    pub max: Bytes,
    /// Part of the packets marked just below `max`; it grows from zero at `min`.
    pub max_fraction: f64,
    /// It grows in so many equal steps; `None`: steadily.
    pub steps: Option<u32>,
    /// Marked is what finds such a queue, else what leaves one behind.
    pub at_enqueue: bool,
}

/// A flow of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// When its data is there.
    pub start: Time<Sim>,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// How much.
    pub work: Work,
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// From its start to the last acknowledgement at the sender; `None`: it is not over, or had no
    /// size.
    pub acked: Option<Span>,
    /// From its start to the last byte at the receiver; `None`: as above.
    pub arrived: Option<Span>,
    /// Payload that the receiver had in order when the flow was over; until then zero.
    pub received: Bytes,
    /// For how long On-Ramp held its head.
    pub held: Span,
    /// Packets sent again.
    pub retransmissions: u32,
    /// Times that it waited in vain for an acknowledgement.
    pub timeouts: u32,
}

/// Counters of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events handled.
    pub events: u64,
    /// Transmissions of data and acknowledgements over one link each.
    pub packet_hops: u64,
    /// Data packets sent, again or not.
    pub data_packets: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Times that a flow waited in vain for an acknowledgement.
    pub timeouts: u64,
    /// OR-ACKs sent.
    pub or_acks: u64,
    /// Packets dropped at switches.
    pub drops: u64,
    /// Packets dropped in hosts, by CoDel.
    pub host_drops: u64,
    /// Packets marked CE.
    pub marks: u64,
    /// PFC pauses sent.
    pub pauses: u64,
}

impl Flow {
    /// Payload, if it has an end.
    pub(crate) fn size(&self) -> Option<u64> {
        match self.work {
            Work::Send(size) => Some(size.get()),
            Work::Until(_) => None,
        }
    }
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.events += other.events;
        self.packet_hops += other.packet_hops;
        self.data_packets += other.data_packets;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.or_acks += other.or_acks;
        self.drops += other.drops;
        self.host_drops += other.host_drops;
        self.marks += other.marks;
        self.pauses += other.pauses;
    }
}

impl Hosts {
    /// Asked where hosts are NICs.
    pub(crate) fn nic(&self) -> &Nic {
        match self {
            Hosts::Nic(nic) => nic,
            Hosts::Kernel(_) => unreachable!("asked of NICs"),
        }
    }

    /// Asked where hosts are kernels.
    pub(crate) fn kernel(&self) -> &Kernel {
        match self {
            Hosts::Kernel(kernel) => kernel,
            Hosts::Nic(_) => unreachable!("asked of kernel hosts"),
        }
    }

    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Hosts::Kernel(_))
    }

    /// What packets carry for their senders.
    pub(crate) fn feedback(&self) -> Feedback {
        match self {
            Hosts::Nic(nic) => nic.algorithm.feedback(),
            Hosts::Kernel(_) => Feedback::Marks,
        }
    }

    /// Payload of a full packet.
    pub(crate) fn payload(&self) -> u16 {
        match self {
            Hosts::Nic(nic) => nic.payload,
            Hosts::Kernel(_) => MSS,
        }
    }
}

impl Nic {
    /// The HPCC authors' simulator's.
    pub fn reference(algorithm: Algorithm) -> Nic {
        Nic {
            algorithm,
            payload: 1000,
            nack_interval: Span::from_us(500),
            piggyback: false,
            hold_acks: true,
            timeout: None,
        }
    }

    /// The same with a preset's congestion control, for a line rate.
    pub fn of(preset: &Preset, line: Rate) -> Nic {
        Nic {
            hold_acks: preset.hold_acks,
            ..Nic::reference((preset.algorithm)(line))
        }
    }
}

impl From<Marks> for Ecn {
    fn from(marks: Marks) -> Ecn {
        Ecn {
            min: marks.min,
            max: marks.max,
            max_fraction: marks.max_fraction,
            steps: None,
            at_enqueue: false,
        }
    }
}

impl Ecn {
    /// `length` of a port at the hosts' rate `line`, at a port of `rate`.
    pub(crate) fn at_rate(length: Bytes, line: Rate, rate: Rate) -> u64 {
        let bytes = u128::from(length.get()) * u128::from(rate.bits_per_s());
        (bytes / u128::from(line.bits_per_s())) as u64
    }
}
