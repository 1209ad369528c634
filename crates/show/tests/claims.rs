//! The claim of a row: wrong data in a certain part of its iterations would have been found with 95 % probability.
//!
//! A simulated transport damages messages at random, at the rate that a good row claims and below it. The part of damaged rows that the
//! engine catches must be what the claim says.

use std::sync::atomic::{AtomicU64, Ordering};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method,
        payload::{Fill, Slots},
    },
    measure::plan::{Effort, Plan, Verify},
};
use ombx_estimate::publishable::found_from;
use ombx_record::{
    error::Result,
    result::{Check, Measurement, Metric, Outcome, Work},
    unit::Rank,
};
use ombx_testkit::{ThreadTeam, measure};

/// Nanoseconds of an iteration.
const ITERATION: u64 = 30_000;
/// Rows for each rate.
const ROWS: u64 = 600;

/// Damaged messages in 2^32.
static RATE: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);

/// A rank that sends a message to itself. Each message may be damaged.
struct Damaging {
    team: ThreadTeam,
    slots: Slots,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    random: u64,
}

impl Damaging {
    /// Returns a random number below 2^32, by SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) >> 32
    }
}

impl Kernel for Damaging {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "a copy", untimed: "everything else", like: "nothing" };

    fn work(case: &Case) -> Work {
        Work { bytes: case.bytes.0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = Slots::new(case.bytes.0, 1);
        let buffer = vec![0; slots.total() as usize];
        Ok(Damaging {
            team: cx.fabric::<ThreadTeam>()?.clone(),
            slots,
            outgoing: buffer.clone(),
            incoming: buffer,
            random: SEED.load(Ordering::SeqCst).wrapping_mul(0xD6E8_FEB8_6659_FD93),
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(Rank(0), self.slots, &mut self.outgoing);
        fill.poison(Rank(0), self.slots, &mut self.incoming);
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        self.team.time.advance(ITERATION);
        self.incoming.copy_from_slice(&self.outgoing);
        if self.random() < RATE.load(Ordering::SeqCst) {
            self.incoming[3] ^= 1;
        }
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(fill.check(Rank(0), self.slots, &self.incoming, Rank(0)))
    }
}

static BENCH: Benchmark =
    Benchmark::new::<Damaging>("test.damaging", "a test").sizes("8").layout(Layout::Everyone { least: 1 });

fn row(plan: &Plan) -> Measurement {
    measure(1, &BENCH, plan).unwrap().rows.remove(0)
}

/// Returns which part of the rows is caught if messages are damaged at this rate.
fn caught(plan: &Plan, rate: f64) -> f64 {
    RATE.store((rate * 2f64.powi(32)) as u64, Ordering::SeqCst);
    let failed = |seed| {
        SEED.store(seed, Ordering::SeqCst);
        matches!(row(plan).outcome, Outcome::Failed(_))
    };
    let count = (0..ROWS).filter(|seed| failed(*seed)).count();
    RATE.store(0, Ordering::SeqCst);
    count as f64 / ROWS as f64
}

#[test]
fn damage_is_caught_as_often_as_a_row_claims() {
    let fixed = |iterations| Effort::Fixed { iterations, warmup: 1 };
    let sampled = Plan { effort: fixed(100), ..Plan::default() };
    let full = Plan { effort: fixed(90), verify: Verify::Full, ..Plan::default() };
    for (plan, checked) in [(sampled, 64..70), (full, 90..91)] {
        let good = row(&plan);
        assert!(good.check == Check::Passed && checked.contains(&good.checked), "{}", good.checked);
        let claimed = found_from(&good).unwrap();
        assert!((1.0 - (1.0 - claimed).powf(good.checked as f64) - 0.95).abs() < 1e-9);
        // The last timed iteration is checked too. The tolerance is three standard deviations of the part.
        for rate in [claimed, claimed / 10.0] {
            let expected = 1.0 - (1.0 - rate).powf(good.checked as f64 + 1.0);
            let tolerance = 3.0 * (expected * (1.0 - expected) / ROWS as f64).sqrt();
            let found = caught(&plan, rate);
            assert!((found - expected).abs() < tolerance, "{found} of the rows, not {expected}, at {rate}");
        }
    }
}
