// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp scenario new`: writes a commented scenario to start from. It overwrites nothing.
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Error, Result};
use clap::ValueEnum;
use onramp_runs::count;

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
    fn text(self, file: &str) -> String {
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
    write(&path, &args.template.text(&shown), name)?;
    let (scenario, _) = super::read(&path, &[])?;
    let runs = count(scenario.runs().len(), "run");
    println!("{shown}: {runs}: {}", scenario.title());
    println!("simulate it: onramp sim run {shown}");
    Ok(())
}

fn write(path: &Path, text: &str, template: &str) -> Result<()> {
    let shown = path.display();
    let cannot = || format!("cannot write {shown}");
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "{shown} exists, and is not overwritten; name another file: onramp scenario new {template} NAME.toml"
        ),
        Err(error) => {
            let fix = format!("{}; name a file in a directory that you can write", cannot());
            return Err(Error::new(error).context(fix));
        }
        Ok(file) => file,
    };
    file.write_all(text.as_bytes()).with_context(cannot)
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

    #[test]
    fn a_file_that_exists_is_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("mine.toml");
        write(&path, "first", "incast").expect("it is new");
        let error = write(&path, "second", "incast").expect_err("it exists");
        assert!(error
            .to_string()
            .contains("mine.toml exists, and is not overwritten"));
        assert_eq!(
            std::fs::read_to_string(&path).expect("it is there"),
            "first"
        );
    }
}
