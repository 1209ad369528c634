//! Kernels that use other copies of their buffers in each iteration, so that no cache holds the data.

use ombx_host::machine;
use ombx_record::{
    error::Result,
    result::{BusTraffic, Check, ConnectionCounters, Figure, Figures, Metric, Work},
};

use crate::{
    benchmark::{
        Case, Context, Kernel, Method,
        memory::{CACHE_SIZE, Cache, Copies},
        payload::Fill,
    },
    measure::{engine, session::Session},
};

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
    fn new(copies: Copies) -> Walk {
        let pitch = copies.pitch.max(1);
        let step = copies.apart * pitch;
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

/// Runs a kernel with the same buffers in every iteration, or with others, as the cases choose.
///
/// # Errors
/// Those of [`engine::run`].
pub fn run_cached<K: Movable>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, cache| match cache {
        Cache::Warm => engine::run::<K>(session),
        Cache::Cold => engine::run::<Cold<K>>(session),
    })
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
        let assumed = cx.values.number(&CACHE_SIZE).is_none() && machine::last_level_cache().is_none();
        Ok(Cold { walk: Walk::new(kernel.copies()), kernel, assumed })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        for offset in self.walk.filled(fill.round) {
            self.kernel.move_to(offset);
            self.kernel.fill(fill)?;
        }
        self.kernel.move_to(self.walk.at as usize);
        Ok(())
    }

    crate::forwards!(kernel: begin, end -> Result<()>);
    crate::forwards!(kernel: connections -> Result<Option<ConnectionCounters>>);

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
                machine::ASSUMED_CACHE >> 20
            );
            figures.insert("last_level_cache_mib".into(), Figure::Unresolved(why));
        }
        Ok(figures)
    }

    fn close(self) -> Result<()> {
        self.kernel.close()
    }
}

#[cfg(test)]
mod tests;
