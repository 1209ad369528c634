//! Content of memory with which an operand is combined again and again, as in accumulates and local reductions.
//!
//! Sums of words of 4 and 8 bytes wrap, so that patterns of arbitrary bits have a known sum after any number of iterations. Otherwise
//! memory and operand are the two contributions to a reduction. Its result is exact after one iteration, and after more where
//! nothing can overflow.

use super::{Check, Contributors, Fill, Mismatch, Reduced, Reduction, Slots, Words};
use crate::{
    benchmark::{ElementType, Numbers, ReductionOp},
    unit::Rank,
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
            let Some(blocks) = slots.blocks else {
                return self.check_payload(fill, times, message, (rank, slot));
            };
            let payload = blocks.gathered(slots.bytes, message);
            let found = match self.check_payload(fill, times, &payload, (rank, slot)) {
                Check::Failed(wrong) => {
                    let byte = blocks.places(slots.bytes).flatten().nth(wrong.byte as usize);
                    Check::Failed(Mismatch { byte: byte.unwrap_or_default(), ..wrong })
                }
                other => other,
            };
            found.and(blocks.check_gaps(self.gaps(fill, slot), slots.bytes, message, (rank, slot)))
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
    fn check_payload(self, fill: Fill, times: u64, payload: &[u8], (rank, slot): (Rank, u64)) -> Check {
        if self.wraps() {
            let (before, added) = (fill.beside().words(self.memory, slot), fill.words(self.operand, slot));
            let sum = Words::sum([(before, 1), (added, times)], self.element.number_width());
            return sum.check(payload, (rank, slot));
        }
        match self.contributors(fill, times) {
            Some(contributors) => self.reduced(fill, contributors, slot).check(payload, (rank, slot)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::payload::Copies;
    use crate::{
        benchmark::{
            ParameterValue,
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
