//! Result files as a page of `ombx report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_cli::fuzz::pages(bytes));
