//! Raw samples of each case, launch by launch, for charts of distributions and of time series.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use ombx_record::{
    event::Event,
    file::RunWithRows,
    result::{Launched, Measurement, Outcome, Run, Samples},
    stats::median,
};

use crate::{
    knee::RATE,
    launches::{SetupLaunches, by_state, estimate, have_same_setup, without_samples},
    state::{Launches, States},
};

/// Samples of one launch of a case. Values are in the unit of the headline: microseconds or MB/s.
#[derive(Debug, Clone)]
pub struct LaunchSamples {
    /// The row without its raw samples.
    pub row: Measurement,
    /// Value of each sample that the median comes from, in the order of measurement.
    pub batches: Vec<f64>,
    /// Value of each sample of a single iteration, in the order of measurement; empty if `batches` are of single iterations or if
    /// there are none.
    pub single: Vec<f64>,
    /// Number of the launch in its setup, from 0.
    pub number: usize,
}

/// Samples of one case in the launches of one setup and one state of the machine.
#[derive(Debug, Clone)]
pub struct CaseSamples {
    /// Number of the setup, from 0.
    pub setup: usize,
    /// What tells these launches from those of the headline; `None` for those of the headline, the most frequent state.
    pub other: Option<OtherState>,
    /// At least one launch, in the order of measurement.
    pub launches: Vec<LaunchSamples>,
}

/// State of the machine that is not the most frequent one of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OtherState {
    /// A cache line takes another time between two cores.
    CoresApart {
        /// The time in nanoseconds.
        ns: f64,
        /// Whether launches of this distance form two groups, of which these are the slower ones.
        are_slower: bool,
    },
    /// Launches of the same distance, or of unknown ones, that were faster.
    Faster,
    /// Launches of the same distance, or of unknown ones, that were slower.
    Slower,
}

impl fmt::Display for OtherState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtherState::CoresApart { ns, are_slower: false } => write!(f, "cores {ns:.0} ns apart"),
            OtherState::CoresApart { ns, are_slower: true } => {
                write!(f, "cores {ns:.0} ns apart, slower launches")
            }
            OtherState::Faster => f.write_str("faster launches"),
            OtherState::Slower => f.write_str("slower launches"),
        }
    }
}

/// Samples of all cases.
#[derive(Debug, Default)]
pub struct SampleStore {
    /// First run of each setup.
    setups: Vec<Run>,
    /// Launches of each setup.
    launches: Vec<SetupLaunches>,
    benchmarks: BTreeMap<SampledBenchmark, OfBenchmark>,
    /// Benchmarks whose cases are not kept.
    left_out: BTreeSet<SampledBenchmark>,
    /// Setup of the current run.
    current: usize,
    /// Maximum number of values that are kept of each launch, and what it was at first.
    most: Option<usize>,
    most_at_first: Option<usize>,
    /// Maximum number of benchmarks whose cases are kept.
    most_benchmarks: Option<usize>,
    /// Benchmarks that are kept before others, in any setup.
    preferred: BTreeSet<SampledBenchmark>,
    /// Number of values that are kept of all launches.
    kept: usize,
}

/// Name of a benchmark in one setup. Its cases differ in message size or offered rate only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledBenchmark {
    setup: usize,
    bench: String,
    axes: BTreeMap<String, String>,
    depth: Option<u32>,
    pairs: u32,
}

impl SampledBenchmark {
    fn new(setup: usize, row: &Measurement) -> SampledBenchmark {
        let mut axes = row.axes.clone();
        axes.remove(RATE);
        SampledBenchmark { setup, bench: row.bench.clone(), axes, depth: row.depth, pairs: row.pairs }
    }

    /// Returns the name without the setup, whose number is another in each store.
    fn in_any_setup(&self) -> SampledBenchmark {
        SampledBenchmark { setup: 0, ..self.clone() }
    }
}

/// Cases of one benchmark, and their places by key.
#[derive(Debug, Default)]
struct OfBenchmark {
    cases: Vec<CaseSamples>,
    places: HashMap<String, usize>,
}

/// Number of values of all launches from which on a bounded store keeps half as many of each launch, and the fewest that it keeps.
const MOST_KEPT: usize = 1 << 23;
const FEWEST_KEPT: usize = 64;

impl SampleStore {
    /// Returns a store that keeps at most this number of evenly spaced samples of each launch, and fewer of very many launches.
    pub fn at_most(values: usize) -> SampleStore {
        let most = Some(values.max(1));
        SampleStore { most, most_at_first: most, ..SampleStore::default() }
    }

    /// Keeps the cases of at most this number of benchmarks: of the first ones in the order of setup, name, axes, depth and pairs.
    #[must_use]
    pub fn of_first_benchmarks(self, benchmarks: usize) -> SampleStore {
        SampleStore { most_benchmarks: Some(benchmarks), ..self }
    }

    /// Returns a store with the same limits for the other side of a comparison. It prefers the benchmarks that this one has kept.
    pub fn beside(&self) -> SampleStore {
        SampleStore {
            most: self.most_at_first,
            most_at_first: self.most_at_first,
            most_benchmarks: self.most_benchmarks,
            preferred: self.benchmarks.keys().map(SampledBenchmark::in_any_setup).collect(),
            ..SampleStore::default()
        }
    }

    /// Returns all benchmarks with samples, also those whose cases are not kept.
    pub fn benchmarks(&self) -> impl Iterator<Item = &SampledBenchmark> {
        self.benchmarks.keys().chain(&self.left_out)
    }

    /// Adds a launch with all its rows. Rows that were not measured are left out.
    pub fn launch(&mut self, launch: &RunWithRows) {
        self.begin(&launch.run);
        launch.rows.iter().for_each(|row| self.row(row));
    }

    /// Adds an event of a file, with the same result.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => self.begin(run),
            Event::Row(row) => self.row(row),
            Event::Launched(launched) => self.launched(*launched),
            _ => {}
        }
    }

    fn begin(&mut self, run: &Run) {
        let known = self.setups.iter().position(|known| have_same_setup(known, run));
        self.current = known.unwrap_or_else(|| {
            self.setups.push(run.clone());
            self.launches.push(SetupLaunches::new(run));
            self.setups.len() - 1
        });
        self.launches[self.current].begin(run);
    }

    /// Notes the state of the machine at the end of a launch in all setups that have a run of it.
    fn launched(&mut self, launched: Launched) {
        let Some(last) = self.launches.get(self.current).map(|setup| setup.last.clone()) else { return };
        self.launches.iter_mut().for_each(|setup| setup.end_launch(&last, launched));
    }

    fn row(&mut self, row: &Measurement) {
        let setup = self.current;
        let Some(launches) = self.launches.get(setup) else { return };
        if row.outcome != Outcome::Ok || row.summary.is_none() {
            return;
        }
        let benchmark = SampledBenchmark::new(setup, row);
        if self.left_out.contains(&benchmark) {
            return;
        }
        let samples = LaunchSamples {
            row: without_samples(row, &launches.last.clock),
            batches: thinned(values(row, &row.samples), self.most),
            single: thinned(values(row, &row.tail), self.most),
            number: launches.started.len() - 1,
        };
        self.kept += samples.len();
        let OfBenchmark { cases, places } = self.benchmarks.entry(benchmark).or_default();
        let at = *places.entry(row.key.clone()).or_insert_with(|| {
            cases.push(CaseSamples { setup, other: None, launches: Vec::new() });
            cases.len() - 1
        });
        cases[at].launches.push(samples);
        self.leave_out();
        self.keep_fewer(MOST_KEPT);
    }

    /// Removes the last benchmarks until there are no more than the store keeps. One that was removed does not come back: as many others
    /// precede it.
    fn leave_out(&mut self) {
        while self.most_benchmarks.is_some_and(|most| self.benchmarks.len() > most) {
            let last = self.benchmarks.keys().rfind(|one| !self.preferred.contains(&one.in_any_setup()));
            let Some(last) = last.or(self.benchmarks.keys().next_back()).cloned() else { return };
            let removed = self.benchmarks.remove(&last).unwrap_or_default();
            let launches = removed.cases.iter().flat_map(|case| &case.launches);
            self.kept -= launches.map(LaunchSamples::len).sum::<usize>();
            self.left_out.insert(last);
        }
    }

    /// Halves the number of values of each launch until there are at most these, if the store is bounded.
    fn keep_fewer(&mut self, most_kept: usize) {
        while let Some(most) = self.most.filter(|most| self.kept > most_kept && *most >= 2 * FEWEST_KEPT) {
            self.most = Some(most / 2);
            self.kept = 0;
            let cases = self.benchmarks.values_mut().flat_map(|of| &mut of.cases);
            for launch in cases.flat_map(|case| &mut case.launches) {
                for values in [&mut launch.batches, &mut launch.single] {
                    *values = thinned(std::mem::take(values), self.most);
                    self.kept += values.len();
                }
            }
        }
    }

    /// Returns the first run of each setup.
    pub fn setups(&self) -> &[Run] {
        &self.setups
    }

    /// Returns the cases in the order of setup, benchmark, axes, depth, pairs and size, one for each state of the machine that its launches
    /// were in, the most frequent first. Launches of which the state is unknown are in none if others were in several.
    pub fn into_cases(self) -> Vec<CaseSamples> {
        let states: Vec<States> = self.launches.iter().map(SetupLaunches::states).collect();
        let cases = self.benchmarks.into_values().flat_map(|of| of.cases);
        let mut cases: Vec<CaseSamples> = cases.flat_map(|case| case.by_state(&states)).collect();
        cases.sort_by(|a, b| {
            let key = |case: &CaseSamples| {
                let row = case.row();
                (case.setup, row.bench.clone(), row.axes.clone(), row.depth, row.pairs, row.bytes)
            };
            key(a).cmp(&key(b))
        });
        cases
    }
}

impl LaunchSamples {
    /// Returns the samples of single iterations if there are any, else the samples that the median comes from.
    pub fn distribution(&self) -> &[f64] {
        if self.single.is_empty() { &self.batches } else { &self.single }
    }

    /// Returns the number of values.
    fn len(&self) -> usize {
        self.batches.len() + self.single.len()
    }
}

impl CaseSamples {
    /// Divides the launches by state, as the table does.
    fn by_state(self, states: &[States]) -> Vec<CaseSamples> {
        let medians: Vec<f64> = self
            .launches
            .iter()
            .map(|launch| launch.row.summary.as_ref().map_or(0.0, |summary| summary.median))
            .collect();
        let numbers: Vec<usize> = self.launches.iter().map(|launch| launch.number).collect();
        let rows: Vec<&Measurement> = self.launches.iter().map(|launch| &launch.row).collect();
        let divided = by_state(&rows, &numbers, &states[self.setup]);
        let [first, others @ ..] = &divided[..] else { return vec![self] };
        let other = |one| Some(OtherState::new(one, first, others, &medians));
        let names = std::iter::once(None).chain(others.iter().map(other));
        let of = |(one, other): (&Launches, Option<OtherState>)| CaseSamples {
            setup: self.setup,
            other,
            launches: one.at.iter().map(|at| self.launches[*at].clone()).collect(),
        };
        divided.iter().zip(names).map(of).collect()
    }

    /// Returns the row of the first launch, without raw samples.
    pub fn row(&self) -> &Measurement {
        &self.launches[0].row
    }

    /// Returns the row over these launches.
    pub fn estimate(&self) -> Measurement {
        let rows: Vec<Measurement> = self.launches.iter().map(|launch| launch.row.clone()).collect();
        estimate(&rows).unwrap_or_else(|| self.row().clone())
    }

    /// Returns all values of these launches, in the order of measurement: of single iterations, if there are any.
    pub fn distribution(&self) -> Vec<f64> {
        self.launches.iter().flat_map(|launch| launch.distribution().iter().copied()).collect()
    }

    /// Returns the values that the medians come from, in the order of measurement.
    pub fn batches(&self) -> Vec<f64> {
        self.launches.iter().flat_map(|launch| launch.batches.iter().copied()).collect()
    }
}

impl OtherState {
    /// Returns what tells the launches of one state from the most frequent one, the first.
    fn new(one: &Launches, first: &Launches, others: &[Launches], medians: &[f64]) -> OtherState {
        let middle =
            |one: &Launches| median(&one.at.iter().map(|at| medians[*at]).collect::<Vec<_>>()).unwrap_or(0.0);
        match one.core_to_core_ns {
            Some(ns) if one.core_to_core_ns != first.core_to_core_ns => {
                let of_distance = others.iter().filter(|other| other.core_to_core_ns == Some(ns));
                let fastest = of_distance.map(middle).fold(f64::INFINITY, f64::min);
                OtherState::CoresApart { ns, are_slower: middle(one) > fastest }
            }
            _ if middle(one) < middle(first) => OtherState::Faster,
            _ => OtherState::Slower,
        }
    }
}

/// Returns at most this number of evenly spaced values.
fn thinned(mut values: Vec<f64>, most: Option<usize>) -> Vec<f64> {
    match most {
        Some(most) if values.len() > most => (0..most).map(|at| values[at * values.len() / most]).collect(),
        _ => {
            values.shrink_to_fit();
            values
        }
    }
}

/// Converts samples to the unit of the headline. Values that are not positive have no place on a chart.
fn values(row: &Measurement, samples: &[Samples]) -> Vec<f64> {
    let legs = row.work.map_or(1, |work| work.legs);
    Measurement::combine(samples, legs).into_iter().filter_map(|ns| row.in_unit(ns)).collect()
}

#[cfg(test)]
mod tests {
    use ombx_record::result::Aggregation;

    use crate::{samples::*, state};

    #[test]
    fn values_are_in_the_unit_of_the_headline_and_in_order() {
        let run = ombx_testkit::golden();
        let mut store = SampleStore::default();
        store.launch(&run);
        store.launch(&run);
        let cases = store.into_cases();
        let case = &cases[0];
        assert_eq!((case.setup, case.launches.len()), (0, 2));
        let row = run.rows.iter().find(|row| row.key == case.row().key).unwrap();
        let mut values = case.launches[0].batches.clone();
        values.sort_by(f64::total_cmp);
        let median = ombx_record::stats::median(&values).unwrap();
        assert!((median - row.headline().unwrap().value).abs() < 1e-9 * median, "{values:?}");
        assert_eq!(case.batches().len(), 2 * case.launches[0].batches.len());
        assert!(case.row().samples.is_empty());
    }

    #[test]
    fn launches_of_each_state_are_a_case_of_their_own() {
        let mut store = SampleStore::default();
        for at in 0..9_u64 {
            let mut run = ombx_testkit::golden();
            run.rows.truncate(1);
            let is_slow = at % 3 == 2;
            let ns = if is_slow { 252.0 } else { 51.0 };
            run.run.plan.insert(state::BEFORE.into(), ns.to_string());
            run.run.launched = Some(Launched { core_to_core_ns: Some(ns), ..Launched::default() });
            let row = &mut run.rows[0];
            row.summary.as_mut().unwrap().median = if is_slow { 900.0 } else { 300.0 } + at as f64;
            store.launch(&run);
        }
        let cases = store.into_cases();
        let found: Vec<(Option<String>, usize, f64)> = cases
            .iter()
            .map(|case| {
                let median = case.estimate().summary.unwrap().median;
                (case.other.map(|other| other.to_string()), case.launches.len(), median)
            })
            .collect();
        assert_eq!(found, [(None, 6, 303.5), (Some("cores 252 ns apart".into()), 3, 905.0)]);
    }

    #[test]
    fn launches_of_several_pairs_with_pauses_are_no_state_of_their_own() {
        let mut store = SampleStore::default();
        for at in 0..9_u64 {
            let mut run = ombx_testkit::golden();
            run.rows.truncate(1);
            let row = &mut run.rows[0];
            row.aggregation = Aggregation::Pairs;
            let summary = row.summary.as_mut().unwrap();
            summary.median = if at % 3 == 2 { 900.0 } else { 100.0 } + at as f64;
            summary.mean = summary.median;
            store.launch(&run);
        }
        let cases: Vec<usize> = store.into_cases().iter().map(|case| case.launches.len()).collect();
        assert_eq!(cases, [9]);
    }

    #[test]
    fn a_store_keeps_the_first_benchmarks_whole_whatever_their_order_in_files() {
        let launch = |names: &str| {
            let mut run = ombx_testkit::golden();
            let row = run.rows[0].clone();
            let named = |name: char| {
                let mut row = Measurement { key: format!("{}/x={name}", row.key), ..row.clone() };
                row.axes.insert("x".into(), name.into());
                row.axes.insert(RATE.into(), "100".into());
                row
            };
            run.rows = names.chars().map(named).collect();
            run
        };
        let found = |store: SampleStore| {
            let cases = store.into_cases().into_iter();
            cases.map(|case| (case.row().axes["x"].clone(), case.launches.len())).collect::<Vec<_>>()
        };
        let mut base = SampleStore::at_most(10).of_first_benchmarks(2);
        ["dbeac", "acbde"].iter().for_each(|names| base.launch(&launch(names)));
        let mut new = base.beside();
        ["0bc", "ab0"].iter().for_each(|names| new.launch(&launch(names)));
        assert_eq!([base.benchmarks().count(), new.benchmarks().count()], [5, 4]);
        let kept = base.benchmarks.values().flat_map(|of| &of.cases).flat_map(|case| &case.launches);
        assert_eq!(base.kept, kept.map(LaunchSamples::len).sum::<usize>());
        assert_eq!(found(base), [("a".into(), 2), ("b".into(), 2)]);
        assert_eq!(found(new), [("a".into(), 1), ("b".into(), 2)]);
    }

    #[test]
    fn a_store_beside_another_has_its_first_limit_and_its_benchmarks_in_any_setup() {
        let named = |run: &mut RunWithRows, names: &str| {
            let row = run.rows[0].clone();
            let of = |name: char| {
                let mut row = Measurement { key: format!("{}/x={name}", row.key), ..row.clone() };
                row.axes.insert("x".into(), name.into());
                row
            };
            run.rows = names.chars().map(of).collect();
        };
        let [mut base_run, mut new_run] = [ombx_testkit::golden(), ombx_testkit::golden()];
        base_run.run.fabric = "other".into();
        named(&mut base_run, "b");
        let mut base = SampleStore::at_most(1000).of_first_benchmarks(1);
        base.launch(&RunWithRows { rows: Vec::new(), ..ombx_testkit::golden() });
        base.launch(&base_run);
        base.most = Some(100);
        let mut new = base.beside();
        assert_eq!(new.most, Some(1000));
        named(&mut new_run, "ab");
        new.launch(&new_run);
        let kept: Vec<String> = new.into_cases().iter().map(|case| case.row().axes["x"].clone()).collect();
        assert_eq!(kept, ["b"]);
    }

    #[test]
    fn a_bounded_store_keeps_evenly_spaced_values() {
        let mut run = ombx_testkit::golden();
        run.rows.truncate(1);
        run.rows[0].samples[0].elapsed_ns = (1..=1000).collect();
        let batch = run.rows[0].samples[0].batch;
        let mut many = SampleStore::at_most(1000);
        (0..4).for_each(|_| many.launch(&run));
        many.keep_fewer(600);
        let lengths: Vec<usize> = many.into_cases()[0].launches.iter().map(|of| of.batches.len()).collect();
        assert_eq!(lengths, [125; 4]);
        let mut store = SampleStore::at_most(10);
        store.launch(&run);
        let values = &store.into_cases()[0].launches[0].batches;
        assert_eq!(values.len(), 10);
        let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]) * batch as f64).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1e-9), "{steps:?}");
    }
}
