//! What of a run is watched beside its results: packets of ports, series of ports and flows.
use std::{fs::File, io::BufWriter, path::Path};

use anyhow::{Context, Result};
use onramp_results::part;
use onramp_scenario::Scenario;
use onramp_sim::{
    run::{self, check_watch},
    Output,
};

#[derive(clap::Args, Default)]
pub struct Watch {
    /// Write the packets that ports send to PORT-<run>.pcapng: host3 is host 3's NIC,
    /// switch0-host3 the port of switch 0 to host 3, switch0-switch4 that to switch 4
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pcap: Vec<String>,
    /// Add the series of places to series.parquet: ports as above, flow7 (row 7 of its run in
    /// flows.parquet), ports (all), flows (all)
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    series: Vec<String>,
}

impl Watch {
    /// Checks that every run has what is to be watched, before anything is written.
    pub fn check(&self, scenario: &Scenario) -> Result<()> {
        for run in scenario.runs() {
            check_watch(run, &self.pcap, &self.series).context("--pcap, --series")?;
        }
        Ok(())
    }

    /// What run `index` watches, its captures opened in `out`.
    pub fn open(&self, out: &Path, index: usize) -> Result<run::Watch> {
        let open = |port: &String| {
            let path = part(out, port, index, "pcapng");
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            let output: Output = Box::new(BufWriter::new(file));
            Ok((port.clone(), output))
        };
        Ok(run::Watch {
            captures: self.pcap.iter().map(open).collect::<Result<_>>()?,
            series: self.series.clone(),
        })
    }
}
