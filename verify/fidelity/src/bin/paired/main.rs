//! Alternates blocks of ombx's timed loops and of C loops in one MPI program. `cargo xtask fidelity` starts it.
//!
//! For each case it opens the kernel as ombx does. The C loop gets the kernel's communicator, buffers, window and requests.
#![expect(clippy::print_stdout, reason = "a program that reports to the program that started it")]

mod pairs;
mod reference;
mod row;
mod side;
mod slowed;

use std::{cell::RefCell, collections::BTreeSet, fs, path::PathBuf, process::ExitCode};

use clap::Parser as _;
use fastrand::Rng;
use ombx_core::{
    benchmark::{Choice, Registry, Threading},
    clock::Clock,
    measure::session::{Memory, Session},
    team::Team,
};
use ombx_mpi::{Mpi, library_version};
use ombx_p2p as _;
use ombx_record::{
    error::{Error, Kind, Result},
    result::Outcome,
    unit::Rank,
};
use ombx_rma as _;
use pairs::{Comparison, Found, Work};
use row::Row;
use serde_json::json;

/// Compare timed loops of ombx with C loops, block by block in one process
#[derive(clap::Parser)]
struct Options {
    /// Run only rows whose name contains this
    #[arg(long, default_value = "")]
    row: String,
    /// Run only rows whose names and sizes this file lists, one a line
    #[arg(long, value_name = "FILE")]
    only: Option<PathBuf>,
    /// Run only rows of this size
    #[arg(long, value_name = "BYTES")]
    bytes: Option<u64>,
    /// Run the benchmarks that need MPI_THREAD_MULTIPLE, instead of the others
    #[arg(long)]
    threads: bool,
    /// Time of a row
    #[arg(long, default_value_t = 80)]
    milliseconds: u64,
    /// Run kernels that are slower on purpose, instead of those of ombx
    #[arg(long)]
    slowed: bool,
    /// Run two blocks of each side with these numbers of iterations, for callgrind
    #[arg(long, value_name = "N", num_args = 2)]
    count: Option<Vec<u64>>,
    /// Number of this launch, from 0: launches take the kinds of windows in turn
    #[arg(long, value_name = "N", default_value_t = 0)]
    launch: usize,
    /// Seed of the order of blocks and of messages before them
    #[arg(long, default_value_t = 2012)]
    seed: u64,
}

fn main() -> ExitCode {
    slowed::prepare();
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}", json!({ "error": error.to_string() }));
            ExitCode::from(error.kind().exit_code())
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let rows = selected(options)?;
    Mpi::abort_on_panic();
    let mpi = Mpi::start(if options.threads { Threading::Multiple } else { Threading::Single })?;
    let team = mpi.team();
    let clock = Clock::measured();
    same_clock(&clock)?;
    if team.rank() == Rank(0) {
        println!("{}", json!({ "library": library_version().lines().next() }));
    }
    let work = match options.count.as_deref() {
        Some(&[few, many]) => Work::Count([few, many]),
        _ => Work::Compare { budget_ns: options.milliseconds * 1_000_000 },
    };
    let mut random = Rng::with_seed(options.seed);
    for row in &rows {
        let comparison = Comparison {
            team,
            clock: &clock,
            row,
            work,
            random: RefCell::new(random.fork()),
            found: RefCell::default(),
        };
        let found = measure(comparison, row, &clock, &mpi)?;
        if team.rank() == Rank(0) {
            println!("{}", report(row, found));
        }
    }
    Ok(())
}

/// Runs one row through the engine of ombx. Collective.
fn measure(comparison: Comparison<'_>, row: &Row, clock: &Clock, mpi: &Mpi) -> Result<Found> {
    let (team, plan): (&dyn Team, _) = (mpi.team(), row.plan());
    if let Err(why) = (row.bench.available)() {
        return Ok(Found::Skipped(why));
    }
    let assignment = team.agree(row.bench.ranks.layout.assign(team.size(), None))?;
    let choice = Choice { bench: row.bench, preset: &[] };
    let mut rows = Memory::default();
    let mut session = Session::new(team, assignment, (&plan, clock, &[]), choice, &mut rows);
    session.instead = Some(&comparison);
    match (row.bench.run)(&mut session) {
        Err(error) if error.kind() == Kind::Unsupported => return Ok(Found::Skipped(error.to_string())),
        done => done?,
    }
    let why = rows.rows.into_iter().find_map(|row| match row.outcome {
        Outcome::Skipped(why) | Outcome::Failed(why) => Some(why),
        Outcome::Ok => None,
    });
    let skipped = || Found::Skipped(why.unwrap_or_else(|| "the benchmark opened no kernel".into()));
    Ok(comparison.found.take().unwrap_or_else(skipped))
}

/// Checks that the C loops read the clock of ombx.
fn same_clock(clock: &Clock) -> Result<()> {
    let [before, c, after] = [clock.mark().ticks(), reference::tick(), clock.mark().ticks()];
    if (before..=after).contains(&c) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "the C loops read another clock than ombx, which reads {}",
        clock.facts().source
    )))
}

/// Returns the rows of this launch. Every loop in C belongs to a row.
fn selected(options: &Options) -> Result<Vec<Row>> {
    let mut rows = row::all(&Registry::load()?, options.launch)?;
    let used: BTreeSet<&str> = rows.iter().map(|row| row.reference.as_str()).collect();
    if let Some(unused) = reference::names().iter().find(|name| !used.contains(name.as_str())) {
        return Err(Error::usage(format!(
            "the C loop {unused} belongs to no registered benchmark: remove or rename it in verify/fidelity/src/bin/paired/reference"
        )));
    }
    let only = match &options.only {
        Some(path) => {
            let text = fs::read_to_string(path);
            let text = text.map_err(|e| Error::usage(format!("{}: {e}", path.display())))?;
            Some(text.lines().map(str::to_owned).collect::<BTreeSet<String>>())
        }
        None => None,
    };
    rows.retain(|row| {
        row.name.contains(&options.row)
            && row.needs_threads() == options.threads
            && (options.slowed || only.is_some() || !row.name.starts_with(slowed::FAMILY))
            && (!options.slowed || row.name.starts_with(slowed::FAMILY))
            && options.bytes.is_none_or(|bytes| bytes == row.bytes)
            && only.as_ref().is_none_or(|only| only.contains(&row.key()))
    });
    Ok(rows)
}

fn report(row: &Row, found: Found) -> serde_json::Value {
    let mut line = json!({
        "row": row.name,
        "window": row.window,
        "bytes": row.bytes,
        "depth": row.depth,
        "goal": row.goal
    });
    match found {
        Found::Compared { ratio, ombx_ns, c_ns } => {
            line["ratio"] = ratio.into();
            line["ombx_ns"] = ombx_ns.into();
            line["c_ns"] = c_ns.into();
        }
        Found::Counted => line["counted"] = true.into(),
        Found::Skipped(why) => line["skipped"] = why.into(),
    }
    line
}
