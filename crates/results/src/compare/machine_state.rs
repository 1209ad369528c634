//! State of the machine in each launch: launches of different states are not compared.

use ombx_core::result::Run;

use super::comparison::{MIN_LAUNCHES, Note};

/// Ratio of neighbouring latencies between cores above which the machine was in another state. The latency within a state varies by
/// about a tenth.
const OTHER_STATE: f64 = 1.5;

/// Returns the latency between two cores that a run found, in nanoseconds.
pub(super) fn of_run(run: &Run) -> Option<f64> {
    run.plan.get("core_to_core_ns")?.parse().ok().filter(|ns: &f64| ns.is_finite() && *ns > 0.0)
}

/// States of the machine in the launches of both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MachineState {
    /// The same in all launches that know it.
    Same,
    /// Several. The latencies of one in which both sides have enough launches.
    Common([f64; 2]),
    /// Several, and in none of them do both sides have enough launches.
    Different,
}

impl MachineState {
    pub(super) fn of([base, new]: [&[Option<f64>]; 2]) -> MachineState {
        let [base, new] = [base, new].map(|side| side.iter().flatten().copied().collect::<Vec<f64>>());
        if base.is_empty() || new.is_empty() {
            return MachineState::Same;
        }
        let mut all = [&base[..], &new[..]].concat();
        all.sort_by(f64::total_cmp);
        let states: Vec<[f64; 2]> = all
            .chunk_by(|low, high| high / low <= OTHER_STATE)
            .filter_map(|state| Some([*state.first()?, *state.last()?]))
            .collect();
        if states.len() <= 1 {
            return MachineState::Same;
        }
        let of_state =
            |side: &[f64], state: [f64; 2]| side.iter().filter(|ns| is_within(state, **ns)).count();
        let fewest = |state: &[f64; 2]| of_state(&base, *state).min(of_state(&new, *state));
        match states.into_iter().max_by_key(fewest) {
            Some(state) if fewest(&state) >= MIN_LAUNCHES => MachineState::Common(state),
            _ => MachineState::Different,
        }
    }

    /// Returns whether a launch counts.
    pub(super) fn admits(&self, latency_ns: Option<f64>) -> bool {
        match self {
            MachineState::Same | MachineState::Different => true,
            MachineState::Common(state) => latency_ns.is_none_or(|ns| is_within(*state, ns)),
        }
    }

    /// Returns what people should know.
    pub(super) fn note(&self, sides: [&[Option<f64>]; 2]) -> Option<Note> {
        let conclusion = match self {
            MachineState::Same => return None,
            MachineState::Common(state) => {
                let [a, b] = sides.map(|side| side.iter().flatten().filter(|ns| is_within(*state, **ns)).count());
                format!("only the launches of one state are compared, {a} of base and {b} of new")
            }
            MachineState::Different => {
                "too few launches of both sides share a state, so there is no verdict; ombx ab alternates the sides".into()
            }
        };
        let [a, b] = sides.map(range);
        let text = format!(
            "the machine changed: a cache line took {a} from core to core in base, {b} in new: {conclusion}"
        );
        Some(Note { code: "machine_state", text })
    }
}

fn is_within([low, high]: [f64; 2], ns: f64) -> bool {
    (low..=high).contains(&ns)
}

fn range(side: &[Option<f64>]) -> String {
    let known = || side.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    if high <= low * OTHER_STATE { format!("{low:.0} ns") } else { format!("{low:.0} to {high:.0} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(base: &[f64], new: &[f64]) -> MachineState {
        let [base, new] = [base, new].map(|side| side.iter().copied().map(Some).collect::<Vec<_>>());
        MachineState::of([&base, &new])
    }

    #[test]
    fn launches_of_one_state_are_compared() {
        assert_eq!(state(&[58.0, 61.0, 70.0], &[55.0, 80.0]), MachineState::Same);
        assert_eq!(state(&[58.0; 9], &[275.0; 9]), MachineState::Different);
        let mixed = [58.0, 60.0, 57.0, 59.0, 275.0, 270.0];
        assert_eq!(state(&[58.0; 9], &mixed), MachineState::Common([57.0, 60.0]));
        assert_eq!(state(&mixed, &[275.0; 9]), MachineState::Different);
        assert_eq!(MachineState::of([&[Some(58.0); 4], &[None; 4]]), MachineState::Same);
        // A busy host may not know the latency of a launch.
        assert_eq!(MachineState::of([&[Some(58.0); 4], &[Some(300.0), None]]), MachineState::Different);
        let common = state(&[58.0; 9], &mixed);
        assert!(common.admits(Some(59.0)) && !common.admits(Some(275.0)));
    }
}
