// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp cc`: congestion controls, in this host's kernel and elsewhere.
#[cfg(feature = "agent")]
mod load;

use anyhow::Result;
use clap::Subcommand;
use onramp_cc::Cc;

#[cfg(not(feature = "agent"))]
use crate::missing;

#[derive(Subcommand)]
pub enum Command {
    /// Show all congestion controls, and where each can run
    List,
    /// Give this host's kernel one of ours. It stays until it is unloaded or the host restarts
    #[cfg(feature = "agent")]
    #[command(after_help = load::EXAMPLE)]
    Load(load::LoadArgs),
    /// Give this host's kernel one of ours (not in this build)
    #[cfg(not(feature = "agent"))]
    Load(missing::Args),
    /// Take one of ours out of this host's kernel. Its connections keep it until they end
    #[cfg(feature = "agent")]
    Unload(load::UnloadArgs),
    /// Take one of ours out of this host's kernel (not in this build)
    #[cfg(not(feature = "agent"))]
    Unload(missing::Args),
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::List => list(),
        #[cfg(feature = "agent")]
        Command::Load(args) => load::load(args),
        #[cfg(feature = "agent")]
        Command::Unload(args) => load::unload(args),
        #[cfg(not(feature = "agent"))]
        Command::Load(_) | Command::Unload(_) => missing::refuse("agent"),
    }
}

#[cfg(feature = "agent")]
fn list() -> Result<()> {
    let here = load::here()?;
    print!("{}", table(Some(&|cc| load::in_kernel(cc, &here))));
    Ok(())
}

#[cfg(not(feature = "agent"))]
fn list() -> Result<()> {
    print!("{}", table(None));
    Ok(())
}

/// A line for each, with `kernel`'s words about this kernel if this build knows it.
fn table(kernel: Option<&dyn Fn(Cc) -> String>) -> String {
    let line = |name: &str, hosts: &str, kernel: Option<String>, about: &str| {
        let kernel = kernel.map_or_else(String::new, |words| format!("{words:30} "));
        format!("{name:14} {hosts:11} {kernel}{about}\n")
    };
    let head = kernel.map(|_| "THIS KERNEL".to_owned());
    let mut out = line("NAME", "SIMULATOR", head, "WHAT");
    for name in onramp_cc::names() {
        let all = || Cc::all().filter(|cc| cc.name() == *name);
        let cc = all().next().expect("it has a name");
        let hosts = match (all().any(|cc| !cc.is_nic()), all().any(Cc::is_nic)) {
            (true, true) => "kernel, NIC",
            (true, false) => "kernel",
            _ => "NIC",
        };
        out += &line(name, hosts, kernel.map(|of| of(cc)), cc.about());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_for_simulations_lists_all_without_a_column_of_the_kernel() {
        let (lean, whole) = (table(None), table(Some(&|_| "yes".to_owned())));
        assert_eq!(lean.lines().count(), 1 + onramp_cc::names().len());
        let head = |text: &str| {
            text.split_whitespace()
                .take(4)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(head(&lean)[..19], *"NAME SIMULATOR WHAT");
        assert_eq!(head(&whole), "NAME SIMULATOR THIS KERNEL");
        assert!(lean.contains("hpcc "), "{lean}");
    }
}
