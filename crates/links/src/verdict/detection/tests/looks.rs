//! Looks at a sweep before its end.

use crate::verdict::{LOOKS, detection::tests::*, interim_candidates};

const RANKS: u32 = 20;

/// Returns the round of the circle method in which a link is measured.
fn round(from: u32, to: u32) -> u32 {
    let (low, high) = (from.min(to), from.max(to));
    (if high == RANKS - 1 { 2 * low } else { low + high }) % (RANKS - 1)
}

/// Simulates a sweep, and returns what is confirmed at each of its looks.
fn confirmed(seed: u64, noise: f64, slow: impl Fn(u32, u32) -> f64) -> Vec<Vec<Component>> {
    let (mut all, hosts) = machine(RANKS, 1, seed, noise, &slow);
    let all = all.remove(0);
    let mut dice = Noise(seed * 104_729 + 5);
    let mut look = |part: usize| {
        let rounds = (RANKS - 1) * part as u32 / (LOOKS as u32 + 1);
        let sweep = all.sweep.iter().filter(|link| round(link.from, link.to) < rounds).copied().collect();
        let mut times = LinkTimes { bytes: all.bytes, sweep, ..LinkTimes::default() };
        for again in interim_candidates(std::slice::from_ref(&times), &hosts) {
            let ns = (5000.0 * slow(again.from, again.to) * (noise * dice.normal()).exp()) as f32;
            times.add_again(&again, ns);
        }
        let found = at_one_size(&times.averaged(), &hosts, LOOKS).slow;
        found.into_iter().filter(|_| !times.alone.is_empty()).map(|slow| slow.component).collect()
    };
    (1..=LOOKS).map(&mut look).collect()
}

#[test]
fn healthy_machines_are_seldom_accused_at_any_look() {
    const SWEEPS: usize = 600;
    // A verdict is false in at most one of a hundred sweeps. More than 12 of 600 would then have a probability below 1 %.
    const MOST: usize = 12;
    let accused = (0..SWEEPS as u64 / 3).flat_map(|seed| [(seed, 0.01), (seed, 0.03), (seed, 0.08)]);
    let accused = accused
        .filter(|(seed, noise)| confirmed(*seed, *noise, |_, _| 1.0).iter().any(|found| !found.is_empty()));
    let accused: Vec<(u64, f64)> = accused.collect();
    assert!(accused.len() <= MOST, "{} of {SWEEPS}: {accused:?}", accused.len());
}

#[test]
fn slow_parts_are_named_at_the_first_look_after_their_measurement() {
    for seed in 0..20 {
        let found = confirmed(seed, 0.02, |from, to| if from == 7 || to == 7 { 1.5 } else { 1.0 });
        assert!(found.iter().all(|found| *found == [Component::HostBetween(7)]), "seed {seed}: {found:?}");
        // Round 6 is after the first look.
        let found =
            confirmed(seed, 0.02, |from, to| if [from.min(to), from.max(to)] == [2, 4] { 1.5 } else { 1.0 });
        let link = vec![Component::Link(2, 4)];
        assert_eq!(found, [vec![], link.clone(), link], "seed {seed}");
    }
}
