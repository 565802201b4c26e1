//! Gives the kernel the run's congestion control if it is one of ours (bpf/cc).

use super::dilation::Dilation;
use super::sys::NetNs;
use crate::error::{Doing, Error, Result};
use onramp_cc::{Cc, Setting, Tuning};
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
        let tuning = slowed(cc, run, Dilation::new(run.time_dilation));
        onramp_kernel_cc::load(cc.name(), &tuning).map_err(Error::CongestionControl)?;
        Ok(Some(Loaded(cc.name())))
    }

    /// Gives the devices of the hosts the programs that it needs there.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn hook(&self, hosts: &[NetNs]) -> Result<()> {
        if !onramp_kernel_cc::needs_hooks(self.0) {
            return Ok(());
        }
        for host in hosts {
            let hooked = host.within(|| onramp_kernel_cc::hook(self.0, "eth0"));
            hooked
                .doing(|| "entering a namespace".into())?
                .map_err(Error::CongestionControl)?;
        }
        Ok(())
    }
}

/// All parameters of `cc`, in the rack's time.
fn slowed(cc: Cc, run: &Run, dilation: Dilation) -> Tuning {
    let mut tuning = Tuning::default();
    for parameter in cc.parameters() {
        let default = || cc.default_of(parameter.name, run.network.link.rate);
        let real = run.tuning.get(parameter.name).or_else(default);
        let slow = match real.expect("every parameter has a default") {
            Setting::Span(span) => Setting::Span(dilation.slow(span)),
            Setting::Rate(rate) => Setting::Rate(dilation.slow_rate(rate)),
            other => other,
        };
        tuning.set(parameter.name, slow);
    }
    tuning
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = onramp_kernel_cc::unload(self.0) {
            tracing::warn!("{error}");
        }
    }
}
