// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Captures kept in memory.

use onramp_sim::Output;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// What several hands write to, and one reads.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A capture for each of some ports.
pub struct Captures(Vec<(String, Shared)>);

impl Captures {
    pub fn of(ports: &[&str]) -> Captures {
        let named = ports
            .iter()
            .map(|port| (port.to_string(), Shared::default()));
        Captures(named.collect())
    }

    /// For `Watch`.
    pub fn outputs(&self) -> Vec<(String, Output)> {
        let output = |(port, out): &(String, Shared)| -> (String, Output) {
            (port.clone(), Box::new(out.clone()))
        };
        self.0.iter().map(output).collect()
    }

    /// What has been written, by port.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        let bytes = |(_, out): &(String, Shared)| out.0.lock().unwrap().clone();
        self.0.iter().map(bytes).collect()
    }
}
