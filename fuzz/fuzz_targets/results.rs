//! Result files: read, written again, in every format, compared.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_results::fuzz::results(bytes));
