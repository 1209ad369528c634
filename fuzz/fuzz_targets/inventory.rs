//! Inventories of `cargo xtask cluster-bench`.
#![no_main]
#![expect(dead_code, reason = "xtask uses the rest of its files")]

#[path = "../../verify/toolchain/src/failure.rs"]
mod failure;
#[path = "../../xtask/src/cluster/inventory.rs"]
mod inventory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inventory::any(bytes));
