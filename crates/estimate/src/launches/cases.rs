//! Rows of all launches, by setup and case.

use std::collections::{BTreeMap, HashMap};

use ombx_record::{
    event::Event,
    file::RunWithRows,
    result::{
        ClockFacts, ClockProperties, Ended, KnownBatches, Launched, LoadedFiles, Mark, MarkCode, Measurement,
        OverLaunches, Run, RunOutcome, Tally,
    },
    runs::{continues, is_next_launch, is_same_launch, library},
};

use crate::{
    launches::case::estimate_in,
    number::percent,
    percentiles::Percentiles,
    runs::fingerprint,
    state::{self, Distances, States},
};

/// Collects the rows of launches without their raw samples.
#[derive(Debug, Default)]
pub struct Cases {
    groups: Vec<Group>,
    /// Group of the current run.
    current: usize,
    /// Percentiles that the user chose.
    percentiles: Percentiles,
}

/// Rows of the launches of one setup: the same library, build and placement of ranks.
#[derive(Debug)]
pub struct Group {
    /// The first launch.
    pub run: Run,
    /// Number of launches of the case that most launches have measured. A launch may be several runs, each of other cases.
    pub launches: usize,
    /// How the runs before the last one ended: the last end that is not complete. A run that another one continues does not count.
    outcome: RunOutcome,
    /// The end of the last run; `None` before it.
    end: Option<RunOutcome>,
    setup: SetupLaunches,
    rows: Vec<Vec<Measurement>>,
    /// Number of the launch of each row.
    row_launches: Vec<Vec<usize>>,
    /// Index of a case by its key, and by how often the same launch had measured the key before.
    places: HashMap<(String, usize), usize>,
    /// How often the current launch has measured each key.
    repeats: HashMap<String, usize>,
}

/// Launches of one setup without their rows. Their runs tell where one launch ends and the next one begins.
#[derive(Debug)]
pub(crate) struct SetupLaunches {
    /// The last run.
    pub(crate) last: Run,
    /// What is known of each launch.
    pub(crate) started: Vec<Started>,
    /// Number of commands that the launches are from.
    commands: usize,
}

impl SetupLaunches {
    /// Returns a setup without launches. `first` is the first run that will begin.
    pub(crate) fn new(first: &Run) -> SetupLaunches {
        SetupLaunches { last: first.clone(), started: Vec::new(), commands: 0 }
    }

    /// Begins a run: of a new launch, or of other ranks of the same launch.
    pub(crate) fn begin(&mut self, run: &Run) {
        let last = std::mem::replace(&mut self.last, run.clone());
        if !self.started.is_empty() && is_same_launch(&last, run) {
            return;
        }
        self.commands += usize::from(self.started.is_empty() || !is_next_launch(&last, run));
        self.started.push(Started { distances: Distances::of_run(run), ..Started::default() });
    }

    /// Notes the end of the launch of a run, if it is the last launch of this setup.
    pub(crate) fn end_launch(&mut self, run: &Run, launched: Launched) {
        let is_of_launch = self.last.id == run.id || is_same_launch(&self.last, run);
        let started = self.started.last_mut().filter(|launch| is_of_launch && launch.launched.is_none());
        if let Some(started) = started {
            started.launched = Some(launched);
            started.distances.after_ns = launched.core_to_core_ns;
        }
    }

    /// Returns the states of the machine in the launches.
    pub(crate) fn states(&self) -> States {
        States::new(&self.started.iter().map(|launch| launch.distances).collect::<Vec<_>>())
    }
}

/// What is known of a launch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Started {
    distances: Distances,
    launched: Option<Launched>,
    /// Sum of the fingerprints of its rows.
    fingerprint: u64,
}

impl Cases {
    /// Returns an empty collection, whose rows will have these percentiles of their raw samples.
    pub fn with_percentiles(percentiles: Percentiles) -> Cases {
        Cases { percentiles, ..Cases::default() }
    }

    /// Adds an event of a launch. Rows over all launches are ignored, because they are derived from the others.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => self.begin(run),
            Event::Row(row) => self.row(row),
            Event::Round(round) => round.rows().for_each(|row| self.row(&row)),
            Event::End { outcome, .. } => self.end_run(Some(*outcome)),
            Event::Launched(launched) => self.end_launch(*launched),
            _ => {}
        }
    }

    /// Adds a launch with all its rows.
    pub fn launch(&mut self, launch: &RunWithRows) {
        self.begin(&launch.run);
        self.finish(launch);
    }

    /// Adds the rows of a launch whose run has begun, and its end.
    pub(crate) fn finish(&mut self, launch: &RunWithRows) {
        launch.each_row().for_each(|row| self.row(&row));
        self.end_run(launch.end.map(|(outcome, _)| outcome));
        if let Some(launched) = launch.run.launched {
            self.end_launch(launched);
        }
    }

    /// Notes why no launch follows the last one.
    pub fn set_ended(&mut self, ended: Option<Ended>) {
        let last = self.groups.iter_mut().filter_map(|group| group.setup.started.last_mut());
        last.filter_map(|started| started.launched.as_mut()).for_each(|launched| launched.ended = ended);
    }

    /// Notes the end of a launch in all setups that have a run of it.
    fn end_launch(&mut self, launched: Launched) {
        let Some(last) = self.groups.get(self.current).map(|group| group.setup.last.clone()) else { return };
        self.groups.iter_mut().for_each(|group| group.setup.end_launch(&last, launched));
    }

    /// Returns the groups in the order of their first launches.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the iterations per sample of every row.
    pub fn batches(&self) -> KnownBatches {
        let mut batches = KnownBatches::default();
        for row in self.all().filter_map(|rows| rows.first()) {
            if let Some(batch) = row.batch() {
                batches.insert(&row.key, batch);
            }
        }
        batches
    }

    /// Returns the rows of each case, in the order of launches.
    pub fn all(&self) -> impl Iterator<Item = &Vec<Measurement>> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// Begins a run, in the group of its setup.
    fn begin(&mut self, run: &Run) {
        let same = self.groups.iter().position(|group| have_same_setup(&group.run, run));
        self.current = same.unwrap_or_else(|| {
            self.groups.push(Group {
                run: run.clone(),
                launches: 1,
                outcome: RunOutcome::Complete,
                end: Some(RunOutcome::Complete),
                setup: SetupLaunches::new(run),
                rows: Vec::new(),
                row_launches: Vec::new(),
                places: HashMap::new(),
                repeats: HashMap::new(),
            });
            self.groups.len() - 1
        });
        let group = &mut self.groups[self.current];
        // What ranks have not measured is in the run that continues theirs.
        let is_rest = continues(&group.setup.last, run);
        if !is_rest {
            group.outcome = group.outcome();
            group.repeats.clear();
        }
        group.end = None;
        group.setup.begin(run);
        add_options(&mut group.run.plan, &run.plan);
    }

    fn row(&mut self, row: &Measurement) {
        let Some(group) = self.groups.get_mut(self.current) else { return };
        let Group { run, rows, row_launches, places, repeats, launches, setup, .. } = group;
        let repeat = repeats.entry(row.key.clone()).or_default();
        let at = *places.entry((row.key.clone(), *repeat)).or_insert_with(|| {
            rows.push(Vec::new());
            row_launches.push(Vec::new());
            rows.len() - 1
        });
        *repeat += 1;
        let mut kept = without_samples(row, &run.clock);
        self.percentiles.take(&mut kept, row, &run.clock);
        rows[at].push(kept);
        row_launches[at].push(setup.started.len().saturating_sub(1));
        *launches = rows[at].len().max(*launches);
        if let (Some(launch), Some(row)) = (setup.started.last_mut(), fingerprint(row)) {
            launch.fingerprint = launch.fingerprint.wrapping_add(row);
        }
    }

    /// Returns the estimate of the case with this key from the launches of the current setup.
    pub fn so_far(&self, key: &str) -> Option<Measurement> {
        let group = self.groups.get(self.current)?;
        group.estimate(*group.places.get(&(key.to_owned(), 0))?, &group.states())
    }

    fn end_run(&mut self, outcome: Option<RunOutcome>) {
        if let Some(group) = self.groups.get_mut(self.current) {
            group.end = outcome;
        }
    }
}

impl Group {
    /// Returns the states of the machine in the launches.
    pub fn states(&self) -> States {
        self.setup.states()
    }

    /// Returns a number for each launch that copies of it share; 0 if its samples are too few.
    pub fn fingerprints(&self) -> Vec<u64> {
        self.setup.started.iter().map(|launch| launch.fingerprint).collect()
    }

    /// Returns the time of all launches of a single command, in seconds; `None` if it is unknown.
    pub fn elapsed_s(&self) -> Option<f64> {
        let launched = self.setup.started.last()?.launched?;
        (self.setup.commands == 1).then_some(launched.elapsed_s)
    }

    fn estimate(&self, at: usize, states: &States) -> Option<Measurement> {
        let mut row = estimate_in(&self.rows[at], &self.row_launches[at], Some(states), self.elapsed_s())?;
        row.trust.extend(self.asked().and_then(|asked| precision_missed(&row, asked)));
        Some(row)
    }

    /// Returns the precision that the user asked for, as a fraction; `None` without, and until the launches have ended.
    fn asked(&self) -> Option<f64> {
        let ended = self.setup.started.last()?.launched?.ended.filter(|ended| ended.is_asked)?;
        Some(ended.precision)
    }

    /// Returns one row per case. Rows of several launches are sorted by benchmark, in the order of the command line, then by axes, depth, pairs
    /// and size.
    pub fn estimates(&self) -> Vec<Measurement> {
        let named: Vec<&str> = self
            .run
            .plan
            .iter()
            .filter(|(option, _)| *option == "benchmarks" || option.ends_with(".benchmarks"))
            .flat_map(|(_, names)| names.split(','))
            .collect();
        let position = |bench: &str| named.iter().position(|name| *name == bench).unwrap_or(named.len());
        let states = self.states();
        let mut rows: Vec<Measurement> =
            (0..self.rows.len()).filter_map(|at| self.estimate(at, &states)).collect();
        if self.launches > 1 {
            rows.sort_by_cached_key(|row| {
                // Numbers, such as rates, have the order of numbers.
                let number = |text: &str| text.parse::<u64>().ok();
                let axis = |(name, value): (&String, &String)| (name.clone(), number(value), value.clone());
                let axes: Vec<(String, Option<u64>, String)> = row.axes.iter().map(axis).collect();
                (position(&row.bench), row.bench.clone(), axes, row.depth, row.pairs, row.bytes)
            });
        }
        rows
    }

    /// Returns the run of the first launch with what describes all launches in its plan: their number, the distances between two cores in
    /// each, and why the last command ended.
    pub fn described(&self) -> Run {
        let mut run = self.run.clone();
        ["launch", "order", "row_time_s", state::BEFORE]
            .into_iter()
            .for_each(|option| drop(run.plan.remove(option)));
        run.plan.insert("launches".into(), self.launches.to_string());
        let distances = self.setup.started.iter().map(|launch| launch.distances);
        let known: Vec<String> = distances
            .flat_map(|launch| [launch.before_ns, launch.after_ns].into_iter().flatten())
            .map(|ns| ns.to_string())
            .collect();
        if !known.is_empty() {
            run.plan.insert(state::BEFORE.into(), known.join(", "));
        }
        let launched = self.setup.started.last().and_then(|launch| launch.launched);
        run.launched = launched.map(|launched| Launched { core_to_core_ns: None, ..launched });
        if self.setup.commands > 1 {
            run.plan.insert("runs".into(), self.setup.commands.to_string());
        }
        run
    }

    /// Returns how the launches ended. A launch without an end was killed.
    pub fn outcome(&self) -> RunOutcome {
        match self.end {
            None => RunOutcome::Broken,
            Some(RunOutcome::Complete) => self.outcome,
            Some(worse) => worse,
        }
    }
}

/// The launches as one run, whose rows are the estimates.
impl From<&Group> for RunWithRows {
    fn from(group: &Group) -> RunWithRows {
        let rows = group.estimates();
        let end = group.end.map(|_| (group.outcome(), tally(&rows)));
        RunWithRows { rows, end, ..RunWithRows::new(group.described()) }
    }
}

/// Returns the mark of a row over launches that does not have the precision that the user asked for.
fn precision_missed(row: &Measurement, asked: f64) -> Option<Mark> {
    row.over_launches()?;
    let reached = row.summary.as_ref()?.precision();
    let is_missed = reached.is_none_or(|reached| reached > asked);
    let text = reached.map_or("no interval".into(), |reached| format!("±{}", percent(reached)));
    is_missed.then(|| {
        Mark::new(
            MarkCode::PrecisionMissed,
            format!("{text}, not ±{}", percent(asked)),
            "the launches scatter too much for the precision that was asked for",
        )
    })
}

/// Counts rows by outcome.
pub fn tally(rows: &[Measurement]) -> Tally {
    let mut tally = Tally::default();
    rows.iter().for_each(|row| tally.add(row));
    tally
}

/// Adds the options of another run of the same setup, and its benchmarks. The parts of suites stay as they are.
fn add_options(plan: &mut BTreeMap<String, String>, other: &BTreeMap<String, String>) {
    let (Some(all), Some(names)) = (plan.get_mut("benchmarks"), other.get("benchmarks")) else { return };
    for name in names.split(',') {
        if !all.split(',').any(|known| known == name) {
            *all += &format!(",{name}");
        }
    }
    for (option, value) in other {
        plan.entry(option.clone()).or_insert_with(|| value.clone());
    }
}

/// Returns a row without raw samples, and with what can only be derived from them.
pub(crate) fn without_samples(row: &Measurement, clock: &ClockFacts) -> Measurement {
    let ClockFacts { resolution_ns, overhead_ns, .. } = *clock;
    let launches = OverLaunches {
        singles: row.single_times(ClockProperties { source: "", resolution_ns, overhead_ns }),
        medians_ns: row.summary.iter().map(|summary| summary.median).collect(),
        batch: row.batch().unwrap_or(1),
        across: row.across_ranks(),
        ..OverLaunches::default()
    };
    Measurement { samples: Vec::new(), tail: Vec::new(), launches: Some(launches), ..row.clone() }
}

/// Variable that the launcher of Open MPI sets from its option. It differs between ranks with and without threads of one launch.
const BINDING: &str = "OMPI_MCA_hwloc_base_binding_policy";

/// Returns whether two runs are launches of the same setup. A library or preload that was replaced in place is another one.
pub(crate) fn have_same_setup(one: &Run, other: &Run) -> bool {
    let hosts = |run: &Run| run.places.iter().map(|place| place.host.clone()).collect::<Vec<_>>();
    let env = |run: &Run| {
        let kept = run.env.clone().into_iter().filter(|(name, _)| name != BINDING);
        kept.collect::<BTreeMap<_, _>>()
    };
    let is_replaced = |(one, other): (&LoadedFiles, &LoadedFiles)| {
        one.replaced(other).iter().any(|(file, _)| file.path != one.program.path)
    };
    if one.loaded.as_ref().zip(other.loaded.as_ref()).is_some_and(is_replaced) {
        return false;
    }
    (&one.fabric, library(one), hosts(one), &one.version, &one.profile, env(one))
        == (&other.fabric, library(other), hosts(other), &other.version, &other.profile, env(other))
}

#[cfg(test)]
mod tests {
    use ombx_record::{
        result::{BusTraffic, LoadedFile},
        runs::CONTINUES,
    };
    use ombx_testkit::golden;

    use crate::launches::cases::*;

    /// Returns the run of one start of ranks, with a row of each of these benchmarks.
    fn start(launch: u32, benchmarks: &[&str], binding: &str) -> RunWithRows {
        let RunWithRows { mut run, rows, .. } = golden();
        run.plan.insert("benchmarks".into(), benchmarks.join(","));
        run.plan.insert("launch".into(), launch.to_string());
        run.env.insert(BINDING.into(), binding.into());
        let row = |bench: &&str| Measurement {
            bench: (*bench).into(),
            key: format!("{bench}/"),
            ..rows[0].clone()
        };
        RunWithRows { rows: benchmarks.iter().map(row).collect(), ..RunWithRows::new(run) }
    }

    #[test]
    fn a_library_that_was_replaced_in_place_is_another_setup() {
        let of = |library: Option<&str>, program: &str| {
            let file = |path: &str, build_id: &str| LoadedFile {
                path: path.into(),
                build_id: Some(build_id.into()),
                contents: None,
            };
            let loaded = |library: &str| LoadedFiles {
                program: file("/ombx", program),
                libraries: vec![file("/libmpi.so", library)],
                ..LoadedFiles::default()
            };
            Run { loaded: library.map(loaded), ..golden().run }
        };
        assert!(!have_same_setup(&of(Some("1"), "1"), &of(Some("2"), "1")));
        // The program counts by its version only, and older files do not name libraries.
        assert!(have_same_setup(&of(Some("1"), "1"), &of(Some("1"), "2")));
        assert!(have_same_setup(&of(Some("1"), "1"), &of(None, "1")));
    }

    #[test]
    fn starts_of_ranks_of_several_kinds_are_one_launch() {
        let mut cases = Cases::default();
        for launch in 1..=3 {
            cases.launch(&start(launch, &["p2p.latency", "p2p.bw"], "core"));
            cases.launch(&start(launch, &["p2p.latency_mt"], "none"));
        }
        let [group] = cases.groups() else { panic!("{} setups", cases.groups().len()) };
        assert_eq!(group.launches, 3);
        assert_eq!(group.described().plan["launches"], "3");
        assert_eq!(group.described().plan["benchmarks"], "p2p.latency,p2p.bw,p2p.latency_mt");
        let names: Vec<String> = group.estimates().into_iter().map(|row| row.bench).collect();
        assert_eq!(names, ["p2p.latency", "p2p.bw", "p2p.latency_mt"]);
        assert!(group.estimates().iter().all(|row| row.launch_count() == 3));
    }

    #[test]
    fn new_ranks_continue_the_launch_of_ranks_that_have_ended_early() {
        let end = |outcome| Some((outcome, Tally::default()));
        let mut cases = Cases::default();
        let first = start(1, &["p2p.latency"], "core");
        let mut second = start(1, &["p2p.latency"], "core");
        for launch in ["a", "b"] {
            let mut one = first.clone();
            (one.run.id, one.end) = (format!("{launch}1"), end(RunOutcome::Broken));
            cases.launch(&one);
            second.rows[0].key = "p2p.latency/other".into();
            for number in 2..=3 {
                second.run.id = format!("{launch}{number}");
                second.run.plan.insert(CONTINUES.into(), format!("{launch}1"));
                second.end = end(if number == 2 { RunOutcome::Broken } else { RunOutcome::Complete });
                second.rows.truncate(usize::from(number == 2));
                cases.launch(&second);
                second.rows = first.rows.clone();
                second.rows[0].key = "p2p.latency/other".into();
            }
        }
        let [group] = cases.groups() else { panic!("{} setups", cases.groups().len()) };
        assert_eq!(
            (group.launches, group.setup.started.len(), group.outcome()),
            (2, 2, RunOutcome::Complete)
        );
        second.end = end(RunOutcome::Broken);
        cases.launch(&second);
        assert_eq!(cases.groups()[0].outcome(), RunOutcome::Broken, "nothing continues it");
    }

    #[test]
    fn a_row_over_launches_keeps_what_defines_its_bus_bandwidth() {
        let mut run = start(1, &["collective.allreduce"], "core");
        run.rows[0].bus = Some(BusTraffic { bytes: 8, factor: 1.5 });
        let mut cases = Cases::default();
        (0..3).for_each(|_| cases.launch(&run));
        assert_eq!(cases.groups()[0].estimates()[0].bus, run.rows[0].bus);
    }
}
