//! Result files: they are read, written again, printed in every format and compared.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ombx_show::fuzz::results(bytes));
