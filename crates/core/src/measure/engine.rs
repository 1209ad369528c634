//! What runs the kernel of an entry: in every case, on one thread or several.

use crate::{
    benchmark::{case::Case, context::Context, entry::Benchmark, kernel::Kernel, threads::Threading},
    error::{Error, Result},
    measure::{
        opened::{OpenKernel, SingleThreaded},
        row::{self, KernelFactory},
        session::Session,
        thread_pool,
    },
    team::Team,
};

impl Benchmark {
    /// An entry that runs a kernel; one pair of ranks, 1 B to 4 MiB, unless said otherwise.
    #[track_caller]
    pub const fn of<K: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, run::<K>)
    }

    /// An entry that runs a kernel, and another in cases that the first does not carry, such as longer messages.
    #[track_caller]
    pub const fn either<K: Kernel, L: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, run_either::<K, L>)
    }

    /// An entry that runs a kernel on several threads of each rank at the same time.
    #[track_caller]
    pub const fn threaded<K: Kernel + Send + 'static>(name: &'static str, about: &'static str) -> Benchmark {
        let entry = Benchmark::custom(name, about, K::METRIC, K::METHOD, run_threaded::<K>);
        Benchmark { threading: Threading::Multiple, ..entry }
    }
}

/// Runs a kernel in every case of a session: what [`crate::benchmark::entry::Benchmark::of`] registers.
pub fn run<K: Kernel>(session: &mut Session<'_>) -> Result<()> {
    row::every_case(session, &KernelFactory::of::<K>(&open::<K>))
}

/// Runs a kernel in every case that it carries, and another in those that it does not; both are of one method.
pub fn run_either<K: Kernel, L: Kernel>(session: &mut Session<'_>) -> Result<()> {
    let open = |cx: &Context<'_>, case: &Case| {
        if K::supports(case) { open::<K>(cx, case) } else { open::<L>(cx, case) }
    };
    row::every_case(session, &KernelFactory::of::<K>(&open))
}

/// Runs a kernel on several threads of each rank at the same time: what [`crate::benchmark::entry::Benchmark::threaded`] registers.
pub fn run_threaded<K: Kernel + Send + 'static>(session: &mut Session<'_>) -> Result<()> {
    row::every_case(session, &KernelFactory::of::<K>(&thread_pool::open::<K>))
}

fn open<'k, K: Kernel + 'k>(cx: &Context<'_>, case: &Case) -> Result<Box<dyn OpenKernel + 'k>> {
    Ok(Box::new(SingleThreaded(K::open(cx, case)?, None)))
}

/// Ends all ranks after an error that the others cannot know of; the message has been printed by then.
pub fn give_up(team: &dyn Team, error: &Error) -> ! {
    team.abort(error.kind().exit_code())
}
