// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Scenario files: TOML text into experiments that are valid by construction.
//!
//! Does: check a text against one table of keys, resolve its cases and sweep into [`Run`]s, and
//! draw each run's traffic plan. Does not: open files, know devices, or measure.
//!
//! [`Scenario::parse`] is where to start; [`plan`] gives a run's traffic, [`rack_limits`] what the
//! rack cannot do with it. What a file may say: docs/scenario.md, which [`explain_markdown`]
//! writes.
#![warn(missing_docs)]

mod clock;
mod document;
mod error;
mod experiment;
mod explain;
mod files;
mod flow_list;
mod fraction;
mod graph;
mod groups;
mod guard;
mod host;
mod hosts;
mod key;
mod keys;
mod limits;
mod measure;
mod network;
mod on_ramp;
mod resolve;
mod scenario;
mod setting;
mod topology;
mod traffic;
mod types;
mod values;
mod workload;
mod write;

pub use clock::*;
pub use onramp_cc::law::ControlLaw;
pub use onramp_cc::{Cc, Tuning};

pub use error::{Error, Errors, Origin, Problem};
pub use explain::{explain, explain_markdown};
pub use files::NO_FILES;
pub use flow_list::{read as read_flow_list, read_hpcc, FlowListError, ListedFlow};
pub use fraction::Fraction;
pub use graph::{Edge, Graph, GraphError, Link, NodeId};
pub use groups::{Group, HostSettings};
pub use guard::quietly;
pub use host::*;
pub use hosts::{HostId, HostKind, HostSet};
pub use key::{both, simulated, Scope};
pub use limits::*;
pub use measure::*;
pub use network::*;
pub use on_ramp::*;
pub use scenario::Scenario;
pub use topology::{register_shape, shape, shapes, Builder, Count, Shape, ShapeKind, Size};
pub use traffic::plan::{
    expected_flows, plan, rack_plan, try_plan, After, Arrival, Plan, Purpose, Random, Work,
};
pub use traffic::{
    kind as traffic_kind, kinds as traffic_kinds, register_traffic, Arrivals, Generator, Measured,
    Op, Traffic, TrafficEntry, TrafficKind,
};
pub use types::*;
pub use values::{Alpha, OneHost, Receivers, Sources};
pub use workload::{BuiltIn, Distribution, DistributionError};
