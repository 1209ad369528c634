//! From patterns and options to benchmarks and a plan; every mistake is found here, before anything starts.

use ombx_core::{
    benchmark::{axis::Axis, entry::Choice, registry::Registry, root::Root, threads::Threading},
    error::{Error, Result},
    measure::{
        plan::Plan,
        session::{selected, sizes_of},
    },
};

use crate::{
    args::RunArgs,
    axes::{self, Chosen},
    lookup,
};

/// The axis that says what a benchmark's workers are, and its value for threads.
const WORKERS: &str = "workers";
const THREADS: &str = "threads";

/// The benchmarks that the patterns name, in the order of the patterns, each once.
pub(crate) fn benchmarks(registry: &Registry, patterns: &[String]) -> Result<Vec<Choice>> {
    if patterns.is_empty() {
        let names: Vec<&str> = registry.all().iter().map(|b| b.name).collect();
        return Err(Error::usage(format!(
            "say what to run: a name, a glob such as 'rma.*', an OSU name or a suite such as suite:smoke; there are {} (ombx list tells more)",
            names.join(", ")
        )));
    }
    let mut found: Vec<Choice> = Vec::new();
    for pattern in patterns {
        for choice in lookup::find(registry, pattern)? {
            if found.iter().all(|c| (c.bench.name, c.preset) != (choice.bench.name, choice.preset)) {
                found.push(choice);
            }
        }
    }
    Ok(found)
}

/// The plan that the options describe, checked against the benchmarks.
pub(crate) fn plan(args: &RunArgs, chosen: Chosen, choices: &[Choice]) -> Result<Plan> {
    axes::fit(&chosen, choices)?;
    let Chosen { mut axes, settings } = chosen;
    if args.pairs.is_some() && !choices.iter().any(|c| c.bench.layout.has_pairs()) {
        let names: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
        return Err(Error::usage(format!("--pairs means nothing to {}", names.join(", "))));
    }
    let several = threading(choices) == Threading::Multiple;
    let workers = choices.iter().flat_map(|c| c.bench.axes).find(|axis| axis.name == WORKERS);
    match args.threads {
        // Alone, it is the short form of a choice that some benchmarks have.
        Some(None) if workers.is_some() => drop(axes.insert(WORKERS.into(), vec![THREADS])),
        Some(_) if !several => {
            let names: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
            let hint = if workers.is_some() { " with numbers; alone it makes workers threads" } else { "" };
            return Err(Error::usage(format!("--threads means nothing to {}{hint}", names.join(", "))));
        }
        _ => {}
    }
    if args.root.is_some() && !choices.iter().any(|c| c.bench.rooted) {
        let names: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
        return Err(Error::usage(format!("--root means nothing to {}", names.join(", "))));
    }
    let plan = Plan {
        sizes: args.sizes.clone().map(|s| s.0),
        depth: args.window,
        pairs: args.pairs,
        effort: args.effort.effort(),
        batch: args.effort.batch.0,
        root: args.root.unwrap_or_default(),
        memory_limit: args.memory_limit.map(|limit| limit.0),
        threads: args.threads.flatten(),
        verify: !args.no_verify,
        axes,
        settings,
        ..Plan::default()
    };
    if let (Some(ranks), Some(Root::Fixed(root))) = (args.start.ranks, args.root)
        && root.0 >= ranks
    {
        return Err(Error::usage(format!(
            "--root {root} is none of the ranks that -n {ranks} gives, 0 to {}",
            ranks - 1
        )));
    }
    if let (Some(ranks), Some(pairs)) = (args.start.ranks, args.pairs)
        && u64::from(pairs) * 2 > u64::from(ranks)
    {
        return Err(Error::usage(format!(
            "--pairs {pairs} needs {} ranks, -n gives {ranks}",
            u64::from(pairs) * 2
        )));
    }
    Ok(plan)
}

/// Ranks to start: what the user says, or what the most demanding benchmark needs.
pub(crate) fn ranks(args: &RunArgs, choices: &[Choice]) -> u32 {
    let needed = choices.iter().map(|c| c.bench.layout.ranks_wanted(args.pairs)).max().unwrap_or(1);
    let rooted = match args.root {
        Some(Root::Fixed(root)) => root.0.saturating_add(1),
        _ => 1,
    };
    args.start.ranks.unwrap_or(needed.max(rooted))
}

/// How many rows that makes.
pub(crate) fn rows(plan: &Plan, choices: &[Choice]) -> Result<u64> {
    let mut rows = 0u64;
    for choice in choices {
        let values = |axis: &&Axis| selected(axis, *choice, plan).len();
        let of_axes: usize = choice.bench.axes.iter().map(values).product();
        rows =
            rows.saturating_add((sizes_of(choice.bench, plan)?.len() as u64).saturating_mul(of_axes as u64));
    }
    Ok(rows)
}

/// What the benchmarks together ask of the library for threads.
pub(crate) fn threading<'c>(choices: impl IntoIterator<Item = &'c Choice>) -> Threading {
    match choices.into_iter().any(|c| c.bench.threading == Threading::Multiple) {
        true => Threading::Multiple,
        false => Threading::Single,
    }
}
