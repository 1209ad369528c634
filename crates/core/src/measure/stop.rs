//! The stop rule. Rank 0 evaluates it between rounds of samples, whose number grows geometrically.

use std::time::Duration;

use ombx_record::{codec::checksum, random::SplitMix64, result::ClockProperties, stats::Summary};

use crate::measure::plan::{Effort, Launch};

/// Minimum samples of a row, unless its time is used up earlier.
pub const LEAST_SAMPLES: u64 = 30;
/// Minimum samples of a row in any case; fewer have no interval.
pub const LEAST_FOR_INTERVAL: u64 = 6;
/// Minimum samples of a row in one of several launches, whose interval is that of the launches. The median of an odd number of samples is
/// as often below the true median as above it, whatever their distribution, and one disturbed sample of three is not the median.
pub const LEAST_OF_LAUNCH: u64 = 3;
/// Time of an iteration from which one sample is enough in one of several launches, and from which one launch checks for all. The least
/// number of checks of shorter iterations fits into the time that checks may take. Where launches scatter by s and samples by e, the squared
/// width by time is (s² + e²) · 1 with one sample and (s² + 0.449 e²) · 3 with the median of three (a normal distribution).
const LONG: Duration = Duration::from_nanos(LEAST_FOR_CHECKS.as_nanos() as u64 / LEAST_CHECKED);
/// Maximum samples of a row. With this number the interval of any stationary quantity is narrow.
pub const MOST_SAMPLES: u64 = 100_000;
/// Maximum samples of a row in one of several launches. The scatter between launches hides what more samples would add.
pub const MOST_SAMPLES_OF_LAUNCH: u64 = 10_000;
/// The first round takes at least 1 / this of the maximum time, so that it does not sample a single moment.
const LEAST_TIME_DIVISOR: u32 = 100;
/// Growth factor of the number of samples per round.
const GROWTH: f64 = 1.6;
/// Maximum cost of a clock reading as a fraction of a sample.
const STAMP_PART: f64 = 0.01;
/// Maximum step of the clock as a fraction of a sample. Intervals contain a step at each end.
const STEP_PART: f64 = 0.002;
/// The pass of single iterations takes at most 1 / this of the time of the headline's samples, or [`SHORTEST_TAIL`].
const TAIL_TIME_DIVISOR: u32 = 4;
/// Time that the pass of single iterations may take in any case.
const SHORTEST_TAIL: Duration = Duration::from_millis(1);
/// Samples of a schedule. A p99 with its interval needs 368.
const SAMPLES_FOR_P99: u64 = 500;
/// Maximum time for reaching [`SAMPLES_FOR_P99`].
const LONGEST_FOR_P99: Duration = Duration::from_millis(500);
/// Maximum samples of the pass of single iterations. A p99.9 needs 3688.
const MOST_OF_TAIL: u64 = 5000;

/// Maximum planned time of a round. Longer ones are divided, so that ranks show progress and a row that became slow ends.
pub const LONGEST_ROUND: Duration = Duration::from_secs(5);
/// A row has become slow if it takes longer than this, and this many times longer than planned.
const LONGEST_SLOW: Duration = Duration::from_secs(30);
const SLOWED: f64 = 10.0;

/// Least warm-up of a row, if the user gives no number of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUpGoal {
    /// Time of the warm-up after its first iteration, in nanoseconds.
    time_ns: u64,
}

impl WarmUpGoal {
    /// Connections, pages and caches, and the time of an iteration. The first iteration does not show it.
    pub const CALIBRATE: WarmUpGoal = WarmUpGoal { time_ns: 3_000_000 };
    /// Connections, pages and caches. An earlier launch has shown the time of an iteration.
    pub const REPEAT: WarmUpGoal = WarmUpGoal { time_ns: 1_000_000 };
}

/// Why sampling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The interval reached the requested precision.
    Converged,
    /// The time or the maximum number of samples was used up first.
    OutOfBudget,
    /// The row took many times longer than planned.
    Slowed,
}

/// Returns the iterations per sample for which a clock reading costs at most 1 % of the sample, and a step of the clock is at most
/// 0.2 % of it.
pub fn batch_for(iteration_ns: f64, clock: ClockProperties) -> u64 {
    let least = (clock.overhead_ns as f64 / STAMP_PART).max(clock.resolution_ns as f64 / STEP_PART);
    (least / iteration_ns.max(0.01)).ceil().max(1.0) as u64
}

/// Returns the iterations per sample for which a sample lasts at least `least_ns`.
pub fn batch_lasting(least_ns: f64, iteration_ns: f64) -> u64 {
    (least_ns / iteration_ns.max(0.01)).ceil().max(1.0) as u64
}

/// Divides a fixed number of iterations into (samples, batch).
///
/// Together the batches run exactly `iterations`. If no batch from the given one up to 8 times as many leaves enough samples for an
/// interval, one of at least half as many does; otherwise there are fewer samples.
pub fn divide(iterations: u64, batch: u64) -> (u64, u64) {
    let most = (iterations / LEAST_FOR_INTERVAL).max(1);
    let batch = batch.clamp(1, most);
    let divides = |b: &u64| iterations.is_multiple_of(*b);
    let even = (batch..=most.min(batch.saturating_mul(8))).find(divides);
    let smaller = || (batch.div_ceil(2)..batch).rev().find(divides);
    let fewer_samples = || (1..LEAST_FOR_INTERVAL).rev().find(divides).map(|samples| iterations / samples);
    let batch = even.or_else(smaller).or_else(fewer_samples).unwrap_or(batch);
    (iterations.div_ceil(batch), batch)
}

/// Part by which the time of an iteration falls at most from one part of a warm-up to the next, when it has ended: half of the usual
/// precision. Each part is as long as all before it together, and what wears off falls ever more slowly: at most as much is left.
const SETTLED: f64 = 0.01;

/// What a warm-up has shown.
#[derive(Debug, Clone, Copy)]
pub struct WarmedUp {
    /// Iterations.
    pub iterations: u64,
    /// Time of all but the first, which may open a connection, in nanoseconds.
    pub spent_ns: u64,
    /// Time of an iteration in the last part, in nanoseconds.
    pub last_ns: f64,
    /// The same in the fastest part before it; infinite without one.
    pub fastest_ns: f64,
}

impl WarmedUp {
    /// Nothing.
    pub const NOT: WarmedUp =
        WarmedUp { iterations: 0, spent_ns: 0, last_ns: f64::INFINITY, fastest_ns: f64::INFINITY };

    /// Adds a part.
    pub fn add(&mut self, iterations: u64, wall_ns: u64, iteration_ns: f64) {
        self.spent_ns += if self.iterations == 0 { 0 } else { wall_ns };
        self.iterations += iterations;
        self.fastest_ns = self.fastest_ns.min(std::mem::replace(&mut self.last_ns, iteration_ns));
    }

    /// Returns whether the times of the library still fall.
    fn is_falling(&self) -> bool {
        self.last_ns < (1.0 - SETTLED) * self.fastest_ns
    }
}

/// Returns how many more iterations to warm up, or 0. The number doubles each time, first within the time of the goal, then until times do
/// not fall any more, or `most` is spent.
pub fn more_warm_up(goal: WarmUpGoal, so_far: WarmedUp, most: Duration) -> u64 {
    let run = so_far.iterations;
    let reached = run > 1 && so_far.spent_ns >= goal.time_ns;
    if run >= 1 << 40 || reached && !so_far.is_falling() {
        return 0;
    }
    let most_ns = most.as_nanos() as u64;
    if reached && so_far.spent_ns >= most_ns {
        return 0;
    }
    let until = if reached { most_ns } else { goal.time_ns };
    let each_ns = so_far.last_ns.min(so_far.fastest_ns).max(1.0);
    ((until.saturating_sub(so_far.spent_ns) as f64 / each_ns).ceil() as u64).clamp(1, run.max(1))
}

/// Returns the number of samples of the first round, at least `least`. `sample_ns` is the estimated time of a sample.
pub fn first_round(sample_ns: f64, max_time: Duration, least: u64) -> u64 {
    let budget = max_time.as_nanos() as f64 / sample_ns.max(1.0);
    let wanted = (budget / f64::from(LEAST_TIME_DIVISOR)).max(LEAST_SAMPLES as f64);
    match (wanted.min(budget) as u64).clamp(least, MOST_SAMPLES) {
        // The median of two is their mean, which a disturbed one moves.
        2 => least,
        samples => samples,
    }
}

/// Returns the minimum number of samples of a row in one of several launches: 3, or one of 4 ms and more.
pub fn least_of_launch(sample_ns: f64) -> u64 {
    if sample_ns >= LONG.as_nanos() as f64 { 1 } else { LEAST_OF_LAUNCH }
}

/// Returns how many of these samples are in one round. `sample_ns` is infinite if it is unknown.
pub fn part_of_round(samples: u64, sample_ns: f64) -> u64 {
    if sample_ns.is_finite() { samples.min(samples_within(LONGEST_ROUND, sample_ns).max(1)) } else { samples }
}

/// Returns whether a row that was planned to take `planned_ns` has become slow.
pub fn is_slowed(spent: Duration, planned_ns: f64) -> bool {
    spent > LONGEST_SLOW && spent.as_nanos() as f64 > SLOWED * planned_ns
}

/// Returns the number of samples of a schedule, which has one round: those of `time`, and as many as a p99 needs if they take at most
/// `LONGEST_FOR_P99`.
pub fn scheduled_round(sample_ns: f64, time: Duration) -> u64 {
    let for_p99 = SAMPLES_FOR_P99.min(samples_within(LONGEST_FOR_P99, sample_ns));
    samples_within(time, sample_ns).max(for_p99).clamp(LEAST_FOR_INTERVAL, MOST_SAMPLES)
}

/// Returns the iterations per sample for which a row of at least `least` has at most half of `most` samples.
pub fn batch_within(least: Duration, most: u64, iteration_ns: f64) -> u64 {
    batch_lasting(2.0 * least.as_nanos() as f64 / most as f64, iteration_ns)
}

/// Returns how many more samples a row of `n` samples in `spent` needs to last `least`, up to `most` in all.
pub fn samples_until(least: Duration, n: u64, spent: Duration, most: u64) -> u64 {
    let missing = least.saturating_sub(spent).as_nanos() as f64;
    let samples = (missing * n as f64 / (spent.as_nanos() as f64).max(1.0)).ceil() as u64;
    samples.min(most.saturating_sub(n))
}

/// Returns the number of single iterations to time for percentiles, after samples that took `spent`.
pub fn tail_samples(spent: Duration, iteration_ns: f64) -> u64 {
    samples_within((spent / TAIL_TIME_DIVISOR).max(SHORTEST_TAIL), iteration_ns).min(MOST_OF_TAIL)
}

/// Returns the number of iterations that fit into a time.
pub fn samples_within(time: Duration, iteration_ns: f64) -> u64 {
    (time.as_nanos() as f64 / iteration_ns.max(1.0)) as u64
}

/// Returns how many more samples to take, or why sampling ends.
///
/// `n` samples took `spent` and `reached` a precision, which is a fraction of the median.
pub fn next_round(
    n: u64,
    spent: Duration,
    reached: Option<f64>,
    precision: f64,
    max_time: Duration,
) -> std::result::Result<u64, Ending> {
    if reached.is_some_and(|r| r <= precision) && n >= LEAST_SAMPLES {
        return Err(Ending::Converged);
    }
    let left = max_time.saturating_sub(spent).as_nanos() as f64;
    let affordable = left * n as f64 / (spent.as_nanos() as f64).max(1.0);
    let more =
        ((n as f64 * (GROWTH - 1.0)).max(1.0)).min(affordable).min((MOST_SAMPLES.saturating_sub(n)) as f64);
    if more < 1.0 { Err(Ending::OutOfBudget) } else { Ok(more as u64) }
}

/// Largest time and number of samples of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowLimits {
    /// Time.
    pub time: Duration,
    /// Number of samples.
    pub samples: u64,
}

/// Returns how many more samples a row takes, or why it ends; its `n` samples took `spent`. A fixed number of iterations ends without a reason, and so does a row that ends by time, which has not missed a precision.
pub fn next_by_effort(
    effort: Effort,
    n: u64,
    spent: Duration,
    summary: Option<&Summary>,
    limits: RowLimits,
) -> std::result::Result<u64, Option<Ending>> {
    let precision = match effort {
        Effort::Fixed { .. } => return Err(None),
        Effort::Precision { precision, .. } => precision,
        Effort::Time(_) => 0.0,
    };
    let next = next_round(n, spent, summary.and_then(Summary::precision), precision, limits.time);
    let next = next.and_then(|next| match limits.samples.saturating_sub(n) {
        0 => Err(Ending::OutOfBudget),
        left => Ok(next.min(left)),
    });
    next.map_err(|ending| (!matches!(effort, Effort::Time(_))).then_some(ending))
}

/// Checked operations of a row in a run of one launch.
const CHECKED: u64 = 64;
/// Checked operations of a row in one of several launches: nine launches have 72, of which 59 exclude errors in more than 5 % of the
/// operations.
const CHECKED_OF_LAUNCH: u64 = 8;
/// Checked iterations of a row, of which one may have all operations that are wanted: an error in every second iteration escapes them with
/// a probability of 6 %, and those of nine launches with one of 10^-11.
const LEAST_CHECKED: u64 = 4;
/// Part of the time of the samples that checks may take, and the time that they may take in any case.
const PART_FOR_CHECKS: f64 = 0.5;
const LEAST_FOR_CHECKS: Duration = Duration::from_millis(16);

/// Returns how many iterations of a row are checked, if `whole` of them show everything that the `operations` of one iteration deliver. A
/// row of one of several launches has fewer.
pub fn checks_of_row(whole: u64, operations: u64, launch: Option<Launch>) -> u64 {
    let wanted = if launch.is_some() { CHECKED_OF_LAUNCH } else { CHECKED };
    whole * wanted.div_ceil(operations.max(1)).max(LEAST_CHECKED)
}

/// Launches that every row with an interval has.
const CHECKING_LAUNCHES: u32 = 6;

/// Returns whether this launch checks iterations of a row, which took `each` and of which `whole` show all `operations` of one. One launch,
/// drawn by the key of the row, checks long ones whose single iterations have all operations that a row of one launch wants. In the others
/// what the last iteration has delivered is compared.
pub fn is_checked_here(
    each: Duration,
    [whole, operations]: [u64; 2],
    launch: Option<Launch>,
    key: &str,
) -> bool {
    match launch {
        Some(launch) if each >= LONG && whole == 1 && operations >= CHECKED => {
            let of_run = launch.order.wrapping_sub(launch.number.into());
            let drawn = SplitMix64(of_run ^ checksum(key.as_bytes())).next_u64();
            drawn % u64::from(launch.of.clamp(1, CHECKING_LAUNCHES)) + 1 == u64::from(launch.number)
        }
        _ => true,
    }
}

/// Returns how many more iterations are checked after `checked` of `wanted` in the time `spent`, for samples that took `sampled`; at most
/// as many again.
pub fn more_checks(checked: u64, wanted: u64, spent: Duration, sampled: Duration) -> u64 {
    let each = spent.as_secs_f64() / checked as f64;
    let time = sampled.mul_f64(PART_FOR_CHECKS).max(LEAST_FOR_CHECKS);
    let affordable = (time.saturating_sub(spent).as_secs_f64() / each.max(1e-9)) as u64;
    affordable.min(wanted.saturating_sub(checked)).min(checked)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stamp_costs_at_most_one_percent_of_a_batch() {
        let of = |iteration, overhead_ns, resolution_ns| {
            batch_for(iteration, ClockProperties { source: "manual", resolution_ns, overhead_ns })
        };
        assert_eq!((of(100.0, 9, 1), of(100.0, 9, 40)), (9, 200));
        assert_eq!((of(1e6, 9, 1), of(1e6, 9, 40)), (1, 1));
        for iteration in [0.5, 3.0, 100.0, 901.0, 5000.0] {
            for (overhead, step) in [(1, 1), (9, 1), (9, 40), (30, 10)] {
                let batch = of(iteration, overhead, step);
                let least = (overhead as f64 / 0.01).max(step as f64 / 0.002);
                assert!(least <= iteration * batch as f64 + 1e-9);
                assert!(batch == 1 || least > iteration * (batch - 1) as f64);
            }
        }
    }

    #[test]
    fn single_iterations_take_a_part_of_the_time() {
        let ms = Duration::from_millis;
        assert_eq!(tail_samples(ms(20), 2000.0), 2500);
        assert_eq!(tail_samples(ms(1000), 2000.0), MOST_OF_TAIL);
        assert_eq!(tail_samples(ms(0), 2000.0), 500);
        assert_eq!(tail_samples(ms(20), 1e8), 0);
    }

    #[test]
    fn long_iterations_stop_on_time() {
        assert_eq!(first_round(5e7, SECOND, LEAST_FOR_INTERVAL), 20);
        assert_eq!(
            [LEAST_FOR_INTERVAL, LEAST_OF_LAUNCH].map(|least| first_round(1e10, SECOND, least)),
            [6, 3]
        );
        assert_eq!(next_round(20, SECOND, Some(0.005), 0.01, SECOND), Err(Ending::OutOfBudget));
    }

    #[test]
    fn short_iterations_stop_when_precise() {
        let n = first_round(2000.0, SECOND, LEAST_FOR_INTERVAL);
        assert_eq!(n, 5000);
        assert_eq!(next_round(n, SECOND / 100, Some(0.009), 0.01, SECOND), Err(Ending::Converged));
        assert_eq!(next_round(n, SECOND / 100, Some(0.02), 0.01, SECOND), Ok(3000));
        assert!(next_round(n, SECOND / 100, None, 0.01, SECOND).is_ok());
        assert_eq!(next_round(MOST_SAMPLES, SECOND / 2, Some(0.5), 0.01, SECOND), Err(Ending::OutOfBudget));
    }

    #[test]
    fn a_minimum_time_is_reached_with_a_bounded_number_of_samples() {
        let ms = Duration::from_millis;
        assert_eq!(samples_until(ms(10), 100, ms(4), 1000), 150);
        assert_eq!(samples_until(ms(10), 100, ms(10), 1000), 0);
        assert_eq!(samples_until(ms(10), 100, ms(1), 1000), 900);
        assert_eq!(samples_until(ms(10), 100, ms(1), 500), 400);
        assert_eq!(batch_within(ms(1), 100, 2000.0), 10);
        assert_eq!(batch_within(Duration::ZERO, 100, 2000.0), 1);
    }

    #[test]
    fn warming_up_lasts_its_time_and_little_longer() {
        for goal in [WarmUpGoal::CALIBRATE, WarmUpGoal::REPEAT] {
            for (each, cold) in
                [(0.0, 0), (50.0, 0), (700.0, 20_000_000), (4e5, 0), (2.9e6, 0), (5e7, 1_000_000_000)]
            {
                let so_far = warm_up(goal, |at| each + if at == 0 { cold as f64 } else { 0.0 });
                let (run, spent) = (so_far.iterations, so_far.spent_ns);
                // One that follows a cold one alone is followed by another.
                let parts = if cold > 0 { 2 } else { 1 };
                let most = parts * (goal.time_ns + each as u64) + 1;
                assert!(
                    run > 1 && (spent >= goal.time_ns || run >= 1 << 40) && spent <= most,
                    "{goal:?} {each} {cold} {run} {spent}"
                );
            }
        }
    }

    /// Warms up with iterations of these times, of which each row has 100 ms.
    fn warm_up(goal: WarmUpGoal, time_ns: impl Fn(u64) -> f64) -> WarmedUp {
        let (mut so_far, mut next) = (WarmedUp::NOT, 1);
        while next > 0 {
            let from = so_far.iterations;
            let shown = if from < 100_000 { next.min(1 << 12) } else { 1 };
            let sum: f64 = (from..from + shown).map(&time_ns).sum();
            let each = sum / shown as f64;
            so_far.add(next, (each * next as f64) as u64, each);
            next = more_warm_up(goal, so_far, Duration::from_millis(100));
            assert!(next <= so_far.iterations);
        }
        so_far
    }

    #[test]
    fn a_warm_up_ends_when_times_have_stopped_falling() {
        // An allreduce of 16 KiB over MPICH 4.0 in microseconds: page faults of the first 50 calls.
        let allreduce = |at: u64| {
            1e3 * if at < 25 {
                23.0
            } else if at < 50 {
                11.0
            } else {
                6.0
            }
        };
        // Two connections that the first messages open, and buffers that grow during the next ones.
        let lazy = |at: u64| match at {
            0 => 30e6,
            1 => 5e6,
            _ => 2e3 + 20e3 * f64::exp(-(at as f64) / 100.0),
        };
        for goal in [WarmUpGoal::REPEAT, WarmUpGoal::CALIBRATE] {
            for (times, settled) in [(&allreduce as &dyn Fn(u64) -> f64, 50), (&lazy, 400)] {
                let so_far = warm_up(goal, times);
                let last = times(so_far.iterations);
                assert!(so_far.iterations > settled && so_far.spent_ns < 20_000_000, "{so_far:?}");
                assert!((so_far.last_ns / last - 1.0).abs() < 2.0 * SETTLED, "{so_far:?} {last}");
            }
        }
        // Times that fall for ever end with the time of the row.
        let falling = warm_up(WarmUpGoal::REPEAT, |at| 1e6 / (1.0 + at as f64).sqrt());
        assert!((50_000_000..200_000_000).contains(&falling.spent_ns), "{falling:?}");
        assert_eq!(warm_up(WarmUpGoal::REPEAT, |_| 2e6).iterations, 2);
    }

    #[test]
    fn long_rounds_are_divided_and_slow_rows_end() {
        assert_eq!(
            (part_of_round(1000, 1e6), part_of_round(1000, 1e9), part_of_round(9, 1e10)),
            (1000, 5, 1)
        );
        assert_eq!(part_of_round(1000, f64::INFINITY), 1000);
        let s = Duration::from_secs;
        assert!(is_slowed(s(31), 1e9) && !is_slowed(s(29), 1e6) && !is_slowed(s(31), 4e9));
        assert!(!is_slowed(s(4000), f64::INFINITY));
    }

    #[test]
    fn fixed_counts_are_kept() {
        for (iterations, batch, (samples, size)) in [
            (1000, 7, (125, 8)),
            (10_000, 9, (1000, 10)),
            (100, 1, (100, 1)),
            (5, 9, (5, 1)),
            (1, 100, (1, 1)),
            (50, 8, (10, 5)),
            (53, 8, (1, 53)),
            (100, 15, (10, 10)),
        ] {
            assert_eq!(divide(iterations, batch), (samples, size), "{iterations}/{batch}");
        }
    }

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn rounds_end_at_the_limit(sample_ns in 1.0f64..1e9, reached in prop::option::of(0.0f64..1.0)) {
            let mut n = first_round(sample_ns, SECOND, LEAST_FOR_INTERVAL);
            for _ in 0..100 {
                let spent = Duration::from_nanos((n as f64 * sample_ns) as u64);
                match next_round(n, spent, reached, 0.01, SECOND) {
                    Ok(more) => n += more,
                    Err(_) => return Ok(()),
                }
            }
            prop_assert!(false, "still sampling");
        }

        #[test]
        fn whole_batches_are_the_iterations(iterations in 1u64..100_000, batch in 1u64..5000) {
            let (samples, size) = divide(iterations, batch);
            prop_assert_eq!(samples * size, iterations);
        }
    }

    /// Returns how many iterations are checked, if each takes `each_us`.
    fn checked(wanted: u64, each_us: u64, sampled_ms: u64) -> u64 {
        let (mut checked, mut more) = (0, 1);
        while more > 0 {
            checked += more;
            let spent = Duration::from_micros(each_us * checked);
            more = more_checks(checked, wanted, spent, Duration::from_millis(sampled_ms));
        }
        checked
    }

    #[test]
    fn checks_take_a_part_of_the_time_of_the_samples() {
        let wanted = checks_of_row(1, 1, None);
        assert_eq!((checked(wanted, 10, 20), checked(wanted, 10, 100)), (64, 64));
        // 64 x 100 us are less than 16 ms, and 64 x 1 ms more.
        assert_eq!((checked(wanted, 100, 20), checked(wanted, 1000, 20)), (64, 16));
        // One is always checked.
        assert_eq!(checked(wanted, 100_000, 20), 1);
    }

    #[test]
    fn long_iterations_are_checked_in_one_launch() {
        let ms = Duration::from_millis;
        let checked = |each, delivered, key: &str, seed: u64| -> Vec<u32> {
            let launch = |number| Some(Launch { number, of: 30, order: seed + u64::from(number) });
            (1..=9).filter(|number| is_checked_here(each, delivered, launch(*number), key)).collect()
        };
        let mut drawn = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let [launch] = checked(ms(4), [1, 64], "p2p.bw/bytes=4194304", seed)[..] else {
                panic!("{seed}")
            };
            drawn.insert(launch);
        }
        assert_eq!(drawn, (1..=6).collect());
        let all: Vec<u32> = (1..=9).collect();
        // Short ones, those with fewer operations, and those of which one check sees a part.
        for (each, delivered) in [(ms(3), [1, 64]), (ms(9), [1, 63]), (ms(9), [64, 64])] {
            assert_eq!(checked(each, delivered, "x", 7), all);
        }
        assert!(is_checked_here(ms(9), [1, 64], None, "x"));
        let of_two = |number| Some(Launch { number, of: 2, order: 9 + u64::from(number) });
        assert_eq!((1..=2).filter(|number| is_checked_here(ms(9), [1, 64], of_two(*number), "x")).count(), 1);
    }

    #[test]
    fn long_samples_are_one_of_a_launch() {
        let first = |sample_ms: f64, ms: u64| {
            first_round(sample_ms * 1e6, Duration::from_millis(ms), least_of_launch(sample_ms * 1e6))
        };
        assert_eq!([first(3.9, 4), first(4.0, 4), first(26.0, 20), first(8.0, 20)], [3, 1, 1, 1]);
        assert_eq!([first(6.0, 20), first(8.0, 100)], [3, 12]);
    }

    #[test]
    fn launches_share_the_checks_of_a_row() {
        let launch = Some(Launch { number: 1, of: 9, order: 0 });
        let wanted = checks_of_row(1, 1, launch);
        assert!(9 * wanted >= 59);
        // 16 ms allow 8, whether samples take 4 ms or 10 ms.
        for sampled_ms in [4, 10] {
            assert_eq!([100, 300, 1000, 2000].map(|us| checked(wanted, us, sampled_ms)), [8; 4]);
        }
        assert_eq!(checked(wanted, 4000, 4), 4);
        // Half of 240 ms allows one check of 80 ms.
        assert_eq!(checked(wanted, 80_000, 240), 1);
        // A window has more operations than that. Where its messages share a buffer, one is seen at a time.
        assert_eq!([checks_of_row(1, 64, launch), checks_of_row(64, 64, launch)], [4, 256]);
        assert_eq!(
            [checks_of_row(1, 2, launch), checks_of_row(4, 1, None), checks_of_row(1, 64, None)],
            [4, 256, 4]
        );
    }
}
