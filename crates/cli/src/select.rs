//! From patterns and options to benchmarks and a plan; every mistake is found here, before anything starts.

use ombx_core::{
    engine::sizes_of,
    error::{Error, Result},
    plan::{Effort, Plan},
    registry::{Benchmark, Registry},
};

use crate::{
    args::RunArgs,
    axes::{self, Chosen},
};

/// The benchmarks that the patterns name, in the order of the patterns, each once.
pub(crate) fn benchmarks(registry: &Registry, patterns: &[String]) -> Result<Vec<&'static Benchmark>> {
    if patterns.is_empty() {
        let names: Vec<&str> = registry.all().iter().map(|b| b.name).collect();
        return Err(Error::usage(format!(
            "say what to run: a name, a glob such as 'rma.*' or an OSU name; there are {} (ombx list tells more)",
            names.join(", ")
        )));
    }
    let mut found: Vec<&'static Benchmark> = Vec::new();
    for pattern in patterns {
        for bench in registry.find(pattern)? {
            if found.iter().all(|b| b.name != bench.name) {
                found.push(bench);
            }
        }
    }
    Ok(found)
}

/// The plan that the options describe, checked against the benchmarks.
pub(crate) fn plan(args: &RunArgs, chosen: Chosen, benches: &[&'static Benchmark]) -> Result<Plan> {
    axes::fit(&chosen, benches)?;
    let effort = match args.iterations {
        Some(iterations) => Effort::Fixed { iterations, warmup: args.warmup.unwrap_or(iterations.div_ceil(10)) },
        None => Effort::Precision { precision: args.precision, max_time: args.max_time },
    };
    let plan = Plan {
        sizes: args.sizes.clone().map(|s| s.0),
        depth: args.window,
        pairs: args.pairs,
        effort,
        batch: args.batch.0,
        verify: !args.no_verify,
        axes: chosen,
    };
    if let (Some(ranks), Some(pairs)) = (args.ranks, args.pairs)
        && u64::from(pairs) * 2 > u64::from(ranks)
    {
        return Err(Error::usage(format!("--pairs {pairs} needs {} ranks, -n gives {ranks}", u64::from(pairs) * 2)));
    }
    Ok(plan)
}

/// Ranks to start: what the user says, or what the most demanding benchmark needs.
pub(crate) fn ranks(args: &RunArgs, benches: &[&'static Benchmark]) -> u32 {
    let needed = benches.iter().map(|b| b.layout.ranks_wanted(args.pairs)).max().unwrap_or(1);
    args.ranks.unwrap_or(needed)
}

/// How many rows that makes.
pub(crate) fn rows(plan: &Plan, benches: &[&'static Benchmark]) -> Result<u64> {
    let mut rows = 0u64;
    for bench in benches {
        let values = |axis: &&ombx_core::case::Axis| plan.axes.get(axis.name).map_or(1, Vec::len);
        rows += (sizes_of(bench, plan)?.len() * bench.axes.iter().map(values).product::<usize>()) as u64;
    }
    Ok(rows)
}
