//! Checksum of data whose content is unknown.

/// Odd factor, which mixes the bits of a product: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Chains of words that do not depend on each other, so that a CPU computes them at the same time.
const LANES: usize = 4;

/// Returns a checksum. Data of one length that differ in a single word have different checksums.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut lanes = [1, 2, 3, 4].map(|lane: u64| lane.wrapping_mul(FACTOR));
    let (words, rest) = bytes.as_chunks::<8>();
    let (groups, words) = words.as_chunks::<LANES>();
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = mixed(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let rest = [u64::from_le_bytes(last), bytes.len() as u64];
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    lanes.into_iter().chain(words).chain(rest).fold(0, mixed)
}

/// Returns a value that differs for every `word`, and for every `sum`.
fn mixed(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn a_changed_byte_changes_the_checksum(
            bytes in prop::collection::vec(any::<u8>(), 1..300), at: prop::sample::Index, change in 1u8..,
        ) {
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= change;
            prop_assert_ne!(checksum(&bytes), checksum(&changed));
        }

        #[test]
        fn exchanged_words_change_the_checksum(
            words in prop::collection::vec(any::<u64>(), 2..40), a: prop::sample::Index, b: prop::sample::Index,
        ) {
            let sum = |words: &[u64]| checksum(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
            let (a, b) = (a.index(words.len()), b.index(words.len()));
            let mut exchanged = words.clone();
            exchanged.swap(a, b);
            prop_assert_eq!(sum(&words) == sum(&exchanged), words[a] == words[b]);
        }
    }

    #[test]
    fn the_length_counts() {
        assert_ne!(checksum(&[0; 8]), checksum(&[0; 9]));
        assert_ne!(checksum(&[]), checksum(&[0]));
    }
}
