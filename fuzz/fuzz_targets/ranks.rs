//! Messages that rank 0 receives from other ranks.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_core::fuzz::ranks(bytes));
