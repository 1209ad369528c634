//! Content of buffers of reductions: what a rank contributes, and the result of any set of contributions.
//!
//! In each element one rank is distinguished: the ranks take turns over the elements and rounds. It contributes another value than
//! the other ranks, all of which contribute the same. The result follows from two counts without combining contributions. A missing,
//! repeated or exchanged contribution changes the elements in which its rank is distinguished, and under sum, xor and products of
//! signed numbers all elements. Values are so small that every intermediate result is exact, in any order.

use ombx_record::{result::Check, unit::Rank};

use super::{Fill, MessageId, STEP};
use crate::benchmark::{ElementType, Numbers, ReductionOp};

/// A reduction over a number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduction {
    /// Type of the elements.
    pub element: ElementType,
    /// Operation.
    pub op: ReductionOp,
    /// Number of contributions to one result at most, which limits the values.
    pub ranks: u32,
}

/// How often each rank contributes to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contributors {
    /// Ranks from 0 to below this one contribute.
    below: u32,
    /// How often each of them does.
    times: u64,
    /// A rank with another number, whether below or not.
    except: Option<(u32, u64)>,
}

impl Contributors {
    /// One rank contributes once.
    pub const fn one(rank: u32) -> Contributors {
        Contributors { below: 0, times: 0, except: Some((rank, 1)) }
    }

    /// The first `count` ranks contribute once each.
    pub const fn first(count: u32) -> Contributors {
        Contributors { below: count, times: 1, except: None }
    }

    /// Returns the same contributors, each `times` times, but `rank` once.
    #[must_use]
    pub const fn repeated_but(self, times: u64, rank: u32) -> Contributors {
        Contributors { times, except: Some((rank, 1)), ..self }
    }

    /// Returns how often a rank contributes.
    fn contributions(self, rank: u32) -> u64 {
        match self.except {
            Some((except, times)) if except == rank => times,
            _ if rank < self.below => self.times,
            _ => 0,
        }
    }

    /// Returns the number of contributions.
    fn total(self) -> u64 {
        let below = u64::from(self.below).wrapping_mul(self.times);
        match self.except {
            Some((rank, times)) if rank < self.below => below.wrapping_sub(self.times).wrapping_add(times),
            Some((_, times)) => below.wrapping_add(times),
            None => below,
        }
    }
}

/// Part of a complex number; other numbers are real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberPart {
    Real,
    Imaginary,
}

impl Reduction {
    /// Returns the number of bits of a number that hold exact integers, without the sign.
    const fn exact_bits(self) -> u32 {
        match (self.element.numbers(), self.element.number_width()) {
            (Numbers::Floating | Numbers::Complex, 4) => 24,
            (Numbers::Floating | Numbers::Complex, _) => 53,
            (Numbers::Unsigned, width) if width < 8 => 8 * width as u32,
            (_, width) => 8 * width as u32 - 1,
        }
    }

    /// Returns the number of bits of the value that all ranks add; 0 if so many ranks contribute that only the distinguished one can.
    const fn common_bits(self) -> u32 {
        (((1 << self.exact_bits()) - 1) / (self.ranks as u64 + 1) + 1).ilog2()
    }

    /// Returns whether the result of these contributions is known: unsigned words wrap, other numbers must not overflow.
    pub fn is_known(self, contributors: Contributors) -> bool {
        let repeats = contributors.times > 1;
        let wraps = self.element.numbers() == Numbers::Unsigned && self.element.width() >= 4;
        match self.op {
            ReductionOp::Sum | ReductionOp::User | ReductionOp::Prod => !repeats || wraps,
            _ => true,
        }
    }

    /// Returns the value that `specials` contributions of the distinguished rank and `others` of other ranks have. `word` is the
    /// pattern at this place.
    #[inline(always)]
    fn value(self, word: u64, specials: u64, others: u64, part: NumberPart) -> i64 {
        let (high, middle) =
            (|bits: u32| word >> (64 - bits), |bits: u32| word.rotate_left(29) >> (64 - bits));
        let half = self.exact_bits() - 1;
        let signed = self.element.numbers() != Numbers::Unsigned;
        let is_special = specials > 0;
        let or_neutral = |special: u64, neutral: u64| if is_special { special } else { neutral };
        let value = match self.op {
            ReductionOp::Sum | ReductionOp::User => {
                let bits = self.common_bits();
                let (common, more) = match bits {
                    0 => (0, middle(self.exact_bits()) | 1),
                    _ => (high(bits), middle(bits) | 1),
                };
                let all = specials.wrapping_add(others);
                all.wrapping_mul(common).wrapping_add(specials.wrapping_mul(more))
            }
            // 1 + 0i is neutral without a negative zero.
            ReductionOp::Prod if self.element.numbers() == Numbers::Complex => match part {
                NumberPart::Real if is_special => high(half) | 1,
                NumberPart::Imaginary if is_special => middle(half) | 1,
                NumberPart::Real => 1,
                NumberPart::Imaginary => 0,
            },
            ReductionOp::Prod => {
                let special = (high(half) | 1).wrapping_pow(specials as u32);
                // Short unsigned numbers may saturate.
                let negative = (signed || self.element.width() >= 4) && others % 2 == 1;
                if negative { special.wrapping_neg() } else { special }
            }
            ReductionOp::Min | ReductionOp::Max | ReductionOp::Replace | ReductionOp::NoOp => {
                let upper = is_special == (self.op != ReductionOp::Min);
                let value = if is_special { middle(half) } else { high(half) } | u64::from(upper) << half;
                if signed { value.wrapping_sub(1 << half) } else { value }
            }
            ReductionOp::LogicalAnd => or_neutral(high(1), 1),
            ReductionOp::LogicalOr => or_neutral(high(1), 0),
            ReductionOp::LogicalXor => (others & 1) ^ (specials & high(1)),
            ReductionOp::BitwiseAnd => or_neutral(word, u64::MAX),
            ReductionOp::BitwiseOr => or_neutral(word, 0),
            ReductionOp::BitwiseXor => {
                let of = |times: u64, word: u64| if times % 2 == 1 { word } else { 0 };
                of(others, word) ^ of(specials, word.rotate_left(29))
            }
        };
        value as i64
    }

    /// Returns the representation of a number in its low bytes.
    #[inline(always)]
    fn encode(self, value: i64) -> u64 {
        match (self.element.numbers(), self.element.number_width()) {
            (Numbers::Floating | Numbers::Complex, 4) => u64::from((value as f32).to_bits()),
            (Numbers::Floating | Numbers::Complex, _) => (value as f64).to_bits(),
            _ => value as u64,
        }
    }
}

/// Expected content of a message of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduced {
    reduction: Reduction,
    contributors: Contributors,
    /// First word of the pattern.
    key: u64,
    /// Rank that is distinguished in the first element.
    first: u32,
    /// Ranks from the one that is distinguished in an element to that of the next: 1 if they take turns, 0 if it is always the same.
    step: u32,
    /// Whether all bits are inverted.
    flip: bool,
}

impl Fill {
    /// Returns the result of contributions to message `slot`.
    pub fn reduced(&self, reduction: Reduction, contributors: Contributors, slot: u64) -> Reduced {
        let first = (self.round.wrapping_add(slot) % u64::from(reduction.ranks.max(1))) as u32;
        Reduced { reduction, contributors, key: self.key(Rank(0), slot), first, step: 1, flip: false }
    }
}

impl Reduced {
    /// Returns the same content with all bits inverted.
    #[must_use]
    pub const fn flipped(self) -> Reduced {
        Reduced { flip: !self.flip, ..self }
    }

    /// Returns the content with the pattern of `owner`.
    #[must_use]
    pub(super) fn owned_by(self, fill: &Fill, owner: Rank, slot: u64) -> Reduced {
        Reduced { key: fill.key(owner, slot), ..self }
    }

    /// Returns the content in which the same rank is distinguished in all elements.
    #[must_use]
    pub(super) const fn distinguishing(self, rank: u32) -> Reduced {
        Reduced { first: rank, step: 0, ..self }
    }

    /// Calls `each` with the representation of every number of a message, until it returns false.
    #[inline(always)]
    fn numbers(self, count: usize, mut each: impl FnMut(usize, u64) -> bool) {
        let Reduced { reduction, contributors, mut key, first: mut distinguished, step, flip } = self;
        let (total, is_complex) = (contributors.total(), reduction.element.numbers() == Numbers::Complex);
        let flip = if flip { u64::MAX } else { 0 };
        for at in 0..count {
            let specials = contributors.contributions(distinguished);
            let imaginary = is_complex && at % 2 == 1;
            let part = if imaginary { NumberPart::Imaginary } else { NumberPart::Real };
            let value = reduction.value(key, specials, total.wrapping_sub(specials), part);
            if !each(at, reduction.encode(value) ^ flip) {
                return;
            }
            key = key.wrapping_add(STEP);
            if !is_complex || imaginary {
                distinguished += step;
                if distinguished >= reduction.ranks {
                    distinguished = 0;
                }
            }
        }
    }

    /// Writes a message, whose size is a multiple of the element's.
    pub fn write(self, message: &mut [u8]) {
        match self.reduction.element.number_width() {
            1 => self.write_numbers::<1>(message),
            2 => self.write_numbers::<2>(message),
            4 => self.write_numbers::<4>(message),
            _ => self.write_numbers::<8>(message),
        }
    }

    fn write_numbers<const WIDTH: usize>(self, message: &mut [u8]) {
        let numbers = message.as_chunks_mut::<WIDTH>().0;
        self.numbers(numbers.len(), |at, number| {
            numbers[at].copy_from_slice(&number.to_le_bytes()[..WIDTH]);
            true
        });
    }

    /// Compares a message with what it should contain.
    pub fn check(self, message: &[u8], id: MessageId) -> Check {
        match self.reduction.element.number_width() {
            1 => self.check_numbers::<1>(message, id),
            2 => self.check_numbers::<2>(message, id),
            4 => self.check_numbers::<4>(message, id),
            _ => self.check_numbers::<8>(message, id),
        }
    }

    fn check_numbers<const WIDTH: usize>(self, message: &[u8], id: MessageId) -> Check {
        let numbers = message.as_chunks::<WIDTH>().0;
        let mut found = Check::Passed;
        self.numbers(numbers.len(), |at, number| {
            let (expected, actual) = (number.to_le_bytes(), numbers[at]);
            if expected[..WIDTH] == actual {
                return true;
            }
            let wrong = expected.iter().zip(&actual).position(|(expected, actual)| expected != actual);
            let wrong = wrong.unwrap_or_default();
            let byte = (at * WIDTH + wrong) as u64;
            found = Check::Failed(id.mismatch(byte, expected[wrong], actual[wrong]));
            false
        });
        found
    }
}

#[cfg(test)]
mod tests;
