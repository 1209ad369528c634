//! Figures of a row in each state of the machine, for comparisons of results of several days.

use ombx_core::result::Measurement;

use crate::state::{LaunchState, States, of_distances};

/// Figure of a row in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StateFigure {
    /// Median time of a leg in nanoseconds.
    pub(crate) median_ns: f64,
    /// Its interval.
    pub(crate) ends_ns: Option<[f64; 2]>,
    /// Time of a cache line between two cores in this state; `None` if it is unknown.
    pub(crate) core_to_core_ns: Option<f64>,
}

/// Returns the figure of a row in the most frequent state, then those in the other states whose distance is known. `states` are those of
/// the launches of the row's results.
pub(crate) fn figures(row: &Measurement, states: &States) -> Vec<StateFigure> {
    let Some(summary) = &row.summary else { return Vec::new() };
    let over = row.launches.as_ref().map_or(&[][..], |over| &over.states);
    if over.is_empty() {
        let core_to_core_ns = match states.of(0) {
            LaunchState::In(state) => states.distances_ns().get(state).copied(),
            LaunchState::Changed | LaunchState::Unknown => None,
        };
        return vec![StateFigure { median_ns: summary.median, ends_ns: summary.ci95, core_to_core_ns }];
    }
    let mut all: Vec<StateFigure> = Vec::new();
    for state in over {
        let known = |one: &StateFigure| one.core_to_core_ns == state.core_to_core_ns;
        // Two groups of medians in one state are no two states.
        if all.is_empty() || state.core_to_core_ns.is_some() && !all.iter().any(known) {
            let (median_ns, ends_ns, core_to_core_ns) =
                (state.median_ns, state.ends_ns, state.core_to_core_ns);
            all.push(StateFigure { median_ns, ends_ns, core_to_core_ns });
        }
    }
    all
}

/// Distance of a state, and what belongs to it.
pub(crate) type OfState<T> = (Option<f64>, Vec<T>);

/// Divides things by the state of the machine: neighbours in distance that differ by at most a factor of 1.5 are one state. Those whose
/// state is unknown belong to none, unless one state alone is known, or fewer than half have one: then all are together, and the
/// distance is `None`.
pub(crate) fn divided<T>(all: Vec<T>, distance: impl Fn(&T) -> Option<f64>) -> (Vec<OfState<T>>, usize) {
    let mut known: Vec<f64> = all.iter().filter_map(&distance).collect();
    known.sort_by(f64::total_cmp);
    let states = of_distances(&known);
    if states.len() < 2 || known.len() * 2 < all.len() {
        return (vec![(None, all)], 0);
    }
    let middle = |state: &[f64]| ombx_core::stats::median(state);
    let mut of_states: Vec<OfState<T>> = states.iter().map(|state| (middle(state), Vec::new())).collect();
    let mut unknown = 0;
    for one in all {
        let found = distance(&one)
            .and_then(|ns| states.iter().position(|state| state.last().is_some_and(|last| ns <= *last)));
        match found {
            Some(state) => of_states[state].1.push(one),
            None => unknown += 1,
        }
    }
    (of_states, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_divided_by_state() {
        let by = |all: &[f64]| {
            let known = |ns: &f64| Some(*ns).filter(|ns| *ns > 0.0);
            let (states, unknown) = divided(all.to_vec(), known);
            (states.iter().map(|(ns, of)| (*ns, of.len())).collect::<Vec<_>>(), unknown)
        };
        assert_eq!(by(&[50.0, 250.0, 55.0, 0.0]), (vec![(Some(52.5), 2), (Some(250.0), 1)], 1));
        assert_eq!(by(&[50.0, 0.0, 55.0]), (vec![(None, 3)], 0));
        assert_eq!(by(&[50.0, 250.0, 0.0, 0.0, 0.0]), (vec![(None, 5)], 0), "most are unknown");
    }
}
