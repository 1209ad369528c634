//! Payload patterns and their verification, byte by byte. A pattern depends on rank, position, size and round.

mod accumulated;
mod blocks;
mod reduced;

use ombx_host::machine;
use ombx_record::{
    error::Result,
    result::{Check, Mismatch},
    unit::{Rank, parse_memory},
};

use crate::benchmark::{Context, ElementType, Heading, Parameter, Reader};

pub use self::{
    accumulated::{Accumulation, Words},
    blocks::{
        BLOCK_LENGTH, BLOCKS, BlockList, Blocks, Datatype, MOST_ALIGNED, MOST_PAYLOAD, STRIDE, STRUCT_BYTES,
    },
    reduced::{Contributors, Reduced, Reduction},
};

/// Pattern of the buffers, and the iterations that ran since they were filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Number that changes with each filling, so that data of an earlier filling is detected. The timed iterations follow the filling
    /// of number 0, and one iteration follows each other filling.
    pub round: u64,
    /// Message size, a part of the pattern.
    pub bytes: u64,
    /// Iterations since the buffers were filled; set for the check.
    pub iterations: u64,
}

/// A message of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageId {
    /// Rank on which it arrived.
    pub rank: Rank,
    /// Its number in the buffer, from 0.
    pub slot: u64,
}

impl MessageId {
    fn mismatch(self, byte: u64, expected: u8, actual: u8) -> Mismatch {
        Mismatch { rank: self.rank, slot: self.slot, byte, expected, actual }
    }
}

/// Equal messages in one buffer, `stride` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Bytes of a message, without gaps.
    pub bytes: u64,
    /// Number of messages.
    pub count: u32,
    /// Bytes from the start of one message to the start of the next; 0 if all share one buffer.
    pub stride: u64,
    /// Copies of all messages, one of which an iteration uses.
    pub copies: Copies,
    /// Blocks of a message with gaps; `None` if it is contiguous.
    pub blocks: Option<Blocks>,
    /// Type of the elements of a message.
    pub element: ElementType,
}

/// Alignment of messages: a cache line, so that no two messages share one.
const LINE: u64 = 64;
/// Step from one word of a pattern to the next: 2^64 divided by the golden ratio, which is odd and has well mixed bits.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Slots {
    /// Returns `count` messages of `bytes`, each on its own cache lines.
    pub fn new(bytes: u64, count: u32) -> Slots {
        let stride = bytes.next_multiple_of(LINE).max(LINE);
        Slots { bytes, count, stride, copies: Copies::ONE, blocks: None, element: ElementType::Byte }
    }

    /// Returns `count` messages without gaps.
    pub fn packed(bytes: u64, count: u32) -> Slots {
        Slots { stride: bytes, ..Slots::new(bytes, count) }
    }

    /// Returns `count` messages that share one buffer, as in the OSU benchmarks. Later messages overwrite earlier ones.
    pub fn shared(bytes: u64, count: u32) -> Slots {
        Slots { stride: 0, ..Slots::new(bytes, count) }
    }

    /// Returns the same messages in blocks with gaps, if there are any.
    #[must_use]
    pub fn of_blocks(self, blocks: Option<Blocks>) -> Slots {
        let mut slots = Slots { blocks, ..self };
        if blocks.is_some() && self.stride > 0 {
            slots.stride = Slots::new(slots.span(), 1).stride;
        }
        slots
    }

    /// Returns the memory in bytes, without the buffers, that the datatype and the check of a message in blocks need.
    pub fn extra_bytes(&self) -> u64 {
        self.blocks.map_or(0, |blocks| blocks.extra_bytes(self.bytes))
    }

    /// Returns the bytes of memory of a message with its gaps.
    fn span(&self) -> u64 {
        self.blocks.map_or(self.bytes, |blocks| blocks.span(self.bytes))
    }

    /// Returns the same messages with the copies that the row of a case needs, for buffers with `sides` times these messages. Collective.
    ///
    /// # Errors
    /// The ranks cannot communicate.
    pub fn copied(self, cx: &Context<'_>, sides: u64) -> Result<Slots> {
        Ok(Slots { copies: Copies::agreed(cx, sides.saturating_mul(self.total()))?, ..self })
    }

    /// Returns the size of a buffer with all copies in bytes.
    pub fn reserved(&self) -> u64 {
        self.copies.total(self.total())
    }

    /// Returns the size of one copy of the messages in bytes, at least one cache line.
    pub fn total(&self) -> u64 {
        match self.stride {
            0 => Slots::new(self.span(), 1).total(),
            stride => stride.saturating_mul(u64::from(self.count)),
        }
    }

    /// Returns the offset of message `slot` in bytes.
    pub fn offset(&self, slot: u32) -> usize {
        (self.stride * u64::from(slot)) as usize
    }

    /// Checks the messages of a buffer in order, until one fails.
    pub fn first_failure(&self, buffer: &[u8], check: impl Fn(u64, &[u8]) -> Check) -> Check {
        let mut checks = self.messages(buffer.len()).map(|(slot, range)| check(slot, &buffer[range]));
        checks.find(|check| *check != Check::Passed).unwrap_or(Check::Passed)
    }

    /// Returns the number of each message and its place in a buffer of this length.
    pub fn messages(&self, buffer_len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + use<> {
        let (Slots { mut count, stride, .. }, span) = (*self, self.span());
        if stride == 0 {
            count = count.min(1);
        }
        debug_assert!(buffer_len as u64 >= self.total());
        (0..u64::from(count)).map(move |slot| {
            let start = (slot * stride) as usize;
            (slot, start..start + span as usize)
        })
    }
}

impl Fill {
    /// Returns the first word of message `slot` of `owner`.
    fn key(&self, owner: Rank, slot: u64) -> u64 {
        let mut key = u64::from(owner.0).wrapping_add(1).wrapping_mul(STEP);
        for part in [self.round, self.bytes, slot] {
            key = (key ^ part).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            key ^= key >> 32;
        }
        key
    }

    /// Writes the pattern of `owner` into every message, and into its gaps.
    pub fn write(&self, owner: Rank, slots: Slots, buffer: &mut [u8]) {
        self.write_as(owner, slots, buffer, 0);
    }

    /// Writes the complement of `owner`'s pattern, so that every byte that does not arrive, and every gap that changes, is detected.
    pub fn poison(&self, owner: Rank, slots: Slots, buffer: &mut [u8]) {
        self.write_as(owner, slots, buffer, u64::MAX);
    }

    fn write_as(&self, owner: Rank, slots: Slots, buffer: &mut [u8], flip: u64) {
        for (slot, range) in slots.messages(buffer.len()) {
            self.words(owner, slot).flipped(flip).write(&mut buffer[range]);
        }
    }

    /// Returns the pattern of message `slot` of `owner`.
    pub fn words(&self, owner: Rank, slot: u64) -> Words {
        Words::progression(self.key(owner, slot), STEP)
    }

    /// Returns whether more than one iteration may follow the filling.
    pub const fn is_repeated(self) -> bool {
        self.round == 0
    }

    /// Returns a second pattern for the same owner and round, such as the initial contents of a window.
    #[must_use]
    pub fn beside(self) -> Fill {
        Fill { round: self.round ^ (1 << 63), ..self }
    }

    /// Returns the pattern of a group of ranks. Each group has another one, so that data of another group is detected.
    #[must_use]
    pub const fn of_group(self, group: u32) -> Fill {
        // No message has so many bytes that these bits are set.
        Fill { bytes: self.bytes ^ (group as u64) << 48, ..self }
    }

    /// Returns the pattern of a thread, which has ranks of its own. Thread 0 has the pattern itself.
    #[must_use]
    pub const fn of_thread(self, thread: u32) -> Fill {
        // No message has so many bytes that these bits are set, and a group sets higher ones.
        Fill { bytes: self.bytes ^ (thread as u64) << 40, ..self }
    }

    /// Returns whether the round number has an odd number of ones in binary: the sequence of Thue and Morse. It has no period, so an
    /// error in every second iteration meets both values.
    pub fn has_odd_parity(self) -> bool {
        self.round.count_ones() % 2 == 1
    }

    /// Compares every message with the pattern of `owner`, and its gaps with the complement of it. `rank` is the rank on which it arrived.
    pub fn check(&self, owner: Rank, slots: Slots, buffer: &[u8], rank: Rank) -> Check {
        self.check_over(owner, owner, slots, buffer, rank)
    }

    /// Does the same for messages over the complement of the pattern of `before`, which the gaps still have.
    pub fn check_over(&self, owner: Rank, before: Rank, slots: Slots, buffer: &[u8], rank: Rank) -> Check {
        slots.first_failure(buffer, |slot, message| {
            let (words, id) = (self.words(owner, slot), MessageId { rank, slot });
            match slots.blocks {
                None => words.check(message, id),
                Some(blocks) => {
                    let gaps = self.words(before, slot).flipped(u64::MAX);
                    blocks.check(words, gaps, slots.bytes, message, id)
                }
            }
        })
    }
}

crate::parameter! {
    /// Whether messages are in the CPU's caches before they are sent
    pub enum Cache: "cache", IfChosen, default Warm, refined by [&CACHE_SIZE] {
        /// Each iteration uses the same buffers
        Warm = "warm",
        /// Each iteration uses other buffers, which together are at least twice as large as the last-level cache
        Cold = "cold",
    }
}

/// Size of the last-level cache.
pub static CACHE_SIZE: Parameter = Parameter::read_by(
    "cache-size",
    "BYTES",
    "Size of the last-level cache for --cache cold, for example: 32M [default: the largest that sysfs has on any host]",
    Reader::List(|text| Ok(vec![parse_memory(text)?.0.to_string().into()])),
)
.under(Heading::General)
.kept_as("cache_size");

/// Distance between copies: two cache lines of 64 bytes, so that a CPU that fetches lines in pairs fetches no line of another copy.
const GAP: u64 = 128;

/// Least distance between the copies of consecutive iterations: two pages, so that no prefetcher follows the iterations.
pub(in crate::benchmark) const LEAST_STEP: u64 = 8192;

/// Equal copies of a buffer, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// Bytes from the start of one copy to the start of the next.
    pub(in crate::benchmark) pitch: u64,
    /// Number of copies, which is odd.
    pub(in crate::benchmark) count: u64,
    /// Number of copies from that of an iteration to that of the next one, a power of two.
    pub(in crate::benchmark) apart: u64,
}

impl Copies {
    /// A buffer without copies.
    pub const ONE: Copies = Copies { pitch: 0, count: 1, apart: 1 };

    /// Returns the copies of a buffer of `bytes` bytes that the row needs: one, or those of [`Cache::Cold`]. Collective.
    pub fn agreed(cx: &Context<'_>, bytes: u64) -> Result<Copies> {
        match cx.get() {
            Cache::Warm => Ok(Copies::ONE),
            Cache::Cold => Ok(Copies::beyond(largest_cache(cx)?, bytes)),
        }
    }

    /// Returns copies of `bytes` bytes each that together have at least twice the bytes of a cache.
    ///
    /// Nothing is assumed about ranks that share the cache: the copies of one buffer of one rank are larger than all of it.
    pub fn beyond(cache: u64, bytes: u64) -> Copies {
        let needed = cache.saturating_mul(2);
        let pitch = bytes.next_multiple_of(GAP) + GAP;
        let apart = LEAST_STEP.div_ceil(pitch).next_power_of_two();
        match needed.div_ceil(pitch) {
            _ if bytes >= needed => Copies { pitch: bytes, count: 1, apart },
            // Odd, so that steps of a power of two visit every copy.
            count => Copies { pitch, count: count.max(2) | 1, apart },
        }
    }

    /// Returns copies of a buffer of `bytes` bytes whose order is the same on all ranks: as many as the rank with the most needs.
    /// Collective.
    ///
    /// # Errors
    /// The ranks cannot communicate.
    pub fn together(self, cx: &Context<'_>, bytes: u64) -> Result<Copies> {
        let mine = [self.count, self.apart];
        let all: Vec<[u64; 2]> = cx.team.gather_messages(&mine)?.unwrap_or_default();
        let most = |at: usize| all.iter().map(|of_rank| of_rank[at]).max().unwrap_or(mine[at]);
        let [count, apart] = [cx.team.broadcast_value(most(0))?, cx.team.broadcast_value(most(1))?];
        let pitch = if self.count < count { bytes.next_multiple_of(GAP) + GAP } else { self.pitch };
        Ok(Copies { pitch, count, apart })
    }

    /// Returns the number of copies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the offset of each copy.
    pub fn offsets(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |copy| (copy * self.pitch) as usize)
    }

    /// Returns what computes the number of a copy from its offset.
    pub fn numbering(self) -> Numbering {
        Numbering(if self.count > 1 { u64::MAX / self.pitch + 1 } else { 0 })
    }

    /// Returns the size of all copies of a buffer of `bytes` bytes; 0 for an empty buffer.
    pub fn total(&self, bytes: u64) -> u64 {
        match self.count {
            1 => bytes,
            _ if bytes == 0 => 0,
            count => self.pitch.saturating_mul(count),
        }
    }
}

/// Computes the number of a copy by one multiplication: a division takes longer.
///
/// It holds the inverse of the distance between copies, in units of 2^-64 and rounded up. The product with a multiple of the distance is
/// exact, because the offset of a copy is below 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbering(u64);

impl Numbering {
    /// Returns the number of the copy at an offset.
    #[inline(always)]
    pub fn number(self, offset: usize) -> usize {
        ((offset as u128 * u128::from(self.0)) >> 64) as usize
    }
}

/// Returns the size of the largest last-level cache of all ranks, or the size that the user gave. Collective.
fn largest_cache(cx: &Context<'_>) -> Result<u64> {
    let mine = cx
        .values
        .number(&CACHE_SIZE)
        .unwrap_or_else(|| machine::last_level_cache().unwrap_or(machine::ASSUMED_CACHE));
    let all: Vec<u64> = cx.team.gather_messages(&mine)?.unwrap_or_default();
    cx.team.broadcast_value(all.into_iter().max().unwrap_or(mine))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(round: u64, bytes: u64) -> Fill {
        Fill { round, bytes, iterations: 0 }
    }

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn one_flipped_bit_is_detected(
            bytes in 1u64..300, count in 1u32..9, pick in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let slots = Slots::new(bytes, count);
            let mut buffer = vec![0u8; slots.total() as usize];
            let f = fill(3, bytes);
            f.write(Rank(1), slots, &mut buffer);
            prop_assert_eq!(f.check(Rank(1), slots, &buffer, Rank(0)), Check::Passed);
            let at = pick.index((bytes * u64::from(count)) as usize) as u64;
            let (slot, byte) = (at / bytes, at % bytes);
            buffer[(slot * slots.stride + byte) as usize] ^= 1 << bit;
            match f.check(Rank(1), slots, &buffer, Rank(7)) {
                Check::Failed(m) => prop_assert_eq!((m.rank, m.slot, m.byte), (Rank(7), slot, byte)),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn poison_differs_in_every_byte(bytes in 1u64..200, owner in 0u32..5) {
            let slots = Slots::new(bytes, 1);
            let (mut good, mut bad) = (vec![0u8; slots.total() as usize], vec![0u8; slots.total() as usize]);
            fill(1, bytes).write(Rank(owner), slots, &mut good);
            fill(1, bytes).poison(Rank(owner), slots, &mut bad);
            prop_assert!((0..bytes as usize).all(|i| good[i] != bad[i]));
        }
    }

    #[test]
    fn stale_and_misplaced_data_is_detected() {
        let slots = Slots::new(64, 2);
        let mut buffer = vec![0u8; slots.total() as usize];
        fill(1, 64).write(Rank(0), slots, &mut buffer);
        let others = [
            (fill(2, 64), 0),
            (fill(1, 64), 1),
            (fill(1, 128), 0),
            (fill(1, 64).of_group(1), 0),
            (fill(1, 64).of_thread(1), 0),
        ];
        for (wrong, owner) in others.map(|(wrong, owner)| (wrong, Rank(owner))) {
            assert_ne!(wrong.check(owner, slots, &buffer, Rank(0)), Check::Passed);
        }
        buffer.rotate_left(64);
        assert_ne!(fill(1, 64).check(Rank(0), slots, &buffer, Rank(0)), Check::Passed);
    }

    #[test]
    fn messages_that_share_a_buffer_are_checked_once() {
        let slots = Slots::shared(100, 64);
        assert_eq!((slots.total(), slots.offset(63)), (128, 0));
        let mut buffer = vec![0u8; 128];
        fill(1, 100).write(Rank(0), slots, &mut buffer);
        assert_eq!(fill(1, 100).check(Rank(0), slots, &buffer, Rank(1)), Check::Passed);
        buffer[99] ^= 1;
        assert_ne!(fill(1, 100).check(Rank(0), slots, &buffer, Rank(1)), Check::Passed);
    }

    #[test]
    fn sums_wrap_per_element() {
        for width in [1, 2, 4, 8] {
            let slots = Slots::new(16, 2);
            let (mut memory, mut added) =
                (vec![0u8; slots.total() as usize], vec![0u8; slots.total() as usize]);
            fill(1, 16).beside().write(Rank(0), slots, &mut memory);
            fill(1, 16).write(Rank(1), slots, &mut added);
            for _ in 0..300 {
                for (sum, term) in memory.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
                    // Adds byte by byte with carry; the last carry is dropped.
                    let mut carry = 0;
                    for (sum, term) in sum.iter_mut().zip(term) {
                        let total = u16::from(*sum) + u16::from(*term) + carry;
                        (*sum, carry) = (total as u8, total >> 8);
                    }
                }
            }
            let check = |times, memory: &[u8]| {
                slots.first_failure(memory, |slot, message| {
                    let (before, added) =
                        (fill(1, 16).beside().words(Rank(0), slot), fill(1, 16).words(Rank(1), slot));
                    Words::sum([(before, 1), (added, times)], width)
                        .check(message, MessageId { rank: Rank(0), slot })
                })
            };
            assert_eq!(check(300, &memory), Check::Passed);
            assert_ne!(check(299, &memory), Check::Passed);
            memory[64 + 9] ^= 4;
            assert!(matches!(check(300, &memory), Check::Failed(Mismatch { slot: 1, byte: 9, .. })));
        }
    }

    #[test]
    fn empty_messages_have_a_buffer_and_pass() {
        let slots = Slots::new(0, 4);
        assert_eq!(slots.total(), 256);
        assert_eq!(fill(0, 0).check(Rank(0), slots, &[0; 256], Rank(1)), Check::Passed);
    }
}

#[cfg(test)]
mod copies_tests {
    use super::*;

    #[test]
    fn the_offset_of_a_copy_gives_its_number() {
        for (cache, bytes) in
            [(1 << 10, 1), (1 << 20, 4000), (64 << 20, 8), (1 << 34, 64), (3 << 30, 100_003), (8, 1 << 20)]
        {
            let copies = Copies::beyond(cache, bytes);
            let numbering = copies.numbering();
            let step = (copies.count / 1000).max(1);
            for copy in (0..copies.count).step_by(step as usize).chain([copies.count - 1]) {
                assert_eq!(numbering.number((copy * copies.pitch) as usize), copy as usize, "{copies:?}");
            }
        }
        assert_eq!(Copies::ONE.numbering().number(0), 0);
    }
}
