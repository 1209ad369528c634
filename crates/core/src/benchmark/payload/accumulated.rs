//! Content of memory with which an operand is combined again and again, as in accumulates and local reductions.
//!
//! Sums of words of 4 and 8 bytes wrap, so that patterns of arbitrary bits have a known sum after any number of iterations. Otherwise
//! memory and operand are the two contributions to a reduction. Its result is exact after one iteration, and after more where
//! nothing can overflow.

use ombx_record::{
    result::{Check, Mismatch},
    unit::Rank,
};

use crate::benchmark::{
    ElementType, Numbers, ReductionOp,
    payload::{Contributors, Fill, MessageId, Reduced, Reduction, Slots},
};

/// An operation on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accumulation {
    /// Type of the elements.
    pub element: ElementType,
    /// Operation.
    pub op: ReductionOp,
    /// Rank that holds the memory.
    pub memory: Rank,
    /// Rank that gives the operand.
    pub operand: Rank,
}

/// The two contributions to the result.
const MEMORY: u32 = 0;
const OPERAND: u32 = 1;

impl Accumulation {
    /// Writes the initial content of the memory.
    pub fn write_memory(self, fill: Fill, slots: Slots, buffer: &mut [u8]) {
        self.write(fill, Content::Memory, slots, buffer);
    }

    /// Writes the complement of the initial content of the memory where it shall arrive.
    pub fn poison(self, fill: Fill, slots: Slots, buffer: &mut [u8]) {
        self.write(fill, Content::Poison, slots, buffer);
    }

    /// Writes the operand.
    pub fn write_operand(self, fill: Fill, slots: Slots, buffer: &mut [u8]) {
        self.write(fill, Content::Operand, slots, buffer);
    }

    /// Compares a buffer of `rank` with the memory after `times` iterations, and its gaps with what was written there. A result that is
    /// not known passes.
    pub fn check(self, fill: Fill, times: u64, slots: Slots, found: &[u8], rank: Rank) -> Check {
        slots.first_failure(found, |slot, message| {
            let id = MessageId { rank, slot };
            let Some(blocks) = slots.blocks else {
                return self.check_payload(fill, times, message, id);
            };
            let payload = blocks.gathered(slots.bytes, message);
            let found = match self.check_payload(fill, times, &payload, id) {
                Check::Failed(wrong) => {
                    let byte = blocks.places(slots.bytes).flatten().nth(wrong.byte as usize);
                    Check::Failed(Mismatch { byte: byte.unwrap_or_default(), ..wrong })
                }
                other => other,
            };
            found.and(blocks.check_gaps(self.gaps(fill, slot), slots.bytes, message, id))
        })
    }

    /// Returns how many checked iterations show what one iteration may have wrong. In some elements the operand does not change the
    /// memory; in the next iteration, which has another pattern, it does.
    pub fn iterations_per_check(element: ElementType, op: ReductionOp) -> u64 {
        match op {
            ReductionOp::LogicalAnd | ReductionOp::LogicalOr => 4,
            ReductionOp::Min
            | ReductionOp::Max
            | ReductionOp::LogicalXor
            | ReductionOp::BitwiseAnd
            | ReductionOp::BitwiseOr => 2,
            ReductionOp::Prod if element.numbers() == Numbers::Unsigned && element.width() < 4 => 2,
            ReductionOp::Prod if element.numbers() == Numbers::Complex => 2,
            _ => 1,
        }
    }

    /// Returns whether the sum of any bits is known, however often the operand is added.
    fn wraps(self) -> bool {
        let is_sum = matches!(self.op, ReductionOp::Sum | ReductionOp::User);
        is_sum && self.element.numbers() == Numbers::Unsigned && self.element.width() >= 4
    }

    const fn reduction(self) -> Reduction {
        Reduction { element: self.element, op: self.op, ranks: 2 }
    }

    /// Returns the contributions to the memory after some iterations; `None` if the result may not be exact.
    fn contributors(self, fill: Fill, times: u64) -> Option<Contributors> {
        let contributors = match self.op {
            ReductionOp::Replace if times > 0 => Contributors::one(OPERAND),
            ReductionOp::Replace | ReductionOp::NoOp => Contributors::one(MEMORY),
            _ => Contributors::first(2).repeated_but(times, MEMORY),
        };
        (self.is_neutral(fill) || self.reduction().is_known(contributors)).then_some(contributors)
    }

    /// Returns whether the operand is 1 or -1 in all elements. The timed iterations multiply again and again by the same operand,
    /// and infinite numbers may take longer than others.
    fn is_neutral(self, fill: Fill) -> bool {
        self.op == ReductionOp::Prod && fill.is_repeated()
    }

    fn reduced(self, fill: Fill, contributors: Contributors, slot: u64) -> Reduced {
        let reduced = fill.reduced(self.reduction(), contributors, slot).owned_by(&fill, self.memory, slot);
        if self.is_neutral(fill) { reduced.distinguishing(MEMORY) } else { reduced }
    }

    /// Returns the pattern of the gaps in the memory, in the operand and in the buffer of results.
    fn gaps(self, fill: Fill, slot: u64) -> Words {
        fill.beside().words(self.memory, slot)
    }

    fn write(self, fill: Fill, content: Content, slots: Slots, buffer: &mut [u8]) {
        for (slot, range) in slots.messages(buffer.len()) {
            let message = &mut buffer[range];
            let Some(blocks) = slots.blocks else {
                self.write_payload(fill, content, slot, message);
                continue;
            };
            self.gaps(fill, slot).write(message);
            let mut payload = vec![0; slots.bytes as usize];
            self.write_payload(fill, content, slot, &mut payload);
            blocks.scatter(&payload, message);
        }
    }

    /// Writes a message without gaps.
    fn write_payload(self, fill: Fill, content: Content, slot: u64, payload: &mut [u8]) {
        if self.wraps() {
            let words = match content {
                Content::Memory => fill.beside().words(self.memory, slot),
                Content::Poison => fill.beside().words(self.memory, slot).flipped(u64::MAX),
                Content::Operand => fill.words(self.operand, slot),
            };
            return words.write(payload);
        }
        let one = |contributor| self.reduced(fill, Contributors::one(contributor), slot);
        match content {
            Content::Memory => one(MEMORY).write(payload),
            Content::Poison => one(MEMORY).flipped().write(payload),
            Content::Operand => one(OPERAND).write(payload),
        }
    }

    /// Compares a message without gaps with the memory after `times` iterations.
    fn check_payload(self, fill: Fill, times: u64, payload: &[u8], id: MessageId) -> Check {
        let slot = id.slot;
        if self.wraps() {
            let (before, added) = (fill.beside().words(self.memory, slot), fill.words(self.operand, slot));
            let sum = Words::sum([(before, 1), (added, times)], self.element.number_width());
            return sum.check(payload, id);
        }
        match self.contributors(fill, times) {
            Some(contributors) => self.reduced(fill, contributors, slot).check(payload, id),
            None => Check::Passed,
        }
    }
}

/// What a buffer holds before the operation.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// The memory with which the operand is combined.
    Memory,
    /// The complement of that.
    Poison,
    /// The operand.
    Operand,
}

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

    /// Compares a message with what it should contain.
    pub fn check(self, message: &[u8], id: MessageId) -> Check {
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
        Check::Failed(id.mismatch(byte, expected, message[byte as usize]))
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
    use crate::{
        benchmark::{
            ParameterValue,
            payload::Copies,
            reduction::{Elements, check_accumulate},
        },
        testkit::combine,
    };

    const SLOTS: Slots = Slots {
        bytes: 64,
        count: 2,
        stride: 128,
        copies: Copies::ONE,
        blocks: None,
        element: ElementType::Byte,
    };

    /// Calls `each` for every operation and element type of accumulates and of local reductions.
    fn each_accumulation(mut each: impl FnMut(Accumulation)) {
        for element in ElementType::ALL.iter().map(|element| element.of_size(SLOTS.bytes)) {
            for op in ReductionOp::ALL.iter().copied() {
                let is_user = op == ReductionOp::User;
                if is_user || check_accumulate(Elements::Fetched, element, op).is_ok() {
                    each(Accumulation { element, op, memory: Rank(1), operand: Rank(0) });
                }
            }
        }
    }

    fn buffer(write: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut buffer = vec![0; SLOTS.total() as usize];
        write(&mut buffer);
        buffer
    }

    /// Returns the memory after some iterations.
    fn accumulated(of: Accumulation, fill: Fill, times: u64) -> Vec<u8> {
        let mut memory = buffer(|memory| of.write_memory(fill, SLOTS, memory));
        let operand = buffer(|operand| of.write_operand(fill, SLOTS, operand));
        for _ in 0..times {
            combine(of.element, of.op, &mut memory, &operand);
        }
        memory
    }

    #[test]
    fn one_iteration_is_known_and_a_missing_one_is_found() {
        each_accumulation(|of| {
            let mut found = 0;
            for round in 0..16 {
                let fill = Fill { round, bytes: SLOTS.bytes, iterations: 1 };
                let [before, after] = [0, 1].map(|times| accumulated(of, fill, times));
                for (times, memory) in [(0, &before), (1, &after)] {
                    let check = of.check(fill, times, SLOTS, memory, Rank(1));
                    assert_eq!(check, Check::Passed, "{of:?}, {times}, round {round}");
                }
                found += u64::from(of.check(fill, 1, SLOTS, &before, Rank(1)) != Check::Passed);
                let poisoned = buffer(|buffer| of.poison(fill, SLOTS, buffer));
                let differs = |at: &usize| before[*at] == !poisoned[*at];
                assert_eq!((0..64).filter(differs).count(), 64, "{of:?}");
            }
            let least = if of.op == ReductionOp::NoOp { 0 } else { 15 };
            assert!(found >= least, "{of:?}: {found} of 16");
        });
    }

    /// A wrong byte of the payload or of a gap is found at its place, in vectors and in irregular blocks.
    #[test]
    fn blocks_and_gaps_are_compared() {
        use crate::benchmark::payload::{Blocks, Datatype};

        for datatype in [Datatype::Vector, Datatype::Indexed] {
            let slots =
                Slots::new(64, 2).of_blocks(Some(Blocks { datatype, length: 16, stride: 40, list: None }));
            each_accumulation(|of| {
                let fill = Fill { round: 5, bytes: 64, iterations: 0 };
                let mut memory = vec![0; slots.total() as usize];
                of.write_memory(fill, slots, &mut memory);
                assert_eq!(of.check(fill, 0, slots, &memory, Rank(1)), Check::Passed, "{of:?}");
                for at in [0, 15, 16, 39, 100, 159, slots.stride as usize + 7] {
                    memory[at] ^= 16;
                    let Check::Failed(wrong) = of.check(fill, 0, slots, &memory, Rank(1)) else {
                        panic!("{of:?}: byte {at} is not found")
                    };
                    assert_eq!(wrong.slot * slots.stride + wrong.byte, at as u64, "{of:?}");
                    memory[at] ^= 16;
                }
            });
        }
    }

    #[test]
    fn repeated_iterations_are_known_or_not_compared() {
        let fill = Fill { round: 0, bytes: SLOTS.bytes, iterations: 0 };
        let mut known = 0;
        each_accumulation(|of| {
            if of.contributors(fill, 7).is_none() && !of.wraps() {
                assert!(matches!(of.op, ReductionOp::Sum | ReductionOp::User), "{of:?}");
                return;
            }
            known += 1;
            for times in [2, 3, 7] {
                let memory = accumulated(of, fill, times);
                assert_eq!(of.check(fill, times, SLOTS, &memory, Rank(1)), Check::Passed, "{of:?}, {times}");
            }
        });
        assert!(known > 80, "{known}");
    }

    #[test]
    fn every_wrong_byte_and_the_memory_of_another_rank_are_found() {
        each_accumulation(|of| {
            let fill = Fill { round: 3, bytes: SLOTS.bytes, iterations: 1 };
            let mut memory = accumulated(of, fill, 1);
            for at in [0, 63, 128, 191] {
                memory[at] ^= 16;
                let Check::Failed(wrong) = of.check(fill, 1, SLOTS, &memory, Rank(1)) else {
                    panic!("{of:?}: byte {at} is not found")
                };
                assert_eq!((wrong.slot, wrong.byte), (at as u64 / 128, at as u64 % 128));
                memory[at] ^= 16;
            }
            let other = Accumulation { memory: Rank(0), operand: Rank(1), ..of };
            assert_ne!(other.check(fill, 1, SLOTS, &memory, Rank(0)), Check::Passed, "{of:?}");
        });
    }
}

#[cfg(test)]
mod words_tests {
    use proptest::prelude::*;

    use super::*;

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
            prop_assert_eq!(sum.check(&written, MessageId { rank: Rank(0), slot: 0 }), Check::Passed);
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
            let Check::Failed(found) = words.check(&message, MessageId { rank: Rank(3), slot: 5 }) else {
                return Err(TestCaseError::fail("not found"));
            };
            prop_assert_eq!((found.rank, found.slot, found.byte), (Rank(3), 5, at as u64));
            prop_assert_eq!(found.expected ^ found.actual, 1 << bit);
        }
    }
}
