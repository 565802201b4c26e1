//! What watches a simulation: captures, probes of ports, delays, what senders know.

pub(crate) mod capture;
pub(crate) mod delays;
pub(crate) mod frame;
pub(crate) mod probe;
pub(crate) mod signals;
