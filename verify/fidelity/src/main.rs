//! `cargo xtask fidelity`: ombx against plain C loops that make the same MPI calls, in time and in instructions.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod callgrind;
mod counts;
mod document;
mod launches;
mod profile;
mod programs;
mod ratio;
mod row;
mod sockets;
mod summary;

use std::{fs, process::ExitCode, time::Duration};

use clap::Parser as _;
use ombx_core::system::clock::Since;

use document::{Circumstances, Compared};
use launches::Launches;
use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Mpi, Which, installed},
    registry,
    workspace::Workspace,
};
use programs::{Build, Programs};
use row::{Kind, Row};

const DOCUMENT: &str = "docs/FIDELITY.md";
/// Minimum number of pairs with an interval.
const LEAST: u16 = 6;

/// Compare ombx with plain C loops: time of an iteration, and instructions added to it
///
/// Builds both with each MPI, runs them in pairs, bound to cores and in random order, and prints the ratio of their medians with
/// its 95 % interval. Fails if the interval of a ratio lies above its goal. Run nothing else on the machine meanwhile.
#[derive(clap::Parser)]
#[command(
    name = "cargo xtask fidelity",
    bin_name = "cargo xtask fidelity",
    after_help = "Example: cargo xtask fidelity --mpi mpich --row p2p"
)]
struct Options {
    /// MPI to compare with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Maximum number of pairs of launches; an interval needs 6, and 0 only counts instructions
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pairs: u16,
    /// Time limit of all pairs of all MPIs, after the first 6
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Run only rows whose name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    row: String,
    /// Also count instructions, if valgrind is installed
    #[arg(long)]
    callgrind: bool,
    /// Compare only the benchmarks over sockets, also with iperf3 and sockperf if they are installed
    #[arg(long, conflicts_with_all = ["mpi", "row", "callgrind", "quick"])]
    sockets: bool,
    /// Check that both programs run every row with the same counts: one pair of a few iterations, with the debug build of ombx
    #[arg(long, conflicts_with_all = ["write", "callgrind"])]
    quick: bool,
    /// Write the summary to docs/FIDELITY.md and the full tables to target/fidelity.md
    #[arg(long, conflicts_with = "row")]
    write: bool,
    /// Use the existing binary of ombx
    #[arg(long)]
    no_build: bool,
    /// Seed of the random order of launches
    #[arg(long, value_name = "SEED", default_value_t = 2012)]
    seed: u64,
}

impl Options {
    fn build(&self) -> Build {
        if self.quick { Build::Debug } else { Build::Release { build: !self.no_build } }
    }

    fn pairs(&self) -> u16 {
        if self.quick { 1 } else { self.pairs }
    }
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    if options.sockets {
        return sockets::main(options, &workspace);
    }
    if options.pairs() == 0 && options.write {
        return Err(Failure::Usage("--pairs 0 measures no times for --write".into()));
    }
    let build = |mpi: &Mpi| Programs::build(mpi, &workspace, options.build());
    let programs = installed(options.mpi)?.iter().map(build).collect::<Result<Vec<_>>>()?;
    let rows = rows(&programs, &options.row)?;

    let mut about = Circumstances::now(options.seed);
    println!("\n-- at most {} pairs on {}", options.pairs(), about.machine);
    let compared = measure(&programs, &rows, options, &mut about)?;

    if options.pairs() > 0 {
        println!("\n{}", document::times(&compared));
    }
    if let Some(table) = document::instructions(&compared) {
        println!("Instructions of an iteration on rank 0, without the library's:\n\n{table}");
    }
    if options.quick {
        println!("{} rows run alike", compared.iter().filter(|one| one.skipped.is_none()).count());
        return Ok(ExitCode::SUCCESS);
    }
    if options.write {
        renew(&workspace, |page| summary::with_mpi(page, &compared, &about))?;
        let instructions = document::instructions(&compared).unwrap_or_default();
        workspace.write_full("fidelity.md", &format!("{}\n{instructions}", document::times(&compared)))?;
    }
    Ok(failed_if(compared.iter().any(Compared::missed)))
}

/// Returns the rows whose name contains `pattern`, after a check that every registered benchmark over MPI has a row and a loop.
fn rows(programs: &[Programs], pattern: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for programs in programs {
        let benches = registry::read(&programs.ombx)?;
        rows = row::all(&benches);
        if let [missing, ..] = *row::without_row(&rows, &benches) {
            return Err(Failure::Missing(format!(
                "{missing} is compared with no C loop: add a row to verify/fidelity/src/row.rs"
            )));
        }
        programs.check_loops(&rows, &benches)?;
    }
    rows.retain(|row| row.name.contains(pattern));
    if rows.is_empty() {
        return Err(Failure::Missing(format!(
            "no row contains {pattern:?}; rows have the names of benchmarks, for example p2p.latency"
        )));
    }
    Ok(rows)
}

/// Changes docs/FIDELITY.md.
fn renew(workspace: &Workspace, change: impl FnOnce(&str) -> String) -> Result<()> {
    let page = fs::read_to_string(workspace.root.join(DOCUMENT)).unwrap_or_default();
    workspace.write(DOCUMENT, &change(&page))
}

/// Measures every row once per pair, so that a slow change of the machine affects all rows alike.
fn measure(
    programs: &[Programs],
    rows: &[Row],
    options: &Options,
    about: &mut Circumstances,
) -> Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for programs in programs {
        compared.extend(rows.iter().map(|row| Compared::new(programs.mpi.flavour, row.clone())));
    }
    let mut all_launches = Vec::new();
    for programs in programs {
        for kind in Kind::ALL {
            all_launches.extend(Launches::open(
                programs,
                kind,
                options.quick || options.pairs() == 0,
                &mut compared,
            )?);
        }
    }
    let (mut seed, start, budget) = (options.seed, Since::now(), Duration::from_secs(60 * options.minutes));
    for pair in 1..=options.pairs() {
        println!("   pair {pair}, {} s", start.elapsed().as_secs());
        for launches in &mut all_launches {
            launches.group(&mut compared, about, &mut seed)?;
        }
        let next = start.elapsed() / u32::from(pair) * u32::from(pair + 1);
        if pair >= LEAST && next > budget {
            break;
        }
    }
    if options.callgrind {
        count(&all_launches, &mut compared)?;
    }
    Ok(compared)
}

fn count(all_launches: &[Launches<'_>], compared: &mut [Compared]) -> Result<()> {
    if let Some(why) = callgrind::unavailable() {
        println!("\n-- instructions: skipped, {why}");
        return Ok(());
    }
    println!("\n-- instructions");
    all_launches.iter().try_for_each(|launches| launches.count(compared))
}
