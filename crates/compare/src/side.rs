//! Results of one side, summarised row by row while a file is read.

use std::collections::{BTreeSet, HashMap};

use ombx_estimate::{
    launches::weight_in_total,
    state::{Distances, LaunchState, States},
};
use ombx_host::performance::INSTRUCTIONS;
use ombx_record::{
    event::{Event, Round},
    file::RunWithRows,
    link::{BENCH, MOST_RANKS, RETEST},
    result::{Figure, Level, MarkCode, Measurement, Metric, Outcome, Run, RunOutcome},
    runs::{is_next_launch, is_same_launch, library},
};

use crate::{
    comparison::{CaseId, Note, Reason, SideInfo, StateOfSides, Turn, Unit},
    links::{LinkSet, LinksByHost, is_invalid},
};

/// Results of all launches of one side. Raw samples are summarised at once, so that large files need little memory.
#[derive(Debug, Default)]
pub struct SideResults {
    name: String,
    label: Option<String>,
    pub(super) runs: Vec<Run>,
    /// What is known of each launch. A launch has a run for each kind of ranks.
    pub(super) launched: Vec<LaunchInfo>,
    /// Number of complete runs.
    pub(super) complete: usize,
    /// Why instructions were not counted, although the side was to count them.
    pub(super) no_instructions: Option<String>,
    pub(super) rows: Vec<Row>,
    places: HashMap<String, usize>,
    /// Links in rounds of the current launch, if these are too many for a case of each.
    links: Option<LinksByHost>,
    /// Whether there were such links.
    pub(super) has_links_by_host: bool,
    /// Such links of earlier launches whose marks say that their times are wrong.
    links_left_out: usize,
}

/// What is known of a launch beside its rows.
#[derive(Debug)]
pub(super) struct LaunchInfo {
    pub(super) distances: Distances,
    /// Number of its run, the command that started it, from 0.
    pub(super) run: usize,
    /// Its turn, if `ombx ab` started it.
    pub(super) turn: Option<Turn>,
}

/// One case of one side.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: CaseId,
    pub(super) launches: Vec<Launch>,
    /// Why the last launch without a figure has none.
    pub(super) missing: Option<String>,
    /// Reason of the last failure.
    pub(super) failed: Option<String>,
}

/// One case of one launch.
#[derive(Debug)]
pub(super) struct Launch {
    /// Number of the launch on its side, from 0.
    pub(super) run: usize,
    /// Median in the unit of the headline figure.
    pub(super) median: f64,
    /// Logarithm of the time, up to a constant of the case.
    pub(super) log_time: f64,
    /// Number of its samples, if the time of several launches is total time over total work, as that of a row over several pairs is.
    pub(super) weight: Option<f64>,
    /// Logarithm of the instructions of a rank per operation; `None` if they were not counted.
    pub(super) log_instructions: Option<f64>,
    /// Code of a mark on which no verdict may rest.
    pub(super) invalid: Option<MarkCode>,
    pub(super) marks: BTreeSet<MarkCode>,
    /// Which links its median is of, if the case is a host.
    pub(super) links: Option<LinkSet>,
}

impl SideResults {
    /// Creates a side without launches.
    pub fn named(name: impl Into<String>) -> SideResults {
        SideResults { name: name.into(), ..SideResults::default() }
    }

    /// Sets the short name for titles.
    #[must_use]
    pub fn labelled(self, label: Option<String>) -> SideResults {
        SideResults { label, ..self }
    }

    /// Adds an event of a file. [`SideResults::end`] ends the file.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => self.begin((**run).clone()),
            Event::Row(row) => self.add(row),
            Event::Round(round) => self.add_round(round),
            Event::End { outcome, .. } => {
                self.end();
                self.complete += usize::from(*outcome == RunOutcome::Complete);
            }
            Event::Launched(launched) => {
                if let Some(last) = self.launched.last_mut() {
                    last.distances.after_ns = launched.core_to_core_ns;
                }
            }
            // Rows over all launches and the verdict are derived from the rows of the launches.
            _ => {}
        }
    }

    /// Adds a whole run.
    pub fn run(&mut self, run: &RunWithRows) {
        self.begin(run.run.clone());
        run.rounds.iter().for_each(|round| self.add_round(round));
        run.rows.iter().for_each(|row| self.add(row));
        self.end();
        self.complete += usize::from(matches!(run.end, Some((RunOutcome::Complete, _))));
    }

    /// Ends a run, also one that has no record of its end.
    pub fn end(&mut self) {
        if let Some(mut links) = self.links.take() {
            if std::mem::take(&mut links.has_new) {
                self.has_links_by_host = true;
                links.rows().iter().for_each(|(row, links)| self.add_case(row, Some(*links)));
            }
            // A run may go on in the same launch.
            self.links = Some(links);
        }
    }

    /// Returns the number of links that count in no case because of their marks, although the others of their host do.
    pub(super) fn links_left_out(&self) -> usize {
        self.links_left_out + self.links.as_ref().map_or(0, |links| links.left_out)
    }

    /// Returns the number of launches.
    pub fn count(&self) -> usize {
        self.launched.len()
    }

    pub(super) fn row(&self, key: &str) -> Option<&Row> {
        self.places.get(key).map(|at| &self.rows[*at])
    }

    pub(super) fn info(&self, default_label: &str) -> SideInfo {
        SideInfo {
            label: self.label.clone().unwrap_or_else(|| default_label.to_owned()),
            name: self.name.clone(),
            runs: self.runs.iter().map(|run| run.id.clone()).collect(),
            launches: self.count(),
            commands: self.launched.last().map_or(0, |last| last.run + 1),
            libraries: self.runs.iter().map(library).collect(),
        }
    }

    fn begin(&mut self, run: Run) {
        self.end();
        let of_last = self.runs.last().is_some_and(|last| is_same_launch(last, &run));
        let goes_on = of_last && self.runs.last().is_some_and(|last| last.places == run.places);
        if !goes_on {
            self.links_left_out += self.links.take().map_or(0, |links| links.left_out);
        }
        if !of_last {
            let follows = self.runs.last().is_some_and(|last| is_next_launch(last, &run));
            let number = self.launched.last().map_or(0, |last| last.run + usize::from(!follows));
            let distances = Distances::of_run(&run);
            self.launched.push(LaunchInfo { distances, run: number, turn: Turn::of_run(&run) });
        }
        self.runs.push(run);
    }

    fn add_round(&mut self, round: &Round) {
        match self.runs.last().filter(|run| is_large(run)) {
            Some(run) => self.links.get_or_insert_with(|| LinksByHost::new(run)).add(round),
            None => round.rows().for_each(|row| self.add(&row)),
        }
    }

    /// Adds a row. Which links of a large sweep were measured again differs from run to run, so that these are no cases.
    fn add(&mut self, row: &Measurement) {
        let is_again = row.bench == BENCH && row.axes.contains_key(RETEST) && row.outcome == Outcome::Ok;
        if !(is_again && self.runs.last().is_some_and(is_large)) {
            self.add_case(row, None);
        }
    }

    fn add_case(&mut self, row: &Measurement, links: Option<LinkSet>) {
        if let Some(Figure::Unresolved(why)) = row.figures.get(INSTRUCTIONS) {
            self.no_instructions.get_or_insert_with(|| why.clone());
        }
        let at = *self.places.entry(row.key.clone()).or_insert_with(|| {
            self.rows.push(Row { id: case_id(row), launches: Vec::new(), missing: None, failed: None });
            self.rows.len() - 1
        });
        let run = self.count().saturating_sub(1);
        let case = &mut self.rows[at];
        match &row.outcome {
            Outcome::Ok => match launch(row, run).map(|launch| Launch { links, ..launch }) {
                // More links of the same launch.
                Some(launch) if links.is_some() => {
                    case.launches.retain(|known| known.run != run);
                    case.launches.push(launch);
                }
                // A repeated row counts once: all its rows belong to the same launch.
                Some(launch) if case.launches.last().is_none_or(|last| last.run != run) => {
                    case.launches.push(launch);
                }
                Some(_) => {}
                None => case.missing = Some("its time is below the resolution of the clock".into()),
            },
            Outcome::Skipped(why) => case.missing = Some(format!("skipped: {why}")),
            Outcome::Failed(why) => {
                case.missing = Some(format!("failed: {why}"));
                case.failed = Some(why.clone());
            }
        }
    }
}

impl Row {
    /// Returns the row with instructions in the place of times; `None` if a launch did not count them. Marks are about times.
    pub(super) fn of_instructions(&self) -> Option<Row> {
        let launches: Option<Vec<Launch>> = self.launches.iter().map(Launch::with_instructions).collect();
        let id = CaseId { metric: Metric::Latency, unit: "instructions", ..self.id.clone() };
        Some(Row { id, launches: launches?, missing: None, failed: None })
    }

    pub(super) fn measured(&self) -> bool {
        !self.launches.is_empty()
    }
}

impl Launch {
    /// Returns the launch with instructions in the place of times; `None` if they were not counted.
    fn with_instructions(&self) -> Option<Launch> {
        let log_time = self.log_instructions?;
        let marks = BTreeSet::new();
        Some(Launch {
            run: self.run,
            median: log_time.exp(),
            log_time,
            weight: None,
            log_instructions: None,
            invalid: None,
            marks,
            links: self.links,
        })
    }
}

fn case_id(row: &Measurement) -> CaseId {
    CaseId {
        bench: row.bench.clone(),
        key: row.key.clone(),
        metric: row.metric,
        unit: if row.metric == Metric::Bandwidth && !moves_bytes(row) {
            "messages/s"
        } else {
            row.metric.unit()
        },
        bytes: row.bytes,
        depth: row.depth,
        pairs: row.pairs,
        axes: row.axes.clone(),
    }
}

/// Returns whether the links of a sweep are too many for a case of each.
fn is_large(run: &Run) -> bool {
    run.places.len() > MOST_RANKS
}

fn moves_bytes(row: &Measurement) -> bool {
    row.work.is_some_and(|work| work.bytes > 0)
}

/// Converts a row to the unit of its headline figure. Returns `None` if the time is not above 0.
fn launch(row: &Measurement, run: usize) -> Option<Launch> {
    let (summary, work) = (row.summary.as_ref()?, row.work?);
    let leg_ns = summary.median;
    let median = match row.metric {
        Metric::Latency => leg_ns / 1e3,
        Metric::Bandwidth if moves_bytes(row) => work.bytes as f64 * 1e3 / (leg_ns * work.legs as f64),
        Metric::Bandwidth => work.ops as f64 * 1e9 / (leg_ns * work.legs as f64),
    };
    (median.is_finite() && median > 0.0).then(|| Launch {
        run,
        median,
        log_time: if row.metric == Metric::Latency { median.ln() } else { -median.ln() },
        weight: weight_in_total(row),
        log_instructions: row.figure(INSTRUCTIONS).filter(|count| *count > 0.0).map(f64::ln),
        invalid: row.marks(Level::Invalid).find(|mark| is_invalid(mark)).map(|mark| mark.code.clone()),
        marks: row.doubts().map(|mark| mark.code.clone()).collect(),
        links: None,
    })
}

/// Launches that are compared, by unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    pub(super) unit: Unit,
    /// Whether `ab` looked at the turns before it knew their number.
    pub(super) is_looked_at: bool,
    /// Numbers of the launches of each unit of both sides that counts. The turns of both sides are in the same order.
    pub(super) sides: [Vec<Vec<usize>>; 2],
    /// Numbers of the turns that count; none of runs.
    pub(super) turns: Vec<u32>,
    /// State of the machine in which the sides are compared.
    pub(super) state: StateOfSides,
    /// Why there is no verdict.
    pub(super) excluded: Option<Reason>,
}

impl Units {
    /// Returns the units of the state that both sides met most often.
    pub(super) fn new(sides: [&SideResults; 2]) -> Units {
        // Distances between cores of one host say nothing about ranks on several.
        Units::among(sides, sides.iter().all(|side| side.runs.iter().all(ombx_estimate::state::is_local)))
    }

    /// Returns the units of all states, for figures that do not depend on the state.
    pub(super) fn of_any_state(sides: [&SideResults; 2]) -> Units {
        Units::among(sides, false)
    }

    /// Returns the units. States count only if all ranks are on one host.
    fn among(sides: [&SideResults; 2], is_local: bool) -> Units {
        let distances: Vec<_> = sides.iter().flat_map(|side| &side.launched).map(|l| l.distances).collect();
        let labels = States::new(&distances);
        let first = [0, sides[0].launched.len()];
        let state_of = |side: usize, launch: usize| {
            if is_local { labels.state(first[side] + launch) } else { LaunchState::In(0) }
        };
        let turns = turns(sides);
        let unit = if turns.is_some() { Unit::Turn } else { Unit::Run };
        let is_looked_at = turns.as_ref().is_some_and(|(_, is_open)| *is_open);
        let all: [Vec<(LaunchState, Vec<usize>)>; 2] = match turns {
            Some((pairs, _)) => {
                let has_one_state = !is_local || labels.distances_ns().len() <= 1;
                let unknown = if has_one_state { LaunchState::In(0) } else { LaunchState::Unknown };
                let state = |[a, b]: [usize; 2]| state_of_turn([state_of(0, a), state_of(1, b)], unknown);
                [0, 1].map(|side| pairs.iter().map(|pair| (state(*pair), vec![pair[side]])).collect())
            }
            None => [0, 1].map(|side| runs(sides[side], |launch| state_of(side, launch))),
        };
        let count = |side: usize, state: usize| {
            all[side].iter().filter(|(of, _)| *of == LaunchState::In(state)).count()
        };
        let number = if is_local { labels.distances_ns().len().max(1) } else { 1 };
        let common =
            |state: &usize| (count(0, *state).min(count(1, *state)), count(0, *state) + count(1, *state));
        let best = (0..number).rev().max_by_key(common).unwrap_or(0);
        let least = unit.least();
        let excluded = match () {
            () if common(&best).0 >= least => None,
            () if all.iter().any(|side| side.len() < least) => Some(Reason::FewUnits(unit)),
            () if all.iter().flatten().any(|(state, _)| *state == LaunchState::Unknown) => {
                Some(Reason::UnknownState)
            }
            () => Some(Reason::MachineChanged),
        };
        let of = all.each_ref().map(Vec::len);
        // Without a verdict, too, no figure pools states. Sides without a common state have figures of their own ones.
        let is_common = excluded.is_none() || common(&best).0 > 0;
        let shown = [0, 1].map(|side| {
            let own = (0..number)
                .rev()
                .max_by_key(|state| count(side, *state))
                .filter(|state| count(side, *state) > 0);
            if is_common { Some(best) } else { own }
        });
        let chosen = [0, 1].map(|side| {
            let is_shown =
                |state: LaunchState| shown[side].is_none_or(|shown| state == LaunchState::In(shown));
            let counted = all[side].iter().filter(|(state, _)| is_shown(*state));
            counted.map(|(_, launches)| launches.clone()).collect::<Vec<_>>()
        });
        let number_of = |launches: &Vec<usize>| {
            let launch = sides[0].launched.get(*launches.first()?)?;
            launch.turn.as_ref().map(|turn| turn.number)
        };
        let turns = chosen[0].iter().filter_map(number_of).collect();
        let core_to_core_ns = labels.distances_ns().get(best).copied();
        let state = StateOfSides {
            core_to_core_ns: core_to_core_ns.filter(|_| is_local && excluded.is_none()),
            units: [count(0, best), count(1, best)],
            of,
        };
        Units { unit, is_looked_at, sides: chosen, turns, state, excluded }
    }
}

impl Units {
    /// Returns what people should know of the states, if not all runs or turns are compared.
    pub(super) fn note(&self) -> Option<Note> {
        let StateOfSides { core_to_core_ns, units: [a, b], of } = self.state;
        let what = self.unit.plural();
        let cores = core_to_core_ns.map_or(String::new(), |ns| format!(", with cores {ns:.0} ns apart"));
        let text = match &self.excluded {
            Some(Reason::MachineChanged) => format!(
                "the machine changed its state: at most {a} and {b} {what} of the sides are in the same \
                 one, and a verdict needs {} of each; ombx ab alternates the sides",
                self.unit.least()
            ),
            Some(Reason::UnknownState) => {
                "the state of the machine is unknown in too many launches: ombx measures it beside launches \
                 that it starts on one host, between two cores that are idle"
                    .into()
            }
            Some(Reason::FewUnits(_)) if of.iter().all(|n| *n > 0) && [a, b] != of => format!(
                "the machine changed its state: the figures are those of {}",
                if a.min(b) > 0 {
                    format!("{a} of {} {what} of base and {b} of {} of new, in the same state", of[0], of[1])
                } else {
                    "the state that each side met most often, and these differ".into()
                }
            ),
            Some(_) => return None,
            None if [a, b] == of => return None,
            None if self.unit == Unit::Turn => {
                format!("the machine changed its state: {a} of {} turns are compared{cores}", of[0])
            }
            None => format!(
                "the machine changed its state: {a} of {} {what} of base and {b} of {} of new are compared{cores}",
                of[0], of[1]
            ),
        };
        Some(Note { code: "machine_state", text })
    }
}

/// Returns the state of a turn from those of its launches; `unknown` if one of them is unknown.
fn state_of_turn(launches: [LaunchState; 2], unknown: LaunchState) -> LaunchState {
    match launches {
        [LaunchState::In(a), LaunchState::In(b)] if a == b => LaunchState::In(a),
        [LaunchState::Unknown, _] | [_, LaunchState::Unknown] => unknown,
        _ => LaunchState::Changed,
    }
}

/// Returns the launches of each run of a side and its most frequent state. Only launches in this state count.
fn runs(side: &SideResults, state_of: impl Fn(usize) -> LaunchState) -> Vec<(LaunchState, Vec<usize>)> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for (at, launch) in side.launched.iter().enumerate() {
        runs.resize(runs.len().max(launch.run + 1), Vec::new());
        runs[launch.run].push(at);
    }
    runs.into_iter().map(|launches| in_most_frequent_state(launches, &state_of)).collect()
}

/// Returns the most frequent state of some launches, and those in it; all if no state is known.
fn in_most_frequent_state(
    launches: Vec<usize>,
    state_of: impl Fn(usize) -> LaunchState,
) -> (LaunchState, Vec<usize>) {
    let in_state = |at: &usize| if let LaunchState::In(state) = state_of(*at) { Some(state) } else { None };
    let known = || launches.iter().filter_map(in_state);
    let count = |state: usize| known().filter(|other| *other == state).count();
    match known().max_by_key(|state| (count(*state), std::cmp::Reverse(*state))) {
        None => (LaunchState::Unknown, launches),
        Some(most) => {
            let is_in = |at: &usize| state_of(*at) == LaunchState::In(most);
            (LaunchState::In(most), launches.into_iter().filter(is_in).collect())
        }
    }
}

/// Returns the launches of both sides in each turn, and whether `ab` looked at them; `None` unless all launches are from turns of the
/// same comparison.
fn turns([base, new]: [&SideResults; 2]) -> Option<(Vec<[usize; 2]>, bool)> {
    let of = |side: &SideResults| {
        side.launched.iter().map(|launch| launch.turn.clone()).collect::<Option<Vec<_>>>()
    };
    let (a, b) = (of(base)?, of(new)?);
    let first = a.first()?;
    if a.iter().chain(&b).any(|turn| (&turn.of, turn.is_open) != (&first.of, first.is_open)) {
        return None;
    }
    let pairs = a
        .iter()
        .enumerate()
        .filter_map(|(at, turn)| Some([at, b.iter().position(|other| other.number == turn.number)?]));
    Some((pairs.collect(), first.is_open))
}

#[cfg(test)]
mod tests {
    use ombx_testkit::golden;

    use crate::side::*;

    /// A launch starts ranks of several kinds one after the other: over sockets, and with the threads of MPI or without.
    #[test]
    fn runs_of_one_launch_count_once() {
        let run = |launch: u32, fabric: &str, benchmarks: &str| {
            let RunWithRows { mut run, rows, end, .. } = golden();
            run.fabric = fabric.into();
            for (option, value) in [("launch", launch), ("order", 90 + launch)] {
                run.plan.insert(option.into(), value.to_string());
            }
            run.plan.insert("benchmarks".into(), benchmarks.into());
            RunWithRows { rows, end, ..RunWithRows::new(run) }
        };
        let mut side = SideResults::named("x");
        for launch in 1..=2 {
            side.run(&run(launch, "mpi", "p2p.latency"));
            side.run(&run(launch, "mpi", "p2p.latency_mt"));
            side.run(&run(launch, "sockets", "sockets.latency"));
        }
        assert_eq!(side.count(), 2);
        // The same benchmarks again are another job.
        side.run(&run(2, "sockets", "sockets.latency"));
        assert_eq!(side.count(), 3);
    }
}
