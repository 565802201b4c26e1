// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of bpf/cc/ for this host's kernel: loads and unloads them.
use anyhow::{bail, Context, Result};
use onramp_agent::config::Offered;
use onramp_cc::{Cc, Parameter, ParameterValue, Tuning};
use onramp_kernel_cc as kernel;

use crate::args::key_value;

pub const EXAMPLE: &str = "Example: onramp cc load tbtcp --set k=2\n\
    Then, for all connections:  sysctl net.ipv4.tcp_congestion_control=tbtcp\n\
    Or for those of a route:    ip route change 10.0.0.0/8 dev eth0 congctl tbtcp\n\
    rapid needs its programs at the devices of both ends: onramp cc load rapid --dev eth0";

#[derive(clap::Args)]
pub struct LoadArgs {
    /// As `onramp cc list` shows it
    #[arg(value_parser = names(), hide_possible_values = true)]
    name: String,
    /// Set a parameter, e.g. --set eta=0.2; repeat it for more. They are the keys `cc.NAME.*` of scenarios
    #[arg(long, value_name = "PARAMETER=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Attach the programs that rapid needs to this device; repeat it for more. If rapid is loaded already, only that
    #[arg(long, value_name = "DEVICE")]
    dev: Vec<String>,
}

#[derive(clap::Args)]
pub struct UnloadArgs {
    /// As `onramp cc list` shows it
    #[arg(value_parser = names(), hide_possible_values = true)]
    name: String,
}

/// Those that can be loaded; the kernel's side refuses others with a reason.
fn names() -> Offered {
    Offered(kernel::names().collect())
}

/// The congestion controls that the kernel has.
pub fn here() -> Result<Vec<String>> {
    kernel::available().context("the kernel does not list its congestion controls")
}

pub fn unload(args: &UnloadArgs) -> Result<()> {
    let name = &args.name;
    kernel::unload(name)?;
    println!("the kernel gives {name} to no new connection");
    Ok(())
}

pub fn load(args: &LoadArgs) -> Result<()> {
    let LoadArgs { name, set, dev } = args;
    let tuning = tuning(name, set)?;
    let adds_devices = !dev.is_empty() && set.is_empty() && kernel::is_loaded(name);
    if !adds_devices {
        kernel::load(name, &tuning)?;
        println!("the kernel has {name} now; sysctl net.ipv4.tcp_congestion_control={name} makes it the default");
    }
    for dev in dev {
        if let Err(error) = kernel::hook(name, dev) {
            if !adds_devices {
                kernel::unload(name)?;
            }
            return Err(error.into());
        }
        println!("{dev} has the programs of {name} now; at senders it also needs fq or On-Ramp's qdisc, and segments of one packet: ip link set {dev} gso_max_segs 1");
    }
    if kernel::needs_hooks(name) && dev.is_empty() {
        println!(
            "without --dev connections of {name} get no time stamps, and their window is Reno's"
        );
    }
    Ok(())
}

/// Whether this kernel has it, or what gives it one.
pub fn in_kernel(cc: Cc, here: &[String]) -> String {
    let name = cc.name();
    if here.iter().any(|other| other == name) {
        "yes".to_owned()
    } else if kernel::names().any(|other| other == name) {
        let devices = if kernel::needs_hooks(name) {
            " --dev DEV"
        } else {
            ""
        };
        format!("onramp cc load {name}{devices}")
    } else if cc.in_linux() {
        format!("modprobe tcp_{name}")
    } else if cc.is_nic() {
        "no: it is for NICs".to_owned()
    } else {
        "no: only simulated".to_owned()
    }
}

/// The parameters that are set, within their bounds.
fn tuning(name: &str, set: &[(String, String)]) -> Result<Tuning> {
    let mut tuning = Tuning::default();
    // The kernel's side refuses unknown names.
    let Some(cc) = Cc::named(name) else {
        return Ok(tuning);
    };
    for (key, text) in set {
        let Some(parameter) = cc.parameters().iter().find(|p| p.name == key) else {
            let known: Vec<_> = cc.parameters().iter().map(|p| p.name).collect();
            bail!(
                "--set {key}: {name} has no parameter {key}, but {}",
                known.join(", ")
            );
        };
        tuning.set(parameter.name, setting(parameter, text)?);
    }
    Ok(tuning)
}

fn setting(parameter: &Parameter, text: &str) -> Result<ParameterValue> {
    let read = parameter.bounds.read(text);
    match read.filter(|setting| parameter.bounds.contain(*setting)) {
        Some(setting) => Ok(setting),
        None => {
            let [least, greatest] = parameter.bounds.ends();
            bail!(
                "--set {}={text}: expected {least} to {greatest}",
                parameter.name
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(key: &str, value: &str) -> String {
        let set = [(key.to_owned(), value.to_owned())];
        tuning("tbtcp", &set).unwrap_err().to_string()
    }

    #[test]
    fn wrong_parameters_name_place_value_and_bound() {
        assert_eq!(error("eta", "7"), "--set eta=7: expected 1/1000 to 1");
        assert_eq!(error("k", "x"), "--set k=x: expected 1 to 64");
        assert_eq!(
            error("q", "1"),
            "--set q: tbtcp has no parameter q, but eta, k"
        );
    }

    #[test]
    fn those_of_nics_and_of_linux_say_why_they_are_not_here() {
        let said = |name| in_kernel(Cc::named(name).unwrap(), &["cubic".to_owned()]);
        assert_eq!(said("cubic"), "yes");
        assert_eq!(said("bbr"), "modprobe tcp_bbr");
        assert_eq!(said("tbtcp"), "onramp cc load tbtcp");
        assert_eq!(said("rapid"), "onramp cc load rapid --dev DEV");
        assert_eq!(said("scalable"), "no: only simulated");
        assert_eq!(said("hpcc"), "no: it is for NICs");
    }
}
