//! Content of a message as words of 8 bytes, written and compared at the speed of memory.

use super::{Check, Mismatch};
use crate::unit::Rank;

/// Words that are compared without a branch in between, so that compilers vectorise the comparison.
const BLOCK_WORDS: usize = 64;

/// Words of a message by position: two arithmetic progressions, each times a factor, added element by element.
///
/// Elements are unsigned integers that wrap. If they are as wide as a word, the sum is an arithmetic progression too, so that each word
/// follows from the one before by an addition: vector instructions have no product of such words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    terms: [Term; 2],
    /// Bytes of an element.
    width: usize,
    /// Bits that are inverted.
    flip: u64,
}

/// An arithmetic progression times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    first: u64,
    step: u64,
    times: u64,
}

impl Term {
    const NONE: Term = Term { first: 0, step: 0, times: 0 };

    fn at(self, at: u64) -> u64 {
        self.first.wrapping_add(at.wrapping_mul(self.step))
    }
}

impl Words {
    /// Returns the words `first`, `first + step`, and so on.
    pub(super) const fn progression(first: u64, step: u64) -> Words {
        Words { terms: [Term { first, step, times: 1 }, Term::NONE], width: 8, flip: 0 }
    }

    /// Returns the sum of two patterns, each multiplied by a factor, element by element. Elements are unsigned integers of `width`
    /// bytes that wrap; a word holds 8 / `width` of them.
    pub fn sum(terms: [(Words, u64); 2], width: usize) -> Words {
        let terms = terms.map(|(words, times)| {
            debug_assert!(words.flip == 0 && words.terms[1] == Term::NONE, "a sum of patterns");
            Term { times, ..words.terms[0] }
        });
        let sum = Words { terms, width, flip: 0 };
        match width {
            8 => Words::progression(sum.word(0), sum.word(1).wrapping_sub(sum.word(0))),
            _ => sum,
        }
    }

    /// Returns the words with the bits of a mask inverted.
    #[must_use]
    pub const fn flipped(self, mask: u64) -> Words {
        Words { flip: self.flip ^ mask, ..self }
    }

    /// Returns the word at a position.
    fn word(&self, at: u64) -> u64 {
        // Higher elements of the word do not affect the low bytes of a product or sum.
        let total = |shift: usize| {
            let term = |term: &Term| (term.at(at) >> shift).wrapping_mul(term.times);
            self.terms.iter().map(term).fold(0, u64::wrapping_add)
        };
        let mask = u64::MAX >> (64 - 8 * self.width);
        let element = |byte: usize| (total(8 * byte) & mask) << (8 * byte);
        (0..8).step_by(self.width).map(element).fold(0, |word, element| word | element) ^ self.flip
    }

    /// Writes a message. The last word is cut if it does not fit.
    pub fn write(self, message: &mut [u8]) {
        let (whole, rest) = message.as_chunks_mut::<8>();
        let end = whole.len() as u64;
        match self {
            Words { terms: [Term { first, step, times: 1 }, Term::NONE], width: 8, flip } => {
                write_progression(first, step, flip, whole);
            }
            _ => whole.iter_mut().zip(0..).for_each(|(chunk, at)| *chunk = self.word(at).to_le_bytes()),
        }
        rest.copy_from_slice(&self.word(end).to_le_bytes()[..rest.len()]);
    }

    /// Compares message `slot` of `rank` with what it should contain.
    pub fn check(self, message: &[u8], (rank, slot): (Rank, u64)) -> Check {
        let (whole, rest) = message.as_chunks::<8>();
        let mut wrong = None;
        for (block, start) in whole.chunks(BLOCK_WORDS).zip((0..).step_by(BLOCK_WORDS)) {
            let differs = match self {
                Words { terms: [Term { first, step, times: 1 }, Term::NONE], width: 8, flip } => {
                    differs_from_progression(first.wrapping_add(step.wrapping_mul(start)), step, flip, block)
                }
                _ => block.iter().zip(start..).any(|(chunk, at)| u64::from_le_bytes(*chunk) != self.word(at)),
            };
            if differs {
                let bits = |(chunk, at): (&[u8; 8], u64)| (u64::from_le_bytes(*chunk) ^ self.word(at), at);
                wrong = block.iter().zip(start..).map(bits).find(|(bits, _)| *bits != 0);
                break;
            }
        }
        let (bits, at) = wrong.unwrap_or_else(|| {
            let end = whole.len() as u64;
            let mut last = self.word(end).to_le_bytes();
            last[..rest.len()].copy_from_slice(rest);
            (u64::from_le_bytes(last) ^ self.word(end), end)
        });
        if bits == 0 {
            return Check::Passed;
        }
        let byte = bits.trailing_zeros() / 8;
        let expected = self.word(at).to_le_bytes()[byte as usize];
        let byte = at * 8 + u64::from(byte);
        Check::Failed(Mismatch { rank, slot, byte, expected, actual: message[byte as usize] })
    }
}

#[inline(never)]
fn write_progression(mut word: u64, step: u64, flip: u64, whole: &mut [[u8; 8]]) {
    for chunk in whole {
        *chunk = (word ^ flip).to_le_bytes();
        word = word.wrapping_add(step);
    }
}

#[inline(always)]
fn differs_from_progression(mut word: u64, step: u64, flip: u64, block: &[[u8; 8]]) -> bool {
    let mut any = 0;
    for chunk in block {
        any |= u64::from_le_bytes(*chunk) ^ word ^ flip;
        word = word.wrapping_add(step);
    }
    any != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        /// A sum of words is what adding their elements one by one gives, for every width and position.
        #[test]
        fn sums_are_those_of_the_elements(
            [a, b] in any::<[(u64, u64); 2]>(), times in any::<u64>(), width in 0u32..4, length in 0usize..1200,
        ) {
            let width = 1 << width;
            let [first, second] = [a, b].map(|(first, step)| Words::progression(first, step));
            let (mut one, mut other) = (vec![0; length.next_multiple_of(8)], vec![0; length.next_multiple_of(8)]);
            first.write(&mut one);
            second.write(&mut other);
            let element = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
            let expected: Vec<u8> = one.chunks(width).zip(other.chunks(width)).flat_map(|(one, other)| {
                let sum = element(one).wrapping_add(times.wrapping_mul(element(other)));
                sum.to_le_bytes().into_iter().take(width)
            }).collect();
            let sum = Words::sum([(first, 1), (second, times)], width);
            let mut written = vec![0; length];
            sum.write(&mut written);
            prop_assert_eq!(&written, &expected[..length]);
            prop_assert_eq!(sum.check(&written, (Rank(0), 0)), Check::Passed);
            sum.flipped(u64::MAX).write(&mut written);
            prop_assert!(written.iter().zip(&expected).all(|(written, expected)| *written == !*expected));
        }

        /// Every wrong byte is found at its place, in all paths of the comparison.
        #[test]
        fn the_first_wrong_byte_is_named(
            (first, step) in any::<(u64, u64)>(), width in 0u32..4, length in 1usize..1200,
            pick in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let pattern = Words::progression(first, step);
            let words = Words::sum([(pattern, 1), (pattern, 3)], 1 << width);
            let mut message = vec![0; length];
            words.write(&mut message);
            let at = pick.index(length);
            message[at] ^= 1 << bit;
            let Check::Failed(found) = words.check(&message, (Rank(3), 5)) else {
                return Err(TestCaseError::fail("not found"));
            };
            prop_assert_eq!((found.rank, found.slot, found.byte), (Rank(3), 5, at as u64));
            prop_assert_eq!(found.expected ^ found.actual, 1 << bit);
        }
    }
}
