//! `ombx links`: measures every pair of ranks, as LinkTest does.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use ombx_core::{
    benchmark::{Choice, Registry},
    error::{Error, Result},
    measure::plan::Plan,
};
use ombx_links::sweep::{Mode, Task};

use crate::{
    arguments::{
        effort::{EffortArgs, Sizes},
        launches::Launches,
        output::{Format, OutputArgs},
        role::RoleArgs,
        start::StartArgs,
    },
    job::{Extent, Job, Work, time_limit},
};

/// Benchmarks of two ranks that measure a link, over MPI and over sockets.
const OVER_MPI: &str = "p2p.link";
const OVER_SOCKETS: &str = "sockets.link";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx links -n 4\n  ombx links --hosts n01,n02,n03,n04 --sizes 8,1M -o links.jsonl\n  srun -n 256 ombx links --randomize 7 --format csv > links.csv"
)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,

    /// Connection between the ranks; all but mpi work without MPI
    #[arg(long, value_enum, default_value_t = Fabric::Mpi, help_heading = "What is measured")]
    pub(crate) fabric: Fabric,
    /// Traffic on a link
    #[arg(long, value_enum, default_value_t = Pattern::Semidirectional, help_heading = "What is measured")]
    pub(crate) pattern: Pattern,
    /// Message sizes: 1..4M (doubling), 8,1K,64K (list), 1..4M:x4 (growing by 4)
    #[arg(long, default_value = "8,1M", value_parser = Sizes::parse, help_heading = "What is measured")]
    pub(crate) sizes: Sizes,
    /// Messages in flight in the unidirectional pattern
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) window: u32,
    /// Measure one pair at a time while all other ranks sleep
    #[arg(long, conflicts_with = "bisection", help_heading = "What is measured")]
    pub(crate) serial: bool,
    /// Measure only the pairs of rank i and rank i + N/2, all at the same time
    #[arg(long, help_heading = "What is measured")]
    pub(crate) bisection: bool,
    /// Permute the order of pairs with this seed, for example: --randomize 7
    #[arg(long, value_name = "SEED", help_heading = "What is measured")]
    pub(crate) randomize: Option<u64>,
    /// Number of slowest links per size to measure again alone, in addition to those that stand out; 0: no link at all
    #[arg(long, value_name = "K", default_value_t = 4, help_heading = "What is measured")]
    pub(crate) retest: u32,
    /// Do not verify payloads
    #[arg(long, help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
}

/// Connection between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fabric {
    /// MPI
    Mpi,
    /// TCP
    Tcp,
    /// Unix-domain sockets, inside a host
    Unix,
    /// UDP
    Udp,
}

impl Fabric {
    /// Returns the benchmark that measures links over this fabric, and the value of the transport axis.
    const fn bench(self) -> (&'static str, Option<&'static str>) {
        match self {
            Fabric::Mpi => (OVER_MPI, None),
            Fabric::Tcp => (OVER_SOCKETS, Some("tcp")),
            Fabric::Unix => (OVER_SOCKETS, Some("unix")),
            Fabric::Udp => (OVER_SOCKETS, Some("udp")),
        }
    }
}

/// Patterns of LinkTest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// One ping-pong
    Semidirectional,
    /// Two ping-pongs at the same time
    Bidirectional,
    /// Messages in one direction, then an acknowledgement
    Unidirectional,
}

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Pattern::Semidirectional => "semidirectional",
            Pattern::Bidirectional => "bidirectional",
            Pattern::Unidirectional => "unidirectional",
        }
    }
}

/// Changes what `ombx links` does differently from `ombx run` in the arguments that they share.
pub(crate) fn adapt_options(links: clap::Command) -> clap::Command {
    let links = links.mut_arg("plot", |plot| plot.hide(true));
    links.mut_arg("max_time", |time| time.default_value("20ms")).mut_arg("ranks", |ranks| {
        ranks.help(
            "Number of ranks to start, for example: -n 4 [default: one for each of --hosts, at least 2]",
        )
    })
}

/// Returns the job of a command line after finding every mistake in it. Starts nothing.
pub(crate) fn prepare(registry: &Registry, args: LinksArgs) -> Result<Job> {
    if args.output.format == Format::Osu {
        return Err(Error::usage("--format osu cannot show links: choose table, csv or jsonl"));
    }
    if args.output.plot {
        return Err(Error::usage("ombx links has no option --plot: its table is already a map"));
    }
    // The interesting links are those between hosts: by default there is one rank on each.
    let ranks = args.start.ranks.unwrap_or(u32::try_from(args.start.hosts.len()).unwrap_or(u32::MAX).max(2));
    if ranks < 2 {
        return Err(Error::usage(format!("-n {ranks} is too small: links need at least two ranks")));
    }
    let (bench, transport) = args.fabric.bench();
    let Some(bench) = registry.all().iter().find(|b| b.name == bench) else {
        let instead =
            if args.fabric == Fabric::Mpi { ": choose --fabric tcp, which needs no MPI" } else { "" };
        return Err(Error::usage(format!(
            "this build lacks the benchmark {bench}, which measures these links{instead}"
        )));
    };
    let mut axes = BTreeMap::from([("pattern".into(), vec![args.pattern.name()])]);
    axes.extend(transport.map(|transport| ("transport".into(), vec![transport])));
    let mode = match (args.serial, args.bisection) {
        (true, _) => Mode::Serial,
        (_, true) => Mode::Bisection,
        _ => Mode::Parallel,
    };
    let (steps, rows) = mode.extent(ranks, args.sizes.0.len());
    let plan = Plan {
        sizes: Some(args.sizes.0),
        depth: args.window,
        effort: args.effort.effort(None),
        batch: args.effort.batch.0,
        verify: !args.no_verify,
        axes,
        ..Plan::default()
    };
    let task =
        Task { choice: Choice { bench, preset: &[] }, mode, seed: args.randomize, retest: args.retest };
    let extent = Extent { ranks, rows, time: time_limit::of_rows(&plan, steps) };
    let LinksArgs { start, output, role, .. } = args;
    Ok(Job { start, output, role, work: Work::Links(task, Box::new(plan)), extent, launches: Launches::ONE })
}
