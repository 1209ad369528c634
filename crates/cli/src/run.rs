//! `ombx run`: starts ranks, or is one.

use clap::{ArgMatches, Command};
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
    measure::runner::Part,
};

use crate::{
    args::RunArgs,
    axes::Chosen,
    deadline,
    job::{Extent, Job, Launches, Work},
    output, select,
    suite::{self, Resolved},
};

/// Runs the benchmarks that a command line asks for.
pub(crate) fn run(
    registry: &Registry,
    command: &Command,
    matches: &ArgMatches,
    args: &RunArgs,
    chosen: Chosen,
) -> Result<u8> {
    prepare(registry, command, matches, args, chosen, |job| job.run())
}

/// Makes a job of a command line, and starts nothing: every mistake that can be found is found before `then`.
pub(crate) fn prepare(
    registry: &Registry,
    command: &Command,
    matches: &ArgMatches,
    args: &RunArgs,
    chosen: Chosen,
    then: impl FnOnce(&Job<'_>) -> Result<u8>,
) -> Result<u8> {
    if let Some(suite) = suite::named(command, &args.patterns)? {
        let typed = matches.subcommand_matches("run");
        let Resolved { parts, ranks, job, .. } = suite.resolve(registry, command, typed)?;
        return job_of(&job, ranks, parts.into_iter().map(|(_, part)| part).collect(), then);
    }
    let choices = select::benchmarks(registry, &args.patterns)?;
    let plan = select::plan(args, chosen, &choices)?;
    let ranks = select::ranks(args, &choices);
    job_of(args, ranks, vec![Part { choices, plan }], then)
}

fn job_of(
    args: &RunArgs,
    ranks: u32,
    mut parts: Vec<Part>,
    then: impl FnOnce(&Job<'_>) -> Result<u8>,
) -> Result<u8> {
    let launches = Launches::of(&args.launches);
    if args.output.plot && launches.count > 1 {
        return Err(Error::usage("--plot draws one launch; leave it out, or --launches"));
    }
    if args.launches.seed.is_some() && args.launches.launches.is_none() {
        return Err(Error::usage("--seed is of the random order of --launches; give both, or neither"));
    }
    parts.iter_mut().for_each(|part| part.plan.launch = args.launches.launch);
    output::plot_columns(args.output.format, args.output.plot)?;
    let mut extent = Extent { ranks, rows: 0, time: std::time::Duration::ZERO };
    for Part { choices, plan } in &parts {
        let rows = select::rows(plan, choices)?;
        extent.rows = extent.rows.saturating_add(rows);
        extent.time = extent.time.saturating_add(deadline::of_rows(plan, rows));
    }
    then(&Job { start: &args.start, output: &args.output, work: Work::Benchmarks(parts), extent, launches })
}
