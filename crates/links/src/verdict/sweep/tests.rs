//! Verdicts on few links.

use ombx_record::{
    fact::{Fact, Facts},
    link::ALONE,
    result::{Growth, Metric},
};

use crate::verdict::{TimesBySize, sweep::*, times::LinkRow};

/// Builds a sweep over hosts with one rank each, with these times per link and slight differences.
fn sweep(hosts: u32, ns: impl Fn(u32, u32) -> f32) -> LinkSweep {
    let names: Vec<String> = (1..=hosts).map(|host| format!("h{host}")).collect();
    let hosts_of = Hosts::new(names.iter().map(String::as_str));
    let mut times = LinkTimes { bytes: 8, ..LinkTimes::default() };
    for (from, to) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let noise = 1.0 + 0.01 * ((from * 7 + to * 5) % 4) as f32;
        let link = Link { from, to, ns: ns(from.min(to), from.max(to)) * noise };
        times.sweep.push(link);
        if from < to {
            times.reference.push(link);
        }
    }
    LinkSweep { hosts: hosts_of, launches: vec![TimesBySize(vec![times])], ..LinkSweep::default() }
}

fn text(sweep: &LinkSweep) -> String {
    sweep.verdict().lines().join("\n")
}

/// Returns a sweep over four hosts that lacks a link.
fn five_of_six_links() -> LinkSweep {
    let mut sweep = sweep(4, |_, _| 1000.0);
    let times = &mut sweep.launches[0].0[0];
    for rows in [&mut times.sweep, &mut times.reference] {
        rows.retain(|row| (row.from.min(row.to), row.from.max(row.to)) != (0, 1));
    }
    sweep
}

#[test]
fn few_links_are_never_an_all_clear() {
    for hosts in 2..=3 {
        let healthy = sweep(hosts, |_, _| 1000.0);
        assert_eq!(healthy.verdict().conclusion, Conclusion::None, "{hosts}: {}", text(&healthy));
        assert!(text(&healthy).starts_with("no verdict: "), "{}", text(&healthy));
        assert!(text(&healthy).contains("at least 4 hosts and 6 links"), "{}", text(&healthy));
    }
    for hosts in [4, 5] {
        let healthy = sweep(hosts, |_, _| 1000.0);
        assert_eq!(healthy.verdict().conclusion, Conclusion::Clear, "{}", text(&healthy));
        assert!(text(&healthy).contains("would have been named"), "{}", text(&healthy));
    }
    let mut one = five_of_six_links();
    let times = &mut one.launches[0].0[0];
    for rows in [&mut times.sweep, &mut times.reference] {
        rows.retain(|row| (row.from.min(row.to), row.from.max(row.to)) == (2, 3));
    }
    assert!(text(&one).starts_with("no verdict: 1 link is too few for an all-clear"), "{}", text(&one));
    let one_less = five_of_six_links();
    assert_eq!(one_less.verdict().conclusion, Conclusion::None, "{}", text(&one_less));
}

#[test]
fn the_ratios_of_few_links_are_said() {
    let slow = sweep(3, |a, b| if (a, b) == (0, 1) { 139_000.0 } else { 1000.0 });
    assert_eq!(slow.verdict().conclusion, Conclusion::None);
    let said = text(&slow);
    for words in ["no verdict: 3 links", "h1-h2 takes 13", "the other 2 links", "cannot be distinguished"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let slow = sweep(4, |a, b| if a == 2 || b == 2 { 139_000.0 } else { 1000.0 });
    assert_eq!(slow.verdict().conclusion, Conclusion::Slow);
    let said = text(&slow);
    assert!(said.starts_with("verdict: host h3 is slow"), "{said}");
    assert!(said.contains("\n  evidence: ") && said.contains("3 ordinary links"), "{said}");
}

/// A port at a tenth of the rate, and a host that receives damaged data.
#[test]
fn two_slow_hosts_of_four_are_named_if_both_have_a_cause() {
    let with = |causes: [bool; 2]| {
        let mut slow = sweep(4, |a, b| {
            if [a, b].contains(&1) {
                9000.0
            } else if [a, b].contains(&3) {
                3000.0
            } else {
                1000.0
            }
        });
        let speed = |host: &str| if host == "h2" && causes[0] { "10 Mbit/s" } else { "100 Mbit/s" };
        let facts = |host: &str| Facts::from([("eth0 speed".to_owned(), Fact::Known(speed(host).into()))]);
        slow.facts = HostFacts::grouped(["h1", "h2", "h3", "h4"].map(|host| (host.to_owned(), facts(host))));
        let [host, device, counter] = ["h4", "Tcp", "InErrs"].map(String::from);
        slow.grown.add(&Growth { host, device, counter, by: 9 * u64::from(causes[1]) });
        slow
    };
    for causes in [[false, false], [true, false]] {
        let verdict = LinkSweep { grown: Totals::default(), ..with(causes) }.verdict();
        assert_eq!(verdict.conclusion, Conclusion::None, "{:?}", verdict.lines());
    }
    let said = text(&with([true, true]));
    for (host, factor, cause) in [
        ("h2", "8.91", "possible cause: h2: eth0 speed 10 Mbit/s, others 100 Mbit/s"),
        ("h4", "2.97", "possible cause: h4: Tcp InErrs +9, others 0"),
    ] {
        let sentence = format!("verdict: host {host} is slow: its links to other hosts take {factor}");
        let own = said.split_once(&sentence).unwrap_or_else(|| panic!("{sentence}: {said}")).1;
        assert!(own.split("verdict: ").next().unwrap().contains(cause), "{said}");
    }
    assert!(said.contains("tested because it has a possible cause"), "{said}");
    assert!(!said.contains("would have been named"), "the spread of the links is not known: {said}");
}

#[test]
fn rows_that_measure_candidates_again_do_not_count_for_what_grows_under_load() {
    let [host, device, counter] = ["h1", "Tcp", "RetransSegs"].map(String::from);
    let grown = vec![Growth { host, device, counter, by: 3 }];
    let mut row = Measurement { grown, ..Measurement::new("links", "links", Metric::Latency, 2) };
    row.axes.insert(RETEST.into(), ALONE.into());
    let mut sweep = sweep(4, |_, _| 1000.0);
    let mut causes = |row: &Measurement| {
        (0..30).for_each(|_| sweep.add(row));
        sweep.grown.under_load(4, &[]).len()
    };
    assert_eq!(causes(&row), 0);
    row.axes.clear();
    assert_eq!(causes(&row), 1);
}

#[test]
fn what_grows_after_the_rows_counts_unless_they_were_measured_again() {
    let grown = |counter: &str| {
        let [host, device, counter] = ["h1", "Tcp", counter].map(String::from);
        Growth { host, device, counter, by: 3 }
    };
    let all = [grown("InErrs"), grown("RetransSegs")];
    let mut sweep = sweep(4, |_, _| 1000.0);
    sweep.add_grown(&all);
    assert_eq!(sweep.grown(), all);
    sweep.launches[0].0[0].alone.push(Link { from: 0, to: 1, ns: 9.0 });
    sweep.add_grown(&all);
    assert_eq!(sweep.grown().iter().map(|one| one.by).collect::<Vec<_>>(), [6, 3]);
}

#[test]
fn the_reason_of_no_verdict_is_the_true_one() {
    let waiting = || {
        let rows = Rows { all: 12, waited: 12, useless: 12, ..Rows::default() };
        LinkSweep { rows, ..five_of_six_links() }
    };
    let said = text(&waiting());
    assert!(said.starts_with("no verdict: ranks waited for a CPU in all rows: "), "{said}");
    assert!(said.contains("5 links between 4 hosts are too few"), "{said}");
    let some = LinkSweep { rows: Rows { all: 12, waited: 6, useless: 6, ..Rows::default() }, ..waiting() };
    assert!(!text(&some).contains("waited"), "{}", text(&some));
    let few = LinkSweep {
        rows: Rows { all: 2, waited: 2, useless: 2, ..Rows::default() },
        ..sweep(2, |_, _| 1000.0)
    };
    assert!(text(&few).starts_with("no verdict: 1 link cannot be compared"), "{}", text(&few));
}

#[test]
fn the_host_that_slow_links_share_is_named() {
    let slow = sweep(3, |a, b| if a == 1 || b == 1 { 9000.0 } else { 1000.0 });
    assert!(text(&slow).contains("; host h2 is an end of all of them"), "{}", text(&slow));
    // Two links of a host are slow, and the others are not.
    let slow = sweep(8, |a, b| if [(0, 3), (3, 5)].contains(&(a, b)) { 9000.0 } else { 1000.0 });
    let said = text(&slow);
    assert_eq!(said.matches("verdict: the link between").count(), 2, "{said}");
    assert!(said.contains("host h4 is an end of all slow links"), "{said}");
}

#[test]
fn a_link_has_one_factor() {
    let slow = sweep(8, |a, b| if (a, b) == (0, 3) { 2000.0 } else { 1000.0 });
    let verdict = slow.verdict();
    let [found] = &verdict.slow[..] else { panic!("{}", text(&slow)) };
    assert_eq!(found.evidence.links[0].1, found.factor);
    let times = slow.averaged().remove(0);
    assert!(times.is_repeated, "eight ranks measure all links again");
    let table = crate::verdict::slowest(&times, &slow.hosts, 1, &verdict.components());
    assert_eq!(table[0].factor, found.factor);
}

#[test]
fn links_that_differ_much_are_no_all_clear() {
    let scattered = sweep(6, |a, b| 1000.0 * 1.5f32.powi(((a * 3 + b) % 5) as i32));
    assert_eq!(scattered.verdict().conclusion, Conclusion::None, "{}", text(&scattered));
    assert!(text(&scattered).contains("differ too much"), "{}", text(&scattered));
}

#[test]
fn an_obstacle_prevents_every_verdict() {
    let mut slow = sweep(5, |a, _| if a == 0 { 9000.0 } else { 1000.0 });
    assert_eq!(slow.verdict().conclusion, Conclusion::Slow);
    slow.obstacle = Some("ranks share CPUs".into());
    slow.expectations = vec!["latency<1000ms".parse().unwrap()];
    assert_eq!(slow.verdict().conclusion, Conclusion::None);
    assert_eq!(text(&slow), "no verdict: ranks share CPUs");
}

#[test]
fn a_part_whose_ranks_waited_for_a_cpu_is_not_named() {
    let mut slow = sweep(5, |a, b| if a == 2 || b == 2 { 9000.0 } else { 1000.0 });
    assert_eq!(slow.verdict().conclusion, Conclusion::Slow);
    let on_it = |l: &&Link| l.from == 2 || l.to == 2;
    let times = &mut slow.launches[0].0[0];
    let waited = |link: &Link| LinkRow { link: *link, delay: f32::INFINITY };
    times.waited = times.sweep.iter().chain(&times.reference).filter(on_it).map(waited).collect();
    slow.rows = Rows { all: 30, waited: 12, useless: 12, ..Rows::default() };
    assert_eq!(slow.verdict().conclusion, Conclusion::None);
    assert!(text(&slow).starts_with("no verdict: host h3 is slow"), "{}", text(&slow));
    assert!(text(&slow).contains("waited for a CPU"), "{}", text(&slow));
}

#[test]
fn rows_that_disagree_name_nothing() {
    let mut noisy = sweep(4, |_, _| 20_000.0);
    let times = &mut noisy.launches[0].0[0];
    // Half of all rows take 300 times as long; one link has only such rows.
    for (at, l) in times.sweep.iter_mut().chain(&mut times.reference).enumerate() {
        if (l.from.min(l.to), l.from.max(l.to)) == (0, 1) || at % 2 == 0 {
            l.ns *= 300.0;
        }
    }
    assert_eq!(noisy.verdict().conclusion, Conclusion::None, "{}", text(&noisy));
}

/// Pairs that are measured at the same time disturb each other: another link in each launch.
#[test]
fn a_link_is_slow_only_if_it_is_slow_in_most_launches() {
    let over = |slow: [(u32, u32); 3]| {
        let one = |link| sweep(6, move |a, b| if (a, b) == link { 9000.0 } else { 1000.0 });
        let launches = slow.iter().flat_map(|link| one(*link).launches).collect();
        LinkSweep { launches, ..one(slow[0]) }
    };
    let wandering = over([(0, 1), (2, 3), (1, 4)]);
    assert_eq!(wandering.launches(), 3);
    assert_eq!(wandering.verdict().conclusion, Conclusion::Clear, "{}", text(&wandering));
    let lasting = over([(0, 1), (2, 3), (0, 1)]);
    assert_eq!(lasting.verdict().conclusion, Conclusion::Slow, "{}", text(&lasting));
    assert!(text(&lasting).starts_with("verdict: the link between h1 and h2 is slow"), "{}", text(&lasting));
    let first_alone = LinkSweep { launches: wandering.launches[..1].to_vec(), ..wandering };
    assert_eq!(first_alone.verdict().conclusion, Conclusion::Slow, "{}", text(&first_alone));
}

/// Times of healthy links, while frames of host 4 arrive damaged.
#[test]
fn errors_are_a_finding_beside_ordinary_times() {
    let errors = |host: u32, rows: usize| {
        let mut damaged = sweep(5, |_, _| 1000.0);
        for at in 0..rows as u32 {
            let [device, counter] = ["Tcp", "InErrs"].map(String::from);
            let grown = vec![Growth { host: format!("h{}", host + 1), device, counter, by: 29 }];
            let mut row = Measurement { grown, ..Measurement::new("links", "links", Metric::Latency, 2) };
            let ends = [host, (host + 1 + at % 4) % 5];
            let axes = [("from", ends[0]), ("to", ends[1])];
            row.axes.extend(axes.map(|(axis, rank)| (axis.to_owned(), rank.to_string())));
            damaged.add(&row);
        }
        damaged
    };
    let damaged = errors(3, 16);
    let verdict = damaged.verdict();
    assert_eq!(verdict.conclusion, Conclusion::Errors);
    assert_eq!(verdict.sentences[0].about, [["h4"]]);
    let said = text(&damaged);
    let expected = "verdict: wrong checksums: h4 counted Tcp InErrs +464, others 0; a guess: cable, port or adapter of h4";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("verdict: no host, rank or link stands out; "), "{said}");
    assert!(!said.contains("besides, h4"), "it is said once: {said}");
    let few = errors(3, 2);
    assert_eq!(few.verdict().conclusion, Conclusion::Clear, "one burst may meet any host: {}", text(&few));
    let shared = LinkSweep { obstacle: Some("ranks share CPUs".into()), ..errors(3, 16) };
    assert_eq!(shared.verdict().conclusion, Conclusion::Errors, "{}", text(&shared));
}
