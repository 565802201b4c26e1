//! Observation of a simulation: captures, samples of ports, delays.

pub(crate) mod capture;
pub(crate) mod delays;
pub(crate) mod frame;
pub(crate) mod probe;
