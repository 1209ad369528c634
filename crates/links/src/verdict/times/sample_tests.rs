//! Samples of simulated machines: what they keep, and that verdicts on them are those on all links.

use ombx_record::verdict::Component;

use crate::verdict::{LinkTimes, find_slow, times::*};

mod groups;

/// Returns hosts with as many ranks each.
fn hosts(hosts: u32, each: u32) -> Hosts {
    let names: Vec<String> = (0..hosts * each).map(|rank| format!("n{}", rank / each)).collect();
    Hosts::new(names.iter().map(String::as_str))
}

/// Returns all rows between these ranks, with noise of 3 %.
fn rows(hosts: &Hosts, seed: u64, slow: impl Fn(u32, u32) -> f64) -> Vec<Link> {
    let mut dice = seed * 7919 + 1;
    let mut uniform = || {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (dice >> 33) as f64 / (1u64 << 31) as f64
    };
    let ranks = hosts.ranks();
    let pairs = (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let row = |(from, to)| {
        let noise = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let base = if hosts.same_host(from, to) { 800.0 } else { 5000.0 };
        Link { from, to, ns: (base * slow(from, to) * (0.03 * noise).exp()) as f32 }
    };
    pairs.map(row).collect()
}

fn kept(rows: impl IntoIterator<Item = Link>, directed: bool, hosts: &Hosts, most: usize) -> LinkTimes {
    let mut times = LinkTimes { bytes: 8, directed, ..LinkTimes::default() };
    rows.into_iter().for_each(|row| times.add(LinkRow { link: row, delay: 1.0 }, hosts, most));
    times
}

fn named(times: LinkTimes, hosts: &Hosts) -> Vec<Component> {
    let mut found: Vec<Component> =
        find_slow(&[times], hosts).into_iter().map(|slow| slow.component).collect();
    found.sort();
    found
}

#[test]
fn a_sample_is_bounded_balanced_and_independent_of_the_order() {
    let hosts = hosts(100, 2);
    let rows = rows(&hosts, 1, |_, _| 1.0);
    for directed in [false, true] {
        let forth = kept(rows.iter().copied(), directed, &hosts, 0);
        assert!(forth.sweep.len() <= ROWS_PER_RANK * 200 && forth.sweep.len() > ROWS_PER_RANK * 50);
        let averaged = forth.averaged();
        assert_eq!(averaged.measured, if directed { rows.len() } else { rows.len() / 2 });
        assert!(averaged.outliers.len() <= 2 * SLOWEST_PER_RANK * 200);
        for rank in 0..200 {
            let links = averaged.sweep.iter().filter(|l| l.from == rank || l.to == rank).count();
            assert!(links >= 8, "rank {rank} has {links} links");
        }
        // Another order, in which the two directions of a link come one after the other.
        let pairs = rows.iter().rev().filter(|row| row.from < row.to);
        let at = |from: u32, to: u32| rows[(from * 199 + to - u32::from(to > from)) as usize];
        let other = |row: &Link| at(row.to, row.from);
        let shuffled = pairs.flat_map(|row| [other(row), *row]);
        let back = kept(shuffled, directed, &hosts, 0).averaged();
        assert!(
            back.sweep == averaged.sweep
                && back.outliers == averaged.outliers
                && back.level == averaged.level
        );
    }
    let all = kept(rows.iter().copied(), false, &hosts, MOST_ROWS);
    assert_eq!((all.sweep.len(), all.level, all.outside.rows().len()), (rows.len(), 0, 0));
    assert_eq!((all.averaged().sample(), all.averaged().measured), (None, rows.len() / 2));
}

#[test]
fn a_sample_says_how_many_links_there_are() {
    let hosts = hosts(100, 1);
    let rows = rows(&hosts, 1, |_, _| 1.0);
    let sampled = kept(rows.iter().copied(), false, &hosts, 0).averaged();
    let links = format!("a random sample of {} of 4950 links", sampled.sweep.len());
    assert_eq!(sampled.sample(), Some(format!("{links}, and the slowest of each rank")));
    assert_eq!(sampled.counted_links(), links);
    let all = kept(rows, false, &hosts, MOST_ROWS).averaged();
    assert_eq!(all.counted_links(), "4950 links");
}

#[test]
fn the_slowest_time_is_that_of_all_links_and_the_others_are_of_the_sample() {
    let hosts = hosts(100, 1);
    // Neither the fastest nor the slowest link is in the sample.
    let factor = |a: u32, b: u32| match (a.min(b), a.max(b)) {
        (10, 60) => 0.1,
        (13, 61) => 3.0,
        _ => 1.0,
    };
    let rows = rows(&hosts, 1, factor);
    let sampled = kept(rows.iter().copied(), false, &hosts, 0).averaged();
    let in_sample = |link: (u32, u32)| sampled.sweep.iter().any(|l| (l.from, l.to) == link);
    assert!(!in_sample((10, 60)) && !in_sample((13, 61)), "choose other links");
    let [fastest, _, slowest] = sampled.range().unwrap();
    assert!(fastest > 3000.0 && slowest > 10_000.0, "{fastest} {slowest}");
    assert_eq!(sampled.range_names()[0], "fastest of the sample");
    assert_eq!(sampled.range_names()[2], "slowest of all links");
    let all = kept(rows, false, &hosts, MOST_ROWS).averaged();
    let [fastest, _, slowest] = all.range().unwrap();
    assert!(fastest < 1000.0 && slowest > 10_000.0, "{fastest} {slowest}");
    assert_eq!(all.range_names(), ["fastest", "median", "slowest"]);
}

#[test]
fn links_with_one_direction_are_counted_and_few_of_them_wait_for_the_other() {
    let hosts = hosts(600, 1);
    let slow = |a: u32, b: u32| if (a, b) == (10, 300) { 1.6 } else { 1.0 };
    let rows: Vec<Link> = rows(&hosts, 3, slow).into_iter().filter(|row| row.from < row.to).collect();
    let links = rows.len();
    let times = kept(rows, false, &hosts, 0);
    assert!(links - times.sweep.len() > 2 * MOST_PENDING, "too few links are outside the sample");
    assert!(times.outside.pending.len() <= MOST_PENDING);
    let averaged = times.averaged();
    assert_eq!(averaged.measured, links);
    assert!(averaged.sweep.iter().chain(&averaged.outliers).any(|link| (link.from, link.to) == (10, 300)));
}

#[test]
fn a_link_whose_directions_are_far_apart_takes_one_place() {
    let hosts = hosts(600, 1);
    let slow = |a: u32, b: u32| if (a.min(b), a.max(b)) == (10, 300) { 1.6 } else { 1.0 };
    let (forth, back): (Vec<Link>, Vec<Link>) =
        rows(&hosts, 3, slow).into_iter().partition(|row| row.from < row.to);
    let all = forth.len();
    let times = kept(forth.into_iter().chain(back), false, &hosts, 0);
    assert!(times.outside.keeps_single_rows, "too few links wait");
    for links in times.outside.slowest.values() {
        let ends = |link: &Outlier| {
            (link.row.link.from.min(link.row.link.to), link.row.link.from.max(link.row.link.to))
        };
        let different: BTreeSet<(u32, u32)> = links.iter().map(ends).collect();
        assert_eq!(different.len(), links.len(), "{links:?}");
    }
    let kept = times.outside.rows();
    let has = |ends: (u32, u32)| kept.iter().any(|row| (row.link.from, row.link.to) == ends);
    assert!(has((10, 300)) && has((300, 10)), "both rows of the slow link are kept");
    assert_eq!(times.averaged().measured, all);
}

#[test]
fn the_slowest_links_of_every_rank_are_kept() {
    let hosts = hosts(120, 1);
    let slow =
        |a: u32, b: u32| if (a * 7 + b * 7) % 120 == 1 { 1.5 + f64::from(a.min(b)) / 1e3 } else { 1.0 };
    let rows = rows(&hosts, 2, slow);
    let averaged = kept(rows.iter().copied(), false, &hosts, 0).averaged();
    assert!(averaged.level > 0);
    let known = |a: u32, b: u32| {
        averaged.sweep.iter().chain(&averaged.outliers).any(|l| (l.from, l.to) == (a.min(b), a.max(b)))
    };
    let slow: Vec<&Link> = rows.iter().filter(|row| slow(row.from, row.to) > 1.0).collect();
    assert!(slow.len() > 50 && slow.iter().all(|row| known(row.from, row.to)));
}

#[test]
fn verdicts_on_a_sample_are_those_on_all_links() {
    let hosts = hosts(60, 3);
    for seed in 0..4 {
        let (link, host) = ((20 + seed as u32, 71), 9 + seed as u32);
        for kind in 0..4 {
            let slow = |a: u32, b: u32| match kind {
                1 if [hosts.number(a), hosts.number(b)].contains(&host) && !hosts.same_host(a, b) => 1.3,
                2 if (a.min(b), a.max(b)) == link => 1.6,
                3 if [a, b].contains(&link.0) && !hosts.same_host(a, b) => 1.3,
                _ => 1.0,
            };
            let expected = match kind {
                1 => vec![Component::HostBetween(host)],
                2 => vec![Component::Link(link.0, link.1)],
                3 => vec![Component::Rank(link.0)],
                _ => Vec::new(),
            };
            let rows = rows(&hosts, seed, slow);
            let all = named(kept(rows.iter().copied(), false, &hosts, MOST_ROWS), &hosts);
            let sampled = kept(rows, false, &hosts, 0);
            assert!(sampled.level > 0, "nothing was left out");
            assert_eq!((named(sampled, &hosts), all), (expected.clone(), expected), "{kind}, seed {seed}");
        }
    }
}

#[test]
fn a_link_that_is_slow_in_every_launch_stays_slow_and_a_disturbed_one_does_not() {
    use crate::verdict::{TimesBySize, launches::median_over};
    let hosts = hosts(100, 1);
    let launch = |number: u64, most| {
        let rows = rows(&hosts, number, |a, b| slow_in_launch(number, a, b));
        TimesBySize(vec![kept(rows, false, &hosts, most)])
    };
    // The second launch keeps all rows.
    let launches = [launch(1, 0), launch(2, MOST_ROWS), launch(3, 0)];
    assert!(launches[0].0[0].level > 0 && launches[1].0[0].level == 0);
    let over = median_over(&launches, &hosts).0.remove(0);
    assert_eq!(over.level, launches[0].0[0].level);
    assert_eq!(named(over, &hosts), [Component::Link(10, 61)]);
}

/// Returns how much slower a link is: one in every launch, and another in the second only.
fn slow_in_launch(launch: u64, a: u32, b: u32) -> f64 {
    match (a.min(b), a.max(b)) {
        (10, 61) => 1.6,
        (30, 82) if launch == 2 => 3.0,
        _ => 1.0,
    }
}
