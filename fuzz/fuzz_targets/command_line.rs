//! Command lines with one word per line. Nothing is started.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_cli::fuzz::command_line(bytes));
