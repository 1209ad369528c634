//! Detection on simulated machines with and without slow components.

use super::*;

/// Normal noise with a heavy tail towards long times, seeded.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Simulates all links of a machine: 2 us inside a host, 5 us between hosts. `slow` multiplies the time of a link.
fn machine(
    hosts: u32,
    each: u32,
    seed: u64,
    noise: f64,
    slow: impl Fn(u32, u32) -> f64,
) -> (Vec<LinkTimes>, Hosts) {
    let names: Vec<String> = (0..hosts * each).map(|rank| format!("n{:02}", rank / each)).collect();
    let hosts_of = Hosts::of(names.iter().map(String::as_str));
    let mut dice = Noise(seed * 7919 + 1);
    (0..10).for_each(|_| {
        dice.uniform();
    });
    let mut times = LinkTimes { bytes: 1 << 20, ..LinkTimes::default() };
    for (from, to) in (0..hosts * each).flat_map(|a| (0..hosts * each).map(move |b| (a, b))) {
        if from == to {
            continue;
        }
        let base = if hosts_of.same_host(from, to) { 2000.0 } else { 5000.0 };
        let ns = base * slow(from, to);
        let mut once = |tail: f64| {
            let burst = if dice.uniform() < tail { 1.0 + dice.uniform() } else { 1.0 };
            (ns * (noise * dice.normal()).exp() * burst) as f32
        };
        times.sweep.push(Link { from, to, ns: once(0.02) });
    }
    // Retested links are slow again, with new noise.
    for again in super::super::retest_candidates(&[times.clone()], &hosts_of, 4) {
        let base = if hosts_of.same_host(again.from, again.to) { 2000.0 } else { 5000.0 };
        let ns = (base * slow(again.from, again.to) * (noise * dice.normal()).exp()) as f32;
        let link = Link { from: again.from, to: again.to, ns };
        if again.is_slow { times.alone.push(link) } else { times.reference.push(link) }
    }
    (vec![times], hosts_of)
}

const SHAPES: [(u32, u32); 6] = [(1, 4), (1, 16), (4, 1), (8, 2), (16, 4), (2, 8)];

#[test]
fn healthy_machines_give_no_verdict() {
    for (hosts, each) in SHAPES {
        for (seed, noise) in (0..20).flat_map(|seed| [(seed, 0.01), (seed, 0.03), (seed, 0.08)]) {
            let (times, hosts_of) = machine(hosts, each, seed, noise, |_, _| 1.0);
            let found = find_slow(&times, &hosts_of);
            assert!(found.is_empty(), "{hosts} x {each}, seed {seed}, noise {noise}: {found:?}");
        }
    }
}

#[test]
fn a_slow_link_is_the_only_verdict() {
    for (hosts, each) in [(1, 6), (1, 16), (6, 1), (8, 2), (16, 4), (2, 8)] {
        let (a, b) = (1, hosts * each - 1);
        for seed in 0..20 {
            let slow = |from, to| if (from, to) == (a, b) || (from, to) == (b, a) { 1.3 } else { 1.0 };
            let (times, hosts_of) = machine(hosts, each, seed, 0.02, slow);
            let found: Vec<Component> =
                find_slow(&times, &hosts_of).into_iter().map(|s| s.component).collect();
            assert_eq!(found, [Component::Link(a, b)], "{hosts} x {each}, seed {seed}");
        }
    }
}

#[test]
fn a_slow_direction_is_named_as_such() {
    let (times, hosts) = machine(4, 2, 3, 0.02, |from, to| if (from, to) == (6, 1) { 1.4 } else { 1.0 });
    let found = find_slow(&times, &hosts);
    assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::OneWay(6, 1)]);
    assert!(found[0].sentence(&hosts).contains("from rank 6 on n03 to rank 1 on n00"), "{found:?}");
    assert!((found[0].factor - 1.4).abs() < 0.15, "{found:?}");
}

#[test]
fn a_slow_host_is_named_and_its_links_are_not() {
    for (hosts, each) in [(6, 1), (8, 2), (16, 4)] {
        for seed in 0..20 {
            let on_it = move |rank: u32| rank / each == 2;
            let slow = |from, to| if on_it(from) != on_it(to) { 1.5 } else { 1.0 };
            let (times, hosts_of) = machine(hosts, each, seed, 0.03, slow);
            let found: Vec<Component> =
                find_slow(&times, &hosts_of).into_iter().map(|s| s.component).collect();
            assert_eq!(found, [Component::HostBetween(2)], "{hosts} x {each}, seed {seed}");
        }
    }
}

#[test]
fn one_slow_host_of_four_is_named() {
    let mut named = 0;
    for seed in 0..50 {
        let (times, hosts) = machine(4, 1, seed, 0.002, |a, b| if a == 2 || b == 2 { 3.0 } else { 1.0 });
        let found: Vec<Component> =
            find_slow(&times, &hosts).into_iter().map(|slow| slow.component).collect();
        named += u32::from(found == [Component::HostBetween(2)]);
        assert!(found.is_empty() || found == [Component::HostBetween(2)], "{seed}: {found:?}");
    }
    // A link that was slow once is a sixth of the links of its two hosts. No verdict is then allowed.
    assert!(named >= 40, "{named} of 50");
}

#[test]
fn a_host_that_is_slow_inside_is_named() {
    let slow = |from, to| if from / 4 == 3 && to / 4 == 3 { 1.5 } else { 1.0 };
    let (times, hosts) = machine(8, 4, 1, 0.03, slow);
    let found = find_slow(&times, &hosts);
    assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::HostWithin(3)]);
    assert!(found[0].sentence(&hosts).starts_with("host n03 is slow inside"), "{found:?}");
}

#[test]
fn a_slow_rank_of_a_single_host_is_named() {
    for (ranks, seed) in (0..20).flat_map(|seed| [(5, seed), (8, seed), (16, seed)]) {
        let (times, hosts) =
            machine(1, ranks, seed, 0.03, |from, to| if from == 3 || to == 3 { 1.6 } else { 1.0 });
        let found: Vec<Component> = find_slow(&times, &hosts).into_iter().map(|s| s.component).collect();
        assert_eq!(found, [Component::Rank(3)], "{ranks} ranks, seed {seed}");
    }
}

#[test]
fn a_link_that_was_slow_only_once_is_not_named() {
    let (mut times, hosts) = machine(1, 8, 1, 0.02, |_, _| 1.0);
    let link = times[0].sweep.iter_mut().find(|l| (l.from, l.to) == (2, 5)).unwrap();
    link.ns *= 2.0;
    times[0].alone = vec![Link { ns: link.ns, ..*link }];
    assert_eq!(find_slow(&times, &hosts).len(), 1, "it was slow again");
    times[0].alone[0].ns /= 2.0;
    assert_eq!(find_slow(&times, &hosts), []);
}

#[test]
fn too_few_links_give_no_verdict() {
    let (times, hosts) = machine(1, 3, 1, 0.02, |from, _| if from == 1 { 9.0 } else { 1.0 });
    assert_eq!(find_slow(&times, &hosts), []);
    assert_eq!(find_slow(&[], &hosts), []);
}
