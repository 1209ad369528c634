//! The plan that the arguments of `ombx run` describe. All mistakes in them are found here.

use ombx_core::{
    benchmark::{
        Choice, Chosen, Depth, Groups, Initialization, PairCount, ParameterValue, Root, Streams, Threading,
        Threads,
        cold::{CACHE_SIZE, Cache},
    },
    error::{Error, Result},
    measure::{
        plan::{Effort, Plan, Under, Verify},
        session::streams,
    },
    system::{host_name::is_here, performance::kernel_meter},
};
use ombx_results::percentiles::Percentiles;

use super::arguments::RunArgs;
use crate::{
    arguments::parameters::{self, unsupported},
    job::load,
    launch::mpiexec,
};

/// Returns the plan after checking the arguments against the benchmarks.
pub(crate) fn plan(args: &RunArgs, chosen: Chosen, choices: &[Choice]) -> Result<Plan> {
    // `ombx run` replaces the option by those of the file.
    if args.like.is_some() {
        return Err(Error::usage("--like is for ombx run alone: repeat the run by ombx run --like FILE"));
    }
    parameters::check(&chosen, choices)?;
    if args.sizes.is_some() && !choices.iter().any(|c| c.bench.messages.sized) {
        return Err(unsupported("sizes", choices));
    }
    let is_matched =
        |choice: &&Choice| choice.bench.threads_of(&Plan::default()).is_some_and(Threads::is_one_number);
    if let (Some(Threads::ByRole { .. }), Some(choice)) = (chosen.chosen(), choices.iter().find(is_matched)) {
        return Err(Error::usage(format!(
            "--threads: {} has as many threads on every rank: give one number, such as --threads 4",
            choice.bench.name
        )));
    }
    let groups: Groups = chosen.get();
    if !groups.is_one() && !args.under.is_empty() {
        return Err(Error::usage(
            "--groups divides all ranks, but a load needs some of them: leave out --groups",
        ));
    }
    if chosen.has(&CACHE_SIZE) && !chosen.includes(Cache::Cold) {
        return Err(Error::usage("--cache-size needs --cache cold: add it, or leave out --cache-size"));
    }
    if chosen.texts(Initialization::PARAMETER).len() > 1 || chosen.texts(Threading::PARAMETER).len() > 1 {
        return Err(Error::usage(
            "--init and --threading: a job initialises MPI once, give one value of each",
        ));
    }
    if chosen.includes(Initialization::Session) {
        mpiexec::sessions_exist()?;
    }
    load::check(&args.under, choices)?;
    let others = args.start.hostfile.is_some() || !args.start.hosts().iter().all(|host| is_here(host));
    if chosen.names().any(|name| name == "remote-shell") && !others {
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
        if let Some(root) =
            chosen.chosen::<Root>().filter(|root| root.first().0 >= groups.size_of_each(ranks))
        {
            let last = groups.size_of_each(ranks) - 1;
            let of_each =
                if groups.is_one() { String::new() } else { format!(" in each of {groups} groups") };
            return Err(Error::usage(format!(
                "--root {root} is not a rank: -n {ranks} gives ranks 0 to {last}{of_each}"
            )));
        }
        let is_too_many = |PairCount(pairs): &PairCount| u64::from(*pairs) * 2 > u64::from(ranks);
        if let Some(PairCount(pairs)) = chosen.chosen().filter(is_too_many) {
            let needed = u64::from(pairs) * 2;
            return Err(Error::usage(format!("--pairs {pairs} needs {needed} ranks, but -n gives {ranks}")));
        }
    }
    Ok(Plan {
        sizes: args.sizes.clone().map(|sizes| sizes.0),
        chosen,
        effort: match args.duration {
            Some(time) => Effort::Time(time),
            None => args.effort.effort(args.launches.row_time),
        },
        least_time: args.duration.unwrap_or_default(),
        interval: args.interval,
        counters: args.counters.then_some(kernel_meter),
        least_tail: args.output.shown.percentiles.as_ref().map_or(0, Percentiles::samples),
        batch: args.effort.batch.0,
        known_batches: args.launches.batches.clone(),
        under: args.under.clone(),
        verify: if args.no_verify { Verify::Off } else { args.verify },
        launch: args.launches.launch,
        core_to_core_ns: args.role.core_to_core_ps.map(|ps| ps as f64 / 1e3),
        ..Plan::default()
    })
}

/// Rejects a window that no case of the plan has, although one of its benchmarks can. Options of a suite may override each other so.
pub(crate) fn check_window(choices: &[Choice], plan: &Plan) -> Result<()> {
    let only = choices.iter().find_map(|choice| match choice.bench.own.streams {
        Streams::Only(parameter, value) => Some((parameter, value)),
        Streams::Never | Streams::Always => None,
    });
    let is_useless =
        || plan.chosen.has(Depth::PARAMETER) && !choices.iter().any(|choice| streams(*choice, plan));
    match only.filter(|_| is_useless()) {
        Some((parameter, value)) => {
            let name = parameter.name;
            Err(Error::usage(format!("--window needs --{name} {value}: add it, or leave out --window")))
        }
        None => Ok(()),
    }
}

/// Returns the number of ranks to start: the user's, or what the most demanding benchmark needs.
pub(crate) fn ranks(args: &RunArgs, choices: &[Choice], plan: &Plan) -> u32 {
    let needed = choices.iter().map(|c| c.bench.ranks.layout.ranks_wanted(plan.pairs())).max().unwrap_or(1);
    let of_load = if args.under.is_empty() { 0 } else { Under::LEAST_RANKS };
    let rooted = plan.chosen.chosen::<Root>().map_or(1, |root| root.first().0.saturating_add(1));
    let groups: Groups = plan.chosen.get();
    let wanted = needed.max(groups.ranks_wanted(rooted));
    let equal = wanted.checked_next_multiple_of(groups.count()).unwrap_or(u32::MAX);
    args.start.ranks.unwrap_or(equal.saturating_add(of_load))
}
