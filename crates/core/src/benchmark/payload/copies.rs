//! Copies of buffers, so that those of an iteration are not in the CPU's caches.

use crate::{benchmark::Context, error::Result, system::cache};

crate::axis! {
    /// Whether messages are in the CPU's caches before they are sent
    pub enum Cache: "cache", IfChosen, default Warm {
        /// Each iteration uses the same buffers
        Warm = "warm",
        /// Each iteration uses other buffers, which together are at least twice as large as the last-level cache
        Cold = "cold",
    }
}

/// Distance between copies: two cache lines of 64 bytes, so that a CPU that fetches lines in pairs fetches no line of another copy.
const GAP: u64 = 128;

/// Equal copies of a buffer, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// Bytes from the start of one copy to the start of the next.
    pub(in crate::benchmark) pitch: u64,
    /// Number of copies, which is odd.
    pub(in crate::benchmark) count: u64,
}

impl Copies {
    /// A buffer without copies.
    pub const ONE: Copies = Copies { pitch: 0, count: 1 };

    /// Returns the copies of a buffer of `bytes` bytes that the row needs: one, or those of [`Cache::Cold`]. Collective.
    pub fn of(cx: &Context<'_>, bytes: u64) -> Result<Copies> {
        match cx.choice() {
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
        match needed.div_ceil(pitch) {
            _ if bytes >= needed => Copies { pitch: bytes, count: 1 },
            // Odd, so that steps of a power of two visit every copy.
            count => Copies { pitch, count: count.max(2) | 1 },
        }
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

/// Returns the size of the largest last-level cache of all ranks, or the size that the user gave. Collective.
fn largest_cache(cx: &Context<'_>) -> Result<u64> {
    let mine = cx.cache_bytes.unwrap_or_else(|| cache::last_level().unwrap_or(cache::ASSUMED));
    let all = cx.team.gather(&mine.to_le_bytes())?.unwrap_or_default();
    let sizes = all.iter().filter_map(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    cx.team.broadcast_value(sizes.max().unwrap_or(mine))
}
