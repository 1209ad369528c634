//! The plan that the arguments of `ombx run` describe. All mistakes in them are found here.

use ombx_core::{
    benchmark::{AxisValue, Choice, Initialization, Medium, Threading, Threads, cold::Cache, memory::DEVICE},
    error::{Error, Result},
    measure::{
        plan::{Effort, Plan, Under, Verify},
        session::streams,
    },
    system::host_name::is_here,
};
use ombx_results::percentiles::Percentiles;

use super::arguments::RunArgs;
use crate::{
    arguments::axes::{self, Chosen, unsupported},
    job::{load, selection},
    launch::mpiexec,
};

/// Returns the plan after checking the arguments against the benchmarks.
pub(crate) fn plan(args: &RunArgs, chosen: Chosen, choices: &[Choice]) -> Result<Plan> {
    axes::check(&chosen, choices)?;
    let Chosen { axes, mut settings } = chosen;
    settings.extend(args.device.map(|number| (DEVICE.to_owned(), number.to_string())));
    if args.sizes.is_some() && !choices.iter().any(|c| c.bench.sized) {
        return Err(unsupported("sizes", choices));
    }
    if args.pairs.is_some() && !choices.iter().any(|c| c.bench.layout.has_pairs()) {
        return Err(unsupported("pairs", choices));
    }
    if args.threads.is_some() && selection::threading(choices) == Threading::Single {
        return Err(unsupported("threads", choices));
    }
    let is_matched =
        |choice: &&Choice| choice.bench.threads_of(&Plan::default()).is_some_and(Threads::is_one_number);
    if let (Some(Threads::ByRole { .. }), Some(choice)) = (args.threads, choices.iter().find(is_matched)) {
        return Err(Error::usage(format!(
            "--threads: {} has as many threads on every rank: give one number, such as --threads 4",
            choice.bench.name
        )));
    }
    if args.window.is_some() && !choices.iter().any(|c| c.bench.streams) {
        return Err(unsupported("window", choices));
    }
    if args.root.is_some() && !choices.iter().any(|c| c.bench.rooted) {
        return Err(unsupported("root", choices));
    }
    if args.groups.is_some() && !choices.iter().any(|c| c.bench.grouped) {
        return Err(unsupported("groups", choices));
    }
    let groups = args.groups.unwrap_or_default();
    if !groups.is_one() && !args.under.is_empty() {
        return Err(Error::usage(
            "--groups divides all ranks, but a load needs some of them: leave out --groups",
        ));
    }
    let is_cold = axes.get(Cache::AXIS.name).is_some_and(|values| values.contains(&Cache::Cold.name()));
    if args.cache_size.is_some() && !is_cold {
        return Err(Error::usage("--cache-size needs --cache cold: add it, or leave out --cache-size"));
    }
    if args.init == Initialization::Session {
        match choices.iter().any(|choice| choice.bench.medium == Medium::Mpi) {
            true => mpiexec::sessions_exist()?,
            false => return Err(unsupported(Initialization::NAME, choices)),
        }
    }
    if args.threading != Threading::default()
        && !choices.iter().any(|choice| choice.bench.medium == Medium::Mpi)
    {
        return Err(unsupported(Threading::NAME, choices));
    }
    load::check(&args.under, choices)?;
    let others = args.start.hostfile.is_some() || !args.start.hosts().iter().all(|host| is_here(host));
    if settings.contains_key("remote-shell") && !others {
        return Err(Error::usage(
            "--remote-shell starts nodes on other hosts, but all nodes are on this one: name other hosts with --hosts, or leave out --remote-shell",
        ));
    }
    if let Some(ranks) = args.start.ranks {
        if groups.divide(ranks).is_err() {
            let least = groups.ranks_wanted(1);
            return Err(Error::usage(format!(
                "--groups {groups} needs {least} ranks or a larger multiple of {groups}, but -n gives {ranks}"
            )));
        }
        if let Some(root) = args.root.filter(|root| root.first().0 >= groups.size_of_each(ranks)) {
            let last = groups.size_of_each(ranks) - 1;
            let of_each =
                if groups.is_one() { String::new() } else { format!(" in each of {groups} groups") };
            return Err(Error::usage(format!(
                "--root {root} is not a rank: -n {ranks} gives ranks 0 to {last}{of_each}"
            )));
        }
        if let Some(pairs) = args.pairs.filter(|pairs| u64::from(*pairs) * 2 > u64::from(ranks)) {
            let needed = u64::from(pairs) * 2;
            return Err(Error::usage(format!("--pairs {pairs} needs {needed} ranks, but -n gives {ranks}")));
        }
    }
    let usual = Plan::default();
    let mut depths = args.window.iter().flat_map(|window| window.0.iter().copied());
    let (depth, more_depths) = (depths.next().unwrap_or(usual.depth), depths.collect());
    Ok(Plan {
        sizes: args.sizes.clone().map(|sizes| sizes.0),
        depth,
        more_depths,
        pairs: args.pairs,
        effort: match args.duration {
            Some(time) => Effort::Time(time),
            None => args.effort.effort(args.launches.row_time),
        },
        least_time: args.duration.unwrap_or_default(),
        interval: args.interval,
        least_tail: args.output.shown.percentiles.as_ref().map_or(0, Percentiles::samples),
        batch: args.effort.batch.0,
        known_batches: args.launches.batches.clone(),
        under: args.under.clone(),
        init: args.init,
        threading: args.threading,
        root: args.root.unwrap_or_default(),
        groups,
        memory_limit: args.memory_limit.map(|limit| limit.0),
        cache_bytes: args.cache_size.map(|bytes| bytes.0),
        threads: args.threads,
        verify: if args.no_verify { Verify::Off } else { args.verify },
        launch: args.launches.launch,
        core_to_core_ns: args.role.core_to_core_ps.map(|ps| ps as f64 / 1e3),
        axes,
        settings,
        ..usual
    })
}

/// Rejects a window that no case of the plan has, although one of its benchmarks can. Options of a suite may override each other so.
pub(crate) fn check_window(args: &RunArgs, choices: &[Choice], plan: &Plan) -> Result<()> {
    let only = choices.iter().find_map(|choice| choice.bench.streams_only);
    match only.filter(|_| args.window.is_some() && !choices.iter().any(|choice| streams(*choice, plan))) {
        Some((axis, value)) => {
            let name = axis.name;
            Err(Error::usage(format!("--window needs --{name} {value}: add it, or leave out --window")))
        }
        None => Ok(()),
    }
}

/// Returns the number of ranks to start: the user's, or what the most demanding benchmark needs.
pub(crate) fn ranks(args: &RunArgs, choices: &[Choice]) -> u32 {
    let needed = choices.iter().map(|c| c.bench.layout.ranks_wanted(args.pairs)).max().unwrap_or(1);
    let of_load = if args.under.is_empty() { 0 } else { Under::LEAST_RANKS };
    let rooted = args.root.map_or(1, |root| root.first().0.saturating_add(1));
    let groups = args.groups.unwrap_or_default();
    let wanted = needed.max(groups.ranks_wanted(rooted));
    let equal = wanted.checked_next_multiple_of(groups.count()).unwrap_or(u32::MAX);
    args.start.ranks.unwrap_or(equal.saturating_add(of_load))
}
