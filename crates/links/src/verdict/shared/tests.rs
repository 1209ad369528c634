//! Links that share a bottleneck, and links that do not, with simulated times.

use ombx_record::{link::BENCH, random::SplitMix64, result::Metric, stats::Summary};

use crate::verdict::{HostGroups, dice::Dice, shared::*};

/// Number of simulated sweeps.
const SWEEPS: u64 = 200;

fn hosts(count: usize, per_group: usize) -> Hosts {
    let names: Vec<String> = (1..=count).map(|host| format!("h{host}")).collect();
    let groups: Vec<String> = names
        .chunks(per_group)
        .enumerate()
        .map(|(at, hosts)| format!("switch s{}: {}", at + 1, hosts.join(" ")))
        .collect();
    let groups: HostGroups = groups.join("\n").parse().unwrap();
    Hosts::new(names.iter().map(String::as_str)).grouped(&groups)
}

/// What disturbs the times of a sweep.
#[derive(Clone, Copy)]
struct Model {
    /// Ratio of the times together to those alone.
    factor: f64,
    /// Standard deviation of the logarithm of a row.
    noise: f64,
    /// Share of rows, and of moments of all rows together, that take up to ten times as long.
    bursts: f64,
}

fn row(path: &CommonPath, how: &str, attempt: usize, ends: [u32; 2]) -> Measurement {
    let mut row = Measurement::new(BENCH, BENCH, Metric::Latency, 2);
    let axes = [
        ("from", ends[0].to_string()),
        ("to", ends[1].to_string()),
        (PATH, path.name.clone()),
        (RETEST, how.into()),
        (ATTEMPT, attempt.to_string()),
    ];
    row.axes.extend(axes.map(|(name, value)| (name.to_owned(), value)));
    row.bytes = Some(1 << 20);
    row
}

/// Returns what is found about the paths of simulated hosts.
fn simulate(hosts: &Hosts, model: Model, seed: u64) -> Vec<SharedPath> {
    let mut dice = Dice(SplitMix64(seed));
    let mut shares = Shares::default();
    let mut paths = CommonPath::of_groups(hosts);
    for attempt in 1.. {
        if paths.is_empty() {
            break;
        }
        for path in &paths {
            let mut add = |how: &str, links: &[[u32; 2]], factor: f64| {
                let of_all = dice.disturbance(model.bursts);
                for ends in links {
                    let ns = 1e7
                        * factor
                        * (model.noise * dice.normal()).exp()
                        * of_all
                        * dice.disturbance(model.bursts);
                    let mut one = row(path, how, attempt, *ends);
                    one.summary = Summary::new(&[ns; 3]);
                    shares.add(&one, 0);
                }
            };
            add(TOGETHER, &path.links, model.factor);
            path.apart().for_each(|ends| add(APART, &[ends], 1.0));
        }
        paths = shares.once_more(paths, attempt);
    }
    shares.found("repeat")
}

/// Returns in how many sweeps a path is found to be shared.
fn found(hosts: &Hosts, model: Model) -> u64 {
    (0..SWEEPS).filter(|seed| simulate(hosts, model, *seed).iter().any(|path| path.is_shared)).count() as u64
}

#[test]
fn links_without_a_bottleneck_share_none() {
    for (count, per_group) in [(4, 2), (6, 3), (64, 8)] {
        for (noise, bursts) in [(0.01, 0.0), (0.1, 0.05), (0.3, 0.05)] {
            let wrong = found(&hosts(count, per_group), Model { factor: 1.0, noise, bursts });
            assert!(wrong * 100 <= SWEEPS, "{count} hosts, noise {noise}: {wrong} of {SWEEPS}");
        }
    }
}

#[test]
fn links_that_share_a_bottleneck_are_found() {
    for (count, per_group) in [(4, 2), (6, 3), (64, 8)] {
        for (factor, noise, bursts) in [(1.5, 0.05, 0.0), (1.8, 0.1, 0.03), (3.0, 0.2, 0.03)] {
            let found = found(&hosts(count, per_group), Model { factor, noise, bursts });
            assert!(found * 10 >= SWEEPS * 9, "{count} hosts, factor {factor}: {found} of {SWEEPS}");
        }
    }
}

#[test]
fn links_of_a_path_have_no_host_in_common() {
    let paths = CommonPath::of_groups(&hosts(7, 3));
    let names: Vec<(&str, usize)> = paths.iter().map(|path| (path.name.as_str(), path.links.len())).collect();
    assert_eq!(names, [("switch s1", 3), ("switch s2", 3)]);
    assert_eq!(paths[0].links, [[0, 3], [1, 6], [2, 4]]);
    let two_each = Hosts::new(["a", "a", "b", "b", "c", "c", "d", "d"]);
    let pairs = (0..4).map(|rank| [rank, rank + 4]);
    assert_eq!(CommonPath::of_bisection(&two_each, pairs.clone()).unwrap().links, [[0, 4], [2, 6]]);
    assert_eq!(CommonPath::of_bisection(&Hosts::new(["a"; 8]), pairs), None);
}

#[test]
fn attempts_follow_from_the_number_of_paths() {
    assert_eq!([(3, 1), (3, 2), (2, 2), (3, 64)].map(|(links, paths)| attempts(links, paths)), [4, 4, 6, 6]);
    assert!((chance(12, 1) - 13.0 / 4096.0).abs() < 1e-12);
}

#[test]
fn the_sentence_says_what_was_seen() {
    let model = Model { factor: 1.8, noise: 0.0, bursts: 0.0 };
    let found = simulate(&hosts(6, 3), model, 1);
    let [text, evidence] = found[0].sentence();
    assert_eq!(
        text,
        "together, the 3 links from switch s1 to other switches take 1.80 times as long as alone (at 1M bytes), as \
         if they shared the bandwidth of 1.7 links"
    );
    assert_eq!(
        evidence,
        "together 18.00 ms, alone 10.00 ms (medians); at least 1.15 times as long in 12 of 12 comparisons"
    );
}
