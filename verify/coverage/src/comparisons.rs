//! Comparisons of real launches: how often `compare` and `ab` accuse the same build, and find a known delay.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Parser;
use ombx_core::{measure::shuffle::Shuffle, stats::median};
use ombx_results::{
    compare::{Comparison, Settings, SideResults},
    file,
};
use ombx_toolchain::{
    command::{compile, output},
    failure::{Failure, Result, failed_if},
    mpi::{Mpi, Which, installed},
    release,
    workspace::Workspace,
};

use crate::{document::with_interval, line::wilson};

const PAGE: &str = "docs/COVERAGE.md";
/// Heading of the last section of the page.
const HEADING: &str = "\n## Comparisons on this machine\n\n";
/// Launches of a run, and turns of a pair of `ab`.
const PAIR: usize = 9;
/// Runs of one build from which pairs are drawn, and runs of a side.
const RUNS: u32 = 60;
const RUNS_OF_SIDE: u32 = 4;
/// Delays, as a percentage of the latency.
const DELAYS: [u32; 3] = [5, 10, 20];
/// Numbers of launches per side for which found delays are counted.
const LAUNCHES: [usize; 5] = [6, 9, 12, 20, 30];
/// One repetition of the delays for this many pairs.
const PAIRS_PER_REPETITION: u32 = 10;
const DELAYED_ROW: &str = "p2p.latency --sizes 8";
const PAIRED_ROWS: &str = "p2p.latency p2p.bw --sizes 8,64K";
/// Goal: at most this share of pairs has a false verdict.
const GOAL: f64 = 0.05;

/// Pairs of the same build.
#[derive(Debug)]
struct Pairs {
    mpi: String,
    kind: &'static str,
    pairs: u64,
    worse: u64,
    better: u64,
}

/// A known delay on one side.
#[derive(Debug)]
struct Delayed {
    mpi: String,
    percent: u32,
    launches: usize,
    repetitions: u64,
    worse: u64,
    differs: u64,
    /// Median over the repetitions of the difference that was found, as a fraction.
    found: f64,
    detectable: f64,
}

/// Compare real launches: count false verdicts on the same build, and delays that are found
///
/// Fails if certainly more than 5 % of the pairs of the same build have a case that is worse or better. Run nothing else on the
/// machine meanwhile.
#[derive(Parser)]
#[command(after_help = "Example: cargo xtask coverage comparisons --pairs 10 --mpi mpich")]
pub(crate) struct Options {
    /// Pairs of the same build, by compare and by ab; each delay is repeated a tenth as often
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// MPI to measure with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Write the results into docs/COVERAGE.md
    #[arg(long)]
    write: bool,
    /// Use the existing binaries of ombx
    #[arg(long)]
    no_build: bool,
}

/// Measures, and prints the tables.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mut comparisons = Comparisons::default();
    for mpi in installed(options.mpi)? {
        let ombx = match options.no_build {
            true => release::existing(mpi.target(&workspace.target).join("release/ombx"))?,
            false => release::built(&mpi, workspace, &workspace.target)?,
        };
        let directory = workspace.target.join("coverage").join(mpi.flavour.key());
        fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
        comparisons.add(&Bench { ombx, mpi: &mpi, directory }, options.pairs)?;
    }
    println!("\n{}", comparisons.tables());
    if options.write {
        let page = page(workspace);
        let before = page.split_once(HEADING).map_or(page.as_str(), |(before, _)| before);
        workspace.write(PAGE, &format!("{before}{HEADING}{}", comparisons.tables()))?;
    }
    Ok(failed_if(comparisons.failed()))
}

/// Returns the section of docs/COVERAGE.md as it was written last.
pub(crate) fn written(workspace: &Workspace) -> String {
    let tables = page(workspace).split_once(HEADING).map(|(_, tables)| tables.to_owned());
    let missing = || "Not measured yet: `cargo xtask coverage comparisons --write` does.\n".into();
    format!("{HEADING}{}", tables.unwrap_or_else(missing))
}

fn page(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.root.join(PAGE)).unwrap_or_default()
}

/// Comparisons with all MPIs.
#[derive(Debug, Default)]
struct Comparisons {
    pairs: Vec<Pairs>,
    delayed: Vec<Delayed>,
}

impl Comparisons {
    /// Measures pairs of the same build, and one side with a delay in each tenth as many repetitions.
    fn add(&mut self, bench: &Bench<'_>, pairs: u32) -> Result<()> {
        for kind in ["compare", "ab"] {
            self.pairs.push(bench.pairs(kind, pairs)?);
        }
        self.delayed.extend(bench.delayed(pairs.div_ceil(PAIRS_PER_REPETITION))?);
        Ok(())
    }

    /// Returns whether more pairs certainly have a false verdict than may.
    fn failed(&self) -> bool {
        self.pairs.iter().any(|one| wilson(one.worse + one.better, one.pairs)[0] > GOAL)
    }

    /// Returns the tables.
    fn tables(&self) -> String {
        let mut text = format!(
            "### The same build on both sides\n\n`compare`: {RUNS_OF_SIDE} runs a side of {PAIR} launches each, drawn from {RUNS} runs. `ab`: {PAIR} turns. Rows: `{PAIRED_ROWS}`, margin 5 %.\n\n\
             | MPI | command | pairs | with a case worse | with a case better | false verdicts, % |\n|---|---|---|---|---|---|\n"
        );
        for Pairs { mpi, kind, pairs, worse, better } in &self.pairs {
            let wrong = with_interval(worse + better, *pairs);
            text += &format!("| {mpi} | `{kind}` | {pairs} | {worse} | {better} | {wrong} |\n");
        }
        text += &format!(
            "\n### A known delay on one side\n\nA library delays each `MPI_Send` of side B by a part of the latency. Row: `{DELAYED_ROW}`, `ab`, margin 1 %.\n\n\
             | MPI | delay % | launches a side | repetitions | worse | worse or differs | median difference % | smallest detectable % |\n\
             |---|---|---|---|---|---|---|---|\n"
        );
        for one in &self.delayed {
            text += &format!(
                "| {} | {} | {} | {} | {} | {} | {:+.1} | {:.1} |\n",
                one.mpi,
                one.percent,
                one.launches,
                one.repetitions,
                one.worse,
                one.differs,
                one.found * 100.0,
                one.detectable * 100.0
            );
        }
        text
    }
}

/// What measures with one MPI.
struct Bench<'m> {
    ombx: PathBuf,
    mpi: &'m Mpi,
    directory: PathBuf,
}

impl Bench<'_> {
    fn ombx(&self, command: &str, rows: &str, launches: usize, out: &Path) -> Command {
        let mut ombx = Command::new(&self.ombx);
        self.mpi.launch_with(&mut ombx);
        ombx.arg(command).args(rows.split_whitespace());
        ombx.args(["--quiet", "--max-time", "20ms", "--launches"]).arg(launches.to_string());
        ombx.args(["--force", "-o"]).arg(out);
        ombx
    }

    /// Measures the runs of one build from which pairs are drawn.
    fn runs(&self) -> Result<Vec<PathBuf>> {
        let paths: Vec<PathBuf> =
            (0..RUNS).map(|run| self.directory.join(format!("run-{run}.jsonl"))).collect();
        for path in &paths {
            output(&mut self.ombx("run", PAIRED_ROWS, PAIR, path))?;
        }
        Ok(paths)
    }

    /// Runs pairs of the same build.
    fn pairs(&self, kind: &'static str, pairs: u32) -> Result<Pairs> {
        let mut sum = Pairs { mpi: self.mpi.flavour.to_string(), kind, pairs: 0, worse: 0, better: 0 };
        let runs = if kind == "ab" { Vec::new() } else { self.runs()? };
        for pair in 0..pairs {
            let counts = if kind == "ab" {
                compared(&self.turns(PAIRED_ROWS, PAIR, &[])?, PAIR, 0.05)?.counts()
            } else {
                let order = Shuffle::new(RUNS, u64::from(pair));
                let side = |from: u32| (from..from + RUNS_OF_SIDE).map(|at| &runs[order.forth(at) as usize]);
                Comparison::of(&of_files(side(0))?, &of_files(side(RUNS_OF_SIDE))?, Settings { margin: 0.05 })
                    .counts()
            };
            sum.pairs += 1;
            sum.worse += u64::from(counts.worse > 0);
            sum.better += u64::from(counts.better > 0);
        }
        let (worse, better) = (sum.worse, sum.better);
        println!("   {} {kind}: {pairs} pairs of the same build, {worse} worse, {better} better", sum.mpi);
        Ok(sum)
    }

    /// Delays one side by parts of the latency of the other.
    fn delayed(&self, repetitions: u32) -> Result<Vec<Delayed>> {
        let options = ["-shared", "-fPIC", "-O1"];
        let source = include_str!("delay.c");
        let library = compile(&self.mpi.mpicc, &options, &self.directory, "delay.c", source)?;
        let preload = |side: char| format!("--env-{side}=LD_PRELOAD={}", library.display());
        let plain = self.turns(DELAYED_ROW, PAIR, &[preload('a'), preload('b')])?;
        let comparison = compared(&plain, PAIR, 0.05)?;
        let latency_us = comparison.cases.first().map_or(0.0, |case| case.base.median);
        let most = LAUNCHES[LAUNCHES.len() - 1];
        let mut found = Vec::new();
        for percent in DELAYS {
            let delay_ns = latency_us * 1e3 * f64::from(percent) / 100.0;
            let options = [preload('a'), preload('b'), format!("--env-b=OMBX_DELAY_NS={delay_ns}")];
            let mut comparisons = LAUNCHES.map(|_| Vec::new());
            for _ in 0..repetitions {
                let sides = self.turns(DELAYED_ROW, most, &options)?;
                for (launches, comparisons) in LAUNCHES.iter().zip(&mut comparisons) {
                    comparisons.push(compared(&sides, *launches, 0.01)?);
                }
            }
            for (launches, comparisons) in LAUNCHES.into_iter().zip(comparisons) {
                let one = self.found(percent, launches, &comparisons);
                println!(
                    "   {} delay of {percent} %, {launches} launches: {} of {} worse, {} differ",
                    one.mpi, one.worse, one.repetitions, one.differs
                );
                found.push(one);
            }
        }
        Ok(found)
    }

    fn found(&self, percent: u32, launches: usize, comparisons: &[Comparison]) -> Delayed {
        let cases = || comparisons.iter().filter_map(|comparison| comparison.cases.first());
        let slower = || cases().filter(|case| case.change.estimate > 0.0);
        let middle = |values: Vec<f64>| median(&values).unwrap_or(f64::NAN);
        Delayed {
            mpi: self.mpi.flavour.to_string(),
            percent,
            launches,
            repetitions: comparisons.len() as u64,
            worse: comparisons.iter().map(|comparison| comparison.counts().worse as u64).sum(),
            differs: slower().filter(|case| case.p_adjusted.is_some_and(|p| p < 0.05)).count() as u64,
            found: middle(cases().map(|case| case.change.estimate).collect()),
            detectable: middle(cases().filter_map(|case| Some(case.power?.detectable)).collect()),
        }
    }

    /// Lets both sides take turns, and returns their files.
    fn turns(&self, rows: &str, launches: usize, options: &[String]) -> Result<[PathBuf; 2]> {
        let mut ab = self.ombx("ab", rows, launches, &self.directory.join("ab.jsonl"));
        ab.args(options);
        if options.is_empty() {
            ab.arg("--a").arg(&self.ombx).arg("--b").arg(&self.ombx);
        }
        output(&mut ab)?;
        Ok(['a', 'b'].map(|side| self.directory.join(format!("ab-{side}.jsonl"))))
    }
}

/// Reads files as one side.
fn of_files<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Result<SideResults> {
    let mut side = SideResults::named("");
    for path in paths {
        let file = file::open(path).map_err(|e| Failure::Missing(format!("{}: {e}", path.display())))?;
        file.runs.iter().for_each(|run| side.run(run));
    }
    Ok(side)
}

/// Compares the first launches of two files.
fn compared(paths: &[PathBuf; 2], launches: usize, margin: f64) -> Result<Comparison> {
    let side = |path: &PathBuf| {
        let file = file::open(path).map_err(|e| Failure::Missing(format!("{}: {e}", path.display())))?;
        let mut side = SideResults::named("");
        file.runs.iter().take(launches).for_each(|run| side.run(run));
        Ok(side)
    };
    let [base, new] = paths;
    Ok(Comparison::of(&side(base)?, &side(new)?, Settings { margin }))
}
