//! The first bytes of a connection to a listener.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_sockets::fuzz::listener(bytes));
