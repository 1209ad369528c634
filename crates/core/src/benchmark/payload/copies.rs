//! Copies of buffers, so that those of an iteration are not in the CPU's caches.

use crate::{
    benchmark::{Context, Heading, Parameter, Reader},
    error::Result,
    system::cache,
    unit::parse_memory,
};

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
    Reader::List(|text| Ok(vec![parse_memory(text)?.0.to_string()])),
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
    pub fn of(cx: &Context<'_>, bytes: u64) -> Result<Copies> {
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
        let all = cx.team.gather(&mine.map(u64::to_le_bytes).concat())?.unwrap_or_default();
        let most = |at: usize| {
            let number = |of_rank: &Vec<u8>| Some(u64::from_le_bytes(*of_rank.get(8 * at..)?.first_chunk()?));
            all.iter().filter_map(number).max().unwrap_or(mine[at])
        };
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
    let mine = cx.values.number(&CACHE_SIZE).unwrap_or_else(|| cache::last_level().unwrap_or(cache::ASSUMED));
    let all = cx.team.gather(&mine.to_le_bytes())?.unwrap_or_default();
    let sizes = all.iter().filter_map(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    cx.team.broadcast_value(sizes.max().unwrap_or(mine))
}

#[cfg(test)]
mod tests {
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
