// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `cargo bench -p onramp-bench --bench cost`: what On-Ramp costs, in instructions (docs/cost.md).

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("guest") => onramp_bench::guest::run(&arguments[1..]),
        _ => onramp_bench::host::run(&arguments),
    }
}
