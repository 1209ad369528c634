//! Functions that run the kernel of an entry in every case, on one thread or several.

use crate::{
    benchmark::{Benchmark, Case, Context, Kernel, SHARED_THREADS, Threading},
    error::{Error, Result},
    measure::{
        opened::{Loops, OneThread, OpenKernel},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        workers,
    },
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
    pub const fn threaded<K: Kernel + Send>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_threaded::<K>);
        entry.needing(Threading::Multiple).with(&[SHARED_THREADS])
    }
}

/// Opens a kernel for a case.
pub type OpenLoops<L = dyn Loops> = fn(&Context<'_>, &Case) -> Result<Box<L>>;

/// Runs a kernel in every case of a session. [`Benchmark::of`] registers it.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    run_loops(session, const { KernelKind::new::<K>() }, open::<K>)
}

/// Runs kernel `K` in every case that it supports, and `L` in the others. Both use the same method.
pub fn run_either<K: Kernel, L: Kernel>(session: &mut Session<'_>) -> Result<()> {
    run_loops(session, const { KernelKind::new::<K>() }, |cx, case| {
        if K::supports(case) { open::<K>(cx, case) } else { open::<L>(cx, case) }
    })
}

/// Runs a kernel on several threads of each rank at the same time. [`Benchmark::threaded`] registers it.
pub fn run_threaded<K: Kernel + Send>(session: &mut Session<'_>) -> Result<()> {
    let open = |cx: &Context<'_>, case: &Case| workers::open_pool(cx, case, open_on_thread::<K>);
    row::every_case(session, &KernelFactory::new(const { KernelKind::new::<K>() }, &open))
}

/// Opens a kernel and forgets its type.
pub fn open<K: Kernel>(cx: &Context<'_>, case: &Case) -> Result<Box<dyn Loops>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Opens a kernel for a thread and forgets its type.
pub(crate) fn open_on_thread<K: Kernel + Send>(
    cx: &Context<'_>,
    case: &Case,
) -> Result<Box<dyn Loops + Send>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Runs kernels in every case of a session. Several pairs begin each sample together; one pair runs the plain loop.
fn run_loops(session: &mut Session<'_>, kind: KernelKind, open: OpenLoops) -> Result<()> {
    let (team, clock) = (session.team, session.clock);
    let open = |cx: &Context<'_>, case: &Case| -> Result<Box<dyn OpenKernel + '_>> {
        let kernel = open(cx, case);
        Ok(Box::new(if case.pairs == 1 {
            OneThread::chained(kernel?, None)
        } else {
            OneThread::together(cx.agree(kernel)?, (team, clock, cx.role))?
        }))
    };
    row::every_case(session, &KernelFactory::new(kind, &open))
}

/// Ends all ranks after an error of this rank alone. The caller has printed the message.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}
