//! Suite files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_cli::fuzz::suites(bytes));
