//! Clock sources of the data path. A source fills the parameters and grants a lease; when nobody
//! renews it, the kernel side stops holding. Does not measure anything.
use super::abi::onr_clock_params;

/// The clock of a fleet that lives on one kernel: fleet time is the monotonic clock.
pub struct Local {
    /// How long the kernel side may trust the clock after the last renewal, ns.
    pub lease_ns: i64,
}

impl Local {
    /// Parameters valid from now (CLOCK_MONOTONIC, ns) for one lease.
    pub fn renew(&self, now_mono_ns: i64) -> onr_clock_params {
        onr_clock_params {
            offset_ns: 0,
            drift_q32: 0,
            reference_mono_ns: 0,
            sigma_ns: 0,
            lease_expires_mono_ns: now_mono_ns + self.lease_ns,
        }
    }
}

/// CLOCK_MONOTONIC, ns: the clock that the BPF programs read.
pub fn now_mono_ns() -> i64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .expect("CLOCK_MONOTONIC exists on Linux");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}
