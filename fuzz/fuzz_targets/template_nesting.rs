//! Templates that are as deep as can be.
#![no_main]

#[allow(dead_code, reason = "the other targets use the rest")]
#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::nesting::check(data));
