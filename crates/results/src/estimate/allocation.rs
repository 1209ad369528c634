//! Time of a row in a launch, from the scatter within and between launches.

use std::time::Duration;

use ombx_core::{result::Measurement, stats::median};

use super::cases::Cases;

/// Time of a row until two launches have shown how they scatter.
pub const FIRST_ROW_TIME: Duration = Duration::from_millis(20);
/// Minimum time of a row in a launch.
const LEAST: Duration = Duration::from_millis(10);
/// Half widths of a 95 % interval in standard errors.
const HALF_WIDTH: f64 = 1.96;

/// Returns the time of a row in the next launch: sqrt(A T / R) / s, at least 10 ms.
///
/// A is the squared standard error of a row times its time, s the standard
/// deviation between launches, both as a fraction of the median. T is `fixed`, the time of a launch without its samples, and R
/// the number of rows. More time per row would narrow the intervals less than more launches do in the same time.
pub fn row_time(cases: &Cases, fixed: Duration, most: Duration) -> Duration {
    let wanted: Vec<f64> = cases.all().filter_map(|rows| ratio(rows)).collect();
    let Some(ratio) = median(&wanted) else { return FIRST_ROW_TIME.min(most) };
    let seconds = ratio * (fixed.as_secs_f64() / cases.all().count().max(1) as f64).sqrt();
    let least = LEAST.min(most);
    Duration::try_from_secs_f64(seconds).unwrap_or(most).clamp(least, most)
}

/// Returns sqrt(A) / s of a case, in square roots of a second; `None` if its launches do not show both.
fn ratio(rows: &[Measurement]) -> Option<f64> {
    let scatter = between(rows)?;
    let areas = rows.iter().filter_map(|row| {
        let error = row.summary.as_ref()?.precision()? / HALF_WIDTH;
        Some(error * error * row.phases?.sample_ns as f64 * 1e-9)
    });
    let area = median(&areas.collect::<Vec<_>>())?;
    (scatter > 0.0).then(|| area.sqrt() / scatter)
}

/// Returns the standard deviation of the launches' medians as a fraction of the median; `None` for fewer than 2.
fn between(rows: &[Measurement]) -> Option<f64> {
    let logs: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.summary.as_ref()?.median))
        .filter(|x| *x > 0.0)
        .map(f64::ln)
        .collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|x| (x - mean) * (x - mean)).sum();
    (logs.len() >= 2).then(|| (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::Metric,
        measure::phases::Phases,
        result::{Measurement, Samples},
        stats::Summary,
    };

    use super::*;
    use crate::{estimate::cases::Cases, file::Record};

    /// A row of 10 ms whose samples scatter by about 1 % around `median_ns`.
    fn row(key: &str, median_ns: u64) -> Measurement {
        let elapsed_ns =
            (0..100).map(|i| median_ns + median_ns * (i * 37 % 100) / 5000 - median_ns / 100).collect();
        let samples = vec![Samples { batch: 1, elapsed_ns, ..Samples::default() }];
        Measurement {
            summary: Summary::of_batches(&Measurement::combine(&samples, 1)),
            samples,
            phases: Some(Phases { sample_ns: 10_000_000, ..Phases::default() }),
            ..Measurement::new("p2p.latency", key, Metric::Latency, 2)
        }
    }

    fn cases(launches: &[u64]) -> Cases {
        let mut cases = Cases::default();
        for median_ns in launches {
            cases.record(&Record::Run(Box::new(crate::golden().run)));
            cases.record(&Record::Launch(Box::new(row("p2p.latency/bytes=8", *median_ns))));
        }
        cases
    }

    #[test]
    fn rows_are_short_where_launches_scatter_and_longer_where_they_do_not() {
        let ms = Duration::from_millis(1);
        let most = 100 * ms;
        assert_eq!(row_time(&cases(&[100_000]), 300 * ms, most), FIRST_ROW_TIME);
        let scattered = row_time(&cases(&[100_000, 150_000, 80_000]), 300 * ms, most);
        let steady = row_time(&cases(&[100_000, 100_100, 100_050]), 300 * ms, most);
        assert_eq!((scattered, steady), (LEAST, most));
        let between = row_time(&cases(&[100_000, 101_000, 99_500]), 3000 * ms, most);
        assert!(LEAST < between && between < most, "{between:?}");
    }
}
