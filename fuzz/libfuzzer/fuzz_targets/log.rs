#![no_main]
// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { onramp_fuzz::run("log", bytes); });
