// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Prints docs/results.md.

fn main() {
    print!("{}", onramp_results::explain_markdown());
}
