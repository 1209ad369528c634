//! Detection of slow groups of hosts.

use crate::verdict::detection::tests::*;

/// Hosts in groups of equal size, each with as many ranks.
#[derive(Clone, Copy)]
struct Shape {
    groups: u32,
    hosts: u32,
    ranks: u32,
}

impl Shape {
    fn hosts(self) -> Hosts {
        let names =
            (0..self.groups * self.hosts * self.ranks).map(|rank| format!("n{:02}", rank / self.ranks));
        let names: Vec<String> = names.collect();
        let line = |group: u32| {
            let (first, last) = (group * self.hosts, (group + 1) * self.hosts - 1);
            format!("switch s{group}: n[{first:02}-{last:02}]\n")
        };
        let groups: HostGroups = (0..self.groups).map(line).collect::<String>().parse().unwrap();
        Hosts::new(names.iter().map(String::as_str)).grouped(&groups)
    }

    fn group(self, rank: u32) -> u32 {
        rank / self.ranks / self.hosts
    }

    /// Simulates links that take 1.6 times as long between groups.
    fn machine(self, seed: u64, noise: f64, slow: impl Fn(u32, u32) -> f64) -> (Vec<LinkTimes>, Hosts) {
        let far = |a, b| if self.group(a) == self.group(b) { 1.0 } else { 1.6 };
        grouped(self.hosts(), seed, noise, false, |a, b| far(a, b) * slow(a, b))
    }
}

const fn shape(groups: u32, hosts: u32, ranks: u32) -> Shape {
    Shape { groups, hosts, ranks }
}

/// The first two are searched by sets of groups or hosts, the others by medians.
const SHAPES: [Shape; 5] = [shape(4, 2, 1), shape(6, 3, 1), shape(8, 4, 1), shape(12, 2, 1), shape(4, 3, 2)];

#[test]
fn healthy_groups_give_no_verdict() {
    let mut wrong = 0;
    for (at, shape) in SHAPES.into_iter().enumerate() {
        for (seed, noise) in (0..20).flat_map(|seed| [(seed, 0.01), (seed, 0.03), (seed, 0.08)]) {
            let scatter = lasting(seed + 100 * at as u64, noise);
            let (times, hosts) = shape.machine(seed, 0.01, scatter);
            let found = components(&times, &hosts);
            let is_group =
                |part: &Component| matches!(part, Component::GroupBetween(..) | Component::GroupWithin(..));
            assert!(!found.iter().any(is_group), "shape {at}, seed {seed}, noise {noise}: {found:?}");
            wrong += usize::from(!found.is_empty());
        }
    }
    assert!(wrong <= 3, "{wrong} of 300");
}

/// Counts the runs of 20 that name exactly these components.
fn right(shape: Shape, slow: impl Fn(u32, u32) -> f64, expected: &[Component]) -> usize {
    let found = |seed| {
        let (times, hosts) = shape.machine(seed, 0.02, &slow);
        components(&times, &hosts) == expected
    };
    (0..20).filter(|seed| found(*seed)).count()
}

#[test]
fn a_slow_switch_is_named_and_its_hosts_and_links_are_not() {
    for (at, shape) in SHAPES.into_iter().enumerate() {
        let is_slow =
            |a, b| shape.group(a) != shape.group(b) && [a, b].map(|rank| shape.group(rank)).contains(&2);
        let slow = |a, b| if is_slow(a, b) { 1.5 } else { 1.0 };
        let count = right(shape, slow, &[Component::GroupBetween(0, 2)]);
        assert!(count >= 19, "shape {at}: {count} of 20");
    }
}

#[test]
fn a_switch_that_is_slow_inside_is_named() {
    for shape in [shape(6, 3, 1), shape(8, 4, 1)] {
        let slow = |a, b| if [a, b].map(|rank| shape.group(rank)) == [1, 1] { 1.6 } else { 1.0 };
        let count = right(shape, slow, &[Component::GroupWithin(0, 1)]);
        assert!(count >= 19, "{count} of 20");
    }
}

#[test]
fn a_slow_host_or_link_in_a_group_is_not_the_group() {
    for (at, shape) in SHAPES.into_iter().enumerate() {
        let host = |rank: u32| rank / shape.ranks;
        let slow = |a, b| if host(a) != host(b) && (host(a) == 3 || host(b) == 3) { 1.8 } else { 1.0 };
        let count = right(shape, slow, &[Component::HostBetween(3)]);
        assert!(count >= 19, "host, shape {at}: {count} of 20");
        let last = shape.hosts().ranks() - 1;
        let slow = |a: u32, b: u32| if (a.min(b), a.max(b)) == (0, last) { 1.8 } else { 1.0 };
        let count = right(shape, slow, &[Component::Link(0, last)]);
        assert!(count >= 19, "link, shape {at}: {count} of 20");
    }
}

#[test]
fn the_power_for_groups_is_that_of_the_verdict() {
    for shape in SHAPES {
        let mut found = 0;
        for seed in 0..40 {
            let scatter = lasting(seed, 0.04);
            let (times, hosts) = shape.machine(seed, 0.005, &scatter);
            let limit =
                at_one_size(&times[0].averaged(), &hosts, 1).nameable_groups[0].expect("enough groups");
            let is_slow =
                |a, b| shape.group(a) != shape.group(b) && [a, b].map(|rank| shape.group(rank)).contains(&2);
            let slow = |a: u32, b: u32| scatter(a, b) * if is_slow(a, b) { limit } else { 1.0 };
            let (times, hosts) = shape.machine(seed, 0.005, slow);
            found += u32::from(components(&times, &hosts).contains(&Component::GroupBetween(0, 2)));
        }
        assert!(found >= 36, "{found} of 40: {} groups of {}", shape.groups, shape.hosts);
    }
}

#[test]
fn few_groups_are_not_compared() {
    let shape = shape(3, 3, 1);
    let slow = |a, b| if (a < 3) != (b < 3) { 3.0 } else { 1.0 };
    let (times, hosts) = shape.machine(1, 0.02, slow);
    assert_eq!(at_one_size(&times[0].averaged(), &hosts, 1).nameable_groups, [None]);
    let found = components(&times, &hosts);
    assert!(!found.iter().any(|part| matches!(part, Component::GroupBetween(..))), "{found:?}");
}

#[test]
fn an_upper_switch_is_named_above_its_lower_ones() {
    let text: String = (0..8)
        .map(|leaf| format!("SwitchName=l{leaf} Nodes=n[{:02}-{:02}]\n", leaf * 3, leaf * 3 + 2))
        .chain((0..4).map(|top| format!("SwitchName=t{top} Switches=l[{}-{}]\n", 2 * top, 2 * top + 1)))
        .collect();
    let names: Vec<String> = (0..24).map(|host| format!("n{host:02}")).collect();
    let hosts = || Hosts::new(names.iter().map(String::as_str)).grouped(&text.parse().unwrap());
    assert_eq!([hosts().distance(0, 2), hosts().distance(0, 3), hosts().distance(0, 6)], [1, 2, 3]);
    let far = |a: u32, b: u32| match (a / 3 == b / 3, a / 6 == b / 6) {
        (true, _) => 1.0,
        (_, true) => 1.4,
        _ => 2.0,
    };
    let slow = |a: u32, b: u32| if (a / 6 == 1) != (b / 6 == 1) { 1.6 } else { 1.0 };
    for seed in 0..10 {
        let (times, hosts) = grouped(hosts(), seed, 0.02, false, |a, b| far(a, b) * slow(a, b));
        assert_eq!(components(&times, &hosts), [Component::GroupBetween(1, 1)], "{seed}");
        let sentence = find_slow(&times, &hosts)[0].sentence(&hosts);
        assert!(
            sentence.starts_with("switch t1 (n[06-11]) is slow: its links to other switches take 1."),
            "{sentence}"
        );
        let (times, hosts) = grouped(hosts, seed, 0.02, false, far);
        assert_eq!(components(&times, &hosts), [], "{seed}");
    }
}
