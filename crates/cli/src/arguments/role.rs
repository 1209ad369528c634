//! Hidden arguments that give a process of a job its role. The launching process adds them to its own command line.

use std::ffi::OsStr;

use clap::{Args, ValueEnum};
use ombx_core::measure::plan::Rest;

use super::values;

/// Arguments of [`RoleArgs`] as they are passed to a child process.
pub(crate) const RELAY: &str = "--relay=records";
pub(crate) const COORDINATOR: &str = "--coordinator";
pub(crate) const ALONE: &str = "--alone";
pub(crate) const THREADED: &str = "--threaded";
pub(crate) const CORE_TO_CORE: &str = "--core-to-core-ps=";
pub(crate) const GROUPING: &str = "--grouping=";
pub(crate) const RANKS: &str = "--job-ranks=";
pub(crate) const REST: &str = "--rest=";

/// Role of this process in a job that another process of ombx started.
#[derive(Debug, Default, Args)]
pub(crate) struct RoleArgs {
    /// Write records to standard output, for the launching process
    #[arg(long, hide = true, value_enum)]
    pub(crate) relay: Option<Relay>,
    /// Start ranks over sockets and coordinate them
    #[arg(long, hide = true, requires = "relay")]
    pub(crate) coordinator: bool,
    /// Measure benchmarks that start their own processes
    #[arg(long, hide = true, requires = "relay")]
    pub(crate) alone: bool,
    /// Measure benchmarks that need MPI_THREAD_MULTIPLE
    #[arg(long, hide = true, requires = "relay")]
    pub(crate) threaded: bool,
    /// Half the round trip of a cache line between two cores of the host, in picoseconds
    #[arg(long, hide = true, requires = "relay", value_parser = values::number::<u64>(1..=1_000_000_000_000))]
    pub(crate) core_to_core_ps: Option<u64>,
    /// Number of ranks of the job, which the launching process has read from the host file
    #[arg(long, hide = true, requires = "relay", value_parser = values::number::<u32>(1..=1 << 20))]
    pub(crate) job_ranks: Option<u32>,
    /// What is left to measure after cases that have ended their ranks
    #[arg(long, hide = true)]
    pub(crate) rest: Option<Rest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Relay {
    /// Records, and a line as each case starts
    Records,
}

/// Returns whether the launching process added this argument.
pub(crate) fn is_internal(argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let of_launches = ["--launch=", "--row-time=", "--batches=", CORE_TO_CORE, GROUPING, RANKS, REST];
    [RELAY, COORDINATOR, ALONE, THREADED].contains(&&*argument)
        || of_launches.iter().any(|option| argument.starts_with(option))
}
