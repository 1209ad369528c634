//! Malformed input for the tests of parsers.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Bytes with a meaning in one of our formats.
const SPECIAL_BYTES: &[u8] = b"\0\n\t\x1b \"',:;=-+.%@#*[]{}()09aeKMx\x7f\x80\xfe\xff";
/// Numbers at or beyond the limits of integer types.
const EXTREME_NUMBERS: [&str; 6] =
    ["4294967295", "4294967296", "18446744073709551615", "1e308", "-1", "99999999999999999999"];

/// Calls `reads` with each seed of a fuzz target, which are the files in `fuzz/seeds/TARGET`, and with `tries` mutated seeds.
///
/// Mutations follow from [`seed`](super::seed). Panics with the input for which `reads` panicked.
pub fn hostile(target: &str, tries: u32, reads: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
    assert!(!seeds.is_empty(), "{} has no seeds", directory.display());
    let mut random = Random(super::seed());
    let mutated = (0..tries).map(|_| mutated(&seeds, &mut random));
    for input in seeds.iter().cloned().chain(mutated) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| reads(&input))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            panic!("{target}, input b\"{}\": {text}", input.escape_ascii());
        }
    }
}

/// Random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        from..from + self.below((length - from).min(64) + 1)
    }
}

fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.insert(at, SPECIAL_BYTES[random.below(SPECIAL_BYTES.len())]),
            2 => drop(bytes.splice(at..at, EXTREME_NUMBERS[random.below(EXTREME_NUMBERS.len())].bytes())),
            3 => drop(bytes.drain(random.range(bytes.len()))),
            4 => {
                let again = bytes[random.range(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.splice(at..at, other[random.range(other.len())].iter().copied());
            }
            6 => bytes.truncate(at),
            _ => {
                let range = random.range(bytes.len());
                bytes[range].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
        }
    }
    bytes
}
