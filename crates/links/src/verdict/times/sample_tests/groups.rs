//! Samples of machines whose hosts are in groups.

use crate::verdict::{HostGroups, times::sample_tests::*};

/// Returns 60 hosts with 3 ranks each, ten to a switch.
fn switches() -> Hosts {
    let line = |switch: u32| format!("switch s{switch}: n[{}-{}]\n", 10 * switch, 10 * switch + 9);
    let groups: HostGroups = (0..6).map(line).collect::<String>().parse().unwrap();
    hosts(60, 3).grouped(&groups)
}

/// Returns rows that take 1.6 times as long between switches.
fn rows_of(hosts: &Hosts, seed: u64, slow: impl Fn(u32, u32) -> f64) -> Vec<Link> {
    rows(hosts, seed, |a, b| if hosts.distance(a, b) == 2 { 1.6 * slow(a, b) } else { slow(a, b) })
}

#[test]
fn a_slow_switch_and_its_parts_are_found_from_a_sample() {
    let hosts = switches();
    for seed in 0..3 {
        for kind in 0..5 {
            let expected = match kind {
                1 => vec![Component::GroupBetween(0, 2)],
                2 => vec![Component::GroupWithin(0, 2)],
                3 => vec![Component::HostBetween(25)],
                4 => vec![Component::Link(65, 80)],
                _ => Vec::new(),
            };
            let rows = rows_of(&hosts, seed, |a, b| slow_part(kind, &hosts, a, b));
            let all = named(kept(rows.iter().copied(), false, &hosts, MOST_ROWS), &hosts);
            let sampled = kept(rows, false, &hosts, 0);
            assert!(sampled.level > 1, "little was left out");
            assert_eq!((named(sampled, &hosts), all), (expected.clone(), expected), "{kind}, seed {seed}");
        }
    }
}

/// Returns how much slower a link is, by the kind of the slow part.
fn slow_part(kind: u32, hosts: &Hosts, a: u32, b: u32) -> f64 {
    let switch = |rank: u32| rank / 30;
    let (apart, has) = (switch(a) != switch(b), [switch(a), switch(b)].contains(&2));
    let of_host = hosts.number(a) != hosts.number(b) && [hosts.number(a), hosts.number(b)].contains(&25);
    match kind {
        1 if apart && has => 1.5,
        2 if !apart && has && !hosts.same_host(a, b) => 1.6,
        3 if of_host => 1.5,
        // Inside a switch the link is faster than those to other switches.
        4 if (a.min(b), a.max(b)) == (65, 80) => 1.5,
        _ => 1.0,
    }
}

#[test]
fn rare_links_are_all_in_a_sample() {
    let hosts = switches();
    let times = kept(rows_of(&hosts, 1, |_, _| 1.0), false, &hosts, 0).averaged();
    let of =
        |distance: usize| times.sweep.iter().filter(|l| hosts.distance(l.from, l.to) == distance).count();
    // Of 180 links inside hosts, 2430 inside switches and 13,500 between switches.
    assert_eq!(of(0), 180);
    assert!(of(2) < 2000 && 2 * of(1) > of(2), "{} and {}", of(1), of(2));
    assert!(times.sweep.len() <= ROWS_PER_RANK * 90);
}
