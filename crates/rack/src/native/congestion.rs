// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Gives the kernel the run's congestion controls that are ours (bpf/cc).

use super::dilation::Dilation;
use super::sys::NetNs;
use crate::error::{Doing, Error, Result};
use onramp_cc::{Cc, ParameterValue, Tuning};
use onramp_scenario::{HostSettings, Run};

/// Those of ours that the run's hosts have, in the kernel until this is dropped.
#[derive(Debug)]
pub struct Loaded(Vec<&'static str>);

impl Loaded {
    /// Empty if the kernel has the run's congestion controls by itself.
    ///
    /// # Errors
    /// The kernel refuses one, or has one of this name, with parameters that are not the run's.
    pub fn new(run: &Run) -> Result<Loaded> {
        let mut loaded = Loaded(Vec::new());
        for HostSettings { host, tuning, .. } in run.each_settings() {
            let name = host.cc.name();
            // Groups with the same one have the same parameters: rack_limits refuses others.
            if host.cc.is_loaded_by_us() && !loaded.0.contains(&name) {
                let tuning = slowed(host.cc, tuning, run);
                onramp_kernel_cc::load(name, &tuning).map_err(Error::CongestionControl)?;
                loaded.0.push(name);
            }
        }
        Ok(loaded)
    }

    /// Gives the devices of hosts the programs that their congestion controls need there.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn hook(&self, run: &Run, hosts: &[NetNs]) -> Result<()> {
        for (host, namespace) in (0..).zip(hosts) {
            let cc = run.settings_of(host).host.cc;
            if !cc.is_loaded_by_us() || !onramp_kernel_cc::needs_hooks(cc.name()) {
                continue;
            }
            let hooked = namespace.within(|| onramp_kernel_cc::hook(cc.name(), "eth0"));
            hooked
                .doing(|| "entering a namespace".into())?
                .map_err(Error::CongestionControl)?;
        }
        Ok(())
    }
}

/// All parameters of `cc`, of which `tuning` has some, in the rack's time.
fn slowed(cc: Cc, tuning: &Tuning, run: &Run) -> Tuning {
    let dilation = Dilation::new(run.time_dilation);
    let mut slowed = Tuning::default();
    for parameter in cc.parameters() {
        let default = || cc.default_of(parameter.name, run.network.link.rate);
        let real = tuning.get(parameter.name).or_else(default);
        let slow = match real.expect("every parameter has a default") {
            ParameterValue::Span(span) => ParameterValue::Span(dilation.slow(span)),
            ParameterValue::Rate(rate) => ParameterValue::Rate(dilation.slow_rate(rate)),
            other => other,
        };
        slowed.set(parameter.name, slow);
    }
    slowed
}

impl Drop for Loaded {
    fn drop(&mut self) {
        for name in &self.0 {
            if let Err(error) = onramp_kernel_cc::unload(name) {
                tracing::warn!("{error}");
            }
        }
    }
}
