// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes docs/trace.md.
fn main() {
    print!("{}", onramp_trace::reference());
}
