//! Any messages with any lengths before them.
#![no_main]

#[allow(dead_code, reason = "the other targets use the rest")]
#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::length::check(data));
