// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Options that record more of a run: packets of ports, and series of ports and flows.
use std::{collections::BTreeSet, fs::File, io::BufWriter, path::Path};

use anyhow::{Context, Result};
use onramp_scenario::Scenario;
use onramp_sim::{
    run::{self, check_watch},
    Output,
};

#[derive(clap::Args, Default, serde::Serialize)]
pub struct Watch {
    /// Write the packets that ports send to PORT-<run>.pcapng: host3 is the NIC of host 3,
    /// switch0-host3 the port of switch 0 to host 3, switch0-switch4 the port to switch 4
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pcap: Vec<String>,
    /// Add series to series.parquet: a port as above, flow7 (row 7 of its run in flows.parquet),
    /// ports (all), flows (all), rtts (round-trip times that senders measure), pairs (kernel hosts:
    /// delay of a packet, and the last delays that its sender knew), rounds (kernel hosts: marks and
    /// least round-trip time of each round trip of a connection)
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    series: Vec<String>,
}

impl Watch {
    /// Series only, and no packets.
    pub fn series(places: Vec<String>) -> Watch {
        Watch {
            pcap: Vec::new(),
            series: places,
        }
    }

    /// Checks that every run has these ports and flows, before anything is written.
    pub fn check(&self, scenario: &Scenario) -> Result<()> {
        for run in scenario.runs() {
            check_watch(run, &self.pcap, &self.series).context("--pcap, --series")?;
        }
        Ok(())
    }

    /// The series and captures of run `index`, whose files are opened in `out`.
    pub fn open(&self, out: &Path, index: usize) -> Result<run::Watch> {
        let open = |port: &String| {
            let path = out.join(format!("{port}-{index}.pcapng"));
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            let output: Output = Box::new(BufWriter::new(file));
            Ok((port.clone(), output))
        };
        let ports: BTreeSet<&String> = self.pcap.iter().collect();
        Ok(run::Watch {
            captures: ports.into_iter().map(open).collect::<Result<_>>()?,
            series: self.series.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAR: &str = r#"title = "t"
duration = "20 us"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "hpcc"
[[traffic]]
kind = "long"
flows = 2
[sweep]
"network.topology.hosts" = [4, 3]
"#;

    #[test]
    fn a_port_that_one_run_lacks_is_refused() {
        let scenario = Scenario::parse(STAR, "t").unwrap();
        let watch = |pcap: &str, series: &str| Watch {
            pcap: vec![pcap.to_owned()],
            series: vec![series.to_owned()],
        };
        assert!(watch("host2", "flows").check(&scenario).is_ok());
        let error = watch("host3", "flows").check(&scenario).unwrap_err();
        assert!(format!("{error:#}").contains("\"host3\"; there are host0 to host2"));
        assert!(watch("host0", "switch1").check(&scenario).is_err());
    }

    #[test]
    fn a_capture_is_named_by_port_and_run() {
        let out = std::env::temp_dir().join(format!("onramp-watch-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let watch = Watch {
            pcap: vec!["host2".to_owned(); 2],
            series: vec![],
        };
        let names: Vec<String> = watch
            .open(&out, 7)
            .unwrap()
            .captures
            .into_iter()
            .map(|c| c.0)
            .collect();
        assert_eq!(names, ["host2"]);
        assert!(out.join("host2-7.pcapng").exists());
        std::fs::remove_dir_all(&out).unwrap();
        let error = watch.open(&out, 7).err().unwrap();
        assert!(format!("{error:#}").contains("host2-7.pcapng"));
    }
}
