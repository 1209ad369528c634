//! `ombx links`: every pair of ranks, LinkTest-style.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use ombx_core::{
    error::{Error, Result},
    links::{Mode, Task},
    plan::Plan,
    registry::Registry,
};

use crate::{
    args::{EffortArgs, Format, OutputArgs, Sizes, StartArgs},
    job::{Extent, Job, Work},
};

/// The benchmark of two ranks that measures a link.
const BENCH: &str = "p2p.link";
const PATTERN: &str = "pattern";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx links -n 4\n  ombx links --hosts n01,n02,n03,n04 --sizes 8,1M -o links.jsonl\n  srun -n 256 ombx links --randomize 7 --format csv > links.csv"
)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,

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
    if args.output.format == Format::Osu {
        return Err(Error::usage("--format osu has no form for links; choose table, csv or jsonl"));
    }
    // One on each host, since links between hosts are what is of interest.
    let ranks = args.start.ranks.unwrap_or(u32::try_from(args.start.hosts.len()).unwrap_or(u32::MAX).max(2));
    if ranks < 2 {
        return Err(Error::usage(format!("links are between two ranks and more; -n gives {ranks}")));
    }
    let named = registry.all().iter().any(|b| b.name == BENCH);
    let choice = match registry.find(BENCH)?.first() {
        Some(choice) if named => *choice,
        _ => return Err(Error::usage(format!("this build has no {BENCH}, by which links are measured"))),
    };
    let mode = match (args.serial, args.bisection) {
        (true, _) => Mode::Serial,
        (_, true) => Mode::Bisection,
        _ => Mode::Parallel,
    };
    let plan = Plan {
        sizes: Some(args.sizes.0.clone()),
        depth: args.window,
        pairs: None,
        threads: None,
        effort: args.effort.effort(),
        batch: args.effort.batch.0,
        verify: !args.no_verify,
        axes: BTreeMap::from([(PATTERN.into(), vec![args.pattern.name()])]),
    };
    let (steps, rows) = mode.extent(ranks, args.sizes.0.len());
    let task = Task { choice, mode, seed: args.randomize, retest: args.retest };
    let extent = Extent { ranks, rows, steps };
    Job { start: &args.start, output: &args.output, plan, work: Work::Links(task), extent }.run()
}
