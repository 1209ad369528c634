//! Lists of sizes, durations and the other small grammars of options.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_core::fuzz::grammars(bytes));
