//! Detection on simulated machines with and without slow components.

use ombx_record::verdict::Evidence;

use crate::verdict::{HostGroups, Link, TIMES_AGAIN, detection::*, once_more, retest_candidates};

mod attempts;
mod groups;
mod looks;

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
    traffic(hosts, each, seed, noise, false, slow)
}

/// Share of rows that a burst makes up to twice as long.
const BURSTS: f64 = 0.02;

fn traffic(
    hosts: u32,
    each: u32,
    seed: u64,
    noise: f64,
    directed: bool,
    slow: impl Fn(u32, u32) -> f64,
) -> (Vec<LinkTimes>, Hosts) {
    let names: Vec<String> = (0..hosts * each).map(|rank| format!("n{:02}", rank / each)).collect();
    grouped(Hosts::new(names.iter().map(String::as_str)), seed, noise, directed, slow)
}

/// Simulates the links between the ranks of hosts, which may have groups.
fn grouped(
    hosts_of: Hosts,
    seed: u64,
    noise: f64,
    directed: bool,
    slow: impl Fn(u32, u32) -> f64,
) -> (Vec<LinkTimes>, Hosts) {
    with_bursts(hosts_of, seed, [noise, BURSTS], directed, slow)
}

/// Simulates the links with a standard deviation of the logarithms of rows, and a share of rows with a burst.
fn with_bursts(
    hosts_of: Hosts,
    seed: u64,
    [noise, bursts]: [f64; 2],
    directed: bool,
    slow: impl Fn(u32, u32) -> f64,
) -> (Vec<LinkTimes>, Hosts) {
    let ranks = hosts_of.ranks();
    let mut dice = Noise(seed * 7919 + 1);
    (0..10).for_each(|_| {
        dice.uniform();
    });
    let mut times = LinkTimes { bytes: 1 << 20, directed, ..LinkTimes::default() };
    for (from, to) in (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))) {
        if from == to {
            continue;
        }
        let base = if hosts_of.same_host(from, to) { 2000.0 } else { 5000.0 };
        let ns = base * slow(from, to);
        let mut once = |tail: f64| {
            let burst = if dice.uniform() < tail { 1.0 + dice.uniform() } else { 1.0 };
            (ns * (noise * dice.normal()).exp() * burst) as f32
        };
        times.sweep.push(Link { from, to, ns: once(bursts) });
    }
    // Links that are measured again are slow again, with new noise and as many disturbances.
    let mut links = retest_candidates(&[times.clone()], &hosts_of, 4);
    for attempt in 1.. {
        if links.is_empty() {
            break;
        }
        for again in &links {
            let base = if hosts_of.same_host(again.from, again.to) { 2000.0 } else { 5000.0 };
            let burst = if dice.uniform() < bursts { 1.0 + dice.uniform() } else { 1.0 };
            let ns = (base * slow(again.from, again.to) * (noise * dice.normal()).exp() * burst) as f32;
            times.add_again(again, ns);
        }
        links = once_more(links, &[times.clone()], &hosts_of, attempt);
    }
    (vec![times], hosts_of)
}

fn components(times: &[LinkTimes], hosts: &Hosts) -> Vec<Component> {
    let mut found: Vec<Component> = find_slow(times, hosts).into_iter().map(|slow| slow.component).collect();
    found.sort();
    found
}

/// Draws a scatter of links that lasts: the same in the sweep and in the second measurement.
fn lasting(seed: u64, sigma: f64) -> impl Fn(u32, u32) -> f64 {
    move |a, b| {
        let mut dice = Noise(seed * 1_000_003 + u64::from(a.min(b) * 64 + a.max(b)) * 104_729 + 17);
        (0..10).for_each(|_| {
            dice.uniform();
        });
        (sigma * dice.normal()).exp()
    }
}

#[test]
fn a_direction_is_named_beside_its_link_only_if_it_is_slower() {
    let evidence = Evidence {
        factor: None,
        links: Vec::new(),
        count: 1,
        typical: Vec::new(),
        ordinary: 0,
        ordinary_ns: 0.0,
        measured_again: false,
    };
    let slow =
        |component, factor, bytes| SlowComponent { component, factor, bytes, evidence: evidence.clone() };
    let found = slow_of_sizes(vec![
        slow(Component::Link(0, 1), 2.0, 8),
        slow(Component::OneWay(0, 1), 1.5, 64),
        slow(Component::OneWay(1, 0), 3.0, 64),
        slow(Component::OneWay(2, 1), 1.5, 64),
    ]);
    let found: Vec<(Component, f64, u64)> =
        found.into_iter().map(|slow| (slow.component, slow.factor, slow.bytes)).collect();
    let one_way = |from, to, factor| (Component::OneWay(from, to), factor, 64);
    assert_eq!(found, [one_way(1, 0, 3.0), (Component::Link(0, 1), 2.0, 8), one_way(2, 1, 1.5)]);
}

const SHAPES: [(u32, u32); 6] = [(1, 4), (1, 16), (4, 1), (8, 2), (16, 4), (2, 8)];

/// `cargo xtask coverage verdicts` counts many more.
#[test]
fn healthy_machines_are_seldom_accused() {
    let mut accused = Vec::new();
    for (hosts, each) in SHAPES {
        for (seed, noise) in (0..12).flat_map(|seed| [(seed, 0.01), (seed, 0.03), (seed, 0.08)]) {
            let (times, hosts_of) = machine(hosts, each, seed, noise, |_, _| 1.0);
            let found = find_slow(&times, &hosts_of);
            accused.extend((!found.is_empty()).then(|| format!("{hosts} x {each}, seed {seed}: {found:?}")));
        }
    }
    assert!(accused.len() <= 2, "of 216: {accused:#?}");
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
    let slow = |from, to| if (from, to) == (6, 1) { 1.4 } else { 1.0 };
    let (times, hosts) = traffic(4, 2, 3, 0.02, true, slow);
    let found = find_slow(&times, &hosts);
    assert_eq!(found.iter().map(|s| s.component.clone()).collect::<Vec<_>>(), [Component::OneWay(6, 1)]);
    assert!(found[0].sentence(&hosts).contains("from rank 6 on n03 to rank 1 on n00"), "{found:?}");
    assert!((found[0].factor - 1.4).abs() < 0.15, "{found:?}");
    for seed in 0..20 {
        let slow = |from, to| if (from, to) == (4, 1) { 3.0 } else { 1.0 };
        let (times, hosts) = traffic(6, 1, seed, 0.02, true, slow);
        assert_eq!(components(&times, &hosts), [Component::OneWay(4, 1)], "{seed}");
    }
}

#[test]
fn a_round_trip_claims_no_direction() {
    let slow = |from: u32, to: u32| match (from.min(to), from.max(to)) {
        (1, 6) => 2.0,
        _ => 1.0,
    };
    let (mut times, hosts) = machine(4, 2, 3, 0.02, slow);
    times[0].sweep.iter_mut().find(|l| (l.from, l.to) == (1, 6)).unwrap().ns /= 1.5;
    assert_eq!(components(&times, &hosts), [Component::Link(1, 6)]);
    assert_eq!((times[0].sweep.len(), times[0].averaged().sweep.len()), (56, 28));
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
    times[0].alone = vec![Link { ns: link.ns, ..*link }; TIMES_AGAIN];
    assert_eq!(find_slow(&times, &hosts).len(), 1, "it was slow again");
    // The shortest of the three counts.
    times[0].alone[1].ns /= 2.0;
    assert_eq!(find_slow(&times, &hosts), []);
}

/// With more than eight ranks, a link that is not slow once is not measured further.
#[test]
fn a_link_that_is_given_up_is_not_named() {
    let (mut times, hosts) = machine(12, 1, 1, 0.001, |_, _| 1.0);
    let slow = |l: &Link| (l.from.min(l.to), l.from.max(l.to)) == (2, 5);
    times[0].sweep.iter_mut().filter(|l| slow(l)).for_each(|l| l.ns *= 2.0);
    let again = |ns: f32| Link { from: 2, to: 5, ns };
    times[0].alone.retain(|l| !slow(l));
    times[0].alone.extend([again(5600.0); 3]);
    assert_eq!(components(&times, &hosts), [Component::Link(2, 5)], "three times slow");
    let rows = times[0].alone.len();
    times[0].alone.truncate(rows - 2);
    assert_eq!(components(&times, &hosts), []);
}

#[test]
fn too_few_links_give_no_verdict() {
    let (times, hosts) = machine(1, 3, 1, 0.02, |from, _| if from == 1 { 9.0 } else { 1.0 });
    assert_eq!(find_slow(&times, &hosts), []);
    assert_eq!(find_slow(&[], &hosts), []);
}

/// Counts runs that name exactly these components, and runs that name another one.
fn named(hosts: u32, runs: u64, noise: f64, slow: &dyn Fn(u32, u32) -> f64, right: &[Component]) -> [u64; 2] {
    let mut counts = [0, 0];
    for seed in 0..runs {
        let scatter = lasting(seed, noise);
        let (times, hosts) = machine(hosts, 1, seed, 0.02, |a, b| scatter(a, b) * slow(a, b));
        let found = components(&times, &hosts);
        counts[0] += u64::from(found == right);
        counts[1] += u64::from(found.iter().any(|part| !right.contains(part)));
    }
    counts
}

#[test]
fn few_healthy_hosts_are_seldom_accused() {
    for hosts in [4, 5, 6, 8] {
        for noise in [0.05, 0.3] {
            let [_, wrong] = named(hosts, 60, noise, &|_, _| 1.0, &[]);
            assert!(wrong <= 2, "{wrong} of 60: {hosts} hosts, links differ by {noise}");
        }
    }
}

#[test]
fn one_or_two_slow_hosts_of_few_are_named() {
    for hosts in [4, 5, 6, 8] {
        let one = |a, b| if a == 2 || b == 2 { 3.0 } else { 1.0 };
        let [right, wrong] = named(hosts, 30, 0.05, &one, &[Component::HostBetween(2)]);
        assert!(right >= 28 && wrong <= 1, "one of {hosts}: {right} right, {wrong} wrong");
        // A link between two slow hosts is as slow as the slower one.
        let two = |a: u32, b: u32| match [1, 3].map(|slow| a == slow || b == slow) {
            [_, true] => 5.0,
            [true, _] => 4.0,
            _ => 1.0,
        };
        let both = [Component::HostBetween(1), Component::HostBetween(3)];
        let [right, wrong] = named(hosts, 30, 0.05, &two, &both);
        match hosts {
            // Two slow hosts of four leave one ordinary link, which may as well be the only fast one.
            4 => assert!(wrong == 0, "two of 4: {wrong} wrong"),
            _ => assert!(right >= 28 && wrong <= 1, "two of {hosts}: {right} right, {wrong} wrong"),
        }
    }
}

#[test]
fn two_hosts_of_four_with_a_cause_are_named_and_healthy_ones_seldom() {
    let suspects = BTreeSet::from([1, 3]);
    let named = |noise: f64, factors: [f64; 2]| {
        let slow = |a: u32, b: u32| {
            let of = |at: usize, host: u32| if a == host || b == host { factors[at] } else { 1.0 };
            of(0, 1).max(of(1, 3))
        };
        let is_named = |seed: &u64| {
            let scatter = lasting(*seed, noise);
            let (times, hosts) = machine(4, 1, *seed, 0.02, |a, b| scatter(a, b) * slow(a, b));
            !among_suspects(&times[0].averaged(), &hosts, 1, &suspects).is_empty()
        };
        (0..200).filter(is_named).count()
    };
    for noise in [0.02, 0.1, 0.3] {
        let [healthy, one] = [named(noise, [1.0, 1.0]), named(noise, [5.0, 1.0])];
        assert!(healthy <= 4 && one <= 6, "{healthy} and {one} of 200, links differ by {noise}");
    }
    let both = named(0.02, [9.0, 2.5]);
    assert!(both >= 180, "{both} of 200");
}

#[test]
fn one_or_two_slow_links_of_few_hosts_are_named() {
    for hosts in [4, 5, 6, 8] {
        let is = |a: u32, b: u32, link| (a.min(b), a.max(b)) == link;
        let one = |a, b| if is(a, b, (1, 3)) { 3.0 } else { 1.0 };
        let [right, wrong] = named(hosts, 30, 0.05, &one, &[Component::Link(1, 3)]);
        assert!(right >= 28 && wrong <= 1, "one of {hosts}: {right} right, {wrong} wrong");
        for other in [(0, 2), (0, 1)] {
            let two = |a, b| if is(a, b, (1, 3)) || is(a, b, other) { 6.0 } else { 1.0 };
            let both = [Component::Link(other.0, other.1), Component::Link(1, 3)];
            let [right, wrong] = named(hosts, 30, 0.05, &two, &both);
            // Four ordinary links of six tell little about their scatter.
            let enough = if hosts == 4 { 15 } else { 27 };
            assert!(right >= enough && wrong <= 1, "two of {hosts}: {right} right, {wrong} wrong");
        }
    }
}

#[test]
fn the_power_is_that_of_the_verdict() {
    for (hosts, noise) in [(4, 0.02), (4, 0.05), (5, 0.02), (8, 0.05), (12, 0.05)] {
        let mut found = 0;
        for seed in 0..40 {
            let scatter = lasting(seed, noise);
            let (times, hosts_of) = machine(hosts, 1, seed, 0.005, &scatter);
            let limit = at_one_size(&times[0].averaged(), &hosts_of, 1).nameable.expect("enough links");
            let slow =
                |a: u32, b: u32| scatter(a, b) * if (a.min(b), a.max(b)) == (1, 3) { limit } else { 1.0 };
            let (times, hosts_of) = machine(hosts, 1, seed, 0.005, slow);
            found += u32::from(components(&times, &hosts_of).contains(&Component::Link(1, 3)));
        }
        assert!(found >= 34, "{found} of 40: {hosts} hosts, links differ by {noise}");
    }
}

/// Links that differ by a factor of two or more say little about the tail of their distribution.
#[test]
fn no_link_is_named_below_what_scattering_links_would_surely_show() {
    let mut counts = [0, 0];
    for (hosts, seed, factor) in [6, 12]
        .iter()
        .flat_map(|hosts| (0..30).flat_map(move |seed| [(*hosts, seed, 8.0), (*hosts, seed, 60.0)]))
    {
        let scatter = lasting(seed, 0.5);
        let slow = |a: u32, b: u32| scatter(a, b) * if (a.min(b), a.max(b)) == (1, 3) { factor } else { 1.0 };
        let (times, hosts) = machine(hosts, 1, seed, 0.005, slow);
        let found = at_one_size(&times[0].averaged(), &hosts, 1);
        let least = found.nameable.unwrap();
        assert!(least > few_units::MAX_NAMEABLE, "{least}");
        assert!(found.slow.iter().all(|slow| slow.factor >= least), "{least}: {:?}", found.slow);
        assert!(found.unsure.iter().all(|slow| slow.factor < least), "{least}: {:?}", found.unsure);
        counts[0] += usize::from(!found.unsure.is_empty());
        counts[1] += usize::from(!found.slow.is_empty());
    }
    assert!(counts.iter().all(|count| *count >= 10), "both occur: {counts:?}");
}
