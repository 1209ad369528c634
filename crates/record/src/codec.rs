//! The codec of messages between processes: postcard, a compact binary form of serde's data model.
//!
//! All ranks of a job are the same build, so that messages need neither names nor versions. Types with fields that files leave out
//! (`skip_serializing_if`) or with untagged values have no such form; what sends them translates them.

use serde::{Serialize, de::DeserializeOwned};

/// Returns the bytes of a message.
///
/// # Panics
/// The type has no fixed form, which a test of the message shows.
pub fn encode<T: Serialize + ?Sized>(message: &T) -> Vec<u8> {
    postcard::to_allocvec(message).expect("the form of a message is fixed")
}

/// Returns the message of some bytes; `None` if they are not exactly one, as from another build of ombx.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

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
pub fn mixed(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use crate::codec::*;

    #[test]
    fn exactly_one_message_is_decoded() {
        let message = (7u32, Some("a".to_owned()), vec![1u64, u64::MAX]);
        let bytes = encode(&message);
        assert_eq!(decode(&bytes), Some(message));
        type Message = (u32, Option<String>, Vec<u64>);
        assert!((0..bytes.len()).all(|cut| decode::<Message>(&bytes[..cut]).is_none()));
        assert_eq!(decode::<Message>(&[&bytes[..], &[0]].concat()), None);
        // The length says more elements than there are bytes.
        assert_eq!(decode::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }
}

#[cfg(test)]
mod checksum_tests {
    use proptest::prelude::*;

    use crate::codec::*;

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
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
