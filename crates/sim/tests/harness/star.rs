// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A network to put traffic on.

/// NICs at one switch.
pub const STAR: &str = r#"title = "t"
duration = "2 ms"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dctcp"
"#;
