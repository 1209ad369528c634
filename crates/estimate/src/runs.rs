//! Between runs: where the next run of the same case lies, and the level of the machine.
//!
//! The scatter of launches within a run cannot tell how much runs differ. Earlier runs of the same case, setup and state of the machine
//! can. Logarithms are used, so that a time and its rate have the same intervals.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use ombx_record::{
    codec::checksum,
    event::{Event, Round},
    file::RunWithRows,
    result::{BetweenRuns, Measurement, Placement, Run},
    runs::{hosts, is_next_launch, is_same_launch, library, number},
    unit::counted,
};

use crate::{
    launches::{Cases, have_same_setup},
    percentiles::{TAIL, upper_quantile},
    state,
};

/// Fewest runs that show how much runs differ.
pub const LEAST_RUNS: usize = 3;

/// Headlines of earlier runs.
#[derive(Debug, Default)]
pub struct EarlierRuns {
    runs: Vec<(Run, Vec<Measurement>)>,
    current: Cases,
    last: Option<Run>,
    /// A number for each launch that copies of it share.
    launches: BTreeSet<u64>,
}

impl EarlierRuns {
    /// Adds an event of a file. [`EarlierRuns::end`] ends the file.
    pub fn event(&mut self, event: &Event<'_>) {
        // Rows of links say nothing about the next run of a benchmark.
        if matches!(event, Event::Round(_)) {
            return;
        }
        if let Event::Run(run) = event {
            let last = self.last.replace((**run).clone());
            if last.is_some_and(|last| !is_same_launch(&last, run) && !is_next_launch(&last, run)) {
                self.end_run();
            }
        }
        self.current.event(event);
    }

    /// Ends a file.
    pub fn end(&mut self) {
        self.end_run();
        self.last = None;
    }

    fn end_run(&mut self) {
        for group in std::mem::take(&mut self.current).groups() {
            // A copy of a run says nothing about the variation between runs.
            let has_name = |(run, _): &(Run, Vec<Measurement>)| {
                run.id == group.run.id && have_same_setup(run, &group.run)
            };
            let launches = group.fingerprints();
            if !self.runs.iter().any(has_name) && !are_known(&launches, &self.launches) {
                self.launches.extend(launches);
                self.runs.push((group.run.clone(), group.estimates()));
            }
        }
    }

    /// Forgets runs by their names.
    pub fn forget(&mut self, names: &[String]) {
        self.runs.retain(|(run, _)| !names.contains(&run.id));
    }

    /// Adds the runs of a file.
    pub fn add(&mut self, runs: &[RunWithRows]) {
        for run in runs {
            self.event(&Event::Run(Cow::Borrowed(&run.run)));
            self.current.finish(run);
        }
        self.end();
    }

    /// Returns what earlier runs of the same case, hosts, setup and state say about the next one, for a row of this run.
    pub fn between(&self, run: &Run, row: &Measurement) -> BetweenRuns {
        let same = self.runs.iter().filter(|(other, _)| other.id != run.id && have_same_setup(other, run));
        let rows = same
            .flat_map(|(_, rows)| rows)
            .filter(|other| other.key == row.key && other.ranks == row.ranks)
            .filter(|other| are_in_one_state(row, other, run));
        let medians: Vec<f64> =
            rows.filter_map(|row| Some(row.summary.as_ref()?.median)).filter(|ns| *ns > 0.0).collect();
        let headline = row.summary.as_ref().map(|summary| summary.median);
        BetweenRuns {
            runs: medians.len(),
            next_ns: next_run(&medians),
            level_ns: headline.and_then(|headline| level(headline, &medians)),
            inside: left_out(&medians),
        }
    }
}

/// Returns whether two rows, one of them of this run, were measured in the same state of the machine.
fn are_in_one_state(one: &Measurement, other: &Measurement, run: &Run) -> bool {
    match (core_to_core_ns(one), core_to_core_ns(other)) {
        (Some(one), Some(other)) => state::is_same(one, other),
        // Without distances, only ranks on several hosts are known to be in one state.
        (None, None) => !state::is_local(run),
        _ => false,
    }
}

/// Returns the time of a cache line between two cores in the most frequent state of the machine, in nanoseconds; `None` if it is unknown.
pub fn core_to_core_ns(row: &Measurement) -> Option<f64> {
    row.over_launches()?.states.first()?.core_to_core_ns
}

/// Returns the interval that contains the headline of the next run with 95 % probability: mean of the logarithms +- t(0.975, k - 1)
/// sqrt(1 + 1/k) standard deviations. `None` for fewer than 3 runs.
pub fn next_run(headlines: &[f64]) -> Option<[f64; 2]> {
    let [mean, deviation] = moments(headlines)?;
    let factor = quantile(headlines.len()) * (1.0 + 1.0 / headlines.len() as f64).sqrt();
    Some([-1.0, 1.0].map(|sign: f64| (mean + sign * factor * deviation).exp()))
}

/// Returns the interval of the level of the machine around the headline of a run: +- t(0.975, k - 1) standard deviations between k other
/// runs. `None` for fewer than 3 of them.
pub fn level(headline: f64, others: &[f64]) -> Option<[f64; 2]> {
    let [_, deviation] = moments(others)?;
    let factor = quantile(others.len());
    (headline > 0.0).then(|| [-1.0, 1.0].map(|sign: f64| headline * (sign * factor * deviation).exp()))
}

/// Returns in how many runs the headline lies in the interval that the others give, and how many were tried.
fn left_out(headlines: &[f64]) -> [usize; 2] {
    let mut counts = [0, 0];
    for (at, headline) in headlines.iter().enumerate() {
        let others: Vec<f64> = [&headlines[..at], &headlines[at + 1..]].concat();
        if let Some([low, high]) = next_run(&others) {
            counts[0] += usize::from(low <= *headline && *headline <= high);
            counts[1] += 1;
        }
    }
    counts
}

fn quantile(runs: usize) -> f64 {
    upper_quantile(runs - 1, TAIL)
}

/// Returns mean and standard deviation of the logarithms of runs; `None` for fewer than 3.
fn moments(values: &[f64]) -> Option<[f64; 2]> {
    moments_of_logarithms(values).filter(|_| values.len() >= LEAST_RUNS)
}

/// Returns mean and standard deviation of the logarithms; `None` for fewer than 2 values, or one that is not above 0.
pub(crate) fn moments_of_logarithms(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < 2 || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
    Some([mean, (squares / (logs.len() - 1) as f64).sqrt()])
}

/// Returns version, build profile, library and placement of a run: the first line of every table.
pub fn banner(run: &Run) -> String {
    format!("ombx {} ({}) · {} · {}", run.version, run.profile, library(run), places(run))
}

/// Returns the number of launches and their time: `9 launches in 2.9 s`; `None` for a single launch.
pub fn launches(run: &Run) -> Option<String> {
    let count = number::<u32>(run, "launches").filter(|count| *count > 1)?;
    let text = match (number::<u32>(run, "runs"), run.launched.map(|launched| launched.elapsed_s)) {
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
    let ranks = counted(run.places.len(), "rank");
    let placement = match Placement::from_places(&run.places) {
        placement if placement.is_worth_reporting(&run.places) => format!(", {} placement", placement.name()),
        _ => String::new(),
    };
    if run.places.len() > 4 {
        return format!("{ranks} on {}{placement}", counted(hosts(run).len(), "host"));
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
    let mut seen: Vec<u64> = Vec::with_capacity(different);
    let new = times().take(10 * samples).filter(|time| {
        let is_new = !seen.contains(time);
        if is_new {
            seen.push(*time);
        }
        is_new
    });
    let few = new.take(different).count() < different;
    let bytes: Vec<u8> = times().flat_map(u64::to_le_bytes).collect();
    (!few && bytes.len() >= 8 * samples).then(|| checksum(&bytes))
}

/// Returns whether every one of some launches is known, by the sums of the fingerprints of their rows. Launches without fingerprints are
/// never known.
pub fn are_known(launches: &[u64], known: &BTreeSet<u64>) -> bool {
    !launches.is_empty() && launches.iter().all(|launch| *launch != 0 && known.contains(launch))
}

/// The rows of runs that were read, by their samples, and the links in rounds, by their times.
#[derive(Debug, Default)]
pub struct KnownRows {
    /// Names of runs by fingerprint.
    runs: HashMap<u64, String>,
    links: Links,
}

/// Links in rounds that do not have a fingerprint yet.
#[derive(Debug, Default)]
struct Links {
    run: String,
    count: usize,
    times: BTreeSet<u32>,
    bytes: Vec<u8>,
}

impl KnownRows {
    /// Adds a row of a run. Returns the name of another run that has the same samples.
    pub fn add(&mut self, run: &str, row: &Measurement) -> Option<&str> {
        self.another(fingerprint(row)?, run)
    }

    /// Adds the links of a round. Returns the name of another run that has the same times of the same links. Few links have a fingerprint
    /// with those of the next round.
    pub fn add_round(&mut self, run: &str, round: &Round) -> Option<&str> {
        if self.links.run != run {
            self.links = Links { run: run.to_owned(), ..Links::default() };
        }
        let Links { count, times, bytes, .. } = &mut self.links;
        *count += round.len();
        let [samples, different] = FEWEST;
        for (from, to, ns) in round.links() {
            if times.len() < different {
                times.insert(ns.to_bits());
            }
            bytes.extend([from.to_le_bytes(), to.to_le_bytes(), ns.to_le_bytes()].as_flattened());
        }
        let are_few = *count < samples || times.len() < different;
        if are_few && *count < 10 * samples {
            return None;
        }
        let links = std::mem::take(&mut self.links);
        if are_few {
            return None;
        }
        self.another(checksum(&links.bytes), run)
    }

    fn another(&mut self, fingerprint: u64, run: &str) -> Option<&str> {
        let first = self.runs.entry(fingerprint).or_insert_with(|| run.to_owned());
        (first != run).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Launched, Metric};

    use crate::runs::*;

    #[test]
    fn rounds_are_known_by_the_times_of_their_links() {
        let round = |number: u32, step: u32| {
            let row = Measurement::new("links", "links", Metric::Latency, 2);
            let median_ns = (0..6).map(|link| (900 + step * (6 * number + link)) as f32).collect();
            Round {
                row,
                number: Some(number),
                from: (0..6).collect(),
                to: (6..12).collect(),
                median_ns,
                marks: Vec::new(),
            }
        };
        let found = |runs: &[(&str, u32)]| {
            let mut known = KnownRows::default();
            let mut add = |run: &str, step| {
                (0..9).find_map(|number| known.add_round(run, &round(number, step)).map(str::to_owned))
            };
            runs.iter().filter_map(|(run, step)| add(run, *step)).collect::<Vec<_>>()
        };
        assert_eq!(found(&[("a", 7), ("b", 8), ("a", 7)]), [""; 0]);
        assert_eq!(found(&[("a", 7), ("b", 7)]), ["a"]);
        // Equal times are those of a clock that reads coarsely.
        assert_eq!(found(&[("a", 0), ("b", 0)]), [""; 0]);
    }

    #[test]
    fn the_factors_are_those_of_a_prediction_interval() {
        // Two runs at +-x around 1 and others at 1 have a known deviation.
        for (k, factor) in
            [(3, 4.97), (4, 3.56), (5, 3.04), (6, 2.78), (8, 2.51), (10, 2.37), (12, 2.29), (20, 2.14)]
        {
            let values: Vec<f64> =
                (0..k).map(|at| (if at % 2 == 0 { 0.01_f64 } else { -0.01 }).exp()).collect();
            let [mean, deviation] = moments(&values).unwrap();
            let [low, high] = next_run(&values).unwrap();
            let found = (high.ln() - mean) / deviation;
            assert!(
                (found - factor).abs() < 0.006 && (mean - low.ln() - (high.ln() - mean)).abs() < 1e-12,
                "{k}: {found}"
            );
            let [low, high] = level(5.0, &values).unwrap();
            assert!((low * high).sqrt() - 5.0 < 1e-9 && high.ln() - 5.0_f64.ln() < factor * deviation);
        }
        assert_eq!((next_run(&[1.0, 2.0]), level(1.0, &[1.0, 2.0])), (None, None));
        assert_eq!(left_out(&[1.0, 1.01, 0.99, 1.02, 3.0]), [4, 5]);
    }

    #[test]
    fn runs_of_the_same_state_count() {
        let row = ombx_testkit::golden().rows.remove(0);
        let run = |number: usize, ns: f64, distance: &str| {
            let mut run = ombx_testkit::golden().run;
            run.places[1] = run.places[0].clone();
            run.id = format!("{number}/{distance}");
            let launch = |launch: usize| {
                let mut run = run.clone();
                for (option, value) in [
                    ("launch", (launch + 1).to_string()),
                    ("order", (100 * number + launch + 1).to_string()),
                    (state::BEFORE, distance.to_owned()),
                ] {
                    run.plan.insert(option.to_owned(), value);
                }
                run.launched =
                    Some(Launched { core_to_core_ns: distance.parse().ok(), ..Launched::default() });
                let mut row = row.clone();
                row.summary.as_mut().unwrap().median = ns + launch as f64;
                RunWithRows { rows: vec![row], ..RunWithRows::new(run) }
            };
            (0..3).map(launch).collect::<Vec<_>>()
        };
        let mut earlier = EarlierRuns::default();
        let times = [300.0, 303.0, 297.0, 301.0];
        let file: Vec<RunWithRows> = (0..).zip(times).flat_map(|(at, ns)| run(at, ns, "51")).collect();
        earlier.add(&file);
        earlier.add(&run(9, 900.0, "250"));
        let between = |distance: &str| {
            let launches = run(20, 302.0, distance);
            let mut cases = Cases::default();
            launches.iter().for_each(|launch| cases.launch(launch));
            let group = &cases.groups()[0];
            earlier.between(&group.run, &group.estimates()[0])
        };
        let fast = between("55");
        assert_eq!((fast.runs, fast.inside), (4, [4, 4]));
        let [low, high] = fast.next_ns.unwrap();
        assert!(low < 298.0 && 304.0 < high && high < 320.0, "{low} {high}");
        let slow = between("249");
        assert_eq!((slow.runs, slow.next_ns, slow.inside), (1, None, [0, 0]));
    }
}

#[cfg(test)]
mod run_info_tests {
    use crate::runs::*;

    #[test]
    fn a_row_with_the_samples_of_another_run_is_a_copy() {
        let mut row = ombx_testkit::golden().rows.remove(0);
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
