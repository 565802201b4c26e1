//! Gives the kernel the run's congestion control if it is one of ours (bpf/cc).

use crate::error::{Error, Result};
use onramp_scenario::Run;

/// One of ours, in the kernel until this is dropped.
#[derive(Debug)]
pub struct Loaded(&'static str);

impl Loaded {
    /// None if the kernel has the run's congestion control by itself.
    ///
    /// # Errors
    /// The kernel refuses it, or has one of this name, with parameters that are not the run's.
    pub fn new(run: &Run) -> Result<Option<Loaded>> {
        let cc = run.host.cc;
        if !cc.is_loaded_by_us() {
            return Ok(None);
        }
        onramp_kernel_cc::load(cc.name(), &run.tuning).map_err(Error::CongestionControl)?;
        Ok(Some(Loaded(cc.name())))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = onramp_kernel_cc::unload(self.0) {
            tracing::warn!("{error}");
        }
    }
}
