// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The capabilities of a daemon: it drops all that it does not need before it starts its threads and attaches
//! anything, so that an intruder gains little. Files must therefore belong to root, or be readable by all.
use anyhow::{Context, Result};
use rustix::{
    process::{setrlimit, Resource, Rlimit},
    thread::{capabilities, set_capabilities, set_no_new_privs, CapabilitySet, CapabilitySets},
};

/// What the data path needs: qdiscs and tcx; programs and maps; programs that read kernel structures.
pub fn of_data_path() -> CapabilitySet {
    CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::PERFMON
}

/// What a synchronised clock needs: a large receive buffer, and the system clock with `--discipline`.
pub fn of_clock(disciplines: bool) -> CapabilitySet {
    let sets_clock = match disciplines {
        true => CapabilitySet::SYS_TIME,
        false => CapabilitySet::empty(),
    };
    CapabilitySet::NET_ADMIN | sets_clock
}

/// Lifts the limit of locked memory, to which kernels before 5.11 charge BPF maps. That needs a capability which the
/// daemon then drops; where it lacks, the kernel refuses the maps and says why.
pub fn allow_maps() {
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    let _ = setrlimit(Resource::Memlock, unlimited);
}

/// Drops all capabilities but `needed`, for this thread and for all that it starts. No program that they execute
/// regains them.
pub fn keep_only(needed: CapabilitySet) -> Result<()> {
    let dropping = "dropping the capabilities that the daemon does not need";
    let kept = capabilities(None).context(dropping)?.permitted & needed;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).context(dropping)?;
    set_no_new_privs(true).context(dropping)
}
