//! The network: topologies, routes, packets, ports, switches.
//!
//! Does not: know what hosts do with packets.

pub(crate) mod ecmp;
pub(crate) mod mail;
pub(crate) mod network;
pub(crate) mod packet;
pub(crate) mod partition;
pub(crate) mod port;
pub(crate) mod port_name;
pub(crate) mod switch;
pub(crate) mod topology;
pub(crate) mod way;
