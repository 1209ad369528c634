//! What is compared: runs of files or turns of `ombx ab`, in one state of the machine.
//!
//! Launches of one run share seconds of the machine, so that runs of one build differ by more than their launches show. The unit of
//! files is therefore the run. The order of the sides in a turn is random, so that turns need no such caution.

use super::{
    comparison::{Note, Reason, StateOfSides, Unit},
    side::SideResults,
};
use crate::state::{LaunchState, States};

/// Launches that are compared, by unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    pub(super) unit: Unit,
    /// Whether `ab` looked at the turns before it knew their number.
    pub(super) is_looked_at: bool,
    /// Numbers of the launches of each unit of both sides that counts. The turns of both sides are in the same order.
    pub(super) sides: [Vec<Vec<usize>>; 2],
    /// State of the machine in which the sides are compared.
    pub(super) state: StateOfSides,
    /// Why there is no verdict.
    pub(super) excluded: Option<Reason>,
}

/// State of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnitState {
    In(usize),
    /// The launches of a turn met different states, or a launch changed its state.
    Mixed,
    Unknown,
}

impl Units {
    /// Returns the units of the state that both sides met most often.
    pub(super) fn of(sides: [&SideResults; 2]) -> Units {
        // Distances between cores of one host say nothing about ranks on several.
        Units::among(sides, sides.iter().all(|side| side.runs.iter().all(crate::state::is_local)))
    }

    /// Returns the units of all states, for figures that do not depend on the state.
    pub(super) fn of_any_state(sides: [&SideResults; 2]) -> Units {
        Units::among(sides, false)
    }

    /// Returns the units. States count only if all ranks are on one host.
    fn among(sides: [&SideResults; 2], is_local: bool) -> Units {
        let distances: Vec<_> = sides.iter().flat_map(|side| side.launched()).map(|l| l.distances).collect();
        let labels = States::new(&distances);
        let first = [0, sides[0].launched().len()];
        let state_of = |side: usize, launch: usize| match is_local {
            true => labels.of(first[side] + launch),
            false => LaunchState::In(0),
        };
        let turns = turns(sides);
        let unit = if turns.is_some() { Unit::Turn } else { Unit::Run };
        let is_looked_at = turns.as_ref().is_some_and(|(_, is_open)| *is_open);
        let all: [Vec<(UnitState, Vec<usize>)>; 2] = match turns {
            Some((pairs, _)) => {
                let has_one_state = !is_local || labels.distances_ns().len() <= 1;
                let state = |[a, b]: [usize; 2]| match [state_of(0, a), state_of(1, b)] {
                    [LaunchState::In(a), LaunchState::In(b)] if a == b => UnitState::In(a),
                    [LaunchState::Unknown, _] | [_, LaunchState::Unknown] if has_one_state => {
                        UnitState::In(0)
                    }
                    [LaunchState::Unknown, _] | [_, LaunchState::Unknown] => UnitState::Unknown,
                    _ => UnitState::Mixed,
                };
                [0, 1].map(|side| pairs.iter().map(|pair| (state(*pair), vec![pair[side]])).collect())
            }
            None => [0, 1].map(|side| runs(sides[side], |launch| state_of(side, launch))),
        };
        let count = |side: usize, state: usize| {
            all[side].iter().filter(|(of, _)| *of == UnitState::In(state)).count()
        };
        let number = if is_local { labels.distances_ns().len().max(1) } else { 1 };
        let common =
            |state: &usize| (count(0, *state).min(count(1, *state)), count(0, *state) + count(1, *state));
        let best = (0..number).rev().max_by_key(common).unwrap_or(0);
        let least = unit.least();
        let excluded = match () {
            () if common(&best).0 >= least => None,
            () if all.iter().any(|side| side.len() < least) => Some(Reason::FewUnits(unit)),
            () if all.iter().flatten().any(|(state, _)| *state == UnitState::Unknown) => {
                Some(Reason::UnknownState)
            }
            () => Some(Reason::MachineChanged),
        };
        let of = all.each_ref().map(Vec::len);
        let in_state = |units: &Vec<(UnitState, Vec<usize>)>| {
            let counted =
                units.iter().filter(|(state, _)| excluded.is_some() || *state == UnitState::In(best));
            counted.map(|(_, launches)| launches.clone()).collect::<Vec<_>>()
        };
        let chosen = all.each_ref().map(in_state);
        let core_to_core_ns = labels.distances_ns().get(best).copied();
        let state = StateOfSides {
            core_to_core_ns: core_to_core_ns.filter(|_| is_local && excluded.is_none()),
            units: [count(0, best), count(1, best)],
            of,
        };
        Units { unit, is_looked_at, sides: chosen, state, excluded }
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
                "the machine changed its state: at most {a} and {b} {what} of the sides are in the same one, and a verdict needs {} \
                 of each; ombx ab alternates the sides",
                self.unit.least()
            ),
            Some(Reason::UnknownState) => {
                "the state of the machine is unknown in too many launches: let ombx start the ranks \
                                           itself, on a host whose cores are free"
                    .into()
            }
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

/// Returns the launches of each run of a side and its most frequent state. Only launches in this state count.
fn runs(side: &SideResults, state_of: impl Fn(usize) -> LaunchState) -> Vec<(UnitState, Vec<usize>)> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for (at, launch) in side.launched().iter().enumerate() {
        runs.resize(runs.len().max(launch.run + 1), Vec::new());
        runs[launch.run].push(at);
    }
    let labelled = |launches: Vec<usize>| {
        let known = || launches.iter().filter_map(|at| in_state(state_of(*at)));
        let count = |state: usize| known().filter(|other| *other == state).count();
        match known().max_by_key(|state| (count(*state), std::cmp::Reverse(*state))) {
            None => (UnitState::Unknown, launches),
            Some(most) => {
                let is_in = |at: &usize| in_state(state_of(*at)) == Some(most);
                (UnitState::In(most), launches.into_iter().filter(is_in).collect())
            }
        }
    };
    runs.into_iter().map(labelled).collect()
}

fn in_state(state: LaunchState) -> Option<usize> {
    match state {
        LaunchState::In(state) => Some(state),
        LaunchState::Changed | LaunchState::Unknown => None,
    }
}

/// Returns the launches of both sides in each turn, and whether `ab` looked at them; `None` unless all launches are from turns of the
/// same comparison.
fn turns([base, new]: [&SideResults; 2]) -> Option<(Vec<[usize; 2]>, bool)> {
    let of = |side: &SideResults| {
        side.launched().iter().map(|launch| launch.turn.clone()).collect::<Option<Vec<_>>>()
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
