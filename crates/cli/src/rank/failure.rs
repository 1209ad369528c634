//! The end of a job on a rank's error.

use std::{sync::Mutex, thread, time::Duration};

use ombx_core::{
    error::Error,
    measure::{engine, runner::Part},
    system::environment::hostname,
    team::Team,
};

use crate::job::Job;

/// Benchmarks of ranks that the user's launcher has started, in order, and the options that add to their result file.
static PLAN: Mutex<(Vec<&str>, String)> = Mutex::new((Vec::new(), String::new()));

/// Remembers what ranks of the user's launcher measure. Those of the launching process are started again by it.
pub(super) fn plan(job: &Job, parts: &[Part]) {
    let benches = parts.iter().flat_map(|part| &part.choices).map(|choice| choice.bench.name);
    let out = job.output.file.out.as_ref().map(|out| format!(" -o {} --append", out.display()));
    if let (None, Ok(mut plan)) = (job.role.relay, PLAN.lock()) {
        *plan = (benches.collect(), out.unwrap_or_default());
    }
}

/// Sets the line about what is not measured if this rank fails in the benchmark with this number.
pub(super) fn enter(number: usize) {
    let Ok(plan) = PLAN.lock() else { return };
    let (benches, out) = &*plan;
    let line = match benches.get(number + 1..) {
        None | Some([]) => String::new(),
        Some(left) => format!(
            "ombx: not measured: the rest of {}, {}. To measure them, start the launcher again, with: ombx run {}{out} and your other options\n",
            benches[number],
            left.join(", "),
            left.join(" ")
        ),
    };
    #[cfg(feature = "mpi")]
    ombx_mpi::Mpi::name_rest(&line);
    #[cfg(not(feature = "mpi"))]
    drop(line);
}

/// Time that rank 0 has for printing an error that all ranks have, before another rank prints it.
const RANK_0_PRINTS: Duration = Duration::from_millis(300);

/// Prints an error and ends all ranks.
pub(super) fn abort(team: &dyn Team, error: &Error) -> ! {
    print(team.rank().0.into(), error);
    engine::give_up(team, error)
}

/// Prints an error of this rank.
pub(super) fn print(rank: u64, error: &Error) {
    if rank != 0 {
        thread::sleep(RANK_0_PRINTS);
    }
    stderr_line!("ombx: rank {rank} on {}: {error}", hostname());
}
