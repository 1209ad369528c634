//! Tests of rounds on simulated links.

use ombx_host::performance::{Counted, INSTRUCTIONS, Meter, OpenMeter};
use ombx_record::{result::Figure, unit::Bytes};

use crate::{
    benchmark::Benchmark,
    measure::plan::{Effort, Plan},
    testkit::{SimLink, measure},
    two_sided::pattern::{PatternKernel, PingPong},
};

/// Counts 6200 instructions in each round, and has no other counter.
#[derive(Default)]
struct PerRound {
    is_running: bool,
    rounds: u32,
}

impl Meter for PerRound {
    fn start(&mut self) {
        assert!(!std::mem::replace(&mut self.is_running, true));
    }

    fn stop(&mut self) {
        assert!(std::mem::replace(&mut self.is_running, false));
        self.rounds += 1;
    }

    fn counted(&mut self) -> Counted {
        let none = ("cycles_per_op".to_owned(), Err("unavailable: a test".to_owned()));
        [(INSTRUCTIONS.to_owned(), Ok(6200.0 * f64::from(self.rounds))), none].into()
    }
}

static METERED: Benchmark = Benchmark::new::<PatternKernel<PingPong, SimLink<1000, 1>>>("sim.metered", "x");

#[test]
fn only_timed_rounds_count_and_only_if_they_are_to() {
    let effort = Effort::Fixed { iterations: 60, warmup: 2 };
    let row = |counters: Option<OpenMeter>| {
        let plan = Plan { sizes: Some(vec![Bytes(8)]), effort, counters, ..Plan::default() };
        measure(2, &METERED, &plan).unwrap().rows.remove(0)
    };
    let figures = row(Some(|| Box::new(PerRound::default()))).figures;
    // 15 rounds of 4 samples follow one sample each that does not count; in the first it is half of the warm-up.
    assert_eq!(figures[INSTRUCTIONS], Figure::Value(15.0 * 6200.0 / 75.0 / 2.0));
    assert_eq!(figures["cycles_per_op"], Figure::Unresolved("unavailable: a test".into()));
    assert!(!row(None).figures.contains_key(INSTRUCTIONS));
}

#[test]
fn samples_are_whole_rounds_as_far_as_the_row_has_time() {
    let (mut lengths, time) = (Vec::new(), |us| std::time::Duration::from_micros(us));
    // An iteration takes 2 us.
    for max_time in [time(40), time(80), time(200), time(2000)] {
        let effort = Effort::Precision { precision: 0.01, max_time };
        let plan = Plan { sizes: Some(vec![Bytes(8)]), effort, batch: Some(1), ..Plan::default() };
        let row = measure(2, &METERED, &plan).unwrap().rows.remove(0);
        let samples = &row.samples[0];
        let round = samples.rounds.map(|rounds| rounds.samples as usize);
        let spread = round.unwrap_or(1) * 8;
        assert!(samples.elapsed_ns.len() >= 6, "{samples:?}");
        assert!(round.is_none() || samples.elapsed_ns.len().is_multiple_of(spread), "{samples:?}");
        lengths.push(round);
    }
    assert_eq!(lengths, [None, None, Some(8), Some(16)]);
}
