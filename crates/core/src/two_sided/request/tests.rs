//! Requests to servers of known service time, in virtual time.

use ombx_record::{
    result::{ACHIEVED, BACKLOG, Figure, Measurement, Outcome, Work},
    unit::parse_sizes,
};

use super::*;
use crate::{
    benchmark::{Benchmark, Chosen, Depth, Kernel, ParameterValue},
    measure::plan::{Effort, Plan},
    testkit::{PAUSE_NS, SimServer, measure},
    two_sided::request::{Arrivals, Rate},
};

/// 100 us for each request: 10,000 per second.
type Steady = SimServer<100_000>;
/// Pauses for 100 ms before every 2500th request.
type Pausing = SimServer<100_000, 2500>;

const fn requests<L: RequestLink>(name: &'static str) -> Benchmark {
    Benchmark::custom(name, "x", Metric::Latency, method("x"), run_requests::<L>)
        .streaming()
        .with(&[Rate::PARAMETER])
        .with(&[Arrivals::PARAMETER])
}

fn plan(rates: &str, requests: u64) -> Plan {
    let mut chosen = Chosen::default().with(Depth(256));
    chosen.set("rate", Rate::PARAMETER.read(rates).unwrap());
    Plan {
        sizes: Some(parse_sizes("64").unwrap()),
        chosen,
        effort: Effort::Fixed { iterations: requests, warmup: 2 },
        ..Plan::default()
    }
}

fn value(row: &Measurement, name: &str) -> f64 {
    match &row.figures[name] {
        Figure::Value(value) => *value,
        Figure::Unresolved(why) => panic!("{}: {name}: {why}", row.key),
    }
}

fn is_saturated(row: &Measurement) -> bool {
    row.trust.iter().any(|mark| mark.code.name() == "saturated")
}

#[test]
fn the_knee_lies_at_the_rate_of_the_server() {
    static BENCH: Benchmark = requests::<Steady>("sim.request");
    let rows = measure(2, &BENCH, &plan("1000,9700,10300,20000", 2000)).unwrap().rows;
    let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys[0], "sim.request/rate=1000,bytes=64,depth=256");
    assert_eq!(rows.iter().map(is_saturated).collect::<Vec<_>>(), [false, false, true, true]);
    for (row, [offered, achieved]) in
        rows.iter().zip([[1000.0, 1000.0], [9700.0, 9700.0], [10300.0, 10_000.0], [20_000.0, 10_000.0]])
    {
        assert_eq!((&row.check, &row.outcome), (&Check::Passed, &Outcome::Ok), "{}", row.key);
        assert_eq!(value(row, "offered_rps"), offered);
        assert!((value(row, ACHIEVED) / achieved - 1.0).abs() < 0.01, "{}: {:?}", row.key, row.figures);
    }
    // Below the knee a request waits for its service alone. A poll takes 1 us.
    let median = rows[1].summary.as_ref().unwrap().median;
    assert!((median - 100_000.0).abs() <= 2000.0, "{median}");
    assert!((value(&rows[3], BACKLOG) - 100.0).abs() < 2.0, "{:?}", rows[3].figures);
}

/// The closed loop: a request is sent when the reply to the one before has arrived.
struct Closed<L> {
    link: L,
    answered: u64,
}

impl<L: RequestLink> Kernel for Closed<L> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = method("x");

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let mut link = L::open(cx, Slots::new(case.bytes.0, 1))?;
        // One request more for each round of 16, and those that are checked.
        link.prepare(REQUESTS + REQUESTS / 16 + 10)?;
        Ok(Closed { link, answered: 0 })
    }

    fn active(&mut self) -> Result<()> {
        self.link.send_some(self.answered)?;
        self.answered += 1;
        while self.link.replies()? < self.answered {}
        Ok(())
    }

    fn passive(&mut self) -> Result<()> {
        self.link.answer(self.answered)?;
        self.answered += 1;
        Ok(())
    }
}

const REQUESTS: u64 = 30_000;

#[test]
fn a_pause_shows_in_the_p99_of_an_open_loop_and_a_closed_loop_hides_it() {
    static OPEN: Benchmark = requests::<Pausing>("sim.open");
    static CLOSED: Benchmark = Benchmark::new::<Closed<Pausing>>("sim.closed", "x");
    let p99 = |row: &Measurement| row.percentiles(&[0.99], crate::clock::Clock::manual(9).0.facts())[0];
    let [open, closed] = [&OPEN, &CLOSED].map(|bench| {
        let plan = Plan { batch: Some(1), ..plan("1000", REQUESTS) };
        measure(2, bench, &plan).unwrap().rows.remove(0)
    });
    let late = |row: &Measurement| row.samples[0].elapsed_ns.iter().filter(|ns| **ns > 1_000_000).count();
    // Requests of 100 ms wait in each of 11 pauses, and those that are due while the server works them off at ten times the rate.
    assert!((1100..1265).contains(&late(&open)), "{}", late(&open));
    // The closed loop counts its warm-up, and one pause meets a sample that does not count.
    assert_eq!(late(&closed), 11);
    let [open, closed] = [&open, &closed].map(|row| p99(row).unwrap().value);
    assert!(open > 0.5 * PAUSE_NS as f64 && closed < 0.002 * PAUSE_NS as f64, "{open} and {closed} ns");
}

#[test]
fn requests_that_find_no_free_slot_count_from_their_scheduled_time() {
    static BENCH: Benchmark = requests::<Pausing>("sim.open");
    let mut plan = plan("1000", 5000);
    plan.chosen.choose([Depth(4)]);
    let row = measure(2, &BENCH, &plan).unwrap().rows.remove(0);
    let late = row.samples[0].elapsed_ns.iter().filter(|ns| **ns > 1_000_000).count();
    assert!((100..115).contains(&late), "{late} requests are late with a window of 4");
    assert!(!is_saturated(&row), "the server works off the backlog: {:?}", row.figures);
}

#[test]
fn random_arrivals_queue() {
    static BENCH: Benchmark = requests::<Steady>("sim.request");
    let mut plan = plan("5000", 20_000);
    plan.chosen.set("arrivals", ["exponential"]);
    let row = measure(2, &BENCH, &plan).unwrap().rows.remove(0);
    assert_eq!(row.key, "sim.request/rate=5000,arrivals=exponential,bytes=64,depth=256");
    // Pollaczek-Khinchine: at half the rate of the server a request waits for half a service time in the mean.
    let mean = row.summary.as_ref().unwrap().mean;
    assert!((mean / 150_000.0 - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn wrong_requests_and_wrong_replies_fail_the_row() {
    static BAD_REQUEST: Benchmark = requests::<SimServer<1000, 0, 6>>("sim.bad_request");
    static BAD_REPLY: Benchmark = requests::<SimServer<1000, 0, { usize::MAX }>>("sim.bad_reply");
    let mut plan = plan("1000", 10);
    plan.chosen.choose([Depth(4)]);
    for (bench, place) in [(&BAD_REQUEST, (Rank(1), 3, 5)), (&BAD_REPLY, (Rank(0), 0, 1))] {
        let row = measure(2, bench, &plan).unwrap().rows.remove(0);
        let Check::Failed(m) = &row.check else { panic!("{row:?}") };
        assert_eq!((m.rank, m.slot, m.byte), place);
        assert_eq!(m.expected ^ m.actual, 1);
    }
}

#[test]
fn a_row_by_time_is_one_round_of_its_schedule() {
    static BENCH: Benchmark = requests::<Steady>("sim.request");
    let effort = Effort::Precision { precision: 0.01, max_time: std::time::Duration::from_secs(1) };
    let plan = Plan { effort, verify: crate::measure::plan::Verify::Off, ..plan("1000,100", 0) };
    let rows = measure(2, &BENCH, &plan).unwrap().rows;
    for (row, most) in rows.iter().zip([1000, 100]) {
        let n = row.summary.as_ref().unwrap().n;
        assert!(n <= most && n > most * 8 / 10, "{}: {n}", row.key);
    }
    let batched = measure(2, &BENCH, &Plan { batch: Some(2), ..plan }).unwrap().rows.remove(0);
    assert!(matches!(&batched.outcome, Outcome::Skipped(why) if why.contains("--batch")), "{batched:?}");
}
