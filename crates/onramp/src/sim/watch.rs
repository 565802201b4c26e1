//! What of a run is watched on top of its results: packets of ports.
use std::{fs::File, io::BufWriter, path::Path};

use anyhow::{Context, Result};
use onramp_results::part;
use onramp_scenario::Scenario;
use onramp_sim::{run::check_ports, Output};

#[derive(clap::Args, Default)]
pub struct Watch {
    /// Write the packets that ports send to PORT-<run>.pcapng: host3 is host 3's NIC,
    /// switch0-host3 the port of switch 0 to host 3, switch0-switch4 that to switch 4
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pcap: Vec<String>,
}

impl Watch {
    /// Checks that every run has what is to be watched, before anything is written.
    pub fn check(&self, scenario: &Scenario) -> Result<()> {
        for run in scenario.runs() {
            check_ports(run, &self.pcap).context("--pcap")?;
        }
        Ok(())
    }

    /// Opens the captures of run `index`.
    pub fn captures(&self, out: &Path, index: usize) -> Result<Vec<(String, Output)>> {
        let open = |port: &String| {
            let path = part(out, port, index, "pcapng");
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            let output: Output = Box::new(BufWriter::new(file));
            Ok((port.clone(), output))
        };
        self.pcap.iter().map(open).collect()
    }
}
