//! State of the machine in each launch: launches of different states are not compared.

use ombx_core::result::Run;

use super::comparison::{MIN_LAUNCHES, Note};
use crate::state::{Distances, OTHER_STATE};

/// Largest difference, as a fraction, that is attributed to the machine. A machine that changes its state changes in other ways too: runs
/// of one build then differ by tens of percent also within a state.
const OF_MACHINE: f64 = 0.5;

/// Largest difference between the sides' shares of launches in a state with which both sides count as measured in the same mixture of
/// states.
const ALIKE: f64 = 1.0 / 3.0;

/// Returns the latency between two cores that a run found, in nanoseconds.
pub(super) fn of_run(run: &Run) -> Option<f64> {
    Distances::of_run(run).before_ns
}

/// One launch of a side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaunchState {
    /// Latency between two cores just before the launch, in nanoseconds.
    pub(super) core_to_core_ns: Option<f64>,
    /// Whether the next launch of the side followed at once, as those of a run do.
    pub(super) has_successor: bool,
}

/// State of the machine in each launch of both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MachineStates {
    /// Number of states that were seen; 1 if a side does not know any.
    count: usize,
    /// Largest latency between cores divided by the smallest, of both sides; 1 if a side does not know any.
    variation: f64,
    /// Whether states change too often to compare within one, and both sides met them about equally often.
    is_mixture: bool,
    /// State of each launch. `None` if there are several and that of the launch is unknown, or changed before the next launch.
    of: [Vec<Option<usize>>; 2],
}

impl MachineStates {
    /// `took_turns`: the launches of the sides overlap in time.
    pub(super) fn of(sides: [&[LaunchState]; 2], took_turns: bool) -> MachineStates {
        let known =
            sides.map(|side| side.iter().filter_map(|launch| launch.core_to_core_ns).collect::<Vec<_>>());
        let mut all = known.concat();
        all.sort_by(f64::total_cmp);
        let states = all.chunk_by(|low, high| high / low <= OTHER_STATE).collect::<Vec<_>>();
        let variation = match &all[..] {
            [low, .., high] if known.iter().all(|side| !side.is_empty()) => high / low,
            _ => 1.0,
        };
        if states.len() <= 1 || known.iter().any(Vec::is_empty) {
            let of = sides.map(|side| vec![Some(0); side.len()]);
            return MachineStates { count: 1, variation, is_mixture: false, of };
        }
        let state_of = |launch: &LaunchState| {
            let ns = launch.core_to_core_ns?;
            states.iter().position(|state| state.first() <= Some(&ns) && Some(&ns) <= state.last())
        };
        let of: [Vec<Option<usize>>; 2] = sides.map(|side| {
            let before: Vec<Option<usize>> = side.iter().map(state_of).collect();
            let stayed = |at: usize| !side[at].has_successor || before.get(at + 1) == Some(&before[at]);
            (0..side.len()).map(|at| before[at].filter(|_| stayed(at))).collect()
        });
        let count_of = |side: usize, state: usize| of[side].iter().filter(|of| **of == Some(state)).count();
        let shared = |state: &usize| [0, 1].iter().all(|side| count_of(*side, *state) > 0);
        let compared = [0, 1]
            .map(|side| (0..states.len()).filter(shared).map(|state| count_of(side, state)).sum::<usize>());
        let share = |side: usize, state: &[f64]| {
            let is_in = |ns: &&f64| state.first() <= Some(*ns) && Some(*ns) <= state.last();
            known[side].iter().filter(is_in).count() as f64 / known[side].len() as f64
        };
        let alike = states.iter().all(|state| (share(0, state) - share(1, state)).abs() <= ALIKE);
        let is_mixture = !took_turns && compared.iter().any(|launches| *launches < MIN_LAUNCHES) && alike;
        let of = if is_mixture { sides.map(|side| vec![Some(0); side.len()]) } else { of };
        MachineStates { count: states.len(), variation, is_mixture, of }
    }

    /// Returns the number of groups of launches that are compared, each by itself.
    pub(super) fn groups(&self) -> usize {
        if self.is_mixture { 1 } else { self.count }
    }

    /// Returns whether all launches are compared, because states change too often to compare within one.
    pub(super) fn is_mixture(&self) -> bool {
        self.is_mixture
    }

    /// Returns the smallest difference, as a fraction, that counts as one of the sides if they were measured one after the other: by
    /// so much the latency between cores varied from launch to launch.
    pub(super) fn least_difference(&self) -> f64 {
        if self.count > 1 { OF_MACHINE } else { (self.variation - 1.0).min(OF_MACHINE) }
    }

    /// Returns the state of a launch of the base (0) or the new side (1).
    pub(super) fn of_launch(&self, side: usize, launch: usize) -> Option<usize> {
        self.of[side].get(launch).copied().unwrap_or(Some(0))
    }

    /// Returns what people should know.
    pub(super) fn note(&self, sides: [&[LaunchState]; 2]) -> Option<Note> {
        (self.count > 1).then(|| {
            let [a, b] = sides.map(range);
            let in_state = |side: usize, state| self.of[side].iter().filter(|of| **of == Some(state)).count();
            let shared: Vec<String> = (0..self.count)
                .map(|state| [0, 1].map(|side| in_state(side, state)))
                .filter(|[base, new]| *base > 0 && *new > 0)
                .map(|[base, new]| format!("{base} of base with {new} of new"))
                .collect();
            let conclusion = match &shared[..] {
                _ if self.is_mixture => {
                    "states changed too often to compare launches within one, and both sides met them about equally often"
                        .to_owned()
                }
                [] => "the sides have no state in common; ombx ab alternates the sides".to_owned(),
                shared => format!("launches are compared within a state, {}", shared.join(" and ")),
            };
            let text = format!(
                "the machine changed: a cache line took {a} from core to core in base, {b} in new: {conclusion}"
            );
            Note { code: "machine_state", text }
        })
    }
}

fn range(side: &[LaunchState]) -> String {
    let known = || side.iter().filter_map(|launch| launch.core_to_core_ns);
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    if high <= low * OTHER_STATE { format!("{low:.0} ns") } else { format!("{low:.0} to {high:.0} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(latencies: &[Option<f64>]) -> Vec<LaunchState> {
        let last = latencies.len() - 1;
        let launch =
            |(at, ns): (usize, &Option<f64>)| LaunchState { core_to_core_ns: *ns, has_successor: at < last };
        latencies.iter().enumerate().map(launch).collect()
    }

    fn states(base: &[Option<f64>], new: &[Option<f64>]) -> MachineStates {
        MachineStates::of([&launches(base), &launches(new)], false)
    }

    #[test]
    fn launches_have_the_state_before_and_after_them() {
        let [fast, slow] = [Some(58.0), Some(275.0)];
        assert_eq!(states(&[fast, Some(61.0), Some(80.0)], &[Some(55.0)]).groups(), 1);
        let both = states(&[fast; 3], &[slow, slow, Some(60.0), slow]);
        assert_eq!((both.groups(), &both.of[0][..]), (2, &[Some(0); 3][..]));
        // The second and third launch of the new side began in one state and ended in the other, or nobody knows.
        assert_eq!(both.of[1], [Some(1), None, None, Some(1)]);
        // A busy host may not know the latency of a launch.
        assert_eq!(states(&[fast; 2], &[slow, None, slow]).of[1], [None, None, Some(1)]);
        // A side of an older version knows none.
        assert_eq!(states(&[fast, slow], &[None; 4]), states(&[fast; 2], &[fast; 4]));
    }

    #[test]
    fn sides_with_the_same_mixture_of_states_are_compared_as_a_whole() {
        let flickering = |slow: usize| -> Vec<Option<f64>> {
            (0..9).map(|at| Some(if at % 2 == 1 && at / 2 < slow { 275.0 } else { 58.0 })).collect()
        };
        let [often, seldom] = [4, 3].map(flickering);
        let mixture = states(&often, &seldom);
        assert!(mixture.is_mixture());
        assert_eq!((mixture.groups(), &mixture.of[1][..]), (1, &[Some(0); 9][..]));
        assert!(!states(&often, &[Some(58.0); 9]).is_mixture(), "the sides differ");
        let turns = MachineStates::of([&launches(&often), &launches(&seldom)], true);
        assert!(!turns.is_mixture(), "launches that alternate meet the same states");
    }

    #[test]
    fn a_launch_without_successor_has_the_state_before_it() {
        let alone = |ns| LaunchState { core_to_core_ns: Some(ns), has_successor: false };
        let found = MachineStates::of([&[alone(58.0), alone(275.0)], &[alone(275.0)]], false);
        assert_eq!(found.of, [vec![Some(0), Some(1)], vec![Some(1)]]);
    }
}
