//! Counting instructions: what a timed loop executes itself, and whom it calls, by valgrind's callgrind.

use std::{collections::BTreeMap, fmt};

use super::{
    launch::{Programs, output, read},
    profile::{Call, Profile},
    row::Row,
};
use crate::failure::{Failure, Result};

/// Fewer instructions than this may ombx add to an iteration.
const ADDED: f64 = 10.0;

/// Two counts, the difference of which cancels everything but iterations; multiples of [`CHUNK`].
const ITERATIONS: [u64; 2] = [2000, 6000];

/// Iterations between two stamps here.
const CHUNK: u64 = 100;

/// The one timed loop of ombx, whatever kernel it is compiled for.
const TIMED: &str = "ombx_core::engine::timed*";

/// One iteration of one program.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Iteration {
    /// Instructions of the program's own code.
    pub(crate) own: f64,
    /// Calls that leave the program, by function.
    pub(crate) calls: BTreeMap<String, f64>,
    /// Functions of the program itself that the loop calls instead of containing.
    pub(crate) outlined: Vec<String>,
}

/// Both programs on one row.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) reference: Iteration,
    pub(crate) ombx: Iteration,
}

/// Counts one row, on rank 0; the other rank runs as it is.
pub(crate) fn count(programs: &Programs, row: &Row) -> Result<Count> {
    let origin = format!("{}_origin", row.reference);
    let reference = ITERATIONS.map(|iterations| programs.reference_words(row, iterations, CHUNK));
    let ombx = ITERATIONS.map(|iterations| programs.fixed_words(row, iterations, CHUNK));
    Ok(Count {
        reference: iteration(programs, &reference, &origin)?,
        ombx: iteration(programs, &ombx, TIMED)?,
    })
}

fn iteration(programs: &Programs, words: &[Vec<String>; 2], function: &str) -> Result<Iteration> {
    let few = profile(programs, &words[0], function)?;
    let many = profile(programs, &words[1], function)?;
    let found = Iteration::between(&few, &many, ITERATIONS[1] - ITERATIONS[0]);
    if found.own > 0.0 {
        return Ok(found);
    }
    // A stripped binary, or a function that was inlined into its caller.
    Err(Failure::Missing(format!("callgrind saw no function {function} in {}", words[0][0])))
}

fn profile(programs: &Programs, words: &[String], function: &str) -> Result<Profile> {
    let out = programs.room.join("callgrind.out");
    // Left by an earlier run, it would be taken for this one's.
    drop(std::fs::remove_file(&out));
    let mut command = programs.mpiexec();
    command.args(["-n", "1", "valgrind", "--tool=callgrind", "--collect-atstart=no"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(format!("--toggle-collect={function}"));
    command.args(words).args([":", "-n", "1"]).args(words);
    output(&mut command)?;
    Ok(Profile::parse(&read(&out)?, &words[0]))
}

impl Iteration {
    fn between(few: &Profile, many: &Profile, iterations: u64) -> Self {
        let per = |few: u64, many: u64| many.saturating_sub(few) as f64 / iterations as f64;
        let own = per(few.own.values().sum(), many.own.values().sum());
        let mut calls = BTreeMap::new();
        for (Call { function, .. }, count) in &many.calls {
            let before =
                few.calls.iter().filter(|(call, _)| call.function == *function).map(|(_, n)| n).sum();
            let count = per(before, *count);
            if count > 0.0 {
                // The profiling interface's name of the same function.
                let name = function.strip_prefix('P').filter(|name| name.starts_with("MPI_"));
                *calls.entry(name.unwrap_or(function).to_owned()).or_insert(0.0) += count;
            }
        }
        let grew = |(name, cost): &(&String, &u64)| few.own.get(*name).is_none_or(|before| before < *cost);
        let outlined = many.own.iter().filter(grew).map(|(name, _)| name.clone());
        Self { own, calls, outlined: outlined.filter(|name| !is_the_loop(name)).collect() }
    }

    /// Calls of MPI, of which both programs must make the same.
    fn of_mpi(&self) -> impl Iterator<Item = (&String, &f64)> {
        self.calls.iter().filter(|(name, _)| name.starts_with("MPI_"))
    }
}

/// Stubs through which calls leave a program count with the loop.
fn is_the_loop(function: &str) -> bool {
    function.starts_with(TIMED.trim_end_matches('*'))
        || function.ends_with("_origin")
        || function.starts_with("0x")
}

impl Count {
    pub(crate) fn added(&self) -> f64 {
        self.ombx.own - self.reference.own
    }

    /// What is wrong with ombx's loop, in words; empty if nothing is.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.added() >= ADDED {
            faults.push(format!("{:.1} instructions added, {ADDED} allowed", self.added()));
        }
        if !self.ombx.of_mpi().eq(self.reference.of_mpi()) {
            faults.push("other MPI calls than the C loop".into());
        }
        // A reading of the clock where there is no TSC, as under valgrind; everything else could allocate or trap.
        let is_foreign = |name: &&String| !name.starts_with("MPI_") && !name.contains("clock_gettime");
        faults.extend(self.ombx.calls.keys().filter(is_foreign).map(|name| format!("calls {name}")));
        faults
    }

    /// The calls of an iteration of ombx.
    pub(crate) fn calls(&self) -> String {
        let word = |(name, count): (&String, &f64)| match count {
            count if (count - 1.0).abs() < 0.005 => name.clone(),
            count => format!("{name} x {count:.2}"),
        };
        self.ombx.calls.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults();
        match faults.as_slice() {
            [] => f.write_str("met")?,
            some => write!(f, "MISSED: {}", some.join(", "))?,
        }
        // No fault: what such a function executes and calls has been counted.
        self.ombx.outlined.iter().try_for_each(|name| write!(f, "; {name} is not inlined"))
    }
}

/// Why instructions cannot be counted here, if they cannot.
pub(crate) fn unavailable() -> Option<&'static str> {
    let found = crate::mpi::Places::here().program("valgrind").is_some();
    (!found).then_some("valgrind is not installed (Debian: apt-get install valgrind)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(own: &[(&str, u64)], calls: &[(&str, u64)]) -> Profile {
        let call = |function: &str| Call { object: "libmpi.so".into(), function: function.to_owned() };
        Profile {
            own: own.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect(),
            calls: calls.iter().map(|(name, count)| (call(name), *count)).collect(),
        }
    }

    fn count(own: u64, calls: &[(&str, u64)], helper: u64) -> Count {
        let reference = profile(&[("ping_origin", 200)], &[("PMPI_Send", 10)]);
        let ombx = profile(&[("ombx_core::engine::timed", own), ("helper", helper)], calls);
        let none = profile(&[("helper", 0)], &[]);
        Count {
            reference: Iteration::between(&none, &reference, 10),
            ombx: Iteration::between(&none, &ombx, 10),
        }
    }

    #[test]
    fn start_up_cancels() {
        let few = profile(&[("ping_origin", 1100)], &[("PMPI_Send", 30), ("getenv", 7)]);
        let many = profile(&[("ping_origin", 3300)], &[("PMPI_Send", 130), ("getenv", 7)]);
        let one = Iteration::between(&few, &many, 100);
        assert_eq!(one.own, 22.0);
        assert_eq!(one.calls, BTreeMap::from([("MPI_Send".to_owned(), 1.0)]));
    }

    #[test]
    fn the_same_calls_with_few_instructions_more_are_what_is_wanted() {
        let count = count(250, &[("PMPI_Send", 10), ("clock_gettime", 1)], 0);
        assert_eq!((count.added(), count.faults()), (5.0, vec![]));
        assert_eq!(count.calls(), "MPI_Send, clock_gettime x 0.10");
        assert_eq!(count.to_string(), "met");
    }

    #[test]
    fn everything_else_is_a_fault() {
        assert_eq!(count(300, &[("MPI_Send", 10)], 0).faults().len(), 1);
        assert_eq!(count(250, &[("MPI_Send", 20)], 0).faults(), ["other MPI calls than the C loop"]);
        assert_eq!(count(250, &[("MPI_Send", 10), ("malloc", 1)], 0).faults(), ["calls malloc"]);
        let outlined = count(250, &[("MPI_Send", 10)], 50);
        assert_eq!((outlined.added(), outlined.faults().len()), (10.0, 1));
        assert!(outlined.to_string().ends_with("; helper is not inlined"));
    }
}
