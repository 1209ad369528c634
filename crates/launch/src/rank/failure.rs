//! The end of a job on a rank's error.

use std::{sync::Mutex, thread, time::Duration};

use ombx_core::{measure::engine, team::Team};
use ombx_host::environment::hostname;
use ombx_record::error::Error;

use crate::job::{Job, Work, selection};

/// Benchmarks that ranks of the user's launcher measure.
struct Benchmarks {
    /// Names in the order of measuring.
    names: Vec<&'static str>,
    /// How many of them have begun, and how many `--from` has left out before them.
    begun: usize,
    left_out: usize,
    /// Words that add to the result file of the job, if it has one.
    append: &'static str,
}

static BENCHMARKS: Mutex<Option<Benchmarks>> = Mutex::new(None);

/// Remembers what ranks of the user's launcher measure. The launching process starts ranks of its own again.
pub(super) fn plan(job: &Job) {
    let (Work::Benchmarks(parts), Ok(mut kept)) = (&job.work, BENCHMARKS.lock()) else {
        return;
    };
    let names = selection::in_order(parts).into_iter().map(|(part, at)| parts[part].choices[at].bench.name);
    // The output of OMB and IMB has no continuation.
    if job.output.screen.format().is_none() {
        return;
    }
    let left_out = job.extent.left_out;
    let append = if job.output.file.is_some() { " --append" } else { "" };
    *kept = Some(Benchmarks { names: names.collect(), begun: 0, left_out, append });
}

/// Takes note of the next benchmark.
pub(super) fn enter() {
    let Ok(mut kept) = BENCHMARKS.lock() else { return };
    let Some(benchmarks) = &mut *kept else { return };
    benchmarks.begun += 1;
    #[cfg(feature = "mpi")]
    ombx_mpi::Mpi::name_rest(&benchmarks.rest().map_or(String::new(), |line| format!("ombx: {line}\n")));
}

/// Prints what is not measured if this rank fails now.
#[cfg(feature = "sockets")]
pub(super) fn print_rest() {
    let rest = BENCHMARKS.lock().ok().and_then(|kept| kept.as_ref().and_then(Benchmarks::rest));
    if let Some(line) = rest {
        stderr_line!("ombx: {line}");
    }
}

impl Benchmarks {
    /// Returns a sentence about what is left; `None` before the first benchmark, and if none is left.
    fn rest(&self) -> Option<String> {
        let current = self.names.get(self.begun.checked_sub(1)?)?;
        let next = self.names.get(self.begun)?;
        let others = match self.names.len() - self.begun - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let number = self.left_out + self.begun + 1;
        Some(format!(
            "not measured: the rest of {current}; {next}{others}. Measure them by the same command with --from {number}{}",
            self.append
        ))
    }
}

/// Time that rank 0 has for printing an error that all ranks have, before another rank prints it.
pub(super) const RANK_0_PRINTS: Duration = Duration::from_millis(300);

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

#[cfg(test)]
mod tests {
    use crate::rank::failure::*;

    #[test]
    fn the_sentence_about_the_rest_is_short_for_any_number_of_benchmarks() {
        let rest = |begun, left_out, append| {
            Benchmarks { names: [["a.b"; 999].as_slice(), &["c.d"]].concat(), begun, left_out, append }.rest()
        };
        assert_eq!(
            rest(1, 0, "").unwrap(),
            "not measured: the rest of a.b; a.b, and 998 more. Measure them by the same command with --from 2"
        );
        assert_eq!(
            rest(999, 7, " --append").unwrap(),
            "not measured: the rest of a.b; c.d. Measure them by the same command with --from 1007 --append"
        );
        assert_eq!([rest(0, 0, ""), rest(1000, 0, "")], [None, None]);
    }
}
