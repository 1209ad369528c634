//! Messages between the processes of a pipeline.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_sockets::fuzz::pipeline(bytes));
