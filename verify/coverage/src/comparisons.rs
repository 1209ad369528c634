//! Comparisons of real launches: how often `compare` and `ab` accuse the same build, and find a known delay.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Parser;
use ombx_compare::{Comparison, Settings, SideResults};
use ombx_record::{file, random::Shuffle, stats::median};
use ombx_toolchain::{
    Failure, Mpi, Result, Which, Workspace, compile, failed_if, installed, machine, output, release, table,
};

use crate::{
    document::{self, with_interval},
    line::wilson,
};

/// Launches of a run.
const LAUNCHES: usize = 9;
/// Turns of `ab`: 6 to 30 by default, as many as a verdict needs; 12 here.
const TURNS: usize = 12;
/// Margin of verdicts, the default.
const MARGIN: f64 = 0.05;
/// Runs of one build from which pairs are drawn, and runs of a side.
const RUNS: u32 = 60;
const RUNS_OF_SIDE: u32 = 4;
/// Delays as a percentage of the latency, and the share of comparisons that must find each.
const DELAYS: [(u32, f64); 2] = [(10, 0.8), (20, 0.95)];
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
    /// Share of comparisons that must find it.
    must: f64,
    repetitions: u64,
    worse: u64,
    better: u64,
    /// Median over the repetitions of the difference that was found, as a fraction.
    found: f64,
    detectable: f64,
}

/// Compare real launches: count false verdicts on the same build, and delays that are found
///
/// Fails if certainly more than 5 % of the pairs of the same build have a case that is worse or better, or if a delay of 20 % is found in
/// fewer than 95 % of comparisons, or one of 10 % in fewer than 80 %. Run nothing else on the machine meanwhile.
#[derive(Parser)]
#[command(after_help = "Example: cargo xtask coverage comparisons --pairs 10 --mpi mpich")]
pub(crate) struct Options {
    /// Pairs of sides of 4 runs of the same build, which `compare` compares
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// Comparisons of a build with itself by `ab`
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ab: u32,
    /// Comparisons by `ab` for each delay
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    delayed: u32,
    /// MPI to measure with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Write the results to docs/EVIDENCE.md, and the method to target/evidence
    #[arg(long)]
    write: bool,
    /// Use the existing binaries of ombx
    #[arg(long)]
    no_build: bool,
}

/// Measures, and prints the tables.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let machine = machine::now();
    let (mut pairs, mut delayed) = (Vec::new(), Vec::new());
    for mpi in installed(options.mpi)? {
        let ombx = release::ombx(&mpi, workspace, !options.no_build)?;
        let directory = workspace.target.join("coverage").join(mpi.flavour.key());
        fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
        let bench = Bench { ombx, mpi: &mpi, directory };
        pairs.extend([bench.compared(options.pairs)?, bench.with_itself(options.ab)?]);
        delayed.extend(bench.delayed(options.delayed)?);
    }
    let tables = tables(&pairs, &delayed);
    println!("\n{tables}");
    if options.write {
        document::write(workspace, "coverage-comparisons", &format!("On {machine}"), &tables, &tables)?;
    }
    // More pairs certainly have a false verdict than may, or fewer delays are found than must.
    let accused = |one: &Pairs| wilson(one.worse + one.better, one.pairs)[0] > GOAL;
    let missed = |one: &Delayed| (one.worse as f64) < one.must * one.repetitions as f64;
    Ok(failed_if(pairs.iter().any(accused) || delayed.iter().any(missed)))
}

/// Returns the tables.
fn tables(pairs: &[Pairs], delayed: &[Delayed]) -> String {
    let same = pairs.iter().map(|Pairs { mpi, kind, pairs, worse, better }| {
        let wrong = with_interval(worse + better, *pairs);
        format!("{mpi} | `{kind}` | {pairs} | {worse} | {better} | {wrong}")
    });
    let late = delayed.iter().map(|one| {
        let Delayed { mpi, percent, repetitions, worse, better, .. } = one;
        let [found, detectable] = [one.found, one.detectable].map(|part| part * 100.0);
        format!("{mpi} | {percent} | {repetitions} | {worse} | {better} | {found:+.1} | {detectable:.1}")
    });
    format!(
        "The same build on both sides. `compare`: {RUNS_OF_SIDE} runs a side of {LAUNCHES} launches each, \
         drawn from {RUNS} runs. `ab`: {TURNS} turns. Rows: `{PAIRED_ROWS}`, margin 5 %.\n\n{}\n\
         A known delay on one side: a library delays each `MPI_Send` of side B by a part of the latency. \
         Row: `{DELAYED_ROW}`, `ab`, {TURNS} turns, margin 5 %.\n\n{}",
        table("MPI | command | pairs | with a case worse | with a case better | false verdicts, %", same),
        table(
            "MPI | delay % | comparisons | worse | better | median difference % | smallest detectable %",
            late
        )
    )
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
            output(&mut self.ombx("run", PAIRED_ROWS, LAUNCHES, path))?;
        }
        Ok(paths)
    }

    /// Compares sides of several runs of the same build.
    fn compared(&self, pairs: u32) -> Result<Pairs> {
        let runs = self.runs()?;
        self.pairs("compare", pairs, |pair| {
            let order = Shuffle::new(RUNS, u64::from(pair));
            let side = |from: u32| (from..from + RUNS_OF_SIDE).map(|at| &runs[order.forth(at) as usize]);
            let (base, new) = (of_files(side(0))?, of_files(side(RUNS_OF_SIDE))?);
            Ok(Comparison::new(&base, &new, Settings { margin: MARGIN }))
        })
    }

    /// Compares a build with itself in turns.
    fn with_itself(&self, pairs: u32) -> Result<Pairs> {
        self.pairs("ab", pairs, |_| of_turns(&self.turns(PAIRED_ROWS, &[])?))
    }

    fn pairs(
        &self,
        kind: &'static str,
        pairs: u32,
        comparison: impl Fn(u32) -> Result<Comparison>,
    ) -> Result<Pairs> {
        let mut sum = Pairs { mpi: self.mpi.flavour.to_string(), kind, pairs: 0, worse: 0, better: 0 };
        for pair in 0..pairs {
            let counts = comparison(pair)?.counts();
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
        let mut found = Vec::new();
        for (percent, must) in DELAYS {
            let mut comparisons = Vec::new();
            for _ in 0..repetitions {
                // The machine may have another latency a minute later: the delay is a part of the one right before.
                let now = self.directory.join("latency.jsonl");
                output(&mut self.ombx("run", DELAYED_ROW, 1, &now))?;
                let row = of_files(std::iter::once(&now))?;
                let latency_us = Comparison::new(&row, &row, Settings { margin: MARGIN });
                let latency_us = latency_us.cases.first().map_or(0.0, |case| case.base.median);
                let delay_ns = latency_us * 1e3 * f64::from(percent) / 100.0;
                let options = [preload('a'), preload('b'), format!("--env-b=OMBX_DELAY_NS={delay_ns}")];
                comparisons.push(of_turns(&self.turns(DELAYED_ROW, &options)?)?);
            }
            let one = self.found((percent, must), &comparisons);
            println!(
                "   {} delay of {percent} %: {} of {} worse, {} better",
                one.mpi, one.worse, one.repetitions, one.better
            );
            found.push(one);
        }
        Ok(found)
    }

    fn found(&self, (percent, must): (u32, f64), comparisons: &[Comparison]) -> Delayed {
        let cases = || comparisons.iter().filter_map(|comparison| comparison.cases.first());
        let middle = |values: Vec<f64>| median(&values).unwrap_or(f64::NAN);
        Delayed {
            mpi: self.mpi.flavour.to_string(),
            percent,
            must,
            repetitions: comparisons.len() as u64,
            worse: comparisons.iter().map(|comparison| comparison.counts().worse as u64).sum(),
            better: comparisons.iter().map(|comparison| comparison.counts().better as u64).sum(),
            found: middle(cases().map(|case| case.change.estimate).collect()),
            detectable: middle(cases().filter_map(|case| Some(case.power?.detectable)).collect()),
        }
    }

    /// Lets both sides take turns, and returns their files.
    fn turns(&self, rows: &str, options: &[String]) -> Result<[PathBuf; 2]> {
        let mut ab = self.ombx("ab", rows, TURNS, &self.directory.join("ab.jsonl"));
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

/// Compares the files of both sides of `ab`.
fn of_turns([base, new]: &[PathBuf; 2]) -> Result<Comparison> {
    let (base, new) = (of_files(std::iter::once(base))?, of_files(std::iter::once(new))?);
    Ok(Comparison::new(&base, &new, Settings { margin: MARGIN }))
}
