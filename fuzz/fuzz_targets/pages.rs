//! Result files that `ombx report` turns into a page.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_cli::fuzz::pages(bytes));
