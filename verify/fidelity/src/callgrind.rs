//! Counting instructions: what a timed loop executes itself, and whom it calls, by valgrind's callgrind.

use std::{collections::BTreeMap, fmt, fs};

use crate::{
    counts::{self, Counts, Mode},
    profile::{Call, Profile},
    programs::Programs,
    row::{Kind, Row},
};
use ombx_toolchain::{
    command::output,
    failure::{Failure, Result},
    mpi::Places,
};

/// Fewer instructions than this may ombx add to an iteration.
const ADDED: f64 = 10.0;
/// To one with many calls it may add this for each: a comparison of the return code, and a jump.
const ADDED_BY_CALL: f64 = 2.0;

/// Iterations that warm up, and that are timed: their difference cancels everything that is done once. Both are whole
/// turns of `Shape::Rounds`.
const WARMUP: u64 = 8;
const ITERATIONS: u64 = 72;
/// Bytes of a message, whatever a row has: they change nothing in the loops, and copying many takes long here.
const BYTES: u32 = 8;

/// Functions of the clock, which the C programs read in place: a part of each sample, not of an iteration, and told apart.
const CLOCK: &str = "quanta::";
/// Through which a C program runs each of its timed loops.
const REFERENCE: &str = "fidelity_timed";

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

/// Counts rows of one kind that one loop of ombx times, on rank 0; the other rank runs as it is. One launch of each program:
/// what the loop does is written whenever it returns, that is once for warming up and once for what is timed, row by row.
pub(crate) fn count(programs: &Programs, kind: Kind, rows: &[&Row]) -> Result<Vec<Count>> {
    let Some(timed) = rows.first().map(|row| row.shape.timed()) else { return Ok(Vec::new()) };
    let short: Vec<Row> = rows.iter().map(|row| Row { bytes: BYTES, ..(*row).clone() }).collect();
    let rows: Vec<&Row> = short.iter().collect();
    let counts: Vec<Counts> = rows.iter().map(|row| Counts::counted(row, ITERATIONS, WARMUP)).collect();
    println!("   {}: {} rows of {} in {timed}", programs.mpi.flavour, rows.len(), kind.program());
    let words = programs.reference_words(kind, &rows, &counts);
    let reference = profiles(programs, kind, &words, REFERENCE)?;
    let words = programs.ombx_words(&counts::suite(&rows, Mode::Fixed(&counts), false))?;
    let ombx = profiles(programs, kind, &words, timed)?;
    // A nonblocking operation is followed by computing, and by both.
    let loops = |row: &Row| if row.pure { 6 } else { 2 };
    let expected: usize = rows.iter().map(|row| loops(row)).sum();
    if reference.len() != 2 * rows.len() || ombx.len() != expected {
        let (c, ours) = (reference.len(), ombx.len());
        return Err(Failure::Missing(format!(
            "callgrind saw {c} loops of the C program and {ours} of ombx, and should see {} and {expected}: stripped?",
            2 * rows.len()
        )));
    }
    let mut at = 0;
    let each = rows.iter().zip(reference.chunks_exact(2)).map(|(row, reference)| {
        let own = &ombx[at..at + 2];
        at += loops(row);
        Count { reference: Iteration::between(reference), ombx: Iteration::between(own) }
    });
    Ok(each.collect())
}

/// What each run of a loop did, in their order. Callgrind 3.19 takes neither patterns nor several names that begin alike for
/// what is written when it returns.
fn profiles(programs: &Programs, kind: Kind, words: &[String], timed: &str) -> Result<Vec<Profile>> {
    let place = programs.directory.join("callgrind");
    // Left by an earlier run, they would be taken for this one's.
    drop(fs::remove_dir_all(&place));
    fs::create_dir_all(&place).map_err(Failure::file(&place))?;
    let out = place.join("out");
    let mut command = programs.mpiexec(kind);
    command.args([
        "-n",
        "1",
        "valgrind",
        "--tool=callgrind",
        "--collect-atstart=no",
        "--separate-threads=no",
    ]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(format!("--toggle-collect={timed}")).arg(format!("--dump-after={timed}"));
    command.args(words).args([":", "-n", "1"]).args(words);
    // The other rank waits most of the time. Its turns change nothing in what is counted.
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    output(&mut command)?;
    let parts = (1..).map(|number| out.with_extension(number.to_string())).take_while(|path| path.is_file());
    parts
        .map(|path| Ok(Profile::parse(&fs::read_to_string(&path).map_err(Failure::file(path))?, &words[0])))
        .collect()
}

impl Iteration {
    /// The difference of warming up and of what is timed.
    fn between(pair: &[Profile]) -> Self {
        let [few, many] = pair else { return Self::default() };
        let per = |few: u64, many: u64| many.saturating_sub(few) as f64 / (ITERATIONS - WARMUP) as f64;
        let without_clock = |profile: &Profile| {
            profile.own.iter().filter(|(name, _)| !name.starts_with(CLOCK)).map(|(_, cost)| cost).sum()
        };
        let own = per(without_clock(few), without_clock(many));
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
    ["fidelity_", "ombx_core::engine::", "0x"].iter().any(|name| function.starts_with(name))
}

impl Count {
    pub(crate) fn added(&self) -> f64 {
        self.ombx.own - self.reference.own
    }

    /// What is wrong with ombx's loop, in words; empty if nothing is.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let allowed = ADDED.max(ADDED_BY_CALL * self.ombx.of_mpi().map(|(_, count)| count).sum::<f64>());
        if self.added() >= allowed {
            faults.push(format!("{:.1} instructions added, {allowed:.0} allowed", self.added()));
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
    let found = Places::here().program("valgrind").is_some();
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
        let many = ITERATIONS - WARMUP;
        let calls: Vec<(&str, u64)> = calls.iter().map(|(name, n)| (*name, n * many / 10)).collect();
        let reference = profile(&[("fidelity_ping", 20 * many)], &[("PMPI_Send", many)]);
        let loops = [("ombx_core::engine::timed", own * many / 10), ("helper", helper * many / 10)];
        let none = profile(&[("helper", 0)], &[]);
        Count {
            reference: Iteration::between(&[none.clone(), reference]),
            ombx: Iteration::between(&[none, profile(&loops, &calls)]),
        }
    }

    #[test]
    fn start_up_cancels() {
        let few = profile(&[("fidelity_ping", 1100)], &[("PMPI_Send", 30), ("getenv", 7)]);
        let many = profile(
            &[("fidelity_ping", 1100 + 22 * (ITERATIONS - WARMUP))],
            &[("PMPI_Send", 30 + ITERATIONS - WARMUP), ("getenv", 7)],
        );
        let one = Iteration::between(&[few, many]);
        assert_eq!(one.own, 22.0);
        assert_eq!(one.calls, BTreeMap::from([("MPI_Send".to_owned(), 1.0)]));
    }

    #[test]
    fn the_same_calls_with_few_instructions_more_are_what_is_wanted() {
        let count = count(250, &[("PMPI_Send", 10), ("clock_gettime", 1)], 0);
        assert_eq!((count.added(), count.faults()), (5.0, vec![]));
        assert_eq!(count.calls(), "MPI_Send, clock_gettime x 0.09");
        assert_eq!(count.to_string(), "met");
    }

    #[test]
    fn the_clock_is_told_apart() {
        let few = profile(&[("quanta::Clock::raw", 10)], &[]);
        let many = profile(&[("quanta::Clock::raw", 900), ("ombx_core::engine::paced", 640)], &[]);
        let one = Iteration::between(&[few, many]);
        assert_eq!((one.own, one.outlined), (10.0, vec!["quanta::Clock::raw".to_owned()]));
    }

    #[test]
    fn everything_else_is_a_fault() {
        assert_eq!(count(300, &[("MPI_Send", 10)], 0).faults().len(), 1);
        assert_eq!(count(250, &[("MPI_Send", 20)], 0).faults(), ["other MPI calls than the C loop"]);
        assert_eq!(count(250, &[("MPI_Send", 10), ("malloc", 1)], 0).faults(), ["calls malloc"]);
        let outlined = count(250, &[("MPI_Send", 10)], 50);
        assert_eq!((outlined.added(), outlined.faults().len()), (10.0, 1));
        let window = Count {
            reference: Iteration { own: 500.0, ..Iteration::default() },
            ombx: Iteration {
                own: 570.0,
                calls: [("MPI_Isend".to_owned(), 64.0)].into(),
                outlined: Vec::new(),
            },
        };
        assert_eq!(window.faults(), ["other MPI calls than the C loop"]);
        assert!(outlined.to_string().ends_with("; helper is not inlined"));
    }
}
