//! Frames of a session over sockets, and the messages in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_sockets::fuzz::frames(bytes));
