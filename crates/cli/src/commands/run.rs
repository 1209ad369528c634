//! `ombx run`: measures benchmarks.

pub(crate) mod arguments;
pub(crate) mod like;
pub(crate) mod plan;

use std::path::PathBuf;

use clap::{ArgMatches, Command, parser::ValueSource};
use ombx_core::{
    benchmark::{Chosen, Registry},
    error::{Error, Result},
    measure::{runner::Part, session::check_combinations},
};

use self::arguments::RunArgs;
#[cfg(feature = "io")]
use crate::job::directory;
use crate::{
    arguments::launches::LaunchesArgs,
    job::{Extent, Job, Work, lookup, selection, time_limit},
    launch::detection,
    output::renderers,
    suite,
};
#[cfg(feature = "mpi")]
use crate::{job::accelerator, launch::preflight};

/// Returns the job of a command line after finding every mistake in it. Starts nothing.
pub(crate) fn prepare(
    registry: &Registry,
    command: &Command,
    matches: &ArgMatches,
    mut args: RunArgs,
    chosen: Chosen,
) -> Result<Job> {
    check_effects(matches, &args)?;
    let connect = std::mem::take(&mut args.connect);
    let is_connected = connect.connect.is_some();
    args.start.place_by(connect);
    if let Some(suite) = suite::named(command, &args.patterns)? {
        if is_connected {
            return Err(Error::usage(
                "--connect is for benchmarks, not for suites: give their names, such as 'sockets.*'",
            ));
        }
        let file = suite.path().map(|path| ("the suite that is read", path));
        let mut suite = suite.resolve(registry, command, Some(matches))?;
        if detection::launcher().is_some() {
            // What a suite says about starting ranks is for ombx, not for a launcher of the user.
            (suite.args.start.ranks, suite.args.start.bind) = (args.start.ranks, args.start.bind);
        }
        let parts = suite.parts.into_iter().map(|(_, part)| part).collect();
        return job(suite.args, suite.ranks, parts, file);
    }
    let choices = selection::benchmarks(registry, &args.patterns);
    let mut choices = choices.map_err(|e| after_list(registry, matches, &args.patterns, e))?;
    if is_connected {
        choices = selection::over_sockets(choices, args.role.relay.is_none())?;
    }
    let plan = plan::plan(&args, chosen, &choices)?;
    plan::check_window(&choices, &plan)?;
    let ranks = plan::ranks(&args, &choices, &plan);
    if is_connected && ranks != 2 {
        return Err(Error::usage(format!(
            "--connect has two ranks, one on each host, but this job needs {ranks}: leave out -n, --pairs and --under"
        )));
    }
    job(args, ranks, vec![Part { choices, plan }], None)
}

/// Options with lists, whose values must not be separated by blanks.
const LISTS: [&str; 4] = ["hosts", "sizes", "under", "percentiles"];

/// Returns the error about a word that names no benchmark. If it follows the value of a list, a comma may be missing.
pub(crate) fn after_list(
    registry: &Registry,
    matches: &ArgMatches,
    patterns: &[String],
    error: Error,
) -> Error {
    let is_wrong = |pattern: &String| pattern.split(',').any(|name| lookup::find(registry, name).is_err());
    let Some(wrong) = patterns.iter().position(is_wrong).filter(|at| !patterns[*at].contains('.')) else {
        return error;
    };
    let at = matches.indices_of("patterns").and_then(|mut indices| indices.nth(wrong));
    let is_before = |list: &&&str| {
        let indices = matches.try_contains_id(list).unwrap_or(false).then(|| matches.indices_of(list));
        indices.flatten().into_iter().flatten().any(|index| Some(index + 1) == at)
    };
    match LISTS.iter().find(is_before) {
        Some(list) => Error::usage(format!(
            "{error}; values of --{list} have a comma between them and no blank: --{list} A,{}",
            patterns[wrong]
        )),
        None => error,
    }
}

/// Rejects options of the command line that would have no effect beside the others.
fn check_effects(matches: &ArgMatches, args: &RunArgs) -> Result<()> {
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let LaunchesArgs { launches, quick, launch, .. } = args.launches;
    if args.role.relay.is_some() || launch.is_some() {
        return Ok(());
    }
    let launched = detection::launcher().is_some();
    if let Some(option) = ["budget", "seed"].into_iter().find(|option| launched && typed(option)) {
        return Err(Error::usage(format!(
            "a launcher has already started these ranks, once: leave out --{option}, which is for several launches"
        )));
    }
    // One launch ends each row at the precision; an open number of launches ends at it.
    let unused = match quick || launched || launches == Some(1) {
        true => args.effort.iterations.map(|_| "--iterations").or(args.duration.map(|_| "--duration")),
        false => launches.map(|_| "--launches"),
    };
    match unused.filter(|_| typed("precision")) {
        Some(fixed) => Err(Error::usage(format!(
            "--precision decides how much is measured, which {fixed} fixes: leave out one of them"
        ))),
        None => Ok(()),
    }
}

/// Returns the job of arguments and plans after finding what contradicts.
pub(crate) fn job(
    args: RunArgs,
    ranks: u32,
    parts: Vec<Part>,
    read_from: Option<(&'static str, PathBuf)>,
) -> Result<Job> {
    selection::check_ranks(args.start.ranks, &parts)?;
    let parts = args.from.map_or(Ok(parts.clone()), |first| selection::from(parts, first))?;
    if args.connect.connect.is_some() {
        return Err(Error::usage("--connect is an option of the command line, not of suites"));
    }
    let output = args.output.settled()?;
    renderers::plot_columns(output.format, output.plot)?;
    output.shown.shown(output.format)?;
    let left_out = args.from.map_or(0, |first| first as usize - 1);
    let mut extent = Extent { ranks, left_out, ..Extent::default() };
    for Part { choices, plan } in &parts {
        choices.iter().try_for_each(|choice| check_combinations(*choice, plan))?;
        let rows = selection::rows(plan, choices)?;
        extent.rows = extent.rows.saturating_add(rows);
        extent.time = extent.time.saturating_add(time_limit::of_rows(plan, rows));
    }
    #[cfg(feature = "mpi")]
    if args.role.relay.is_none() {
        let is_here = detection::launcher().is_some() || preflight::all_here(&args.start);
        parts.iter().try_for_each(|part| accelerator::check(&part.plan, is_here))?;
        #[cfg(feature = "io")]
        directory::check(&parts, ranks, is_here)?;
    }
    let launches = args.launches.launches(args.effort.precision, extent.rows);
    if args.launches.seed.is_some() && args.launches.launch.is_none() && launches.is_one() {
        return Err(Error::usage(
            "--seed chooses the order of several launches: leave it out for one launch",
        ));
    }
    let RunArgs { start, role, against, .. } = args;
    if let Some(path) = against.as_ref().filter(|path| role.relay.is_none() && !path.exists()) {
        return Err(Error::usage(format!(
            "--against {}: there is no such file or directory of earlier results",
            path.display()
        )));
    }
    if against.is_some() && role.relay.is_none() && launches.is_one() {
        return Err(Error::usage(
            "--against needs several launches, between which runs differ: leave out --quick or --launches 1",
        ));
    }
    Ok(Job { start, output, role, work: Work::Benchmarks(parts), extent, launches, read_from, against })
}
