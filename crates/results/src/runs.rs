//! Between runs: where the next run of the same case lies, and the level of the machine.
//!
//! The scatter of launches within a run cannot tell how much runs differ. Earlier runs of the same case, setup and state of the machine
//! can. Logarithms are used, so that a time and its rate have the same intervals.

use std::collections::BTreeSet;

use ombx_core::result::{BetweenRuns, Measurement, Run};

use crate::{
    estimate::{Cases, have_same_setup},
    file::{Record, RunWithRows},
    percentiles::upper_quantile,
    run_info::are_known,
    run_info::{is_next_launch, is_same_launch},
    state,
};

/// Fewest runs that show how much runs differ.
pub const LEAST_RUNS: usize = 3;
/// Probability beyond each end of an interval.
const TAIL: f64 = 0.025;

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
    /// Adds a record of a file. [`EarlierRuns::end`] ends the file.
    pub fn record(&mut self, record: &Record) {
        if let Record::Run(run) = record {
            let last = self.last.replace((**run).clone());
            if last.is_some_and(|last| !is_same_launch(&last, run) && !is_next_launch(&last, run)) {
                self.end_run();
            }
        }
        self.current.record(record);
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
            self.record(&Record::Run(Box::new(run.run.clone())));
            self.current.finish(run);
        }
        self.end();
    }

    /// Returns what earlier runs of the same case, hosts, setup and state say about the next one, for a row of this run.
    pub fn between(&self, run: &Run, row: &Measurement) -> BetweenRuns {
        let state_of = |row: &Measurement| row.over_launches()?.states.first()?.core_to_core_ns;
        let is_same_state = |other: &Measurement| match (state_of(row), state_of(other)) {
            (Some(one), Some(other)) => state::is_same(one, other),
            // Without distances, only ranks on several hosts are known to be in one state.
            (None, None) => !state::is_local(run),
            _ => false,
        };
        let same = self.runs.iter().filter(|(other, _)| other.id != run.id && have_same_setup(other, run));
        let rows = same
            .flat_map(|(_, rows)| rows)
            .filter(|other| other.key == row.key && other.ranks == row.ranks && is_same_state(other));
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

/// Returns mean and standard deviation of the logarithms.
fn moments(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < LEAST_RUNS || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
    Some([mean, (squares / (logs.len() - 1) as f64).sqrt()])
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let row = crate::golden().rows.remove(0);
        let run = |number: usize, ns: f64, distance: &str| {
            let mut run = crate::golden().run;
            run.places[1] = run.places[0].clone();
            run.id = format!("{number}/{distance}");
            let launch = |launch: usize| {
                let mut run = run.clone();
                for (option, value) in [
                    ("launch", (launch + 1).to_string()),
                    ("order", (100 * number + launch + 1).to_string()),
                    (state::BEFORE, distance.to_owned()),
                    (state::AFTER, distance.to_owned()),
                ] {
                    run.plan.insert(option.to_owned(), value);
                }
                let mut row = row.clone();
                row.summary.as_mut().unwrap().median = ns + launch as f64;
                RunWithRows { run, rows: vec![row], end: None, verdict: None }
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
