//! The engine's loop: the one place of ombx where the clock is read around benchmark work.
//!
//! `timed` is monomorphised for each kernel; everything around it, in `measure.rs`, calls it once a round.

pub use crate::session::{Session, selected, sizes_of};
use crate::{
    case::Case,
    clock::Clock,
    crew,
    error::{Error, Result},
    kernel::{Cx, Kernel},
    measure,
    payload::{Check, Fill},
    team::Team,
};

/// Times batches: `stamps[i+1] - stamps[i]` is the time of `batch` iterations. Everything else is done elsewhere.
#[inline(never)]
pub(crate) fn timed<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    let Some((first, rest)) = stamps.split_first_mut() else { return Ok(()) };
    *first = clock.raw();
    for stamp in rest {
        for _ in 0..batch {
            kernel.active()?;
        }
        *stamp = clock.raw();
    }
    Ok(())
}

/// The same iterations on a rank that answers.
#[inline(never)]
pub(crate) fn answered<K: Kernel>(kernel: &mut K, iterations: u64) -> Result<()> {
    for _ in 0..iterations {
        kernel.passive()?;
    }
    Ok(())
}

/// Runs a kernel in every case of a session: what [`crate::registry::Benchmark::of`] registers.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    measure::every_case(session, &measure::Make { metric: K::METRIC, work: K::work, open: open::<K> })
}

/// Runs a kernel on several threads of each rank at the same time: what [`crate::registry::Benchmark::threaded`] registers.
pub fn run_threaded<K: Kernel + Send + 'static>(session: &mut Session<'_>) -> Result<()> {
    measure::every_case(session, &measure::Make { metric: K::METRIC, work: K::work, open: crew::open::<K> })
}

/// A kernel once it is open, behind a table of functions: a dynamic call a round, none an iteration.
pub(crate) trait Opened {
    /// Threads that are timed, each into stamps of its own.
    fn clocks(&self) -> usize;
    fn fill(&mut self, fill: Fill) -> Result<()>;
    fn begin(&mut self) -> Result<()>;
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()>;
    fn answered(&mut self, iterations: u64) -> Result<()>;
    fn end(&mut self) -> Result<()>;
    fn check(&mut self, fill: Fill) -> Result<Check>;
    fn close(self: Box<Self>) -> Result<()>;
}

struct Running<K>(K);

impl<K: Kernel> Opened for Running<K> {
    fn clocks(&self) -> usize {
        1
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.begin()
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        stamps.iter_mut().try_for_each(|stamps| timed(&mut self.0, clock, batch, stamps))
    }

    fn answered(&mut self, iterations: u64) -> Result<()> {
        answered(&mut self.0, iterations)
    }

    fn end(&mut self) -> Result<()> {
        self.0.end()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

fn open<'k, K: Kernel + 'k>(cx: &Cx<'_>, case: &Case) -> Result<Box<dyn Opened + 'k>> {
    Ok(Box::new(Running(K::open(cx, case)?)))
}

/// Ends all ranks after an error that the others cannot know of; the message has been printed by then.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}
