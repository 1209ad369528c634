//! Instructions and calls of a timed loop, counted by callgrind of valgrind.

use std::{collections::BTreeMap, fmt, fs};

use crate::{
    paired::{Line, Paired, finished, launcher},
    profile::{Calls, Profile},
};
use ombx_toolchain::{Failure, Places, Result, emptied, table};

/// Goal: ombx adds fewer instructions than this to an iteration.
const ADDED: f64 = 10.0;
/// Goal for iterations with many calls, per call: a comparison of the return code and a jump.
const ADDED_BY_CALL: f64 = 2.0;

/// Iterations of a short and a long block. Their difference cancels everything that is done once. Both are multiples of a round
/// of back-to-back broadcasts.
const FEW: u64 = 8;
const MANY: u64 = 72;
/// Message size: it does not change the loops, and copying is slow under valgrind.
const BYTES: &str = "8";
/// Profiles of a row: a short and a long block of ombx, and of C.
const PROFILES: usize = 4;

/// Prefix of the functions of the clock, which are not counted: they belong to a sample, not to an iteration.
const CLOCK: &str = "quanta::";
/// Function that runs a block of either side on a timed rank.
const TIMED: &str = "ombx_paired::side::Sides::timed";

/// Costs of one iteration of one side.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Iteration {
    /// Instructions of its own code.
    pub(crate) own: f64,
    /// Calls that leave the program, by function.
    pub(crate) calls: BTreeMap<String, f64>,
    /// Functions of the program that are not inlined into the loop.
    pub(crate) outlined: Vec<String>,
}

/// Iterations of both sides on one row.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) reference: Iteration,
    pub(crate) ombx: Iteration,
    /// Most instructions that the row may add, if it has a goal of its own.
    pub(crate) goal: Option<f64>,
}

/// Loops that are counted with every change, and the most instructions that an iteration may add to C.
///
/// Below 0, the C loop reads more from memory.
const SAMPLE: [(&str, f64); 11] = [
    ("p2p.latency", -3.0),
    ("p2p.bw", -130.0),
    ("p2p.latency_persistent", -4.0),
    ("p2p.bw_persistent", -3.0),
    ("p2p.bibw_persistent", -2.0),
    ("rma.put_latency flush", -2.0),
    ("rma.put_latency fence", -4.0),
    ("rma.put_bw flush", -250.0),
    ("collective.allreduce", -5.0),
    ("collective.igather", -3.0),
    ("collective.scatterv_persistent", -5.0),
];

/// Kernels that are slower on purpose, and the loop of [`SAMPLE`] whose goal they must miss.
const SLOWED: [(&str, &str); 2] =
    [("slowed.latency", "p2p.latency"), ("slowed.put_bw flush", "rma.put_bw flush")];

/// Returns the most instructions that a row may add, if it has a goal of its own.
fn goal_of(row: &str) -> Option<f64> {
    let row = SLOWED.iter().find(|(slowed, _)| *slowed == row).map_or(row, |(_, origin)| origin);
    SAMPLE.iter().find(|(name, _)| *name == row).map(|(_, most)| *most)
}

/// Rows to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows<'a> {
    /// Those whose name contains this.
    Named(&'a str),
    /// [`SAMPLE`].
    Sample,
    /// Kernels that are slower on purpose.
    Slowed,
}

/// Counts the instructions of rows on rank 0 in one launch. callgrind writes a profile whenever a block ends.
pub(crate) fn count(paired: &Paired, rows: Rows<'_>) -> Result<Vec<(Line, Count)>> {
    let place = paired.directory.join("callgrind");
    // Removes profiles of an earlier run.
    emptied(&place)?;
    let out = place.join("out");
    let (few, many) = (FEW.to_string(), MANY.to_string());
    let names = place.join("rows").display().to_string();
    let mut words = vec!["--count", &few, &many];
    match rows {
        Rows::Named(pattern) => words.extend(["--bytes", BYTES, "--row", pattern]),
        Rows::Sample => {
            let keys: String = SAMPLE.iter().map(|(row, _)| format!("{row} {BYTES}\n")).collect();
            fs::write(&names, keys).map_err(Failure::file(&names))?;
            words.extend(["--only", &names]);
        }
        Rows::Slowed => words.extend(["--slowed", "--bytes", BYTES]),
    }
    let mut command = launcher(&paired.mpi);
    command.args("-n 1 valgrind --tool=callgrind --collect-atstart=no --separate-threads=no".split(' '));
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(format!("--toggle-collect={TIMED}")).arg(format!("--dump-after={TIMED}"));
    command.arg(&paired.program).args(&words).args([":", "-n", "1"]).arg(&paired.program).args(&mut words);
    // The other rank waits most of the time and is not counted.
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    let lines = finished(&mut command)?.lines;
    if rows == Rows::Sample
        && let Some((absent, _)) = SAMPLE.iter().find(|(row, _)| lines.iter().all(|line| line.row != *row))
    {
        return Err(Failure::Missing(format!("the sample names {absent}, and there is no such row")));
    }
    let counted: Vec<Line> = lines.into_iter().filter(|line| line.counted).collect();
    let program = paired.program.display().to_string();
    let parts = (1..).map(|number| out.with_extension(number.to_string())).take_while(|path| path.is_file());
    let profiles: Vec<Profile> = parts
        .map(|path| Ok(Profile::parse(&fs::read_to_string(&path).map_err(Failure::file(path))?, &program)))
        .collect::<Result<_>>()?;
    if counted.is_empty() || profiles.len() != PROFILES * counted.len() {
        return Err(Failure::Missing(format!(
            "callgrind saw {} blocks instead of {}. Is the program stripped?",
            profiles.len(),
            PROFILES * counted.len()
        )));
    }
    let counts = counted.into_iter().zip(profiles.chunks_exact(PROFILES)).map(|(line, profiles)| {
        let ombx = Iteration::between(&profiles[..2]);
        let goal = goal_of(&line.row);
        let reference = Iteration::between(&profiles[2..]);
        (line, Count { ombx, reference, goal })
    });
    Ok(counts.collect())
}

/// Returns a table with a line for each row.
pub(crate) fn table_of(counts: &[(Line, Count)]) -> String {
    let head = "row | C | ombx | added | calls of an iteration | verdict";
    let line = |(line, count): &(Line, Count)| {
        let [c, ombx, added] = [count.reference.own, count.ombx.own, count.added()];
        format!("{} | {c:.1} | {ombx:.1} | {added:.1} | {} | {count}", line.row, count.calls())
    };
    table(head, counts.iter().map(line))
}

/// Returns in one sentence how many rows were counted, the most that ombx adds, and the rows that missed their goal.
pub(crate) fn short_of(counts: &[(Line, Count)]) -> String {
    let most = counts.iter().map(|(_, count)| count.added()).fold(0.0, f64::max);
    let missed: Vec<&str> = counts
        .iter()
        .filter(|(_, count)| !count.faults().is_empty())
        .map(|(line, _)| line.row.as_str())
        .collect();
    let missed =
        if missed.is_empty() { "none missed".to_owned() } else { format!("missed: {}", missed.join(", ")) };
    format!("{} loops, at most {most:.1} instructions added to an iteration; {missed}", counts.len())
}

impl Iteration {
    /// Returns the difference of a long and a short block, per iteration.
    fn between(pair: &[Profile]) -> Self {
        let [few, many] = pair else { return Self::default() };
        let per = |few: u64, many: u64| many.saturating_sub(few) as f64 / (MANY - FEW) as f64;
        let without_clock = |profile: &Profile| {
            profile.own.iter().filter(|(name, _)| !name.starts_with(CLOCK)).map(|(_, cost)| cost).sum()
        };
        let own = per(without_clock(few), without_clock(many));
        let mut calls = BTreeMap::new();
        for (function, Calls { number, .. }) in &many.calls {
            let count = per(few.calls.get(function).map_or(0, |calls| calls.number), *number);
            if count > 0.0 {
                // The profiling interface names the same function PMPI_.
                let name = function.strip_prefix('P').filter(|name| name.starts_with("MPI_"));
                *calls.entry(name.unwrap_or(function).to_owned()).or_insert(0.0) += count;
            }
        }
        let grew = |(name, cost): &(&String, &u64)| few.own.get(*name).is_none_or(|before| before < *cost);
        let outlined = many.own.iter().filter(grew).map(|(name, _)| name.clone());
        Self { own, calls, outlined: outlined.filter(|name| !is_the_loop(name)).collect() }
    }

    /// Returns the MPI calls, which must be the same in both programs.
    fn of_mpi(&self) -> impl Iterator<Item = (&String, &f64)> {
        self.calls.iter().filter(|(name, _)| name.starts_with("MPI_"))
    }
}

/// Returns whether a function belongs to the loop. Stubs of calls to libraries do.
fn is_the_loop(function: &str) -> bool {
    ["fidelity_", "ombx_core::measure::timed_loop::", "ombx_paired::", "0x"]
        .iter()
        .any(|name| function.starts_with(name))
}

impl Count {
    pub(crate) fn added(&self) -> f64 {
        self.ombx.own - self.reference.own
    }

    /// Returns what is wrong with the loop of ombx.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let of_calls = ADDED_BY_CALL * self.ombx.of_mpi().map(|(_, count)| count).sum::<f64>();
        let allowed = self.goal.unwrap_or(ADDED.max(of_calls));
        if self.added() > allowed || self.goal.is_none() && self.added() >= allowed {
            faults.push(format!("{:.1} instructions added, {allowed:.0} allowed", self.added()));
        }
        if !self.ombx.of_mpi().eq(self.reference.of_mpi()) {
            faults.push("other MPI calls than the C loop".into());
        }
        // valgrind has no TSC, so that the clock is a call. Any other call could allocate or enter the kernel.
        let is_foreign = |name: &&String| !name.starts_with("MPI_") && !name.contains("clock_gettime");
        faults.extend(self.ombx.calls.keys().filter(is_foreign).map(|name| format!("calls {name}")));
        faults
    }

    /// Returns the calls of an iteration of ombx as text.
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
        // This is no fault: instructions and calls of such a function are counted.
        self.ombx.outlined.iter().try_for_each(|name| write!(f, "; {name} is not inlined"))
    }
}

/// Returns the reason why instructions cannot be counted here, if any.
pub(crate) fn unavailable() -> Option<&'static str> {
    let found = Places::here().program("valgrind").is_some();
    (!found).then_some("valgrind is not installed (Debian: apt-get install valgrind)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(own: &[(&str, u64)], calls: &[(&str, u64)]) -> Profile {
        Profile {
            own: own.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect(),
            calls: calls
                .iter()
                .map(|(name, number)| ((*name).to_owned(), Calls { number: *number, instructions: 0 }))
                .collect(),
        }
    }

    fn count(own: u64, calls: &[(&str, u64)], helper: u64) -> Count {
        let many = MANY - FEW;
        let calls: Vec<(&str, u64)> = calls.iter().map(|(name, n)| (*name, n * many / 10)).collect();
        let reference = profile(&[("fidelity_ping", 20 * many)], &[("PMPI_Send", many)]);
        let loops =
            [("ombx_core::measure::timed_loop::timed", own * many / 10), ("helper", helper * many / 10)];
        let none = profile(&[("helper", 0)], &[]);
        Count {
            reference: Iteration::between(&[none.clone(), reference]),
            ombx: Iteration::between(&[none, profile(&loops, &calls)]),
            goal: None,
        }
    }

    #[test]
    fn start_up_instructions_cancel() {
        let few = profile(&[("fidelity_ping", 1100)], &[("PMPI_Send", 30), ("getenv", 7)]);
        let many = profile(
            &[("fidelity_ping", 1100 + 22 * (MANY - FEW))],
            &[("PMPI_Send", 30 + MANY - FEW), ("getenv", 7)],
        );
        let one = Iteration::between(&[few, many]);
        assert_eq!(one.own, 22.0);
        assert_eq!(one.calls, BTreeMap::from([("MPI_Send".to_owned(), 1.0)]));
    }

    #[test]
    fn the_same_calls_with_few_additional_instructions_meet_the_goal() {
        let count = count(250, &[("PMPI_Send", 10), ("clock_gettime", 1)], 0);
        assert_eq!((count.added(), count.faults()), (5.0, vec![]));
        assert_eq!(count.calls(), "MPI_Send, clock_gettime x 0.09");
        assert_eq!(count.to_string(), "met");
    }

    #[test]
    fn the_clock_is_not_counted() {
        let few = profile(&[("quanta::Clock::raw", 10)], &[]);
        let many =
            profile(&[("quanta::Clock::raw", 900), ("ombx_core::measure::timed_loop::paced", 640)], &[]);
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
            goal: None,
        };
        assert_eq!(window.faults(), ["other MPI calls than the C loop"]);
        assert!(outlined.to_string().ends_with("; helper is not inlined"));
    }
}
