//! Causes of slow parts, by the sweep over links that ships.

use ombx_links::{
    causes::Errors,
    verdict::{LinkSweep, TIMES_AGAIN, retest_candidates},
};
use ombx_record::{
    fact::{Fact, Facts, HostFacts},
    link::{ALONE, BENCH, REFERENCE, RETEST},
    result::{ClockFacts, Growth, Measurement, Metric, Place, Run, Work},
    stats::Summary,
    verdict::{Conclusion, Verdict},
};

use super::Lines;
use crate::random::Uniform;

/// Standard deviations of the logarithms by which links differ for good, and by which rows differ.
const DIFFERENCES: f64 = 0.05;
const NOISE: f64 = 0.02;
/// Number of slowest links that are measured again besides those that stand out: the default of `ombx links`.
const AGAIN: usize = 4;
/// Counter that also grows in healthy operation.
const COUNTER: &str = "RetransSegs";
/// Least power against a host that is 2.5 times as slow, in percent: four of five, as for `finds` of comparisons.
const POWER: f64 = 80.0;

pub(super) fn simulate(lines: &mut Lines, times: u64, few: u64, seed: u64) {
    let healthy = count_findings(times, seed, [1.0, 1.0], |verdict| verdict.conclusion == Conclusion::Slow);
    let slow = count_findings(times, seed, [9.0, 2.5], |verdict| verdict.slow.len() == 2);
    let mut random = Uniform::new(seed ^ 45);
    let mut accused = 0;
    for _ in 0..few {
        let verdict = verdict(10, [3.0, 1.0], &mut random);
        accused +=
            u64::from(verdict.slow.iter().flat_map(|slow| &slow.causes).any(|text| text.contains(COUNTER)));
    }
    let suspects = "two suspects of four hosts: 2 %";
    lines.share(suspects, "healthy: something is named", healthy, [0.0, 2.0]);
    lines.share(suspects, "both slow: both are named", slow, [POWER, 100.0]);
    let grows = "a slow host of ten, whose counter grows as those of others: it is a cause";
    lines.share("counters under load: 1 %", grows, [accused, few], [0.0, 1.0]);
    let rule = "errors of a host: 1 %";
    lines.share(rule, "five equal hosts, bursts of errors", with_errors(times, seed, None), [0.0, 1.0]);
    lines.share(
        rule,
        "a host that receives damaged packets",
        with_errors(times, seed, Some(3)),
        [POWER, 100.0],
    );
}

/// Counts the sweeps over five hosts with a finding of errors, and all sweeps. Bursts of errors meet any host, or those of each row only one.
fn with_errors(times: u64, seed: u64, faulty: Option<u32>) -> [u64; 2] {
    const HOSTS: u32 = 5;
    let mut random = Uniform::new(seed ^ 46);
    let mut found = 0;
    for _ in 0..times {
        let mut errors = Errors::default();
        let pairs = (0..HOSTS).flat_map(|a| (0..HOSTS).map(move |b| [a, b])).filter(|[a, b]| a != b);
        // Each pair has a row in both directions, and the links of few hosts are all measured again three times.
        for [a, b] in
            pairs.flat_map(|[a, b]| std::iter::repeat_n([a, b], if a < b { 1 + TIMES_AGAIN } else { 1 }))
        {
            let (counts, by) = match faulty {
                Some(faulty) if ![a, b].contains(&faulty) => continue,
                Some(faulty) => (faulty, 20 + (random.next() * 20.0) as u64),
                None if random.next() < 0.8 => continue,
                None => (if random.next() < 0.5 { a } else { b }, 1000f64.powf(random.next()) as u64),
            };
            let [device, counter] = ["Tcp", "InErrs"].map(String::from);
            let partner = if counts == a { b } else { a };
            errors.add(&Growth { host: name(counts), device, counter, by }, Some(&name(partner)));
        }
        found += u64::from(!errors.findings(HOSTS as usize, &[]).is_empty());
    }
    [found, times]
}

/// Counts the verdicts with a finding on four hosts, and all verdicts.
///
/// Two of the hosts have a possible cause: their speed and their MTU differ from those of the others.
fn count_findings(times: u64, seed: u64, factors: [f64; 2], is_found: fn(&Verdict) -> bool) -> [u64; 2] {
    let mut random = Uniform::new(seed ^ 44);
    let mut found = 0;
    for _ in 0..times {
        found += u64::from(is_found(&verdict(4, factors, &mut random)));
    }
    [found, times]
}

/// Returns the verdict on hosts with one rank each, two of which have a possible cause and these factors of time.
fn verdict(hosts: u32, factors: [f64; 2], random: &mut Uniform) -> Verdict {
    let mut sweep = LinkSweep::of_run(&run(hosts));
    let pairs = move || (0..hosts).flat_map(move |a| (0..hosts).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let lasting: Vec<f64> = pairs().map(|_| (DIFFERENCES * random.normal()).exp()).collect();
    let mut row = |from: u32, to: u32, again: Option<&str>| {
        let (low, high) = (from.min(to), from.max(to));
        let of = |at: u32| if [low, high].contains(&at) { factors[at as usize] } else { 1.0 };
        let factor = of(0).max(of(1)) * lasting[(low * (hosts - 1) + high - 1) as usize];
        let ns = 5000.0 * factor * (NOISE * random.normal()).exp();
        let end = if random.next() < 0.5 { from } else { to };
        let growth = Growth {
            host: name(end),
            device: "Tcp".into(),
            counter: COUNTER.into(),
            by: (random.next() * 20.0) as u64,
        };
        let axes = [("from", from.to_string()), ("to", to.to_string()), ("pattern", "pingpong".into())];
        let again = again.map(|value| (RETEST.to_owned(), value.to_owned()));
        Measurement {
            bytes: Some(8),
            axes: axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).chain(again).collect(),
            work: Some(Work { bytes: 16, ops: 2, legs: 2 }),
            summary: Summary::new(&[ns; 10]),
            grown: vec![growth],
            ..Measurement::new(BENCH, BENCH, Metric::Latency, 2)
        }
    };
    pairs().for_each(|(from, to)| sweep.add(&row(from, to, None)));
    let again = retest_candidates(&sweep.times().0, &sweep.hosts, AGAIN);
    for link in std::iter::repeat_n(&again, TIMES_AGAIN).flatten() {
        sweep.add(&row(link.from, link.to, Some(if link.is_slow { ALONE } else { REFERENCE })));
    }
    sweep.verdict()
}

fn name(host: u32) -> String {
    format!("n{host}")
}

fn run(hosts: u32) -> Run {
    let place = |host| Place { host: name(host), cpus: "0".into(), online: 2, governor: None, quota: None };
    Run {
        id: "simulated".into(),
        argv: Vec::new(),
        started: "2026-01-01T00:00:00Z".into(),
        version: String::new(),
        profile: "release".into(),
        fabric: "simulated".into(),
        library: String::new(),
        places: (0..hosts).map(place).collect(),
        clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 9 },
        plan: [].into(),
        env: [].into(),
        software: Facts::new(),
        hosts: HostFacts::grouped((0..hosts).map(|host| (name(host), facts(host)))),
        loaded: None,
        launched: None,
    }
}

/// Returns the facts of a host. The speed of host 0 and the MTU of host 1 differ from those of the others.
fn facts(host: u32) -> Facts {
    let fact = |name: &str, text: &str| (name.to_owned(), Fact::Known(text.to_owned()));
    let [speed, mtu] = [0, 1].map(|suspect| host == suspect);
    Facts::from([
        fact("eth0 speed", if speed { "10 Gbit/s" } else { "25 Gbit/s" }),
        fact("eth0 MTU", if mtu { "1500" } else { "9000" }),
    ])
}
