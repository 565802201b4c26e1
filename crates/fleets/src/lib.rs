//! Fleets of simulated hosts: the protocol of `onramp-clock` on simulated time, network and etcd.
//!
//! Does: a model of etcd, as far as a host's registration uses it ([`etcd`]).
//! Does not: read clocks, open sockets or start threads; the same calls give the same results.
#![warn(missing_docs)]

pub mod etcd;
