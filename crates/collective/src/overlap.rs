//! How much of a nonblocking operation hides behind computing: it alone, the computing alone, and both together.

use std::time::Duration;

use ombx_core::{
    benchmark::{
        case::Case,
        compute::Busy,
        context::Context,
        figure::{Figure, Figures},
        kernel::Kernel,
        payload::{Check, Fill},
        work::{Method, Metric, Work},
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
        /// none
        None = "0",
        /// one
        One = "1",
        /// 10
        Ten = "10",
        /// 100
        Hundred = "100",
        /// 1000
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

/// An operation that is started and waited for. As a kernel it is the pure operation: started and waited for at once.
pub trait Nonblocking: Kernel {
    /// What keeps its rank busy.
    type Busy: Busy;

    /// Work that takes a time.
    fn busy(&self, time: Duration) -> Self::Busy;
    /// Starts the operation, runs `slice`, then `tests` times a test of the operation and `slice` again, and waits for it.
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()>;
}

/// How a row of overlap comes about, for [`ombx_core::benchmark::entry::Benchmark::custom`].
pub const METHOD: Method = Method {
    timed: "starting the operation, computing for as long as the operation takes alone, with --tests calls of MPI_Test in \
            between, and waiting for it",
    untimed: "the operation alone and the computing alone, which are measured before and told as pure_us and compute_us; \
              buffers, filling and checking them",
    like: "osu_i*, which calibrates each rank's computing by that rank's own time; here it is the slowest rank's",
};

/// Runs a nonblocking operation in every case of a session.
///
/// Three measurements make a row, each with its own warm-up, samples and checks: the operation alone, whose median the
/// computing is calibrated to last; the computing alone; and both, which is the row's time.
pub fn run<N: Nonblocking, M: Mesh>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pace: Pacing| {
        let pacing = PacedKernels::<M>::of(session, pace);
        row::each_case(session, |session, case| row::<N, M>(session, case, &pacing))
    })
}

fn row<'a, N: Nonblocking, M: Mesh>(
    session: &mut Session<'a>,
    case: &Case,
    pacing: &PacedKernels<'a, M>,
) -> Result<Measurement> {
    let open = |cx: &Context<'_>, case: &Case| pacing.opened(cx, case, cx.agree(N::open(cx, case))?);
    let pure = row::one_case(session, &KernelFactory::of::<N>(&open), case)?;
    // Every rank knows whether it was measured and arrived right.
    if pure.outcome != Outcome::Ok {
        return Ok(pure);
    }
    let median = pure.summary.as_ref().map_or(0.0, |summary| summary.median);
    let time = Duration::from_nanos(session.team.broadcast_value(median as u64)?);
    let open = |cx: &Context<'_>, case: &Case| Computing::<N>::open(cx, case, time);
    let compute = phase(session, case, pacing, &open)?;
    let mut both = phase(session, case, pacing, &|cx, case| open(cx, case).map(Both))?;
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

/// What a row tells beside its time.
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

/// The part of the operation that took no time of its own, as the OSU benchmarks define it:
/// max(0, 100 - 100 (overall - compute) / pure). The reason if it cannot be resolved.
pub fn overlap_percent(
    pure: &Summary,
    compute: &Summary,
    overall: &Summary,
    clock: Facts,
) -> std::result::Result<f64, String> {
    // Without an interval of the median there is the range, which is wider.
    let half = |summary: &Summary| {
        let [low, high] = summary.ci95.unwrap_or([summary.min, summary.max]);
        (high - low) / 2.0
    };
    let noise = half(overall).hypot(half(compute));
    if pure.median <= clock.resolution_ns as f64 {
        Err(format!(
            "the operation alone takes no longer than a step of the clock, {} ns",
            clock.resolution_ns
        ))
    } else if noise > pure.median {
        Err(format!(
            "overall and compute are known to {:.2} us, the operation alone takes {:.2} us",
            noise / 1e3,
            pure.median / 1e3
        ))
    } else {
        Ok((100.0 - 100.0 * (overall.median - compute.median) / pure.median).max(0.0))
    }
}

/// The computing alone, in as many slices as when it overlaps.
struct Computing<N: Nonblocking> {
    operation: N,
    slice: N::Busy,
    tests: u32,
}

impl<N: Nonblocking> Computing<N> {
    fn open(cx: &Context<'_>, case: &Case, time: Duration) -> Result<Computing<N>> {
        let calls: TestCalls = case.choice();
        let tests = calls.count();
        let operation = N::open(cx, case)?;
        Ok(Computing { slice: operation.busy(time / (tests + 1)), operation, tests })
    }
}

impl<N: Nonblocking> Kernel for Computing<N> {
    const METRIC: Metric = N::METRIC;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        N::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Computing::open(cx, case, Duration::ZERO)
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

/// The operation and the computing at the same time.
struct Both<N: Nonblocking>(Computing<N>);

impl<N: Nonblocking> Kernel for Both<N> {
    const METRIC: Metric = N::METRIC;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        N::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Kernel::open(cx, case).map(Both)
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.operation.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.operation.begin()
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        let Computing { operation, slice, tests } = &mut self.0;
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
