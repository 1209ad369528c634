//! One-line descriptions of a run: its library, its hosts, and where its ranks are.

use std::collections::BTreeSet;

use ombx_core::{measure::runner::CONTINUES, result::Run, system::placement::Placement};

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
pub(crate) fn is_same_launch(one: &Run, other: &Run) -> bool {
    if continues(one, other) {
        return true;
    }
    let number = |run: &Run| Some((run.plan.get("launch")?.clone(), run.plan.get("order")?.clone()));
    let differ = one.fabric != other.fabric || one.plan.get("benchmarks") != other.plan.get("benchmarks");
    differ && number(one).is_some() && number(one) == number(other)
}

/// Returns whether two runs are of ranks that went on with the same plan, one after the other.
pub(crate) fn continues(one: &Run, other: &Run) -> bool {
    let first = |run: &Run| run.plan.get(CONTINUES).unwrap_or(&run.id).clone();
    one.id != other.id && first(one) == first(other)
}

/// Returns whether a run is of the next launch of the same command.
pub(crate) fn is_next_launch(one: &Run, other: &Run) -> bool {
    let number = |run: &Run| {
        Some((run.plan.get("launch")?.parse::<u64>().ok()?, run.plan.get("order")?.parse::<u64>().ok()?))
    };
    let next = number(one).map(|(launch, order)| (launch.wrapping_add(1), order.wrapping_add(1)));
    next.is_some() && next == number(other)
}

/// Returns version, build profile, library and placement of a run: the first line of every table.
pub(crate) fn banner(run: &Run) -> String {
    format!("ombx {} ({}) · {} · {}", run.version, run.profile, library(run), places(run))
}

/// Returns the number of launches and their time: `9 launches in 2.9 s`; `None` for a single launch.
pub(crate) fn launches(run: &Run) -> Option<String> {
    let number = |option: &str| run.plan.get(option)?.parse::<u32>().ok();
    let count = number("launches").filter(|count| *count > 1)?;
    let text = match (number("runs"), run.plan.get("elapsed_s").and_then(|s| s.parse::<f64>().ok())) {
        (Some(runs), _) => format!("{count} launches of {runs} runs"),
        (None, Some(s)) if s >= 120.0 => format!("{count} launches in {:.0} min", s / 60.0),
        (None, Some(s)) if s >= 10.0 => format!("{count} launches in {s:.0} s"),
        (None, Some(s)) => format!("{count} launches in {s:.1} s"),
        (None, None) => format!("{count} launches"),
    };
    Some(text)
}

/// Lists host and CPUs of each rank. More than four ranks are shortened to the number of hosts.
fn places(run: &Run) -> String {
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let ranks = count(run.places.len(), "rank");
    let placement = match Placement::of(&run.places) {
        placement if placement.is_worth_reporting(&run.places) => format!(", {} placement", placement.name()),
        _ => String::new(),
    };
    if run.places.len() > 4 {
        return format!("{ranks} on {}{placement}", count(hosts(run).len(), "host"));
    }
    let each: Vec<String> = run
        .places
        .iter()
        .map(|p| if p.cpus.is_empty() { p.host.clone() } else { format!("{}:{}", p.host, p.cpus) })
        .collect();
    format!("{ranks} on {}{placement}", each.join(" "))
}
