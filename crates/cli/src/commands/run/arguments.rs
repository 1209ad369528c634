//! The arguments of `ombx run`, which `ombx ab` and suites share.

use std::{path::PathBuf, time::Duration};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use ombx_core::{
    benchmark::{Groups, Initialization, Root, Threading, Threads},
    measure::plan::{Under, Verify},
    unit::{self, Bytes},
};

use crate::arguments::{
    connect::ConnectArgs,
    effort::{Depths, EffortArgs, Sizes},
    launches::LaunchesArgs,
    output::OutputArgs,
    role::RoleArgs,
    start::StartArgs,
    values,
};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Benchmarks: names, globs such as 'rma.*', or OSU names such as osu_put_bw; or one suite: suite:smoke, my.toml
    pub(crate) patterns: Vec<String>,

    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Message sizes: 1..4M (doubling), 8,1K,64K (list), 1..4M:x4 (growing by 4) [default: the benchmark's]
    #[arg(long, value_parser = Sizes::parse, help_heading = "What is measured")]
    pub(crate) sizes: Option<Sizes>,
    /// Operations in flight in bandwidth benchmarks, each number with rows of its own: 64, 1,4,16 (list), 1..64 (doubling) [default: 64]
    #[arg(long, value_name = "NUMBERS", value_parser = Depths::parse, help_heading = "What is measured")]
    pub(crate) window: Option<Depths>,
    /// Pairs of ranks that communicate at the same time, in benchmarks of pairs [default: as many as the ranks allow]
    #[arg(long, value_parser = values::number::<u32>(1..=u32::MAX), help_heading = "What is measured")]
    pub(crate) pairs: Option<u32>,
    /// Threads per rank of benchmarks with several threads, whose names end in _mt; of p2p.latency_mt also sending and receiving ones,
    /// for example: --threads 2:4 [default: 2, and 1:2]
    #[arg(long, value_name = "T|S:R", help_heading = "What is measured")]
    pub(crate) threads: Option<Threads>,
    /// Measure while other ranks of the job repeat this benchmark, with 4K bytes or those after a colon: p2p.bw:64K. A list is measured
    /// one after the other; nothing is no load. With nothing in the list, rows have impact factors
    #[arg(long, value_name = "LOAD", value_delimiter = ',', help_heading = "What is measured")]
    pub(crate) under: Vec<Under>,
    /// Root of rooted collective operations: a rank, or rotate to change it in each iteration [default: 0]
    #[arg(long, value_name = "R|rotate", help_heading = "What is measured")]
    pub(crate) root: Option<Root>,
    /// Groups of consecutive ranks that run the same collective operation at the same time, with at least 2 ranks each [default: 1]
    #[arg(long, value_name = "G", help_heading = "What is measured")]
    pub(crate) groups: Option<Groups>,
    /// Thread support for which MPI starts: by MPI_Init as most programs, or by MPI_Init_thread with a level; a library may be slower at
    /// a higher one. Benchmarks whose names end in _mt have multiple in any case
    #[arg(long, value_name = "LEVEL", default_value = "single", value_parser = PossibleValuesParser::new(Threading::ALL.map(Threading::name)).try_map(|name| name.parse::<Threading>()), help_heading = "What is measured")]
    pub(crate) threading: Threading,
    /// How MPI starts: as the world that every MPI has, or as a session of MPI 4 with a communicator of its own
    #[arg(long, value_name = "world|session", default_value = "world", help_heading = "What is measured")]
    pub(crate) init: Initialization,
    /// Maximum memory for the buffers of a rank; rows that need more are skipped, for example: 512M [default: the host's free memory]
    #[arg(long, value_name = "BYTES", value_parser = unit::parse_memory, help_heading = "What is measured")]
    pub(crate) memory_limit: Option<Bytes>,
    /// Device of --memory on every host, among those that a rank sees, for example: --device 1 [default: number of the rank on its host, modulo the devices]
    #[arg(long, value_name = "NUMBER", value_parser = values::number::<u32>(0..=255), help_heading = "What is measured")]
    pub(crate) device: Option<u32>,
    /// Size of the last-level cache for --cache cold, for example: 32M [default: the largest that sysfs has on any host]
    #[arg(long, value_name = "BYTES", value_parser = unit::parse_memory, help_heading = "What is measured")]
    pub(crate) cache_size: Option<Bytes>,
    /// Iterations that are verified, each with a fresh pattern and outside the timed region: some, or as many as are timed
    #[arg(long, value_name = "sampled|full", default_value = "sampled", value_parser = Verify::parse, help_heading = "What is measured")]
    pub(crate) verify: Verify,
    /// Do not verify payloads
    #[arg(long, conflicts_with = "verify", help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) launches: LaunchesArgs,
    /// Measure each row for this time in each launch, whatever its precision, as iperf3 -t; with --quick for example: --duration 10s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, conflicts_with_all = ["iterations", "max_time"], help_heading = "How long")]
    pub(crate) duration: Option<Duration>,
    /// Print the figure of the running row after each such time of sampling on standard error, as iperf3 -i, over TCP with the retransmits and the congestion windows of all connections on which rank 0 sends, for example: --interval 1s
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
