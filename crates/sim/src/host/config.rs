// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of a simulation: all input except topology and flows.

use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::host::clock::ClockErrors;
use crate::host::rtts::RttErrors;
use crate::net::config::Switch;
use onramp_cc::law::{CustomLaw, FlowFacts};
use onramp_cc::nic::{Algorithm, Feedback, Preset};
use onramp_cc::tcp::TcpAlgorithm;
use onramp_scenario::Transport;
use onramp_sync::probe::Stamps;
use onramp_units::{Bytes, Rate, Span};
use std::sync::Arc;

/// Payload of a full packet: 1500 B less IPv4 and TCP headers with time stamps.
pub(crate) const MSS: u16 = 1448;
/// Ethernet, IPv4 and TCP headers, which are all of an acknowledgement.
pub(crate) const HEADER: u16 = 66;
/// Ethernet (here PPP), IPv4, UDP and sequence number, before the data of a NIC's packet.
pub(crate) const DATA_HEADER: u16 = 48;

/// Settings of all hosts and switches.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Exact, or as in the HPCC authors' ns-3, for comparison. In ns-3 times are whole nanoseconds, a NIC
    /// also considers blocked flows for its next wake, and duplicates are not acknowledged.
    pub rounding: Rounding,
    /// The hosts without a group.
    pub hosts: Hosts,
    /// Their law of On-Ramp, if any.
    pub law: Option<Law>,
    /// Errors of the hosts' clocks, which the law uses.
    pub clocks: ClockErrors,
    /// A new flow uses the last delay to its receiver, unless that is older than this.
    pub reuse: Option<Span>,
    /// Packets with a multiple of this number of bytes of their connection get an OR-ACK; 1: all packets.
    pub or_ack_every: u32,
    /// Flows that wait for others.
    pub chains: Option<Arc<Chains>>,
    /// Clock synchronisation, if any.
    pub probing: Option<Probing>,
    /// Fraction of data packets and read requests that the links of receiving hosts lose.
    pub loss: f64,
    /// The switches.
    pub switch: Switch,
    /// Hosts with settings of their own. No host is in two groups.
    pub groups: Vec<Group>,
    /// Seed of random marks and clocks.
    pub seed: u64,
}

/// How hosts probe each other.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Probing {
    /// What stamps probes.
    pub stamps: Stamps,
    /// Number of hosts that each host probes.
    pub degree: u32,
    /// Between two pairs of an edge.
    pub interval: Span,
    /// Between two corrections.
    pub window: Span,
}

/// Hosts with settings of their own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// Their numbers.
    pub members: Vec<u32>,
    /// Their settings; the kind is that of all other hosts.
    pub hosts: Hosts,
    /// Their law of On-Ramp, if any.
    pub law: Option<Law>,
    /// As `Config::reuse`.
    pub reuse: Option<Span>,
}

impl Config {
    /// Hosts and switches with exact times and clocks, no On-Ramp, and seed 1.
    pub fn new(hosts: Hosts, switch: Switch) -> Config {
        Config {
            rounding: Rounding::Exact,
            hosts,
            law: None,
            clocks: ClockErrors::default(),
            reuse: None,
            or_ack_every: 1,
            chains: None,
            probing: None,
            loss: 0.0,
            switch,
            groups: Vec::new(),
            seed: 1,
        }
    }
}

impl Config {
    /// The hosts without a group, then each group's.
    pub(crate) fn each_hosts(&self) -> impl Iterator<Item = &Hosts> {
        std::iter::once(&self.hosts).chain(self.groups.iter().map(|group| &group.hosts))
    }

    /// The law of the hosts without a group, then each group's.
    pub(crate) fn laws(&self) -> impl Iterator<Item = Option<&Law>> + '_ {
        std::iter::once(self.law.as_ref()).chain(self.groups.iter().map(|group| group.law.as_ref()))
    }

    /// Additional content of all packets: what the most demanding hosts need.
    pub(crate) fn feedback(&self) -> Feedback {
        let needed = |feedback| self.each_hosts().any(|hosts| hosts.feedback() == feedback);
        let all = [Feedback::Int, Feedback::TimeStamp];
        let most = all.into_iter().find(|feedback| needed(*feedback));
        most.unwrap_or(Feedback::Marks)
    }
}

/// A law of On-Ramp. The rate of each host's line is added later.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Of `law/`.
    BuiltIn(onramp_law::Config),
    /// Of another crate.
    Other(OtherLaw),
}

/// A law of another crate, and what it knows of each flow beside the line.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLaw {
    /// With its parameters.
    pub law: CustomLaw,
    /// T.
    pub threshold: Span,
    /// No head is held longer.
    pub max_pause: Span,
    /// Payload of a full packet.
    pub payload: Bytes,
}

impl From<onramp_law::Config> for Law {
    fn from(config: onramp_law::Config) -> Law {
        Law::BuiltIn(config)
    }
}

impl Law {
    /// The built-in law that measures: itself, or law `off` for one of another crate.
    pub(crate) fn measures(&self) -> onramp_law::Config {
        match self {
            Law::BuiltIn(config) => *config,
            Law::Other(other) => onramp_law::Config::new(onramp_law::Law::Off, other.threshold),
        }
    }
}

impl OtherLaw {
    /// What it knows of a flow on a line of this rate.
    pub(crate) fn facts(&self, line_rate: Rate) -> FlowFacts {
        FlowFacts {
            line_rate,
            payload: self.payload,
            threshold: self.threshold,
            max_pause: self.max_pause,
        }
    }
}

/// Hosts of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Hosts {
    /// RDMA-like NICs.
    Nic(Nic),
    /// Linux TCP on plain NICs.
    Kernel(Kernel),
}

/// A host's RDMA-like NIC.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Nic {
    /// Congestion control of every flow.
    pub algorithm: Algorithm,
    /// Payload of a full packet.
    pub payload: u16,
    /// Shortest time between two requests of a receiver for the same packet.
    pub nack_interval: Span,
    /// Acknowledgements carry arrival times; there are no OR-ACKs.
    pub piggyback: bool,
    /// A pause of the data class also stops acknowledgements here. At switches they are always in the data
    /// class.
    pub hold_acks: bool,
    /// Go back after this time without progress; `None`: never, for a network without loss.
    pub timeout: Option<Span>,
    /// Errors of the round-trip times of bursts.
    pub rtt_errors: RttErrors,
}

/// A host's kernel.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// Congestion control of connections that it sends on.
    pub algorithm: TcpAlgorithm,
    /// Its constants.
    pub transport: Arc<Transport>,
    /// Largest segment handed to the NIC.
    pub gso: Bytes,
    /// Packets that are handled together are acknowledged together.
    pub gro: bool,
    /// Segments leave at TCP's pacing rate, as with sch_fq; those of BBR always do.
    pub paced: bool,
    /// Segments leave at TCP's pacing rate, as with On-Ramp's own.
    pub edge_paced: bool,
    /// It answers data with OR-ACKs.
    pub or_acks: bool,
    /// Flows use idle connections, if there are any.
    pub persistent: bool,
    /// Its queueing discipline drops segments that have waited too long, as sch_fq_codel does.
    pub codel: bool,
    /// Time between the first packet and the NIC's interrupt.
    pub coalescing: Span,
    /// The NIC takes segments while fewer bytes than this wait for the wire; zero: one when the wire is free.
    pub nic_queue: Bytes,
    /// A segment's stamp is the time at which the NIC sends it.
    pub stamps_at_wire: bool,
}

impl Hosts {
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Hosts::Kernel(_))
    }

    /// Additional content of packets.
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
            rtt_errors: RttErrors::NONE,
        }
    }

    /// The HPCC authors' simulator's NIC with a preset's congestion control, for a line rate.
    pub fn of(preset: &Preset, line: Rate) -> Nic {
        Nic {
            hold_acks: preset.hold_acks,
            ..Nic::reference((preset.algorithm)(line))
        }
    }
}
