//! The arguments of `ombx run`, which `ombx ab` and suites share.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use ombx_core::{
    measure::plan::{Under, Verify},
    unit,
};

use crate::arguments::{
    connect::ConnectArgs,
    effort::{EffortArgs, Sizes},
    launches::LaunchesArgs,
    output::OutputArgs,
    role::RoleArgs,
    start::StartArgs,
    values,
};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Names, globs such as 'rma.*', OSU names such as osu_put_bw, or one suite: suite:smoke, my.toml
    #[arg(value_name = "BENCHMARK")]
    pub(crate) patterns: Vec<String>,
    /// Repeat the run of this result file: its benchmarks and options, except those that are given here
    #[arg(long, value_name = "FILE", help_heading = "What is measured")]
    pub(crate) like: Option<PathBuf>,
    /// Begin with the benchmark of this number, from 1, in the order of measuring; ranks that fail name it
    #[arg(long, value_name = "N", value_parser = values::number::<u32>(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) from: Option<u32>,

    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Message sizes: 8,1K,64K (list) or 1..4M (doubling)
    ///
    /// 1..4M:x4 grows by a factor of 4. [default: the benchmark's]
    #[arg(long, value_parser = Sizes::parse, help_heading = "What is measured")]
    pub(crate) sizes: Option<Sizes>,
    /// Load on other ranks of the job: a benchmark they repeat
    ///
    /// Its messages have 4K bytes, or as p2p.bw:64K. Of a list, each is measured; with nothing in it, rows have impact factors.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', help_heading = "What is measured")]
    pub(crate) under: Vec<Under>,
    /// Iterations that are verified, outside the timed region: some, or as many as are timed
    #[arg(long, value_name = "sampled|full", default_value = "sampled", value_parser = Verify::parse, help_heading = "What is measured")]
    pub(crate) verify: Verify,
    /// Do not verify payloads
    #[arg(long, conflicts_with = "verify", help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    /// Count instructions, cycles, misses of caches and TLB, branches, page faults and context switches per operation
    ///
    /// The kernel counts in the ranks while rows are timed. A counter that it does not have is unavailable, with the reason.
    #[arg(long, help_heading = "What is measured")]
    pub(crate) counters: bool,

    #[command(flatten)]
    pub(crate) launches: LaunchesArgs,
    /// Measure each row for this time in each launch, whatever its precision, as iperf3 -t; with --quick for example: --duration 10s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, conflicts_with_all = ["iterations", "max_time"], help_heading = "How long")]
    pub(crate) duration: Option<Duration>,
    /// Print the figure of the running row after each such time of sampling on standard error, as iperf3 -i, over TCP with retransmits and congestion windows
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) interval: Option<Duration>,
    /// Earlier runs, a result file or a directory of them: they tell where the next run lies [default: the 20 newest files in the
    /// directory of -o]
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
}
