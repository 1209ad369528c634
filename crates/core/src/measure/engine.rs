//! Functions that run the kernel of an entry in every case, on one thread or several.

use crate::{
    benchmark::{Benchmark, Case, Context, Kernel, SHARED_THREADS, Threading},
    error::{Error, Result},
    measure::{
        opened::{OpenKernel, SingleThreaded},
        row::{self, KernelFactory},
        session::Session,
        thread_pool,
    },
    pacing::paced_pairs::PacedPairs,
    system::clock::Clock,
    team::Team,
};

impl Benchmark {
    /// Returns an entry that runs kernel `K`, by default on one pair of ranks with 1 B to 4 MiB.
    #[track_caller]
    pub const fn of<K: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, run::<K>)
    }

    /// Returns an entry that runs kernel `K` in cases that it supports, and `L` in others, such as longer messages.
    #[track_caller]
    pub const fn either<K: Kernel, L: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, run_either::<K, L>)
    }

    /// Returns an entry that runs a kernel on several threads of each rank at the same time.
    #[track_caller]
    pub const fn threaded<K: Kernel + Send + 'static>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_threaded::<K>);
        entry.needing(Threading::Multiple).with(&[SHARED_THREADS])
    }
}

/// Runs a kernel in every case of a session. [`Benchmark::of`] registers it.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| open::<K>(team, clock, cx, case);
    row::every_case(session, &KernelFactory::of::<K>(&open))
}

/// Runs kernel `K` in every case that it supports, and `L` in the others. Both use the same method.
pub fn run_either<K: Kernel, L: Kernel>(session: &mut Session<'_>) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| match K::supports(case) {
        true => open::<K>(team, clock, cx, case),
        false => open::<L>(team, clock, cx, case),
    };
    row::every_case(session, &KernelFactory::of::<K>(&open))
}

/// Runs a kernel on several threads of each rank at the same time. [`Benchmark::threaded`] registers it.
pub fn run_threaded<K: Kernel + Send + 'static>(session: &mut Session<'_>) -> Result<()> {
    row::every_case(session, &KernelFactory::of::<K>(&thread_pool::open::<K>))
}

/// Opens a kernel. Several pairs begin each sample together; one pair runs the plain loop.
fn open<'k, K: Kernel + 'k>(
    team: &'k dyn Team,
    clock: &Clock,
    cx: &Context<'_>,
    case: &Case,
) -> Result<Box<dyn OpenKernel + 'k>> {
    Ok(match case.pairs {
        1 => Box::new(SingleThreaded(K::open(cx, case)?, None)),
        _ => Box::new(PacedPairs::<K>::open(team, clock, cx, case)?),
    })
}

/// Ends all ranks after an error of this rank alone. The caller has printed the message.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}
