//! What runs say of themselves: their library, their hosts, and which other runs belong to them.

use std::{collections::BTreeSet, str::FromStr};

use crate::result::Run;

/// Option of a run that measures the rest of another one, whose ranks have ended early: the name of the first run of the launch.
pub const CONTINUES: &str = "continues";

/// Returns name and version of the library without its build details.
pub fn library(run: &Run) -> String {
    let first = run.library.lines().next().unwrap_or_default();
    let short = first.split(',').next().unwrap_or_default();
    short.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the names of the hosts, sorted, each once.
pub fn hosts(run: &Run) -> Vec<&str> {
    run.places.iter().map(|place| place.host.as_str()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns whether a run is that of ranks of another kind in the same launch, or of ranks that went on after others had ended early.
pub fn is_same_launch(one: &Run, other: &Run) -> bool {
    if continues(one, other) {
        return true;
    }
    let number = |run: &Run| Some((run.plan.get("launch")?.clone(), run.plan.get("order")?.clone()));
    let differ = one.fabric != other.fabric || one.plan.get("benchmarks") != other.plan.get("benchmarks");
    differ && number(one).is_some() && number(one) == number(other)
}

/// Returns whether two runs are of ranks that went on with the same plan, one after the other.
pub fn continues(one: &Run, other: &Run) -> bool {
    let first = |run: &Run| run.plan.get(CONTINUES).unwrap_or(&run.id).clone();
    one.id != other.id && first(one) == first(other)
}

/// Returns whether a run is of the next launch of the same command.
pub fn is_next_launch(one: &Run, other: &Run) -> bool {
    let place = |run: &Run| Some((number::<u64>(run, "launch")?, number::<u64>(run, "order")?));
    let next = place(one).map(|(launch, order)| (launch.wrapping_add(1), order.wrapping_add(1)));
    next.is_some() && next == place(other)
}

/// Returns the number that the plan of a run has for an option.
pub fn number<N: FromStr>(run: &Run, option: &str) -> Option<N> {
    run.plan.get(option)?.parse().ok()
}
