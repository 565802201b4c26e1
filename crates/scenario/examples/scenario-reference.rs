// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Prints docs/scenario.md.

fn main() {
    print!("{}", onramp_scenario::explain_markdown());
}
