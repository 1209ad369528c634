//! Tests of `ombx-mpi` on real ranks: a test driver that re-executes itself as the ranks of each test.

mod channels;
mod endings;
mod teams;
mod windows;

use std::{env, fs, process::ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use ombx_core::benchmark::Threading;
use ombx_mpi::{Mpi, MpiTeam};
use ombx_tests::{Done, Job};

/// Environment variable with the test's name in a process that is a rank.
const NAME: &str = "OMBX_RANK_TEST";

/// A test that runs on several ranks.
struct RankTest {
    name: &'static str,
    /// Numbers of ranks, one job each.
    ranks: &'static [u32],
    /// The function that every rank calls. It panics on failure.
    body: fn(&MpiTeam),
    ending: Ending,
}

/// The expected end of the job.
#[derive(Clone, Copy)]
enum Ending {
    /// Every rank returns.
    Good,
    /// The job fails with this exit code, or any other than 0, and standard error contains these phrases.
    Bad(Option<i32>, &'static [&'static str]),
}

impl RankTest {
    const fn new(name: &'static str, ranks: &'static [u32], body: fn(&MpiTeam)) -> RankTest {
        RankTest { name, ranks, body, ending: Ending::Good }
    }

    const fn ends(mut self, code: Option<i32>, words: &'static [&'static str]) -> RankTest {
        self.ending = Ending::Bad(code, words);
        self
    }
}

fn tests() -> impl Iterator<Item = &'static RankTest> {
    [teams::TESTS, channels::TESTS, windows::TESTS, endings::TESTS].into_iter().flatten()
}

fn main() -> ExitCode {
    match env::var(NAME) {
        Ok(name) => run_rank(&name),
        Err(_) => drive(),
    }
}

fn run_rank(name: &str) -> ExitCode {
    let test = tests().find(|test| test.name == name).expect("the driver names a test");
    Mpi::abort_on_panic();
    let mpi = Mpi::start(Threading::Multiple).expect("MPI starts");
    (test.body)(mpi.team());
    drop(mpi);
    ExitCode::SUCCESS
}

fn drive() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = tests().flat_map(|test| test.ranks.iter().map(move |&ranks| trial(test, ranks))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(test: &'static RankTest, ranks: u32) -> Trial {
    let run = move || {
        let own = env::current_exe()?;
        let done = Job::on_ranks(ranks, &own).env(NAME, test.name).run();
        judge(test.ending, &done).map_err(|why| Failed::from(format!("{why}\n{done}")))?;
        done.leaves_nothing();
        Ok(())
    };
    Trial::test(format!("{}_on_{ranks}", test.name), run)
}

fn judge(ending: Ending, done: &Done) -> Result<(), String> {
    match ending {
        Ending::Good if done.code == Some(0) => Ok(()),
        Ending::Good => Err("a rank failed".into()),
        Ending::Bad(..) if done.code == Some(0) => Err("the job should have failed".into()),
        Ending::Bad(Some(code), _) if done.code != Some(code) => {
            Err(format!("exit code {code} was expected"))
        }
        Ending::Bad(_, words) => match words.iter().find(|word| !done.stderr.contains(**word)) {
            Some(word) => Err(format!("stderr does not contain {word:?}")),
            None => Ok(()),
        },
    }
}

/// Returns the CPU time of this thread in nanoseconds, if the kernel records it.
fn cpu_time() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}
