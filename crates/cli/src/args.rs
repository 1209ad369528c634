//! The arguments, and how a mistake in them is told.

use std::{path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, error::ErrorKind};
use ombx_core::{
    error::{Error, Result},
    plan::{self, Effort},
    registry::Registry,
    threads::Threads,
    unit::{self, Bytes},
};

use crate::{axes, links::LinksArgs};

#[derive(Debug, Parser)]
#[command(
    name = "ombx",
    version,
    about = "Communication micro-benchmarks for clusters whose numbers can be believed",
    max_term_width = 110,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Lists the benchmarks of this build; starts no MPI
    List(ListArgs),
    /// Runs benchmarks, starting their ranks unless a launcher has
    Run(Box<RunArgs>),
    /// Measures every pair of ranks, names what is slow, starting ranks unless a launcher has
    Links(Box<LinksArgs>),
    /// Prints result files again, in any format
    Show(ShowArgs),
    /// Prints a completion script for a shell
    Completions {
        /// The shell, for example: ombx completions bash > ~/.local/share/bash-completion/completions/ombx
        shell: clap_complete::Shell,
    },
    /// Prints what the repository generates from this binary
    #[command(hide = true)]
    Codegen {
        #[arg(value_enum)]
        what: Generated,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Generated {
    /// JSON Schema of a result file's lines
    Schema,
    /// Manual page
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Names, globs or OSU names, for example: 'rma.*'
    pub(crate) patterns: Vec<String>,
    /// One JSON array instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Everything known of each: method, axes, sizes, where it is registered
    #[arg(long, conflicts_with = "json")]
    pub(crate) long: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx run rma.put_bw\n  ombx run rma.put_bw --sync lock --win create --sizes 1..1M -o put.jsonl\n  mpiexec -n 2 ombx run 'p2p.*'"
)]
pub(crate) struct RunArgs {
    /// Benchmarks: a name, a glob such as 'rma.*', or an OSU name such as osu_put_bw
    pub(crate) patterns: Vec<String>,

    #[command(flatten)]
    pub(crate) start: StartArgs,

    /// Message sizes: 1..4M doubles, 8,1K,64K lists, 1..4M:x4 grows by 4 [default: the benchmark's]
    #[arg(long, value_parser = Sizes::parse, help_heading = "What is measured")]
    pub(crate) sizes: Option<Sizes>,
    /// Operations in flight of bandwidth tests
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) window: u32,
    /// Pairs of ranks at the same time, where a benchmark is of pairs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "What is measured")]
    pub(crate) pairs: Option<u32>,
    /// Threads that send and threads that receive, where a benchmark has them, for example: --threads 2:4 [default: 1:2]
    #[arg(long, value_name = "S:R", help_heading = "What is measured")]
    pub(crate) threads: Option<Threads>,
    /// Leave payloads unchecked
    #[arg(long, help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which ranks there are and what starts them.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Ranks to start, for example: -n 4 [default: as many as the benchmarks need]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Ranks")]
    pub(crate) ranks: Option<u32>,
    /// Hosts for the ranks, for example: --hosts n01,n02
    #[arg(long, value_delimiter = ',', value_parser = host, conflicts_with = "hostfile", help_heading = "Ranks")]
    pub(crate) hosts: Vec<String>,
    /// File with a host on each line, in the form of the launcher
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    pub(crate) hostfile: Option<PathBuf>,
    /// What starts the ranks; none: this process is one
    #[arg(long, value_enum, default_value_t = Launcher::Auto, help_heading = "Ranks")]
    pub(crate) launcher: Launcher,
    /// One more argument for the launcher; may be repeated, for example: --launcher-arg=-v
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Ranks")]
    pub(crate) launcher_arg: Vec<String>,
    /// Time after which the whole job is ended, for example: 10m [default: from the plan]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "Ranks")]
    pub(crate) timeout: Option<Duration>,
}

/// When a row is done.
#[derive(Debug, Args)]
pub(crate) struct EffortArgs {
    /// A row is done when half its 95 % interval is below this part of the median
    #[arg(long, default_value = "1%", allow_hyphen_values = true, value_parser = unit::parse_percent, help_heading = "How long")]
    pub(crate) precision: f64,
    /// Time for measuring one row at the most
    #[arg(long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "How long")]
    pub(crate) max_time: Duration,
    /// A fixed number of timed iterations instead, as the OSU benchmarks have, for example: 1000
    #[arg(long, value_name = "I", value_parser = clap::value_parser!(u64).range(1..=1 << 32), conflicts_with_all = ["precision", "max_time"], help_heading = "How long")]
    pub(crate) iterations: Option<u64>,
    /// Iterations before them [default with --iterations: a tenth]
    #[arg(long, value_name = "X", value_parser = clap::value_parser!(u64).range(0..=1 << 32), requires = "iterations", help_heading = "How long")]
    pub(crate) warmup: Option<u64>,
    /// Iterations in one sample; auto keeps reading the clock below 1 %
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = Batch::parse, help_heading = "How long")]
    pub(crate) batch: Batch,
}

impl EffortArgs {
    pub(crate) fn effort(&self) -> Effort {
        match self.iterations {
            Some(iterations) => {
                Effort::Fixed { iterations, warmup: self.warmup.unwrap_or(iterations.div_ceil(10)) }
            }
            None => Effort::Precision { precision: self.precision, max_time: self.max_time },
        }
    }
}

/// Where rows go and what is said beside them.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    pub(crate) format: Format,
    /// Result file in JSON Lines, complete whatever is on screen; each row is there once it is measured
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Count skipped cases as success
    #[arg(long, help_heading = "Output")]
    pub(crate) allow_skips: bool,
    /// No progress
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Show how ranks are started and all that the launcher says
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub(crate) color: Color,

    /// Records go to standard output, for the process that started this one
    #[arg(long, hide = true, value_enum)]
    pub(crate) relay: Option<Relay>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Result files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Launcher {
    /// srun inside a Slurm allocation, else the mpiexec of this build's MPI
    Auto,
    /// The mpiexec of this build's MPI
    Mpiexec,
    /// Slurm's srun
    Srun,
    /// None: this process is a rank
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// As the OSU benchmarks print
    Osu,
    /// One line a row
    Csv,
    /// The result file itself
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Relay {
    /// Records only
    Quiet,
    /// And a line as each case starts
    Progress,
}

/// A list of sizes, as one value.
#[derive(Debug, Clone)]
pub(crate) struct Sizes(pub(crate) Vec<Bytes>);

impl Sizes {
    pub(crate) fn parse(text: &str) -> Result<Sizes> {
        plan::parse_sizes(text).map(Sizes)
    }
}

/// Iterations in a sample; calibrated where `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch(pub(crate) Option<u64>);

impl Batch {
    fn parse(text: &str) -> std::result::Result<Batch, String> {
        match (text, text.parse::<u64>()) {
            ("auto", _) => Ok(Batch(None)),
            (_, Ok(n @ 1..=0x1_0000_0000)) => Ok(Batch(Some(n))),
            _ => Err("neither auto nor a number of iterations from 1".into()),
        }
    }
}

/// A host name or address; nothing that a launcher could take for an option or a shell for a command.
fn host(text: &str) -> std::result::Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]@".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("not a host name".into())
    }
}

/// The command with one option for each axis of the registered benchmarks.
pub(crate) fn command(registry: &Registry) -> clap::Command {
    let links = |links: clap::Command| {
        links.mut_arg("max_time", |time| time.default_value("20ms")).mut_arg("ranks", |ranks| {
            ranks.help("Ranks to start, for example: -n 4 [default: one for each of --hosts, at least 2]")
        })
    };
    Cli::command()
        .mut_subcommand("run", |run| axes::add_options(run, registry))
        .mut_subcommand("links", links)
}

/// Tells what clap found: help and version as it words them, a mistake in one sentence.
pub(crate) fn refuse(error: &clap::Error) -> Result<u8> {
    if !error.use_stderr() {
        // A closed pipe (ombx --help | head) is no error.
        let _ = error.print();
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return Ok(2);
    }
    let text = error.render().to_string();
    let told = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = told.map(str::trim).filter(|line| !line.is_empty()).collect();
    let sentence = words.join(" ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence).replace(" tip: ", "; ");
    let sentence: String = sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Err(Error::usage(format!("{sentence} (ombx --help shows all)")))
}
