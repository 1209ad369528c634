//! Repeated invocations of the default command on this machine: whether one confirms the others.

use std::{
    fmt,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Parser;
use ombx_estimate::launches::Cases;
use ombx_host::since::Since;
use ombx_record::{file::Records, random::Shuffle, result::Measurement, stats::median};
use ombx_toolchain::{
    Failure, Flavour, Mpi, Result, Which, Workspace, failed_if, installed, machine, output, release, table,
};

use crate::document::{self, with_interval};

/// Run the default command many times, and count how often an invocation confirms the others
///
/// The order of the commands is random. An invocation is right if its interval contains the median of the launches of all other
/// invocations, and if the next headline lies within the range of launches that it reports. Fails if either share is below 88 %
/// for any command. Run nothing else on the machine meanwhile.
#[derive(Parser)]
#[command(after_help = "Example: cargo xtask coverage invocations --times 10 --mpi mpich")]
pub(crate) struct Options {
    /// Invocations of each command
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    times: u32,
    /// MPI to measure with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Only benchmarks whose name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    bench: String,
    /// Seed of the order
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Write the results to docs/EVIDENCE.md, and the method to target/evidence
    #[arg(long, conflicts_with = "bench")]
    write: bool,
    /// Use the existing binaries of ombx
    #[arg(long)]
    no_build: bool,
}

/// Benchmark and message size of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    bench: &'static str,
    size: &'static str,
}

const JOBS: [Job; 5] = [
    Job { bench: "p2p.latency", size: "8" },
    Job { bench: "p2p.bw", size: "64K" },
    Job { bench: "rma.put_latency", size: "8" },
    Job { bench: "collective.allreduce", size: "8" },
    Job { bench: "sockets.latency", size: "8" },
];

/// All invocations of a command with one MPI, in the order of time.
#[derive(Debug)]
struct Series {
    flavour: Flavour,
    job: Job,
    invocations: Vec<Invocation>,
}

/// What an invocation reported, in the unit of its headline.
#[derive(Debug, Clone, PartialEq)]
struct Invocation {
    seconds: f64,
    /// Medians of the launches.
    launches: Vec<f64>,
    headline: f64,
    /// The 95 % interval.
    interval: [f64; 2],
    /// Smallest and largest launch.
    range: [f64; 2],
}

/// Measures all commands and prints the table.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let machine = machine::now();
    let jobs: Vec<Job> = JOBS.into_iter().filter(|job| job.bench.contains(&options.bench)).collect();
    if jobs.is_empty() {
        return Err(Failure::Usage(format!("no measured benchmark's name contains {:?}", options.bench)));
    }
    let mut programs: Vec<(Mpi, PathBuf)> = Vec::new();
    for mpi in installed(options.mpi)? {
        let ombx = release::ombx(&mpi, workspace, !options.no_build)?;
        programs.push((mpi, ombx));
    }
    let series = |(flavour, job): (Flavour, &Job)| Series { flavour, job: *job, invocations: Vec::new() };
    let commands = programs.iter().flat_map(|(mpi, _)| jobs.iter().map(move |job| (mpi.flavour, job)));
    let mut all: Vec<Series> = commands.map(series).collect();

    let path = workspace.target.join("coverage-invocations.tsv");
    let mut log = File::create(&path).map_err(Failure::file(&path))?;
    let count = all.len() as u32 * options.times;
    let order = Shuffle::new(count, options.seed);
    for at in 0..count {
        let index = order.forth(at) as usize % all.len();
        let (Series { job, invocations, .. }, (mpi, ombx)) = (&mut all[index], &programs[index / jobs.len()]);
        let out = mpi.target(&workspace.target).join("coverage-invocation.jsonl");
        let invocation = invoke(mpi, ombx, *job, &out)?;
        let line = line(mpi.flavour, *job, &invocation);
        println!("   {:4} {line}", at + 1);
        writeln!(log, "{line}").map_err(Failure::file(&path))?;
        invocations.push(invocation);
    }
    let table = table_of(&all);
    println!("\n{table}\nEvery invocation: {}", path.display());
    if options.write {
        let what = format!(
            "{} invocations of each command, on {machine}. The half width is the median over invocations",
            options.times
        );
        document::write(workspace, "coverage-invocations", &what, &table, &table)?;
    }
    Ok(failed_if(all.iter().any(Series::too_low)))
}

/// Runs a command once.
fn invoke(mpi: &Mpi, ombx: &Path, job: Job, out: &Path) -> Result<Invocation> {
    let mut command = Command::new(ombx);
    mpi.launch_with(&mut command);
    command.args(["run", job.bench, "--sizes", job.size, "--quiet", "--force", "-o"]).arg(out);
    let since = Since::now();
    output(&mut command)?;
    let seconds = since.elapsed().as_secs_f64();
    let invocation = read(out, seconds);
    let _ = fs::remove_file(out);
    invocation?.ok_or_else(|| Failure::Missing(format!("{}: an invocation has no interval", job.bench)))
}

/// Reads the only row of a result file; `None` without an interval over launches.
fn read(path: &Path, seconds: f64) -> Result<Option<Invocation>> {
    let file = File::open(path).map_err(Failure::file(path))?;
    let mut cases = Cases::default();
    for record in Records::new(std::io::BufReader::new(file)) {
        let record = record.map_err(|e| Failure::Missing(format!("{}: {e}", path.display())))?;
        cases.event(&record);
    }
    let rows: Vec<Measurement> = cases.groups().iter().flat_map(|group| group.estimates()).collect();
    Ok(match rows.as_slice() {
        [row] => of_row(row, seconds),
        _ => None,
    })
}

fn of_row(row: &Measurement, seconds: f64) -> Option<Invocation> {
    let headline = row.headline()?;
    let launches = row.launches.as_ref()?.medians_ns.iter().map(|ns| row.in_unit(*ns));
    Some(Invocation {
        seconds,
        launches: launches.collect::<Option<_>>()?,
        headline: headline.value,
        interval: headline.ci95?,
        range: row.launch_range()?,
    })
}

/// Verdict on a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// At least 93 %.
    Met,
    /// Below the goal, but not a failure.
    Low,
    /// Below 88 %.
    TooLow,
}

impl Verdict {
    /// Judges a share, rounded to a whole percentage: 35 of 40 are 88 %.
    fn from_share([hits, of]: [u64; 2]) -> Verdict {
        match (hits as f64 / of as f64 * 100.0).round() {
            93.0.. => Verdict::Met,
            88.0.. => Verdict::Low,
            _ => Verdict::TooLow,
        }
    }
}

impl Series {
    /// Counts the invocations whose interval contains the median of the launches of all others, and all invocations.
    fn covered(&self) -> [u64; 2] {
        let covers = |at: usize| {
            let others = self.invocations.iter().enumerate().filter(|(other, _)| *other != at);
            let launches: Vec<f64> = others.flat_map(|(_, other)| other.launches.iter().copied()).collect();
            median(&launches).is_some_and(|truth| contains(self.invocations[at].interval, truth))
        };
        let count = (0..self.invocations.len()).filter(|at| covers(*at)).count();
        [count as u64, self.invocations.len() as u64]
    }

    /// Counts the invocations whose range of launches contains the next headline, and those that have a next one.
    fn confirmed(&self) -> [u64; 2] {
        let pairs = self.invocations.windows(2);
        let count = pairs.clone().filter(|pair| contains(pair[0].range, pair[1].headline)).count();
        [count as u64, pairs.count() as u64]
    }

    /// Returns the worse verdict of both shares.
    fn verdict(&self) -> Verdict {
        let verdicts = [self.covered(), self.confirmed()].map(Verdict::from_share);
        [Verdict::TooLow, Verdict::Low].into_iter().find(|bad| verdicts.contains(bad)).unwrap_or(Verdict::Met)
    }

    fn too_low(&self) -> bool {
        self.verdict() == Verdict::TooLow
    }

    /// Returns a figure of every invocation.
    fn all(&self, figure: impl Fn(&Invocation) -> f64) -> Vec<f64> {
        self.invocations.iter().map(figure).collect()
    }

    /// Returns the line of the table.
    fn row(&self) -> String {
        let middle = |figure: fn(&Invocation) -> f64| median(&self.all(figure)).unwrap_or(f64::NAN);
        let share = |[hits, of]: [u64; 2]| with_interval(hits, of);
        let [covered, confirmed] = [self.covered(), self.confirmed()];
        format!(
            "{} | `{}` | {} | {} | {:.1} | {}",
            self.flavour,
            self.job,
            share(covered),
            share(confirmed),
            middle(|one| (one.interval[1] - one.interval[0]) / 2.0 / one.headline) * 100.0,
            self.verdict(),
        )
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} --sizes {}", self.bench, self.size)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Met => "met",
            Verdict::Low => "below the goal",
            Verdict::TooLow => "TOO LOW",
        })
    }
}

/// Returns an invocation with all its launches, separated by tabs.
fn line(flavour: Flavour, job: Job, invocation: &Invocation) -> String {
    let Invocation { seconds, launches, headline, interval: [low, high], range: _ } = invocation;
    let launches: Vec<String> = launches.iter().map(|launch| format!("{launch:.4}")).collect();
    let launches = launches.join(" ");
    format!("{flavour}\t{job}\t{seconds:.2} s\t{headline:.4}\t{low:.4} .. {high:.4}\t{launches}")
}

/// Returns a line for each command.
fn table_of(all: &[Series]) -> String {
    let head = "MPI | ombx run | interval covers, % | range confirmed, % | half width, % | goal";
    table(head, all.iter().map(Series::row))
}

fn contains([low, high]: [f64; 2], x: f64) -> bool {
    (low..=high).contains(&x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(launches: &[f64]) -> Invocation {
        let ends = [f64::INFINITY, 0.0];
        let range = launches.iter().fold(ends, |[low, high], x| [low.min(*x), high.max(*x)]);
        let headline = median(launches).unwrap();
        Invocation { seconds: 1.0, launches: launches.to_vec(), headline, interval: range, range }
    }

    fn series(launches: &[&[f64]]) -> Series {
        let invocations = launches.iter().map(|launches| invocation(launches)).collect();
        Series { flavour: Flavour::Mpich, job: JOBS[0], invocations }
    }

    #[test]
    fn an_invocation_is_judged_by_the_launches_of_the_others() {
        // The median of the others is 3, 3 and 2; the third interval does not contain it.
        let series = series(&[&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]]);
        assert_eq!((series.covered(), series.confirmed()), ([2, 3], [1, 2]));
        assert!(series.too_low());
    }

    #[test]
    fn invocations_that_agree_confirm_each_other() {
        let series = series(&[&[1.0, 2.0, 3.0], &[1.5, 2.0, 2.5], &[1.0, 2.1, 3.0]]);
        assert_eq!((series.covered(), series.confirmed()), ([3, 3], [2, 2]));
        assert_eq!(series.verdict(), Verdict::Met);
    }

    #[test]
    fn shares_are_judged_by_whole_percentages() {
        assert_eq!(
            [[37, 40], [35, 40], [34, 40]].map(Verdict::from_share),
            [Verdict::Met, Verdict::Low, Verdict::TooLow]
        );
    }
}
