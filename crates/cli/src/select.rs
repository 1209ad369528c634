//! From patterns and options to benchmarks and a plan; every mistake is found here, before anything starts.

use ombx_core::{
    case::Axis,
    engine::{selected, sizes_of},
    error::{Error, Result},
    plan::Plan,
    registry::{Choice, Registry},
    threads::Threading,
};

use crate::{
    args::RunArgs,
    axes::{self, Chosen},
};

/// The benchmarks that the patterns name, in the order of the patterns, each once.
pub(crate) fn benchmarks(registry: &Registry, patterns: &[String]) -> Result<Vec<Choice>> {
    if patterns.is_empty() {
        let names: Vec<&str> = registry.all().iter().map(|b| b.name).collect();
        return Err(Error::usage(format!(
            "say what to run: a name, a glob such as 'rma.*' or an OSU name; there are {} (ombx list tells more)",
            names.join(", ")
        )));
    }
    let mut found: Vec<Choice> = Vec::new();
    for pattern in patterns {
        for choice in registry.find(pattern)? {
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
    if args.pairs.is_some() && !choices.iter().any(|c| c.bench.layout.has_pairs()) {
        let names: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
        return Err(Error::usage(format!("--pairs means nothing to {}", names.join(", "))));
    }
    if args.threads.is_some() && threading(choices) == Threading::Single {
        let names: Vec<&str> = choices.iter().map(|c| c.bench.name).collect();
        return Err(Error::usage(format!("--threads means nothing to {}", names.join(", "))));
    }
    let plan = Plan {
        sizes: args.sizes.clone().map(|s| s.0),
        depth: args.window,
        pairs: args.pairs,
        effort: args.effort.effort(),
        batch: args.effort.batch.0,
        threads: args.threads,
        verify: !args.no_verify,
        axes: chosen,
    };
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
    args.start.ranks.unwrap_or(needed)
}

/// How many rows that makes.
pub(crate) fn rows(plan: &Plan, choices: &[Choice]) -> Result<u64> {
    let mut rows = 0u64;
    for choice in choices {
        let values = |axis: &&Axis| selected(axis, *choice, plan).len();
        rows += (sizes_of(choice.bench, plan)?.len()
            * choice.bench.axes.iter().map(values).product::<usize>()) as u64;
    }
    Ok(rows)
}

/// What the benchmarks together ask of the library for threads.
pub(crate) fn threading(choices: &[Choice]) -> Threading {
    match choices.iter().any(|c| c.bench.threading == Threading::Multiple) {
        true => Threading::Multiple,
        false => Threading::Single,
    }
}
