//! One-line descriptions of a run: its library, its hosts, and where its ranks are.

use std::collections::BTreeSet;

use ombx_core::{result::Run, system::placement::Placement};

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

/// Returns version, build profile, library and placement of a run: the first line of every table.
pub(crate) fn banner(run: &Run) -> String {
    format!("ombx {} ({}) · {} · {}", run.version, run.profile, library(run), places(run))
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
