//! The engine's loop: the one place of ombx where the clock is read around benchmark work.
//!
//! `timed` is monomorphised for each kernel; everything around it, in `measure.rs`, calls it once a round.

use crate::{
    acked::Turns,
    case::Case,
    clock::Clock,
    collect::Taken,
    crew,
    error::{Error, Result},
    kernel::{Cx, Kernel},
    layout::Across,
    measure::{self, Make},
    mesh::Mesh,
    pace::{Pace, Pacer},
    payload::{Check, Fill},
    result::Figures,
    team::Team,
    unit::Rank,
};
pub use crate::{
    acked::{run_acked, run_last_ack},
    paced::{run_back_to_back, run_paced},
    session::{Session, selected, sizes_of},
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

/// Times batches one by one, ranks being brought together before each, untimed: `stamps` are their beginnings and ends.
#[inline(never)]
pub(crate) fn paced<K: Kernel, P: Pace<M>, M>(
    kernel: &mut K,
    pacer: &mut Pacer<M>,
    clock: &Clock,
    batch: u64,
    stamps: &mut [u64],
) -> Result<()> {
    for [start, end] in stamps.as_chunks_mut().0 {
        P::wait(pacer, clock)?;
        *start = clock.raw();
        for _ in 0..batch {
            kernel.active()?;
        }
        *end = clock.raw();
    }
    Ok(())
}

/// Runs a kernel in every case of a session: what [`crate::registry::Benchmark::of`] registers.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    measure::every_case(session, &Make::of::<K>(&open::<K>))
}

/// Runs a kernel in every case that it carries, and another in those that it does not; both are of one method.
pub fn run_either<K: Kernel, L: Kernel>(session: &mut Session<'_>) -> Result<()> {
    let open =
        |cx: &Cx<'_>, case: &Case| if K::carries(case) { open::<K>(cx, case) } else { open::<L>(cx, case) };
    measure::every_case(session, &Make::of::<K>(&open))
}

/// Runs a kernel on several threads of each rank at the same time: what [`crate::registry::Benchmark::threaded`] registers.
pub fn run_threaded<K: Kernel + Send + 'static>(session: &mut Session<'_>) -> Result<()> {
    measure::every_case(session, &Make::of::<K>(&crew::open::<K>))
}

/// Times two kinds of iterations in turn: each sample is a batch of work and then a batch of echoes, each after one more that
/// is not timed. `stamps` are the beginnings and ends of both.
#[inline(never)]
pub(crate) fn in_turn<T: Turns>(
    turns: &mut T,
    clock: &Clock,
    [work, echoes]: [u64; 2],
    stamps: &mut [u64],
) -> Result<()> {
    for [work_start, work_end, echo_start, echo_end] in stamps.as_chunks_mut().0 {
        turns.work()?;
        *work_start = clock.raw();
        for _ in 0..work {
            turns.work()?;
        }
        *work_end = clock.raw();
        turns.echo()?;
        *echo_start = clock.raw();
        for _ in 0..echoes {
            turns.echo()?;
        }
        *echo_end = clock.raw();
    }
    Ok(())
}

/// The same iterations on a rank that answers.
#[inline(never)]
pub(crate) fn answered_in_turn<T: Turns>(
    turns: &mut T,
    [work, echoes]: [u64; 2],
    samples: u64,
) -> Result<()> {
    for _ in 0..samples {
        for _ in 0..=work {
            turns.work()?;
        }
        for _ in 0..=echoes {
            turns.echo()?;
        }
    }
    Ok(())
}

/// Times batches of round trips of an empty message; stamps are in a chain.
#[inline(never)]
pub(crate) fn round_trips<M: Mesh>(
    mesh: &mut M,
    other: Rank,
    clock: &Clock,
    batch: u64,
    stamps: &mut [u64],
) -> Result<()> {
    let Some((first, rest)) = stamps.split_first_mut() else { return Ok(()) };
    *first = clock.raw();
    for stamp in rest {
        for _ in 0..batch {
            mesh.send(other, &[])?;
            mesh.receive(other, &mut [])?;
        }
        *stamp = clock.raw();
    }
    Ok(())
}

/// A kernel once it is open, behind a table of functions: a dynamic call a round, none an iteration.
pub(crate) trait Opened {
    /// Threads that are timed, each into stamps of its own.
    fn clocks(&self) -> usize;
    fn fill(&mut self, fill: Fill) -> Result<()>;
    fn begin(&mut self) -> Result<()>;
    /// How the times of ranks combine, where it decides that itself.
    fn across(&self, usual: Across) -> Across {
        usual
    }
    /// Iterations in a sample that need no calibration.
    fn batch(&self) -> Option<u64> {
        None
    }
    /// Readings of the clock that so many samples need.
    fn readings(&self, samples: u64) -> u64 {
        samples + 1
    }
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()>;
    fn answered(&mut self, batch: u64, samples: u64) -> Result<()>;
    /// What the readings of one thread say.
    fn taken(&mut self, clock: &Clock, stamps: &[u64]) -> Taken {
        Taken::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect())
    }
    fn end(&mut self) -> Result<()>;
    fn figures(&mut self) -> Result<Figures>;
    fn check(&mut self, fill: Fill) -> Result<Check>;
    fn close(self: Box<Self>) -> Result<()>;
}

/// A kernel, and the iterations in a sample where they need no calibration.
pub(crate) struct Running<K>(pub(crate) K, pub(crate) Option<u64>);

impl<K: Kernel> Opened for Running<K> {
    fn clocks(&self) -> usize {
        1
    }

    fn batch(&self) -> Option<u64> {
        self.1
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

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        answered(&mut self.0, batch * samples)
    }

    fn end(&mut self) -> Result<()> {
        self.0.end()
    }

    fn figures(&mut self) -> Result<Figures> {
        self.0.figures()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

fn open<'k, K: Kernel + 'k>(cx: &Cx<'_>, case: &Case) -> Result<Box<dyn Opened + 'k>> {
    Ok(Box::new(Running(K::open(cx, case)?, None)))
}

/// Ends all ranks after an error that the others cannot know of; the message has been printed by then.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}
