//! When a row has enough samples: rank 0 asks between rounds, outside timing, at geometrically growing n.

use std::time::Duration;

/// Fewest samples of a row, unless its time is over before.
pub const LEAST_SAMPLES: u64 = 30;
/// Fewest samples of a row in any case: with fewer there is no interval.
pub const LEAST_FOR_INTERVAL: u64 = 6;
/// Most samples of a row; with so many the interval of any steady quantity is narrow.
pub const MOST_SAMPLES: u64 = 100_000;
/// A row is measured for this part of its maximum at the least, so that it does not stand on one lucky moment.
const LEAST_TIME_PART: u32 = 100;
/// Each round grows the number of samples to this much of what there is.
const GROWTH: f64 = 1.6;
/// The stamp that a sample needs is at most this part of the sample.
const STAMP_PART: f64 = 0.01;

/// Time for which a case is warmed up, if the user gives no number of iterations.
const WARM_NS: u64 = 3_000_000;
/// Iterations before measuring at the least: first touch of pages and connections is not what is measured.
const LEAST_WARM: u64 = 2;

/// Why sampling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The interval is narrow enough.
    Converged,
    /// The time or number of samples for a row was used up first.
    OutOfBudget,
}

/// Iterations in a sample so that reading the clock costs at most 1 % of it.
pub fn batch_for(iteration_ns: f64, stamp_ns: u64) -> u64 {
    let least = stamp_ns as f64 / STAMP_PART;
    (least / iteration_ns.max(0.01)).ceil().max(1.0) as u64
}

/// A fixed number of iterations as (samples, batch): whole batches, at least as many iterations, and no more if it can be.
pub fn divide(iterations: u64, batch: u64) -> (u64, u64) {
    let most = (iterations / LEAST_FOR_INTERVAL).max(1);
    let batch = batch.clamp(1, most);
    let even = (batch..=most.min(batch.saturating_mul(8))).find(|b| iterations.is_multiple_of(*b));
    let batch = even.unwrap_or(batch);
    (iterations.div_ceil(batch), batch)
}

/// After `run` iterations of warming up that took `spent_ns`, the fastest of them `each_ns`: how many more, or 0. They double, but
/// go no further than the time for it.
pub fn more_warm_up(run: u64, spent_ns: u64, each_ns: f64) -> u64 {
    let left = WARM_NS.saturating_sub(spent_ns);
    if run >= LEAST_WARM && left == 0 || run >= 1 << 40 {
        return 0;
    }
    ((left as f64 / each_ns.max(1.0)).ceil() as u64).clamp(1, run.max(1))
}

/// Samples of the first round.
pub fn first_round(sample_ns: f64, max_time: Duration) -> u64 {
    let budget = max_time.as_nanos() as f64 / sample_ns.max(1.0);
    let wanted = (budget / f64::from(LEAST_TIME_PART)).max(LEAST_SAMPLES as f64);
    (wanted.min(budget) as u64).clamp(LEAST_FOR_INTERVAL, MOST_SAMPLES)
}

/// After `n` samples that took `spent` and reached `reached`: how many more, or why no more.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stamp_costs_at_most_one_percent_of_a_batch() {
        assert_eq!(batch_for(100.0, 9), 9);
        assert_eq!(batch_for(1e6, 9), 1);
        for iteration in [0.5, 3.0, 100.0, 901.0, 5000.0] {
            for stamp in [1, 9, 30] {
                let batch = batch_for(iteration, stamp);
                assert!(stamp as f64 <= 0.01 * iteration * batch as f64 + 1e-9);
                assert!(batch == 1 || stamp as f64 > 0.01 * iteration * (batch - 1) as f64);
            }
        }
    }

    #[test]
    fn long_iterations_stop_on_time() {
        assert_eq!(first_round(5e7, SECOND), 20);
        assert_eq!(first_round(1e10, SECOND), LEAST_FOR_INTERVAL);
        assert_eq!(next_round(20, SECOND, Some(0.005), 0.01, SECOND), Err(Ending::OutOfBudget));
    }

    #[test]
    fn short_iterations_stop_when_precise() {
        let n = first_round(2000.0, SECOND);
        assert_eq!(n, 5000);
        assert_eq!(next_round(n, SECOND / 100, Some(0.009), 0.01, SECOND), Err(Ending::Converged));
        assert_eq!(next_round(n, SECOND / 100, Some(0.02), 0.01, SECOND), Ok(3000));
        assert!(next_round(n, SECOND / 100, None, 0.01, SECOND).is_ok());
        assert_eq!(next_round(MOST_SAMPLES, SECOND / 2, Some(0.5), 0.01, SECOND), Err(Ending::OutOfBudget));
    }

    #[test]
    fn warming_up_lasts_its_time_and_little_longer() {
        for (each, cold) in
            [(0.0, 0), (50.0, 0), (700.0, 20_000_000), (4e5, 0), (2.9e6, 0), (5e7, 1_000_000_000)]
        {
            let (mut run, mut spent, mut next) = (0, 0, 1);
            while next > 0 {
                let took = (next as f64 * each) as u64 + if run == 0 { cold } else { 0 };
                (run, spent) = (run + next, spent + took);
                next = more_warm_up(run, spent, each);
                assert!(next <= run);
            }
            let most = (WARM_NS as f64 + 2.0 * each) as u64 + cold;
            assert!(
                run >= LEAST_WARM && (spent >= WARM_NS || run >= 1 << 40) && spent <= most,
                "{each} {run} {spent}"
            );
        }
    }

    #[test]
    fn fixed_counts_are_kept() {
        for (iterations, batch, (samples, size)) in [
            (1000, 7, (125, 8)),
            (10_000, 9, (1000, 10)),
            (100, 1, (100, 1)),
            (5, 9, (5, 1)),
            (1, 100, (1, 1)),
        ] {
            assert_eq!(divide(iterations, batch), (samples, size), "{iterations}/{batch}");
        }
    }

    proptest! {
        #[test]
        fn rounds_end(sample_ns in 1.0f64..1e9, reached in prop::option::of(0.0f64..1.0)) {
            let mut n = first_round(sample_ns, SECOND);
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
        fn whole_batches_cover_the_iterations(iterations in 1u64..100_000, batch in 1u64..5000) {
            let (samples, size) = divide(iterations, batch);
            prop_assert!(samples * size >= iterations && (samples - 1) * size < iterations);
        }
    }
}
