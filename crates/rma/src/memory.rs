//! A rank's memories while nothing is under way, as an operation fills and checks them.

use ombx_core::{
    benchmark::payload::{Check, Fill, Slots},
    unit::Rank,
};
use ombx_mpi::Buffer;

/// Local buffers and exposed memory, with who does what.
pub struct Memory<'m> {
    /// The origin's buffer, and after it those for results and to compare with.
    pub locals: &'m mut [Buffer],
    /// The memory that this rank exposes.
    pub window: &'m mut [u8],
    /// The shape of all of them.
    pub slots: Slots,
    /// Bytes of an element in reductions.
    pub width: usize,
    /// This rank.
    pub rank: Rank,
    /// The rank that it accesses, or that accesses it.
    pub peer: Rank,
    /// Whether this rank issues operations.
    pub is_origin: bool,
    /// Whether operations are issued on its window.
    pub is_target: bool,
}

impl Memory<'_> {
    /// What the origin sends or gets.
    pub fn local(&mut self) -> &mut [u8] {
        self.locals[0].bytes_mut()
    }

    /// For atomics: a pattern to send, another one that stands in the window at first, and poison where results arrive.
    pub fn fill_atomic(&mut self, fill: Fill) {
        let Memory { slots, rank, peer, .. } = *self;
        fill.write(rank, slots, self.locals[0].bytes_mut());
        fill.beside().write(rank, slots, self.window);
        if let Some(result) = self.locals.get_mut(1) {
            fill.beside().poison(peer, slots, result.bytes_mut());
        }
    }

    /// The window holds what it held at first and the peer's data added once an iteration.
    pub fn check_summed(&self, fill: Fill) -> Check {
        let Memory { slots, rank, peer, width, .. } = *self;
        match self.is_target {
            true => fill.check_sum((rank, peer), fill.iterations, width, slots, self.window, rank),
            false => Check::Passed,
        }
    }

    /// The result is what the peer's window held before the last iteration.
    pub fn check_fetched(&mut self, fill: Fill) -> Check {
        let Memory { slots, rank, peer, width, .. } = *self;
        let before = fill.iterations.saturating_sub(1);
        match self.is_origin {
            true => fill.check_sum((peer, rank), before, width, slots, self.locals[1].bytes_mut(), rank),
            false => Check::Passed,
        }
    }
}
