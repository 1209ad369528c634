//! `ombx links`: every pair of ranks, LinkTest-style.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use ombx_core::{
    benchmark::{entry::Choice, registry::Registry},
    error::{Error, Result},
    measure::plan::Plan,
};
use ombx_links::sweep::{Mode, Task};

use crate::{
    args::{EffortArgs, Format, OutputArgs, Sizes, StartArgs},
    deadline,
    job::{Extent, Job, Launches, Work},
};

/// The benchmarks of two ranks that measure a link, over MPI and over sockets.
const BENCHES: [&str; 2] = ["p2p.link", "sockets.link"];
const PATTERN: &str = "pattern";
const TRANSPORT: &str = "transport";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx links -n 4\n  ombx links --hosts n01,n02,n03,n04 --sizes 8,1M -o links.jsonl\n  srun -n 256 ombx links --randomize 7 --format csv > links.csv"
)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,

    /// What connects ranks; all but mpi need no MPI
    #[arg(long, value_enum, default_value_t = Fabric::Mpi, help_heading = "What is measured")]
    pub(crate) fabric: Fabric,
    /// How a link is loaded
    #[arg(long, value_enum, default_value_t = Pattern::Semidirectional, help_heading = "What is measured")]
    pub(crate) pattern: Pattern,
    /// Message sizes: 1..4M doubles, 8,1K,64K lists, 1..4M:x4 grows by 4
    #[arg(long, default_value = "8,1M", value_parser = Sizes::parse, help_heading = "What is measured")]
    pub(crate) sizes: Sizes,
    /// Messages back to back of the unidirectional pattern
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "What is measured")]
    pub(crate) window: u32,
    /// One pair at a time; the other ranks sleep
    #[arg(long, conflicts_with = "bisection", help_heading = "What is measured")]
    pub(crate) serial: bool,
    /// Only rank i with i + N/2, all at the same time
    #[arg(long, help_heading = "What is measured")]
    pub(crate) bisection: bool,
    /// Permute which ranks meet in which round, for example: --randomize 7
    #[arg(long, value_name = "SEED", help_heading = "What is measured")]
    pub(crate) randomize: Option<u64>,
    /// The slowest links of each size to measure again alone, beside those that stand out; 0: none at all
    #[arg(long, value_name = "K", default_value_t = 4, help_heading = "What is measured")]
    pub(crate) retest: u32,
    /// Leave payloads unchecked
    #[arg(long, help_heading = "What is measured")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) effort: EffortArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What connects ranks.
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
    /// The benchmark that measures its links, and what it chooses there.
    const fn bench(self) -> (&'static str, Option<&'static str>) {
        match self {
            Fabric::Mpi => (BENCHES[0], None),
            Fabric::Tcp => (BENCHES[1], Some("tcp")),
            Fabric::Unix => (BENCHES[1], Some("unix")),
            Fabric::Udp => (BENCHES[1], Some("udp")),
        }
    }
}

/// LinkTest's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// A ping-pong
    Semidirectional,
    /// Two ping-pongs at once
    Bidirectional,
    /// Messages one way, then a receipt
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

pub(crate) fn links(registry: &Registry, args: &LinksArgs) -> Result<u8> {
    prepare(registry, args, |job| job.run())
}

/// Makes a job of a command line, and starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    args: &LinksArgs,
    then: impl FnOnce(&Job<'_>) -> Result<u8>,
) -> Result<u8> {
    if args.output.format == Format::Osu {
        return Err(Error::usage("--format osu has no form for links; choose table, csv or jsonl"));
    }
    if args.output.plot {
        return Err(Error::usage(
            "--plot is for ombx run and ombx show; links are drawn as a map without it",
        ));
    }
    // One on each host, since links between hosts are what is of interest.
    let ranks = args.start.ranks.unwrap_or(u32::try_from(args.start.hosts.len()).unwrap_or(u32::MAX).max(2));
    if ranks < 2 {
        return Err(Error::usage(format!("links are between two ranks and more; -n gives {ranks}")));
    }
    let (bench, transport) = args.fabric.bench();
    let choice = match registry.all().iter().find(|b| b.name == bench) {
        Some(bench) => Choice { bench, preset: &[] },
        None => {
            let instead = if args.fabric == Fabric::Mpi { "; --fabric tcp needs no MPI" } else { "" };
            return Err(Error::usage(format!(
                "this build has no {bench}, by which such links are measured{instead}"
            )));
        }
    };
    let mut axes = BTreeMap::from([(PATTERN.into(), vec![args.pattern.name()])]);
    axes.extend(transport.map(|transport| (TRANSPORT.into(), vec![transport])));
    let mode = match (args.serial, args.bisection) {
        (true, _) => Mode::Serial,
        (_, true) => Mode::Bisection,
        _ => Mode::Parallel,
    };
    let plan = Plan {
        sizes: Some(args.sizes.0.clone()),
        depth: args.window,
        effort: args.effort.effort(),
        batch: args.effort.batch.0,
        verify: !args.no_verify,
        axes,
        ..Plan::default()
    };
    let (steps, rows) = mode.extent(ranks, args.sizes.0.len());
    let task = Task { choice, mode, seed: args.randomize, retest: args.retest };
    let extent = Extent { ranks, rows, time: deadline::of_rows(&plan, steps) };
    then(&Job {
        start: &args.start,
        output: &args.output,
        work: Work::Links(task, Box::new(plan)),
        extent,
        launches: Launches::one(),
    })
}
