//! One-line descriptions of a run: its library, its hosts, and where its ranks are.

use std::collections::{BTreeSet, HashMap};

use ombx_core::{
    checksum::checksum,
    measure::runner::CONTINUES,
    result::{Measurement, Run},
    system::placement::Placement,
};

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

/// Fewest samples, and fewest different times among them, that tell two launches apart.
const FEWEST: [usize; 2] = [20, 8];

/// Returns a number that is the same for rows with equal samples; `None` if the samples are too few or too equal to tell launches
/// apart.
pub fn fingerprint(row: &Measurement) -> Option<u64> {
    let times = || row.samples.iter().chain(&row.tail).flat_map(|samples| samples.elapsed_ns.iter().copied());
    let [samples, different] = FEWEST;
    let few = times().take(10 * samples).collect::<BTreeSet<u64>>().len() < different;
    let bytes: Vec<u8> = times().flat_map(u64::to_le_bytes).collect();
    (!few && bytes.len() >= 8 * samples).then(|| checksum(&bytes))
}

/// Returns whether every one of some launches is known, by the sums of the fingerprints of their rows. Launches without fingerprints are
/// never known.
pub(crate) fn are_known(launches: &[u64], known: &BTreeSet<u64>) -> bool {
    !launches.is_empty() && launches.iter().all(|launch| *launch != 0 && known.contains(launch))
}

/// The rows of runs that were read, by their samples.
#[derive(Debug, Default)]
pub struct KnownRows(HashMap<u64, String>);

impl KnownRows {
    /// Adds a row of a run. Returns the name of another run that has the same samples.
    pub fn add(&mut self, run: &str, row: &Measurement) -> Option<&str> {
        let first = self.0.entry(fingerprint(row)?).or_insert_with(|| run.to_owned());
        (first != run).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_the_samples_of_another_run_is_a_copy() {
        let mut row = crate::golden().rows.remove(0);
        row.samples[0].elapsed_ns = (0..40).map(|sample| 700 + sample * 7 % 13).collect();
        let mut known = KnownRows::default();
        assert_eq!(known.add("a", &row), None);
        assert_eq!(known.add("a", &row), None, "a run may have a row twice");
        assert_eq!(known.add("b", &Measurement { key: "renamed".into(), ..row.clone() }), Some("a"));
        let mut other = row.clone();
        other.samples[0].elapsed_ns[0] += 1;
        assert_eq!(known.add("b", &other), None);
        other.samples[0].elapsed_ns = vec![7; 1000];
        assert_eq!(fingerprint(&other), None, "a coarse clock shows equal times");
        other.samples[0].elapsed_ns = (0..10).collect();
        assert_eq!(fingerprint(&other), None, "few samples may be equal by chance");
    }
}
