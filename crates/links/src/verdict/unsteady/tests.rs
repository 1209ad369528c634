//! Verdicts on simulated links that are slow in some measurements.

use ombx_record::{
    link::{ALONE, BENCH, REFERENCE},
    random::SplitMix64,
    result::{ClockFacts, Metric, Place, Run},
    stats::Summary,
    verdict::{Conclusion, Verdict},
};

use crate::verdict::{
    LinkSweep, MOST_ROWS, TimesBySize, dice::Dice, once_more, retest_candidates, unsteady::*,
};

/// Standard deviations of the logarithms of rows and of links.
const NOISE: f64 = 0.03;
/// Number of simulated sweeps.
const SWEEPS: u64 = 100;

/// Hosts with one rank each.
#[derive(Clone, Copy)]
struct Machine {
    hosts: u32,
    launches: usize,
    /// Share of visits that a disturbance makes up to ten times as long.
    disturbed: f64,
    /// Share of rounds and attempts in which it disturbs all links.
    bursts: f64,
    /// Share of visits in which the link between hosts 1 and 3 is 22 times as slow.
    faulty: f64,
    /// Packets that a faulty visit sends again.
    resent: u64,
}

const HEALTHY: Machine =
    Machine { hosts: 5, launches: 1, disturbed: 0.0, bursts: 0.0, faulty: 0.0, resent: 0 };

/// Draws what a visit shares: its factor, and the packets sent again.
struct Moments<'a> {
    machine: Machine,
    dice: &'a mut Dice,
    visits: BTreeMap<(u32, [u32; 2]), (f64, u64)>,
    bursts: BTreeMap<u32, f64>,
}

impl Moments<'_> {
    fn visit(&mut self, place: u32, ends: [u32; 2]) -> (f64, u64) {
        let Machine { disturbed, bursts, faulty, resent, .. } = self.machine;
        let dice = &mut *self.dice;
        let burst = *self.bursts.entry(place).or_insert_with(|| dice.disturbance(bursts));
        let own = *self.visits.entry((place, ends)).or_insert_with(|| {
            let disturbance = dice.disturbance(disturbed);
            // Healthy links send some packets again, and many in a burst.
            let most = if burst > 1.0 { 2000.0 } else { 20.0 };
            let packets =
                if burst > 1.0 || dice.uniform() < 0.1 { (dice.uniform() * most) as u64 } else { 0 };
            match ends == [1, 3] && dice.uniform() < faulty {
                true => (22.0, resent),
                false => (disturbance, packets),
            }
        });
        (own.0 * burst, own.1)
    }
}

impl Machine {
    fn verdict(self, seed: u64) -> Verdict {
        let mut dice = Dice(SplitMix64(seed * 7919 + 13));
        let all: Vec<[u32; 2]> =
            (0..self.hosts).flat_map(|a| (a + 1..self.hosts).map(move |b| [a, b])).collect();
        let lasting: BTreeMap<[u32; 2], f64> =
            all.iter().map(|ends| (*ends, (NOISE * dice.normal()).exp())).collect();
        let circle = if self.hosts.is_multiple_of(2) { self.hosts - 1 } else { self.hosts };
        let round_of = |[a, b]: [u32; 2]| (if b == circle { 2 * a } else { a + b }) % circle;
        let mut sweep = LinkSweep::default();
        for launch in 1..=self.launches {
            let run = self.run(launch);
            if launch == 1 {
                sweep = LinkSweep::of_run(&run);
            } else {
                sweep.begin(&run);
            }
            let mut moments =
                Moments { machine: self, dice: &mut dice, visits: [].into(), bursts: [].into() };
            let mut row = |place: u32, [from, to]: [u32; 2], again: Option<(&str, usize)>| {
                let ends = [from.min(to), from.max(to)];
                let (factor, resent) = moments.visit(place, ends);
                let ns = 30_000.0 * factor * lasting[&ends] * (NOISE * moments.dice.normal()).exp();
                let mut row = Measurement::new(BENCH, BENCH, Metric::Latency, 2);
                let axes =
                    [("from", from.to_string()), ("to", to.to_string()), ("pattern", "pingpong".into())];
                row.axes = axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect();
                match again {
                    None => _ = row.axes.insert(ROUND.into(), place.to_string()),
                    Some((value, attempt)) => row.axes.extend([
                        (RETEST.to_owned(), value.to_owned()),
                        (ATTEMPT.to_owned(), attempt.to_string()),
                    ]),
                }
                row.bytes = Some(8);
                row.summary = Summary::new(&[ns; 10]);
                let [device, counter] = ["Tcp", "RetransSegs"].map(String::from);
                let host = format!("h{}", from + 1);
                row.grown =
                    if resent > 0 { vec![Growth { host, device, counter, by: resent }] } else { vec![] };
                row
            };
            for ends in &all {
                sweep.add(&row(round_of(*ends), *ends, None));
                sweep.add(&row(round_of(*ends), [ends[1], ends[0]], None));
            }
            let times = sweep.of_last_launch().clone();
            let mut links = retest_candidates(&times.0, &sweep.hosts, 4);
            let mut alone = TimesBySize::default();
            for attempt in 1.. {
                for link in &links {
                    let value = if link.is_slow { ALONE } else { REFERENCE };
                    let row = row(1000 + attempt as u32, [link.from, link.to], Some((value, attempt)));
                    alone.add(&row, &sweep.hosts, MOST_ROWS);
                    sweep.add(&row);
                }
                links = once_more(links, &alone.0, &sweep.hosts, attempt);
                if links.is_empty() {
                    break;
                }
            }
        }
        sweep.verdict()
    }

    fn run(self, launch: usize) -> Run {
        let place = |host| Place {
            host: format!("h{}", host + 1),
            cpus: "0".into(),
            online: 2,
            governor: None,
            quota: None,
        };
        let plan = [("launch", launch), ("launches", self.launches)];
        Run {
            places: (0..self.hosts).map(place).collect(),
            clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 9 },
            plan: plan.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
            hosts: Vec::new(),
            launched: None,
            ..ombx_testkit::golden().run
        }
    }

    /// Counts the sweeps whose verdict names an unsteady link, and those that name another one than that of hosts 1 and 3.
    fn named(self) -> [usize; 2] {
        let mut counts = [0, 0];
        for seed in 0..SWEEPS {
            let verdict = self.verdict(seed);
            let of = |sentence: &&ombx_record::verdict::Sentence| sentence.conclusion == Conclusion::Unsteady;
            let found: Vec<_> = verdict.sentences.iter().filter(of).collect();
            for sentence in &found {
                assert!(sentence.text.starts_with(&sentence.about[0].join("-")), "{sentence:?}");
            }
            counts[0] += usize::from(found.iter().any(|sentence| sentence.text.starts_with("h2-h4 ")));
            counts[1] += usize::from(found.iter().any(|sentence| !sentence.text.starts_with("h2-h4 ")));
        }
        counts
    }
}

/// More than 5 of 100 have a probability below 0.1 % if 1 % are false, and more than 11 below 1 % if 5 % are.
#[test]
fn healthy_links_are_seldom_unsteady() {
    for (machine, most) in [
        (HEALTHY, 5),
        (Machine { hosts: 12, ..HEALTHY }, 5),
        (Machine { disturbed: 0.03, ..HEALTHY }, 11),
        (Machine { disturbed: 0.1, ..HEALTHY }, 11),
        (Machine { hosts: 12, disturbed: 0.05, ..HEALTHY }, 11),
        (Machine { bursts: 0.1, ..HEALTHY }, 11),
        (Machine { hosts: 8, bursts: 0.1, disturbed: 0.02, ..HEALTHY }, 11),
        (Machine { launches: 5, disturbed: 0.05, bursts: 0.05, ..HEALTHY }, 11),
    ] {
        let [one, other] = machine.named();
        let Machine { hosts, launches, disturbed, bursts, .. } = machine;
        let what = format!("{hosts} hosts, {launches} launches, {disturbed} disturbed, {bursts} bursts");
        assert!(one + other <= most, "{one} and {other} of {SWEEPS}: {what}");
    }
}

#[test]
fn a_link_that_is_slow_in_some_measurements_is_unsteady() {
    for (machine, least) in [
        (Machine { faulty: 0.33, resent: 2405, ..HEALTHY }, 40),
        (Machine { faulty: 0.33, launches: 5, ..HEALTHY }, 85),
        (Machine { faulty: 0.33, launches: 5, disturbed: 0.03, ..HEALTHY }, 60),
    ] {
        let [right, wrong] = machine.named();
        assert!(right >= least && wrong <= 5, "{right} right, {wrong} wrong of {SWEEPS}");
    }
}

#[test]
fn the_tail_is_that_of_drawing_without_replacement() {
    // All three slow visits of 40 on one link with four: C(4, 3) / C(40, 3).
    assert!((hypergeometric_tail([3, 4], [3, 40]) - 4.0 / 9880.0).abs() < 1e-12);
    assert!((hypergeometric_tail([0, 4], [3, 40]) - 1.0).abs() < 1e-9);
    assert_eq!(hypergeometric_tail([4, 4], [3, 40]), 0.0);
}

#[test]
fn the_sentence_says_how_often_and_with_what() {
    let machine = Machine { faulty: 0.5, resent: 99, ..HEALTHY };
    let verdicts: Vec<Verdict> = (0..8).map(|seed| machine.verdict(seed)).collect();
    let text = verdicts.iter().flat_map(|verdict| &verdict.sentences).find(|sentence| {
        sentence.conclusion == Conclusion::Unsteady && sentence.text.ends_with(", with retransmits")
    });
    let text = &text.expect("one of eight").text;
    assert!(text.starts_with("h2-h4 took 2"), "{text}");
    assert!(text.contains(" of 4 measurements (at 8 bytes)"), "{text}");
}
