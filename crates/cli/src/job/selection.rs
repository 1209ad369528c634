//! The benchmarks that patterns select, and what they need.

use crate::job::lookup;
use ombx_core::{
    benchmark::{Axis, Choice, Registry, Threading},
    error::{Error, Result},
    measure::{
        plan::Plan,
        session::{selected, sizes_of},
    },
};

/// Returns the benchmarks that the patterns name, in the order of the patterns, each once.
pub(crate) fn benchmarks(registry: &Registry, patterns: &[String]) -> Result<Vec<Choice>> {
    if patterns.is_empty() {
        let names: Vec<&str> = registry.all().iter().map(|b| b.name).collect();
        return Err(Error::usage(format!(
            "give a benchmark: a name, a glob such as 'rma.*', an OSU name, or a suite such as suite:smoke; see ombx list; \
             the names are {}",
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

/// Returns the number of rows that a plan gives.
pub(crate) fn rows(plan: &Plan, choices: &[Choice]) -> Result<u64> {
    let mut rows = 0u64;
    for choice in choices {
        let values = |axis: &&Axis| selected(axis, *choice, plan).len();
        let of_axes: usize = choice.bench.axes.iter().map(values).product();
        let sizes = sizes_of(choice.bench, plan)?.len();
        rows = rows.saturating_add((sizes as u64).saturating_mul(of_axes as u64));
    }
    Ok(rows)
}

/// Returns the highest level of thread support that one of the benchmarks needs.
pub(crate) fn threading(choices: &[Choice]) -> Threading {
    match choices.iter().any(|choice| choice.bench.threading == Threading::Multiple) {
        true => Threading::Multiple,
        false => Threading::Single,
    }
}
