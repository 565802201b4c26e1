// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp scenario new`: writes a commented scenario to start from. It overwrites nothing.
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use onramp_runs::count;

use crate::output::write_new;

pub const EXAMPLES: &str = "\
Examples: onramp scenario new incast
          onramp scenario new fabric mine.toml";

/// What each template has a file for in templates/.
#[derive(Clone, Copy, ValueEnum)]
pub enum Template {
    /// Servers answer one host at the same time; for simulator and rack
    Incast,
    /// Two groups of hosts share one line; for the simulator
    Dumbbell,
    /// Racks below spines, with RDMA-like NICs; for the simulator
    Fabric,
}

#[derive(clap::Args)]
pub struct Args {
    /// What the scenario starts from
    template: Template,
    /// File to write; one that exists is not overwritten [default: the template's name and .toml]
    file: Option<PathBuf>,
}

impl Template {
    fn name(self) -> &'static str {
        match self {
            Template::Incast => "incast",
            Template::Dumbbell => "dumbbell",
            Template::Fabric => "fabric",
        }
    }

    /// The scenario, whose comments name this file in commands.
    pub fn text(self, file: &str) -> String {
        let text = match self {
            Template::Incast => include_str!("../../templates/incast.toml"),
            Template::Dumbbell => include_str!("../../templates/dumbbell.toml"),
            Template::Fabric => include_str!("../../templates/fabric.toml"),
        };
        text.replace("FILE", file)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let name = args.template.name();
    let of_template = || PathBuf::from(format!("{name}.toml"));
    let path = args.file.clone().unwrap_or_else(of_template);
    let shown = path.display().to_string();
    let other = format!("name another file: onramp scenario new {name} NAME.toml");
    write_new(&path, &args.template.text(&shown), &other)?;
    let (scenario, _) = super::read(&path, &[])?;
    let runs = count(scenario.runs().len(), "run");
    println!("{shown}: {runs}: {}", scenario.title());
    println!("simulate it: onramp sim run {shown}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_new_scenario_name_its_file() {
        for template in Template::value_variants() {
            let text = template.text("mine.toml");
            assert!(
                text.contains("onramp sim run mine.toml\n")
                    || text.contains("onramp sim run mine.toml ")
            );
            assert!(!text.contains("FILE"));
        }
    }
}
