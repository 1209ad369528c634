//! `cargo xtask scale`: start-up, memory and results against the number of ranks, extrapolated to large machines.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod fabric;
mod files;
mod job;
mod link;
mod model;
mod simulated;
mod start;

use std::process::ExitCode;

use clap::Parser as _;
use fabric::{Part, TOPOLOGIES, Topology, Trial, Tried};
use job::{Limits, Line, OVER_SOCKETS, Outcome, Programs, SOCKET_RANKS, TASKS};
use ombx_host::limits::FreeMemory;
use ombx_toolchain::{Failure, Result, Which, Workspace, exit_code, failed_if, installed, release};
use start::Starts;

/// Memory reserved for a rank, in bytes: a job that does not fit is not started.
const RANK_NEEDS: u64 = 64 << 20;
const NONE_FITS: &str = "no number of ranks fits into memory; choose fewer with --ranks";

/// Measure start-up, memory of a rank and size of results for more and more ranks: over MPI, over sockets, and simulated
///
/// Ranks share cores, so that times of messages have no meaning here. Numbers of ranks that do not fit into memory are left out. A
/// job that exceeds the deadline is ended and reported.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask scale",
    after_help = "Example: cargo xtask scale --ranks 2,8,32 --deadline 60"
)]
struct Options {
    /// Numbers of ranks
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2,4,8,16,32,64,128",
        default_value_if("start", "true", "2,16,128"), value_parser = clap::value_parser!(u32).range(2..=4096))]
    ranks: Vec<u32>,
    /// MPI; many ranks of Open MPI yield their core
    #[arg(long, value_enum, default_value = "openmpi", default_value_if("start", "true", "all"))]
    mpi: Which,
    /// Measure only what `ombx run` adds to an empty MPI program
    #[arg(long)]
    start: bool,
    /// Turns of the programs with --start
    #[arg(long, value_name = "N", default_value_t = 7, requires = "start", value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// Deadline of a job, in seconds
    #[arg(long, value_name = "S", default_value_t = 240)]
    deadline: u64,
    /// Use the existing binary of ombx
    #[arg(long)]
    no_build: bool,
    /// Leave out the ranks over MPI and the bare program
    #[arg(long)]
    without_mpi: bool,
    /// Sweeps over simulated ranks [default: six, of up to 100,000 ranks]
    #[arg(long, value_name = "RANKS@HOSTSxROUNDS,..", value_delimiter = ',', default_values_t = simulated::SHAPES, hide_default_value = true)]
    shapes: Vec<simulated::Shape>,
    /// Sweep over simulated ranks in this process, as the program does in processes of its own
    #[arg(long, value_name = "SHAPE", hide = true)]
    sweep: Option<simulated::Shape>,
    /// Measure time and memory of commands that read large files instead: compare, history, show, report and plot
    #[arg(long, conflicts_with = "fabrics")]
    files: bool,
    /// Measure only commands whose name contains this
    #[arg(long, value_name = "TEXT", requires = "files")]
    only: Option<String>,
    /// Judge simulated fat trees and dragonflies with one slow part instead
    #[arg(long)]
    fabrics: bool,
    /// Find the fewest rounds in which 99 % of the seeds name the slow part instead: of 1, 2, 3, 4, 6, 8, 12 and 20
    #[arg(long, requires = "fabrics", conflicts_with = "all_pairs")]
    plans: bool,
    /// Sweep over all pairs too, except with a slow cable
    #[arg(long, requires = "fabrics")]
    all_pairs: bool,
    /// Numbers of hosts of the fabrics [default: 10,000, and also 100,000 with --plans]
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "fabrics",
        value_parser = clap::value_parser!(u32).range(2000..=1_000_000))]
    hosts: Vec<u32>,
    /// Number of sweeps with other seeds [default: 50, over all pairs 1, with --plans 300]
    #[arg(long, value_name = "N", requires = "fabrics", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Write the results to docs/EVIDENCE.md, and all tables to target/evidence
    #[arg(long)]
    write: bool,
}

/// Hosts of the simulated fabrics, and those with which plans are tried.
const HOSTS: &[u32] = &[10_000];
const HOSTS_OF_PLANS: &[u32] = &[10_000, 100_000];
/// Rounds of a sweep over a sample of the pairs.
const ROUNDS: u32 = 20;
/// Numbers of seeds: of a sample of the pairs, of all pairs, and of each plan.
const SEEDS: u32 = 50;
const SEEDS_OF_ALL_PAIRS: u32 = 1;
const SEEDS_OF_PLANS: u32 = 300;
/// Numbers of rounds among which the fewest are searched.
const PLANS: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 20];

impl Options {
    /// Returns the numbers of hosts of fabrics.
    fn hosts<'a>(&'a self, usual: &'a [u32]) -> &'a [u32] {
        if self.hosts.is_empty() { usual } else { &self.hosts }
    }

    /// Returns the number of seeds of a trial.
    fn seeds(&self, usual: u32) -> usize {
        self.seeds.unwrap_or(usual) as usize
    }
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    if let Some(shape) = options.sweep {
        return simulated::print(shape).map(|()| ExitCode::SUCCESS);
    }
    let workspace = Workspace::read()?;
    if cfg!(debug_assertions) && (options.files || options.fabrics) {
        // Times of a debug build say little.
        return release::become_release(env!("CARGO_PKG_NAME"), &workspace);
    }
    if options.plans {
        return plans(options, &workspace);
    }
    if options.fabrics {
        return fabrics(options, &workspace);
    }
    if options.files {
        return files(options, &workspace);
    }
    if options.start {
        return starts(options, &workspace);
    }
    let (mut lines, mut libraries, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for mpi in installed(Some(options.mpi))? {
        libraries.push(mpi.name());
        let programs = Programs::build(mpi, &workspace, !options.no_build)?;
        for &ranks in options.ranks.iter().filter(|ranks| !options.without_mpi && fits(**ranks)) {
            lines.push(over_mpi(&programs, Limits { seconds: options.deadline, ranks })?);
        }
        if sessions.is_empty() {
            sessions = over_sockets(&programs, options.deadline)?;
        }
    }
    if lines.is_empty() && !options.without_mpi {
        return Err(Failure::Missing(NONE_FITS.into()));
    }
    let mut swept = Vec::new();
    for &shape in &options.shapes {
        let one = simulated::in_a_process(shape)?;
        println!("   simulated, {shape}: {:.1} s of CPU time, {} MiB", one.cpu_seconds, one.peak_bytes >> 20);
        swept.push(one);
    }
    println!("\n{}\n{}", document::sessions(&sessions), document::simulated(&swept));
    if !options.without_mpi {
        println!("{}\n{}", document::table(&lines), document::model(&model::Constants::new(&lines, &swept)));
    }
    if options.write {
        document::write(&workspace, "scale-sockets", &document::sessions(&sessions))?;
        document::write(&workspace, "scale-simulated", &document::simulated(&swept))?;
        if !options.without_mpi {
            document::write_over_mpi(&workspace, (&lines, &swept), &libraries)?;
        }
    }
    let incomplete =
        lines.iter().flat_map(|line| &line.tasks).chain(sessions.iter().map(|(_, outcome)| outcome));
    let failed = incomplete.filter(|outcome| !outcome.complete).count() > 0;
    Ok(failed_if(failed || swept.iter().any(|swept| !swept.verdict_is_right)))
}

/// Measures the commands that read large files.
fn files(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mpi = installed(Some(options.mpi))?.remove(0);
    let ombx = if options.no_build {
        release::existing(mpi.target(&workspace.target).join("release/ombx"))?
    } else {
        release::built_as_installed(&mpi, workspace, &workspace.target)?
    };
    let directory = workspace.target.join("files");
    let took = files::measure(&ombx, &directory, files::Extent::GOALS, options.only.as_deref())?;
    let table = files::table(&took);
    println!("\n{table}");
    if options.write {
        document::write(workspace, "scale-files", &table)?;
    }
    Ok(failed_if(!took.iter().all(|took| took.is_met)))
}

/// Judges simulated fabrics: of each, every slow part with all seeds.
fn fabrics(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mut tried = Vec::new();
    let mut is_right = true;
    for &hosts in options.hosts(HOSTS) {
        for (topology, part) in slow_parts() {
            let trial = Trial { topology, hosts, part, rounds: Some(ROUNDS), seeds: options.seeds(SEEDS) };
            let mut trials = vec![trial];
            if options.all_pairs && part != Part::Cable {
                trials.push(Trial { rounds: None, seeds: options.seeds(SEEDS_OF_ALL_PAIRS), ..trial });
            }
            for trial in trials {
                let one = trial.run();
                let (name, named, seeds) = (topology.name, one.named, trial.seeds);
                println!("   {name}, {hosts} hosts, {part}: {named} of {seeds} in {:.1} s each", one.seconds);
                is_right &= named == seeds;
                tried.push(one);
            }
        }
    }
    let table = fabric::table(&tried);
    println!("\n{table}");
    if options.write {
        document::write(workspace, "scale-fabrics", &table)?;
    }
    Ok(failed_if(!is_right))
}

/// Returns each fabric with each part that can be slow.
fn slow_parts() -> impl Iterator<Item = (&'static Topology, Part)> {
    TOPOLOGIES.iter().flat_map(|topology| Part::ALL.map(|part| (topology, part)))
}

/// Finds the fewest rounds that name each slow part of the simulated fabrics. A part that needs more rounds than were tried is no failure.
fn plans(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mut tried = Vec::new();
    for &hosts in options.hosts(HOSTS_OF_PLANS) {
        tried.extend(fewest_rounds(hosts, options.seeds(SEEDS_OF_PLANS)));
    }
    let table = fabric::table(&tried);
    println!("\n{table}");
    if options.write {
        document::write(workspace, "scale-plans", &table)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns for each fabric and slow part the trial with the fewest rounds in which enough seeds name it, or that with the most rounds. Of a
/// single link nothing is tried: it must be among the links that are measured.
fn fewest_rounds(hosts: u32, seeds: usize) -> Vec<Tried> {
    let tried = slow_parts().filter(|(_, part)| *part != Part::Link);
    tried.filter_map(|(topology, part)| try_rounds(topology, part, hosts, seeds)).collect()
}

/// Tries more and more rounds on a fabric with a slow part until enough seeds name it. Prints each trial and returns the last.
fn try_rounds(topology: &'static Topology, part: Part, hosts: u32, seeds: usize) -> Option<Tried> {
    let mut last = None;
    for rounds in PLANS {
        let one = Trial { topology, hosts, part, rounds: Some(rounds), seeds }.run();
        let (name, named) = (topology.name, one.named);
        println!("   {name}, {hosts} hosts, {part}, {rounds} rounds: {named} of {seeds}");
        last = Some(one);
        if one.is_enough() {
            break;
        }
    }
    last
}

/// Measures the start of jobs. Fails if ombx adds more than it may.
fn starts(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mut all = Vec::new();
    for mpi in installed(Some(options.mpi))? {
        let programs = Programs::build(mpi, workspace, !options.no_build)?;
        for &ranks in options.ranks.iter().filter(|ranks| fits(**ranks)) {
            all.push(start::measure(&programs, Limits { seconds: options.deadline, ranks }, options.turns)?);
        }
    }
    if all.is_empty() {
        return Err(Failure::Missing(NONE_FITS.into()));
    }
    println!("{}", start::document(&all));
    if options.write {
        document::write(workspace, "scale-start", &start::document(&all))?;
    }
    Ok(failed_if(all.iter().any(Starts::missed)))
}

/// Returns whether this many ranks fit into memory, and prints if they do not.
fn fits(ranks: u32) -> bool {
    let needed = u64::from(ranks) * RANK_NEEDS;
    let free = FreeMemory::here().map_or(0, |free| free.bytes);
    if needed > free {
        println!(
            "   {ranks} ranks: left out, {} MiB of memory needed, {} MiB free",
            needed >> 20,
            free >> 20
        );
    }
    needed <= free
}

/// Measures every job on a number of ranks.
fn over_mpi(programs: &Programs, limits: Limits) -> Result<Line> {
    let (flavour, ranks) = (programs.mpi.flavour, limits.ranks);
    let mut line = Line { flavour, ranks, bare: job::bare(programs, &["stay"], limits)?, tasks: Vec::new() };
    for (name, words) in TASKS {
        let outcome = job::ombx(programs, words, limits)?;
        println!("   {flavour}, {ranks} ranks, {name}: {outcome}");
        line.tasks.push(outcome);
    }
    Ok(line)
}

/// Measures a sample of the links between ranks over sockets.
fn over_sockets(programs: &Programs, seconds: u64) -> Result<Vec<(u32, Outcome)>> {
    let mut sessions = Vec::new();
    for ranks in SOCKET_RANKS {
        let outcome = job::ombx(programs, OVER_SOCKETS, Limits { seconds, ranks })?;
        println!("   sockets, {ranks} ranks: {outcome}");
        sessions.push((ranks, outcome));
    }
    Ok(sessions)
}
