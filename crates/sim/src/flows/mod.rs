//! The plan of flows: which flows there are, which wait for others, which share a connection, and what
//! became of each.

pub(crate) mod chains;
pub(crate) mod list;
pub(crate) mod outcomes;
pub(crate) mod streams;
pub(crate) mod table;
