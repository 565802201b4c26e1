// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [measure]: the ports that results measure.

use crate::key::{simulated, Scope};
use onramp_keys::Absent::Without;
use onramp_keys::{section, Value, Wrong};

section! {
    /// The ports that results measure.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Measure in "measure" with Scope {
        ports: Vec<PortName> = Without("the switch port to the measured host"), simulated(),
            "Ports that are measured: `[\"switch0-switch1\", \"busiest\"]`. `switch0-host3` is the port of switch 0 to host 3, `host3` the NIC of host 3, `busiest` the port of a switch that uses most of its line. The metrics `port.*`, `utilisation` and `queue_us` are those of the first, `ports.PORT.*` those of each.";
    }
}

/// The name of a port, or [`BUSIEST`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortName(pub String);

/// The port of a switch that uses most of its line.
pub const BUSIEST: &str = "busiest";

const LONGEST_NAME: usize = 100;

/// Whether ports and files can have it in their names.
pub(crate) fn is_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(is_of_name)
}

impl Value for PortName {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "PORT";

    fn read(text: &str, (): ()) -> Result<PortName, Wrong> {
        match text.len() <= LONGEST_NAME && is_name(text) {
            true => Ok(PortName(text.to_owned())),
            false => Err(Wrong::unlike::<PortName>(())),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn words((): ()) -> String {
        format!("the name of a port, like \"switch0-host3\", or \"{BUSIEST}\"")
    }
}
