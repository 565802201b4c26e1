//! Hosts: RDMA-like NICs ([`nic`]) or Linux TCP ([`kernel`]), On-Ramp at both, and their clocks.

pub(crate) mod clock;
pub(crate) mod edge;
pub(crate) mod huygens;
pub(crate) mod kernel;
pub(crate) mod nic;
