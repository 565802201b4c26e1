#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { onramp_fuzz::run("config", bytes); });
