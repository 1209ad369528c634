//! ombx beside plain MPI programs: separate processes, each with its own MPI_Init, started in turns.
//!
//! The programs of `outside/` share nothing with ombx. Programs of OMB are built from a directory of the user.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use ombx_record::{stats::median, unit::Bytes};
use ombx_toolchain::{
    Failure, Mpi, Omb, Result, Workspace, compile, evidence, failed_if, installed, named, output, release,
    table,
};
use serde_json::Value;

use crate::{
    document,
    options::Options,
    paired::launcher,
    ratio::{Ratio, shuffle},
};

/// Largest difference of a ratio from 1 that needs no reason: launches of one program differ by as much.
const GOAL: f64 = 0.03;
/// Most small broadcasts before a size in the plain program. Their number is random in each turn: with it, and with nothing else, a window
/// of short messages takes 2.5 to 3.7 us with MPICH.
const EARLIER: usize = 256;
/// Messages in a window, as in OMB.
const WINDOW: f64 = 64.0;
const SOURCES: [(&str, &str); 3] = [
    ("two_sided", include_str!("outside/two_sided.c")),
    ("one_sided", include_str!("outside/one_sided.c")),
    ("collective", include_str!("outside/collective.c")),
];
const HEADER: &str = include_str!("outside/plain.h");
const SIZES: [u64; 3] = [8, 4096, 1 << 20];

/// Time of one figure of OMB in iterations of the plain program.
#[derive(Clone, Copy)]
enum Shown {
    /// Microseconds of a part of an iteration.
    Legs(f64),
    /// MB/s of this number of windows of messages.
    Windows(f64),
}

/// One operation in each kind of program.
struct Kind {
    /// Program and operation of `outside/`.
    plain: [&'static str; 2],
    /// Words after `ombx run`.
    run: &'static str,
    /// Words after `ombx osu`, which are those of OMB too, without the kind of window; empty if OMB has no such program.
    osu: &'static str,
    shown: Shown,
    /// Iterations in a sample of the plain program, and its samples, at each of [`SIZES`]; no samples: not at this size.
    counts: [[u32; 2]; 3],
}

/// Counts of operations of some 100 ns: samples of 10 us and more, and at least 300 samples.
const SHORT: [[u32; 2]; 3] = [[100, 5000], [20, 4000], [1, 300]];
const WINDOWS: [[u32; 2]; 3] = [[4, 4000], [2, 1500], [1, 40]];
/// A barrier precedes each iteration.
const SINGLE: [[u32; 2]; 3] = [[1, 20_000], [1, 10_000], [1, 300]];

const fn two_sided(
    plain: &'static str,
    run: &'static str,
    osu: &'static str,
    shown: Shown,
    counts: [[u32; 2]; 3],
) -> Kind {
    Kind { plain: ["two_sided", plain], run, osu, shown, counts }
}

const fn one_sided(plain: &'static str, run: &'static str, osu: &'static str, legs: f64) -> Kind {
    Kind { plain: ["one_sided", plain], run, osu, shown: Shown::Legs(legs), counts: SHORT }
}

const fn collective(plain: &'static str, run: &'static str, osu: &'static str) -> Kind {
    Kind { plain: ["collective", plain], run, osu, shown: Shown::Legs(1.0), counts: SINGLE }
}

const KINDS: [Kind; 20] = [
    two_sided("latency", "p2p.latency", "osu_latency", Shown::Legs(2.0), SHORT),
    two_sided("bw", "p2p.bw --buffers single", "osu_bw", Shown::Windows(1.0), WINDOWS),
    two_sided("bw_multiple", "p2p.bw", "", Shown::Windows(1.0), WINDOWS),
    two_sided("bibw", "p2p.bibw --buffers single", "osu_bibw", Shown::Windows(2.0), WINDOWS),
    two_sided("bw", "p2p.mbw_mr --pairs 1 --buffers single", "osu_mbw_mr", Shown::Windows(1.0), WINDOWS),
    two_sided(
        "latency_persistent",
        "p2p.latency_persistent",
        "osu_latency_persistent",
        Shown::Legs(2.0),
        SHORT,
    ),
    one_sided("put_flush", "rma.put_latency --sync flush", "osu_put_latency -s flush", 1.0),
    one_sided("put_flush_local", "rma.put_latency --sync flush_local", "osu_put_latency -s flush_local", 1.0),
    one_sided("put_lock", "rma.put_latency --sync lock", "osu_put_latency -s lock", 1.0),
    one_sided("put_lock_all", "rma.put_latency --sync lock_all", "osu_put_latency -s lock_all", 1.0),
    one_sided("put_fence", "rma.put_latency --sync fence", "osu_put_latency -s fence", 2.0),
    one_sided("put_pscw", "rma.put_latency --sync pscw", "osu_put_latency -s pscw", 2.0),
    Kind {
        counts: WINDOWS,
        shown: Shown::Windows(1.0),
        ..one_sided("puts_flush", "rma.put_bw --sync flush", "osu_put_bw -s flush", 1.0)
    },
    one_sided("get_flush", "rma.get_latency --sync flush", "osu_get_latency -s flush", 1.0),
    one_sided("acc_flush", "rma.acc_latency --sync flush --type char", "osu_acc_latency -s flush", 1.0),
    Kind {
        counts: [SHORT[0], [0, 0], [0, 0]],
        ..one_sided("fop_flush", "rma.fop_latency --sync flush --type char", "osu_fop_latency -s flush", 1.0)
    },
    collective("bcast", "collective.bcast", "osu_bcast"),
    collective("allreduce", "collective.allreduce --type float", "osu_allreduce -T mpi_float"),
    collective("alltoall", "collective.alltoall", "osu_alltoall"),
    collective("iallreduce", "collective.iallreduce --overlap none --type float", ""),
];
/// An operation without messages, whose size is 0.
const BARRIER: Kind = Kind {
    counts: [SINGLE[0], [0, 0], [0, 0]],
    ..collective("barrier", "collective.barrier", "osu_barrier")
};

/// Nanoseconds of an iteration by size.
type Times = BTreeMap<u64, f64>;

/// What measures a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Program {
    Plain,
    Run,
    Osu,
    Omb,
}

/// Programs of one MPI.
struct Programs {
    mpi: Mpi,
    ombx: PathBuf,
    directory: PathBuf,
    /// The programs of OMB, built with this MPI.
    omb: Option<Omb>,
}

/// Median and mean times of the plain program, and times of the others, of each turn.
#[derive(Default)]
struct Turns {
    medians: Vec<Times>,
    means: Vec<Times>,
    others: BTreeMap<Program, Vec<Times>>,
    /// Reason why a program has no times.
    failed: BTreeMap<Program, String>,
}

/// Compares and prints a table for each MPI. Fails if a ratio of `ombx run` differs from 1 by more than [`GOAL`], its interval included.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let about = document::circumstances(options.seed);
    let all = KINDS.iter().chain([&BARRIER]);
    let kinds: Vec<&Kind> = named(all, &options.row, "command", |kind| kind.run.to_owned())?;
    let (mut text, mut summary, mut libraries) = (String::new(), String::new(), Vec::new());
    let (mut missed, mut figures) = (0, 0);
    for mpi in installed(options.mpi)? {
        let programs = Programs::build(&mpi, workspace, options)?;
        let mut seed = options.seed;
        let mut turns: Vec<Turns> = kinds.iter().map(|_| Turns::default()).collect();
        for turn in 1..=options.launches {
            println!("-- {mpi}: turn {turn} of {}", options.launches);
            let mut order: Vec<usize> = (0..kinds.len()).collect();
            shuffle(&mut order, &mut seed);
            for at in order {
                programs.turn(kinds[at], &mut turns[at], &mut seed)?;
            }
        }
        let (lines, reasons, outside) = lines(&kinds, &turns);
        missed += outside;
        figures += lines.len();
        let head = "ombx run | size | plain C, ns | ombx run / C | ombx osu / C | OMB / C";
        let part = |lines: Vec<String>| format!("### {}\n\n{}\n{reasons}", mpi.flavour, table(head, lines));
        // A figure away from that of C is printed bold.
        summary += &part(lines.iter().filter(|line| line.contains("**")).cloned().collect());
        text += &part(lines);
        libraries.push(mpi.name());
    }
    println!("\n{text}");
    if options.write {
        let heading = document::heading(&about, &libraries);
        let sum =
            format!("{missed} of {figures} figures of `ombx run` are more than 3 % away from those of C.");
        let heading = format!("{heading} {} turns. {sum}", options.launches);
        let section = format!("{heading} Shown: what is more than 3 % away.\n\n{summary}");
        evidence::write(workspace, "fidelity-outside", &section, &document::full(&heading, &text))?;
    }
    Ok(failed_if(missed > 0))
}

/// Returns the lines of the table, reasons of programs without times, and the number of figures of `ombx run` away from those of C.
fn lines(kinds: &[&Kind], turns: &[Turns]) -> (Vec<String>, String, usize) {
    let (mut lines, mut reasons, mut missed) = (Vec::new(), String::new(), 0);
    for (kind, turns) in kinds.iter().zip(turns) {
        let sizes: Vec<u64> =
            turns.medians.first().map_or_else(Vec::new, |times| times.keys().copied().collect());
        for bytes in sizes {
            let plain: Vec<f64> =
                turns.medians.iter().filter_map(|times| times.get(&bytes).copied()).collect();
            let ratio = |program| turns.ratio(program, bytes);
            let run = ratio(Program::Run);
            missed += usize::from(run.is_some_and(|ratio| is_apart(&ratio)));
            let shown = |ratio: Option<Ratio>| match ratio {
                Some(ratio) if is_apart(&ratio) => format!("**{ratio}**"),
                Some(ratio) => ratio.to_string(),
                None => String::new(),
            };
            let ns = median(&plain).map_or_else(String::new, |ns| format!("{ns:.1}"));
            let ratios = [run, ratio(Program::Osu), ratio(Program::Omb)].map(shown).join(" | ");
            lines.push(format!("{} | {} | {ns} | {ratios}", kind.run, Bytes(bytes)));
        }
        reasons.extend(
            turns
                .failed
                .iter()
                .map(|(program, why)| format!("- {} of {}: {why}\n", program.name(), kind.run)),
        );
    }
    (lines, reasons, missed)
}

/// Returns whether the whole interval lies farther from 1 than the goal.
fn is_apart(ratio: &Ratio) -> bool {
    let [low, high] = ratio.interval.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    low > 1.0 + GOAL || high < 1.0 - GOAL
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "C",
            Self::Run => "ombx run",
            Self::Osu => "ombx osu",
            Self::Omb => "OMB",
        }
    }
}

impl Turns {
    /// Returns the ratio of the times of a program and of the plain one. `ombx run` prints medians, the others means.
    fn ratio(&self, program: Program, bytes: u64) -> Option<Ratio> {
        let plain = if program == Program::Run { &self.medians } else { &self.means };
        let of_turn = |(theirs, plain): (&Times, &Times)| Some(theirs.get(&bytes)? / plain.get(&bytes)?);
        let ratios: Vec<f64> = self.others.get(&program)?.iter().zip(plain).filter_map(of_turn).collect();
        Ratio::from_ratios(&ratios)
    }
}

impl Programs {
    fn build(mpi: &Mpi, workspace: &Workspace, options: &Options) -> Result<Self> {
        let ombx = release::ombx(mpi, workspace, !options.no_build)?;
        let directory = mpi.target(&workspace.target).join("outside");
        fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
        let header = directory.join("plain.h");
        fs::write(&header, HEADER).map_err(Failure::file(&header))?;
        // MPI_STATUSES_IGNORE of MPICH is not the address of an array, of which gcc warns.
        let flags = ["-O2", "-Wall", "-Wno-stringop-overflow"];
        for (name, source) in SOURCES {
            compile(&mpi.mpicc, &flags, &directory, &format!("{name}.c"), source)?;
        }
        let omb = options.omb.as_deref().map(|source| Omb::built(mpi, workspace, source)).transpose()?;
        Ok(Self { mpi: mpi.clone(), ombx, directory, omb })
    }

    /// Starts each program once, in random order.
    fn turn(&self, kind: &Kind, turns: &mut Turns, seed: &mut u64) -> Result<()> {
        let mut order = vec![Program::Plain, Program::Run];
        if !kind.osu.is_empty() {
            order.push(Program::Osu);
            order.extend(self.omb.is_some().then_some(Program::Omb));
        }
        shuffle(&mut order, seed);
        for program in order {
            if program == Program::Plain {
                let mut earlier: Vec<usize> = (0..EARLIER).collect();
                shuffle(&mut earlier, seed);
                let (medians, means) = self.plain(kind, earlier[0])?;
                turns.medians.push(medians);
                turns.means.push(means);
                continue;
            }
            let measured = match program {
                Program::Run => self.run(kind),
                Program::Osu => self.osu(kind),
                Program::Plain | Program::Omb => self.omb(kind),
            };
            let times = measured.unwrap_or_else(|why| {
                turns.failed.insert(program, why.to_string());
                Times::new()
            });
            turns.others.entry(program).or_default().push(times);
        }
        Ok(())
    }

    fn plain(&self, kind: &Kind, earlier: usize) -> Result<(Times, Times)> {
        let [program, operation] = kind.plain;
        let mut command = launcher(&self.mpi);
        command.args(["-n", "2"]).arg(self.directory.join(program)).arg(operation).arg(earlier.to_string());
        for ([batch, samples], bytes) in
            kind.counts.into_iter().zip(SIZES).filter(|([_, samples], _)| *samples > 0)
        {
            command.arg(format!("{bytes}:{batch}:{samples}"));
        }
        let text = output(&mut command)?;
        let (mut medians, mut means) = (Times::new(), Times::new());
        for line in text.lines() {
            if let [bytes, median, mean] = numbers(line)[..] {
                medians.insert(bytes as u64, median);
                means.insert(bytes as u64, mean);
            }
        }
        Ok((medians, means))
    }

    fn run(&self, kind: &Kind) -> Result<Times> {
        let mut command = Command::new(&self.ombx);
        command.arg("run").args(kind.run.split(' ')).args("-n 2 --launches 1 --format jsonl".split(' '));
        if kind.has_sizes() {
            command.args(["--sizes", &kind.sizes()]);
        }
        self.mpi.launch_with(&mut command);
        Ok(rows(&output(&mut command)?, |row| {
            Some(row["summary"]["median_ns"].as_f64()? * row["work"]["legs"].as_f64()?)
        }))
    }

    /// Starts the drop-in program. Its raw samples have more digits than its output.
    fn osu(&self, kind: &Kind) -> Result<Times> {
        let file = self.directory.join("osu.jsonl");
        let mut times = Times::new();
        for bytes in kind.measured_sizes() {
            let mut command = Command::new(&self.ombx);
            command.arg("osu").args(kind.osu_words());
            if kind.has_sizes() {
                command.args(["-m", &format!("{bytes}:{bytes}")]);
            }
            command.arg("-o").arg(&file).arg("--force");
            self.mpi.launch_with(&mut command);
            output(&mut command)?;
            let text = fs::read_to_string(&file).map_err(Failure::file(&file))?;
            times.extend(rows(&text, mean).into_values().map(|ns| (bytes, ns)));
        }
        Ok(times)
    }

    fn omb(&self, kind: &Kind) -> Result<Times> {
        let mut words = kind.osu_words();
        let name = words.next().unwrap_or_default();
        let not_built = || Failure::Missing(format!("{name} was not built"));
        let program = self.omb.as_ref().ok_or_else(not_built)?.program(name)?;
        let mut times = Times::new();
        for bytes in kind.measured_sizes() {
            let mut command = launcher(&self.mpi);
            command.args(["-n", "2"]).arg(&program).args(words.clone());
            if kind.has_sizes() {
                command.args(["-m", &format!("{bytes}:{bytes}")]);
            }
            let text = output(&mut command)?;
            let row =
                text.lines().filter(|line| !line.starts_with('#')).map(numbers).find(|row| !row.is_empty());
            // Only a barrier has no column of sizes.
            let figure = row.and_then(|row| row.get(usize::from(row.len() > 1)).copied());
            let figure = figure.ok_or_else(|| Failure::Missing(format!("{name} printed no figure")))?;
            times.insert(bytes, kind.shown.iteration_ns(figure, bytes));
        }
        Ok(times)
    }
}

impl Kind {
    fn osu_words(&self) -> impl Iterator<Item = &'static str> + Clone {
        let window: &[&str] = if self.plain[0] == "one_sided" { &["-w", "allocate"] } else { &[] };
        self.osu.split(' ').chain(window.iter().copied())
    }

    fn has_sizes(&self) -> bool {
        self.plain[1] != BARRIER.plain[1] && self.plain[1] != "fop_flush"
    }

    fn measured_sizes(&self) -> Vec<u64> {
        self.counts
            .iter()
            .zip(SIZES)
            .filter(|([_, samples], _)| *samples > 0)
            .map(|(_, bytes)| bytes)
            .collect()
    }

    fn sizes(&self) -> String {
        self.measured_sizes().iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Shown {
    fn iteration_ns(self, figure: f64, bytes: u64) -> f64 {
        match self {
            Self::Legs(legs) => figure * legs * 1e3,
            Self::Windows(windows) => windows * WINDOW * bytes as f64 / figure * 1e3,
        }
    }
}

/// Returns the mean time of an iteration over all samples of all timed ranks.
fn mean(row: &Value) -> Option<f64> {
    let (mut sum, mut iterations) = (0.0, 0.0);
    for samples in row["samples"].as_array()? {
        let times = samples["elapsed_ns"].as_array()?;
        sum += times.iter().filter_map(Value::as_f64).sum::<f64>();
        iterations += times.len() as f64 * samples["batch"].as_f64()?;
    }
    (iterations > 0.0).then(|| sum / iterations)
}

/// Returns a figure of each row of a result. Rows without one are left out.
fn rows(text: &str, figure: impl Fn(&Value) -> Option<f64>) -> Times {
    let rows = text.lines().filter_map(|line| {
        let row: Value = serde_json::from_str(line).ok()?;
        // A fetch_and_op has the size of its type, and a barrier none.
        let bytes = row["bytes"].as_u64().map(|bytes| bytes.max(SIZES[0]))?;
        Some((bytes, figure(&row)?))
    });
    rows.collect()
}

/// Returns the numbers of a line; none if a word is no number.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>().unwrap_or_default()
}
