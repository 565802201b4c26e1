//! The configuration of a simulation: everything beside its topology and its flows.

use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::host::clock::ClockErrors;
use crate::host::huygens::Probing;
use crate::host::kernel::{HEADER, MSS};
use crate::host::nic::DATA_HEADER;
use crate::net::config::Switch;
use onramp_cc::nic::{Algorithm, Feedback, Preset};
use onramp_cc::tcp::TcpAlgorithm;
use onramp_scenario::Transport;
use onramp_units::{Bytes, Rate, Span};
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

impl Config {
    /// Hosts and switches with nothing else: exact times and clocks, no On-Ramp, seed 1.
    pub fn new(hosts: Hosts, switch: Switch) -> Config {
        Config {
            rounding: Rounding::Exact,
            hosts,
            law: None,
            managed: None,
            clocks: ClockErrors::default(),
            reuse: None,
            or_ack_every: 1,
            chains: None,
            probing: None,
            switch,
            seed: 1,
        }
    }
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

impl Hosts {
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

    /// Headers of a data packet on an idle line, telemetry not counted.
    pub(crate) fn header(&self) -> u16 {
        match self {
            Hosts::Nic(_) => DATA_HEADER,
            Hosts::Kernel(_) => HEADER,
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
