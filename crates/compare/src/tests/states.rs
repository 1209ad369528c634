//! Machines that change their state, and turns that files keep.

use crate::tests::*;

/// Returns a run of launches with these distances before and after each, whose times are `slower` and scatter by 1 %.
fn run(number: usize, slower: f64, launches: &[(f64, f64)], noise: &mut Noise) -> Vec<RunWithRows> {
    let rows = rows(3);
    let launch = |(at, (before, after)): (usize, &(f64, f64))| {
        let mut run = run_at(20 * number + at);
        let known = |ns: f64| (ns > 0.0).then_some(ns);
        run.plan.clear();
        run.plan.extend(known(*before).map(|ns| (state::BEFORE.to_owned(), ns.to_string())));
        run.launched = Some(Launched { core_to_core_ns: known(*after), ..Launched::default() });
        run.plan.insert("launch".into(), (at + 1).to_string());
        run.plan.insert("order".into(), (100 * number + at + 1).to_string());
        let scatter = |row: &Measurement| {
            let of_state = if *after > 150.0 { 3.5 } else { 1.0 };
            let median =
                row.summary.as_ref().unwrap().median * slower * of_state * (0.01 * noise.normal()).exp();
            Measurement { summary: Summary::new(&[median; 6]), ..row.clone() }
        };
        RunWithRows { rows: rows.iter().map(scatter).collect(), ..RunWithRows::new(run) }
    };
    launches.iter().enumerate().map(launch).collect()
}

fn side_of(runs: impl IntoIterator<Item = Vec<RunWithRows>>) -> SideResults {
    let mut side = SideResults::named("x");
    runs.into_iter().flatten().for_each(|launch| side.run(&launch));
    side
}

const FAST: (f64, f64) = (58.0, 61.0);
const SLOW: (f64, f64) = (275.0, 270.0);
const UNKNOWN: (f64, f64) = (58.0, 0.0);

/// Compares sides of runs, each with the distances of its launches. The new side is 20 % slower in the same state.
fn compared_runs(base: &[[(f64, f64); 3]], new: &[[(f64, f64); 3]]) -> Comparison {
    let mut noise = Noise::new(7);
    let base = side_of((0..).zip(base).map(|(at, run_of)| run(at, 1.0, run_of, &mut noise)));
    let new = side_of((100..).zip(new).map(|(at, run_of)| run(at, 1.2, run_of, &mut noise)));
    compared(&base, &new)
}

#[test]
fn runs_are_compared_in_the_most_frequent_state_of_both_sides() {
    let same = compared_runs(&[[FAST; 3]; 4], &[[FAST; 3]; 4]);
    assert_eq!((same.counts().worse, same.state.units, same.state.of), (3, [4, 4], [4, 4]));
    assert!(same.state.core_to_core_ns.is_some_and(|ns| (58.0..=61.0).contains(&ns)));
    assert!(same.notes.iter().all(|note| note.code != "machine_state"));
    // A run counts in its most frequent state, with the launches of that state only.
    let some = compared_runs(
        &[[FAST, FAST, SLOW]; 4],
        &[[FAST; 3], [FAST; 3], [FAST; 3], [SLOW; 3], [UNKNOWN, FAST, FAST]],
    );
    assert_eq!((some.counts().worse, some.state.units, some.state.of), (3, [4, 4], [4, 5]));
    for case in &some.cases {
        assert!((0.17..0.23).contains(&case.change.estimate), "{case:?}");
        assert!(case.power.unwrap().detectable <= case.change.estimate, "{case:?}");
    }
    assert!(
        some.notes
            .iter()
            .any(|note| note.text.contains("4 of 4 runs of base and 4 of 5 of new are compared"))
    );
}

#[test]
fn runs_of_different_or_unknown_states_have_no_verdict() {
    for (new, reason) in [
        ([[SLOW; 3]; 4], Reason::MachineChanged),
        ([[FAST; 3], [FAST; 3], [SLOW; 3], [SLOW; 3]], Reason::MachineChanged),
        ([[UNKNOWN; 3]; 4], Reason::UnknownState),
    ] {
        let comparison = compared_runs(&[[FAST; 3]; 4], &new);
        assert!(
            comparison.cases.iter().all(|case| case.verdict == Verdict::Undecided(reason.clone())),
            "{reason}"
        );
        assert_eq!((comparison.undecided().count(), comparison.more_could_decide()), (3, true));
    }
    // Nine launches of one run are one run.
    let one = compared_runs(&[[FAST; 3]; 3], &[[FAST; 3]; 4]);
    assert_eq!(one.cases[0].verdict, Verdict::Undecided(Reason::FewUnits(Unit::Run)));
    assert_eq!(one.cases[0].base.values.len(), 9);
}

/// The ratio of few runs is that of the figures beside it, which are of one state.
#[test]
fn figures_and_ratio_of_few_runs_agree_and_pool_no_states() {
    let notes = |comparison: &Comparison| {
        let of_state = comparison.notes.iter().filter(|note| note.code == "machine_state");
        of_state.map(|note| note.text.clone()).collect::<String>()
    };
    let check = |comparison: &Comparison, launches: usize, expected: std::ops::Range<f64>| {
        for case in &comparison.cases {
            assert_eq!([&case.base, &case.new].map(|side| side.values.len()), [launches; 2], "{case:?}");
            let ratio = case.new.median / case.base.median;
            let slower = if case.id.metric == Metric::Bandwidth { 1.0 / ratio } else { ratio };
            assert!((slower - 1.0 - case.change.estimate).abs() < 1e-9, "{case:?}");
            assert!(expected.contains(&case.change.estimate), "{case:?}");
        }
    };
    let common = compared_runs(&[[FAST, SLOW, FAST], [FAST; 3]], &[[SLOW, FAST, FAST], [FAST; 3]]);
    check(&common, 5, 0.15..0.25);
    // A run of another state, too, has no part in them.
    let some = compared_runs(&[[FAST; 3], [SLOW; 3]], &[[FAST; 3]]);
    assert!(
        notes(&some).contains("the figures are those of 1 of 2 runs of base and 1 of 1 of new"),
        "{some:?}"
    );
    let apart = compared_runs(&[[FAST; 3]], &[[SLOW, FAST, SLOW]]);
    assert!(apart.cases.iter().all(|case| case.base.values.len() == 3 && case.new.values.len() == 2));
    assert!(notes(&apart).contains("the state that each side met most often, and these differ"), "{apart:?}");
}

/// One turn of twelve took ten times as long on the new side.
#[test]
fn a_turn_that_alone_prevents_a_verdict_is_named() {
    let compared_turns = |spoiled: Option<usize>| {
        let mut noise = Noise::new(3);
        let mut sides = [1.0, 1.0].map(|slower| run(0, slower, &[FAST; 9], &mut noise));
        for row in spoiled.iter().flat_map(|at| sides[1][*at].rows.clone()).collect::<Vec<_>>() {
            let median = row.summary.as_ref().unwrap().median;
            let slow = Measurement { summary: Summary::new(&[10.0 * median; 6]), ..row };
            let rows = &mut sides[1][spoiled.unwrap()].rows;
            let at = rows.iter().position(|row| row.key == slow.key).unwrap();
            rows[at] = slow;
        }
        let [base, new] = sides.map(|launches| as_turns(side_of([launches]), false));
        compared(&base, &new)
    };
    let calm = compared_turns(None);
    assert!(calm.cases.iter().all(|case| case.verdict == Verdict::Same && case.outlying_turn.is_none()));
    for case in compared_turns(Some(4)).cases {
        assert!(matches!(case.verdict, Verdict::Undecided(_)), "{case:?}");
        let turn = case.outlying_turn.unwrap();
        assert!(turn.number == 5 && (9.0..11.0).contains(&turn.slower), "{turn:?}");
    }
}

#[test]
fn turns_of_one_state_are_compared() {
    let distances = [FAST, FAST, SLOW, FAST, FAST, UNKNOWN, FAST, FAST, FAST];
    let sides = |distances: &[(f64, f64)], other: &[(f64, f64)]| {
        let mut noise = Noise::new(3);
        let sides =
            [side_of([run(0, 1.0, distances, &mut noise)]), side_of([run(1, 1.2, other, &mut noise)])];
        sides.map(|side| as_turns(side, false))
    };
    let [base, new] = sides(&distances, &distances);
    let comparison = compared(&base, &new);
    // A turn in the slow state, and one in an unknown state, which might be either, are left out.
    assert_eq!((comparison.unit, comparison.state.units, comparison.counts().worse), (Unit::Turn, [7, 7], 3));
    assert_eq!(comparison.cases[0].base.values.len(), 7);
    // Two more turns began in different states.
    let mut other = distances;
    (other[0], other[1]) = (SLOW, SLOW);
    let [base, new] = sides(&distances, &other);
    let comparison = compared(&base, &new);
    assert_eq!(comparison.cases[0].verdict, Verdict::Undecided(Reason::UnknownState));
    // Without any distance, the random order of the sides makes them exchangeable all the same.
    let [base, new] = sides(&[(0.0, 0.0); 9], &[(0.0, 0.0); 9]);
    assert_eq!((compared(&base, &new).state.units, compared(&base, &new).counts().worse), ([9, 9], 3));
}

#[test]
fn ranks_on_several_hosts_have_no_state() {
    let several = |mut side: SideResults| {
        side.runs.iter_mut().for_each(|run| run.places[1].host = "n02".into());
        side
    };
    let mut noise = Noise::new(5);
    let [base, new] = [1.0, 2.0]
        .map(|slower| several(side_of((0..4).map(|at| run(at, slower, &[(0.0, 0.0); 3], &mut noise)))));
    let comparison = compared(&base, &new);
    assert_eq!((comparison.counts().worse, comparison.state.core_to_core_ns), (3, None));
}
