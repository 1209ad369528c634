//! `ombx model`: parameters of LogGP with intervals, and the message sizes at which the protocol switches.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::{Args, ValueEnum};
use ombx_core::error::{Error, Kind, Result};
use ombx_results::{
    file::{self, ResultFile},
    model,
    publishable::Publishable,
    render::model::{self as render, Shown},
    samples::SampleStore,
};

use crate::{
    arguments::{
        argv,
        output::{Color, FileArgs},
    },
    launch::{
        detection,
        finite_run::{self, Interruption},
    },
    output::{
        renderers,
        target::{self, ResultTarget},
        terminal::{self, is_closed},
    },
    result_file::KnownRuns,
};

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Result files of p2p.latency and p2p.bw, or of sockets.latency and sockets.bw; without files, ombx measures them
    files: Vec<PathBuf>,
    /// What connects the ranks of a measurement
    #[arg(long, value_enum, conflicts_with = "files")]
    fabric: Option<Fabric>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ModelFormat::Table, help_heading = "Output")]
    format: ModelFormat,
    #[command(flatten)]
    out: FileArgs,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    color: Color,
    /// Options of `ombx run` for a measurement, after two dashes: -- --hosts n01,n02 --sizes 1..1M
    #[arg(last = true, value_name = "OPTIONS")]
    run: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// p2p.latency and p2p.bw
    Mpi,
    /// sockets.latency and sockets.bw
    Sockets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelFormat {
    /// Tables for people
    Table,
    /// CSV, one line per parameter, segment and switch
    Csv,
    /// One JSON object
    Json,
}

pub(crate) fn model(args: &ModelArgs) -> Result<u8> {
    let mut store = SampleStore::at_most(1);
    if args.files.is_empty() {
        match measured(args)? {
            Measured::Results(file) => add(&mut store, &file),
            Measured::Failed(code) => return Ok(code),
        }
    } else {
        if !args.run.is_empty() || args.out.out.is_some() {
            return Err(Error::usage(
                "-o and options of ombx run are for a measurement: leave out the result files, or leave out -o and what follows --",
            ));
        }
        let mut known = KnownRuns::default();
        for path in &args.files {
            add(&mut store, &known.read(path)?);
        }
    }
    let setups = store.setups().to_vec();
    let mut cases = store.into_cases();
    cases.retain(|case| model::is_used(&case.row().bench));
    let models = model::models(&cases);
    if models.is_empty() {
        return Err(Error::usage(
            "a model needs measured rows of p2p.latency or sockets.latency: run ombx run p2p.latency p2p.bw -o FILE, then ombx model FILE",
        ));
    }
    let mut rows = Publishable::default();
    cases.iter().for_each(|case| rows.add(&case.estimate()));
    is_closed(print(&Shown { models, setups, rows }, args))?;
    Ok(0)
}

fn add(store: &mut SampleStore, file: &ResultFile) {
    file.runs.iter().filter(|run| !run.is_sweep()).for_each(|launch| store.launch(launch));
}

/// Measures both benchmarks and keeps the rows in the file of `-o`.
fn measured(args: &ModelArgs) -> Result<Measured> {
    if let Some(started) = detection::launcher() {
        return Err(Error::usage(format!(
            "ombx model starts its own ranks: start it without {}, once, or give result files",
            started.launcher
        )));
    }
    if args.out.is_stdout() {
        return Err(Error::usage("ombx model prints its result: give a name after -o, as in -o rows.jsonl"));
    }
    let out = match &args.out.out {
        Some(path) => {
            let hostfile = hostfile(&args.run).map(|path| ("the host file that is read", path));
            target::check(path, "-o", hostfile)?;
            Some(ResultTarget::open(path, args.out.existing(), Duration::ZERO)?)
        }
        None => None,
    };
    let benchmarks = match args.fabric.unwrap_or(Fabric::Mpi) {
        Fabric::Mpi => ["p2p.latency", "p2p.bw"],
        Fabric::Sockets => ["sockets.latency", "sockets.bw"],
    };
    measure(benchmarks, &args.run, |contents| match out {
        Some(mut file) => file.write(|out| out.write_all(contents.as_bytes())),
        None => Ok(()),
    })
}

/// Returns the host file that words of `ombx run` name.
fn hostfile(words: &[String]) -> Option<&Path> {
    let at = words.iter().position(|word| word == "--hostfile" || word.starts_with("--hostfile="))?;
    let path = words[at].split_once('=').map(|(_, path)| path);
    path.or_else(|| words.get(at + 1).map(String::as_str)).map(Path::new)
}

fn print(shown: &Shown, args: &ModelArgs) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format {
        ModelFormat::Table => {
            render::table(&mut out, shown, renderers::paint(args.color), terminal::columns())?;
        }
        ModelFormat::Csv => render::model_csv(&mut out, shown)?,
        ModelFormat::Json => writeln!(out, "{:#}", render::model_json(shown))?,
    }
    out.flush()
}

/// Time after which a measurement has failed. `ombx run` has deadlines of its own, which are shorter.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a measurement gives.
enum Measured {
    Results(ResultFile),
    /// Exit code of a measurement without results. Its message was printed.
    Failed(u8),
}

/// Measures the benchmarks with these options of `ombx run`, and keeps what it prints, even of a failure.
///
/// # Errors
/// `ombx run` cannot be started, or prints something other than results.
fn measure(
    benchmarks: [&str; 2],
    options: &[String],
    keep: impl FnOnce(&str) -> Result<()>,
) -> Result<Measured> {
    let interruption = Interruption::new()?;
    if io::stderr().is_terminal() {
        stderr_line!("ombx: measuring {} and {}, which takes a minute or two", benchmarks[0], benchmarks[1]);
    }
    let mut command = Command::new(argv::executable()?);
    command.args(["run", "--quiet", "--color=never", "--format=jsonl"]).args(options).args(benchmarks);
    let ended = finite_run::run(command, LONGEST, || interruption.has_arrived());
    if let Some(code) = interruption.exit_code() {
        stderr_line!("ombx: interrupted");
        return Ok(Measured::Failed(code));
    }
    let ([contents, messages], status) = ended?;
    keep(&contents)?;
    for line in messages.lines() {
        stderr_line!("{line}");
    }
    // Rows that cannot be measured here are left out of the model.
    if !matches!(status.code(), Some(0 | 4)) {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(Measured::Failed(code.unwrap_or(Kind::Fabric.exit_code())));
    }
    let read = file::read(contents.as_bytes());
    read.map(Measured::Results)
        .map_err(|e| Error::fabric(format!("ombx run prints something other than results: {e}")))
}
