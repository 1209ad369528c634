//! The first words of whoever connects.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_sockets::fuzz::door(bytes));
