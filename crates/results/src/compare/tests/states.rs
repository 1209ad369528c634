//! Machines that change their state between launches.

use super::*;

#[test]
fn launches_of_different_states_of_the_machine_have_no_verdict() {
    let (rows, mut noise) = (rows(3), Noise::of(7));
    let mut side = |first: usize, slower: f64, core_to_core_ns: &[f64]| {
        let mut side = SideResults::named("x");
        for (turn, latency) in core_to_core_ns.iter().enumerate() {
            let mut run = run_at(2 * turn + first);
            run.plan.insert("core_to_core_ns".into(), latency.to_string());
            let scatter = |row: &Measurement| {
                let median = row.summary.as_ref().unwrap().median * slower * (0.01 * noise.normal()).exp();
                Measurement { summary: Summary::of(&[median; 6]), ..row.clone() }
            };
            side.run(&RunWithRows { run, rows: rows.iter().map(scatter).collect(), end: None });
        }
        side
    };
    let (base, slow_machine) = (side(0, 1.0, &[58.0; 9]), side(1, 3.5, &[275.0; 9]));
    let comparison = compared(&base, &slow_machine);
    assert_eq!((comparison.counts().inconclusive, comparison.undecided().count()), (3, 3));
    assert_eq!(comparison.cases[0].verdict, Verdict::Inconclusive(Reason::MachineChanged));
    assert!(comparison.notes.iter().any(|note| note.code == "machine_state"));
    // The same difference in the same state is a verdict, also if a few launches were in another.
    let slow_library = side(1, 3.5, &[58.0, 60.0, 59.0, 61.0, 57.0, 58.0, 275.0, 274.0]);
    assert_eq!(compared(&base, &slow_library).counts().worse, 3);
    // What is smaller may be another change of the same machine, unless the sides alternated.
    let latencies = [58.0, 60.0, 59.0, 61.0, 57.0, 58.0, 275.0, 274.0];
    let reason = Verdict::Inconclusive(Reason::MachineChanged);
    assert!(compared(&base, &side(20, 1.3, &latencies)).cases.iter().all(|case| case.verdict == reason));
    assert_eq!(compared(&base, &side(20, 1.7, &latencies)).counts().worse, 3);
    assert_eq!(compared(&base, &side(1, 1.3, &latencies)).counts().worse, 3);
    // Within a state, what is smaller than the variation of the latency between cores may be the machine too.
    let faster = [50.0, 52.0, 51.0, 60.0, 51.0, 52.0, 50.0, 51.0];
    assert!(compared(&base, &side(20, 1.15, &faster)).cases.iter().all(|case| case.verdict == reason));
    assert_eq!(compared(&base, &side(20, 1.3, &faster)).counts().worse, 3);
    assert_eq!(compared(&base, &side(1, 1.15, &faster)).counts().worse, 3);
    assert_eq!(compared(&base, &side(20, 1.15, &[58.0; 8])).counts().worse, 3);
}
