//! Overlap of a nonblocking operation with computation: times of the operation, of the computation, and of both together.

use std::time::Duration;

use ombx_core::{
    benchmark::{
        Busy, Case, Context, Figure, Figures, Kernel, Method, Metric, Work,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        row::{self, KernelFactory},
        session::Session,
    },
    pacing::{mesh::Mesh, pace::Pacing, paced_kernel::PacedKernels},
    result::{Measurement, Outcome},
    stats::Summary,
    system::clock::Facts,
};

ombx_core::axis! {
    /// Calls of MPI_Test during the computation that overlaps a nonblocking operation
    pub enum TestCalls: "tests", IfChosen, default None {
        /// No calls
        None = "0",
        /// One call
        One = "1",
        /// 10 calls
        Ten = "10",
        /// 100 calls
        Hundred = "100",
        /// 1000 calls
        Thousand = "1000",
    }
}

impl TestCalls {
    const fn count(self) -> u32 {
        match self {
            TestCalls::None => 0,
            TestCalls::One => 1,
            TestCalls::Ten => 10,
            TestCalls::Hundred => 100,
            TestCalls::Thousand => 1000,
        }
    }
}

/// A nonblocking operation. As a kernel, it starts the operation and waits for it without computation in between.
pub trait Overlappable: Kernel {
    /// Work that keeps the CPU busy without calls of the library.
    type Computation: Busy;

    /// Returns work that takes the given time.
    fn computation(&self, time: Duration) -> Self::Computation;
    /// Starts the operation, runs `slice`, tests the operation and runs `slice` again `tests` times, and waits.
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()>;
}

/// Description of the method, for registry entries.
pub const METHOD: Method = Method {
    timed: "starting the operation, computation that lasts as long as the operation alone, with --tests calls of MPI_Test in \
            between, and waiting for the operation",
    untimed: "the operation alone (pure_us) and the computation alone (compute_us), which are measured before; \
              buffers, filling and checking them",
    like: "osu_i*, which calibrates the computation of each rank to that rank's time; ombx uses the slowest rank's",
};

/// Measures a nonblocking operation in every case of a session.
///
/// A row takes three measurements, each with warm-up, samples and verification: the operation alone, a computation as long
/// as the median of the operation, and both together. The time of the row is that of both together.
pub fn run<N: Overlappable, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pace: Pacing| {
        let pacing = PacedKernels::<M>::of(session, pace);
        row::each_case(session, |session, case| row::<N, M>(session, case, &pacing))
    })
}

fn row<'a, N: Overlappable, M: Mesh>(
    session: &mut Session<'a>,
    case: &Case,
    pacing: &PacedKernels<'a, M>,
) -> Result<Measurement> {
    let open = |cx: &Context<'_>, case: &Case| pacing.opened(cx, case, cx.agree(N::open(cx, case))?);
    let pure = row::one_case(session, &KernelFactory::of::<N>(&open), case)?;
    // All ranks know this outcome, so all return here or none.
    if pure.outcome != Outcome::Ok {
        return Ok(pure);
    }
    let median = pure.summary.as_ref().map_or(0.0, |summary| summary.median);
    let time = Duration::from_nanos(session.team.broadcast_value(median as u64)?);
    let open = |cx: &Context<'_>, case: &Case| ComputationAlone::<N>::open(cx, case, time);
    let compute = phase(session, case, pacing, &open)?;
    let mut both = phase(session, case, pacing, &|cx, case| open(cx, case).map(OperationAndComputation))?;
    if both.outcome == Outcome::Ok {
        both.figures.extend(figures(&pure, &compute, &both, session.clock.facts()));
    }
    Ok(both)
}

fn phase<'a, K: Kernel, M: Mesh>(
    session: &Session<'a>,
    case: &Case,
    pacing: &PacedKernels<'a, M>,
    open: &dyn Fn(&Context<'_>, &Case) -> Result<K>,
) -> Result<Measurement> {
    let open = |cx: &Context<'_>, case: &Case| pacing.opened(cx, case, cx.agree(open(cx, case))?);
    row::measure(session, &KernelFactory::of::<K>(&open), case)
}

/// Returns the figures of a row: times of the operation and the computation, and the overlap.
fn figures(pure: &Measurement, compute: &Measurement, both: &Measurement, clock: Facts) -> Figures {
    let (Some(pure), Some(compute), Some(both)) = (&pure.summary, &compute.summary, &both.summary) else {
        return Figures::new();
    };
    let overlap = match overlap_percent(pure, compute, both, clock) {
        Ok(percent) => Figure::Value(percent),
        Err(why) => Figure::Unresolved(why),
    };
    let us = |summary: &Summary| Figure::Value(summary.median / 1e3);
    Figures::from([
        ("compute_us".into(), us(compute)),
        ("pure_us".into(), us(pure)),
        ("overlap_percent".into(), overlap),
    ])
}

/// Returns the overlap as the OSU benchmarks define it: max(0, 100 - 100 (overall - compute) / pure).
///
/// # Errors
/// The reason why the samples do not resolve the overlap.
pub fn overlap_percent(
    pure: &Summary,
    compute: &Summary,
    overall: &Summary,
    clock: Facts,
) -> std::result::Result<f64, String> {
    // Without an interval of the median, the range is used, which is wider.
    let half = |summary: &Summary| {
        let [low, high] = summary.ci95.unwrap_or([summary.min, summary.max]);
        (high - low) / 2.0
    };
    let noise = half(overall).hypot(half(compute));
    if pure.median <= clock.resolution_ns as f64 {
        Err(format!(
            "the operation alone takes at most the resolution of the clock, {} ns",
            clock.resolution_ns
        ))
    } else if noise > pure.median {
        Err(format!(
            "the error of overall minus compute is {:.2} us, the operation alone takes {:.2} us",
            noise / 1e3,
            pure.median / 1e3
        ))
    } else {
        Ok((100.0 - 100.0 * (overall.median - compute.median) / pure.median).max(0.0))
    }
}

/// Kernel of the computation alone, in as many slices as when it overlaps.
struct ComputationAlone<N: Overlappable> {
    operation: N,
    slice: N::Computation,
    tests: u32,
}

impl<N: Overlappable> ComputationAlone<N> {
    fn open(cx: &Context<'_>, case: &Case, time: Duration) -> Result<ComputationAlone<N>> {
        let calls: TestCalls = case.choice();
        let tests = calls.count();
        let operation = N::open(cx, case)?;
        Ok(ComputationAlone { slice: operation.computation(time / (tests + 1)), operation, tests })
    }
}

impl<N: Overlappable> Kernel for ComputationAlone<N> {
    const METRIC: Metric = N::METRIC;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        N::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        ComputationAlone::open(cx, case, Duration::ZERO)
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        for _ in 0..=self.tests {
            self.slice.run();
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        self.operation.close()
    }
}

/// Kernel of the operation and the computation together.
struct OperationAndComputation<N: Overlappable>(ComputationAlone<N>);

impl<N: Overlappable> Kernel for OperationAndComputation<N> {
    const METRIC: Metric = N::METRIC;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        N::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Kernel::open(cx, case).map(OperationAndComputation)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.operation.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.operation.begin()
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        let ComputationAlone { operation, slice, tests } = &mut self.0;
        operation.overlapped(*tests, || slice.run())
    }

    fn end(&mut self) -> Result<()> {
        self.0.operation.end()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.operation.check(fill)
    }

    fn close(self) -> Result<()> {
        self.0.operation.close()
    }
}

#[cfg(test)]
mod tests;
