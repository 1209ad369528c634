//! Buffers that are not in the CPU's caches: copies of a kernel's buffers, of which each iteration uses the next one.

use crate::{
    benchmark::{
        BusTraffic, Case, Context, Figure, Figures, Kernel, Method, Metric, Work,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    system::cache,
};

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
/// Least distance between the copies of consecutive iterations: two pages, so that no prefetcher follows the iterations.
const LEAST_STEP: u64 = 8192;

/// Equal copies of a buffer, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// Bytes from the start of one copy to the start of the next.
    pitch: u64,
    /// Number of copies, which is odd.
    count: u64,
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
            count => Copies { pitch, count: count | 1 },
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

/// The order in which iterations use copies, and the copy of the next iteration.
#[derive(Debug, Clone, Copy)]
struct Walk {
    copies: Copies,
    /// Bytes from the copy of an iteration to that of the next one.
    step: u64,
    /// Bytes of all copies.
    total: u64,
    /// Offset of the next iteration's copy.
    at: u64,
}

impl Walk {
    fn of(copies: Copies) -> Walk {
        let pitch = copies.pitch.max(1);
        let step = LEAST_STEP.div_ceil(pitch).next_power_of_two() * pitch;
        let total = pitch * copies.count;
        Walk { copies, step: step % total, total, at: 0 }
    }

    #[inline(always)]
    fn advance(&mut self) {
        let next = self.at + self.step;
        self.at = if next >= self.total { next - self.total } else { next };
    }

    /// Returns the offsets of all copies before many iterations (round 0), and that of the next iteration's copy before a single one.
    fn filled(&self, round: u64) -> impl Iterator<Item = usize> + use<> {
        let Walk { copies, at, .. } = *self;
        let (first, count) = if round == 0 { (0, copies.count) } else { (at, 1) };
        (0..count).map(move |copy| (first + copy * copies.pitch) as usize)
    }

    /// Returns the offset of the last iteration's copy.
    fn last(&self) -> u64 {
        (self.at + self.total - self.step) % self.total
    }

    /// Returns how many of some iterations have used the last iteration's copy.
    fn visits(&self, iterations: u64) -> u64 {
        iterations.div_ceil(self.copies.count)
    }
}

/// A kernel whose buffers have copies.
pub trait Movable: Kernel {
    /// Returns the copies of its buffers.
    fn copies(&self) -> Copies;
    /// Makes the copy at an offset the buffer of the next calls.
    fn move_to(&mut self, offset: usize);
}

/// A kernel of which each iteration uses the next copy of its buffers. `K` makes its copies while it opens a case.
pub struct Cold<K> {
    /// The kernel.
    pub kernel: K,
    walk: Walk,
    /// Whether the size of the cache is not known.
    assumed: bool,
}

impl<K: Movable> Cold<K> {
    /// Moves to the copy of the next iteration.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.walk.advance();
        self.kernel.move_to(self.walk.at as usize);
    }
}

impl<K: Movable> Kernel for Cold<K> {
    const METRIC: Metric = K::METRIC;
    const METHOD: Method = K::METHOD;

    fn supports(case: &Case) -> bool {
        K::supports(case)
    }

    fn work(case: &Case) -> Work {
        K::work(case)
    }

    fn bus_traffic(case: &Case) -> Option<BusTraffic> {
        K::bus_traffic(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let kernel = K::open(cx, case)?;
        let assumed = cx.cache_bytes.is_none() && cache::last_level().is_none();
        Ok(Cold { walk: Walk::of(kernel.copies()), kernel, assumed })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        for offset in self.walk.filled(fill.round) {
            self.kernel.move_to(offset);
            self.kernel.fill(fill)?;
        }
        self.kernel.move_to(self.walk.at as usize);
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        self.kernel.begin()
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.kernel.active()?;
        self.advance();
        Ok(())
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.kernel.passive()?;
        self.advance();
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.kernel.end()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.kernel.move_to(self.walk.last() as usize);
        let found = self.kernel.check(Fill { iterations: self.walk.visits(fill.iterations), ..fill })?;
        self.kernel.move_to(self.walk.at as usize);
        Ok(found)
    }

    fn iterations_per_check(case: &Case) -> u64 {
        K::iterations_per_check(case)
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.kernel.figures()?;
        figures.insert("cold_bytes".into(), Figure::Value(self.walk.total as f64));
        if self.assumed {
            let why = format!(
                "sysfs has no size of the last-level cache: {} MiB is assumed; give it with --cache-size",
                cache::ASSUMED >> 20
            );
            figures.insert("last_level_cache_mib".into(), Figure::Unresolved(why));
        }
        Ok(figures)
    }

    fn close(self) -> Result<()> {
        self.kernel.close()
    }
}

/// Returns the error of a kernel whose buffers have no copies, if the row asks for them.
///
/// # Errors
/// [`Error::unsupported`] if the row has [`Cache::Cold`].
pub fn only_warm(cx: &Context<'_>, why: &str) -> Result<()> {
    match cx.choice() {
        Cache::Warm => Ok(()),
        Cache::Cold => Err(Error::unsupported(format!("--cache cold is not supported by {why}"))),
    }
}

#[cfg(test)]
mod tests;
