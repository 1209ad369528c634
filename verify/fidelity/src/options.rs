//! Options of `cargo xtask fidelity`.

use std::{path::PathBuf, time::Duration};

use ombx_toolchain::Which;

/// Compare the timed loops of ombx with plain C loops
///
/// One MPI program contains both. For each case it alternates blocks of both loops in random order on the same communicator,
/// buffers, windows and requests. Prints the ratio of their times with its interval over launches, and fails if an interval lies
/// above its goal. `--instructions` counts instructions instead, which do not depend on the load of the machine.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask fidelity",
    after_help = "Example: cargo xtask fidelity --mpi mpich --row p2p"
)]
pub(crate) struct Options {
    /// MPI to compare with [default: every installed one]
    #[arg(long, value_enum)]
    pub(crate) mpi: Option<Which>,
    /// Run only rows whose name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    pub(crate) row: String,
    /// Launches of every row; rows that are not resolved get more
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(6..=100))]
    pub(crate) launches: u64,
    /// Time of a row in a launch, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) row_time: u64,
    /// Time limit for the launches of rows that are not resolved after the first ones
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) minutes: u64,
    /// Count instructions of a sample of rows with callgrind, and measure no times
    #[arg(long, conflicts_with_all = ["sockets", "launches", "row_time", "minutes", "slowed"])]
    pub(crate) instructions: bool,
    /// With --instructions: count only a sample of rows, with tighter goals
    #[arg(long, requires = "instructions", conflicts_with_all = ["row", "write"])]
    pub(crate) sample: bool,
    /// Compare two kernels that are slower on purpose, and succeed if the comparison finds both
    #[arg(long, conflicts_with_all = ["row", "sockets", "write"])]
    pub(crate) slowed: bool,
    /// Compare the benchmarks over sockets, also with iperf3 and sockperf if they are installed
    #[arg(long, conflicts_with_all = ["mpi", "row"])]
    pub(crate) sockets: bool,
    /// Compare rate, CPU time and loss of sockets with iperf3, on loopback and between two network namespaces, which need root
    #[arg(long, conflicts_with_all = ["sockets", "instructions", "slowed", "outside", "mpi"])]
    pub(crate) line_rate: bool,
    /// With --line-rate: the binary to measure [default: a release build]
    #[arg(long, requires = "line_rate", value_name = "PATH")]
    pub(crate) ombx: Option<PathBuf>,
    /// Compare two libraries that differ by one branch per message: by `ombx ab`, and by callgrind
    #[arg(long, conflicts_with_all = ["sockets", "line_rate", "instructions", "slowed", "row", "row_time", "minutes", "outside"])]
    pub(crate) branch: bool,
    /// Compare figures after several numbers of earlier messages, which a preloaded library sends, with each other and with a C program
    /// that measures every position of the queue
    #[arg(long, conflicts_with_all = ["sockets", "line_rate", "instructions", "slowed", "row", "row_time", "minutes", "outside", "branch"])]
    pub(crate) alignments: bool,
    /// Compare `ombx run` and `ombx osu` with plain C programs, each in processes of its own, in turns
    #[arg(long, conflicts_with_all = ["sockets", "instructions", "slowed", "row_time", "minutes"])]
    pub(crate) outside: bool,
    /// With --outside: directory with the sources of OMB, whose programs are built and take their turns
    #[arg(long, requires = "outside", value_name = "DIR")]
    pub(crate) omb: Option<PathBuf>,
    /// Write the results to docs/EVIDENCE.md, and all tables to target/evidence
    #[arg(long, conflicts_with_all = ["row", "mpi"])]
    pub(crate) write: bool,
    /// Use the existing binaries
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Seed of all random orders
    #[arg(long, value_name = "SEED", default_value_t = 2012)]
    pub(crate) seed: u64,
}

impl Options {
    /// Returns the time limit for launches of rows that are not resolved.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(60 * self.minutes)
    }
}
