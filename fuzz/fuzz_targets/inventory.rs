//! Inventories of `ombx cluster`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_cluster::fuzz::inventory(bytes));
