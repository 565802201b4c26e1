// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A packet-level simulator of datacentre networks: hosts with RDMA-like NICs or Linux TCP, switches
//! with shared buffers, the papers' congestion controls and On-Ramp, to the picosecond.
//!
//! [`Simulation`] is one network with its traffic; [`run`] makes one of a scenario and reports it.
//! docs/simulator.md describes the model and its validation.
//!
//! Handles events, packets, queues, routes, congestion controls, and runs of scenarios, also on several
//! threads. Does not read files or clocks, and does not know the text of scenarios. Every input is an
//! argument, so the same inputs give the same bytes for any number of threads.
//!
//! ```
//! use onramp_cc::nic::{hpcc, Algorithm};
//! use onramp_sim::{Buffer, Config, Flow, Hosts, Line, Nic, Simulation, Switch, Topology};
//! use onramp_scenario::{Op, Work};
//! use onramp_units::{Bytes, Span, Time};
//!
//! let line = Line { rate: "100 Gbit/s".parse()?, delay: Span::from_us(1) };
//! let hpcc = Algorithm::Hpcc(hpcc::Params::reference(line.rate));
//! let switch = Switch::new(Buffer::Lossless(Bytes::new(32 << 20)));
//! let config = Config::new(Hosts::Nic(Nic::reference(hpcc)), switch);
//! let work = Work::Send(Bytes::new(1));
//! let flow = Flow { start: Time::ZERO, src: 0, dst: 1, work, op: Op::Write };
//! let mut simulation = Simulation::new(config, &Topology::star(2, line)?, vec![flow])?;
//! simulation.run_until(Time::from_ticks(1_000_000_000));
//! // Four lines of 1 us; 91 B there and 88 B back, twice each.
//! let fct = Span::from_us(4) + Span::from_ps(2 * (91 + 88) * 80);
//! assert_eq!(simulation.outcomes()[0].acked, Some(fct));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

pub mod conformance;
mod deadlock;
mod domain;
mod engine;
mod flows;
mod host;
mod net;
pub mod run;
mod simulation;
mod tcp;
mod watch;

pub use deadlock::Deadlock;
pub use domain::Step;
pub use engine::rounding::Rounding;
pub use flows::chains::Chains;
pub use flows::flow::{Flow, Outcome};
pub use flows::list::{parse as parse_flow_list, FlowListError};
pub use host::clock::ClockErrors;
pub use host::config::{Config, Group, Hosts, Kernel, Nic, Probing};
pub use host::site::huygens::ClockWindow;
pub use net::config::{Buffer, Switch};
pub use net::counters::Counters;
pub use net::ecmp::flow_ports;
pub use net::fabric::port::PortState;
pub use net::partition::Partition;
pub use net::port_name::UnknownPort;
pub use net::topology::{Line, Link, NodeId, Topology, TopologyError, MAX_HOPS};
pub use onramp_cc::path::hash::address;
pub use onramp_cc::switch::{Ecn, Rule};
pub use simulation::{ConfigError, Simulation};
pub use watch::capture::{CaptureError, Output};
