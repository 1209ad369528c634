//! Verdicts on simulated hosts that are busy: in some rows ranks wait for a CPU, and these rows take up to 1000 times as long.

use ombx_record::{
    link::{ALONE, APART, BENCH, PATH, REFERENCE, RETEST, TOGETHER},
    random::SplitMix64,
    result::{ClockFacts, Level, Mark, MarkCode, Measurement, Metric, Place, Run},
    stats::Summary,
    verdict::{Component, Conclusion, Verdict},
};

use crate::verdict::{
    LinkSweep, MOST_ROWS, TimesBySize, dice::Dice, once_more, retest_candidates, times::delay_of,
};

/// Standard deviation of the logarithm of a row without waiting.
const NOISE: f64 = 0.03;

/// Hosts with one rank each.
#[derive(Clone, Copy)]
struct Machine {
    hosts: u32,
    /// Share of rows in which ranks wait for a CPU.
    busy: f64,
    /// Link all rows of which are of ranks that wait.
    busy_link: Option<[u32; 2]>,
    /// Host whose links take three times as long.
    slow: Option<u32>,
    /// Mean of the share of its time for which the ranks of the first host, and of the others, wait in each row, with a bound in the mark.
    bounded: [f64; 2],
}

/// Standard deviation of the logarithm by which the waiting of the kernel's threads differs from that of the ranks.
const KERNEL: f64 = 0.1;

impl Machine {
    fn row(self, ends: [u32; 2], again: Option<&str>, random: &mut Dice) -> Measurement {
        let [from, to] = ends;
        let is_busy = self.busy_link.is_some_and(|link| link == [from.min(to), from.max(to)]);
        let waits = random.uniform() < self.busy || is_busy;
        let factor = if self.slow.is_some_and(|slow| ends.contains(&slow)) { 3.0 } else { 1.0 };
        let waiting = if waits { 1000f64.powf(random.uniform()) } else { 1.0 };
        // Ranks wait for a CPU, and so do threads of the kernel, about as long; rows of many slices differ by a half.
        let shares: f64 = ends.iter().map(|end| self.bounded[usize::from(*end > 0)]).sum();
        let bounded = 1.0 + shares * (0.5 + random.uniform());
        let kernel = if shares > 0.0 { bounded * (KERNEL * random.normal()).exp() } else { 1.0 };
        let ns = 30_000.0 * factor * waiting * bounded * kernel.max(1.0) * (NOISE * random.normal()).exp();
        let axes = [("from", from.to_string()), ("to", to.to_string()), ("pattern", "pingpong".into())];
        let again = again.map(|value| (RETEST.to_owned(), value.to_owned()));
        // A note claims that the mark explains little.
        let mark = Mark::new(MarkCode::Waited, "waited 9%", "").at(Level::Note);
        let mark = mark.bounded((!waits).then_some(1.0 - 1.0 / bounded));
        Measurement {
            bytes: Some(8),
            axes: axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).chain(again).collect(),
            summary: Summary::new(&[ns; 10]),
            trust: if waits || shares > 0.0 { vec![mark] } else { Vec::new() },
            ..Measurement::new(BENCH, BENCH, Metric::Latency, 2)
        }
    }

    fn verdict(self, seed: u64) -> Verdict {
        self.sweep(seed).verdict()
    }

    /// Sweeps over the links as `ombx links` does.
    fn sweep(self, seed: u64) -> LinkSweep {
        let mut random = Dice(SplitMix64(seed * 7919 + 13));
        let mut sweep = LinkSweep::of_run(&self.run());
        let ends = (0..self.hosts).flat_map(|a| (0..self.hosts).map(move |b| [a, b]));
        ends.filter(|[a, b]| a != b).for_each(|ends| sweep.add(&self.row(ends, None, &mut random)));
        let mut links = retest_candidates(&sweep.times().0, &sweep.hosts, 4);
        let mut alone = TimesBySize::default();
        for attempt in 1.. {
            for link in &links {
                let value = if link.is_slow { ALONE } else { REFERENCE };
                let row = self.row([link.from, link.to], Some(value), &mut random);
                alone.add(&row, &sweep.hosts, MOST_ROWS);
                sweep.add(&row);
            }
            links = once_more(links, &alone.0, &sweep.hosts, attempt);
            if links.is_empty() {
                break;
            }
        }
        sweep
    }

    fn run(self) -> Run {
        let place = |host| Place {
            host: format!("h{}", host + 1),
            cpus: "0".into(),
            online: 2,
            governor: None,
            quota: None,
        };
        Run {
            places: (0..self.hosts).map(place).collect(),
            clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 9 },
            plan: [].into(),
            hosts: Vec::new(),
            launched: None,
            ..ombx_testkit::golden().run
        }
    }
}

const QUIET: Machine = Machine { hosts: 5, busy: 0.0, busy_link: None, slow: None, bounded: [0.0; 2] };
const SWEEPS: u64 = 100;

fn counted(machine: Machine, is_counted: impl Fn(&Verdict) -> bool) -> usize {
    (0..SWEEPS).filter(|seed| is_counted(&machine.verdict(*seed))).count()
}

/// Few hosts have 2 % of false verdicts, more hosts 1 %: more than 6 of 100 have a probability below 1 %.
#[test]
fn healthy_busy_hosts_are_seldom_accused() {
    for (hosts, busy) in [(5, 0.1), (5, 0.4), (5, 0.8), (12, 0.4)] {
        let machine = Machine { hosts, busy, ..QUIET };
        let accused = counted(machine, |verdict| !verdict.slow.is_empty());
        assert!(accused <= 6, "{accused} of {SWEEPS}: {hosts} hosts, {busy} of rows waited");
    }
}

#[test]
fn a_slow_host_among_busy_ones_is_named() {
    for (busy, least) in [(0.0, 98), (0.2, 95), (0.4, 65)] {
        let machine = Machine { busy, slow: Some(2), ..QUIET };
        let named = counted(machine, |verdict| verdict.components() == [Component::HostBetween(2)]);
        assert!(named >= least, "{named} of {SWEEPS}, {busy} of rows waited");
    }
}

#[test]
fn a_link_whose_ranks_always_waited_is_neither_slow_nor_clear() {
    let machine = Machine { busy_link: Some([1, 3]), ..QUIET };
    let mut reasons = [0, 0];
    for seed in 0..40 {
        let verdict = machine.verdict(seed);
        let said = verdict.lines().join("\n");
        assert!(verdict.slow.is_empty(), "{said}");
        let clause = "1 link was not judged, because ranks waited for a CPU while they were measured: h2-h4";
        assert!(said.contains(clause), "{said}");
        reasons[usize::from(said.contains("but ranks waited for a CPU in these rows"))] += 1;
        if verdict.conclusion == Conclusion::Clear {
            assert!(verdict.sentences[0].text.contains(clause), "not only in the evidence: {said}");
        }
    }
    assert!(reasons[1] >= 20, "most are slow while they wait: {reasons:?}");
}

#[test]
fn ranks_that_a_quota_stopped_accuse_no_other_program() {
    let mut sweep = Machine { busy_link: Some([1, 3]), ..QUIET }.sweep(3);
    assert_eq!(sweep.remedy_of_waiting(), "stop other programs and repeat");
    let mut row = QUIET.row([1, 3], None, &mut Dice(SplitMix64(1)));
    row.trust = vec![Mark::new(MarkCode::QuotaStops, "stopped 9x by quota", "").at(Level::Note)];
    sweep.add(&row);
    assert_eq!(sweep.remedy_of_waiting(), "raise the CPU quota of the ranks and repeat");
    // Links of a bisection that were measured together and alone while the quota stopped their ranks.
    row.trust[0].level = Level::Caution;
    for how in [TOGETHER, APART] {
        row.axes.extend([(PATH.to_owned(), "bisection".to_owned()), (RETEST.to_owned(), how.to_owned())]);
        sweep.add(&row);
    }
    let said = sweep.verdict().lines().join("\n");
    let sentence =
        "together and alone, but ranks waited for a CPU: raise the CPU quota of the ranks and repeat";
    assert!(said.contains(sentence) && !said.contains("other programs"), "{said}");
}

/// A time limit far above all times is met by rows of any kind; one far below is missed by rows without waiting only.
#[test]
fn a_demand_on_a_link_whose_ranks_waited_is_met_or_open() {
    let with = |limit: &str| {
        let mut sweep = Machine { busy_link: Some([1, 3]), ..QUIET }.sweep(3);
        sweep.expectations = vec![format!("latency<{limit}").parse().unwrap()];
        sweep.verdict()
    };
    assert_eq!(with("1000ms").conclusion, Conclusion::Clear);
    assert_eq!(with("1us").conclusion, Conclusion::Slow);
    let between = with("35us");
    assert_eq!(between.conclusion, Conclusion::None, "{:?}", between.lines());
    let said = &between.sentences[0].text;
    assert!(
        said.starts_with("latency<35us: 1 of 10 links at 8 bytes would miss it, but ranks waited"),
        "{said}"
    );
    assert_eq!(between.missed, 0);
}

/// Hosts, the shares of the time for which the first and the others wait, and how many sweeps over healthy hosts are clear at least, and over
/// hosts of which one is slow name it.
const WAITING: [(u32, [f64; 2], [usize; 2]); 4] = [
    (5, [0.05, 0.05], [98, 98]),
    (5, [0.2, 0.2], [0, 15]),
    (5, [0.2, 0.05], [20, 80]),
    (12, [1.0, 0.0], [0, 98]),
];

/// The bound counts the waiting of ranks; threads of the kernel wait about as long.
#[test]
fn hosts_that_wait_a_little_are_seldom_accused_and_a_slow_one_is_named() {
    for (hosts, bounded, [least_clear, least_named]) in WAITING {
        let machine = Machine { hosts, bounded, ..QUIET };
        let verdicts: Vec<Verdict> = (0..SWEEPS).map(|seed| machine.verdict(seed)).collect();
        let accused = verdicts.iter().filter(|verdict| !verdict.slow.is_empty()).count();
        let clear = verdicts.iter().filter(|verdict| verdict.conclusion == Conclusion::Clear).count();
        let slow = Machine { slow: Some(2), ..machine };
        let named = counted(slow, |verdict| verdict.components() == [Component::HostBetween(2)]);
        let what =
            format!("{hosts} hosts that wait {bounded:?}: {accused} accused, {clear} clear, {named} named");
        assert!(accused <= 2 && clear >= least_clear && named >= least_named, "{what}");
    }
}

/// What the hypervisor takes comes on top of what this kernel sees; its own marks count the same waiting.
#[test]
fn stolen_time_lengthens_what_waiting_has_lengthened() {
    let mark = |code, effect| Mark::new(code, "", "").at(Level::Caution).bounded(Some(effect));
    let [waited, preempted] = [MarkCode::Waited, MarkCode::Preempted].map(|code| mark(code, 0.1));
    let stolen = mark(MarkCode::Stolen, 0.2);
    let within = |marks: &[&Mark], expected: f64| {
        let delay = f64::from(delay_of(marks.iter().copied()));
        assert!((delay - expected).abs() < 1e-6, "{marks:?}: {delay}");
    };
    within(&[&waited, &preempted], 0.9f64.powi(-2));
    within(&[&waited, &stolen], (0.9f64 * 0.8).powi(-2));
}
