//! The two sides of a comparison: the open kernel of ombx, and the C loop that makes the same calls.

use ombx_core::{
    benchmark::{Case, Parameter, Role, SHARED_THREADS},
    clock::Clock,
    measure::open_kernel::OpenKernel,
};
use ombx_record::error::Result;

use crate::{reference::Loop, row::Shape};

/// Side whose block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ombx,
    C,
}

/// Both sides of one case. They share communicator, buffers, window and requests.
pub(crate) struct Sides<'k> {
    pub(crate) kernel: &'k mut dyn OpenKernel,
    pub(crate) reference: Loop,
    pub(crate) clock: &'k Clock,
    pub(crate) role: Role,
    pub(crate) shape: Shape,
    /// Whether the timed loop runs on a thread of its own.
    pub(crate) threaded: bool,
}

impl<'k> Sides<'k> {
    pub(crate) fn new(
        kernel: &'k mut dyn OpenKernel,
        reference: Loop,
        clock: &'k Clock,
        (role, case, shape): (Role, &Case, Shape),
    ) -> Sides<'k> {
        let is_shared = |parameter: &Parameter| {
            parameter == SHARED_THREADS && parameter.default == SHARED_THREADS.default
        };
        // Of threads with partners, the first is the main thread.
        let threaded = case.values.parameters().any(is_shared);
        Sides { kernel, reference, clock, role, shape, threaded }
    }

    /// Runs a block of this many iterations. Returns the ticks of each sample; none on a rank that is not timed.
    pub(crate) fn run(&mut self, side: Side, iterations: u64) -> Result<Vec<u64>> {
        let (batch, samples) = self.shape.divide(iterations);
        if self.role == Role::Passive {
            match side {
                Side::Ombx => self.kernel.answered(batch, samples)?,
                Side::C if self.threaded => on_a_thread(&mut self.reference, |c| c.answered(batch, samples)),
                Side::C => self.reference.answered(batch, samples),
            }
            return Ok(Vec::new());
        }
        // The pages of the stamps are touched before timing starts.
        let mut stamps = vec![vec![u64::MAX; self.kernel.readings(samples) as usize]];
        self.timed(side, (batch, samples), &mut stamps)?;
        Ok(self.shape.ticks(&stamps.concat()))
    }

    /// Runs the timed loop. callgrind profiles this function.
    #[inline(never)]
    fn timed(&mut self, side: Side, (batch, samples): (u64, u64), stamps: &mut [Vec<u64>]) -> Result<()> {
        match (side, stamps) {
            (Side::Ombx, stamps) => self.kernel.timed_alone(self.clock, batch, stamps)?,
            (Side::C, [stamps]) if self.threaded => {
                on_a_thread(&mut self.reference, |c| c.timed(batch, samples, stamps));
            }
            (Side::C, [stamps]) => self.reference.timed(batch, samples, stamps),
            (Side::C, _) => {}
        }
        Ok(())
    }
}

fn on_a_thread(reference: &mut Loop, work: impl FnOnce(&mut Loop) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| work(reference));
    });
}
