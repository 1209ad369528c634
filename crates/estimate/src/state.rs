//! States of the machine: which launches ran in the same one.
//!
//! Virtual machines and power management change for seconds or minutes how long a cache line takes from one core to another, and with
//! it all messages within a host. This distance, before and after a launch, labels the state of the launch. It is a label only:
//! within a state it predicts nothing.

use ombx_record::{
    order::sort,
    result::{Measurement, Run, StateFigure},
    stats::median,
};

/// Name in the plan of a run of the distance before it. Estimates over launches have those of all launches, separated by commas.
pub const BEFORE: &str = "core_to_core_ns";

/// Ratio of neighbouring distances above which they belong to different states. 2.0 merges states 55 and 95 ns apart; at 1.5, fewer
/// than 1 in 100 sets of launches in one state are divided.
pub const OTHER_STATE: f64 = 1.5;
/// Smallest gap between the logarithms of medians that divides launches.
const LEAST_GAP: f64 = 0.223_143_551_314_209_76; // ln 1.25
/// The gap must exceed the range of the launches on either side by this factor: normal launches of one state are divided in 4.3 % of rows
/// of six whatever their scatter (8.9 % by 1.5), in 2.1 % of seven, and in fewer of more.
const GAP_TO_RANGE: f64 = 2.0;
/// Minimum number of launches on either side of the gap.
const LEAST_IN_STATE: usize = 2;
/// Minimum number of launches that medians can divide.
const LEAST_DIVIDED: usize = 6;

/// Time that a cache line takes from one core to another before and after a launch, in nanoseconds. `None` if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Distances {
    /// Just before the launch.
    pub before_ns: Option<f64>,
    /// Just after the launch.
    pub after_ns: Option<f64>,
}

impl Distances {
    /// Returns the distances of a run.
    pub fn of_run(run: &Run) -> Distances {
        let before = || run.plan.get(BEFORE)?.trim().parse().ok();
        let after = run.launched.and_then(|launched| launched.core_to_core_ns);
        Distances { before_ns: before().filter(is_distance), after_ns: after.filter(is_distance) }
    }

    fn known(&self) -> impl Iterator<Item = f64> {
        [self.before_ns, self.after_ns].into_iter().flatten().filter(is_distance)
    }

    /// Returns the state of the launch among these, each with its ascending distances.
    fn state(&self, states: &[&[f64]]) -> LaunchState {
        let state_of = |ns: f64| states.iter().position(|state| state.last().is_some_and(|last| ns <= *last));
        match self.before_ns.zip(self.after_ns) {
            None => LaunchState::Unknown,
            Some((before, after)) => match (state_of(before), state_of(after)) {
                (Some(state), Some(end)) if state == end => LaunchState::In(state),
                _ => LaunchState::Changed,
            },
        }
    }
}

fn is_distance(ns: &f64) -> bool {
    ns.is_finite() && *ns > 0.0
}

/// What the distances say about the state of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchState {
    /// The launch, or every launch of a run or turn that counts, began and ended in this state: its number, from 0, in the order of distances.
    In(usize),
    /// The machine changed its state during the launch or turn.
    Changed,
    /// One of the distances is unknown.
    Unknown,
}

/// States of the machine in launches that are looked at together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct States {
    /// Median distance of each state, in nanoseconds, ascending.
    distances_ns: Vec<f64>,
    of: Vec<LaunchState>,
}

impl States {
    /// Labels launches by their distances: neighbours in size that differ by at most [`OTHER_STATE`] are one state.
    pub fn new(launches: &[Distances]) -> States {
        let mut all: Vec<f64> = launches.iter().flat_map(Distances::known).collect();
        sort(&mut all);
        let states = of_distances(&all);
        States {
            distances_ns: states.iter().filter_map(|state| median(state)).collect(),
            of: launches.iter().map(|launch| launch.state(&states)).collect(),
        }
    }

    /// Returns the median distance of each state, in nanoseconds, ascending. Empty if no distance is known.
    pub fn distances_ns(&self) -> &[f64] {
        &self.distances_ns
    }

    /// Returns the state of a launch; unknown for a launch that was not labelled.
    pub fn state(&self, launch: usize) -> LaunchState {
        self.of.get(launch).copied().unwrap_or(LaunchState::Unknown)
    }
}

/// Divides ascending distances by state: neighbours that differ by at most [`OTHER_STATE`] are one.
pub(crate) fn of_distances(ascending: &[f64]) -> Vec<&[f64]> {
    ascending.chunk_by(|low, high| high / low <= OTHER_STATE).collect()
}

/// Returns the median distance in each state that the launches of a run met, such as `35 or 178 ns`, and their number; `None` if none is
/// known. The plan of several launches has the distances of all.
pub fn in_words(run: &Run) -> Option<(usize, String)> {
    let all = run.plan.get(BEFORE)?.split(',').filter_map(|ns| ns.trim().parse().ok());
    let launches: Vec<Distances> =
        all.map(|ns: f64| Distances { before_ns: Some(ns), after_ns: None }).collect();
    let states = States::new(&launches);
    let words: Vec<String> = states.distances_ns().iter().map(|ns| format!("{ns:.0}")).collect();
    let text = match words.split_last()? {
        (only, []) => format!("{only} ns"),
        (last, others) => format!("{} or {last} ns", others.join(", ")),
    };
    Some((words.len(), text))
}

/// Launches of one row in one state.
#[derive(Debug, Clone, PartialEq)]
pub struct Launches {
    /// Places among the launches of the row, ascending.
    pub at: Vec<usize>,
    /// Distance of the state, in nanoseconds; `None` if it is unknown.
    pub core_to_core_ns: Option<f64>,
}

/// Divides the launches of a row by state, the most frequent state first; of two that are equally frequent, the faster one.
///
/// `launches` has the number of each launch of the row in `states`, and `medians` their medians. A distance labels the launches that began
/// and ended in its state, and no others. Where launches have one, those that changed their state, or whose state is unknown, belong to
/// none; but where one distance was seen, in fewer than half of the launches, all are of one unknown state. Launches of one state are
/// divided, again and again, where their medians form two groups ([`gap`]).
pub fn divide(medians: &[f64], launches: &[usize], states: &States) -> Vec<Launches> {
    let of = |at: usize| launches.get(at).map_or(LaunchState::Unknown, |launch| states.state(*launch));
    let in_state = |state: usize| (0..medians.len()).filter(move |at| of(*at) == LaunchState::In(state));
    let distances = states.distances_ns();
    let labelled: usize = (0..distances.len()).map(|state| in_state(state).count()).sum();
    let are_few = labelled * 2 < medians.len();
    let by_distance: Vec<Launches> = if labelled == 0 || distances.len() == 1 && are_few {
        vec![Launches { at: (0..medians.len()).collect(), core_to_core_ns: None }]
    } else {
        let of_state = |(state, ns): (usize, &f64)| Launches {
            at: in_state(state).collect(),
            core_to_core_ns: Some(*ns),
        };
        distances.iter().enumerate().map(of_state).filter(|launches| !launches.at.is_empty()).collect()
    };
    let mut all: Vec<Launches> = by_distance.into_iter().flat_map(|one| divided(one, medians)).collect();
    let middle = |one: &Launches| median(&one.at.iter().map(|at| medians[*at]).collect::<Vec<_>>());
    all.sort_by(|a, b| {
        let faster = || middle(a).unwrap_or(0.0).total_cmp(&middle(b).unwrap_or(0.0));
        b.at.len().cmp(&a.at.len()).then_with(faster)
    });
    all
}

/// Divides launches of one distance as long as their medians form two groups.
fn divided(launches: Launches, medians: &[f64]) -> Vec<Launches> {
    let values: Vec<f64> = launches.at.iter().map(|at| medians[*at]).collect();
    let Some(least_of_slow) = gap(&values) else { return vec![launches] };
    let (slow, fast) = launches.at.iter().partition(|at| medians[**at] >= least_of_slow);
    let parts = [fast, slow].map(|at| Launches { at, ..launches.clone() });
    parts.into_iter().flat_map(|part| divided(part, medians)).collect()
}

/// Part of the launches on a side of a gap, at each end, whose distance from the others does not count.
const OUTSIDE: f64 = 0.1;

/// Returns the smallest value above the gap that divides positive values; `None` if they are one group. The largest gap between neighbours,
/// with at least two values on each side, must exceed ln 1.25 and twice the range of the middle 80 % of either side; from 6 values on.
pub fn gap(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < LEAST_DIVIDED || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let mut sorted: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    sort(&mut sorted);
    let gaps = (LEAST_IN_STATE..=n - LEAST_IN_STATE).map(|at| (sorted[at] - sorted[at - 1], at));
    let (gap, at) = gaps.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let range = |side: &[f64]| {
        let outside = (OUTSIDE * side.len() as f64) as usize;
        side[side.len() - 1 - outside] - side[outside]
    };
    let widest = range(&sorted[..at]).max(range(&sorted[at..]));
    let least = values.iter().copied().filter(|value| value.ln() >= sorted[at]).fold(f64::INFINITY, f64::min);
    (gap > LEAST_GAP && gap > GAP_TO_RANGE * widest).then_some(least)
}

/// Returns whether two distances are of the same state.
pub fn is_same(one_ns: f64, other_ns: f64) -> bool {
    one_ns.max(other_ns) <= OTHER_STATE * one_ns.min(other_ns)
}

/// Returns whether distances between cores of the launching host say something about a run: all its ranks are on one host.
pub fn is_local(run: &Run) -> bool {
    run.places.windows(2).all(|pair| pair[0].host == pair[1].host)
}

/// Returns the figure of a row in the most frequent state, then those in the other states whose distance is known. `states` are those of
/// the launches of the row's results.
pub fn state_figures(row: &Measurement, states: &States) -> Vec<StateFigure> {
    let Some(summary) = &row.summary else { return Vec::new() };
    let over = row.launches.as_ref().map_or(&[][..], |over| &over.states);
    if over.is_empty() {
        let core_to_core_ns = match states.state(0) {
            LaunchState::In(state) => states.distances_ns().get(state).copied(),
            LaunchState::Changed | LaunchState::Unknown => None,
        };
        let (median_ns, ends_ns) = (summary.median, summary.ci95);
        return vec![StateFigure { median_ns, ends_ns, core_to_core_ns, ..StateFigure::default() }];
    }
    let mut all: Vec<StateFigure> = Vec::new();
    for state in over {
        let known = |one: &StateFigure| one.core_to_core_ns == state.core_to_core_ns;
        // Two groups of medians in one state are no two states.
        if all.is_empty() || state.core_to_core_ns.is_some() && !all.iter().any(known) {
            all.push(state.clone());
        }
    }
    all
}

/// Distance of a state, and what belongs to it.
pub(crate) type OfState<T> = (Option<f64>, Vec<T>);

/// Divides things by the state of the machine: neighbours in distance that differ by at most a factor of 1.5 are one state. Those whose
/// state is unknown belong to none, unless one state alone is known, or fewer than half have one: then all are together, and the
/// distance is `None`.
pub fn divided_by_state<T>(all: Vec<T>, distance: impl Fn(&T) -> Option<f64>) -> (Vec<OfState<T>>, usize) {
    let mut known: Vec<f64> = all.iter().filter_map(&distance).collect();
    sort(&mut known);
    let states = of_distances(&known);
    if states.len() < 2 || known.len() * 2 < all.len() {
        return (vec![(None, all)], 0);
    }
    let middle = |state: &[f64]| ombx_record::stats::median(state);
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
    use crate::state::*;

    fn launch(before_ns: f64, after_ns: f64) -> Distances {
        let known = |ns| Some(ns).filter(is_distance);
        Distances { before_ns: known(before_ns), after_ns: known(after_ns) }
    }

    #[test]
    fn a_launch_has_the_state_in_which_it_began_and_ended() {
        let launches = [launch(51.0, 60.0), launch(250.0, 240.0), launch(52.0, 251.0), launch(0.0, 51.0)];
        let states = States::new(&launches);
        assert_eq!(states.distances_ns(), [51.5, 250.0]);
        let of: Vec<LaunchState> = (0..5).map(|at| states.state(at)).collect();
        use LaunchState::{Changed, In, Unknown};
        assert_eq!(of, [In(0), In(1), Changed, Unknown, Unknown]);
        assert_eq!(States::new(&[launch(55.0, 55.0), launch(95.0, 95.0)]).distances_ns().len(), 2);
        assert!(is_same(60.0, 41.0) && !is_same(55.0, 95.0));
        assert!(States::new(&[Distances::default()]).distances_ns().is_empty());
    }

    #[test]
    fn each_state_has_its_median_in_words() {
        let of = |distances: &str| {
            let mut run = ombx_testkit::golden().run;
            run.plan.insert(BEFORE.into(), distances.into());
            in_words(&run)
        };
        assert_eq!((in_words(&ombx_testkit::golden().run), of("unknown")), (None, None));
        assert_eq!(of("35.344").unwrap(), (1, "35 ns".into()));
        assert_eq!(of("170, 34, 36, 180, 35").unwrap(), (2, "35 or 175 ns".into()));
        assert_eq!(of("170,34,400").unwrap(), (3, "34, 170 or 400 ns".into()));
    }

    #[test]
    fn states_are_divided_by_distance_and_none_is_pooled() {
        let slow = |at: usize| at % 4 == 3;
        let states = States::new(&[0; 12].map(|_| launch(0.0, 0.0)));
        let medians: Vec<f64> = (0..12).map(|at| 100.0 + at as f64).collect();
        let launches: Vec<usize> = (0..12).collect();
        assert_eq!(divide(&medians, &launches, &states).len(), 1);
        let distances: Vec<Distances> =
            (0..12).map(|at| if slow(at) { launch(250.0, 250.0) } else { launch(51.0, 51.0) }).collect();
        let [often, seldom] = &divide(&medians, &launches, &States::new(&distances))[..] else { panic!() };
        assert_eq!((often.at.len(), often.core_to_core_ns), (9, Some(51.0)));
        assert_eq!((&seldom.at[..], seldom.core_to_core_ns), (&[3, 7, 11][..], Some(250.0)));
        // A launch without a label belongs to no state where several are known, also if most lack one.
        let mut some = distances.clone();
        some[0].after_ns = None;
        assert_eq!(divide(&medians, &launches, &States::new(&some))[0].at.len(), 8);
        let few: Vec<Distances> =
            (0..12).map(|at| if at > 6 { distances[at] } else { launch(0.0, 51.0) }).collect();
        let found = divide(&medians, &launches, &States::new(&few));
        assert_eq!(found.iter().map(|state| state.at.len()).collect::<Vec<_>>(), [3, 2]);
        // One distance labels its own launches, which are the row's if they are half of them.
        let labelled = |count: usize| {
            let of = |at: usize| if at < count { launch(51.0, 51.0) } else { launch(0.0, 0.0) };
            let found = divide(&medians, &launches, &States::new(&(0..12).map(of).collect::<Vec<_>>()));
            found.iter().map(|state| (state.at.len(), state.core_to_core_ns)).collect::<Vec<_>>()
        };
        assert_eq!([1, 5, 6].map(labelled), [vec![(12, None)], vec![(12, None)], vec![(6, Some(51.0))]]);
    }

    #[test]
    fn medians_form_two_groups_where_a_gap_is_wider_than_either() {
        let modes = [58.0, 17.0, 58.1, 17.1, 57.9, 58.2, 17.2, 58.3, 16.9];
        assert_eq!(gap(&modes), Some(57.9));
        let launches: Vec<usize> = (0..9).collect();
        let [slow, fast] = &divide(&modes, &launches, &States::default())[..] else { panic!() };
        assert_eq!((slow.at.len(), &fast.at[..]), (5, &[1, 3, 6, 8][..]));
        // Three groups, and a group of ten with a launch apart.
        let three = [10.0, 10.0, 10.1, 14.0, 14.0, 14.1, 90.0, 90.0, 90.1];
        let found = divide(&three, &launches, &States::default());
        assert_eq!(found.iter().map(|state| state.at.len()).collect::<Vec<_>>(), [3, 3, 3]);
        let mut wide = vec![10.0; 10];
        wide.extend([14.0, 20.0, 20.0]);
        assert_eq!(gap(&wide), Some(20.0));
        // One launch far away is no state, nor are two of five, nor a gap of 20 %.
        assert_eq!(gap(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 30.0]), None);
        assert_eq!(gap(&modes[..5]), None);
        assert_eq!(gap(&[10.0, 10.0, 10.0, 12.0, 12.0, 12.0]), None);
    }

    #[test]
    fn results_are_divided_by_state() {
        let by = |all: &[f64]| {
            let known = |ns: &f64| Some(*ns).filter(|ns| *ns > 0.0);
            let (states, unknown) = divided_by_state(all.to_vec(), known);
            (states.iter().map(|(ns, of)| (*ns, of.len())).collect::<Vec<_>>(), unknown)
        };
        assert_eq!(by(&[50.0, 250.0, 55.0, 0.0]), (vec![(Some(52.5), 2), (Some(250.0), 1)], 1));
        assert_eq!(by(&[50.0, 0.0, 55.0]), (vec![(None, 3)], 0));
        assert_eq!(by(&[50.0, 250.0, 0.0, 0.0, 0.0]), (vec![(None, 5)], 0), "most are unknown");
    }
}
