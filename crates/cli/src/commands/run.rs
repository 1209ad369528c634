//! `ombx run`: measures benchmarks.

pub(crate) mod arguments;
pub(crate) mod plan;

use std::path::PathBuf;

use clap::{ArgMatches, Command};
use ombx_core::{
    benchmark::Registry,
    error::{Error, Result},
    measure::runner::Part,
};

use self::arguments::RunArgs;
use crate::{
    arguments::axes::Chosen,
    job::{Extent, Job, Work, selection, time_limit},
    output::renderers,
    suite,
};

/// Returns the job of a command line after finding every mistake in it. Starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    command: &Command,
    matches: &ArgMatches,
    args: RunArgs,
    chosen: Chosen,
) -> Result<Job> {
    if let Some(suite) = suite::named(command, &args.patterns)? {
        let file = suite.path().map(|path| ("the suite that is read", path));
        let suite = suite.resolve(registry, command, Some(matches))?;
        let parts = suite.parts.into_iter().map(|(_, part)| part).collect();
        return job(suite.args, suite.ranks, parts, file);
    }
    let choices = selection::benchmarks(registry, &args.patterns)?;
    let plan = plan::plan(&args, chosen, &choices)?;
    plan::check_window(&args, &choices, &plan)?;
    let ranks = plan::ranks(&args, &choices);
    job(args, ranks, vec![Part { choices, plan }], None)
}

fn job(
    args: RunArgs,
    ranks: u32,
    parts: Vec<Part>,
    read_from: Option<(&'static str, PathBuf)>,
) -> Result<Job> {
    selection::check_ranks(args.start.ranks, &parts)?;
    let mut extent = Extent { ranks, ..Extent::default() };
    for Part { choices, plan } in &parts {
        let rows = selection::rows(plan, choices)?;
        extent.rows = extent.rows.saturating_add(rows);
        extent.time = extent.time.saturating_add(time_limit::of_rows(plan, rows));
    }
    let launches = args.launches.launches(args.effort.precision, extent.rows);
    if args.launches.seed.is_some() && args.launches.launch.is_none() && launches.is_one() {
        return Err(Error::usage(
            "--seed chooses the order of several launches: leave it out for one launch",
        ));
    }
    renderers::plot_columns(args.output.format, args.output.plot)?;
    let RunArgs { start, output, role, .. } = args;
    Ok(Job { start, output, role, work: Work::Benchmarks(parts), extent, launches, read_from })
}
