//! The arguments.

use std::{path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};
use ombx_core::{
    benchmark::{registry::Registry, root::Root, threads::Threads},
    error::Result,
    measure::plan::{self, Effort, Launch},
    unit::{self, Bytes},
};
use ombx_results::render::OsuColumns;

use crate::{
    ab::AbArgs, axes, compare::CompareArgs, doctor::DoctorArgs, links::LinksArgs, osu::OsuArgs, plain,
};

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
    #[command(
        after_help = "Examples:\n  ombx cluster --inventory cluster.toml --dry-run\n  ombx cluster --inventory cluster.toml --launcher slurm --resume\n  ombx cluster --inventory cluster.toml --hosts n01,n02 -- --sizes 8,64K,4M"
    )]
    Cluster(Box<ombx_cluster::Options>),
    /// Says what could spoil a measurement here, and what to do about it
    Doctor(DoctorArgs),
    /// Drop-in for the OSU benchmarks: their names, options and output; alone it lists them
    #[command(disable_help_flag = true)]
    Osu(Box<OsuArgs>),
    /// Prints result files again, in any format
    Show(ShowArgs),
    /// Compares two sides of result files, case by case; gates CI
    Compare(CompareArgs),
    /// Measures with two builds of ombx in turns and compares them
    Ab(Box<AbArgs>),
    /// Draws result files as one HTML page that needs no network
    Report(ReportArgs),
    /// Prints a completion script for a shell
    Completions {
        /// The shell, for example: ombx completions bash > ~/.local/share/bash-completion/completions/ombx
        shell: clap_complete::Shell,
    },
    /// One process of sockets.pipeline; reads what it is from the socket that is its standard input
    #[cfg(feature = "sockets")]
    #[command(hide = true, name = ombx_sockets::pipeline::SUBCOMMAND)]
    PipelineProcess {
        /// What ps shows
        name: String,
    },
    /// Is a rank of a session over sockets; what it does comes through standard input
    #[command(hide = true)]
    Worker,
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
    /// Page about the drop-in for the OSU benchmarks
    Omb,
    /// Every option of every command, in JSON
    Options,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Names, globs or OSU names, for example: 'rma.*'; or a suite: suite:smoke
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
    /// Benchmarks: a name, a glob such as 'rma.*', or an OSU name such as osu_put_bw; or a suite: suite:smoke, my.toml
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
    /// Threads that send and threads that receive, where a benchmark has them, for example: --threads 2:4 [default: 1:2];
    /// alone: threads instead of processes, the same as --workers threads
    #[arg(long, value_name = "S:R", help_heading = "What is measured")]
    pub(crate) threads: Option<Option<Threads>>,
    /// Root of collective operations that have one: a rank, or rotate for another in each iteration
    #[arg(long, value_name = "R|rotate", help_heading = "What is measured")]
    pub(crate) root: Option<Root>,
    /// Bytes of buffers that a rank may have; rows that need more are skipped, for example: 512M [default: what the host has free]
    #[arg(long, value_name = "BYTES", value_parser = unit::parse_memory, help_heading = "What is measured")]
    pub(crate) memory_limit: Option<Bytes>,
    /// Leave payloads unchecked
    #[arg(long, help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) launches: LaunchesArgs,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How often everything is started anew.
#[derive(Debug, Args)]
pub(crate) struct LaunchesArgs {
    /// Start the ranks so often and run everything each time, in random order; the file keeps each launch [default: 1]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "How long")]
    pub(crate) launches: Option<u32>,
    /// Seed of the random order of --launches [default: another each time]
    #[arg(long, value_name = "SEED", help_heading = "How long")]
    pub(crate) seed: Option<u64>,
    /// Which launch of several this is, and its order
    #[arg(long, hide = true)]
    pub(crate) launch: Option<Launch>,
}

/// Which ranks there are and what starts them.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Ranks to start, for example: -n 4 [default: as many as the benchmarks need]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "Ranks")]
    pub(crate) ranks: Option<u32>,
    /// Hosts for the ranks, for example: --hosts n01,n02
    #[arg(long, value_delimiter = ',', value_parser = plain::host, conflicts_with = "hostfile", help_heading = "Ranks")]
    pub(crate) hosts: Vec<String>,
    /// File with a host on each line, in the form of the launcher
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    pub(crate) hostfile: Option<PathBuf>,
    /// What starts the ranks; none: this process is one
    #[arg(long, value_enum, default_value_t = Launcher::Auto, help_heading = "Ranks")]
    pub(crate) launcher: Launcher,
    /// What reaches other hosts, in place of ssh: a program that takes its arguments
    #[arg(long, value_name = "PROGRAM", value_parser = plain::program, help_heading = "Ranks")]
    pub(crate) ssh: Option<String>,
    /// Network interface of launchers between hosts, and of Open MPI over TCP, for example: --interface eth0
    #[arg(long, value_name = "NAME", value_parser = plain::interface, help_heading = "Ranks")]
    pub(crate) interface: Option<String>,
    /// Which cores ranks get; auto: one each, where there are enough
    #[arg(long, value_enum, default_value_t = Bind::Auto, help_heading = "Ranks")]
    pub(crate) bind: Bind,
    /// One more argument for the launcher; may be repeated, for example: --launcher-arg=-v
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new(), help_heading = "Ranks")]
    pub(crate) launcher_arg: Vec<String>,
    /// File on a file system that all ranks share, by which ranks that a launcher started meet over sockets; it must not exist
    #[arg(long, value_name = "FILE", help_heading = "Ranks")]
    pub(crate) rendezvous: Option<PathBuf>,
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
    /// Draw a chart below each table
    #[arg(long, help_heading = "Output")]
    pub(crate) plot: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub(crate) color: Color,
    /// Columns of the OSU format, of the drop-in alone
    #[arg(skip)]
    pub(crate) osu: Option<OsuColumns>,

    /// Records go to standard output, for the process that started this one
    #[arg(long, hide = true, value_enum)]
    pub(crate) relay: Option<Relay>,
    /// Starts ranks that are connected by sockets and holds them together, for the process that started this one
    #[arg(long, hide = true, requires = "relay")]
    pub(crate) coordinator: bool,

    /// This process measures what needs no ranks
    #[arg(long, hide = true, requires = "relay")]
    pub(crate) alone: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Result files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Draw a chart below each table
    #[arg(long)]
    pub(crate) plot: bool,
    /// Colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx report p2p.jsonl links.jsonl -o report.html\n  ombx report before.jsonl --against after.jsonl -o report.html"
)]
pub(crate) struct ReportArgs {
    /// Result files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Result files of a new side, which is compared with the others; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Vec<PathBuf>,
    /// The page; a file of that name is replaced
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) out: PathBuf,
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
pub(crate) enum Bind {
    /// One core each, where there are enough
    Auto,
    /// One core each
    Core,
    /// As the launcher's own environment says
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
    /// Text for Prometheus and its kin, for example through a textfile collector
    #[value(name = "openmetrics")]
    OpenMetrics,
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
    /// Records, and a line as each case starts
    Records,
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

/// The command with one option for each axis of the registered benchmarks.
pub(crate) fn command(registry: &Registry) -> clap::Command {
    let links = |links: clap::Command| {
        let links = links.mut_arg("plot", |plot| plot.hide(true));
        links.mut_arg("max_time", |time| time.default_value("20ms")).mut_arg("ranks", |ranks| {
            ranks.help("Ranks to start, for example: -n 4 [default: one for each of --hosts, at least 2]")
        })
    };
    Cli::command()
        .mut_subcommand("run", |run| axes::add_options(run, registry))
        .mut_subcommand("ab", |ab| axes::add_options(ab, registry))
        .mut_subcommand("links", links)
}
